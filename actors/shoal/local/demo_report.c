// demo_report -- judges the demo first, then prints it. The verdict checks in this order: the size
// of the model, the held-out loss against the order-1 baseline, the ledger (steps, samples,
// evidence), the digests of all replicas and of the checkpoint. A check that fails adds one
// sentence; the demo has passed when there is none. The table and the JSON print the same numbers
// and decide nothing.

#include "actors/shoal/local/demo_report.h"
#include "actors/shoal/shoal.h"
#include "actors/shoal/show.h"
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

// ---- the verdict --------------------------------------------------------------------------------

void demo_report_fail(struct demo_report *self, const char *format, ...)
{
    if (self->failures_count == DEMO_FAILURES_MAX) return;
    va_list args;
    va_start(args, format);
    vsnprintf(self->failures[self->failures_count++], sizeof self->failures[0], format, args);
    va_end(args);
}

static void judge_digests(struct demo_report *self)
{
    char a[HASH_HEX], b[HASH_HEX];
    for (uint32_t i = 0; i < self->trainers_count && !self->no_digests; i++)
        if (hash_is_none(&self->digests[i]))
            demo_report_fail(self, "trainer-%u never said with which digest it ended", i + 1);
        else if (!hash_equal(&self->digests[i], &self->ledger.end.digest))
            demo_report_fail(self, "trainer-%u ended with digest %.16s, the ledger has %.16s",
                             i + 1, hash_to_hex(&self->digests[i], a),
                             hash_to_hex(&self->ledger.end.digest, b));
    if (!hash_equal(&self->checkpoint, &self->ledger.end.digest))
        demo_report_fail(self, "the checkpoint has digest %.16s, the ledger has %.16s",
                         hash_to_hex(&self->checkpoint, a),
                         hash_to_hex(&self->ledger.end.digest, b));
}

static void judge_ledger(struct demo_report *self)
{
    const struct ledger_report *ledger = &self->ledger;
    uint64_t total = self->setup->config.total_steps;
    if (ledger->last_step < total)
        demo_report_fail(self, "step %" PRIu64 " of %" PRIu64 " was reached", ledger->last_step,
                         total);
    if (ledger->steps_twice || ledger->steps_skipped)
        demo_report_fail(self, "%" PRIu64 " steps committed twice, %" PRIu64 " skipped",
                         ledger->steps_twice, ledger->steps_skipped);
    if (ledger->samples_twice || ledger->samples_missing)
        demo_report_fail(self, "%" PRIu64 " samples committed twice, %" PRIu64 " missing",
                         ledger->samples_twice, ledger->samples_missing);
    if (ledger->unverified_fault < 0) demo_report_fail(self, "%s", ledger->unverified.text);
    if (ledger->disproof[0])
        demo_report_fail(self, "the ledger does not prove itself: %s", ledger->disproof);
}

// What config/demo is meant to show, and a folder of the user's own, or a short pass, need not.
static void judge_size(struct demo_report *self)
{
    const struct ledger_report *ledger = &self->ledger;
    const struct model_shape *shape = &self->setup->shape;
    if (shape->layers < DEMO_LAYERS_MIN || model_parameter_count(shape) < DEMO_PARAMETERS_MIN)
        demo_report_fail(
            self, "the model has %u layers and %" PRIu64 " parameters, less than %d and %d",
            shape->layers, model_parameter_count(shape), DEMO_LAYERS_MIN, DEMO_PARAMETERS_MIN);
    if (ledger->epochs < DEMO_EPOCHS_MIN)
        demo_report_fail(self, "%" PRIu64 " epochs, fewer than %d", ledger->epochs,
                         DEMO_EPOCHS_MIN);
    if (!(self->heldout.nats < self->setup->text.nats[1]))
        demo_report_fail(self, "held-out loss %.4f is not below the order-1 baseline %.4f",
                         self->heldout.nats, self->setup->text.nats[1]);
}

void demo_report_judge(struct demo_report *self, bool is_small)
{
    if (!is_small) judge_size(self);
    judge_ledger(self);
    judge_digests(self);
}

// ---- for people ---------------------------------------------------------------------------------

static void print_loss(const struct demo_report *self, FILE *out)
{
    static const char *const what[] = { "every byte for itself", "from the byte before",
                                        "from the two bytes before" };
    const double *nats = self->setup->text.nats;
    fprintf(out,
            "  held-out loss     %.4f nats per byte, over %" PRIu64
            " bytes that no trainer was given\n",
            self->heldout.nats, self->heldout.tokens);
    for (int order = 0; order < NGRAM_ORDERS; order++)
        fprintf(out, "    order %d          %.4f  counting, %-26s %s\n", order, nats[order],
                what[order], self->heldout.nats < nats[order] ? "beaten" : "not beaten");
}

void demo_report_print_run(const struct demo_report *self, FILE *out)
{
    const struct ledger_report *ledger = &self->ledger;
    char a[SHOW_MAX], b[SHOW_MAX];
    fprintf(out, "\nResult of the demo\n\n");
    print_loss(self, out);
    fprintf(out,
            "  run               %" PRIu64 " steps, %" PRIu64 " epochs, %" PRIu64
            " commits, in %s\n",
            ledger->last_step, ledger->epochs, ledger->commits,
            show_duration((double)self->seconds, a));
    fprintf(out, "  trained           %" PRIu64 " samples of %" PRIu64 " bytes: %s bytes%s\n",
            ledger->samples, self->setup->config.max_seq_len,
            show_count((double)(ledger->samples * self->setup->config.max_seq_len), b),
            ledger->samples_twice ? "" : ", each sample in one commit");
}

void demo_report_print_replicas(const struct demo_report *self, FILE *out,
                                const char *(*note)(const struct demo_report *, uint32_t trainer))
{
    char hex[HASH_HEX];
    bool equal = hash_equal(&self->checkpoint, &self->ledger.end.digest);
    fprintf(out, "  replicas\n");
    for (uint32_t i = 0; i < self->trainers_count; i++) {
        equal = equal && hash_equal(&self->digests[i], &self->ledger.end.digest);
        fprintf(out, "    trainer-%u       %-39s  %.32s\n", i + 1, note(self, i),
                hash_is_none(&self->digests[i]) ? "unknown" : hash_to_hex(&self->digests[i], hex));
    }
    fprintf(out, "    %-55s  %.32s\n", "checkpoint", hash_to_hex(&self->checkpoint, hex));
    fprintf(out, "    %-55s  %.32s\n    %s\n", "ledger", hash_to_hex(&self->ledger.end.digest, hex),
            equal ? "all equal: the same bits everywhere" : "NOT ALL EQUAL");
}

void demo_report_print_end(const struct demo_report *self, FILE *out, const char *last_words)
{
    fprintf(out, "  checkpoint        %s\n", self->checkpoint_path);
    fprintf(out, "  what it writes    %s%s\n\n", self->prompt, self->text);
    for (uint32_t i = 0; i < self->failures_count; i++)
        fprintf(out, "FAILED: %s\n", self->failures[i]);
    if (self->failures_count == 0) fprintf(out, "%s\n", last_words);
}

// ---- for programs -------------------------------------------------------------------------------

json_t *demo_report_to_json(const struct demo_report *self)
{
    char end[HASH_HEX], checkpoint[HASH_HEX];
    const struct ledger_report *ledger = &self->ledger;
    const double *nats = self->setup->text.nats;
    json_t *failures = json_array();
    for (uint32_t i = 0; i < self->failures_count; i++)
        json_array_append_new(failures, json_string(self->failures[i]));
    json_t *object = json_pack(
        "{s:s, s:b, s:o, s:o, s:[o, o, o], s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "schema",
        "shoal.demo.1", "ok", self->failures_count == 0, "failures", failures, "heldout_nats",
        shoal_number(self->heldout.nats), "baselines", shoal_number(nats[0]), shoal_number(nats[1]),
        shoal_number(nats[2]), "steps", (json_int_t)ledger->last_step, "epochs",
        (json_int_t)ledger->epochs, "commits", (json_int_t)ledger->commits, "voids",
        (json_int_t)ledger->voids, "samples", (json_int_t)ledger->samples, "parameters",
        (json_int_t)model_parameter_count(&self->setup->shape), "seconds",
        (json_int_t)self->seconds);
    json_t *rest =
        json_pack("{s:s, s:s, s:o, s:o, s:o}", "digest", hash_to_hex(&ledger->end.digest, end),
                  "checkpoint_digest", hash_to_hex(&self->checkpoint, checkpoint), "checkpoint",
                  shoal_text(self->checkpoint_path), "prompt", shoal_text(self->prompt), "text",
                  shoal_text(self->text));
    const bool whole = object && rest && json_object_update(object, rest) == 0;
    json_decref(rest);
    if (whole) return object;
    json_decref(object);
    return NULL;
}
