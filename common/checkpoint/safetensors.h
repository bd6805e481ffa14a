#pragma once
// safetensors -- the file format of models: `model.safetensors`, or several files under an index.
// It is read without trust and written so that other tools can read it.
//
//      | 8 bytes: length n, little-endian | n bytes: JSON header | data, tensor after tensor |
//      header: {"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 3],
//               "data_offsets": [0, 24]}, ...}                  offsets count from the data on
//
// An open file has been checked completely. Its header is at most 100 MB and within the file,
// nested at most 3 levels, and names at most 65536 tensors of F32, BF16 or F16, none twice; every
// size is its shape times its dtype; the tensors tile the data without hole or overlap to the last
// byte. Every refusal names the place, the value and the allowed values. The index is checked too:
// file names are single path components, and every tensor stands in the file that the index names
// and in no other.
//
// Streamed: a tensor is read and written block by block, without a second copy of the model and
// without mmap (a file that shrinks is FAULT_CORRUPT, not SIGBUS).
//
// Format: the description in the safetensors project's README (huggingface/safetensors, "Format").
// One thread per opened set.

#include "common/base/dirfile.h"
#include "common/base/fault.h"
#include "common/vector/layout.h"

enum {
    SAFETENSORS_HEADER_MAX = 100000000, // Bytes; the reference implementation's limit
    SAFETENSORS_INDEX_MAX = 32 << 20,   // Bytes of an index
    SAFETENSORS_TENSORS_MAX = 65536,    // Of all files together
    SAFETENSORS_FILES_MAX = 256,        // Under one index
    SAFETENSORS_DIMS_MAX = 8,
};

typedef struct safetensors safetensors_t;

struct safetensors_tensor {
    char name[LAYOUT_NAME_MAX + 1];
    uint8_t dtype; // enum layout_dtype
    uint8_t dims;
    uint16_t file; // Index of its file among those of an index file; else 0
    uint64_t shape[SAFETENSORS_DIMS_MAX];
    uint64_t begin, end; // Bytes, counted from the beginning of the file's data
};

// ---- Reading ----

// Opens one file in an open directory or, if the name ends in ".index.json", all files that the
// index names. `follow`: symbolic links are allowed.
int safetensors_open_at(int dir, const char *name, bool follow, struct why *why,
                        safetensors_t **ret_set);
void safetensors_close(safetensors_t **self);

size_t safetensors_count(const safetensors_t *self);

// In this order: tensor i in ascending order of names; a tensor by name, or NULL; a text of
// __metadata__ by key, or NULL.
const struct safetensors_tensor *safetensors_tensor(const safetensors_t *self, size_t i);
const struct safetensors_tensor *safetensors_find(const safetensors_t *self, const char *name);
const char *safetensors_note(const safetensors_t *self, const char *key);

// Takes a tensor that the model does not need out of the set, as if it were in no file. Pointers to
// tensors of the set become invalid.
void safetensors_forget(safetensors_t *self, const struct safetensors_tensor *tensor);

// `count` elements of a tensor from its element `first` on, widened; they must be within it
// (ensured). `tensor` may be a copy.
int safetensors_read(const safetensors_t *self, const struct safetensors_tensor *tensor,
                     uint64_t first, uint64_t count, float *values, struct why *why);

// FAULT_FORMAT, naming the tensor, unless the set holds exactly the tensors of the layout in
// exactly its shapes. Their dtypes may differ from the layout's: F32 is taken as it is, BF16 and
// F16 are widened.
int safetensors_match(const safetensors_t *self, const struct layout *layout, struct why *why);

// Reads the elements `want` of the vector into `values` (interval_length(want) floats), reading
// only the bytes that they occupy. Matches first, and nothing is written if the set does not match;
// after a fault in reading, `values` holds part of the model and must not be used.
int safetensors_load(const safetensors_t *self, const struct layout *layout, struct interval want,
                     float *values, struct why *why);

// ---- Writing ----

struct safetensors_note {
    const char *key, *value;
}; // UTF-8

enum { SAFETENSORS_BLOCK_FLOATS = 1 << 22 }; // Written at a time

// Where the numbers of a vector come from. `read` points *ret_floats to the `count` floats from `first`
// on, at most SAFETENSORS_BLOCK_FLOATS: it has written them to `room`, or they lie elsewhere until the
// next call. It is asked in any order, and perhaps twice.
struct safetensors_source {
    int (*read)(void *arg, uint64_t first, size_t count, float *room, struct why *why,
                const float **ret_floats);
    void *arg;
};

// A vector in memory, which is borrowed.
struct safetensors_source safetensors_from_memory(const float *values);

// Creates `name` in `dir`, which must not exist, with every tensor of the layout in its dtype: F32
// has the exact bits of the source; BF16 and F16 are rounded to nearest, ties to even. The metadata
// is format = pt and the notes. The file is durable on success (its directory is the caller's to
// sync); equal input gives equal bytes. On failure an unfinished file may be left to the caller.
// The layout may be some consecutive tensors of a larger one; the source has the whole vector.
int safetensors_write_at(int dir, const char *name, const struct layout *layout,
                         const struct safetensors_source *source,
                         const struct safetensors_note *notes, size_t note_count, struct why *why,
                         struct hash *ret_hash, uint64_t *ret_bytes);
