#pragma once
// remote_files -- the dataset of token files behind URLs, as samples (samples.h says which tokens
// are sample p): the same files give the same samples here as in a local folder, if they stand in
// the same order. Format by the end of the URL's path: .npy has a NumPy header, all else is raw
// tokens. remote_source.h makes the URLs; http_range.h retries requests and asks the mirror.
//
// With a manifest's digest (remote_source.h) every byte is checked. The manifest lies beside the
// files and must have that digest; it says how large each file is; every block of 4 KiB is compared
// with it before a token is decoded, the header of a .npy too. A place that sends other bytes is
// reported, and the other place is asked, as if the first had not answered.
//
// The cost of the check: 8 KiB of block hashes when a MiB is first read, from NAME.blocks beside
// the file (manifest.h). If no place has NAME.blocks, the whole MiB is fetched instead: cheap for a
// reader of all samples, expensive for a reader of a few. The hashes of 4096 MiB stay in memory
// (block_tree.h).
//
// Without a digest the sizes are asked for at open (one HEAD each), and bytes are not checked.
//
// Neighbours in one file are one request, up to REMOTE_RUN_BYTES. Unshuffled positions are
// neighbours; shuffled ones seldom are and cost a request each.
//
// Not for two threads at once.

#include "common/data/remote_source.h"
#include "common/data/samples.h"

enum { REMOTE_RUN_BYTES = 8 << 20 };

typedef struct remote_files remote_files_t;

// Copies its arguments; of `http` it keeps stop_fd, refused and arg. FAULT_CONFIG, FAULT_RANGE,
// FAULT_FORMAT, the faults of http_range_read, FAULT_DIGEST for a file that the manifest does not
// name.
int remote_files_open(const struct remote_source *source, const struct http_config *http,
                      const struct samples_config *config, struct why *why,
                      remote_files_t **ret_self);
void remote_files_close(remote_files_t **self);

uint64_t remote_files_count(const remote_files_t *self); // Samples in one pass, 1 or more
const struct hash *remote_files_digest(const remote_files_t *self); // NULL: nothing is proved

// As token_files_read. FAULT_CORRUPT if a file's size changed since open; FAULT_DIGEST if no place
// sends the bytes that the manifest names.
int remote_files_read(remote_files_t *self, uint64_t position, uint32_t count, uint32_t *tokens,
                      struct why *why);
