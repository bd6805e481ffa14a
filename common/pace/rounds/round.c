// round -- copies the lists of the newest ROUND and COMMIT, looks things up in them, and changes
// audit debts when a finding comes or a case is left without judges. verdict.c decides what the
// findings amount to.

#include "common/pace/rounds/round.h"
#include "common/base/ensure.h"
#include "common/pace/rounds/verdict.h"
#include "common/pace/rounds/claims.h"
#include <string.h>

bool round_is_sound(const struct wire_round *round)
{
    uint64_t samples = 0;
    if (round->clients_count == 0 || round->clients_count > MEMBERS_MAX ||
        round->witnesses_count > WITNESSES_MAX || round->dealt_count > TABLE_INTERVALS_MAX)
        return false;
    for (uint32_t i = 0; i < round->dealt_count; i++) {
        if (round->dealt[i].begin >= round->dealt[i].end) return false;
        const uint64_t length = interval_length(round->dealt[i]);
        if (length > round->batch_size - samples) return false;
        samples += length;
    }
    return samples == round->batch_size && audits_are_sound(round);
}

// The address of an empty list may be NULL, which memmove does not allow.
static void copy_list(void *to, const void *from, size_t bytes)
{
    if (bytes) memmove(to, from, bytes);
}

void round_open(struct round *self, const struct wire_round *round)
{
    ensure(round->witnesses_count <= WITNESSES_MAX && audits_are_sound(round));
    copy_list(self->dealt, round->dealt, round->dealt_count * sizeof *round->dealt);
    copy_list(self->returned, round->returned, round->returned_count * sizeof *round->returned);
    copy_list(self->clients, round->clients, round->clients_count * sizeof *round->clients);
    copy_list(self->witnesses, round->witnesses, round->witnesses_count * sizeof *round->witnesses);
    copy_list(self->audits, round->audits, round->audits_count * sizeof *round->audits);
    copy_list(self->audited, round->audited, round->audited_count * sizeof *round->audited);
    self->dealt_count = round->dealt_count;
    self->returned_count = round->returned_count;
    self->clients_count = round->clients_count;
    self->witnesses_count = round->witnesses_count;
    self->audits_count = round->audits_count;
    self->audited_count = round->audited_count;
    memset(self->findings, 0, sizeof self->findings);
    self->opened = *round;
    self->opened.dealt = self->opened.returned = self->opened.audited = NULL;
    self->opened.clients = self->opened.witnesses = NULL;
    self->opened.audits = NULL;
    self->opened.dealt_count = self->opened.returned_count = self->opened.audited_count = 0;
    self->opened.clients_count = self->opened.witnesses_count = self->opened.audits_count = 0;
    self->open = round->round > self->last.round; // An observer may have got its COMMIT first
}

void round_close(struct round *self, const struct wire_commit *commit)
{
    copy_list(self->accepted, commit->accepted, commit->accepted_count * sizeof *commit->accepted);
    self->accepted_count = commit->accepted_count;
    self->last = *commit;
    self->last.accepted = NULL;
    self->last.accepted_count = 0;
    self->last_commit = commit_hash(commit);
    self->audit_key = commit->audit_key;
    self->open = false;
}

void round_forget(struct round *self) { self->accepted_count = 0; }

void round_give_up(struct round *self)
{
    // mutant: restore: disputes go on
    self->audits_count = self->audited_count = 0;
    // mutant: restore: a trainer answers for a result that was given up
    self->accepted_count = 0;
}

struct wire_round round_frame(const struct round *self)
{
    struct wire_round round = self->opened;
    round.dealt = self->dealt, round.dealt_count = self->dealt_count;
    round.returned = self->returned, round.returned_count = self->returned_count;
    round.clients = self->clients, round.clients_count = self->clients_count;
    round.witnesses = self->witnesses, round.witnesses_count = self->witnesses_count;
    round.audits = self->audits, round.audits_count = self->audits_count;
    round.audited = self->audited, round.audited_count = self->audited_count;
    return round;
}

// ---- looking things up --------------------------------------------------------------------------

static uint32_t place_of(const struct wire_client *list, uint32_t count, uint32_t member)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i].member == member) return i;
    return NO_MEMBER;
}

uint32_t round_client_place(const struct round *self, uint32_t member)
{
    return place_of(self->clients, self->clients_count, member);
}

uint32_t round_witness_place(const struct round *self, uint32_t member)
{
    return place_of(self->witnesses, self->witnesses_count, member);
}

uint32_t round_trainers(const struct round *self, uint32_t *ret_clients)
{
    const struct wire_round round = round_frame(self);
    return audits_trainers(&round, ret_clients);
}

uint32_t round_audit_place(const struct round *self, uint32_t client)
{
    const struct wire_round round = round_frame(self);
    return audits_of(&round, client);
}

const struct interval *round_audit_samples(const struct round *self, uint32_t place)
{
    const struct wire_round round = round_frame(self);
    return audits_samples(&round, place);
}

bool round_is_party(const struct round *self, uint32_t member)
{
    for (uint32_t i = 0; i < self->audits_count; i++)
        if (self->audits[i].member == member ||
            (self->audits[i].judges && self->audits[i].accuser == member))
            return true;
    return false;
}

bool round_accepts(const struct round *self, uint32_t member)
{
    const uint32_t client = round_client_place(self, member);
    if (client == NO_MEMBER || self->last.round != self->opened.round) return false;
    for (uint32_t i = 0; i < self->accepted_count; i++)
        if (self->accepted[i].client == client) return true;
    return false;
}

uint32_t round_samples_at(const struct round *self, uint32_t begin, uint32_t end,
                          struct interval *ret_list)
{
    return (uint32_t)interval_list_slice(self->dealt, self->dealt_count, begin, end, NULL,
                                         ret_list);
}

// ---- audit debts --------------------------------------------------------------------------------

_Static_assert(AUDIT_OWED_FIRST << AUDIT_WITHHELD_MAX == 64, "the range of debt in rounds.def");

// The debt doubles each time, so that the results of a member that never produces its starting
// residual are audited nearly always.
static void owe(struct wire_debt *debt)
{
    // mutant: audit: debts do not grow
    // mutant: audit: a member that goes away owes nothing
    debt->audits = (uint8_t)(AUDIT_OWED_FIRST << debt->withheld);
    if (debt->withheld < AUDIT_WITHHELD_MAX) debt->withheld++;
}

static bool has_judges(const struct wire_round *round, const struct wire_audit *audit)
{
    for (uint32_t i = 0; i < round->audits_count; i++)
        if (round->audits[i].judges && hash_equal(&round->audits[i].result, &audit->result))
            return true;
    return false;
}

void round_add_debts(const struct round *self, const struct wire_round *next,
                     struct wire_debt *debts)
{
    for (uint32_t i = 0; i < self->audits_count; i++) {
        const struct wire_audit *audit = &self->audits[i];
        struct wire_debt *debt = &debts[audit->member];
        const bool open = audit->judges ? audit->accusation == FINDING_WITHHELD &&
                                              verdict_is_first(self, i) &&
                                              verdict_of(self, i) == FINDING_PENDING
                                        : self->findings[i].finding == FINDING_WITHHELD;
        // mutant: audit: a member that nobody judges owes nothing
        if (open && debt->audits == 0 && !has_judges(next, audit)) debt->audits = 1;
    }
}

void round_hear_finding(struct round *self, const struct wire_record_finding *record,
                        struct wire_debt *debts)
{
    ensure(record->round == self->opened.round && record->place < self->audits_count);
    ensure(self->findings[record->place].finding == FINDING_PENDING);
    const struct wire_audit *audit = &self->audits[record->place];
    const uint8_t before = verdict_of(self, record->place);
    self->findings[record->place].finding = record->finding;
    const uint8_t word = verdict_of(self, record->place);
    const bool judged = before == FINDING_PENDING && word != FINDING_PENDING;
    const bool cleared =
        audit->judges ? judged && word == FINDING_SAME : record->finding == FINDING_SAME;
    struct wire_debt *debt = &debts[audit->member];
    const bool answered = !hash_is_none(&audit->residual_from); // Zero needs no answer
    if (cleared && debt->audits > 0) debt->audits--;
    // mutant: audit: to have shown nothing is never forgiven
    if (cleared && answered) debt->withheld = 0;
    if (!cleared && judged && word == FINDING_WITHHELD) owe(debt);
}
