#pragma once
// health -- whom a round waited for, and who missed it. Part of rounds.c, and of the coordinator's core:
// pure.
//
//     a vote that comes late ─▶ health_add_wait ─┐
//     the round is over ──────▶ health_count_waits ─▶ health_say_missed ─▶ health_judge: who is dropped

#include "common/pace/rounds/rounds.h"

// A member let the round wait: what it was waited for came so long after the round, or its phase, began.
void health_add_wait(struct rounds *self, const struct turn *turn, uint32_t member,
                     uint64_t took_ms);

// Before the commit: puts down the waits of this round. `is_decided`: no vote was waited for.
void health_count_waits(struct rounds *self, const struct turn *turn, bool is_decided);

// What the round lacked; if nothing, whom the rounds wait for (missed.h).
void health_say_missed(struct rounds *self, const struct turn *turn);

// Drops each client that missed too many rounds, even if it still sends pings: unhealthy_rounds in a
// row, or more than one in twenty for long. When it returns, the first round that it misses is too
// much. An auditor took part if it sent its finding. A client that was dealt no samples is not counted.
void health_judge(struct rounds *self, const struct turn *turn);

// From when on, after the opening, a finding of the open round is late (findings.h).
uint64_t health_findings_limit_ms(const struct rounds *self, const struct turn *turn,
                                  bool needs_author);
