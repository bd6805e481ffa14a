// Data providers that lie, rot or hold another dataset: each is refused, another one is asked, and
// the run ends in the bits it would have ended in without them.

#include "tests/live/testbed.h"
#include "tests/test.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

static const struct testbed_options quiet = {
    .trainers = 3, .epoch_rounds = 8, .total_steps = 16, .train_s = 8, .no_checkpointer = true
};

static struct hash undisturbed(void)
{
    static struct hash digest; // Of one run for all
    if (!hash_is_none(&digest)) return digest;
    struct testbed *bed = testbed_new(&quiet);
    testbed_start_all(bed);
    struct testbed_end end = testbed_finish(bed);
    assert_int_equal(end.ledger.partial, 0);
    testbed_destroy(&bed);
    digest = end.digest;
    return digest;
}

static void shell(struct testbed *bed, const char *command)
{
    char line[1024];
    snprintf(line, sizeof line, "cd %s && %s", bed->dir, command);
    assert_int_equal(system(line), 0);
}

static bool is_named(struct testbed *bed, const char *liar)
{
    char endpoint[256], said[300];
    assert_true(testbed_log_has(bed, liar, " bulk=", endpoint, sizeof endpoint));
    endpoint[strcspn(endpoint, " \n")] = 0;
    snprintf(said, sizeof said, "data.refused provider=%s", endpoint);
    for (unsigned i = 0; i < quiet.trainers; i++)
        if (testbed_log_has(bed, testbed_trainer(i), said, NULL, 0)) return true;
    return false;
}

static void a_liar_is_named_and_another_is_asked(void **state)
{
    const struct hash digest = undisturbed();
    struct testbed *bed = *state = testbed_new(&quiet);
    char preload[300];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s/liar.so", bed->live);
    testbed_start(bed, "broker");
    testbed_start(bed, "coordinator");
    testbed_start(bed, "data-provider");
    testbed_await_log(bed, "data-provider", "member.admitted", TESTBED_WAIT_MS);
    assert_true(testbed_log_has(bed, "coordinator", "data.unpinned", NULL, 0));
    for (int i = 1; i <= 2; i++) { // Two of three: each trainer meets one
        const char *name = i == 1 ? "data-provider1" : "data-provider2";
        testbed_write_key(bed, name);
        testbed_start_with(
            bed, name, &(struct testbed_launch){ .env = (const char *const[]){ preload, NULL } });
        testbed_await_log(bed, name, "member.admitted", TESTBED_WAIT_MS);
    }
    // Another dataset, with a manifest that fits it, is not let in.
    shell(bed, "cp -r data other && printf x | dd of=other/text.bin bs=1 seek=777 conv=notrunc 2>&1"
               " && rm other/manifest.json && sed 's/\"data\"/\"other\"/' data.toml > other.toml");
    char manifest[600];
    snprintf(manifest, sizeof manifest, "%s/shoal manifest other --token-bytes 2 > /dev/null",
             bed->bin);
    shell(bed, manifest);
    testbed_write_key(bed, "data-provider3");
    testbed_start_with(bed, "data-provider3",
                       &(struct testbed_launch){
                           .args = (const char *const[]){ "--data-config", "other.toml", NULL } });
    testbed_actor(bed, "data-provider3")->may_end = true;
    assert_int_equal(testbed_await_end(bed, "data-provider3", TESTBED_WAIT_MS), EX_CONFIG);
    for (unsigned i = 0; i < quiet.trainers; i++) testbed_start(bed, testbed_trainer(i));
    struct testbed_end end = testbed_finish(bed);
    assert_true(is_named(bed, "data-provider1") || is_named(bed, "data-provider2"));
    assert_int_equal(end.ledger.partial, 0);
    assert_true(hash_equal(&end.digest, &digest));
}

// Flips one bit in each 64 bytes of a provider's text on the disk while the provider runs, and
// keeps the times of the file. A second call restores the text.
static void flip_bits(struct testbed *bed, const char *folder)
{
    char path[400];
    uint8_t byte;
    struct stat before;
    snprintf(path, sizeof path, "%s/%s/text.bin", bed->dir, folder);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &before) == 0);
    for (off_t at = 0; pread(fd, &byte, 1, at) == 1; at += 64) {
        byte ^= (uint8_t)(1 << at / 64 % 8);
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    assert_int_equal(futimens(fd, (struct timespec[]){ before.st_atim, before.st_mtim }), 0);
    close(fd);
}

// First one of two providers rots, then the other, the first being whole again: never both, so that
// what comes in between comes from the one that was not asked before.
static void bits_flip_under_a_provider_and_the_other_serves(void **state)
{
    const struct hash digest = undisturbed();
    struct testbed *bed = *state = testbed_new(&quiet);
    shell(bed, "cp -a data other && sed 's/\"data\"/\"other\"/' data.toml > other.toml");
    testbed_write_key(bed, "data-provider1");
    testbed_start(bed, "broker");
    testbed_start(bed, "coordinator");
    testbed_start(bed, "data-provider");
    testbed_await_log(bed, "data-provider", "member.admitted", TESTBED_WAIT_MS);
    testbed_start_with(bed, "data-provider1",
                       &(struct testbed_launch){
                           .args = (const char *const[]){ "--data-config", "other.toml", NULL } });
    testbed_await_log(bed, "data-provider1", "member.admitted", TESTBED_WAIT_MS);
    for (unsigned i = 0; i < quiet.trainers; i++) testbed_start(bed, testbed_trainer(i));
    testbed_await_step(bed, 3);
    flip_bits(bed, "data");
    testbed_await_step(bed, 8);
    flip_bits(bed, "data");
    flip_bits(bed, "other");
    struct testbed_end end = testbed_finish(bed);
    assert_int_equal(end.ledger.partial, 0);
    assert_true(hash_equal(&end.digest, &digest));
}

// The owner decides: a provider that comes first, with the right files in another order, is
// refused.
static void pinned_samples_keep_their_order(void **state)
{
    struct testbed *bed = *state = testbed_new(&quiet);
    char pin[700];
    snprintf(pin, sizeof pin,
             "printf '[data]\\ndataset_digest = \"%%s\"\\n' $(%s/shoal manifest "
             "--data-config data.toml | sed -n 's/^dataset_digest //p') >> state.toml",
             bed->bin);
    shell(bed, pin);
    shell(bed, "sed 's/\\[1, 2/[2, 1/' data.toml > other.toml; ! cmp -s data.toml other.toml");
    testbed_start(bed, "broker");
    testbed_start(bed, "coordinator");
    testbed_write_key(bed, "data-provider1");
    testbed_start_with(bed, "data-provider1",
                       &(struct testbed_launch){
                           .args = (const char *const[]){ "--data-config", "other.toml", NULL } });
    testbed_actor(bed, "data-provider1")->may_end = true;
    assert_int_equal(testbed_await_end(bed, "data-provider1", TESTBED_WAIT_MS), EX_CONFIG);
    assert_true(testbed_log_has(bed, "data-provider1", "[data] dataset_digest pins ", NULL, 0));
    testbed_start(bed, "data-provider");
    testbed_await_log(bed, "data-provider", "member.admitted", TESTBED_WAIT_MS);
    assert_false(testbed_log_has(bed, "coordinator", "data.unpinned", NULL, 0));
}

static void without_a_manifest_it_says_what_to_do(void **state)
{
    struct testbed *bed = *state = testbed_new(&quiet);
    shell(bed, "rm data/manifest.json");
    testbed_start(bed, "broker");
    testbed_start(bed, "data-provider");
    testbed_actor(bed, "data-provider")->may_end = true;
    assert_int_equal(testbed_await_end(bed, "data-provider", TESTBED_WAIT_MS), EX_NOINPUT);
    assert_true(testbed_log_has(bed, "data-provider", "make it with `shoal manifest ", NULL, 0));
}

TESTS(TESTBED_TEST(a_liar_is_named_and_another_is_asked),
      TESTBED_TEST(bits_flip_under_a_provider_and_the_other_serves),
      TESTBED_TEST(pinned_samples_keep_their_order),
      TESTBED_TEST(without_a_manifest_it_says_what_to_do))
