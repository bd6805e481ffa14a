// The life of a process, the same in every role: what a restart finds, when a member may leave, and
// what becomes of it when the run is finished.

#include "actors/checkpointer/checkpointer.h"
#include "actors/data-provider/data_provider.h"
#include "actors/trainer/trainer.h"
#include "actors/witness/witness_actor.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { BORN = 5000, LAST_STEP = 9, NO_QUIT = -1 };

static void init_trainer(void *state) { trainer_init(state); }
static void init_server(void *state) { trainer_init_server(state); }
static void init_checkpointer(void *state) { checkpointer_init(state); }
static void init_witness(void *state) { witness_actor_init(state); }
static void init_provider(void *state) { data_provider_init(state); }

static const struct core {
    size_t size;
    void (*init)(void *state);
    void (*step)(void *state, const struct msg *in, struct outbox *out);
    bool serves; // What others may lack when the run is finished
} roles[] = {
    { sizeof(struct trainer), init_trainer, trainer_step, true },
    { sizeof(struct trainer), init_server, trainer_step, true },
    { sizeof(struct checkpointer), init_checkpointer, checkpointer_step, true },
    { sizeof(struct witness_actor), init_witness, witness_actor_step, false },
    { sizeof(struct data_provider), init_provider, data_provider_step, false },
};
enum { ROLES = sizeof roles / sizeof *roles };

static const struct core *role;
static struct member *member; // The first field of its state
static struct effect effects[32];
static uint8_t bytes[1 << 15];
static uint32_t said;

static const void *body_of(const struct effect *effect)
{
    static _Alignas(8) uint8_t unpacked[8192];
    struct wire_arena arena = { .bytes = unpacked, .max = sizeof unpacked };
    struct wire_refusal refusal;
    const void *body;
    assert_true(
        wire_unpack_body(effect->body, effect->bytes, effect->kind, &arena, &body, &refusal));
    return body;
}

static const struct effect *find(uint16_t kind)
{
    for (uint32_t i = 0; i < said; i++)
        if (effects[i].kind == kind) return &effects[i];
    return NULL;
}

// From the process itself, or from the coordinator. The code that the process ends with, or
// NO_QUIT.
static int hear(uint16_t kind, const void *body)
{
    static const uint8_t frame[100];
    static const struct key coordinator = { { 9 } }, none;
    const bool local = kind == FRAME_START || kind == FRAME_QUIT || kind == FRAME_JOURNAL;
    const struct msg in = { .now_ms = 1000,
                            .kind = kind,
                            .run = "r",
                            .from = local ? "" : "coordinator",
                            .sender = local ? none : coordinator,
                            .incarnation = local ? 0 : 1,
                            .frame = frame,
                            .frame_bytes = local ? 0 : sizeof frame,
                            .body = body };
    struct outbox out = { effects, 0, 32, bytes, 0, sizeof bytes };
    role->step(member, &in, &out);
    said = out.count;
    const struct effect *quit = find(FRAME_QUIT);
    return quit ? (int)((const struct wire_quit *)body_of(quit))->code : NO_QUIT;
}

static int hear_leave_ack(void)
{
    return hear(FRAME_ACK, &(struct wire_ack){ .kind = FRAME_LEAVE });
}

static int be_admitted(uint64_t born_unix_ms)
{
    return hear(FRAME_ADMITTED,
                &(struct wire_admitted){ .instance = 7, .born_unix_ms = born_unix_ms });
}

static void begin(const struct core *which)
{
    role = which;
    free(member);
    member = calloc(1, role->size);
    assert_non_null(member);
    role->init(member);
}

static void start(void)
{
    assert_int_equal(hear(FRAME_START, &(struct wire_start){ .instance = 7 }), NO_QUIT);
}

static int be_finished(void)
{
    return hear(FRAME_RUN,
                &(struct wire_run){ .phase = PHASE_FINISHED, .step = LAST_STEP, .log_seq = 40 });
}

// What is held, and saved, of a run that is finished.
static void hold_all(void)
{
    struct replica *replica = role->init == init_trainer || role->init == init_server
                                  ? &((struct trainer *)member)->replica
                              : role->init == init_checkpointer
                                  ? &((struct checkpointer *)member)->replica
                                  : NULL;
    if (replica) replica->holding = true, replica->step = LAST_STEP;
    if (replica) replica->digest = hash_of("all", 3);
    if (role->init == init_checkpointer) ((struct checkpointer *)member)->saved.step = LAST_STEP;
}

// A role that serves no peer ends with the run, and its supervisor does not restart it.
static void a_finished_run_ends_a_role_that_serves_no_peer(void **state)
{
    (void)state;
    for (int i = 0; i < ROLES; i++) {
        begin(&roles[i]);
        start();
        be_admitted(BORN);
        assert_int_equal(be_finished(), role->serves ? NO_QUIT : EX_OK);
        if (!role->serves) continue;
        assert_int_equal(hear(FRAME_QUIT, NULL), NO_QUIT); // The last step is not here yet
        assert_non_null(find(FRAME_LEAVE));
        hold_all();
        be_finished();
        assert_true(member->finished);
        assert_int_equal(hear(FRAME_QUIT, NULL), EX_OK);
    }
}

static void a_member_that_must_stop_asks_first(void **state)
{
    (void)state;
    for (int i = 0; i < ROLES; i++) {
        begin(&roles[i]);
        start();
        assert_int_equal(hear(FRAME_QUIT, NULL), EX_OK); // It was not admitted
        begin(&roles[i]);
        start();
        be_admitted(BORN);
        assert_int_equal(hear(FRAME_QUIT, NULL), NO_QUIT);
        assert_non_null(find(FRAME_LEAVE));
        assert_int_equal(hear_leave_ack(), EX_OK);
    }
}

// The LEAVE was an earlier process's, of the same key.
static void an_ack_of_no_leave_of_its_own_ends_nobody(void **state)
{
    (void)state;
    for (int i = 0; i < ROLES; i++) {
        begin(&roles[i]);
        start();
        be_admitted(BORN);
        assert_int_equal(hear_leave_ack(), NO_QUIT);
    }
}

static void hear_beat(uint64_t log_seq)
{
    hear(FRAME_BEAT, &(struct wire_beat){ .log_seq = log_seq, .born_unix_ms = BORN });
}

static void how_far_the_ledger_was_outlives_the_process(void **state)
{
    (void)state;
    for (int i = 0; i < ROLES; i++) {
        begin(&roles[i]);
        start();
        be_admitted(BORN);
        hear_beat(3);
        hear_beat(4);
        assert_null(find(FRAME_JOURNAL)); // Not for each record
        hear_beat(50);
        assert_non_null(find(FRAME_JOURNAL));
        const struct wire_journal journal =
            *(const struct wire_journal *)body_of(find(FRAME_JOURNAL));
        assert_int_equal(journal.born_unix_ms, BORN);
        begin(role);
        hear(FRAME_JOURNAL, &journal);
        assert_int_equal(member->position.log_seq, 50);
        assert_int_equal(member->proved_incarnation, 1);
    }
}

// What was promised to another run of the name would keep it from its rounds here.
static void promises_are_of_one_run(void **state)
{
    (void)state;
    for (int i = 0; i < ROLES; i++)
        for (int other = 0; other < 2; other++) {
            begin(&roles[i]);
            hear(FRAME_JOURNAL, &(struct wire_journal){
                                    .first.number = 8, .second.number = 9, .born_unix_ms = BORN });
            start();
            be_admitted(BORN + (uint64_t)other);
            assert_int_equal(member->journal.first.number, other ? 0 : 8);
            assert_int_equal(member->journal.second.number, other ? 0 : 9);
        }
}

static struct checkpointer *begin_checkpointer(void)
{
    for (int i = 0; i < ROLES; i++)
        if (roles[i].init == init_checkpointer) begin(&roles[i]);
    start();
    be_admitted(BORN);
    return (struct checkpointer *)member;
}

// While it was written the run went on, and knows newer pins alone.
static void a_checkpoint_that_came_too_late_is_not_registered_for_ever(void **state)
{
    (void)state;
    struct checkpointer *self = begin_checkpointer();
    self->saved = (struct wire_checkpoint){ .step = 4, .digest = hash_of("4", 1), .name = "four" };
    self->registering = true;
    hear_beat(1);
    assert_non_null(find(FRAME_CHECKPOINT));
    struct wire_refused no = { .kind = FRAME_CHECKPOINT,
                               .reason = REFUSAL_WRONG_MODEL,
                               .round = 3 };
    hear(FRAME_REFUSED, &no); // Of an earlier one
    assert_true(self->registering);
    no.round = 4;
    hear(FRAME_REFUSED, &no);
    assert_false(self->registering);
    self->resend_ms = 0;
    hear_beat(2);
    assert_null(find(FRAME_CHECKPOINT));
}

// No manifest has room for the position. A finished run is left all the same, and it is said why there is no checkpoint.
static void an_end_that_cannot_be_saved_is_not_waited_for(void **state)
{
    (void)state;
    static struct interval returned[CHECKPOINT_INTERVALS_MAX + 1];
    struct checkpointer *self = begin_checkpointer();
    for (uint64_t i = 0; i <= CHECKPOINT_INTERVALS_MAX; i++)
        returned[i] = (struct interval){ 2 * i, 2 * i + 1 };
    hold_all();
    self->saved.step = 0;
    be_finished();
    assert_false(member->finished);
    assert_non_null(find(FRAME_ASK));
    hear(FRAME_EPOCH_END,
         &(struct wire_epoch_end){
             .step = LAST_STEP,
             .digest = self->replica.digest,
             .data_position = { .returned = returned,
                                .returned_count = CHECKPOINT_INTERVALS_MAX + 1 } });
    assert_non_null(find(FRAME_NOTE));
    assert_true(member->finished);
}

// Only a save makes room in it, and the epoch may be long.
static void a_checkpoint_is_wanted_before_the_table_of_blobs_is_full(void **state)
{
    (void)state;
    struct checkpointer *self = begin_checkpointer();
    self->blobs.count = BLOBS_MAX / 2;
    hear_beat(1);
    assert_false(self->requested);
    self->blobs.count++;
    hear_beat(2);
    assert_true(self->requested);
}

static int tear_down(void **state)
{
    (void)state;
    free(member);
    return 0;
}

TESTS_WITH(NULL, tear_down, TEST(a_finished_run_ends_a_role_that_serves_no_peer),
           TEST(a_member_that_must_stop_asks_first),
           TEST(an_ack_of_no_leave_of_its_own_ends_nobody),
           TEST(a_checkpoint_that_came_too_late_is_not_registered_for_ever),
           TEST(a_checkpoint_is_wanted_before_the_table_of_blobs_is_full),
           TEST(an_end_that_cannot_be_saved_is_not_waited_for),
           TEST(how_far_the_ledger_was_outlives_the_process), TEST(promises_are_of_one_run))
