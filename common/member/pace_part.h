#pragma once
// pace_part -- the part of a role that is the run's pace: how steps come to be committed.
//
//     ─▶ pace_part ─▶ member_paces[] ─▶ rounds, or another folder of common/pace
//
// A pace is known to the roles by the functions below and by nothing else. What it does in each
// role, it decides itself: by the member's role, and by whether the turn has blobs and a replica.
// It moves the replica from one committed step to the next (replica.h, "for the pace"), and sets
// the member's `round`. All paces are in one table, which common/pace/paces.def lists. CONFIG tells
// which one a run has; a run keeps it.
//
// Part of a core: pure. A struct pace_part is a value without pointers to the outside, most of it
// never touched: use zeroed memory.

#include "common/member/parts.h"

struct member_pace {
    const char *name;
    uint16_t config; // The kind of its part of CONFIG; a run has the pace whose part it has
    // As a part of a role, behind the replica and before the blobs. `self` is given zeroed, is
    // aligned to 16 bytes and has PACE_PART_BYTES bytes: a pace asserts that its state fits.
    void (*hear)(void *self, const struct member_turn *turn);
    void (*look)(void *self, const struct member_turn *turn);
    // For the checkpoint of a step that the run pins: epoch, step, and the position in the dataset
    // (cursor, returned). Of the newest such step; false: of none. The list is borrowed until the
    // pace hears the next message. (optional: only the ends of epochs are saved)
    bool (*position)(const void *self, const struct member *member, struct wire_save *ret_save);
};

extern const struct member_pace *const member_paces[]; // Ends with NULL; member_paces.c

enum { PACE_PART_BYTES = 64 << 20 };

struct pace_part {
    uint32_t chosen; // 1 + the index in member_paces; 0: CONFIG has not arrived yet
    _Alignas(16) uint8_t state[PACE_PART_BYTES]; // The pace's own
};

// As a part of a role.
void pace_part_hear(void *self, const struct member_turn *turn);
void pace_part_look(void *self, const struct member_turn *turn);

// See member_pace.position.
bool pace_part_position(const struct pace_part *self, const struct member *member,
                        struct wire_save *ret_save);
