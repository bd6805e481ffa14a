// learner_audit_test -- a result that is made again is the same to the bit, however the recomputation is
// asked for: at once or with its gradient ahead, after jobs of other results, and steps later. And a commit is
// applied without the results that are not valid.

#include "tests/unit/bulk_fixture.h"
#include "tests/unit/rounds_learner_fixture.h"

enum { STEP = 5 };

static struct learner_options options;
static struct worker *worker;
static const struct interval ours = { 0, 6 }, others = { 6, 13 };
static const struct hash none;

static int set_up(void **state)
{
    if (folder_set_up(state) != 0) return -1;
    options = (struct learner_options){ .identity = fixture_identity(),
                                        .run_id = "r",
                                        .trains = true,
                                        .threads = 1,
                                        .micro_batch = 1 };
    write_tokens(1000, true);
    assert_int_equal(compute_find("cpu", NULL, &options.device), 0);
    assert_int_equal(blob_store_new(NULL, NULL, &options.store), 0);
    worker = worker_new(PORT_LEARNER, learner_body, &options);
    build(worker, 25);
    load(worker, options.store, STEP);
    return 0;
}

static int tear_down(void **state)
{
    worker_destroy(&worker);
    blob_store_destroy(&options.store);
    return folder_tear_down(state);
}

static uint32_t rate_bits(void)
{
    const float rate = 0.01f;
    uint32_t bits;
    memcpy(&bits, &rate, sizeof bits);
    return bits;
}

// Trains these samples at `step`. The answer as an audit of it.
static struct wire_audit train(uint64_t step, const struct interval *samples)
{
    const uint64_t round = step + 1;
    tell(worker, FRAME_TRAIN,
         &(struct wire_train){ .round = round,
                               .step = step,
                               .lr_bits = rate_bits(),
                               .samples = samples,
                               .samples_count = 1 });
    const struct wire_trained *trained = hear(worker, FRAME_TRAINED);
    assert_string_equal(trained->reason, "");
    struct wire_audit audit = { .round = round,
                                .step = step,
                                .lr_bits = rate_bits(),
                                .payload = trained->payload,
                                .payload_bytes = trained->payload_bytes,
                                .base = trained->base,
                                .residual_from = trained->residual_from,
                                .residual_to = trained->residual_to,
                                .intervals = 1 };
    audit.result = hash_of(&audit, sizeof audit);
    return audit;
}

// The commit of our result, and of `other`'s, if it is not none. Returns the digest behind it.
static struct hash apply_both(const struct wire_audit *result, const struct hash *other)
{
    const struct wire_blob payloads[] = { { result->payload, result->payload_bytes },
                                          { *other, result->payload_bytes } };
    tell(worker, FRAME_APPLY,
         &(struct wire_apply){ .step = result->step,
                               .lr_bits = result->lr_bits,
                               .payloads = payloads,
                               .payloads_count = hash_is_none(other) ? 1 : 2,
                               .own_payload = result->payload });
    const struct wire_applied *applied = hear(worker, FRAME_APPLIED);
    assert_string_equal(applied->reason, "");
    assert_true(applied->ok && applied->step == result->step + 1);
    return applied->digest;
}

static void apply(const struct wire_audit *result) { apply_both(result, &none); }

static void tell_recompute(const struct wire_audit *audit, const struct interval *samples,
                           const struct hash *residual, bool ahead)
{
    tell(worker, FRAME_RECOMPUTE,
         &(struct wire_recompute){ .round = audit->round + 1,
                                   .audit = *audit,
                                   .samples = samples,
                                   .samples_count = 1,
                                   .residual = *residual,
                                   .ahead = ahead });
}

static void assert_finding(uint8_t finding)
{
    const struct wire_finding *found = hear(worker, FRAME_RECOMPUTED);
    assert_string_equal(found->reason, "");
    assert_int_equal(found->finding, finding);
}

static void the_gradient_may_come_ahead(void **state)
{
    (void)state;
    const struct wire_audit audit = train(STEP, &ours);
    apply(&audit);
    tell_recompute(&audit, &ours, &none, false);
    assert_finding(FINDING_SAME);
    tell_recompute(&audit, &ours, &none, true); // No answer: the next one is of the job after it
    tell_recompute(&audit, &ours, &none, false);
    assert_finding(FINDING_SAME);
    struct wire_audit lie = audit;
    lie.payload.bytes[0] ^= 1;
    tell_recompute(&lie, &ours, &none, false);
    assert_finding(FINDING_DIFFERENT);
}

static void the_gradient_of_another_result_is_not_taken(void **state)
{
    (void)state;
    const struct wire_audit first = train(STEP, &others), second = train(STEP, &ours);
    apply(&second);
    tell_recompute(&first, &others, &none, true);
    tell_recompute(&second, &ours, &none, false);
    assert_finding(FINDING_SAME);
    tell_recompute(&second, &ours, &none, true);
    train(STEP + 1, &others); // Its gradient takes that one's place
    tell_recompute(&second, &ours, &none, false);
    assert_finding(FINDING_SAME);
}

static void nor_are_the_parameters_of_another_step(void **state)
{
    (void)state;
    const struct wire_audit first = train(STEP, &ours);
    apply(&first);
    const struct wire_audit second = train(STEP + 1, &others);
    apply(&second);
    tell_recompute(&first, &ours, &none, false); // Made again from the pin
    assert_finding(FINDING_SAME);
    tell(worker, FRAME_SHOW, &(struct wire_show){ second.round, second.residual_from });
    const struct wire_shown *shown = hear(worker, FRAME_SHOWN);
    assert_true(shown->ok);
    const struct hash residual = shown->blob.hash;
    tell_recompute(&second, &others, &residual, true);
    tell_recompute(&second, &others, &residual, false);
    assert_finding(FINDING_SAME);
}

// Another residual than the claimed one says nothing about the result.
static void a_false_residual_is_withheld(void **state)
{
    (void)state;
    const struct wire_audit first = train(STEP, &ours);
    apply(&first);
    struct wire_audit second = train(STEP + 1, &others);
    apply(&second);
    tell(worker, FRAME_SHOW, &(struct wire_show){ second.round, second.residual_from });
    const struct wire_shown *shown = hear(worker, FRAME_SHOWN);
    assert_true(shown->ok);
    const struct hash residual = shown->blob.hash;
    second.residual_from.bytes[0] ^= 1;
    tell_recompute(&second, &others, &residual, true);
    tell_recompute(&second, &others, &residual, false);
    const struct wire_finding *found = hear(worker, FRAME_RECOMPUTED);
    assert_int_equal(found->finding, FINDING_WITHHELD);
}

// All members leave out the same, as all have the same bytes. What we made ourselves is not looked at again.
static void a_result_that_is_not_valid_is_left_out(void **state)
{
    struct wire_audit own = train(STEP, &ours);
    const struct hash alone = apply_both(&own, &none);
    tear_down(state);
    assert_int_equal(set_up(state), 0);
    // A result of other samples, with another header
    const struct hash spoilt = train(STEP, &others).payload;
    struct blob_ref ref;
    struct hash other;
    assert_int_equal(blob_store_get(options.store, &spoilt, NULL, &ref), 0);
    uint8_t *bytes = malloc(ref.count);
    assert_non_null(bytes);
    memcpy(bytes, ref.bytes, ref.count);
    blob_store_release(&ref);
    bytes[0] ^= 0xff;
    assert_int_equal(blob_store_put(options.store, bytes, own.payload_bytes, NULL, &other), 0);
    free(bytes);
    own = train(STEP, &ours);
    const struct hash both = apply_both(&own, &other);
    assert_true(hash_equal(&both, &alone));
}

TESTS(cmocka_unit_test_setup_teardown(the_gradient_may_come_ahead, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_gradient_of_another_result_is_not_taken, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(nor_are_the_parameters_of_another_step, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_false_residual_is_withheld, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_result_that_is_not_valid_is_left_out, set_up, tear_down))
