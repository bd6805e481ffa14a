#pragma once
// member_shell -- the shell of every member: state directory and journal, blob store, bulk server,
// workers, and the loop. The mains of trainer, witness, checkpointer and data provider pass their
// core and describe what else they need. A main names its workers, so a program links only those:
// the kernels come with the learner.

#include "common/actor/command.h"
#include "common/actor/worker.h"
#include "common/bulk/bulk_server.h"
#include "common/member/member.h"

struct member_options {
    struct command command;
    const char *bulk_bind; // --bulk-bind HOST: an address of this machine, or an interface's name
    const char *announce;  // --announce HOST[:PORT]: where peers reach us; NULL: at bulk_bind
    const char *bulk_port; // --bind-p2p-port; "*": any free one
    const char *word;      // A trainer's "train"; NULL: not written
    bool guest;            // In a run of somebody else: speaks of its owner, ends with the run
    const char *label;     // --name: a label for people, beside the key; NULL: none
    const char *device;    // For the learner, like the next three
    uint64_t threads, micro_batch, keep; // keep: the number of newest checkpoints that are kept
    const char *checkpoint_dir, *tokenizer_dir; // Of a checkpointer
    bool unchecked_address;                     // Nobody is asked whether others can connect to us
};

// The defaults of the flags, as the first fields of an initializer.
#define MEMBER_DEFAULTS                                                                            \
    .bulk_bind = "127.0.0.1", .bulk_port = "*", .device = "cpu", .threads = 1, .micro_batch = 4,   \
    .keep = 3

// The flags that all members share, those of a command included: a table of struct member_options.
extern const struct flag member_flags[];

struct fetch_namer; // common/bulk/fetcher.h

// A worker may borrow these until it is destroyed.
struct member_place {
    const struct member_options *options;
    const struct member *member;
    const struct identity *identity;
    blob_store_t *store;
    const struct fetch_namer *namer; // Knows the members of the roster; any thread
    const char *bulk_endpoint;       // That the bulk server has bound
    uint64_t instance;               // Of this process
};

// Starts a thread behind a port of the core. Call each once in a process. FAULT_USAGE: a flag of
// the worker is wrong.
typedef int member_worker_fn(const struct member_place *place, struct why *why,
                             struct worker **ret_worker);
member_worker_fn member_learner; // member_learner_shell.c
member_worker_fn member_fetcher; // member_fetcher_shell.c

struct member_process {
    const struct actor *actor; // Its state begins with a struct member
    void (*init)(void *state);
    member_worker_fn *workers[2]; // member_learner, member_fetcher; NULL: none
    bool keeps_blobs;             // True: on disk. False: in memory
    // Finds the checkpoint to resume from; a path of "" means none. May be NULL.
    int (*find)(const struct member_options *options, struct why *why,
                struct wire_load *ret_resume);
    // A data provider's proved samples, and the description of its dataset (common/data/proof.h).
    // NULL for other roles.
    bulk_answer_fn *answer;
    void *answer_arg;
    const uint8_t *description;
    size_t description_bytes;
    uint32_t seq_len;
    uint64_t samples;
    struct hash data, positions; // Digests of its dataset (common/data/proof.h)
};

// Reads the command line into *options and runs the process. `log`: the name of its log lines until it has another one.
int member_main(int argc, char **argv, const struct command_line *line, const char *log,
                struct member_options *options, const struct member_process *process);

// Runs the process to its end. Returns its exit code; it has printed any error.
int member_run(struct member_options *options, const struct member_process *process);
