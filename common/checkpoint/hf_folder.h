#pragma once
// hf_folder -- the weights of a model folder in the format of Hugging Face's tools: read without
// trust, written so that those tools can read them.
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

// The small files that belong to a model, ended by NULL: its tokenizer, in every known form, and
// generation_config.json.
extern const char *const hf_folder_beside[];

// Reads model.safetensors, or else the files that the index names, into layout->total floats: F32
// as it is, BF16 and F16 widened. The files must have exactly the tensors of the layout
// (safetensors_match). Two exceptions: tables "*.rotary_emb.inv_freq", which old versions of
// transformers saved, are ignored; and if the layout has no head of its own there may be an
// "lm_head.weight" that equals the embedding, number for number. If it differs, the folder is
// refused (FAULT_FORMAT), because versions of transformers disagree on what it means. Links are
// followed (Hugging Face's cache is made of links). Files of F32 that note a digest, as our
// checkpoints do, must have it (FAULT_DIGEST); of other files only the format can be checked. A number
// that is NaN or infinite is FAULT_NAN, with its tensor. After a fault `params` must not be used.
int hf_folder_load(const char *dir, const struct layout *layout, float *params, struct why *why);

// Writes the whole vector into an open directory, in the layout's dtypes: one file, or several
// files and an index, so that no file has more than max_shard_bytes of numbers (a larger tensor has
// its own file). Files are filled in the layout's order, as transformers does. On success the files
// are durable; the caller syncs the directory. FAULT_RANGE, naming the tensor, for a finite number
// that is too large for BF16 or F16, and for more than SAFETENSORS_FILES_MAX files; then nothing is
// written.
int hf_folder_write_weights(int dir, const struct layout *layout,
                            const struct safetensors_source *source,
                            const struct safetensors_note *notes, size_t note_count,
                            uint64_t max_shard_bytes, struct why *why, size_t *ret_files);
