#pragma once
// linking -- which trainers have links with one another, before a window names them.
//
//     a trainer's links are known ─▶ LINKING: the list ─▶ each links with all of it (handshake only)
//                                                         ─▶ STANDS: which of its links stand
//     a joiner's links with all of the group stand ─▶ the epoch may end for it
//     else: "trainer-5 waits to join: trainer-2 does not reach tcp://192.0.2.7:7001"
//     too early: "trainer-5 waits to join: an epoch lasts at least 20 of its barriers, 40 s more"
//
// So a trainer that a member cannot reach, behind a firewall or at a wrong address, breaks no window:
// none names it. The same rule brings back a member that was left out of the group because a link of
// its broke: a learner that has waited in vain over a link says that it does not stand, until another
// connection has taken its place.
//
// When a run begins there is no group yet. Then all wait for all, as long as Warmup lasts. When its time
// is up, those begin that are linked with one another.
//
// A link stands if both ends say so of the newest list. News may be lost: a STANDS about another list is
// answered with the newest, by mail.
//
// Pure; part of windows.c.

#include "common/pace/windows/windows.h"

// A trainer has said where it stands: its links, and which of them stand. Then linking.words says who waits
// to join: because links of its do not come to stand, or because the epoch is too young to end for it.
void linking_hear(struct windows *self, const struct turn *turn, const struct msg *in,
                  uint32_t member);

// For how long no joiner may end the epoch yet (rule 7 of windows.h).
uint64_t linking_wait_ms(const struct windows *self, const struct turn *turn);

// Whether this trainer's links with all that are left of the newest group stand.
bool linking_has_joined(const struct windows *self, const struct run *run, uint32_t member);

// Whether its links with all of these stand.
bool linking_stands(const struct windows *self, const struct wire_place *member,
                    const struct wire_place *group, uint32_t count);

// Keeps of `group` those whose links stand, each with all others: first goes a trainer that is not in
// the newest group, then the one that lacks most links, then the later one. If fewer than min_clients
// are left so, or a parameter server is missing, the newest group has no precedence. A server too many goes as well
// (places.h). Returns how many are left; at least one, if there is any.
uint32_t linking_choose(const struct windows *self, const struct turn *turn,
                        struct wire_place *group, uint32_t count);

// Whether a trainer that is not of the newest group is linked too little to enter with the epoch that
// begins, and the others are enough without it.
bool linking_stays_pending(const struct windows *self, const struct turn *turn, uint32_t member,
                           const struct wire_place *group, uint32_t count);

// Why an epoch cannot begin with the trainers in `group`, as a sentence; NULL: it can. `late`: its time
// is up, and only as many are waited for as it needs.
const char *linking_lacks(struct windows *self, const struct turn *turn,
                          const struct wire_place *group, uint32_t count, bool late);
