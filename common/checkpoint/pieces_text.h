#pragma once
// pieces_text -- the three texts of a save, as text and as structs. Private to pieces.
//
//     note        {"format": "shoal note", "version": 1, "run": "a", "born_unix_ms": 0,
//                  "step": 120, "workers": 3, "worker": 1, "written_unix_s": 1700000000,
//                  "items": [{"name": "m", "tag": "reshard", "element_bytes": 4,
//                             "elements": 100, "root": "<64 hex>"}], "sha256": "<64 hex>"}
//     cut         {"format": "shoal cut", "version": 1, "workers": 3,
//                  "items": [{"name": "m", "tag": "reshard", "element_bytes": 4,
//                             "begins": [0, 100, 200, 300]}],
//                  "tensors": [{"name": "w", "shape": [10, 30], "begin": 0, "end": 300}],
//                  "sha256": "<64 hex>"}
//     manifest    {"format": "shoal pieces", "version": 1, "run": "a", "born_unix_ms": 0,
//                  "step": 120, "attempt": 1, "written_unix_s": 1700000000, "cut": "<64 hex>",
//                  "roots": ["<64 hex>", ..], "sha256": "<64 hex>"}
//
// The manifest's time is that of worker 0's note, so that two workers who seal write the same
// bytes. "cut" is the SHA-256 of the whole text of the cut. "roots" has one root for each item and
// worker, item by item, in the order of the cut; a piece of no bytes has the root of 64 zeros.
// Unpacking is total: any bytes give a struct whose fields are in range, or a refusal with its
// reason.

#include "common/checkpoint/pieces.h"

enum { PIECES_TEXT_MAX = 16 << 20 };

struct pieces_note {
    uint32_t worker;
    uint64_t written_unix_s;
    size_t count;
    struct pieces_noted {
        char name[TAGS_NAME_MAX + 1];
        enum tag tag;
        uint32_t element_bytes;
        uint64_t elements;
        struct hash root;
    } items[PIECES_ITEMS_MAX];
};

struct pieces_manifest {
    struct pieces_about about;
    struct hash cut;
    struct hash *roots; // Owned if it was unpacked
    size_t root_count;
};

// The caller frees the texts. FAULT_MEMORY.
int pieces_note_pack(const struct pieces_save *save, const struct pieces_note *note,
                     struct why *why, char **ret_text);
int pieces_cut_pack(const struct pieces_meta *meta, struct why *why, char **ret_text);
int pieces_manifest_pack(const struct pieces_manifest *self, struct why *why, char **ret_text);

// FAULT_FOREIGN: the note is of another save.
int pieces_note_unpack(const struct pieces_save *save, const char *place, const char *text,
                       size_t count, struct why *why, struct pieces_note *ret_note);
int pieces_cut_unpack(const char *place, const char *text, size_t count, struct why *why,
                      struct pieces_meta *ret_meta);
int pieces_manifest_unpack(const char *place, const char *text, size_t count, struct why *why,
                           struct pieces_manifest *ret_manifest);

// Frees what unpacking took, or what a caller took with malloc.
void pieces_meta_clear(struct pieces_meta *self);
void pieces_manifest_clear(struct pieces_manifest *self);

// FAULT_RANGE, and what is allowed.
int pieces_check_item(const char *place, const char *name, enum tag tag, uint64_t element_bytes,
                      uint64_t elements, struct why *why);
