#pragma once
// model_folder -- a model on disk as Hugging Face keeps it: config.json and weights (hf_folder.h),
// read into one flat vector, made from a seed, and written again for other tools.

#include "common/base/hash.h"
#include "common/checkpoint/safetensors.h"
#include "common/model/model_layout.h"
#include "common/vector/layout.h"

#define MODEL_FOLDER_SHARD_BYTES ((uint64_t)5000000000) // As transformers long cut its files

struct model_folder {
    struct model_shape shape;
    char *config; // The text of config.json
    uint64_t floats;
    float *params;      // 64-byte aligned; NULL if only prepared
    struct hash digest; // digest_of the parameters
    struct layout layout;
    struct layout_tensor *tensors;
};

// Everything but the weights, for which the caller has room: params is NULL, and digest means
// nothing. After success model_folder_free.
int model_folder_prepare(const char *dir, struct why *why, struct model_folder *ret_model);

// FAULT_NOT_FOUND, FAULT_FORMAT ... name the file. After success model_folder_free.
int model_folder_load(const char *dir, struct why *why, struct model_folder *ret_model);
void model_folder_free(struct model_folder *self);

// Reads a config.json. _config also returns its text, which the caller frees.
int model_folder_read_shape(const char *path, struct why *why, struct model_shape *ret_shape);
int model_folder_read_config(const char *path, struct why *why, struct model_shape *ret_shape,
                             char **ret_text);

struct model_genesis {
    struct model_shape shape;
    const char *config; // The text it was read from, all of which is kept; or NULL
    uint64_t seed;
    const char *tokenizer_dir; // Its tokenizer files are copied; NULL: for a vocabulary of 256
                               // the byte tokenizer is written, for any other none
};

// Makes the new folder `dir`, durably, whole or not at all: FAULT_DENIED if the name is taken.
int model_folder_create(const char *dir, const struct model_genesis *genesis, struct why *why,
                        struct hash *ret_digest);

struct model_export {
    enum layout_dtype dtype;  // Of every tensor, and the torch_dtype of config.json
    uint64_t max_shard_bytes; // At least 1; see hf_folder_write_weights
    const char *from;         // The folder whose tokenizer goes along
    // Where the numbers come from; zero: model->params
    struct safetensors_source source;
};

// Likewise. FAULT_RANGE, naming the tensor, for a number that the dtype cannot hold.
int model_folder_export(const char *dir, const struct model_folder *model,
                        const struct model_export *how, struct why *why, size_t *ret_files);
