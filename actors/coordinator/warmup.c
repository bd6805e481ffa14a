// warmup -- warmup_begin says of each trainer whether it is awaited. warmup_end compares that with the
// reports: so one that left, or whose lease ran out, is late as well.

#include "actors/coordinator/warmup.h"
#include "common/pace/turn.h"
#include <stdio.h>
#include <string.h>

static bool takes_steps(const struct turn *turn, uint32_t member)
{
    return role_takes_steps(turn->run->roster.members[member].role) && turn_is_live(turn, member);
}

// One that came while the Warmup lasts is awaited as well, and so are all after a restart.
static bool is_awaited(const struct warmup *self, const struct turn *turn, uint32_t member)
{
    // mutant: warmup: who withholds its report is waited for in every epoch
    return takes_steps(turn, member) && self->part[member] != WARMUP_NOT_AWAITED;
}

static bool has_reported(const struct holdings *holdings, const struct turn *turn, uint32_t member)
{
    return holdings->of[member].known && holdings->of[member].step == turn->run->step;
}

static bool has_model(const struct holdings *holdings, const struct turn *turn, uint32_t member)
{
    return run_has_digest(turn->run) ? holdings_have(holdings, turn, member, &turn->run->digest)
                                     : has_reported(holdings, turn, member);
}

void warmup_begin(struct warmup *self, const struct turn *turn)
{
    for (uint32_t i = 0; i < turn->run->roster.count; i++)
        self->part[i] = !takes_steps(turn, i)                     ? WARMUP_NO_PART
                        : turn->now_ms < self->let_go_until_ms[i] ? WARMUP_NOT_AWAITED
                                                                  : WARMUP_AWAITED;
}

// All others waited in vain for this one, so long.
static void be_late(struct warmup *self, const struct turn *turn, uint32_t member,
                    uint64_t waited_ms)
{
    const uint64_t now_ms = turn->now_ms, for_ms = 10 * waited_ms; // A tenth of the time
    // mutant: warmup: a joiner that is late once is not awaited in the next epoch
    const bool again = now_ms < self->late_until_ms[member];
    self->late_until_ms[member] = now_ms + for_ms;
    if (!again) return;
    self->let_go_until_ms[member] = now_ms + for_ms;
    self->late_until_ms[member] += for_ms;
    outbox_note(turn->out,
                "member.not_awaited name=%s; all others waited again and in vain for its report of "
                "the model: for %.3g s no epoch waits for it",
                turn->run->roster.members[member].name, (double)for_ms / 1000);
}

void warmup_end(struct warmup *self, const struct holdings *holdings, const struct turn *turn)
{
    const uint64_t waited_ms = turn->now_ms - turn->presence->epoch_began_ms;
    for (uint32_t i = 0; i < turn->run->roster.count; i++) {
        // mutant: warmup: who leaves before its time is up was not late
        const bool is_ready = takes_steps(turn, i) && has_model(holdings, turn, i);
        if (self->part[i] == WARMUP_AWAITED && !is_ready) be_late(self, turn, i, waited_ms);
    }
}

void warmup_forget(struct warmup *self) { memset(self, 0, sizeof *self); }

void warmup_forget_member(struct warmup *self, uint32_t member)
{
    self->part[member] = WARMUP_NO_PART;
    self->late_until_ms[member] = self->let_go_until_ms[member] = 0;
}

bool warmup_have_reported(const struct warmup *self, const struct holdings *holdings,
                          const struct turn *turn)
{
    for (uint32_t i = 0; i < turn->run->roster.count; i++)
        if (is_awaited(self, turn, i) && !has_reported(holdings, turn, i)) return false;
    return true;
}

bool warmup_have_model(const struct warmup *self, const struct holdings *holdings,
                       const struct turn *turn)
{
    for (uint32_t i = 0; i < turn->run->roster.count; i++)
        if (is_awaited(self, turn, i) && !has_model(holdings, turn, i)) return false;
    return true;
}

char *warmup_print_awaited(const struct warmup *self, const struct holdings *holdings,
                           const struct turn *turn, char *text, size_t max)
{
    const struct roster *roster = &turn->run->roster;
    uint32_t first = NO_MEMBER, missing = 0, ready = 0, all = 0;
    const bool servers = roster_count(roster, ACTOR_SERVER, MEMBER_HEALTHY) > 0;
    char more[32] = "";
    text[0] = 0;
    if (turn->now_ms - turn->presence->epoch_began_ms < turn->rules->heartbeat_ms) return text;
    for (uint32_t i = 0; i < roster->count; i++) {
        if (!takes_steps(turn, i)) continue;
        all++;
        if (has_model(holdings, turn, i)) ready++;
        else if (is_awaited(self, turn, i) && missing++ == 0) first = i;
    }
    if (missing == 0) return text;
    if (missing > 1) snprintf(more, sizeof more, " and %u more", missing - 1);
    snprintf(text, max, "waiting for %s%s to report the model (%u of %u %s have)",
             roster->members[first].name, more, ready, all, servers ? "members" : "trainers");
    return text;
}
