// What each strategy makes of a configuration, and that a run of kind "allreduce" takes the steps that
// `shoal train` takes from the same file.
#include "actors/coordinator/rules_shell.h"
#include "actors/coordinator/strategies_shell.h"
#include "common/learner/run_check.h"
#include "common/model/recipe.h"
#include "common/pace/pace.h"
#include "common/pace/rounds/rounds_config.h"
#include "common/run/table.h"
#include "tests/test.h"

#include <string.h>

#define GOLDEN "tests/golden/config/"
static struct config_faults faults;
static struct run_config config;
static struct rules rules;

static void take(const char *path)
{
    assert_int_equal(config_load_run(path, &config, &faults), 0);
    config.model_digest.bytes[3] = 7;
    rules_of_config(&config, &rules);
}

static void distro_fills_the_part_of_rounds(void **state)
{
    (void)state;
    take(GOLDEN "good.toml");
    assert_int_equal(rules.frame.strategy.kind, FRAME_ROUNDS_CONFIG);
    assert_int_equal(rounds_config(&rules)->chunk, 64);
    assert_int_equal(rounds_config(&rules)->witness_nodes, 1);
    assert_int_equal(rounds_config(&rules)->payload_bytes, 0);
    assert_true(hash_equal(&rules.genesis_digest, &config.model_digest));
    const struct run_model model = { .result_bytes = 123 };
    strategy_of(&config)->set_model(&model, &rules);
    assert_int_equal(rounds_config(&rules)->payload_bytes, 123);
    assert_int_equal(rounds_config(&rules)->chunk, 64);
}

static void allreduce_fills_the_part_of_windows(void **state)
{
    (void)state;
    take(GOLDEN "allreduce.toml");
    const struct wire_windows_config *part = rules_strategy(&rules);
    assert_int_equal(rules.frame.strategy.kind, FRAME_WINDOWS_CONFIG);
    assert_int_equal(part->lanes, 6);
    assert_int_equal(part->window_ms, 2000);
    assert_int_equal(part->step_timeout_ms, 2500);
    assert_int_equal(part->link, LINK_SEALED);
    assert_int_equal(part->connections, 1);
    assert_true(part->clip_norm == (double)0.7f); // As in a run of rounds: CONFIG had a float
    assert_true(part->weight_decay == 0.1 && part->eps == 1e-8);
    assert_true(part->beta1 == 0.9 && part->beta2 == 0.95);
    assert_int_equal(part->optimizer, DESCENT_ADAMW);
    assert_int_equal(part->batch_start, 4);
    assert_int_equal(part->batch_end, 12);
    assert_int_equal(part->batch_warmup_tokens, 65536);
    assert_int_equal(rules.train_ms, 0); // No limit: there are no rounds
    // The state has moments too, so model.digest is not the state's; it is the parameters'
    assert_true(hash_is_none(&rules.genesis_digest));
    assert_true(hash_equal(&rules.frame.genesis_digest, &config.model_digest));
    assert_null(strategy_of(&config)->set_model);
}

static void asynchronous_servers_fill_the_part_of_leases(void **state)
{
    (void)state;
    take(GOLDEN "async.toml");
    const struct wire_leases_config *part = rules_strategy(&rules);
    assert_int_equal(rules.frame.strategy.kind, FRAME_LEASES_CONFIG);
    assert_string_equal(pace_of(&rules)->name, "leases");
    assert_int_equal(part->servers, 3);
    assert_int_equal(part->push_every, 2);
    assert_int_equal(part->pull_every, 3);
    assert_true(part->staleness == 2.5 && !part->pass_barrier);
    assert_int_equal(part->task_samples, 96);
    assert_int_equal(part->strikes_max, 1);
    assert_int_equal(part->time_min_ms, 1000);
    assert_int_equal(part->time_max_ms, 90500);
    assert_int_equal(part->settle_ms, 12000);
    assert_int_equal(part->link, LINK_PLAIN);
    assert_int_equal(part->connections, 4);
    assert_int_equal(part->optimizer, DESCENT_ADAMW);
    assert_int_equal(part->batch_start, 8);
    assert_int_equal(part->batch_end, 12);
    assert_int_equal(part->batch_warmup_tokens, 65536);
    assert_string_equal(part->shared_dir, "/srv/saves");
    assert_int_equal(part->save_steps, 10);
    assert_int_equal(part->members_least, 2);
    assert_true(hash_is_none(&rules.genesis_digest)); // As of windows
    // The same words in a synchronous run
    take("config/demo/server.toml");
    assert_int_equal(rules.frame.strategy.kind, FRAME_WINDOWS_CONFIG);
}

// Every rate, batch and data position of the run is that of shoal train, to the bit.
static void the_steps_are_those_of_shoal_train(void **state)
{
    static struct wire_table_entry memory[64];
    (void)state;
    take(GOLDEN "allreduce.toml");
    const struct wire_windows_config *part = rules_strategy(&rules);
    const struct schedule schedule = recipe_schedule(&config);
    const struct cold_start cold = { 0, (uint32_t)config.cold_start_steps };
    struct table table;
    table_init(&table, memory, 32, 77, rules.first_position);
    uint64_t samples = 0, sample = config.progress_data_index;
    assert_int_equal(rules.first_step, config.progress_step - 1);
    for (uint64_t step = rules.first_step; step < rules.total_steps; step++) {
        struct interval dealt[16];
        uint32_t count;
        const uint32_t batch = schedule_batch_size(
            part->batch_start, part->batch_end, part->batch_warmup_tokens, samples * rules.seq_len);
        assert_int_equal(batch, recipe_batch_size(&config, samples));
        const float rate = schedule_rate(&rules.lr, (uint32_t)step + 1, NULL);
        const float its = schedule_rate(&schedule, (uint32_t)step + 1, &cold);
        assert_memory_equal(&rate, &its, sizeof rate);
        assert_int_equal(table_deal(&table, step + 1, batch, dealt, 16, &count), TABLE_OK);
        assert_int_equal(count, 1);
        assert_int_equal(dealt[0].begin, sample);
        assert_int_equal(dealt[0].end, sample + batch);
        assert_int_equal(table_done(&table, step + 1, dealt, count), TABLE_OK);
        samples += batch, sample += batch;
    }
    assert_int_equal(recipe_batch_size(&config, samples), 12); // It had grown on the way
}

TESTS(TEST(distro_fills_the_part_of_rounds), TEST(allreduce_fills_the_part_of_windows),
      TEST(asynchronous_servers_fill_the_part_of_leases), TEST(the_steps_are_those_of_shoal_train))
