// override_test -- settings changed by a flag pass the checks of the file.

#include "common/config/override.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

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
    static const struct { const char *assignment, *says; } cases[] = {
        { "total_steps=5", "config.total_steps or model.LLM.lr_schedule.Cosine.total_steps" },
        { "base_rl=1", "did you mean base_lr" },
        { "betas=0.9,0.95", "no setting that counts" },       // AdamW is not chosen
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
        { "model.digest=00", "expected string" },
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

static void a_word_brings_settings_of_its_own(void **state)
{
    (void)state;
    struct run_config config = good();
    assert_null(config_override_missing(&config));
    assert_int_equal(config_override(&config, "lr_schedule=WarmupStableDecay", NULL), 0);
    assert_string_equal(config_override_missing(&config),
                        "model.LLM.lr_schedule.WarmupStableDecay.stable_steps");
    assert_int_equal(config_override(&config, "lr_schedule=Constant", NULL), 0);
    assert_null(config_override_missing(&config));         // base_lr and warm-up are Cosine's
    assert_int_equal(config_override(&config, "optimizer=AdamW", NULL), 0);
    assert_string_equal(config_override_missing(&config), "model.LLM.optimizer.AdamW.betas");
    assert_int_equal(config_override(&config, "betas=0.9,0.95", NULL), 0);
    assert_true(config.adamw_betas[0] == 0.9 && config.adamw_betas[1] == 0.95);
    assert_int_equal(config_override(&config, "betas=0.9", NULL), FAULT_USAGE);
    assert_int_equal(config_override(&config, "betas=0.9,1", NULL), FAULT_USAGE);
    assert_int_equal(config_override(&config, "betas=0.9,0.9,0.9", NULL), FAULT_USAGE);
    assert_int_equal(config_override(&config, "eps=1e-8", NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_setting_is_found_by_the_end_of_its_path),
        cmocka_unit_test(a_wrong_one_changes_nothing),
        cmocka_unit_test(a_word_brings_settings_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
