// core_kinds -- the five cores, each as its shell would make it for the first message. A
// coordinator's rules follow from the conversation's bits.

#include "actors/checkpointer/checkpointer.h"
#include "actors/coordinator/coordinator.h"
#include "actors/data-provider/data_provider.h"
#include "actors/trainer/trainer.h"
#include "actors/witness/witness_actor.h"
#include "common/pace/rounds/rounds_member.h"
#include "tests/fuzz/talk.h"

enum rule_bits {
    STANDALONE = 1,
    BY_TIME = 2,
    PAUSED = 4,
    STRICT = 8,
    DATA = 16,
    GENESIS = 32,
    AUDITS = 64
};

static void init_coordinator(struct talk *talk)
{
    static const struct schedule lr = { .kind = SCHEDULE_COSINE,
                                        .warmup_steps = 3,
                                        .warmup_init_lr = 0.0001,
                                        .base_lr = 0.001,
                                        .total_steps = 1000 };
    const uint8_t bits = talk->rules;
    struct rules rules = { .run_id = "fuzz",
                           .run_seed = 7,
                           .waiting_ms = 500,
                           .warmup_ms = 4000,
                           .train_ms = 3000,
                           .witness_ms = 1000,
                           .cooldown_ms = 2000,
                           .epoch_rounds = bits & BY_TIME ? 0 : 3,
                           .epoch_ms = bits & BY_TIME ? 5000 : 0,
                           .total_steps = 6,
                           .start_paused = bits & PAUSED,
                           .min_clients = 2,
                           .init_min_clients = 2,
                           .batch_start = 3,
                           .batch_end = 5,
                           .batch_warmup_tokens = 100,
                           .seq_len = 16,
                           .cold_start_steps = 1,
                           .heartbeat_ms = 500,
                           .lease_ms = 4000,
                           .unhealthy_rounds = bits & STRICT ? 1 : 6,
                           .snapshot_rounds = 2,
                           .audit_secret = hash_of("secret", 6) };
    if (bits & GENESIS) rules.genesis_digest = hash_of("genesis", 7);
    rules.owner = event_people()[0].key;
    rules.config = hash_of("config", 6);
    rules.lr = lr;
    rules.frame = (struct wire_config){ .run = "fuzz",
                                        .config = rules.config,
                                        .genesis = "genesis",
                                        .seq_len = 16,
                                        .heartbeat_ms = 500,
                                        .lease_ms = 4000,
                                        .snapshot_rounds = 2,
                                        .total_steps = 6,
                                        .data = { .kind = bits & DATA ? DATA_SERVER : DATA_LOCAL,
                                                  .token_bytes = 2 } };
    const struct wire_rounds_config strategy = { .topk = 1,
                                                 .chunk = 1,
                                                 .witness_nodes = 2,
                                                 .witness_standalone = bits & STANDALONE,
                                                 .verification_percent = bits & AUDITS ? 40 : 0,
                                                 .payload_bytes = EVENT_PAYLOAD_BYTES };
    rules_set_strategy(&rules, FRAME_ROUNDS_CONFIG, &strategy, sizeof strategy);
    if (bits & DATA) rules.frame.data_digest = hash_of("data", 4);
    coordinator_init(talk->state, &rules);
}

static void init_trainer(struct talk *talk) { trainer_init(talk->state); }
static void init_witness(struct talk *talk) { witness_actor_init(talk->state); }
static void init_checkpointer(struct talk *talk) { checkpointer_init(talk->state); }

static void init_provider(struct talk *talk)
{
    struct member *member = talk->state;
    data_provider_init(talk->state);
    member->samples = 50;
    member->data = hash_of("data", 4);
}

const struct core talk_cores[TALK_CORES] = {
    { "coordinator", sizeof(struct coordinator), 0, init_coordinator, coordinator_step },
    { "trainer", sizeof(struct trainer), 1, init_trainer, trainer_step },
    { "witness", sizeof(struct witness_actor), 4, init_witness, witness_actor_step },
    { "checkpointer", sizeof(struct checkpointer), 5, init_checkpointer, checkpointer_step },
    { "data-provider", sizeof(struct data_provider), 6, init_provider, data_provider_step },
};

bool talk_is_coordinator(const struct talk *talk) { return talk->core->init == init_coordinator; }
bool talk_is_checkpointer(const struct talk *talk) { return talk->core->init == init_checkpointer; }

const struct round_view *talk_view(const struct talk *talk)
{
    const void *state = talk->state;
    const struct pace_part *pace = &((const struct data_provider *)state)->pace;
    if (talk->core->init == init_trainer) pace = &((const struct trainer *)state)->pace;
    if (talk->core->init == init_witness) pace = &((const struct witness_actor *)state)->pace;
    if (talk->core->init == init_checkpointer) pace = &((const struct checkpointer *)state)->pace;
    return &rounds_of(pace)->view;
}
