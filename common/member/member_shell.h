#pragma once
// member_shell -- the far side of the wall for every member: directory and journal, blob store,
// bulk server, learner and fetcher, and the loop. The mains of trainer, witness, checkpointer and
// data provider say what they have of it and hand over their core.

#include "common/learner/learner.h"
#include "common/actor/command.h"
#include "common/bulk/bulk_server.h"
#include "common/member/member.h"

struct member_options {
    struct command command;
    const char *bulk_bind; // --bulk-bind HOST: one address of this machine at which
                           // peers reach us, or an interface's name; 127.0.0.1
    const char *bulk_port; // --bind-p2p-port; "*": any free one
    const char *device, *threads, *micro_batch;        // Trainers: --device, --threads,
                                                       // --micro-batch-size
    const char *checkpoint_dir, *keep, *tokenizer_dir; // Checkpointers
};

struct member_process {
    const struct actor *actor; // Whose state begins with a struct member
    void (*init)(void *state);
    bool has_learner, has_fetcher, keeps_blobs;
    // A data provider's proved samples and the description of its dataset (common/data/proof.h); or
    // NULL.
    bulk_answer_fn *answer;
    void *answer_arg;
    const uint8_t *description;
    size_t description_bytes;
    uint32_t seq_len;
    uint64_t samples;
    struct hash data, positions; // Of its dataset: common/data/proof.h
};

extern const struct argp member_argp; // Child of a main's argp, with a struct member_options

// Runs the process to its end. Returns its exit code; what went wrong has been said.
int member_run(struct member_options *options, const struct member_process *process);
