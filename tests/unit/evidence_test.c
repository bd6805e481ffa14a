// The verifier of a run's records (evidence.h). The coordinator's own core makes a run whose
// members sign. In it, judges eject one liar, and two claims of one round eject another. The
// verifier accepts its records, and refuses each kind of record when one thing in it is changed.

#include "actors/coordinator/coordinator.h"
#include "common/pace/evidence.h"
#include "common/crypto/identity.h"
#include "common/pace/rounds/rounds.h"
#include "common/pace/rounds/rounds_evidence.h"
#include "common/net/signed_frame.h"
#include "tests/test.h"
#include "common/wire/wire_table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    MEMBERS = 5,
    LIAR = 3,
    TWICE = 1,
    RECORDS_MAX = 128,
    FRAME_MAX = 4096,
    OUT_MAX = 1 << 20,
    WHOLE = -1
};

static struct {
    struct coordinator *core;
    struct rules rules;
    struct identity *identities[MEMBERS];
    struct key keys[MEMBERS];
    struct outbox out;
    struct {
        uint16_t kind;
        uint32_t bytes;
        uint8_t *body;
    } records[RECORDS_MAX];
    uint32_t count;
    uint64_t now_ms, seq;
} run;

static struct wire_arena arena;

// ---- the run ------------------------------------------------------------------------------------

static struct hash hash_number(uint64_t a, uint64_t b)
{
    const uint64_t both[] = { a, b };
    return hash_of(both, sizeof both);
}

static void step(const struct msg *in)
{
    outbox_clear(&run.out);
    coordinator_step(run.core, in, &run.out);
    for (uint32_t i = 0; i < run.out.count; i++) {
        const struct effect *effect = &run.out.effects[i];
        if (effect->port != PORT_DISK) continue;
        assert_true(run.count < RECORDS_MAX);
        run.records[run.count].kind = effect->kind;
        run.records[run.count].bytes = effect->bytes;
        run.records[run.count].body = malloc(effect->bytes);
        memcpy(run.records[run.count++].body, effect->body, effect->bytes);
    }
}

static size_t sign(uint32_t member, uint16_t kind, const void *body, uint8_t frame[FRAME_MAX])
{
    struct wire_head head = { .kind = kind, .run = "evidence", .incarnation = 1, .seq = ++run.seq };
    head.sender = run.keys[member];
    const size_t bytes = wire_pack(&head, body, frame, FRAME_MAX);
    assert_true(bytes > 0);
    return signed_frame_sign(run.identities[member], frame, bytes, FRAME_MAX);
}

static void say(uint32_t member, uint16_t kind, const void *body)
{
    uint8_t frame[FRAME_MAX];
    char name[ACTOR_NAME_MAX + 1];
    actor_name(ACTOR_TRAINER, &run.keys[member], name);
    const size_t bytes = sign(member, kind, body, frame);
    assert_true(bytes > 0);
    step(&(struct msg){ .now_ms = ++run.now_ms,
                        .kind = kind,
                        .run = "evidence",
                        .from = name,
                        .sender = run.keys[member],
                        .incarnation = 1,
                        .frame = frame,
                        .frame_bytes = (uint32_t)bytes,
                        .body = body });
}

static void say_locally(uint16_t kind, const void *body)
{
    step(&(struct msg){ .now_ms = run.now_ms, .kind = kind, .run = "", .from = "", .body = body });
}

static uint32_t who(uint32_t client) { return round_of(&run.core->run)->clients[client].member; }

// Every auditor tells the truth: the liar's results differ from its claims. The liar itself answers
// "unable".
static void audit(void)
{
    const struct wire_round round = round_frame(round_of(&run.core->run));
    for (uint32_t i = 0; i < round.audits_count; i++) {
        const uint32_t auditor = who(round.audits[i].auditor);
        say(auditor, FRAME_FINDING,
            &(struct wire_finding){ .round = round.round,
                                    .result = round.audits[i].result,
                                    .finding = auditor == LIAR                  ? FINDING_UNABLE
                                               : round.audits[i].member == LIAR ? FINDING_DIFFERENT
                                                                                : FINDING_SAME });
    }
}

static void vote(void)
{
    const struct run *now = &run.core->run;
    const uint64_t round = round_of(now)->opened.round;
    struct wire_seen seen[MEMBERS];
    struct wire_vote vote = { .round = round, .complete = true, .seen = seen };
    struct share share;
    for (uint32_t c = 0; c < round_of(now)->clients_count; c++)
        if (deal_of_trainer(&rounds_live(run.core->live)->deal, c, &share))
            seen[vote.seen_count++] = (struct wire_seen){ .client = c,
                                                          .result = hash_number(round, c),
                                                          .payload = hash_number(round, 100 + c),
                                                          .payload_bytes = 100,
                                                          .base = hash_number(now->step, 0) };
    for (uint32_t c = 0; c < round_of(now)->clients_count && round_of(now)->opened.round == round;
         c++)
        if (now->roster.members[who(c)].state == MEMBER_HEALTHY) say(who(c), FRAME_VOTE, &vote);
}

static void send_claim_copy(uint64_t payload)
{
    uint8_t frame[FRAME_MAX];
    struct wire_claim claim = { .run = "evidence",
                                .round = round_of(&run.core->run)->opened.round,
                                .end = 1,
                                .author = run.keys[TWICE],
                                .payload = hash_number(payload, 7),
                                .payload_bytes = 100,
                                .born_unix_ms = run.core->run.born_unix_ms };
    const uint32_t bytes = (uint32_t)sign(TWICE, FRAME_CLAIM, &claim, frame);
    say(TWICE == 0 ? 1 : 0, FRAME_CLAIM_COPY,
        &(struct wire_claim_copy){ .claim = { frame, bytes } });
}

static bool is_ejected(uint32_t member)
{
    return run.core->run.roster.members[member].state == MEMBER_EJECTED;
}

static void restart(void)
{
    free(run.core);
    run.core = calloc(1, sizeof *run.core);
    assert_non_null(run.core);
    coordinator_init(run.core, &run.rules);
    for (uint32_t i = 0; i < run.count; i++) {
        struct wire_refusal refusal;
        const void *body;
        arena.used = 0;
        assert_true(wire_unpack_body(run.records[i].body, run.records[i].bytes, run.records[i].kind,
                                     &arena, &body, &refusal));
        run_apply(&run.core->run, run.records[i].kind, body);
    }
    say_locally(FRAME_START, &(struct wire_start){ .incarnation = 2, .unix_ms = 5000 });
}

static void play(void)
{
    say_locally(FRAME_START, &(struct wire_start){ .incarnation = 1, .unix_ms = 4711 });
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct wire_join join = { .role = ACTOR_TRAINER, .instance = 1 };
        actor_name(ACTOR_TRAINER, &run.keys[i], join.name);
        say(i, FRAME_JOIN, &join);
    }
    run.now_ms = 2000;
    say_locally(FRAME_WAKE, &(struct wire_wake){ .at_ms = 2000 });
    for (uint32_t i = 0; i < MEMBERS; i++)
        say(i, FRAME_HOLDS, &(struct wire_holds){ .digest = hash_number(0, 0) });
    for (unsigned rounds = 0; rounds < 12 && !is_ejected(LIAR); rounds++) {
        audit();
        if (rounds == 1) restart();
        vote();
    }
    assert_true(is_ejected(LIAR));
    vote();
    send_claim_copy(1), send_claim_copy(2);
    assert_true(is_ejected(TWICE));
    audit(), vote();
    audit(), vote();
}

static int set_up(void **state)
{
    (void)state;
    struct why why;
    run.rules = (struct rules){ .run_id = "evidence",
                                .config = hash_number(1, 1),
                                .run_seed = rules_run_seed("evidence"),
                                .waiting_ms = 1000,
                                .warmup_ms = 5000,
                                .train_ms = 10000,
                                .witness_ms = 2000,
                                .cooldown_ms = 3000,
                                .epoch_rounds = 100,
                                .total_steps = 100,
                                .min_clients = 1,
                                .init_min_clients = MEMBERS,
                                .batch_start = 8,
                                .batch_end = 8,
                                .seq_len = 16,
                                .heartbeat_ms = 100000,
                                .lease_ms = 60000,
                                .unhealthy_rounds = 200,
                                .snapshot_rounds = 2,
                                .lr = { .kind = SCHEDULE_CONSTANT, .base_lr = 0.001 },
                                .frame = { .data.kind = DATA_LOCAL } };
    const struct wire_rounds_config strategy = { .verification_percent = 50, .payload_bytes = 100 };
    rules_set_strategy(&run.rules, FRAME_ROUNDS_CONFIG, &strategy, sizeof strategy);
    arena = (struct wire_arena){ .bytes = malloc(OUT_MAX), .max = OUT_MAX };
    run.out = (struct outbox){ .effects = calloc(256, sizeof(struct effect)),
                               .count_max = 256,
                               .bytes = malloc(OUT_MAX),
                               .bytes_max = OUT_MAX };
    run.core = calloc(1, sizeof *run.core);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        const struct hash secret = hash_number(i, 4);
        assert_int_equal(identity_from_secret(secret.bytes, &why, &run.identities[i]), 0);
        run.keys[i] = *identity_key(run.identities[i]);
    }
    coordinator_init(run.core, &run.rules);
    play();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < run.count; i++) free(run.records[i].body);
    for (uint32_t i = 0; i < MEMBERS; i++) identity_destroy(&run.identities[i]);
    free(run.core), free(run.out.effects), free(run.out.bytes), free(arena.bytes);
    return 0;
}

// ---- the records, and changed ones --------------------------------------------------------------

static uint8_t bent_frame[2048];

static struct wire_bytes flip(const struct wire_bytes *frame, uint32_t bit)
{
    assert_true(frame->count <= sizeof bent_frame && bit < 8 * frame->count);
    memcpy(bent_frame, frame->data, frame->count);
    bent_frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
    return (struct wire_bytes){ bent_frame, frame->count };
}

// Each function changes the copy of a record of its kind; false: this record has nothing to change.
typedef bool bend_fn(void *body, uint32_t bit);

static bool bend_seed(void *body, uint32_t bit)
{
    ((struct wire_round *)body)->seed ^= 1;
    return bit == 0;
}
static bool bend_key(void *body, uint32_t bit)
{
    ((struct wire_commit *)body)->audit_key.bytes[31] ^= 1;
    return bit == 0;
}
static bool bend_run_seed(void *body, uint32_t bit)
{
    ((struct wire_record_genesis *)body)->seed++;
    return bit == 0;
}
static bool bend_first_step(void *body, uint32_t bit)
{
    ((struct wire_record_genesis *)body)->step++;
    return bit == 0;
}
static bool leave_out_lock(void *body, uint32_t bit)
{
    ((struct wire_round *)body)->audit_lock = (struct hash){ { 0 } };
    return bit == 0;
}
static bool leave_out_client(void *body, uint32_t bit)
{
    ((struct wire_round *)body)->clients_count--;
    return bit == 0;
}
static bool leave_out_witness(void *body, uint32_t bit)
{
    ((struct wire_round *)body)->witnesses_count--;
    return bit == 0;
}
static bool leave_out_audit(void *body, uint32_t bit)
{
    struct wire_round *round = body;
    if (round->audits_count == 0) return false;
    round->audited_count -= round->audits[--round->audits_count].intervals;
    return bit == 0;
}
static bool bend_auditor(void *body, uint32_t bit)
{
    static struct wire_audit audits[MEMBERS];
    struct wire_round *round = body;
    if (round->audits_count == 0) return false;
    memcpy(audits, round->audits, round->audits_count * sizeof *audits);
    audits[0].auditor = (audits[0].auditor + 1) % round->clients_count;
    round->audits = audits;
    return bit == 0;
}
static bool bend_finding_frame(void *body, uint32_t bit)
{
    struct wire_record_finding *finding = body;
    if (bit >= 8 * finding->frame.count) return false;
    finding->frame = flip(&finding->frame, bit);
    return true;
}
static bool bend_finding(void *body, uint32_t bit)
{
    struct wire_record_finding *finding = body;
    finding->finding = finding->finding == FINDING_SAME ? FINDING_DIFFERENT : FINDING_SAME;
    return bit == 0;
}
static bool bend_first_claim(void *body, uint32_t bit)
{
    struct wire_record_ejection *ejection = body;
    if (bit >= 8 * ejection->first.count) return false;
    ejection->first = flip(&ejection->first, bit);
    return true;
}
static bool bend_second_claim(void *body, uint32_t bit)
{
    struct wire_record_ejection *ejection = body;
    if (bit >= 8 * ejection->second.count) return false;
    ejection->second = flip(&ejection->second, bit);
    return true;
}
static bool show_one_claim_twice(void *body, uint32_t bit)
{
    struct wire_record_ejection *ejection = body;
    if (ejection->guilt != GUILT_EQUIVOCATION) return false;
    ejection->first = ejection->second; // The record names the hash of the second claim
    return bit == 0;
}
static bool eject_another(void *body, uint32_t bit)
{
    struct wire_record_ejection *ejection = body;
    ejection->member = (ejection->member + 1) % MEMBERS;
    return bit == 0;
}
static bool bend_guilt(void *body, uint32_t bit)
{
    struct wire_record_ejection *ejection = body;
    ejection->guilt =
        ejection->guilt == GUILT_WRONG_RESULT ? GUILT_FALSE_FINDING : GUILT_WRONG_RESULT;
    return bit == 0;
}
static bool eject_in_passing(void *body, uint32_t bit)
{
    ((struct wire_member *)body)->state = MEMBER_EJECTED;
    return bit == 0;
}

static bool join_in_passing(void *body, uint32_t bit)
{
    ((struct wire_member *)body)->joined_number += 1;
    return bit == 0;
}

// From mmap: it is large, the test hardly touches it, and allocates it often.
static struct evidence *take_evidence(void)
{
    struct evidence *evidence =
        mmap(NULL, sizeof *evidence, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(evidence != MAP_FAILED);
    return evidence;
}

static void give_evidence(struct evidence *evidence) { munmap(evidence, sizeof *evidence); }

// Verifies all records. The record at index `at` is changed first, unless `at` is WHOLE.
static bool hear_records(struct evidence *evidence, int at, bend_fn *bend, uint32_t bit)
{
    union {
        struct wire_round round;
        struct wire_commit commit;
        uint8_t bytes[4096];
    } copy;
    for (uint32_t i = 0; i < run.count; i++) {
        struct wire_refusal refusal;
        const void *body;
        arena.used = 0;
        assert_true(wire_unpack_body(run.records[i].body, run.records[i].bytes, run.records[i].kind,
                                     &arena, &body, &refusal));
        if ((int)i == at) {
            const size_t size = wire_table_frame(run.records[i].kind)->record->size;
            assert_true(size <= sizeof copy);
            memcpy(&copy, body, size);
            assert_true(bend(&copy, bit));
            body = &copy;
        }
        if (!evidence_hear(evidence, i + 1, run.records[i].kind, body)) return false;
    }
    return true;
}

static bool hear_all(struct evidence *evidence, int at, bend_fn *bend, uint32_t bit)
{
    evidence_init(evidence, &run.rules, evidence_verify);
    return hear_records(evidence, at, bend, bit);
}

static void the_records_of_a_run_hold(void **state)
{
    (void)state;
    struct evidence *evidence = take_evidence();
    if (!hear_all(evidence, WHOLE, NULL, 0)) fail_msg("%s", evidence->text);
    const uint64_t *counts = evidence->counts;
    assert_in_range(counts[ROUNDS_COUNT_DRAWS], 4, 20);
    assert_true(counts[ROUNDS_COUNT_KEYS] == counts[ROUNDS_COUNT_DRAWS] - 1); // One is still open
    assert_true(counts[ROUNDS_COUNT_FINDINGS] > 2 &&
                counts[ROUNDS_COUNT_AUDITS] >= counts[ROUNDS_COUNT_FINDINGS]);
    assert_int_equal(counts[ROUNDS_COUNT_EQUIVOCATIONS], 1);
    assert_int_equal(counts[ROUNDS_COUNT_EJECTIONS], 2);
    give_evidence(evidence);
}

// Changes every record of the kind that has something to change, at each `stride`th bit. `stride`
// is less than the bits of a signature, so that every signature is hit.
static unsigned assert_found_out(uint16_t kind, bend_fn *bend, uint32_t stride, const char *word)
{
    unsigned tried = 0;
    for (uint32_t i = 0; i < run.count; i++) {
        if (run.records[i].kind != kind) continue;
        for (uint32_t bit = 0;; bit += stride) {
            union {
                struct wire_round round;
                uint8_t bytes[4096];
            } copy;
            struct wire_refusal refusal;
            const void *body;
            arena.used = 0;
            assert_true(wire_unpack_body(run.records[i].body, run.records[i].bytes, kind, &arena,
                                         &body, &refusal));
            memcpy(&copy, body, wire_table_frame(kind)->record->size);
            if (!bend(&copy, bit)) break;
            struct evidence *evidence = take_evidence();
            if (hear_all(evidence, (int)i, bend, bit))
                fail_msg("record %u of %s is bent at %u, and believed", i + 1, wire_kind_name(kind),
                         bit);
            char place[32];
            snprintf(place, sizeof place, "record %u: ", i + 1);
            if (strncmp(evidence->text, place, strlen(place)) != 0 || !strstr(evidence->text, word))
                fail_msg("no \"%s\" of record %u in: %s", word, i + 1, evidence->text);
            give_evidence(evidence);
            tried++;
        }
    }
    assert_true(tried > 0);
    return tried;
}

static void draws_that_do_not_follow_are_found_out(void **state)
{
    (void)state;
    assert_found_out(FRAME_RECORD_GENESIS, bend_run_seed, 1, "seed");
    assert_found_out(FRAME_RECORD_GENESIS, bend_first_step, 1, "begun at");
    assert_found_out(FRAME_RECORD_ROUND, bend_seed, 1, "seed of round");
    assert_found_out(FRAME_RECORD_ROUND, leave_out_client, 1, "clients");
    assert_found_out(FRAME_RECORD_ROUND, leave_out_witness, 1, "witnesses");
    assert_found_out(FRAME_RECORD_ROUND, leave_out_audit, 1, "auditors");
    assert_found_out(FRAME_RECORD_ROUND, bend_auditor, 1, "auditors");
    assert_found_out(FRAME_RECORD_ROUND, leave_out_lock, 1, "no lock");
    assert_found_out(FRAME_RECORD_COMMIT, bend_key, 1, "does not fit its lock");
}

// A draw depends on these rules alone (struct draw_from), so this checks all of them. A new rule
// that changes no draw of this run fails here, until the run above is made to depend on it.
static void every_rule_of_the_draw_is_checked(void **state)
{
    (void)state;
#define HOLD_ONE_RULE_OTHERWISE(type, name)                                                        \
    {                                                                                              \
        struct rules other = run.rules;                                                            \
        struct wire_rounds_config strategy = *rounds_config(&other);                               \
        strategy.name = (type)(strategy.name ? 0 : 1);                                             \
        rules_set_strategy(&other, FRAME_ROUNDS_CONFIG, &strategy, sizeof strategy);               \
        struct evidence *evidence = take_evidence();                                               \
        evidence_init(evidence, &other, evidence_verify);                                          \
        if (hear_records(evidence, WHOLE, NULL, 0)) fail_msg("any " #name " is believed");         \
        if (!strstr(evidence->text, "round")) fail_msg(#name ": %s", evidence->text);              \
        give_evidence(evidence);                                                                   \
    }
    DRAW_RULES(HOLD_ONE_RULE_OTHERWISE)
#undef HOLD_ONE_RULE_OTHERWISE
}

static void what_nobody_signed_is_found_out(void **state)
{
    (void)state;
    const unsigned bits =
        assert_found_out(FRAME_RECORD_FINDING, bend_finding_frame, 331, "not signed");
    assert_found_out(FRAME_RECORD_FINDING, bend_finding, 1, "not what");
    assert_true(bits > 20);
}

static void ejections_without_a_reason_are_found_out(void **state)
{
    (void)state;
    assert_found_out(FRAME_RECORD_EJECTION, bend_first_claim, 499, "two claims");
    assert_found_out(FRAME_RECORD_EJECTION, bend_second_claim, 499, "two claims");
    assert_found_out(FRAME_RECORD_EJECTION, show_one_claim_twice, 1, "two claims");
    assert_found_out(FRAME_RECORD_EJECTION, eject_another, 1, "is ejected");
    assert_found_out(FRAME_RECORD_EJECTION, bend_guilt, 1, "no verdict");
    assert_found_out(FRAME_RECORD_MEMBER, eject_in_passing, 1, "without an ejection");
    assert_found_out(FRAME_RECORD_MEMBER, join_in_passing, 1, "joined in number");
}

TESTS_WITH(set_up, tear_down, TEST(the_records_of_a_run_hold),
           TEST(draws_that_do_not_follow_are_found_out), TEST(every_rule_of_the_draw_is_checked),
           TEST(what_nobody_signed_is_found_out), TEST(ejections_without_a_reason_are_found_out))
