// findings -- one ring for the run, two counters for each member.

#include "common/pace/rounds/findings.h"
#include "common/run/lateness.h"
#include <string.h>

void findings_begin(struct findings *self) { memset(self->took_ms, 0, sizeof self->took_ms); }

void findings_hear(struct findings *self, uint32_t place, uint64_t took_ms)
{
    if (self->took_ms[place] == 0) self->took_ms[place] = took_ms ? took_ms : 1;
}

static uint64_t usual_ms(const struct findings *self)
{
    uint32_t sorted[FINDINGS_KEPT], count = 0;
    const uint32_t kept =
        self->known < FINDINGS_KEPT ? (uint32_t)self->known : (uint32_t)FINDINGS_KEPT;
    for (uint32_t i = 0; i < kept; i++) {
        uint32_t at = count++;
        for (; at > 0 && sorted[at - 1] > self->newest[i]; at--) sorted[at] = sorted[at - 1];
        sorted[at] = self->newest[i];
    }
    // mutant: findings: one party makes slow usual
    return sorted[(count - 1) / 4];
}

uint64_t findings_limit_ms(const struct findings *self, uint32_t least_ms, uint32_t half_ms,
                           bool needs_author)
{
    const bool is_known = self->known >= FINDINGS_FIRST;
    uint64_t longest_ms = half_ms;
    if (half_ms == 0 || (needs_author && !is_known)) return UINT64_MAX;
    // mutant: findings: where all are slow they are late
    if (is_known && usual_ms(self) > longest_ms) longest_ms = usual_ms(self);
    longest_ms *= LATENESS_TIMES;
    return longest_ms > least_ms ? longest_ms : least_ms;
}

bool findings_need_author(const struct wire_audit *audit)
{
    return !hash_is_none(&audit->residual_from);
}

uint64_t findings_took_ms(const struct findings *self, const struct round *round, uint32_t place,
                          uint64_t round_ms)
{
    const bool is_missing = round->findings[place].finding == FINDING_PENDING;
    return self->took_ms[place] || !is_missing ? self->took_ms[place] : round_ms;
}

bool findings_suspect(struct findings *self, const struct round *round, uint32_t place,
                      bool is_late, uint8_t most, uint32_t ret_members[PARTIES])
{
    const struct wire_audit *audit = &round->audits[place];
    const uint32_t members[PARTIES] = { round->clients[audit->auditor].member, audit->member };
    bool any = false;
    for (int party = 0; party < PARTIES; party++) {
        uint8_t *suspicion = &self->suspicion[party][members[party]];
        ret_members[party] = NO_MEMBER;
        // mutant: findings: an honest party is suspected for ever
        if (!is_late && *suspicion) --*suspicion;
        if (!is_late || ++*suspicion < most) continue;
        *suspicion = most / 2;
        ret_members[party] = members[party];
        any = true;
    }
    return any;
}

void findings_learn(struct findings *self, const struct round *round)
{
    for (uint32_t i = 0; i < round->audits_count; i++) {
        const uint64_t took_ms = self->took_ms[i];
        if (took_ms == 0 || !findings_need_author(&round->audits[i])) continue;
        self->newest[self->known++ % FINDINGS_KEPT] =
            took_ms < UINT32_MAX ? (uint32_t)took_ms : UINT32_MAX;
    }
}

void findings_forget(struct findings *self, uint32_t member)
{
    for (int party = 0; party < PARTIES; party++) self->suspicion[party][member] = 0;
}
