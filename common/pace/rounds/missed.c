// missed -- without a quorum of votes nothing is accepted, so the witnesses are named that have not
// voted. With one, the trainers whose results fewer than a quorum of the votes name. Of several, two
// are named if the sentence has room for them, else one; the others are counted.

#include "common/pace/rounds/missed.h"
#include "common/actor/name.h"
#include "common/pace/rounds/rounds_config.h"
#include "common/pace/rounds/rounds_run.h"
#include "common/run/quorum.h"
#include <stdio.h>
#include <string.h>

enum { NAMED_MAX = 2, DIGITS = 8, LABELLED = 4 }; // Members named; digits of a key, beside a label

struct list {
    char names[NAMED_MAX][ACTOR_NAME_MAX + 1];
    uint32_t count;
    char text[128];
};

static void name(struct list *list, const struct turn *turn, uint32_t member)
{
    const struct wire_member *line = &turn->run->roster.members[member];
    char hex[KEY_HEX], label[ACTOR_LABEL_MAX + 1];
    if (list->count++ >= NAMED_MAX) return;
    actor_name_label(line->name, label);
    snprintf(list->names[list->count - 1], sizeof list->names[0], "%s%s%s.%.*s",
             wire_enum_name(&wire_enum_role, line->role), label[0] ? "." : "", label,
             label[0] ? LABELLED : DIGITS, key_to_hex(&line->key, hex));
}

// The first `named` of them, and how many others there are.
static const char *write_list(struct list *list, uint32_t named)
{
    int used = 0;
    if (named > list->count) named = list->count;
    for (uint32_t i = 0; i < named; i++)
        used += snprintf(list->text + used, sizeof list->text - (size_t)used, "%s%s", i ? ", " : "",
                         list->names[i]);
    if (list->count > named)
        snprintf(list->text + used, sizeof list->text - (size_t)used, " and %u more",
                 list->count - named);
    return list->text;
}

static void miss_votes(const struct turn *turn, const struct tally *tally,
                       char ret_text[MISSED_BYTES])
{
    const struct round *round = round_of(turn->run);
    struct list list = { 0 };
    uint32_t again = 0; // Of them: processes that began after the round
    for (uint32_t i = 0; i < round->witnesses_count; i++) {
        const uint32_t member = round->witnesses[i].member;
        if (tally->has_voted[i] || !turn_is_live(turn, member)) continue;
        again += !round_is_for(turn->run, member);
        name(&list, turn, member);
    }
    if (list.count == 0) return;
    const int used = snprintf(
        ret_text, MISSED_BYTES,
        "the round's time was up without the votes of %s (%u of %u, %u are needed): ",
        write_list(&list, NAMED_MAX), tally->voted, tally->elected, quorum_of(tally->elected));
    // mutant: missed: who began again is told to be given more time
    if (again == list.count)
        snprintf(ret_text + used, MISSED_BYTES - (size_t)used,
                 "they began again in this round, and do not vote a second time");
    else
        snprintf(ret_text + used, MISSED_BYTES - (size_t)used,
                 "raise round_witness_time (now %g s)", turn->rules->witness_ms / 1000.0);
}

static void miss_results(const struct turn *turn, const struct tally *tally,
                         const struct deal *deal, uint32_t waited_ms, char ret_text[MISSED_BYTES])
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
    for (uint32_t named = NAMED_MAX; named > 0; named--) {
        const char *names = write_list(&list, named);
        const uint32_t lack = tally->voted - most, votes = tally->voted;
        const int bytes =
            waited_ms
                ? snprintf(ret_text, MISSED_BYTES,
                           "the round went on after %.3g s without the results of %s (%u of %u "
                           "votes lack them): it waits 3 times as long as half of them take, at "
                           "least min_round_train_time (now %g s)",
                           waited_ms / 1000.0, names, lack, votes,
                           rounds_config(turn->rules)->least_train_ms / 1000.0)
                : snprintf(ret_text, MISSED_BYTES,
                           "the round's time was up without the results of %s (%u of %u votes "
                           "lack them); if unreachable, `shoal doctor` says so; if too slow, raise "
                           "max_round_train_time (now %g s)",
                           names, lack, votes, turn->rules->train_ms / 1000.0);
        if (bytes < MISSED_BYTES) break;
    }
}

void missed_sentence(const struct turn *turn, const struct tally *tally, const struct deal *deal,
                     uint32_t waited_ms, char ret_text[MISSED_BYTES])
{
    ret_text[0] = 0;
    // A round that nobody had to wait for may lack results, too: those that are wrong
    if (waited_ms && waited_ms <= rounds_config(turn->rules)->least_train_ms) return;
    if (quorum_reached(tally->voted, tally->elected))
        miss_results(turn, tally, deal, waited_ms, ret_text);
    else if (!waited_ms) miss_votes(turn, tally, ret_text);
}

void missed_waits(const struct turn *turn, uint32_t member, uint32_t waited_ms, uint32_t half_ms,
                  char ret_text[MISSED_BYTES])
{
    struct list list = { 0 };
    name(&list, turn, member);
    snprintf(ret_text, MISSED_BYTES,
             "the rounds wait for %s for more than a tenth of the time: of late up to %.2g s, when "
             "half of the results took %.2g s; a result is late after min_round_train_time (now %g "
             "s) or more",
             write_list(&list, 1), waited_ms / 1000.0, half_ms / 1000.0,
             rounds_config(turn->rules)->least_train_ms / 1000.0);
}
