#pragma once
// demo_play -- what happens in a demo of one strategy: who is killed and joins, and what is said of
// it. The frame around it (demo.c) is the same for all: folder, processes, checkpoint, verdict.
//
//   demo_rounds.c    distro: a trainer and the coordinator are killed, each in the middle of a round
//   demo_windows.c   allreduce: likewise, and a fifth trainer joins; then one trainer alone trains
//                    the same steps, and its state must have the same bits. sharded: the same. server: a parameter
//                    server is killed, too
//   demo_async.c     server that is not in step: one trainer is slow; a trainer and a server are killed; then a pass of the
//                    same run in step, to compare with

#include "actors/shoal/local/demo_report.h"
#include "actors/shoal/local/progress.h"
#include "actors/shoal/local/testnet.h"
#include "common/actor/run_words.h"

struct demo;

struct demo_play {
    const char *strategy;  // As --strategy names it
    const char *mode;      // As --mode names it; NULL: it has one mode
    const char *settings;  // The file of config/demo that becomes state.toml
    bool saves;            // Its trainers save in pieces
    bool no_digests;       // Its trainers do not say with which digest they end
    uint64_t pass_samples; // As in demo_place
    uint32_t standby;      // Parameter servers that stand by
    uint32_t late;         // Trainers beyond DEMO_TRAINERS, which the play starts
    void (*plan)(struct demo *self);
    void (*hear)(struct demo *self, unsigned heard, uint64_t now_ms); // After the view
    // In each turn; returns when it is due again. NULL: there is nothing to do.
    uint64_t (*tick)(struct demo *self, uint64_t now_ms);
    // All processes have stopped, and the report has been made. NULL: nothing more to do.
    int (*after)(struct demo *self, struct why *why);
    void (*judge)(struct demo *self); // Beside demo_report_judge
    void (*print)(const struct demo *self, FILE *out);
    json_t *(*to_json)(const struct demo *self); // More members of the report
};
extern const struct demo_play demo_rounds, demo_windows, demo_shares, demo_servers, demo_async;

struct demo {
    const char *dir, *config_path, *threads, *strategy, *mode;
    uint64_t patience_s, port, seed;
    bool json;
    const struct demo_play *play;
    uint64_t step, moved_ms;   // The newest step that was seen, and when it was first seen
    char lacks[RUN_WORDS_MAX]; // What a round has missed since; if none has, what the run waits for
    bool has_missed;
    struct demo_setup setup;
    struct testnet net;
    struct progress progress;
    struct demo_report report;
    FILE *out; // Progress: stdout, or stderr with --json
};

// ---- for the plays ------------------------------------------------------------------------------

void demo_say(void *demo, const char *line);
bool demo_is_interrupted(void *arg); // A signal that ends the demo is pending; for evaluate_options

bool demo_in_group(const struct demo *self, const struct key *key);
// Of the process that has this key, as the roster tells; 0: not known.
uint64_t demo_instance(const struct demo *self, const struct key *key);
// Index of a parameter server that has a place in the group: not the one that stands by. NO_MEMBER: not known yet.
uint32_t demo_server_of_group(const struct demo *self);
// Says it, and kills (SIGKILL). `group`: "window" or "group".
void demo_kill(struct demo *self, struct child *victim, const char *group, uint64_t step);
// "after 1.2 s", or "not seen".
const char *demo_after_s(uint64_t from_ms, uint64_t to_ms, char text[32]);
