#pragma once
// demo_report -- the result of the demo: a verdict, printed as a table and as JSON.

#include "actors/shoal/local/demo_kills.h"
#include "actors/shoal/local/demo_setup.h"
#include "actors/shoal/model/evaluate.h"
#include "actors/shoal/run/ledger_report.h"
#include <jansson.h>
#include <stdio.h>

enum {
    DEMO_TRAINERS = 4,
    DEMO_KILLS = 2,
    DEMO_FAILURES_MAX = 16,
    DEMO_SAMPLE_TOKENS = 240,
    DEMO_COMMITS_MIN = 300,
    DEMO_EPOCHS_MIN = 3,
    DEMO_LAYERS_MIN = 4,
    DEMO_PARAMETERS_MIN = 1000000
};

struct demo_report {
    const struct demo_setup *setup;
    struct ledger_report ledger;
    struct key trainers[DEMO_TRAINERS]; // Keys
    struct hash digests[DEMO_TRAINERS]; // Of each replica at the end, as the trainer reported it
    struct hash checkpoint; // Of the parameters in the last checkpoint, computed from its files
    char checkpoint_path[PATH_MAX];
    const struct demo_kill *kills; // DEMO_KILLS of them
    struct evaluation heldout;
    uint64_t seconds; // The run alone
    const char *prompt;
    char *text; // What follows it
    char failures[DEMO_FAILURES_MAX][160];
    uint32_t failures_count;
};

void demo_report_judge(struct demo_report *self); // Fills `failures`
void demo_report_print(const struct demo_report *self, FILE *out);
json_t *demo_report_to_json(const struct demo_report *self);
