#pragma once
// checkpoint_manifest -- shoal.json, as text and as a struct. Private to checkpoint.
//
// The text is what jansson writes for the tree, one value per line, keys in the order below. Its
// last value is the SHA-256 of the text without that value, so any changed byte is found, even a
// space.
//
//     {"format": "shoal checkpoint", "version": 1, "protocol": 1, "run": "a",
//      "born_unix_ms": 1700000000000, "epoch": 3, "step": 120, "digest": "<64 hex>", "parameters": "<64 hex>", "layout": "<64 hex>",
//      "created_unix_s": 1700000000,
//      "data": {"pass": 0, "pass_length": 1000, "cursor": 640, "done": [[0, 512], [544, 640]],
//               "failed": [[520, 530]]},
//      "state": [{"name": "m", "tag": "reshard", "elements": 100, "element_bytes": 4,
//                 "saved": true}],
//      "files": [{"name": "config.json", "bytes": 540, "sha256": "<64 hex>"}, ...],
//      "sha256": "<64 hex>"}
//
// Samples are numbered from the start of the pass, [begin, end). "failed" is left out if it is empty,
// and a text without it has none: so the manifest of a run that gave up no sample is what it was
// before there was this key, and the version is the same. A program that does not know the key
// takes such samples for samples still to be trained.
//
// "born_unix_ms" is left out if it is 0: no run has written it (shoal train), or an earlier program.
//
// "parameters" is left out if it is the digest: if the state is the parameters alone. In a text of an
// earlier program that saved more state, both are the digest of the parameters.

#include "common/checkpoint/checkpoint.h"

enum { CHECKPOINT_MANIFEST_BYTES_MAX = 8 << 20, CHECKPOINT_VERSION = 1 };

struct checkpoint_record {
    char name[DIRFILE_NAME_MAX + 1];
    uint64_t bytes;
    struct hash hash;
};

struct checkpoint_manifest {
    struct checkpoint_info info; // Its lists are owned (malloc) if the manifest was unpacked
    struct checkpoint_record files[CHECKPOINT_FILES_MAX];
    size_t file_count;
    struct tags_item items[CHECKPOINT_ITEMS_MAX];
    bool saved[CHECKPOINT_ITEMS_MAX];
    size_t item_count;
};

// FAULT_RANGE unless every field is in the range that checkpoint.h gives it.
int checkpoint_manifest_check(const struct checkpoint_info *info, struct why *why);

// The caller frees the text.
int checkpoint_manifest_pack(const struct checkpoint_manifest *self, struct why *why,
                             char **ret_text, size_t *ret_count);

// Total: any bytes give a manifest whose fields are in range, or a refusal with its reason. The
// caller clears it.
int checkpoint_manifest_unpack(const char *place, const char *text, size_t count, struct why *why,
                               struct checkpoint_manifest *ret_manifest);

// Frees the lists of a manifest that was unpacked.
void checkpoint_manifest_clear(struct checkpoint_manifest *self);

const struct checkpoint_record *checkpoint_manifest_find(const struct checkpoint_manifest *self,
                                                         const char *name);
