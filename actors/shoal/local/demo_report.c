// demo_report -- judges the demo first, then prints it. The verdict checks in this order: the size
// of the model, the held-out loss against the order-1 baseline, the ledger (steps, samples, shares,
// evidence), the digests of all replicas and of the checkpoint, and the two kills. A check that
// fails adds one sentence; the demo has passed when there is none. The table and the JSON print the
// same numbers and decide nothing.

#include "actors/shoal/local/demo_report.h"
#include "actors/shoal/show.h"
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

// ---- what each trainer did ----------------------------------------------------------------------

static const struct report_member *member_of(const struct demo_report *self, const struct key *key)
{
    for (uint32_t i = 0; i < self->ledger.members_count; i++)
        if (key_equal(&self->ledger.members[i].key, key)) return &self->ledger.members[i];
    return NULL;
}

static double share_of(const struct demo_report *self, int trainer)
{
    const struct report_member *member = member_of(self, &self->trainers[trainer]);
    if (!member || self->ledger.samples == 0) return 0;
    return (double)member->samples / (double)self->ledger.samples;
}

// ---- the verdict --------------------------------------------------------------------------------

__attribute__((format(printf, 2, 3))) static void fail(struct demo_report *self, const char *format,
                                                       ...)
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
    for (int i = 0; i < DEMO_TRAINERS; i++)
        if (hash_is_none(&self->digests[i]))
            fail(self, "trainer-%d never said with which digest it ended", i + 1);
        else if (!hash_equal(&self->digests[i], &self->ledger.end.digest))
            fail(self, "trainer-%d ended with digest %.16s, the ledger has %.16s", i + 1,
                 hash_to_hex(&self->digests[i], a), hash_to_hex(&self->ledger.end.digest, b));
    if (!hash_equal(&self->checkpoint, &self->ledger.end.digest))
        fail(self, "the checkpoint has digest %.16s, the ledger has %.16s",
             hash_to_hex(&self->checkpoint, a), hash_to_hex(&self->ledger.end.digest, b));
}

static void judge_ledger(struct demo_report *self)
{
    const struct ledger_report *ledger = &self->ledger;
    uint64_t total = self->setup->config.total_steps;
    if (ledger->last_step < total)
        fail(self, "step %" PRIu64 " of %" PRIu64 " was reached", ledger->last_step, total);
    if (ledger->commits < DEMO_COMMITS_MIN)
        fail(self, "%" PRIu64 " commits, fewer than %d", ledger->commits, DEMO_COMMITS_MIN);
    if (ledger->epochs < DEMO_EPOCHS_MIN)
        fail(self, "%" PRIu64 " epochs, fewer than %d", ledger->epochs, DEMO_EPOCHS_MIN);
    if (ledger->steps_twice || ledger->steps_skipped)
        fail(self, "%" PRIu64 " steps committed twice, %" PRIu64 " skipped", ledger->steps_twice,
             ledger->steps_skipped);
    if (ledger->samples_twice)
        fail(self, "%" PRIu64 " samples committed twice", ledger->samples_twice);
    if (ledger->lacked_quorum[0])
        fail(self, "the ledger does not prove itself: %s", ledger->lacked_quorum);
    for (int i = 0; i < DEMO_TRAINERS; i++)
        if (share_of(self, i) < 0.1)
            fail(self, "trainer-%d supplied %.1f %% of the samples, less than 10 %%", i + 1,
                 100 * share_of(self, i));
}

void demo_report_judge(struct demo_report *self)
{
    const struct model_shape *shape = &self->setup->shape;
    if (shape->layers < DEMO_LAYERS_MIN || model_parameter_count(shape) < DEMO_PARAMETERS_MIN)
        fail(self, "the model has %u layers and %" PRIu64 " parameters, less than %d and %d",
             shape->layers, model_parameter_count(shape), DEMO_LAYERS_MIN, DEMO_PARAMETERS_MIN);
    if (!(self->heldout.nats < self->setup->text.nats[1]))
        fail(self, "held-out loss %.4f is not below the order-1 baseline %.4f", self->heldout.nats,
             self->setup->text.nats[1]);
    judge_ledger(self);
    judge_digests(self);
    for (int i = 0; i < DEMO_KILLS; i++)
        if (self->kills[i].state == KILL_WAITING)
            fail(self, "%s was not killed", self->kills[i].name);
        else if (self->kills[i].state == KILL_DOWN)
            fail(self, "%s was killed and did not commit again", self->kills[i].name);
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

static void print_kills(const struct demo_report *self, FILE *out)
{
    for (int i = 0; i < DEMO_KILLS; i++) {
        const struct demo_kill *kill = &self->kills[i];
        if (kill->state != KILL_BACK) continue;
        fprintf(out,
                "  kill -9           %s in RoundTrain of round %" PRIu64 "; %s %" PRIu64
                " rounds and %.1f s later\n",
                kill->name, kill->round,
                key_is_none(&kill->key) ? "first commit" : "its next commit",
                kill->back_round - kill->round, (double)(kill->back_ms - kill->ms) / 1000);
    }
}

static void print_replicas(const struct demo_report *self, FILE *out)
{
    char hex[HASH_HEX];
    bool equal = hash_equal(&self->checkpoint, &self->ledger.end.digest);
    fprintf(out, "  replicas\n");
    for (int i = 0; i < DEMO_TRAINERS; i++) {
        const struct report_member *member = member_of(self, &self->trainers[i]);
        equal = equal && hash_equal(&self->digests[i], &self->ledger.end.digest);
        fprintf(out,
                "    trainer-%d       %5.1f %% of the samples in %4" PRIu64 " results   %.32s\n",
                i + 1, 100 * share_of(self, i), member ? member->results : 0,
                hash_is_none(&self->digests[i]) ? "unknown" : hash_to_hex(&self->digests[i], hex));
    }
    fprintf(out, "    %-55s  %.32s\n", "checkpoint", hash_to_hex(&self->checkpoint, hex));
    fprintf(out, "    %-55s  %.32s\n    %s\n", "ledger", hash_to_hex(&self->ledger.end.digest, hex),
            equal ? "all equal: the same bits everywhere" : "NOT ALL EQUAL");
}

void demo_report_print(const struct demo_report *self, FILE *out)
{
    const struct ledger_report *ledger = &self->ledger;
    char a[SHOW_MAX], b[SHOW_MAX];
    fprintf(out, "\nResult of the demo\n\n");
    print_loss(self, out);
    fprintf(out,
            "  run               %" PRIu64 " steps, %" PRIu64 " epochs, %" PRIu64
            " commits, %" PRIu64 " void round%s, in %s\n",
            ledger->last_step, ledger->epochs, ledger->commits, ledger->voids,
            show_s(ledger->voids), show_duration((double)self->seconds, a));
    fprintf(out,
            "  trained           %" PRIu64 " samples of %" PRIu64
            " bytes: %s bytes, each sample in one commit\n",
            ledger->samples, self->setup->config.max_seq_len,
            show_count((double)(ledger->samples * self->setup->config.max_seq_len), b));
    print_kills(self, out);
    print_replicas(self, out);
    fprintf(out, "  checkpoint        %s\n", self->checkpoint_path);
    fprintf(out, "  what it writes    %s%s\n\n", self->prompt, self->text);
    for (uint32_t i = 0; i < self->failures_count; i++)
        fprintf(out, "FAILED: %s\n", self->failures[i]);
    if (self->failures_count == 0)
        fprintf(out, "Four trainers trained one model. Two processes were killed on the way. All "
                     "replicas hold "
                     "the same bits.\n");
}

// ---- for programs -------------------------------------------------------------------------------

static json_t *replicas_to_json(const struct demo_report *self)
{
    char hex[HASH_HEX];
    json_t *list = json_array();
    for (int i = 0; i < DEMO_TRAINERS; i++) {
        const struct report_member *member = member_of(self, &self->trainers[i]);
        json_array_append_new(list, json_pack("{s:i, s:f, s:I, s:I, s:s}", "trainer", i + 1,
                                              "share", share_of(self, i), "samples",
                                              (json_int_t)(member ? member->samples : 0), "results",
                                              (json_int_t)(member ? member->results : 0), "digest",
                                              hash_to_hex(&self->digests[i], hex)));
    }
    return list;
}

static json_t *kills_to_json(const struct demo_report *self)
{
    static const char *const states[] = { "not killed", "killed", "back" };
    json_t *list = json_array();
    for (int i = 0; i < DEMO_KILLS; i++) {
        const struct demo_kill *kill = &self->kills[i];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:I, s:I, s:f}", "name", kill->name, "state", states[kill->state],
                      "round", (json_int_t)kill->round, "back_round", (json_int_t)kill->back_round,
                      "seconds",
                      kill->state == KILL_BACK ? (double)(kill->back_ms - kill->ms) / 1000 : 0.0));
    }
    return list;
}

json_t *demo_report_to_json(const struct demo_report *self)
{
    char end[HASH_HEX], checkpoint[HASH_HEX];
    const struct ledger_report *ledger = &self->ledger;
    const double *nats = self->setup->text.nats;
    json_t *failures = json_array();
    for (uint32_t i = 0; i < self->failures_count; i++)
        json_array_append_new(failures, json_string(self->failures[i]));
    json_t *object =
        json_pack("{s:s, s:b, s:o, s:f, s:[f, f, f], s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "schema",
                  "shoal.demo.1", "ok", self->failures_count == 0, "failures", failures,
                  "heldout_nats", self->heldout.nats, "baselines", nats[0], nats[1], nats[2],
                  "steps", (json_int_t)ledger->last_step, "epochs", (json_int_t)ledger->epochs,
                  "commits", (json_int_t)ledger->commits, "voids", (json_int_t)ledger->voids,
                  "samples", (json_int_t)ledger->samples, "parameters",
                  (json_int_t)model_parameter_count(&self->setup->shape), "seconds",
                  (json_int_t)self->seconds);
    json_t *rest = json_pack("{s:s, s:s, s:s, s:o, s:o, s:s, s:s}", "digest",
                             hash_to_hex(&ledger->end.digest, end), "checkpoint_digest",
                             hash_to_hex(&self->checkpoint, checkpoint), "checkpoint",
                             self->checkpoint_path, "replicas", replicas_to_json(self), "kills",
                             kills_to_json(self), "prompt", self->prompt, "text", self->text);
    if (!object || !rest || json_object_update(object, rest) != 0) return NULL;
    json_decref(rest);
    return object;
}
