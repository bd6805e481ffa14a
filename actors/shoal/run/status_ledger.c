// status_ledger -- the report that ledger_report.h makes, as JSON and for people; then whether it is a fault.

#include "actors/shoal/run/status_ledger.h"
#include "actors/shoal/run/ledger_report.h"
#include "actors/shoal/shoal.h"
#include "actors/shoal/show.h"
#include "common/actor/run_words.h"
#include <inttypes.h>
#include <stdio.h>

static const struct run_unit *report_unit(const struct ledger_report *report)
{
    return run_words_unit(report->has_leases    ? FRAME_LEASES_CONFIG
                          : report->has_windows ? FRAME_WINDOWS_CONFIG
                                                : FRAME_ROUNDS_CONFIG);
}

static const char *report_phase(const struct ledger_report *report)
{
    return run_words_phase(report_unit(report), report->phase);
}

// Rounds that came to nothing are counted apart; windows, and the groups of leases, as they are.
static bool has_rounds(const struct ledger_report *report)
{
    return !report->has_windows && !report->has_leases;
}

static json_t *kinds_to_json(const struct ledger_report *report)
{
    json_t *object = json_object();
    for (uint16_t kind = 0; kind < REPORT_KINDS_MAX; kind++)
        if (report->of_kind[kind])
            json_object_set_new(object, wire_kind_name(kind),
                                json_integer((json_int_t)report->of_kind[kind]));
    return object;
}

static json_t *shares_to_json(const struct ledger_report *report)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < report->members_count; i++) {
        const struct report_member *member = &report->members[i];
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "name", member->name, "role",
                            wire_enum_name(&wire_enum_role, member->role), "state",
                            wire_enum_name(&wire_enum_member_state, member->state), "results",
                            (json_int_t)member->results, "samples", (json_int_t)member->samples,
                            "windows", (json_int_t)member->windows));
    }
    return list;
}

// `holds` is null if the records could not be verified.
static json_t *evidence_to_json(const struct ledger_report *report)
{
    const bool is_verified = report->unverified_fault == 0;
    json_t *holds = is_verified ? json_boolean(!report->disproof[0]) : json_null();
    json_t *object = json_pack("{s:o, s:s}", "holds", holds, "reason",
                               is_verified ? report->disproof : report->unverified.text);
    for (int i = 0; report->proved_names && i < PACE_COUNTS_MAX && report->proved_names[i]; i++)
        json_object_set_new(object, report->proved_names[i],
                            json_integer((json_int_t)report->proved[i]));
    return object;
}

static json_t *report_to_json(const struct ledger_report *report)
{
    char units[16];
    snprintf(units, sizeof units, "%ss", report_unit(report)->name);
    json_t *object = json_pack("{s:s, s:s, s:I, s:I, s:s, s:o}", "schema", "shoal.ledger.1", "run",
                               report->run, "incarnation", (json_int_t)report->incarnation,
                               "records", (json_int_t)report->records, "phase",
                               report_phase(report), "records_by_kind", kinds_to_json(report));
    json_t *counts = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "starts",
        (json_int_t)report->starts, units,
        (json_int_t)(has_rounds(report) ? report->rounds : report->windows), "commits",
        (json_int_t)report->commits, "voids", (json_int_t)report->voids, "distinct_steps",
        (json_int_t)report->steps, "steps_undone", (json_int_t)report->steps_undone, "steps_twice",
        (json_int_t)report->steps_twice, "steps_skipped", (json_int_t)report->steps_skipped,
        "last_step", (json_int_t)report->last_step, "samples", (json_int_t)report->samples,
        "samples_twice", (json_int_t)report->samples_twice, "samples_missing",
        (json_int_t)report->samples_missing, "restores", (json_int_t)report->restores);
    json_t *ends = json_pack(
        "{s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:s, s:o, s:o, s:o}", "epoch",
        (json_int_t)report->epoch, "epochs_trained", (json_int_t)report->epochs, "epoch_ends",
        (json_int_t)report->epoch_ends, "digest_step", (json_int_t)report->end.step, "digest",
        shoal_hash(&report->end.digest), "checkpoints", (json_int_t)report->checkpoints,
        "checkpoint_step", (json_int_t)report->checkpoint.step, "checkpoint_name",
        report->checkpoint.name, "checkpoint_digest", shoal_hash(&report->checkpoint.digest),
        "members", shares_to_json(report), "evidence", evidence_to_json(report));
    if (!object || !counts || !ends || json_object_update(object, counts) ||
        json_object_update(object, ends))
        return NULL;
    json_decref(counts);
    json_decref(ends);
    return object;
}

static void print_evidence(const struct ledger_report *report)
{
    if (report->unverified_fault < 0) {
        printf("  evidence NOT VERIFIED: %s\n", report->unverified.text);
        return;
    }
    printf("  evidence verified:");
    for (int i = 0; report->proved_names && i < PACE_COUNTS_MAX && report->proved_names[i]; i++)
        printf("%s %" PRIu64 " %s", i ? "," : "", report->proved[i], report->proved_names[i]);
    printf("\n");
    if (report->disproof[0]) printf("           DOES NOT HOLD: %s\n", report->disproof);
}

static void print_share(const struct report_member *member, const struct ledger_report *report,
                        int width)
{
    printf("  %-*s %-10s ", width, member->name,
           wire_enum_name(&wire_enum_member_state, member->state));
    if (report->has_windows) printf("in %6" PRIu64 " windows\n", member->windows);
    else
        printf("%6" PRIu64 " %s, %8" PRIu64 " samples\n", member->results,
               report->has_leases ? "tasks" : "results", member->samples);
}

static void print_report(const struct ledger_report *report)
{
    char hex[HASH_HEX], start[SHOW_MAX], units[16];
    int width = SHOW_NAMES;
    snprintf(units, sizeof units, "%ss", report_unit(report)->name);
    printf("run %s, from the ledger: %s, coordinator started %s\n\n", report->run,
           report_phase(report), show_start(report->incarnation, start));
    printf("  records  %" PRIu64, report->records);
    if (!has_rounds(report) && report->steps)
        printf(", %.3g a step", (double)report->records / (double)report->steps);
    printf("\n");
    for (uint16_t kind = 0; kind < REPORT_KINDS_MAX; kind++)
        if (report->of_kind[kind])
            printf("    %-20s %" PRIu64 "\n", wire_kind_name(kind), report->of_kind[kind]);
    printf("  commits  %" PRIu64 ", %s %" PRIu64 "; steps %" PRIu64 " distinct, %" PRIu64
           " twice, %" PRIu64 " skipped, %" PRIu64 " undone by restores; last step %" PRIu64 "\n",
           report->commits, has_rounds(report) ? "void rounds" : units,
           has_rounds(report) ? report->voids : report->windows, report->steps, report->steps_twice,
           report->steps_skipped, report->steps_undone, report->last_step);
    printf("  samples  %" PRIu64 ", %" PRIu64 " twice, %" PRIu64 " missing\n", report->samples,
           report->samples_twice, report->samples_missing);
    print_evidence(report);
    if (report->epoch_ends)
        printf("  %s %s of step %" PRIu64 "\n", has_rounds(report) ? "digest  " : "state digest",
               hash_to_hex(&report->end.digest, hex), report->end.step);
    if (report->checkpoints)
        printf("  newest checkpoint  %s, digest %.16s\n", report->checkpoint.name,
               hash_to_hex(&report->checkpoint.digest, hex));
    for (uint32_t i = 0; i < report->members_count; i++)
        width = show_wider(width, report->members[i].name);
    for (uint32_t i = 0; i < report->members_count; i++)
        print_share(&report->members[i], report, width);
}

int status_ledger(const char *folder, bool json, struct why *why)
{
    struct ledger_report report = { 0 };
    int rc = ledger_report_read(folder, why, &report);
    if (rc < 0) return rc;
    if (json) rc = shoal_print_json(report_to_json(&report), why);
    else print_report(&report);
    if (rc == 0 && report.unverified_fault < 0)
        rc = why_set(why, report.unverified_fault, "%s", report.unverified.text);
    if (rc == 0 && report.disproof[0])
        rc = why_set(why, FAULT_CORRUPT, "the ledger does not prove what it says: %s",
                     report.disproof);
    ledger_report_free(&report);
    return rc;
}
