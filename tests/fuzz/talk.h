#pragma once
// talk -- inside cores: one conversation with one core, and what the core's process keeps for it.
//
//     cores.c           the conversation: lives, messages, and what may be said at all
//     core_kinds.c      the five cores, each as its shell would make it
//     core_process.c    the core's own process: its disk, its blob store, its learner and fetcher

#include "tests/fuzz/cores.h"
#include "tests/fuzz/events.h"
#include "tests/fuzz/honest.h"

#include <inttypes.h>

enum { TALK_CORES = 5, JOBS_MAX = 32, RECORDS_BYTES = 8 << 20, STORED_MAX = 64 };

struct job {
    uint16_t kind;
    uint32_t bytes;
    uint8_t *body;
};

// One conversation: what the core's process would keep for it.
struct talk {
    const struct core *core;
    struct core_counts *counts;
    void *state;
    uint64_t now_ms, alarm_ms, life;
    uint64_t reborn; // How often the coordinator that speaks to us has restarted
    uint8_t rules;   // Bits of other settings: enum rule_bits
    bool quits;
    struct outbox out;
    struct wire_arena arena, scratch;
    struct event_memory memory;
    struct honest honest;                               // The senders that speak to it
    struct hash residual, candidate, candidate_payload; // The learner's
    struct job jobs[JOBS_MAX];
    uint32_t jobs_count;
    // What a crash leaves: the ledger's records, or the journal, the blob store and the checkpoint.
    uint8_t *records;
    size_t records_bytes;
    bool has_journal;
    struct wire_journal journal;
    struct wire_blob stored[STORED_MAX];
    uint32_t stored_count;
    struct wire_load resume;
    // What was promised, whatever the life.
    uint64_t claimed_round, voted_round, born_unix_ms;
    struct hash claimed, voted;
};

struct core {
    const char *name;
    size_t state_bytes;
    uint8_t person; // Which of event_people it is
    void (*init)(struct talk *talk);
    void (*step)(void *state, const struct msg *in, struct outbox *out);
};

// Coordinator, trainer, witness, checkpointer, data provider.
extern const struct core talk_cores[TALK_CORES];

bool talk_is_coordinator(const struct talk *talk);
bool talk_is_checkpointer(const struct talk *talk);
const struct round_view *talk_view(const struct talk *talk); // What a member knows of its round

// Gives a message to the core and performs what it says; the second: one of its own process.
void talk_hear(struct talk *talk, const struct msg *in);
void talk_hear_local(struct talk *talk, uint16_t kind, const void *body);

// The body of what a core packed, in the arena, which is emptied before.
const void *talk_unpack(struct wire_arena *arena, uint16_t kind, const uint8_t *body, size_t bytes);

// ---- the core's own process ---------------------------------------------------------------------

void talk_store(struct talk *talk, const struct effect *effect);    // What goes to the disk
void talk_keep_job(struct talk *talk, const struct effect *effect); // For learner or fetcher
void talk_forget_jobs(struct talk *talk);
void talk_answer(struct talk *talk, const struct event *event); // One of these jobs is done
void talk_replay(struct talk *talk, struct run *run); // The ledger, into a state that was just made
