#pragma once
// demo_bed -- a testbed that runs config/demo: its model, its text and its settings, instead of the
// small ones that the testbed writes.
//
//     struct testbed *bed = testbed_new(&(struct testbed_options){ .run_id = "demo", ... });
//     demo_bed_set_up(bed, &setup);
//     demo_bed_edit(bed, "model.LLM.optimizer.Distro", "compression_topk", "%u", 8);
//
// The bed's options set times, numbers of actors and the verification. The batch, the products and
// all that is learned are the demo's. A failure fails the test.

#include "actors/shoal/local/demo_setup.h"
#include "tests/live/testbed.h"

void demo_bed_set_up(struct testbed *bed, struct demo_setup *ret_setup);

// One key of state.toml; `table` is one of the demo's.
void demo_bed_edit(struct testbed *bed, const char *table, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
