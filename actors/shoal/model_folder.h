#pragma once
// model_folder -- a model on disk as Hugging Face keeps it: config.json and model.safetensors, read
// into one flat vector and made from a seed.

#include "common/crypto/hash.h"
#include "common/learn/model_layout.h"
#include "common/vector/layout.h"

struct model_folder {
    struct model_shape shape;
    uint64_t floats;
    float *params;                  // 64-byte aligned
    struct hash digest;             // digest_of the parameters
    struct layout layout;
    struct layout_tensor *tensors;
};

// Layout and room for the parameters of a shape, which nobody has filled yet: params and digest
// mean nothing. After success model_folder_free.
int model_folder_prepare(const struct model_shape *shape, struct why *why,
                         struct model_folder *ret_model);

// FAULT_NOT_FOUND, FAULT_FORMAT ... name the file. After success model_folder_free.
int model_folder_load(const char *dir, struct why *why, struct model_folder *ret_model);
void model_folder_free(struct model_folder *self);

// Reads a config.json.
int model_folder_read_shape(const char *path, struct why *why, struct model_shape *ret_shape);

struct model_genesis {
    struct model_shape shape;
    uint64_t seed;
    const char *tokenizer_dir;      // Its tokenizer files are copied; NULL: for a vocabulary of 256 the
                                    // byte tokenizer is written, for any other none
};

// Makes the new folder `dir`, durably, whole or not at all: FAULT_DENIED if the name is taken.
int model_folder_create(const char *dir, const struct model_genesis *genesis, struct why *why,
                        struct hash *ret_digest);
