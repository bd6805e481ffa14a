// rules -- comparisons first, all in one table, then rules that need code: what ends an epoch, the
// number of witnesses, compression, the cold start, the pins of the data, what the strategy needs.
// Warnings come last: data that nothing proves, trainers without work, AdamW, saves that never come. What only holds
// where nobody waits for anybody (strategy.server.mode) has a part of its own.

#include "common/config/rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/ensure.h"
#include "common/base/private_address.h"
#include "common/config/run_config.h"
#include "common/config/value.h"

enum relation { BELOW, AT_MOST };
#define LINEAR "model.LLM.lr_schedule.Linear."
#define COSINE "model.LLM.lr_schedule.Cosine."
#define WSD    "model.LLM.lr_schedule.WarmupStableDecay."
#define DISTRO "model.LLM.optimizer.Distro."

struct comparison {
    const char *a;
    enum relation relation;
    const char *b, *why;
};
static const struct comparison comparisons[] = {
    { "config.warmup_time", BELOW, "config.epoch_time", "an epoch must outlast its warm-up" },
    { "config.max_round_train_time", BELOW, "config.epoch_time", "a round must fit into an epoch" },
    { "members.lease_time", BELOW, "config.epoch_time", "a loss must be noticed within an epoch" },
    { "members.heartbeat_time", BELOW, "members.lease_time", "a lease is renewed before it ends" },
    { "config.min_clients", AT_MOST, "config.init_min_clients", "an epoch would end as it begins" },
    { "config.global_batch_size_start", AT_MOST, "config.global_batch_size_end", "a batch grows" },
    { "model.LLM.cold_start_warmup_steps", AT_MOST, "config.rounds_per_epoch",
      "a cold start must fit into an epoch" },
    { "progress.step", AT_MOST, "config.total_steps", "the run would be over" },
    { "ledger.map_mib_start", AT_MOST, "ledger.map_mib_max", "the ledger grows" },
    { LINEAR "warmup_steps", AT_MOST, LINEAR "total_steps", "the schedule includes its warm-up" },
    { COSINE "warmup_steps", AT_MOST, COSINE "total_steps", "the schedule includes its warm-up" },
    { WSD "cosine_decay_final_lr", AT_MOST, WSD "base_lr", "a decay goes down" },
    { WSD "linear_decay_final_lr", AT_MOST, WSD "cosine_decay_final_lr", "a decay goes down" },
};

// A setting of the configuration, found by its path.
struct setting {
    const struct config_key *key;
    const struct toml_node *node; // NULL: not in the file
    bool set;                     // By the file or by a flag
    bool right;                   // Its own type and range are right
    bool misspelt;                // It is not in the file, but a name near it is
    double number;                // In ms, if it is a time
};

static bool is_number(const struct config_key *key)
{
    return key->type == CONFIG_COUNT || key->type == CONFIG_SECONDS || key->type == CONFIG_REAL;
}

static struct setting setting_of(const struct config_load *load, const char *path)
{
    const struct config_key *key = config_key_find(load->schema, path);
    ensure(key);
    const size_t index = config_key_index(load->schema, key);
    const struct run_config *config = load->base;
    struct setting found = { .key = key,
                             .node = load->nodes[index],
                             .right = load->valid[index],
                             .misspelt = load->misspelt[index],
                             .set = config->origin.line[index] != 0 };
    if (found.right && is_number(key)) found.number = config_value_number(key, load->base);
    return found;
}

static void print_setting(const struct config_load *load, const struct setting *setting,
                          struct config_text *out)
{
    config_value_print(setting->key, load->base, out);
    if (setting->key->type == CONFIG_SECONDS) config_text_add(out, " s");
}

static bool is_default(const struct setting *setting)
{
    return !setting->set && setting->key->fallback.need == CONFIG_DEFAULT;
}

static void compare(struct config_load *load, const struct comparison *rule)
{
    const struct setting a = setting_of(load, rule->a), b = setting_of(load, rule->b);
    if (!a.right || !b.right || a.number < b.number) return;
    if (rule->relation == AT_MOST && a.number == b.number) return;

    const bool first = !is_default(&a); // The fault is put at a setting that is in the file
    const struct setting *here = first ? &a : &b, *there = first ? &b : &a;
    const char *must =
        rule->relation == BELOW ? (first ? "below" : "above") : (first ? "at most" : "at least");
    char bytes[CONFIG_FAULT_TEXT];
    struct config_text text = config_text_in(bytes, sizeof bytes);
    config_text_add(&text, "%s: ", here->key->path);
    print_setting(load, here, &text);
    config_text_add(&text, " must be %s %s (", must, there->key->path);
    print_setting(load, there, &text);
    config_text_add(&text, is_default(there) ? " by default)" : ")");
    config_load_fault(load, false, here->node, here->key->path, bytes, rule->why);
}

static void say_at(struct config_load *load, bool warns, const struct setting *setting,
                   const char *text, const char *note)
{
    char bytes[CONFIG_FAULT_TEXT];
    struct config_text out = config_text_in(bytes, sizeof bytes);
    config_text_add(&out, "%s: %s", setting->key->path, text);
    config_load_fault(load, warns, setting->node, setting->key->path, bytes, note);
}

static void fault_at(struct config_load *load, const struct setting *setting, const char *text,
                     const char *note)
{
    say_at(load, false, setting, text, note);
}

static void warn_at(struct config_load *load, const struct setting *setting, const char *text,
                    const char *note)
{
    say_at(load, true, setting, text, note);
}

// Exactly one of epoch_time and rounds_per_epoch ends an epoch.
static void check_epoch_end(struct config_load *load)
{
    const struct setting time = setting_of(load, "config.epoch_time");
    const struct setting rounds = setting_of(load, "config.rounds_per_epoch");
    if (time.set && rounds.set)
        fault_at(load, &rounds, "config.epoch_time is set too",
                 "exactly one of them ends an epoch; drop the other");
    const bool table = setting_of(load, "config.min_clients").set; // Else all of it is missing
    if (!time.set && !rounds.set && !time.misspelt && !rounds.misspelt && table)
        fault_at(load, &time, "missing, and so is config.rounds_per_epoch",
                 "exactly one of them ends an epoch");
}

// When the pieces are saved is said once, and where.
static void check_saves(struct config_load *load)
{
    const struct setting dir = setting_of(load, "checkpoint.shared_dir");
    const struct setting ways[] = { setting_of(load, "checkpoint.steps"),
                                    setting_of(load, "checkpoint.passes"),
                                    setting_of(load, "checkpoint.epochs") };
    const struct config_key *epochs = ways[2].key;
    const struct setting *first = NULL;
    bool misspelt = dir.misspelt;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        misspelt |= ways[i].misspelt;
        if (!ways[i].set) continue;
        char text[CONFIG_FAULT_TEXT];
        if (first) {
            snprintf(text, sizeof text, "%s is set too", first->key->path);
            fault_at(load, &ways[i], text,
                     ways[i].key == epochs
                         ? "epochs is another word for passes: set one of the three"
                         : "only one of 'steps' or 'passes' should be set");
        } else first = &ways[i];
    }
    if (misspelt) return;
    if (dir.set && !first)
        fault_at(load, &dir, "without checkpoint.steps or checkpoint.passes",
                 "one of them says how often the state is saved there");
    // Without it an asynchronous run ends an epoch for each save, which checkpointers write
    if (!dir.set && first && !config_is_async(load->base))
        fault_at(load, first, "without checkpoint.shared_dir", "that is where the state is saved");
}

// The coordinator's value goes to all trainers as it is. A relative path would begin in another folder
// at each of them.
static void check_shared_dir(struct config_load *load)
{
    const struct setting dir = setting_of(load, "checkpoint.shared_dir");
    const struct run_config *config = load->base;
    if (!dir.set || !dir.right || config->checkpoint_shared_dir[0] == '/') return;
    char text[CONFIG_FAULT_TEXT];
    snprintf(text, sizeof text, "\"%.200s\" is relative", config->checkpoint_shared_dir);
    fault_at(load, &dir, text,
             "write the whole path, from / on: every trainer opens the folder there");
}

static void check_witnesses(struct config_load *load)
{
    static const struct comparison rule = { "config.witness_nodes", AT_MOST, "config.min_clients",
                                            "witnesses are elected among the members" };
    const struct run_config *config = load->base;
    if (!config->witness_standalone) compare(load, &rule);
}

static void check_compression(struct config_load *load)
{
    const struct setting chunk = setting_of(load, DISTRO "compression_chunk");
    const struct setting topk = setting_of(load, DISTRO "compression_topk");
    if (chunk.right && topk.right && topk.number > chunk.number * chunk.number)
        fault_at(load, &topk, "more values than a square of compression_chunk has",
                 "at most compression_chunk times compression_chunk");
}

// Psyche's rule: the cold start must fit into the rounds between warm-up and end of an epoch.
static void check_cold_start(struct config_load *load)
{
    const struct setting steps = setting_of(load, "model.LLM.cold_start_warmup_steps");
    const struct setting epoch = setting_of(load, "config.epoch_time");
    const struct setting warmup = setting_of(load, "config.warmup_time");
    const struct setting round = setting_of(load, "config.max_round_train_time");
    if (!steps.right || !epoch.right || !warmup.right || !round.right ||
        warmup.number >= epoch.number)
        return;
    const uint64_t rounds = (uint64_t)(epoch.number - warmup.number) / (uint64_t)round.number;
    char note[CONFIG_FAULT_NOTE];
    struct config_text out = config_text_in(note, sizeof note);
    config_text_add(&out, "at most %" PRIu64 " = (epoch_time - warmup_time) / max_round_train_time",
                    rounds);
    if (steps.number > (double)rounds)
        fault_at(load, &steps, "a cold start must fit into an epoch", note);
}

static bool holds_number_once(const char *url)
{
    const char *place = strstr(url, "{}");
    return place && !strstr(place + 2, "{}");
}

static void check_template(struct config_load *load)
{
    const char *path = "model.LLM.data_location.Http.location.NumberedFiles.url_template";
    const struct config_key *key = config_key_find(load->schema, path);
    const size_t index = config_key_index(load->schema, key);
    const struct run_config *config = load->base;
    if (!load->valid[index]) return;
    if (!holds_number_once(config->http_url))
        config_load_fault(
            load, false, load->nodes[index], path,
            "model.LLM.data_location.Http.location.NumberedFiles.url_template: must hold {} once",
            "{} stands for the number of the file");
}

static void check_mirror(struct config_load *load)
{
    const struct setting mirror = setting_of(load, "data.mirror");
    const struct run_config *config = load->base;
    if (!mirror.right || !mirror.set || config->data_location == CONFIG_NONE) return;
    if (config->data_location != CONFIG_DATA_HTTP)
        fault_at(load, &mirror, "the data does not come over HTTP",
                 "only data_location Http has a mirror; drop it");
    else if (config->http_location == CONFIG_LOCATION_NUMBERED &&
             !holds_number_once(config->data_mirror))
        fault_at(load, &mirror, "must hold {} once", "{} stands for the number of the file");
}

// Each location of the data has its own pin. manifest_digest does not cover the order of the
// samples, which a data-provider chooses; with it alone the first provider that joins would decide
// the order.
static void check_pins(struct config_load *load)
{
    const struct setting manifest = setting_of(load, "data.manifest_digest"),
                         dataset = setting_of(load, "data.dataset_digest");
    const struct run_config *config = load->base;
    if (config->data_location == CONFIG_NONE) return;
    if (config->data_location == CONFIG_DATA_SERVER && manifest.set && manifest.right)
        fault_at(load, &manifest, "does not say in which order a data-provider has the samples",
                 "for data_location Server set data.dataset_digest instead, which shoal manifest "
                 "--data-config data.toml prints");
    if (config->data_location != CONFIG_DATA_SERVER && dataset.set && dataset.right)
        fault_at(load, &dataset, "the data does not come from data-providers",
                 "only data_location Server has them; set data.manifest_digest instead");
}

// Data without a pinned manifest is a warning, not an error: a first try needs no manifest.
static void check_proved(struct config_load *load)
{
    static const char pin_it[] = "shoal manifest DIR prints the digest to set";
    const struct setting pin = setting_of(load, "data.manifest_digest");
    const struct run_config *config = load->base;
    if ((pin.set && !pin.right) || !hash_is_none(&config->manifest_digest)) return;
    if (config->data_location == CONFIG_DATA_HTTP)
        config_load_fault(load, true, pin.node, pin.key->path,
                          "data.manifest_digest: not set, so "
                          "nothing proves what the web server sends",
                          pin_it);
    if (config->data_location == CONFIG_DATA_LOCAL)
        config_load_fault(load, true, pin.node, pin.key->path,
                          "data.manifest_digest: not set, so "
                          "nothing proves that all trainers' folders are the same",
                          pin_it);
}

// Distro is for results, the others are for sums of gradients. One of those with distro is a warning alone: it is right
// for one trainer alone (shoal train), and a coordinator refuses it (common/learner/run_check.h).
static void check_optimizer(struct config_load *load)
{
    const struct setting optimizer = setting_of(load, "model.LLM.optimizer");
    const struct run_config *config = load->base;
    if (!setting_of(load, "strategy.kind").right) return;
    const bool sums = config_sums(config);
    if (sums && config->optimizer == CONFIG_OPTIMIZER_DISTRO)
        fault_at(load, &optimizer, "Distro exchanges results, not gradients",
                 "a strategy.kind that sums gradients needs AdamW, Adam or SGD, as in "
                 "[model.LLM.optimizer.AdamW]");
    if (sums || !optimizer.right || config->optimizer == CONFIG_OPTIMIZER_DISTRO) return;
    config_load_fault(load, true, optimizer.node, optimizer.key->path,
                      "model.LLM.optimizer: AdamW, Adam and SGD exchange no results",
                      "shoal train learns with them alone; a run needs Distro, or strategy.kind = "
                      "\"allreduce\"");
}

static void check_nesterov(struct config_load *load)
{
    const struct setting nesterov = setting_of(load, "model.LLM.optimizer.SGD.nesterov");
    const struct run_config *config = load->base;
    if (config->optimizer != CONFIG_OPTIMIZER_SGD || !config->nesterov || config->momentum > 0)
        return;
    fault_at(load, &nesterov, "there is no momentum to look ahead along",
             "set momentum in [model.LLM.optimizer.SGD], 0.9 for example");
}

static void check_shares(struct config_load *load)
{
    const struct setting kind = setting_of(load, "strategy.kind");
    const struct run_config *config = load->base;
    if (!kind.right || !config_shares(config) || config_is_async(config) ||
        config->checkpoint_shared_dir[0])
        return;
    fault_at(
        load, &kind,
        config->strategy == CONFIG_STRATEGY_SERVER ? "server, and nothing is saved"
                                                   : "sharded, and nothing is saved",
        "set checkpoint.shared_dir, with steps or passes: what a member that dies held alone is "
        "read from there");
}

// A group that can never be: it would wait for ever.
static void check_servers(struct config_load *load)
{
    const struct setting servers = setting_of(load, "strategy.server.servers");
    const struct setting trainers = setting_of(load, "config.min_clients");
    if (!servers.right || !trainers.right || config_servers(load->base) == 0 ||
        servers.number + trainers.number <= CONFIG_GROUP_MAX)
        return;
    char text[CONFIG_FAULT_TEXT];
    snprintf(text, sizeof text, "%.0f servers and %.0f trainers (config.min_clients)",
             servers.number, trainers.number);
    fault_at(load, &servers, text, "a group has at most 64 members: set fewer");
}

// The coordinator does not see the links. But a broker at a public address has members elsewhere.
static void check_link(struct config_load *load)
{
    const struct setting link = setting_of(load, "strategy.link");
    const struct run_config *config = load->base;
    if (!config_sums(config) || !link.right || config->link != CONFIG_LINK_PLAIN ||
        !address_of_endpoint_is_public(config->broker_mail))
        return;
    char text[CONFIG_FAULT_TEXT];
    snprintf(text, sizeof text, "plain, but broker.mail = \"%.200s\" is a public address",
             config->broker_mail);
    fault_at(load, &link, text, "write aes-gcm: others read and change what is not encrypted");
}

// Allowed, but some trainers would have nothing to do. An allreduce trainer computes whole lanes, and some of them
// are empty if they are more than the sequences.
static void check_idle(struct config_load *load)
{
    const struct setting batch = setting_of(load, "config.global_batch_size_start");
    const struct setting end = setting_of(load, "config.global_batch_size_end");
    const struct setting lanes = setting_of(load, "strategy.lanes");
    const struct setting members = setting_of(load, "config.init_min_clients");
    const bool in_lanes = config_sums(load->base);
    if (config_is_async(load->base)) return; // Each trainer has batches of its own
    if (!batch.right || !members.right || (in_lanes && !lanes.right)) return;
    if (!setting_of(load, "strategy.kind").right) return;
    const struct setting *least = in_lanes && lanes.number < batch.number ? &lanes : &batch;
    const double wanted = in_lanes && lanes.number > members.number ? lanes.number : members.number;
    if (least->number >= wanted) return;
    char text[CONFIG_FAULT_TEXT], note[CONFIG_FAULT_NOTE], cut[32] = "";
    if (in_lanes)
        snprintf(cut, sizeof cut, " in %.0f lane%s", lanes.number, lanes.number == 1 ? "" : "s");
    snprintf(text, sizeof text, "%s: a batch of %.0f%s, for %.0f trainers or more",
             least->key->path, batch.number, cut, members.number);
    snprintf(note, sizeof note, "%sa step has work for at most %.0f of them",
             least == &batch && end.right && end.number > batch.number ? "at first " : "",
             least->number);
    config_load_fault(load, true, least->node, least->key->path, text, note);
}

// A comparison of two settings that are both set: allowed, but not what its author wants.
static void warn_above(struct config_load *load, const char *a, const char *b, const char *note)
{
    const struct setting above = setting_of(load, a), below = setting_of(load, b);
    char text[CONFIG_FAULT_TEXT];
    if (!above.right || !below.right || !above.set || !below.set || above.number <= below.number)
        return;
    snprintf(text, sizeof text, "%.0f is more than %s (%.0f)", above.number, b, below.number);
    warn_at(load, &above, text, note);
}

// Saves that are asked for and never made, or never needed. Only members with shares keep copies in memory.
static void check_vain_saves(struct config_load *load)
{
    const struct setting kind = setting_of(load, "strategy.kind");
    const struct setting every = setting_of(load, "strategy.memory_every");
    const struct setting buddies = setting_of(load, "strategy.buddies");
    const struct setting members = setting_of(load, "config.init_min_clients");
    const struct run_config *config = load->base;
    warn_above(load, "checkpoint.steps", "config.total_steps",
               config_is_async(config) && !config->checkpoint_shared_dir[0]
                   ? "no epoch ends for it before the run does"
                   : "the run never saves its state in shared_dir before its end");
    if (!kind.right || !config_shares(config)) return;
    warn_above(load, "strategy.memory_every", "config.total_steps",
               "no copy in memory is ever made");
    warn_above(load, "strategy.memory_every", "checkpoint.steps",
               "a save in shared_dir is always newer than the copies in memory");
    if (buddies.set && !every.set && !every.misspelt)
        warn_at(load, &buddies, "without strategy.memory_every",
                "no copies are made; set memory_every, or drop buddies");
    const uint32_t servers = config_servers(config);
    if (every.set && servers == 1)
        warn_at(
            load, &every, "one parameter server alone",
            "nobody else keeps a copy of its share; set strategy.server.servers = 2, or drop it");
    if (!every.set || !buddies.set || !buddies.right || !members.right) return;
    const double owners = servers ? servers : members.number;
    if (buddies.number == 1 || buddies.number < owners) return; // There is no fewer than 1
    char text[CONFIG_FAULT_TEXT];
    snprintf(text, sizeof text, "%.0f others, for %.0f %s%s%s", buddies.number, owners,
             servers ? "server" : "trainer", owners == 1 ? "" : "s", servers ? "" : " or more");
    warn_at(load, &buddies, text,
            servers ? "with so few servers each one keeps the shares of all others"
                    : "with so few trainers each one keeps the shares of all others");
}

// ---- strategy.server.mode = "async" ---------------------------------------------------------------

// Tasks are parts of a pass, and how long one is only a data-provider says.
static void check_async_data(struct config_load *load)
{
    const struct setting data = setting_of(load, "model.LLM.data_location");
    const struct run_config *config = load->base;
    char text[CONFIG_FAULT_TEXT];
    if (!data.right || !config_is_async(config) || config->data_location == CONFIG_DATA_SERVER)
        return;
    snprintf(text, sizeof text, "%s, and strategy.server.mode = \"async\" deals tasks of a pass",
             config_word_of(config->data_location)->name);
    fault_at(load, &data, text,
             "write { Server = \"data-provider\" } and start one: it says how long a pass is");
}

// PaddlePaddle's rule: a task is much larger than a batch.
static void check_task(struct config_load *load)
{
    const struct setting task = setting_of(load, "strategy.server.task_samples");
    const struct setting batch = setting_of(load, "config.global_batch_size_end");
    char text[CONFIG_FAULT_TEXT], note[CONFIG_FAULT_NOTE];
    if (!task.right || !batch.right || !config_is_async(load->base) ||
        task.number >= CONFIG_TASK_BATCHES * batch.number)
        return;
    snprintf(text, sizeof text, "%.0f, and a batch has %.0f (config.global_batch_size_end)",
             task.number, batch.number);
    snprintf(note, sizeof note, "a task should have %d batches: write %.0f or more",
             CONFIG_TASK_BATCHES, CONFIG_TASK_BATCHES * batch.number);
    warn_at(load, &task, text, note);
}

// With trainers of one speed all push as often, so that many pushes of each of them lie between its pull and the last
// push that is computed at it.
static void check_staleness(struct config_load *load)
{
    const struct setting push = setting_of(load, "strategy.server.push_every");
    const struct setting pull = setting_of(load, "strategy.server.pull_every");
    const struct setting staleness = setting_of(load, "strategy.server.staleness");
    const struct run_config *config = load->base;
    char text[CONFIG_FAULT_TEXT], note[CONFIG_FAULT_NOTE];
    if (!push.right || !pull.right || !staleness.right || !config_is_async(config)) return;
    const uint64_t pushes = (config->pull_every + config->push_every - 1) / config->push_every;
    if ((double)pushes <= staleness.number) return;
    snprintf(text, sizeof text, "%g, and a trainer pushes %" PRIu64 " times between two pulls",
             staleness.number, pushes);
    snprintf(note, sizeof note, "the later ones come too late: write %" PRIu64 ", or pull as often",
             pushes);
    warn_at(load, &staleness, text, note);
}

void config_run_rules(struct config_load *load)
{
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++)
        compare(load, &comparisons[i]);
    check_epoch_end(load);
    check_saves(load);
    check_shared_dir(load);
    check_witnesses(load);
    check_compression(load);
    check_cold_start(load);
    check_template(load);
    check_mirror(load);
    check_pins(load);
    check_link(load);
    check_shares(load);
    check_servers(load);
    check_proved(load);
    check_idle(load);
    check_optimizer(load);
    check_nesterov(load);
    check_vain_saves(load);
    check_async_data(load);
    check_task(load);
    check_staleness(load);
}
