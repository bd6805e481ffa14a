#pragma once
// remote_files -- the dataset of token files behind URLs, as samples (samples.h says which tokens
// are sample p): the same files give the same samples here as in a local folder, if they stand in
// the same order. Format by the end of the URL's path: .npy has a NumPy header, all else is raw
// tokens. Which URLs: remote_source.h. How requests fail, are repeated, and go to the mirror:
// http_range.h.
//
// With a manifest's digest (remote_source.h) not one byte is believed. The manifest comes from
// beside the files and must be the one that the digest names; it says how large each file is; every
// block of 4 KiB is held against it before a token is taken from it, the header of a .npy too. Who
// sends something else is named and the other place asked, as if it had not answered.
//
// What that costs: the hashes of a MiB's blocks, 8 KiB the first time, from NAME.blocks beside the
// file (manifest.h). Where nobody serves those, the MiB is fetched whole the first time: cheap for
// who reads all of it, dear for who reads a sample here and there. Those of the newest 4096 MiB are
// remembered (block_tree.h).
//
// Without one the sizes are asked for at open (one HEAD each), and what comes is believed.
//
// Neighbours in one file are one request, up to REMOTE_RUN_BYTES. Unshuffled positions are
// neighbours; shuffled ones seldom are and cost a request each.
//
// Not for two threads at once.

#include "common/data/remote_source.h"
#include "common/data/samples.h"

enum { REMOTE_RUN_BYTES = 8 << 20 };

typedef struct remote_files remote_files_t;

// Keeps nothing of its arguments but `http`'s stop_fd, refused and arg. FAULT_CONFIG, FAULT_RANGE,
// FAULT_FORMAT, what http_range_read gives, FAULT_DIGEST for a file that the manifest does not
// name.
int remote_files_open(const struct remote_source *source, const struct http_config *http,
                      const struct samples_config *config, struct why *why,
                      remote_files_t **ret_self);
void remote_files_close(remote_files_t **self);

uint64_t remote_files_count(const remote_files_t *self); // Samples in one pass, 1 or more
const struct hash *remote_files_digest(const remote_files_t *self); // NULL: nothing is proved

// As token_files_read. FAULT_CORRUPT if a file's size changed since open; FAULT_DIGEST if nobody
// sends what the manifest says.
int remote_files_read(remote_files_t *self, uint64_t position, uint32_t count, uint32_t *tokens,
                      struct why *why);
