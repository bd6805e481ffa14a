// health -- each wait of a round is put down to a member (waits.h), and each round that a member missed
// adds to its fault score. The waits lead to a sentence and to nothing else; the score of a member that
// is too high has it dropped.

#include "common/pace/rounds/health.h"
#include "common/run/quorum.h"

// ---- whom the round waited for ------------------------------------------------------------------

// What a member may owe the others before it is named (waits.h).
static uint32_t threshold_ms(const struct turn *turn)
{
    const uint32_t least_ms = rounds_config(turn->rules)->least_train_ms;
    return least_ms ? least_ms : 1000;
}

void health_add_wait(struct rounds *self, const struct turn *turn, uint32_t member,
                     uint64_t took_ms)
{
    waits_add(&self->waits, member, took_ms, tally_half_ms(&self->tally), threshold_ms(turn));
}

uint64_t health_findings_limit_ms(const struct rounds *self, const struct turn *turn,
                                  bool needs_author)
{
    return findings_limit_ms(&self->findings, rounds_config(turn->rules)->least_train_ms,
                             tally_half_ms(&self->tally), needs_author);
}

// A client took part if its result was accepted, even if a witness left it out of its bloom, or if a
// quorum of blooms has it.
static bool took_part(const struct rounds *self, uint32_t client)
{
    // mutant: guilt: a bloom alone says that a trainer took part
    return tally_accepted(&self->tally, client) != NULL ||
           quorum_reached(self->tally.health[client], self->tally.elected);
}

void health_count_waits(struct rounds *self, const struct turn *turn, bool is_decided)
{
    const struct round *round = round_of(turn->run);
    const uint64_t trained_ms = self->trained_ms - self->round_began_ms;
    const uint64_t round_ms = turn->now_ms - self->round_began_ms;
    uint32_t client, waited_ms;
    waits_pass(&self->waits, round, round_ms);
    // mutant: waits: who comes last is not waited for
    if (tally_waited_for(&self->tally, &client, &waited_ms) && client < round->clients_count)
        health_add_wait(self, turn, round->clients[client].member,
                        (uint64_t)waited_ms + tally_half_ms(&self->tally));
    for (uint32_t i = 0; i < self->deal.count; i++) {
        const uint32_t trainer = self->deal.shares[i].trainer;
        const uint32_t member = round->clients[trainer].member;
        if (turn_is_live(turn, member) && !took_part(self, trainer))
            health_add_wait(self, turn, member, trained_ms);
    }
    // Late or not: as with results, what is within min_round_train_time is waited for, and named
    const uint64_t limit_ms =
        findings_limit_ms(&self->findings, 0, tally_half_ms(&self->tally), true);
    for (uint32_t i = 0; i < round->audits_count; i++) {
        const uint64_t took_ms = findings_took_ms(&self->findings, round, i, round_ms);
        // mutant: findings: nobody says whom a late one is put down to
        if (took_ms <= limit_ms) continue;
        const bool both = findings_need_author(&round->audits[i]);
        health_add_wait(self, turn, round->clients[round->audits[i].auditor].member,
                        both ? took_ms / 2 : took_ms);
        if (both) health_add_wait(self, turn, round->audits[i].member, took_ms / 2);
    }
    if (is_decided) return;
    for (uint32_t i = 0; i < round->witnesses_count; i++)
        if (!self->tally.has_voted[i] && turn_is_live(turn, round->witnesses[i].member))
            health_add_wait(self, turn, round->witnesses[i].member,
                            turn->now_ms - self->trained_ms);
}

void health_say_missed(struct rounds *self, const struct turn *turn)
{
    const struct waits *waits = &self->waits;
    const uint32_t train_ms = (uint32_t)(self->trained_ms - self->round_began_ms);
    missed_sentence(turn, &self->tally, &self->deal, self->is_late ? 0 : train_ms, self->missed);
    if (self->missed[0]) return;
    const uint32_t member = waits_longest(waits, round_of(turn->run), threshold_ms(turn));
    if (member != NO_MEMBER && turn_is_live(turn, member))
        missed_waits(turn, member, waits->longest_ms[member], waits->half_ms[member], self->missed);
}

// ---- who missed it ------------------------------------------------------------------------------

// How many rounds it takes to make up for a twentieth of this one, if it was missed: ten times what
// it took, in all.
static uint8_t heal_rounds(const struct rounds *self)
{
    const uint64_t half_ms = tally_half_ms(&self->tally);
    const uint64_t rounds = half_ms ? (self->trained_ms - self->round_began_ms) / (2 * half_ms) : 0;
    return (uint8_t)(rounds < FAULT_HEAL_MAX ? rounds : FAULT_HEAL_MAX);
}

// Raises the fault score of a member that missed a round, or lowers it by a twentieth of that.
static void count_round(struct rounds *self, uint32_t member, bool took_part)
{
    struct audit *audit = &self->audit;
    if (!took_part) {
        const uint8_t heal = heal_rounds(self);
        audit->fault_score[member] += FAULT_ROUND;
        audit->missed_ms[member] += self->trained_ms - self->round_began_ms;
        // mutant: waits: a miss costs the same however long it was waited for
        if (heal > audit->heal[member]) audit->heal[member] = heal;
        return;
    }
    if (++audit->healed[member] >= audit->heal[member]) {
        audit->healed[member] = 0;
        if (audit->fault_score[member]) audit->fault_score[member]--;
    }
    if (audit->probation[member]) audit->probation[member]--;
    if (!audit->fault_score[member]) audit->missed_ms[member] = audit->heal[member] = 0;
}

// It may return in the next epoch, on probation. If it was on probation, it stays out for so long that all the
// rounds that it missed cost the others a tenth of the time.
static void drop_late(struct rounds *self, const struct turn *turn, uint32_t member)
{
    struct audit *audit = &self->audit;
    const uint32_t limit = turn->rules->unhealthy_rounds;
    const uint64_t out_ms = audit->probation[member] ? 10 * audit->missed_ms[member] : 0;
    // mutant: late: one that returns may cost all others any time
    turn->presence->out_until_ms[member] = turn->now_ms + out_ms;
    // mutant: late: one that returns has missed nothing
    audit->fault_score[member] = FAULT_ROUND * (limit - 1);
    // mutant: late: with unhealthy_rounds = 1 nobody is on probation
    audit->probation[member] = FAULT_ROUND * (limit > 1 ? limit - 1 : 1);
    outbox_note(
        turn->out,
        "member.missed name=%s rounds=%u; it missed so many, or one in %u for long; it may join "
        "again after %g s",
        turn->run->roster.members[member].name, limit, FAULT_ROUND, (double)out_ms / 1000);
    turn_set_state(turn, member, MEMBER_DROPPED);
}

// A party to too many late findings has missed too much (findings.h). Those of judges do not count: a
// case has many, and liars among them could be late together.
static void judge_findings(struct rounds *self, const struct turn *turn)
{
    const struct round *round = round_of(turn->run);
    const uint64_t limit_ms = health_findings_limit_ms(self, turn, true);
    const uint64_t round_ms = turn->now_ms - self->round_began_ms;
    const uint32_t most = SUSPICION_TIMES * turn->rules->unhealthy_rounds;
    uint32_t members[PARTIES];
    for (uint32_t i = 0; i < round->audits_count; i++) {
        const uint64_t took_ms = findings_took_ms(&self->findings, round, i, round_ms);
        if (took_ms == 0 || round->audits[i].judges || !findings_need_author(&round->audits[i]))
            continue;
        // mutant: findings: a late one costs nobody anything
        if (!findings_suspect(&self->findings, round, i, took_ms > limit_ms,
                              (uint8_t)(most < UINT8_MAX ? most : UINT8_MAX), members))
            continue;
        for (int party = 0; party < PARTIES; party++) {
            if (members[party] == NO_MEMBER) continue;
            self->audit.fault_score[members[party]] += FAULT_ROUND * turn->rules->unhealthy_rounds;
            self->audit.missed_ms[members[party]] += took_ms;
            outbox_note(turn->out,
                        "audit.late member=%u as=%s; so many findings were late to which it was a "
                        "party, with different others",
                        members[party], party == PARTY_AUDITOR ? "auditor" : "author");
        }
    }
    findings_learn(&self->findings, round);
}

void health_judge(struct rounds *self, const struct turn *turn)
{
    const struct run *run = turn->run;
    const struct round *round = round_of(run);
    for (uint32_t c = 0; c < round->clients_count; c++) {
        struct share share;
        if (deal_of_trainer(&self->deal, c, &share))
            count_round(self, round->clients[c].member, took_part(self, c));
    }
    // mutant: audit: to say nothing costs an auditor nothing
    for (uint32_t i = 0; i < round->audits_count; i++)
        count_round(self, round->clients[round->audits[i].auditor].member,
                    round->findings[i].finding != FINDING_PENDING);
    judge_findings(self, turn);
    for (uint32_t c = 0; c < round->clients_count; c++) {
        const uint32_t member = round->clients[c].member;
        if (self->audit.fault_score[member] >= FAULT_ROUND * turn->rules->unhealthy_rounds &&
            turn_is_live(turn, member))
            drop_late(self, turn, member);
    }
}
