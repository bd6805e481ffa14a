#pragma once
// remote_source -- the URLs of a dataset's files and of their manifest. Pure.
//
//     SingleUrl       https://example.org/set/tokens.bin?key=1       one file
//     NumberedFiles   https://example.org/set/{}.bin                 .../set/007.bin, and so on
//     the manifest    https://example.org/set/manifest.json?key=1    beside them, the query kept
//     block hashes    https://example.org/set/tokens.bin.blocks?key=1
//
// The same files may lie at a second place, the mirror, which has its own URL or template. The
// manifest names a file by the last part of its URL's path, exactly as it is written in the URL.

#include "common/base/hash.h"
#include "common/data/http_range.h"

enum { REMOTE_PAD_MAX = 20 };

enum remote_kind {
    REMOTE_SINGLE_URL,
    REMOTE_NUMBERED_FILES, // url has one {}, where the number goes, zeros in front
    REMOTE_GCP,            // A bucket to be listed: FAULT_UNSUPPORTED
};

struct remote_source { // Psyche's HttpTrainingDataLocation, and what we add to it
    enum remote_kind kind;
    const char *url;
    const char *mirror;              // NULL: there is none
    uint32_t start_index, num_files; // num_files 1 .. SAMPLES_FILES_MAX
    uint32_t n_left_pad_zeros;       // Digits in all: 3 gives 007; 0 .. REMOTE_PAD_MAX
    struct hash manifest_digest;     // All zero: bytes are not checked
};

// FAULT_UNSUPPORTED, FAULT_CONFIG, FAULT_RANGE. All below need a source that was checked.
int remote_source_check(const struct remote_source *source, struct why *why);

uint32_t remote_source_count(const struct remote_source *source); // Files

struct remote_urls {
    char text[HTTP_PLACES_MAX][HTTP_URL_MAX + 64];
    struct http_places places; // Points into text
};

void remote_source_file(const struct remote_source *source, uint32_t index,
                        struct remote_urls *ret_urls);
void remote_source_blocks(const struct remote_source *source, uint32_t index,
                          struct remote_urls *ret_urls);
void remote_source_manifest(const struct remote_source *source, struct remote_urls *ret_urls);
