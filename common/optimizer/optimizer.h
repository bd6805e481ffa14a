#pragma once
// optimizer -- turns a gradient into a step of the parameters, and keeps the state for that. It
// stands above a device (compute.h), which holds its vectors and does not know its name.
//
//     optimizer_new     settings ─▶ what it will keep
//     optimizer_ask       ─▶ compute_config: the number of its vectors of state
//     compute_new
//     optimizer_begin   from here on it has its vectors, all zero
//     optimizer_step    gradient of the device ─▶ parameters of the device     (again and again)
//     optimizer_items   its state: the list that sizing, saving, loading and digests walk
//
// Its state is a list of items (struct state_item), each with a name, one of four tags (tags.h) and
// an interval of the vector:
//
//     adamw     adamw-m, adamw-v    reshard      they go with their parameters
//               adamw-steps         replicate    one number, the same for all
//     adam      adam-m, adam-v, adam-steps       as AdamW
//     sgd       sgd-v               reshard      with momentum alone
//               sgd-steps           replicate
//     distro    distro-residual     drop         it belongs to the member that made it
//
// One more optimizer is a file of its own, optimizer_*.c or like it, and a row of the table in
// optimizer.c; on a GPU it needs a kernel, or refuses in its `begin`. What a run does with DisTrO
// beside optimizer_step (results that others apply) is result.h.
//
// An optimizer works on an interval of the vector: [0, N) for a whole replica, or the share that
// its owner holds. DisTrO takes only the whole. The interval begins at a leaf of the digest.
//
// One thread at a time. Borrowed things are borrowed for the optimizer's life.

#include "common/base/hash.h"
#include "common/compute/compute.h"
#include "common/vector/layout.h"
#include "common/vector/state_cut.h"
#include "common/vector/tags.h"

// The settings of all optimizers, as a run's configuration has them. Each reads its own and refuses
// wrong ones.
struct optimizer_settings {
    double weight_decay;      // 0..1000
    double beta1, beta2, eps; // adamw.h
    double momentum;          // sgd.h
    bool nesterov;
    float decay;          // distro.h: of the residual
    bool keeps_former;    // DisTrO: the residual before the adopted one is kept for auditors
    uint32_t chunk, topk; // payload_form_of_model
    bool one_bit;
};

struct optimizer_place {
    const struct model_shape *shape; // Borrowed
    const struct layout *layout;     // Of the shape's tensors; borrowed
    struct interval at;              // The floats that are its own
    pool_t *pool;                    // Borrowed; NULL: no threads
};

struct optimizer_kind;
extern const struct optimizer_kind optimizer_adamw, optimizer_adam, optimizer_sgd, optimizer_distro;

// The optimizer of that name, as a state.toml writes it ("AdamW", "Adam", "SGD", "Distro"); NULL if there is none.
const struct optimizer_kind *optimizer_named(const char *name);
bool optimizer_is_item(const char *name); // Whether an item of state is one of some optimizer

typedef struct optimizer optimizer_t;

// FAULT_RANGE with the setting and its range, FAULT_UNSUPPORTED for a share that cannot be,
// FAULT_MEMORY.
int optimizer_new(const struct optimizer_kind *kind, const struct optimizer_place *place,
                  const struct optimizer_settings *settings, struct why *why,
                  optimizer_t **ret_optimizer);
void optimizer_destroy(optimizer_t **self); // NULL is allowed. The device goes first

// Fills in what the device has to hold for it. A replica that does not train (config->trains) holds
// vectors only if members hold them alike: it keeps AdamW's moments, and no residual.
void optimizer_ask(const optimizer_t *self, struct compute_config *config);
// Host bytes beyond those of compute_memory: copies of state that lies on a GPU.
uint64_t optimizer_memory(optimizer_t *self, const struct compute_device *device);

// `compute` was made from a config that optimizer_ask filled in, and is borrowed. FAULT_MEMORY.
int optimizer_begin(optimizer_t *self, compute_t *compute, struct why *why);

// Sets all its state to zero, as after optimizer_begin. For parameters that were replaced.
int optimizer_forget(optimizer_t *self, struct why *why);

// From now on optimizer_step moves these parameters alone, a part of its interval that begins at a leaf, and may
// be empty. It reads the gradient of the part, and leaves the state of the others as it is: that is then of an
// earlier step. At first: all of its interval. On a CPU, and not with DisTrO (ensured).
void optimizer_own(optimizer_t *self, struct interval part);

// Moves the parameters of its part by the device's gradient, at the rate, which is finite and
// >= 0 (ensured). FAULT_NAN for a gradient that the optimizer cannot use; then nothing has changed.
int optimizer_step(optimizer_t *self, float rate, struct why *why);

// ---- state by tag

enum { OPTIMIZER_ITEMS_MAX = 4 };

struct state_item {
    const char *name; // In a checkpoint
    enum tag tag;
    struct interval at; // Of the vector; of `values`, how many: [0, n)
    uint32_t vector;    // Where its floats lie at the device (compute.h)
    void *values;       // If not NULL, the item lies here and is not floats
    uint32_t element_bytes;
    float least, most; // Of floats: no optimizer leaves others behind
};

// The items as they are until the next step. Returns their number.
size_t optimizer_items(optimizer_t *self, struct state_item ret_items[OPTIMIZER_ITEMS_MAX]);

// Registers the items, and gives their values on the host: to be saved, or to be overwritten and
// pushed. They are good until the next call. OPTIMIZER_SHARED gives NULL for items with the tag
// drop: they belong to one member and not into a checkpoint of all. FAULT_MEMORY.
enum optimizer_scope { OPTIMIZER_OWN, OPTIMIZER_SHARED };
int optimizer_pull(optimizer_t *self, enum optimizer_scope scope, struct tags *tags,
                   struct why *why, void *ret_values[OPTIMIZER_ITEMS_MAX]);

// FAULT_NAN: the floats of this item have a value that no optimizer leaves behind.
int optimizer_check_item(const struct state_item *item, const float *floats, struct why *why);

// Takes the values that optimizer_pull gave and the caller has overwritten. FAULT_NAN for a value
// that no optimizer leaves behind; then all state is zero.
int optimizer_push(optimizer_t *self, enum optimizer_scope scope, struct why *why);

// ---- what members hold alike: the items without the tag drop, in their order

// Adds them to a cut that has the parameters (state_cut.h).
void optimizer_cut(optimizer_t *self, struct state_cut *cut);

// Their leaves, one item behind the other: state_cut_leaves of what optimizer_cut adds.
int optimizer_leaves(optimizer_t *self, struct why *why, struct hash *ret_leaves);

// The digest of all that members hold alike: the root over the digest of the parameters, which the
// caller knows, and those of the items. With DisTrO it is that of the parameters.
int optimizer_digest(optimizer_t *self, const struct hash *parameters, struct why *why,
                     struct hash *ret_digest);
