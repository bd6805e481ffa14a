#pragma once
// hf_folder -- the weights of a model folder as Hugging Face's tools keep them: read without trust,
// written so that they can be read.
//
//      model.safetensors                   or, beyond a size, several files and their index:
//      model-00001-of-00002.safetensors
//      model-00002-of-00002.safetensors
//      model.safetensors.index.json        {"metadata": {...}, "weight_map": {tensor: file, ...}}
//
// Any thread.

#include "common/checkpoint/safetensors.h"
#include "common/vector/layout.h"

#define HF_FOLDER_WEIGHTS "model.safetensors"
#define HF_FOLDER_INDEX   "model.safetensors.index.json"

// The small files that go where a model goes, ended by NULL: its tokenizer, in all the forms that
// there are, and how it generates.
extern const char *const hf_folder_beside[];

// model.safetensors or else what the index names, into layout->total floats: F32 as it is, BF16 and
// F16 widened. The files must hold exactly the tensors of the layout (safetensors_match), but may
// also hold "*.rotary_emb.inv_freq", tables that old versions of transformers saved, and, if the
// layout has no head of its own, an "lm_head.weight" that is the embedding, number for number: if
// it is not, the folder contradicts itself and is refused (FAULT_FORMAT), as versions of
// transformers disagree on what it means. Links are followed (their cache is made of links). A file
// of F32 that notes its digest, as our checkpoints do, must have it (FAULT_DIGEST); of others
// nothing but the format can be checked. After a fault `params` must not be used.
int hf_folder_load(const char *dir, const struct layout *layout, float *params, struct why *why);

// Writes the whole vector into an open directory, in the layout's dtypes: one file, or as many as
// it takes for none to hold more than max_shard_bytes of numbers (a larger tensor has its own),
// filled in the layout's order as transformers does, and the index. Files are durable on success
// (the directory is the caller's to sync). FAULT_RANGE, naming the tensor, for a finite number that
// is too large for BF16 or F16, and for more than SAFETENSORS_FILES_MAX files; nothing is written
// then.
int hf_folder_write_weights(int dir, const struct layout *layout, const float *values,
                            const struct safetensors_note *notes, size_t note_count,
                            uint64_t max_shard_bytes, struct why *why, size_t *ret_files);
