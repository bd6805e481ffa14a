// A run with samples over HTTP, from two web servers of the test: at first neither answers, then
// one lies, then the other dies. Each is named in the trainers' logs, and the run ends in the bits
// it would have ended in without that.

#include "tests/live/testbed.h"
#include "tests/unit/web_fixture.h"
#include "common/data/manifest.h"
#include "tests/test.h"

enum { TURN_STEP = 7 };

static const struct testbed_options quiet = { .trainers = 3,
                                              .epoch_rounds = 8,
                                              .total_steps = 16,
                                              .train_s = 8,
                                              .no_checkpointer = true,
                                              .verification_percent = 25 };
static struct web webs[2];

static struct testbed *web_run(void)
{
    struct testbed *bed = testbed_new(&quiet);
    char path[300], state[8192], web[9000], hex[HASH_HEX];
    struct manifest manifest;
    struct why why = { 0 };
    snprintf(path, sizeof path, "%s/data", bed->dir);
    assert_int_equal(manifest_read(path, &why, &manifest), 0);
    hash_to_hex(&manifest.digest, hex);
    manifest_free(&manifest);
    for (int i = 0; i < 2; i++) web_start(&webs[i], path);
    snprintf(path, sizeof path, "%s/state.toml", bed->dir);
    testbed_read_file(path, state, sizeof state);
    static const char server[] = "Server = \"data-provider\"\n";
    const char *at = strstr(state, server);
    assert_non_null(at);
    const int count =
        snprintf(web, sizeof web,
                 "%.*sHttp = { token_size_in_bytes = \"TwoBytes\", shuffle = \"DontShuffle\", "
                 "location = { SingleUrl = \"http://127.0.0.1:%u/text.bin\" } }\n%s"
                 "[data]\nmanifest_digest = \"%s\"\nmirror = \"http://127.0.0.1:%u/text.bin\"\n",
                 (int)(at - state), state, webs[0].server.port, at + sizeof server - 1, hex,
                 webs[1].server.port);
    testbed_write_file(bed, "state.toml", web, (size_t)count);
    testbed_start(bed, "broker");
    testbed_start(bed, "coordinator");
    return bed;
}

static struct testbed_end finish(struct testbed **bed)
{
    struct testbed_end end = testbed_finish(*bed);
    testbed_destroy(bed);
    for (int i = 0; i < 2; i++) web_stop(&webs[i]);
    return end;
}

// How many trainers said of this server's samples: "text.bin: ...".
static unsigned who_named(struct testbed *bed, const struct web *web, const char *what)
{
    char said[200];
    unsigned found = 0;
    snprintf(said, sizeof said, "data.refused reason=\"http://127.0.0.1:%u/text.bin: %s",
             web->server.port, what);
    for (unsigned i = 0; i < quiet.trainers; i++)
        found += testbed_log_has(bed, testbed_trainer(i), said, NULL, 0);
    return found;
}

static void a_liar_or_a_dead_server_is_named_and_the_mirror_asked(void **state)
{
    struct testbed *bed = *state = web_run();
    for (unsigned i = 0; i < quiet.trainers; i++) testbed_start(bed, testbed_trainer(i));
    const struct hash digest = finish(&bed).digest;

    bed = *state = web_run();
    for (int i = 0; i < 2; i++) webs[i].mischief = WEB_HANGS_UP;
    for (unsigned i = 0; i < quiet.trainers; i++) testbed_start(bed, testbed_trainer(i));
    for (unsigned i = 0; i < quiet.trainers; i++)
        testbed_await_log(bed, testbed_trainer(i), "data.unavailable", TESTBED_WAIT_MS);
    snprintf(webs[0].only, sizeof webs[0].only, "text"); // Samples, not the manifest
    webs[0].mischief = WEB_FLIPS;
    webs[1].mischief = WEB_HONEST;
    testbed_await_step(bed, TURN_STEP);
    assert_int_equal(who_named(bed, &webs[1], "text.bin: the MiB"), 0);
    assert_true(who_named(bed, &webs[0], "text.bin: the MiB") > 0);
    webs[0].mischief = WEB_HONEST;
    webs[1].mischief = WEB_HANGS_UP;
    testbed_await_step(bed, quiet.total_steps);
    assert_true(who_named(bed, &webs[1], "Server returned nothing") > 0);
    struct testbed_end end = finish(&bed);
    *state = NULL;
    assert_int_equal(end.ledger.partial, 0);
    assert_true(hash_equal(&end.digest, &digest));
}

TESTS(TESTBED_TEST(a_liar_or_a_dead_server_is_named_and_the_mirror_asked))
