// missed -- without a quorum of votes nothing is accepted, so the witnesses are named that have not
// voted. With one, the trainers whose results fewer than a quorum of the votes name.

#include "common/pace/rounds/missed.h"
#include "common/pace/rounds/rounds_run.h"
#include "common/run/quorum.h"
#include <stdio.h>
#include <string.h>

enum { NAMED_MAX = 2, DIGITS = 8, LABELLED = 4 }; // Members named; digits of a key, beside a label

struct list {
    char text[96];
    uint32_t count;
};

static void name(struct list *list, const struct turn *turn, uint32_t member)
{
    const struct wire_member *line = &turn->run->roster.members[member];
    char hex[KEY_HEX], label[ACTOR_LABEL_MAX + 1];
    const size_t used = strlen(list->text);
    if (list->count++ >= NAMED_MAX) return;
    actor_name_label(line->name, label);
    snprintf(list->text + used, sizeof list->text - used, "%s%s%s%s.%.*s", used ? ", " : "",
             wire_enum_name(&wire_enum_role, line->role), label[0] ? "." : "", label,
             label[0] ? LABELLED : DIGITS, key_to_hex(&line->key, hex));
}

static const char *end_list(struct list *list)
{
    const size_t used = strlen(list->text);
    if (list->count > NAMED_MAX)
        snprintf(list->text + used, sizeof list->text - used, " and %u more",
                 list->count - NAMED_MAX);
    return list->text;
}

static void miss_votes(const struct turn *turn, const struct tally *tally,
                       char ret_text[MISSED_BYTES])
{
    const struct round *round = round_of(turn->run);
    struct list list = { 0 };
    for (uint32_t i = 0; i < round->witnesses_count; i++)
        if (!tally->has_voted[i] && turn_is_live(turn, round->witnesses[i].member))
            name(&list, turn, round->witnesses[i].member);
    if (list.count == 0) return;
    snprintf(ret_text, MISSED_BYTES,
             "the round's time was up without the votes of %s (%u of %u, %u are needed): raise "
             "round_witness_time (now %g s)",
             end_list(&list), tally->voted, tally->elected, quorum_of(tally->elected),
             turn->rules->witness_ms / 1000.0);
}

static void miss_results(const struct turn *turn, const struct tally *tally,
                         const struct deal *deal, char ret_text[MISSED_BYTES])
{
    const struct round *round = round_of(turn->run);
    struct list list = { 0 };
    uint32_t most = 0; // Votes for one of those that are missing
    for (uint32_t client = 0; client < round->clients_count; client++) {
        struct share share;
        if (!deal_of_trainer(deal, client, &share) || tally_accepted(tally, client) ||
            !turn_is_live(turn, round->clients[client].member))
            continue;
        name(&list, turn, round->clients[client].member);
        if (tally->rivals_count[client] && tally->leader_votes[client] > most)
            most = tally->leader_votes[client];
    }
    if (list.count == 0) return;
    snprintf(ret_text, MISSED_BYTES,
             "the round's time was up without the results of %s (%u of %u witnesses have not got "
             "them); unreachable, or too slow: raise max_round_train_time (now %g s)",
             end_list(&list), tally->elected - most, tally->elected,
             turn->rules->train_ms / 1000.0);
}

void missed_sentence(const struct turn *turn, const struct tally *tally, const struct deal *deal,
                     char ret_text[MISSED_BYTES])
{
    ret_text[0] = 0;
    if (quorum_reached(tally->voted, tally->elected)) miss_results(turn, tally, deal, ret_text);
    else miss_votes(turn, tally, ret_text);
}
