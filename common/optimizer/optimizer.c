// The table of optimizers, and the walks over their state. Nothing below the table names an
// optimizer: an item says where it lies, how long it is and which values it may have, and its tag
// says what is done with it.
#include "common/optimizer/optimizer.h"
#include "common/base/ensure.h"
#include "common/crypto/merkle.h"
#include "common/optimizer/optimizer_kind.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct optimizer_kind *const kinds[] = { &optimizer_adamw, &optimizer_adam,
                                                      &optimizer_sgd, &optimizer_distro };

const struct optimizer_kind *optimizer_named(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i]->name, name) == 0) return kinds[i];
    return NULL;
}

// adamw-m is one of AdamW.
bool optimizer_is_item(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t length = strlen(kinds[i]->name);
        if (strncasecmp(kinds[i]->name, name, length) == 0 && name[length] == '-') return true;
    }
    return false;
}

// ---- its life

int optimizer_new(const struct optimizer_kind *kind, const struct optimizer_place *place,
                  const struct optimizer_settings *settings, struct why *why,
                  optimizer_t **ret_optimizer)
{
    ensure(!interval_empty(place->at) && place->at.end <= place->layout->total);
    ensure(place->at.begin % DIGEST_LEAF_FLOATS == 0);
    optimizer_t *self = NULL;
    const int rc = kind->open(place, settings, why, &self);
    if (rc < 0) return rc;
    self->kind = kind;
    self->place = *place;
    self->part = place->at;
    *ret_optimizer = self;
    return 0;
}

void optimizer_destroy(optimizer_t **self)
{
    if (!*self) return;
    for (size_t i = 0; i < OPTIMIZER_ITEMS_MAX; i++) free((*self)->copies[i]);
    (*self)->kind->close(*self);
    *self = NULL;
}

void optimizer_ask(const optimizer_t *self, struct compute_config *config)
{
    config->state = self->place.at;
    self->kind->ask(self, config);
}

static size_t item_bytes(const struct state_item *item)
{
    return interval_length(item->at) * item->element_bytes;
}

uint64_t optimizer_memory(optimizer_t *self, const struct compute_device *device)
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t count = self->kind->items(self, items);
    uint64_t bytes = 0;
    for (size_t i = 0; i < count && device->kind != COMPUTE_CPU; i++)
        if (!items[i].values) bytes += item_bytes(&items[i]);
    return bytes;
}

int optimizer_begin(optimizer_t *self, compute_t *compute, struct why *why)
{
    self->compute = compute;
    return self->kind->begin(self, why);
}

void optimizer_own(optimizer_t *self, struct interval part)
{
    const struct interval at = self->place.at;
    ensure(self->kind->steps_parts && !compute_far(self->compute));
    ensure(at.begin <= part.begin && part.begin <= part.end && part.end <= at.end);
    ensure(part.begin % DIGEST_LEAF_FLOATS == 0 || interval_empty(part));
    self->part = part;
}

int optimizer_step(optimizer_t *self, float rate, struct why *why)
{
    ensure(isfinite(rate) && rate >= 0.0f && compute_config(self->compute)->trains);
    return self->kind->step(self, rate, why);
}

// ---- state by tag

size_t optimizer_items(optimizer_t *self, struct state_item ret_items[OPTIMIZER_ITEMS_MAX])
{
    return self->kind->items(self, ret_items);
}

int optimizer_forget(optimizer_t *self, struct why *why)
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t count = optimizer_items(self, items);
    const bool holds = compute_config(self->compute)->vectors > 0;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        if (items[i].values) memset(items[i].values, 0, item_bytes(&items[i]));
        else if (holds) rc = compute_put(self->compute, items[i].vector, NULL, why);
    if (self->kind->changed) self->kind->changed(self, true);
    return rc;
}

// Room on the host for item `number`, kept for the next call.
static int copy_of(optimizer_t *self, size_t number, const struct state_item *item, struct why *why,
                   float **ret_copy)
{
    if (!self->copies[number]) self->copies[number] = malloc(item_bytes(item));
    *ret_copy = self->copies[number];
    if (*ret_copy) return 0;
    return why_set(why, FAULT_MEMORY, "a copy of state item '%s', %zu bytes", item->name,
                   item_bytes(item));
}

static int pull(optimizer_t *self, size_t number, const struct state_item *item, struct why *why,
                void **ret_values)
{
    *ret_values = item->values ? item->values : compute_at(self->compute, item->vector);
    if (*ret_values) return 0;
    float *copy;
    int rc = copy_of(self, number, item, why, &copy);
    if (rc == 0) rc = compute_get(self->compute, item->vector, why, copy);
    *ret_values = copy;
    return rc;
}

// A share registers the length of the whole item: a checkpoint is put together from the shares.
static uint64_t elements_of(const optimizer_t *self, const struct state_item *item)
{
    return item->tag == TAG_RESHARD ? self->place.layout->total : interval_length(item->at);
}

static bool is_shared(const struct state_item *item) { return item->tag != TAG_DROP; }

static bool in_scope(const struct state_item *item, enum optimizer_scope scope)
{
    return scope == OPTIMIZER_OWN || is_shared(item);
}

int optimizer_pull(optimizer_t *self, enum optimizer_scope scope, struct tags *tags,
                   struct why *why, void *ret_values[OPTIMIZER_ITEMS_MAX])
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t count = optimizer_items(self, items);
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        ret_values[i] = NULL;
        if (in_scope(&items[i], scope)) rc = pull(self, i, &items[i], why, &ret_values[i]);
        if (rc == 0)
            rc = tags_add(tags, items[i].name, items[i].tag, elements_of(self, &items[i]),
                          items[i].element_bytes, why);
    }
    return rc;
}

int optimizer_check_item(const struct state_item *item, const float *floats, struct why *why)
{
    for (uint64_t i = 0; i < interval_length(item->at); i++)
        if (!(floats[i] >= item->least && floats[i] <= item->most))
            return why_set(why, FAULT_NAN,
                           "state item '%s': float %" PRIu64 " is %g, allowed %g..%g; not taken",
                           item->name, item->at.begin + i, (double)floats[i], (double)item->least,
                           (double)item->most);
    return 0;
}

int optimizer_push(optimizer_t *self, enum optimizer_scope scope, struct why *why)
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t count = optimizer_items(self, items);
    const float *floats[OPTIMIZER_ITEMS_MAX] = { NULL };
    bool any = false;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (!in_scope(&items[i], scope)) continue;
        any = true;
        if (items[i].values) continue;
        floats[i] = compute_at(self->compute, items[i].vector);
        if (!floats[i]) floats[i] = self->copies[i];
        ensure(floats[i]);
        rc = optimizer_check_item(&items[i], floats[i], why);
    }
    for (size_t i = 0; i < count && rc == 0; i++)
        if (floats[i]) rc = compute_put(self->compute, items[i].vector, floats[i], why);
    if (rc < 0) optimizer_forget(self, NULL); // The first fault is the one to report
    else if (any && self->kind->changed) self->kind->changed(self, false);
    return rc;
}

// ---- what members hold alike

void optimizer_cut(optimizer_t *self, struct state_cut *cut)
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t count = optimizer_items(self, items);
    for (size_t i = 0; i < count; i++)
        if (is_shared(&items[i])) state_cut_add(cut, item_bytes(&items[i]));
}

int optimizer_leaves(optimizer_t *self, struct why *why, struct hash *ret_leaves)
{
    struct state_item items[OPTIMIZER_ITEMS_MAX];
    const size_t count = optimizer_items(self, items);
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (!is_shared(&items[i])) continue;
        if (items[i].values) state_item_fill(items[i].values, item_bytes(&items[i]), ret_leaves);
        else rc = compute_leaves(self->compute, items[i].vector, why, ret_leaves);
        ret_leaves += state_item_leaves(item_bytes(&items[i]));
    }
    return rc;
}

int optimizer_digest(optimizer_t *self, const struct hash *parameters, struct why *why,
                     struct hash *ret_digest)
{
    struct state_cut cut = { 0 };
    struct hash roots[1 + STATE_ITEMS_MAX] = { *parameters };
    optimizer_cut(self, &cut);
    const uint64_t count = state_cut_leaves(&cut);
    struct hash *leaves = malloc(count * sizeof *leaves + 1);
    if (!leaves) return why_set(why, FAULT_MEMORY, "%" PRIu64 " leaves of the state", count);
    const int rc = optimizer_leaves(self, why, leaves);
    const struct hash *at = leaves;
    for (uint32_t i = 0; i < cut.count && rc == 0; i++) {
        roots[1 + i] = merkle_root(at, state_item_leaves(cut.bytes[i]));
        at += state_item_leaves(cut.bytes[i]);
    }
    if (rc == 0) *ret_digest = merkle_root(roots, 1 + cut.count);
    free(leaves);
    return rc;
}
