// Both directions are one walk: optimizer_pull gives tags and room for the values, a checkpoint
// saves or fills them, and when it is loaded optimizer_push takes them in.
#include "common/learner/state.h"
#include "common/base/ensure.h"

int state_save(optimizer_t *optimizer, enum optimizer_scope scope, struct why *why,
               struct state *ret_state)
{
    void *values[OPTIMIZER_ITEMS_MAX];
    tags_init(&ret_state->tags, ret_state->items, OPTIMIZER_ITEMS_MAX);
    const int rc = optimizer_pull(optimizer, scope, &ret_state->tags, why, values);
    for (size_t i = 0; i < ret_state->tags.count && rc == 0; i++) ret_state->values[i] = values[i];
    return rc;
}

int state_load(optimizer_t *optimizer, enum optimizer_scope scope, const checkpoint_t *checkpoint,
               struct why *why)
{
    struct tags_item tagged[OPTIMIZER_ITEMS_MAX];
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    struct tags tags;
    void *values[OPTIMIZER_ITEMS_MAX];
    tags_init(&tags, tagged, OPTIMIZER_ITEMS_MAX);
    const size_t count = optimizer_items(optimizer, items);
    int rc = optimizer_pull(optimizer, scope, &tags, why, values);
    for (size_t i = 0; i < count && rc == 0; i++)
        if (values[i])
            rc = checkpoint_load_state(checkpoint, &tagged[i], items[i].at, values[i], why);
    if (rc == 0) return optimizer_push(optimizer, scope, why);
    optimizer_forget(optimizer, NULL); // The first fault is the one to report
    return rc;
}

int state_take(optimizer_t *optimizer, const struct state_cut *cut, const struct state_copy *copy,
               struct why *why)
{
    struct tags_item tagged[OPTIMIZER_ITEMS_MAX];
    struct tags tags;
    void *values[OPTIMIZER_ITEMS_MAX];
    uint32_t item = 1;
    tags_init(&tags, tagged, OPTIMIZER_ITEMS_MAX);
    int rc = optimizer_pull(optimizer, OPTIMIZER_SHARED, &tags, why, values);
    for (size_t i = 0; i < tags.count && rc == 0; i++) {
        if (!values[i]) continue;
        ensure(item < cut->count);
        rc = state_copy_get(copy, state_cut_place(cut, item), values[i], cut->bytes[item], why);
        item++;
    }
    if (rc == 0) return optimizer_push(optimizer, OPTIMIZER_SHARED, why);
    optimizer_forget(optimizer, NULL); // The first fault is the one to report
    return rc;
}

void state_point(struct state *self, const struct state_cut *cut, const uint8_t *copy)
{
    uint32_t item = 1;
    for (size_t i = 0; i < self->tags.count; i++) {
        if (!self->values[i]) continue;
        ensure(item < cut->count);
        self->values[i] = copy + state_cut_place(cut, item++);
    }
}
