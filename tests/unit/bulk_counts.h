#pragma once
// bulk_counts -- what bulk servers hear and say, counted between them and their sockets: the linker
// (--wrap) puts this in the place of bulk_line_recv, bulk_line_put and bulk_line_cut.

#include "common/bulk/bulk_server.h"

struct bulk_counts {
    uint64_t heard;                                    // Messages
    uint64_t chunks, chunk_bytes, leaf_lists, samples; // Answers
    uint64_t refusals;
    uint64_t cut; // Connections
};

// Of this server, since it was made. An answer is counted before its receiver can have it.
struct bulk_counts bulk_counts_of(const bulk_server_t *server);

// Bytes of chunks that the fetchers of this process took off their sockets, wanted or not.
uint64_t bulk_counts_received(void);
