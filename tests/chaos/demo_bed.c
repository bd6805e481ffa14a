// demo_bed -- writes config/demo over the testbed's files, then edits single keys of state.toml.

#include "tests/chaos/demo_bed.h"
#include "actors/shoal/local/toml_edit.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATE_BYTES_MAX = 1 << 16, VALUE_BYTES_MAX = 64 };

static void say_nothing(void *arg, const char *line) { (void)arg, (void)line; }

void demo_bed_edit(struct testbed *bed, const char *table, const char *key, const char *format, ...)
{
    static char text[STATE_BYTES_MAX];
    char path[300], value[VALUE_BYTES_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    snprintf(path, sizeof path, "%s/state.toml", bed->dir);
    testbed_read_file(path, text, sizeof text);
    char *edited = toml_edit(text, table, key, value);
    if (!edited) testbed_fail(bed, "config/demo has no table [%s]", table);
    testbed_write_file(bed, "state.toml", edited, strlen(edited));
    free(edited);
}

static void apply_options(struct testbed *bed)
{
    const struct testbed_options *o = &bed->options;
    demo_bed_edit(bed, "config", "total_steps", "%u", o->total_steps);
    demo_bed_edit(bed, "config", "rounds_per_epoch", "%u", o->epoch_rounds);
    demo_bed_edit(bed, "config", "min_clients", "%u", o->min_clients);
    demo_bed_edit(bed, "config", "init_min_clients", "%u", o->init_min_clients);
    demo_bed_edit(bed, "config", "max_round_train_time", "%g", o->train_s);
    demo_bed_edit(bed, "config", "round_witness_time", "%g", o->witness_s);
    demo_bed_edit(bed, "config", "warmup_time", "%g", o->warmup_s);
    demo_bed_edit(bed, "config", "cooldown_time", "%g", o->cooldown_s);
    demo_bed_edit(bed, "config", "verification_percent", "%u", o->verification_percent);
    demo_bed_edit(bed, "members", "lease_time", "%g", o->lease_s);
    demo_bed_edit(bed, "members", "heartbeat_time", "0.3");
    demo_bed_edit(bed, "witness", "standalone", "%s", o->witnesses ? "true" : "false");
}

// The demo's own folder replaces what the testbed wrote, except the ticket.
void demo_bed_set_up(struct testbed *bed, struct demo_setup *ret_setup)
{
    struct why why = { 0 };
    char ticket[TICKET_TEXT_MAX];
    testbed_write_file(bed, ".shoal-demo", "", 0);
    ticket_print(&bed->ticket, ticket);
    const struct demo_place place = { .dir = bed->dir, .settings = "state.toml", .seed = 1 };
    int rc = demo_set_up(ret_setup, &place, say_nothing, NULL, &why);
    if (rc < 0) testbed_fail(bed, "the demo cannot be set up: %s %s", fault_name(rc), why.text);
    testbed_write_file(bed, "ticket", ticket, strlen(ticket));
    apply_options(bed);
}
