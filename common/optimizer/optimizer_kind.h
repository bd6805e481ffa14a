#pragma once
// optimizer_kind -- what an optimizer is to optimizer.c: a row of its table. For the files of
// optimizers alone.
//
// Each optimizer has a struct that begins with a struct optimizer. optimizer.c saves, loads,
// forgets and digests them all in the same way, by walking their items.

#include "common/optimizer/optimizer.h"

struct optimizer {
    const struct optimizer_kind *kind;
    struct optimizer_place place;
    struct interval part;               // Of place.at: what a step moves
    compute_t *compute;                 // From optimizer_begin on
    float *copies[OPTIMIZER_ITEMS_MAX]; // On the host, of items that lie on a GPU
};

struct optimizer_kind {
    const char *name;
    bool steps_parts; // See optimizer_own
    // Allocates its struct, with struct optimizer zero. `close` undoes it, also when half done.
    int (*open)(const struct optimizer_place *place, const struct optimizer_settings *settings,
                struct why *why, optimizer_t **ret_optimizer);
    void (*close)(optimizer_t *self);
    void (*ask)(const optimizer_t *self, struct compute_config *config);
    int (*begin)(optimizer_t *self, struct why *why);
    size_t (*items)(optimizer_t *self, struct state_item *ret_items);
    // Called after its items got other values, zero or loaded. NULL: it keeps nothing beside them.
    void (*changed)(optimizer_t *self, bool zero);
    int (*step)(optimizer_t *self, float rate, struct why *why);
};
