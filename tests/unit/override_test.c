// override_test -- settings changed by a flag pass the checks of the file.

#include "common/config/override.h"
#include "tests/test.h"

#include <string.h>

static struct config_faults faults;

static struct run_config good(void)
{
    struct run_config config;
    assert_int_equal(config_load_run("tests/golden/config/good.toml", &config, &faults), 0);
    return config;
}

static void a_setting_is_found_by_the_end_of_its_path(void **state)
{
    (void)state;
    struct run_config config = good();
    assert_int_equal(config_override(&config, "base_lr=2e-3", NULL), 0);
    assert_true(config.lr_base == 2e-3);
    assert_int_equal(config_override(&config, "config.total_steps=77", NULL), 0);
    assert_int_equal(config.total_steps, 77);
    assert_int_equal(config_override(&config, "Cosine.total_steps=55", NULL), 0);
    assert_int_equal(config.lr_total_steps, 55);
    assert_int_equal(config_override(&config, "quantize_1bit=false", NULL), 0);
    assert_false(config.quantize_1bit);
    assert_int_equal(config_override(&config, "warmup_time=2.5", NULL), 0);
    assert_int_equal(config.warmup_ms, 2500);
}

static void a_wrong_one_changes_nothing(void **state)
{
    static const struct {
        const char *assignment, *says;
    } cases[] = {
        { "total_steps=5", "config.total_steps or model.LLM.lr_schedule.Cosine.total_steps" },
        { "base_rl=1", "did you mean base_lr" },
        { "config.min_client=1", "did you mean config.min_clients?" },
        { "LLM.optimizer.Distro.compression_top=1",
          "did you mean LLM.optimizer.Distro.compression_topk?" },
        { "betas=0.9,0.95", "no setting of this name is in use" }, // AdamW is not chosen
        { "base_lr=11", "range 0..10" },
        { "base_lr=1e-3x", "expected number" },
        { "base_lr=", "expected number" },
        { "base_lr", "KEY=VALUE" },
        { "=3", "KEY=VALUE" },
        { "quantize_1bit=yes", "expected true or false" },
        { "global_batch_size_end=1.5", "expected integer" },
        { "global_batch_size_end=99999999999999999999", "expected integer" },
        { "lr_schedule=Cosin", "did you mean `Cosine`" },
        { "optimizer=Dummy", "a run learns" },
        { "run_id=a b", "holds a character" },
        { "model.digest=00", "in the file only; write model.digest into it" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct run_config config = good();
        const struct run_config before = config;
        struct why why = { 0 };
        assert_int_equal(config_override(&config, cases[i].assignment, &why), FAULT_USAGE);
        if (!strstr(why.text, cases[i].says)) fail_msg("%s: %s", cases[i].assignment, why.text);
        assert_memory_equal(&config, &before, sizeof config);
    }
}

static void set(struct run_config *config, const char *assignment)
{
    struct why why = { 0 };
    if (config_override(config, assignment, &why) < 0) fail_msg("%s", why.text);
}

static void check_says(const struct run_config *config, const char *says)
{
    struct why why = { 0 };
    const int rc = config_override_check(config, &why);
    assert_int_equal(rc, says ? FAULT_CONFIG : 0);
    if (says && !strstr(why.text, says)) fail_msg("%s lacks %s", why.text, says);
}

static void a_word_brings_settings_of_its_own(void **state)
{
    (void)state;
    struct run_config config = good();
    check_says(&config, NULL);
    set(&config, "lr_schedule=WarmupStableDecay");
    check_says(&config, "model.LLM.lr_schedule.WarmupStableDecay.stable_steps has no value");
    set(&config, "lr_schedule=Constant");
    check_says(&config, NULL); // base_lr and warm-up are Cosine's
    set(&config, "optimizer=AdamW");
    check_says(&config, "model.LLM.optimizer.AdamW.betas has no value");
    set(&config, "betas=0.9,0.95");
    assert_true(config.betas[0] == 0.9 && config.betas[1] == 0.95);
    assert_int_equal(config_override(&config, "betas=0.9", NULL), FAULT_USAGE);
    assert_int_equal(config_override(&config, "betas=0.9,1", NULL), FAULT_USAGE);
    assert_int_equal(config_override(&config, "betas=0.9,0.9,0.9", NULL), FAULT_USAGE);
    set(&config, "eps=1e-8");
    set(&config, "AdamW.weight_decay=0.1");
    check_says(&config, NULL); // Only a warning: it trains alone
}

// As tests/golden/config has files that break them.
static void flags_keep_the_rules_of_the_file(void **state)
{
    static const struct {
        const char *sets[8], *says;
    } cases[] = {
        { { "Cosine.total_steps=4", "warmup_steps=6" },
          "model.LLM.lr_schedule.Cosine.warmup_steps: 6 must be at most "
          "model.LLM.lr_schedule.Cosine.total_steps (4); the schedule includes its warm-up" },
        { { "warmup_steps=6", "Cosine.total_steps=6" }, NULL },
        // One flag alone is judged beside what the file says, also under another schedule's name
        { { "lr_schedule=Linear", "Linear.total_steps=4" },
          "Linear.warmup_steps: 20 must be at most model.LLM.lr_schedule.Linear.total_steps (4)" },
        { { "lr_schedule=Constant", "warmup_steps=4294967295" }, NULL },
        { { "compression_topk=4096", "compression_chunk=64" }, NULL },
        { { "compression_topk=4097", "compression_chunk=64" }, "than a square of" },
        { { "global_batch_size_start=17", "global_batch_size_end=16" }, "a batch grows" },
        { { "progress.step=78", "config.total_steps=77" }, "the run would be over" },
        { { "lease_time=2", "heartbeat_time=2" }, "must be below members.lease_time (2 s)" },
        { { "lease_time=1" }, "members.lease_time: 1 s must be above members.heartbeat_time" },
        { { "verification_percent=25" }, NULL },
        { { "epoch_time=600", "rounds_per_epoch=5" }, "config.epoch_time is set too" },
        { { "data_location=Http", "location=NumberedFiles", "url_template=http://a/{}{}",
            "start_index=0", "n_left_pad_zeros=0", "num_files=1", "shuffle=DontShuffle",
            "token_size_in_bytes=TwoBytes" },
          "must hold {} once" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct run_config config = good();
        for (size_t k = 0; k < 8 && cases[i].sets[k]; k++) set(&config, cases[i].sets[k]);
        check_says(&config, cases[i].says);
    }
}

TESTS(TEST(a_setting_is_found_by_the_end_of_its_path), TEST(a_wrong_one_changes_nothing),
      TEST(a_word_brings_settings_of_its_own), TEST(flags_keep_the_rules_of_the_file))
