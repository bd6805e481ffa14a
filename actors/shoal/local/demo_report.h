#pragma once
// demo_report -- the result of the demo: a verdict, printed as a table and as JSON. A play
// (demo_play.h) is what happens during the demo; it judges and prints its own part.

#include "actors/shoal/local/demo_setup.h"
#include "actors/shoal/model/evaluate.h"
#include "actors/shoal/run/ledger_report.h"
#include <jansson.h>
#include <stdio.h>

enum {
    DEMO_TRAINERS = 4, // At the start
    DEMO_TRAINERS_MAX = 5,
    DEMO_FAILURES_MAX = 16,
    DEMO_SAMPLE_TOKENS = 240,
    DEMO_EPOCHS_MIN = 3,
    DEMO_LAYERS_MIN = 4,
    DEMO_PARAMETERS_MIN = 1000000
};

struct demo_report {
    const struct demo_setup *setup;
    struct ledger_report ledger;
    uint32_t trainers_count;
    bool no_digests;                        // The trainers do not say with which digest they end
    struct key trainers[DEMO_TRAINERS_MAX]; // Keys
    struct hash
        digests[DEMO_TRAINERS_MAX]; // Of each replica at the end, as the trainer reported it
    struct hash checkpoint;         // Of the state in the last checkpoint, computed from its files
    char checkpoint_path[PATH_MAX];
    struct evaluation heldout;
    uint64_t seconds; // The run alone
    const char *prompt;
    char *text; // What follows it
    char failures[DEMO_FAILURES_MAX][160];
    uint32_t failures_count;
};

// Adds a sentence to `failures`.
void demo_report_fail(struct demo_report *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Fills `failures`. `is_small`: a model of the user's own (--config-path), or a short pass; it may learn little.
void demo_report_judge(struct demo_report *self, bool is_small);
// The loss and the run; the replicas, each with a text of the play before its digest; the rest.
void demo_report_print_run(const struct demo_report *self, FILE *out);
void demo_report_print_replicas(const struct demo_report *self, FILE *out,
                                const char *(*note)(const struct demo_report *, uint32_t trainer));
// `last_words`: if nothing has failed.
void demo_report_print_end(const struct demo_report *self, FILE *out, const char *last_words);
json_t *demo_report_to_json(const struct demo_report *self);
