#include "common/vector/layout.h"
#include "common/base/ensure.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned bytes;
} dtypes[LAYOUT_DTYPES] = {
    [LAYOUT_F32] = { "F32", 4 },
    [LAYOUT_BF16] = { "BF16", 2 },
    [LAYOUT_F16] = { "F16", 2 },
};

const char *layout_dtype_name(enum layout_dtype dtype)
{
    ensure(dtype < LAYOUT_DTYPES);
    return dtypes[dtype].name;
}

unsigned layout_dtype_bytes(enum layout_dtype dtype)
{
    ensure(dtype < LAYOUT_DTYPES);
    return dtypes[dtype].bytes;
}

bool layout_name_valid(const char *name)
{
    size_t count = 0;
    for (; name[count] && count <= LAYOUT_NAME_MAX; count++) {
        const char c = name[count];
        if (c <= ' ' || c > '~' || c == '"' || c == '\'' || c == '\\') return false;
    }
    // In a safetensors header "__metadata__" is not a tensor
    return count >= 1 && count <= LAYOUT_NAME_MAX && strcmp(name, "__metadata__") != 0;
}

void layout_init(struct layout *self, struct layout_tensor *tensors, size_t capacity)
{
    *self = (struct layout){ .tensors = tensors, .capacity = capacity };
}

// Checks the name, then the size, then the room that is left.
static int add(struct layout *self, struct layout_tensor tensor, const char *name, struct why *why)
{
    if (!layout_name_valid(name))
        return why_set(why, FAULT_RANGE,
                       "tensor %zu of the layout: a name is 1 to %d printable "
                       "ASCII characters without space, quote or backslash; not added",
                       self->count, LAYOUT_NAME_MAX);
    if (layout_find(self, name))
        return why_set(why, FAULT_RANGE, "tensor '%s' is in the layout already; not added again",
                       name);
    if (!tensor.rows || !tensor.cols || tensor.rows > LAYOUT_TOTAL_MAX / tensor.cols ||
        tensor.rows * tensor.cols > LAYOUT_TOTAL_MAX - self->total)
        return why_set(why, FAULT_RANGE,
                       "tensor '%s' has %" PRIu64 " rows of %" PRIu64 " after "
                       "%" PRIu64 " elements; a layout has 1 to 2^48, no size is zero; not added",
                       name, tensor.rows, tensor.cols, self->total);
    if (self->count == self->capacity)
        return why_set(why, FAULT_LIMIT,
                       "tensor '%s': the layout has room for %zu tensors and is "
                       "full; not added",
                       name, self->capacity);
    tensor.offset = self->total;
    snprintf(tensor.name, sizeof tensor.name, "%s", name);
    self->tensors[self->count++] = tensor;
    self->total += tensor.rows * tensor.cols;
    return 0;
}

int layout_add_matrix(struct layout *self, const char *name, uint64_t rows, uint64_t cols,
                      enum layout_dtype dtype, struct why *why)
{
    ensure(dtype < LAYOUT_DTYPES);
    const struct layout_tensor tensor = {
        .rows = rows, .cols = cols, .dims = 2, .dtype = (uint8_t)dtype
    };
    return add(self, tensor, name, why);
}

int layout_add_vector(struct layout *self, const char *name, uint64_t count,
                      enum layout_dtype dtype, struct why *why)
{
    ensure(dtype < LAYOUT_DTYPES);
    const struct layout_tensor tensor = {
        .rows = 1, .cols = count, .dims = 1, .dtype = (uint8_t)dtype
    };
    return add(self, tensor, name, why);
}

void layout_copy_as(struct layout *self, const struct layout *from, enum layout_dtype dtype)
{
    ensure(self->capacity >= from->count && dtype < LAYOUT_DTYPES);
    for (size_t i = 0; i < from->count; i++) {
        self->tensors[i] = from->tensors[i];
        self->tensors[i].dtype = (uint8_t)dtype;
    }
    self->count = from->count;
    self->total = from->total;
}

const struct layout_tensor *layout_find(const struct layout *self, const char *name)
{
    for (size_t i = 0; i < self->count; i++) {
        if (strcmp(self->tensors[i].name, name) == 0) return &self->tensors[i];
    }
    return NULL;
}

const struct layout_tensor *layout_at(const struct layout *self, uint64_t element)
{
    if (element >= self->total) return NULL;
    size_t low = 0, high = self->count; // tensors[low].offset <= element < tensors[high].offset
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (self->tensors[middle].offset <= element) low = middle;
        else high = middle;
    }
    return &self->tensors[low];
}

struct interval layout_interval(const struct layout_tensor *tensor)
{
    return (struct interval){ tensor->offset, tensor->offset + tensor->rows * tensor->cols };
}

// By blocks without a branch, which the compiler makes vectors of: a pass over memory and no more.
static uint64_t find_not_finite(const float *values, uint64_t count)
{
    enum { BLOCK = 256 };
    for (uint64_t at = 0; at < count; at += BLOCK) {
        const uint64_t end = count - at < BLOCK ? count : at + BLOCK;
        bool odd = false;
        for (uint64_t i = at; i < end; i++) odd |= isfinite(values[i]) == 0;
        for (uint64_t i = at; odd && i < end; i++)
            if (!isfinite(values[i])) return i;
    }
    return count;
}

int layout_check_finite(const struct layout *self, const float *values, struct why *why)
{
    const uint64_t at = find_not_finite(values, self->total);
    if (at == self->total) return 0;
    const struct layout_tensor *tensor = layout_at(self, at);
    return why_set(why, FAULT_NAN,
                   "tensor '%s': number %" PRIu64
                   " is %s, so nothing can be computed; take a model from before that",
                   tensor->name, at - tensor->offset, isnan(values[at]) ? "NaN" : "infinite");
}

struct hash layout_hash(const struct layout *self)
{
    static const char title[] = "shoal layout 1\n";
    struct hasher hasher;
    hasher_init(&hasher);
    hasher_add(&hasher, title, sizeof title - 1);
    for (size_t i = 0; i < self->count; i++) {
        const struct layout_tensor *tensor = &self->tensors[i];
        hasher_add(&hasher, tensor->name, strlen(tensor->name) + 1);
        hasher_add_number(&hasher, tensor->offset, 8);
        hasher_add_number(&hasher, tensor->rows, 8);
        hasher_add_number(&hasher, tensor->cols, 8);
        hasher_add_number(&hasher, tensor->dims, 8);
        hasher_add_number(&hasher, tensor->dtype, 8);
    }
    return hasher_end(&hasher);
}
