// cores -- each actor's core, driven by a conversation (events.h) that any senders could hold with
// it: members, strangers, liars, a coordinator that contradicts itself. What its own process
// answers (learner, fetcher, disk) is true, but may fail and may come at any time.
//
// A core dies of nothing that comes from outside: every ensure that is reached is a finding. After
// each step its effects are held against what may be said at all; at the end of a life, the
// coordinator's records against its state, and a member's promises against its journal.

#include "actors/checkpointer/checkpointer.h"
#include "actors/coordinator/coordinator.h"
#include "actors/data-provider/data_provider.h"
#include "actors/trainer/trainer.h"
#include "actors/witness/witness_actor.h"
#include "common/base/ensure.h"
#include "common/pace/rounds/claims.h"
#include "common/pace/rounds/rounds_config.h"
#include "common/pace/rounds/rounds_member.h"
#include "tests/fuzz/cores.h"
#include "tests/fuzz/events.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/honest.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// Of one step, far less than the shell has room for.
enum {
    EFFECTS_MAX = 2048,
    OUTBOX_BYTES = 16 << 20,
    JOBS_MAX = 32,
    RECORDS_BYTES = 8 << 20,
    WAKES_MAX = 24,
    EVENTS_PER_INPUT = 400,
    STORED_MAX = 64,
    FRAME_BYTES = 65536
};

struct job {
    uint16_t kind;
    uint32_t bytes;
    uint8_t *body;
};

// One conversation: what the core's process would keep for it.
struct talk {
    const struct core *core;
    struct core_counts *counts;
    void *state;
    uint64_t now_ms, alarm_ms, life;
    uint64_t reborn; // How often the coordinator that speaks to us has restarted
    uint8_t rules;   // Bits of other settings: enum rule_bits
    bool quits;
    struct outbox out;
    struct wire_arena arena, scratch;
    struct event_memory memory;
    struct honest honest;                               // The senders that speak to it
    struct hash residual, candidate, candidate_payload; // The learner's
    struct job jobs[JOBS_MAX];
    uint32_t jobs_count;
    // What a crash leaves: the ledger's records, or the journal, the blob store and the checkpoint.
    uint8_t *records;
    size_t records_bytes;
    bool has_journal;
    struct wire_journal journal;
    struct wire_blob stored[STORED_MAX];
    uint32_t stored_count;
    struct wire_load resume;
    // What was promised, whatever the life.
    uint64_t claimed_round, voted_round, born_unix_ms;
    struct hash claimed, voted;
};

struct core {
    const char *name;
    size_t state_bytes;
    uint8_t person; // Which of event_people it is
    void (*init)(struct talk *talk);
    void (*step)(void *state, const struct msg *in, struct outbox *out);
};

// ---- lives --------------------------------------------------------------------------------------

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

static const struct core cores[] = {
    { "coordinator", sizeof(struct coordinator), 0, init_coordinator, coordinator_step },
    { "trainer", sizeof(struct trainer), 1, init_trainer, trainer_step },
    { "witness", sizeof(struct witness_actor), 4, init_witness, witness_actor_step },
    { "checkpointer", sizeof(struct checkpointer), 5, init_checkpointer, checkpointer_step },
    { "data-provider", sizeof(struct data_provider), 6, init_provider, data_provider_step },
};

// What a member knows of the newest round.
static const struct round_view *view_of(const struct talk *talk)
{
    const void *state = talk->state;
    const struct pace_part *pace = &((const struct data_provider *)state)->pace;
    if (talk->core->init == init_trainer) pace = &((const struct trainer *)state)->pace;
    if (talk->core->init == init_witness) pace = &((const struct witness_actor *)state)->pace;
    if (talk->core->init == init_checkpointer) pace = &((const struct checkpointer *)state)->pace;
    return &rounds_of(pace)->view;
}

struct core_counts *core_counted(const char *name)
{
    static struct core_counts counts[8];
    size_t i = 0;
    while (counts[i].name && strcmp(counts[i].name, name) != 0) i++;
    ensure(i + 1 < sizeof counts / sizeof *counts);
    counts[i].name = name;
    return &counts[i];
}

// By the note's first word, which stays the same.
static void count_note(struct core_counts *counts, const struct wire_note *note)
{
    const size_t bytes = strcspn(note->text, " ");
    uint32_t i = 0;
    while (i < counts->notes &&
           (strncmp(counts->noted[i], note->text, bytes) != 0 || counts->noted[i][bytes] != 0))
        i++;
    if (i < counts->notes || i == CORE_NOTES || bytes >= sizeof counts->noted[i]) return;
    memcpy(counts->noted[i], note->text, bytes);
    counts->notes++;
}

static bool is_coordinator(const struct talk *talk) { return talk->core->person == 0; }

static void *take_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ensure(memory != MAP_FAILED);
    return memory;
}

static void hear(struct talk *talk, const struct msg *in);

static void hear_local(struct talk *talk, uint16_t kind, const void *body)
{
    const struct msg in = {
        .now_ms = talk->now_ms, .kind = kind, .run = "", .from = "", .body = body
    };
    hear(talk, &in);
}

static const void *unpack(struct wire_arena *arena, uint16_t kind, const uint8_t *body,
                          size_t bytes)
{
    struct wire_refusal refusal;
    const void *ret = NULL;
    arena->used = 0;
    ensure(wire_unpack_body(body, bytes, kind, arena, &ret, &refusal));
    return ret;
}

// The ledger, read from its beginning into a state that has just been made.
static void replay(struct talk *talk, struct run *run)
{
    for (size_t at = 0; at < talk->records_bytes;) {
        struct {
            uint32_t kind, bytes;
        } head;
        memcpy(&head, talk->records + at, sizeof head);
        at += sizeof head;
        run_apply(run, (uint16_t)head.kind,
                  unpack(&talk->scratch, (uint16_t)head.kind, talk->records + at, head.bytes));
        at += head.bytes;
    }
}

static void forget_jobs(struct talk *talk)
{
    while (talk->jobs_count) free(talk->jobs[--talk->jobs_count].body);
}

// The state that the last life leaves, as a snapshot that was just written.
static size_t pack_snapshot(struct talk *talk, uint8_t *bytes, size_t max)
{
    struct coordinator *core = talk->state;
    _Alignas(max_align_t) uint8_t part[RUN_PART_BYTES];
    const struct wire_snapshot snapshot = run_to_snapshot(&core->run, part);
    const size_t count = wire_pack_body(FRAME_SNAPSHOT, &snapshot, bytes, max);
    ensure(count > 0);
    return count;
}

static void begin_life(struct talk *talk, bool by_snapshot)
{
    static uint8_t snapshot[RECORDS_BYTES], again[RECORDS_BYTES];
    const size_t bytes =
        by_snapshot && is_coordinator(talk) ? pack_snapshot(talk, snapshot, sizeof snapshot) : 0;
    const struct event_person *person = &event_people()[talk->core->person];
    ensure(madvise(talk->state, talk->core->state_bytes, MADV_DONTNEED) == 0);
    talk->core->init(talk);
    talk->life++;
    talk->alarm_ms = UINT64_MAX;
    talk->quits = false;
    forget_jobs(talk);
    talk->residual = talk->candidate = talk->candidate_payload = (struct hash){ { 0 } };
    struct run *run = &((struct coordinator *)talk->state)->run;
    if (bytes) {
        run_from_snapshot(run, unpack(&talk->scratch, FRAME_SNAPSHOT, snapshot, bytes));
        ensure(pack_snapshot(talk, again, sizeof again) == bytes);
        ensure(memcmp(snapshot, again, bytes) == 0); // It comes back as it went
    } else if (is_coordinator(talk)) replay(talk, run);
    if (!is_coordinator(talk)) {
        struct member *member = talk->state;
        member->key = person->key;
        memcpy(member->name, person->name, sizeof member->name);
        memcpy(member->run, "fuzz", 5);
        memcpy(member->endpoint, "tcp://127.0.0.1:4", 18);
        if (talk->has_journal) hear_local(talk, FRAME_JOURNAL, &talk->journal);
        if (talk->core->init == init_checkpointer) hear_local(talk, FRAME_RESUME, &talk->resume);
        if (talk->stored_count)
            hear_local(talk, FRAME_INHERITED,
                       &(struct wire_inherited){ talk->stored, talk->stored_count });
    }
    hear_local(
        talk, FRAME_START,
        &(struct wire_start){ .incarnation = is_coordinator(talk) ? talk->life : person->instance,
                              .instance = person->instance,
                              .unix_ms = 1800000000000u + talk->now_ms });
}

// ---- effects ------------------------------------------------------------------------------------

// The blob store.
static void keep_blob(struct talk *talk, const struct hash *hash, uint32_t bytes)
{
    for (uint32_t i = 0; i < talk->stored_count; i++)
        if (hash_equal(&talk->stored[i].hash, hash)) return;
    if (talk->stored_count < STORED_MAX)
        talk->stored[talk->stored_count++] = (struct wire_blob){ *hash, bytes };
}

static void forget_blobs(struct talk *talk, const struct wire_forget *forget)
{
    for (uint32_t i = 0; i < forget->blobs_count; i++)
        for (uint32_t j = 0; j < talk->stored_count; j++)
            if (hash_equal(&talk->stored[j].hash, &forget->blobs[i].hash))
                talk->stored[j--] = talk->stored[--talk->stored_count];
}

static void keep_record(struct talk *talk, const struct effect *effect)
{
    const struct {
        uint32_t kind, bytes;
    } head = { effect->kind, effect->bytes };
    if (effect->kind == FRAME_JOURNAL) {
        talk->journal = *(const struct wire_journal *)unpack(&talk->scratch, effect->kind,
                                                             effect->body, effect->bytes);
        talk->has_journal = true;
    } else if (effect->kind == FRAME_FORGET) {
        ensure(!is_coordinator(talk));
        forget_blobs(talk, unpack(&talk->scratch, effect->kind, effect->body, effect->bytes));
    } else if (effect->kind == FRAME_SEND_COMMITS || effect->kind == FRAME_POSITION) {
        ensure(is_coordinator(talk)); // Questions: the disk keeps nothing of them
    } else {
        ensure(effect->kind >= 200 && is_coordinator(talk));
        ensure(talk->records_bytes + sizeof head + effect->bytes <= RECORDS_BYTES);
        memcpy(talk->records + talk->records_bytes, &head, sizeof head);
        memcpy(talk->records + talk->records_bytes + sizeof head, effect->body, effect->bytes);
        talk->records_bytes += sizeof head + effect->bytes;
    }
}

static void keep_job(struct talk *talk, const struct effect *effect)
{
    if (effect->kind == FRAME_PIN || effect->kind == FRAME_FORGET) return;
    if (talk->jobs_count == JOBS_MAX) return; // The worker never answers: as if it hung
    struct job job = { effect->kind, effect->bytes, malloc(effect->bytes) };
    ensure(job.body);
    memcpy(job.body, effect->body, effect->bytes);
    talk->jobs[talk->jobs_count++] = job;
}

// One claim and one vote for a round, whatever happens, and both journalled before they are said.
// A promise to another run of the same name does not count.
static void check_promise(struct talk *talk, const struct effect *effect, const void *body)
{
    if (is_coordinator(talk)) return;
    if (talk->journal.born_unix_ms != talk->born_unix_ms) {
        talk->born_unix_ms = talk->journal.born_unix_ms;
        talk->claimed_round = talk->voted_round = 0;
    }
    if (effect->kind == FRAME_CLAIM) {
        const struct wire_claim *claim = body;
        const struct hash name = claim_hash(claim);
        ensure(talk->has_journal && talk->journal.first.number == claim->round);
        ensure(hash_equal(&talk->journal.first.what, &name));
        ensure(talk->claimed_round != claim->round || hash_equal(&talk->claimed, &name));
        talk->claimed_round = claim->round;
        talk->claimed = name;
    } else if (effect->kind == FRAME_VOTE) {
        const struct wire_vote *vote = body;
        const struct hash said = hash_of(effect->body, effect->bytes);
        ensure(talk->has_journal && talk->journal.second.number == vote->round);
        ensure(talk->voted_round != vote->round || hash_equal(&talk->voted, &said));
        talk->voted_round = vote->round;
        talk->voted = said;
    }
}

static void perform(struct talk *talk, const struct effect *effect)
{
    const unsigned flags = wire_kind_flags(effect->kind);
    const void *body = unpack(&talk->scratch, effect->kind, effect->body, effect->bytes);
    event_memory_keep(&talk->memory, effect->kind, body);
    talk->counts->said[effect->port][effect->kind]++;
    if (!is_coordinator(talk)) honest_note_said(&talk->honest, effect->kind, body);
    switch (effect->port) {
    case PORT_MAIL:
        ensure(flags & WIRE_MAIL);
        check_promise(talk, effect, body);
        break;
    case PORT_NEWS:
        ensure(flags & WIRE_NEWS);
        check_promise(talk, effect, body);
        break;
    case PORT_DISK: keep_record(talk, effect); break;
    case PORT_CLOCK: {
        const struct wire_wake *wake = body;
        if (wake->at_ms < talk->alarm_ms) talk->alarm_ms = wake->at_ms;
        break;
    }
    case PORT_LOG: count_note(talk->counts, body); break;
    case PORT_LEARNER:
    case PORT_FETCHER:
        ensure(flags & WIRE_LOCAL || effect->kind == FRAME_CONFIG);
        keep_job(talk, effect);
        break;
    case PORT_SHELL: talk->quits = true; break;
    default: ensure_failed("a port that this core has", __FILE__, __LINE__);
    }
}

static void print(const struct talk *talk, const char *way, uint16_t kind, const void *body)
{
    char line[512];
    wire_print(kind, body, line, sizeof line);
    printf("%8" PRIu64 "  %-24.24s %s\n", talk->now_ms, way, line);
}

static void hear(struct talk *talk, const struct msg *in)
{
    static const char *const ways[PORT_COUNT] = { "> mail", "> news",    "> disk",    "> clock",
                                                  "> log",  "> learner", "> fetcher", "> shell" };
    const bool verbose = fuzz_is_verbose();
    if (verbose) print(talk, in->from[0] ? in->from : "local or news", in->kind, in->body);
    outbox_clear(&talk->out);
    talk->counts->heard[in->kind]++;
    talk->core->step(talk->state, in, &talk->out);
    for (uint32_t i = 0; i < talk->out.count; i++) {
        const struct effect *effect = &talk->out.effects[i];
        if (verbose && effect->port != PORT_CLOCK)
            print(talk, ways[effect->port], effect->kind,
                  unpack(&talk->scratch, effect->kind, effect->body, effect->bytes));
        perform(talk, effect);
    }
}

// ---- what its own process says ------------------------------------------------------------------

static void answer_fetch(struct talk *talk, const struct wire_fetch *fetch, bool ok, uint8_t salt)
{
    for (uint32_t i = 0; i < fetch->blobs_count; i++) {
        const struct wire_blob *blob = &fetch->blobs[i];
        const bool here = ok || (salt >> i % 8 & 1);
        if (here) keep_blob(talk, &blob->hash, blob->bytes);
        hear_local(talk, FRAME_FETCHED,
                   &(struct wire_fetched){ .hash = blob->hash, .ok = here, .turn = fetch->turn });
    }
}

// What the round's number and the residual lead to, in the store.
static void answer_train(struct talk *talk, const struct wire_train *train, bool ok)
{
    const struct hash payload = honest_payload(train->round, talk->core->person);
    const struct member *member = talk->state;
    if (ok) {
        keep_blob(talk, &payload, rounds_config_of(&member->config)->payload_bytes);
        talk->candidate = honest_residual(train->round, talk->core->person);
        talk->candidate_payload = payload;
    }
    hear_local(
        talk, FRAME_TRAINED,
        &(struct wire_trained){ .round = train->round,
                                .ok = ok,
                                .base = honest_digest(train->step),
                                .residual_from = talk->residual,
                                .residual_to = talk->candidate,
                                .payload = payload,
                                .payload_bytes = rounds_config_of(&member->config)->payload_bytes,
                                .loss = 2 });
}

static void answer_apply(struct talk *talk, const struct wire_apply *apply, bool ok)
{
    if (ok && !hash_is_none(&apply->own_payload) &&
        hash_equal(&apply->own_payload, &talk->candidate_payload))
        talk->residual = talk->candidate;
    hear_local(talk, FRAME_APPLIED,
               &(struct wire_applied){
                   .ok = ok, .step = apply->step + 1, .digest = honest_digest(apply->step + 1) });
}

static void answer_show(struct talk *talk, const struct wire_show *show, bool ok)
{
    const struct wire_blob blob = { hash_of(show->residual.bytes, HASH_BYTES),
                                    HONEST_FLOATS * sizeof(float) };
    if (ok) keep_blob(talk, &blob.hash, blob.bytes);
    hear_local(talk, FRAME_SHOWN,
               &(struct wire_shown){ .round = show->round, .ok = ok, .blob = blob });
}

static void answer_save(struct talk *talk, const struct wire_save *save, bool ok)
{
    if (ok)
        talk->resume =
            (struct wire_load){ .step = save->step, .path = "checkpoints", .epoch = save->epoch };
    hear_local(talk, FRAME_SAVED,
               &(struct wire_saved){ .ok = ok,
                                     .epoch = save->epoch,
                                     .step = save->step,
                                     .digest = save->digest,
                                     .name = "step" });
}

static void answer_recompute(struct talk *talk, const struct wire_recompute *recompute, bool ok)
{
    hear_local(talk, FRAME_RECOMPUTED,
               &(struct wire_finding){ .round = recompute->round,
                                       .result = recompute->audit.result,
                                       .finding = ok ? FINDING_SAME : FINDING_DIFFERENT,
                                       .payload = recompute->audit.payload,
                                       .residual_to = recompute->audit.residual_to });
}

static void answer_learner(struct talk *talk, uint16_t kind, const void *body, bool ok)
{
    switch (kind) {
    case FRAME_BUILD:
        hear_local(talk, FRAME_BUILT,
                   &(struct wire_built){ .ok = ok,
                                         .floats = HONEST_FLOATS,
                                         .may_pass = true,
                                         .payload_bytes = rounds_config_of(body)->payload_bytes });
        break;
    case FRAME_LOAD: {
        const struct wire_load *load = body;
        hear_local(talk, FRAME_LOADED,
                   &(struct wire_loaded){ .ok = ok,
                                          .step = load->step,
                                          .digest = honest_digest(load->step),
                                          .epoch = load->epoch });
        break;
    }
    case FRAME_TRAIN: answer_train(talk, body, ok); break;
    case FRAME_APPLY: answer_apply(talk, body, ok); break;
    case FRAME_SHOW: answer_show(talk, body, ok); break;
    case FRAME_RECOMPUTE: answer_recompute(talk, body, ok); break;
    case FRAME_SAVE: answer_save(talk, body, ok); break;
    default: ensure_failed("a job that a learner knows", __FILE__, __LINE__);
    }
}

static void answer(struct talk *talk, const struct event *event)
{
    if (talk->jobs_count == 0) return;
    const uint8_t *choices = event->choices;
    const uint32_t place = (event->choices_count > 0 ? choices[0] : 0) % talk->jobs_count;
    const bool ok = event->choices_count < 2 || choices[1] == 0;
    const struct job job = talk->jobs[place];
    memmove(talk->jobs + place, talk->jobs + place + 1, (--talk->jobs_count - place) * sizeof job);
    const void *body = unpack(&talk->arena, job.kind, job.body, job.bytes);
    if (job.kind == FRAME_FETCH) answer_fetch(talk, body, ok, ok ? 0 : choices[1]);
    else if (job.kind == FRAME_FETCH_MODEL) {
        const struct wire_fetch_model *fetch = body;
        hear_local(talk, FRAME_FETCHED_MODEL,
                   &(struct wire_fetched_model){ .ok = ok, .step = fetch->step });
    } else answer_learner(talk, job.kind, body, ok);
    free(job.body);
}

// The clock rings as often as it was asked to, until the event.
static void pass_time(struct talk *talk, uint64_t until_ms)
{
    for (int n = 0; n < WAKES_MAX && talk->alarm_ms <= until_ms && !talk->quits; n++) {
        if (talk->alarm_ms > talk->now_ms) talk->now_ms = talk->alarm_ms;
        talk->alarm_ms = UINT64_MAX;
        hear_local(talk, FRAME_WAKE, &(struct wire_wake){ talk->now_ms });
    }
    talk->now_ms = until_ms;
}

// ---- what others say ----------------------------------------------------------------------------

static const void *honest_body(const struct talk *talk, const struct event *event)
{
    return is_coordinator(talk) ? honest_to_coordinator(talk->state, event->what, event->signer)
                                : honest_to_member(&talk->honest, talk->state, view_of(talk),
                                                   event->what, event->signer);
}

// As it was signed. That the signature is its sender's is the shell's to see.
static uint32_t pack_frame(const struct msg *in, uint8_t *frame, size_t max)
{
    static const uint8_t signature[WIRE_SIGNATURE_BYTES];
    struct wire_head head = { .kind = in->kind, .incarnation = in->incarnation, .seq = in->seq };
    snprintf(head.run, sizeof head.run, "%s", in->run);
    head.sender = in->sender;
    const size_t count = wire_pack(&head, in->body, frame, max);
    return count ? (uint32_t)wire_put_signature(frame, count, signature, max) : 0;
}

// As post_take would return it: a signature is its sender's; mail has the name of the actor that
// brought it, and news have none.
static void hear_others(struct talk *talk, const struct event *event)
{
    static uint8_t frame[FRAME_BYTES];
    const struct event_person *people = event_people();
    const unsigned flags = wire_kind_flags(event->what);
    const bool by_mail = flags & WIRE_MAIL && (!(flags & WIRE_NEWS) || event->bearer % 2 == 0);
    struct msg in = { .now_ms = talk->now_ms,
                      .kind = event->what,
                      .from = "",
                      .run = event->other_run ? "other" : "fuzz" };
    if (!(flags & (WIRE_MAIL | WIRE_NEWS))) return;
    if (event->what == FRAME_WELCOME || event->what == FRAME_UNDELIVERABLE) {
        if (event->what == FRAME_UNDELIVERABLE) return; // The shell's
        in.from = "broker";
    } else if (by_mail) in.from = people[event->bearer].name;
    if (flags & WIRE_SIGNED) in.sender = people[event->signer].key;
    in.incarnation = event->signer == 0 ? 2 + talk->reborn : people[event->signer].instance;
    in.incarnation -= event->late;
    in.seq = talk->now_ms;
    in.body = event_body(event, &talk->memory, honest_body(talk, event), &talk->arena);
    event_memory_keep(&talk->memory, event->what, in.body);
    if (flags & WIRE_SIGNED) in.frame_bytes = pack_frame(&in, frame, sizeof frame);
    if (in.frame_bytes) in.frame = frame;
    if (!is_coordinator(talk) && event->signer == 0)
        honest_note_heard(&talk->honest, talk->state, view_of(talk), event->what, in.body);
    hear(talk, &in);
}

static void take_event(struct talk *talk, const struct event *event)
{
    pass_time(talk, talk->now_ms + event->after_ms);
    if (talk->quits || event->what == EVENT_RESTART)
        begin_life(talk, event->choices_count > 0 && event->choices[0]);
    else if (event->what == EVENT_REBORN) talk->reborn++;
    else if (event->what == EVENT_ANSWER) answer(talk, event);
    else if (event->what == EVENT_QUIT) hear_local(talk, FRAME_QUIT, &(struct wire_quit){ 0 });
    else if (event->what == EVENT_WAKE) {
        talk->alarm_ms = UINT64_MAX;
        hear_local(talk, FRAME_WAKE, &(struct wire_wake){ talk->now_ms });
    } else hear_others(talk, event);
}

// ---- at the end ---------------------------------------------------------------------------------

// What the records lead to is what the core believes: to the last bit of a snapshot.
static void check_replay(struct talk *talk)
{
    static struct run *other;
    _Alignas(max_align_t) uint8_t parts[2][RUN_PART_BYTES];
    struct coordinator *self = talk->state;
    if (!other) other = take_memory(sizeof *other);
    ensure(madvise(other, sizeof *other, MADV_DONTNEED) == 0);
    run_init(other, &self->pace->run, self->rules.snapshot_rounds);
    replay(talk, other);
    const struct wire_snapshot ours = run_to_snapshot(&self->run, parts[0]);
    const struct wire_snapshot theirs = run_to_snapshot(other, parts[1]);
    ensure(wire_equal(FRAME_SNAPSHOT, &ours, &theirs));
}

static struct talk *talk_with(const struct core *core)
{
    static struct talk *talks[sizeof cores / sizeof *cores];
    struct talk **place = &talks[core - cores];
    if (!*place) {
        struct talk *talk = *place = take_memory(sizeof *talk);
        talk->core = core;
        talk->counts = core_counted(core->name);
        talk->state = take_memory(core->state_bytes);
        talk->records = take_memory(RECORDS_BYTES);
        talk->out = (struct outbox){ .effects = take_memory(EFFECTS_MAX * sizeof(struct effect)),
                                     .count_max = EFFECTS_MAX,
                                     .bytes = take_memory(OUTBOX_BYTES),
                                     .bytes_max = OUTBOX_BYTES };
        talk->arena =
            (struct wire_arena){ .bytes = take_memory(OUTBOX_BYTES), .max = OUTBOX_BYTES };
        talk->scratch =
            (struct wire_arena){ .bytes = take_memory(OUTBOX_BYTES), .max = OUTBOX_BYTES };
    }
    struct talk *talk = *place;
    memset(&talk->memory, 0, sizeof talk->memory);
    talk->now_ms = 1000;
    talk->life = talk->reborn = talk->records_bytes = talk->stored_count = 0;
    talk->honest = (struct honest){ 0 };
    talk->resume = (struct wire_load){ .path = "checkpoints" };
    talk->has_journal = false;
    talk->journal = (struct wire_journal){ 0 };
    talk->claimed_round = talk->voted_round = talk->born_unix_ms = 0;
    return talk;
}

static bool converse(const struct core *core, const uint8_t *bytes, size_t count)
{
    struct talk *talk = talk_with(core);
    struct event event;
    const uint8_t *at = bytes;
    int events = 0;
    talk->rules = count > EVENT_HEAD && at[0] == EVENT_RULES && at[3] ? at[EVENT_HEAD] : 0;
    begin_life(talk, false);
    for (; events < EVENTS_PER_INPUT && event_next(&at, bytes + count, &event); events++)
        take_event(talk, &event);
    if (is_coordinator(talk)) check_replay(talk);
    forget_jobs(talk);
    return events > 0;
}

bool core_check_coordinator(const uint8_t *bytes, size_t count)
{
    return converse(&cores[0], bytes, count);
}

bool core_check_trainer(const uint8_t *bytes, size_t count)
{
    return converse(&cores[1], bytes, count);
}

bool core_check_witness(const uint8_t *bytes, size_t count)
{
    return converse(&cores[2], bytes, count);
}

bool core_check_checkpointer(const uint8_t *bytes, size_t count)
{
    return converse(&cores[3], bytes, count);
}

bool core_check_provider(const uint8_t *bytes, size_t count)
{
    return converse(&cores[4], bytes, count);
}
