// leases_run_test -- the durable half of leases and its verifier. One run is told as records: a group, tasks that are
// trained, late and given up, a server's death, a restore, and a group that is closed. At each of its records a
// snapshot leads to the same run, and what follows leads on from there; the verifier takes each, and refuses it when
// one thing in it is another.

#include "common/pace/evidence.h"
#include "common/pace/leases/leases_pace.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

enum { RECORDS_MAX = 64, BYTES_MAX = 1 << 20, PASS = 20, TASK = 8 };

static struct rules rules;
static struct {
    uint16_t kind;
    uint32_t bytes;
    uint8_t *body;
} records[RECORDS_MAX];
static uint32_t count;
static uint8_t bytes[BYTES_MAX];
static struct wire_arena arena;

// ---- the run --------------------------------------------------------------------------------------

static void put(uint16_t kind, const void *body)
{
    const size_t used = wire_pack_body(kind, body, bytes, sizeof bytes);
    assert_true(used > 0 && count < RECORDS_MAX);
    records[count].kind = kind;
    records[count].bytes = (uint32_t)used;
    records[count].body = malloc(used);
    assert_non_null(records[count].body);
    memcpy(records[count++].body, bytes, used);
}

static const void *record(uint32_t i)
{
    struct wire_refusal refusal;
    const void *body;
    arena.used = 0;
    assert_true(wire_unpack_body(records[i].body, records[i].bytes, records[i].kind, &arena, &body,
                                 &refusal));
    return body;
}

static void put_member(uint32_t index, uint8_t role, uint8_t state)
{
    struct wire_member member = { .index = index, .role = role, .state = state, .instance = 7 };
    member.key.bytes[0] = (uint8_t)(index + 1);
    put(FRAME_RECORD_MEMBER, &member);
}

static void put_phase(uint8_t phase, uint64_t epoch, uint64_t step)
{
    put(FRAME_RECORD_PHASE,
        &(struct wire_record_phase){ .phase = phase, .epoch = epoch, .epoch_start_step = step });
}

// Members 0 and 2 train, 1 is a server.
static void put_group(uint64_t number, uint64_t epoch, uint64_t step, uint64_t samples_done)
{
    static const struct wire_place places[] = { { .member = 0, .instance = 7, .links = "a" },
                                                { .member = 2, .instance = 7, .links = "b" },
                                                { .member = 1, .instance = 7, .links = "c" } };
    put(FRAME_RECORD_GROUP, &(struct wire_group){ .number = number,
                                                  .epoch = epoch,
                                                  .step = step,
                                                  .samples_done = samples_done,
                                                  .group = places,
                                                  .group_count = 3,
                                                  .barrier_ms = 5 });
}

static void put_lease(uint64_t number, uint32_t member, uint64_t begin, uint64_t end)
{
    const struct interval samples = { begin, end };
    put(FRAME_RECORD_LEASE, &(struct wire_lease){ .number = number,
                                                  .member = member,
                                                  .instance = 7,
                                                  .task = begin,
                                                  .samples = &samples,
                                                  .samples_count = 1 });
}

static void put_end(uint64_t lease, uint8_t fate, uint8_t cause, uint64_t samples, uint64_t step,
                    uint64_t end, uint64_t rest)
{
    const float rate = 0.5f;
    uint32_t bits;
    memcpy(&bits, &rate, sizeof bits);
    put(FRAME_RECORD_LEASE_END, &(struct wire_lease_ended){ .lease = lease,
                                                            .fate = fate,
                                                            .cause = cause,
                                                            .samples = samples,
                                                            .step = step,
                                                            .end = end,
                                                            .rest = rest,
                                                            .lr_bits = end > step ? bits : 0,
                                                            .took_ms = 10 });
}

// A step has 6 samples, a pass 20, and a task 8: so tasks of 8, 8 and 4.
static int tell_run(void **state)
{
    (void)state;
    const struct wire_leases_config config = { .servers = 1,
                                               .task_samples = TASK,
                                               .strikes_max = 1,
                                               .time_min_ms = 1,
                                               .time_max_ms = 1000,
                                               .pass_barrier = true,
                                               .batch_start = 6,
                                               .batch_end = 6 };
    rules = (struct rules){ .run_id = "leases",
                            .total_steps = 8,
                            .seq_len = 4,
                            .lr = { .kind = SCHEDULE_CONSTANT, .base_lr = 0.5 } };
    rules_set_strategy(&rules, FRAME_LEASES_CONFIG, &config, sizeof config);
    arena = (struct wire_arena){ .bytes = malloc(4 * BYTES_MAX), .max = 4 * BYTES_MAX };
    put(FRAME_RECORD_GENESIS, &(struct wire_record_genesis){ .run = "leases" });
    put(FRAME_RECORD_START, &(struct wire_record_start){ .incarnation = 1 });
    put_member(0, ACTOR_TRAINER, MEMBER_PENDING);
    put_member(1, ACTOR_SERVER, MEMBER_PENDING);
    put_member(2, ACTOR_TRAINER, MEMBER_PENDING);
    put(FRAME_RECORD_DATA, &(struct wire_record_data){ .samples = PASS });
    put_phase(PHASE_WARMUP, 0, 0);
    put_group(1, 0, 0, 0);
    put_lease(1, 0, 0, 8);
    put_lease(2, 2, 8, 16);
    put_end(1, FATE_RETURNED, LEASE_CAUSE_LATE, 0, 0, 0, 0);
    put_lease(3, 0, 16, 20); // Not the task that it has failed
    put_end(2, FATE_DONE, LEASE_CAUSE_FINISHED, 8, 0, 1, 2);
    put_end(3, FATE_DONE, LEASE_CAUSE_FINISHED, 4, 1, 2, 0);
    put_lease(4, 2, 0, 8);
    put_end(4, FATE_GIVEN_UP, LEASE_CAUSE_DEAD, 0, 2, 2, 0); // The second strike of that task
    put_lease(5, 0, 20, 28);
    put_lease(6, 2, 28, 36);
    put_end(5, FATE_DONE, LEASE_CAUSE_FINISHED, 8, 2, 3, 2);
    put_phase(PHASE_COOLDOWN, 0, 0); // The server is dead, and lease 6 is out
    put_phase(PHASE_WAITING, 1, 0);
    put(FRAME_RECORD_RESTORE, &(struct wire_record_restore){ .epoch = 2 });
    put_phase(PHASE_WARMUP, 2, 0);
    put_group(2, 2, 0, 0);
    put_lease(7, 0, 0, 8);
    put_end(7, FATE_RETURNED, LEASE_CAUSE_FAILED, 0, 0, 0, 0);
    put_end(0, FATE_DONE, LEASE_CAUSE_CLOSED, 0, 0, 1, 0); // It may have trained a part
    put(FRAME_RECORD_CLOSE, &(struct wire_close_group){ 2, 1, 1, 7, false });
    put(FRAME_RECORD_CLOSE, &(struct wire_close_group){ 2, 2, 1, 5, false });
    put(FRAME_RECORD_SETTLED, &(struct wire_group_settled){ 2, 2, 4 });
    put_phase(PHASE_COOLDOWN, 2, 0);
    put_phase(PHASE_WAITING, 3, 0);
    put_phase(PHASE_WARMUP, 3, 1);
    put_group(3, 3, 1, 0);
    put_lease(8, 2, 0, 8); // Member 0 has failed it
    return 0;
}

static int forget_run(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < count; i++) free(records[i].body);
    free(arena.bytes);
    return 0;
}

static struct run *new_run(void)
{
    struct run *run = calloc(1, sizeof *run);
    assert_non_null(run);
    run_init(run, &pace_of(&rules)->run, 1000);
    return run;
}

static struct run *run_after(uint32_t end)
{
    struct run *run = new_run();
    for (uint32_t i = 0; i < end; i++) run_apply(run, records[i].kind, record(i));
    return run;
}

// ---- the durable half -----------------------------------------------------------------------------

static void assert_same(const struct run *a, const struct run *b)
{
    uint8_t parts[2][RUN_PART_BYTES];
    const struct wire_snapshot one = run_to_snapshot(a, parts[0]),
                               other = run_to_snapshot(b, parts[1]);
    assert_true(wire_equal(FRAME_SNAPSHOT, &one, &other));
}

// By way of its bytes.
static bool load(struct run *to, const struct wire_snapshot *snapshot)
{
    static uint8_t packed[BYTES_MAX];
    struct wire_arena memory = { .bytes = malloc(4 * BYTES_MAX), .max = 4 * BYTES_MAX };
    struct wire_refusal refusal;
    const void *body;
    const size_t used = wire_pack_body(FRAME_SNAPSHOT, snapshot, packed, sizeof packed);
    assert_true(used > 0 && memory.bytes);
    assert_true(wire_unpack_body(packed, used, FRAME_SNAPSHOT, &memory, &body, &refusal));
    const bool loaded = run_from_snapshot(to, body);
    free(memory.bytes);
    return loaded;
}

static void a_snapshot_leads_to_the_same_run(void **state)
{
    (void)state;
    uint8_t part[RUN_PART_BYTES];
    struct run *whole = run_after(count);
    for (uint32_t i = 1; i <= count; i++) {
        struct run *run = run_after(i), *again = new_run();
        const struct wire_snapshot snapshot = run_to_snapshot(run, part);
        assert_true(load(again, &snapshot));
        assert_same(run, again);
        for (uint32_t j = i; j < count; j++) run_apply(again, records[j].kind, record(j));
        assert_same(whole, again);
        free(run), free(again);
    }
    free(whole);
}

static void tasks_are_counted(void **state)
{
    (void)state;
    const struct lease_rules lease_rules = leases_rules_of(leases_config(&rules));
    struct run *run = run_after(16);
    struct lease_counts counts = leases_count(&run->table, &lease_rules);
    assert_int_equal(counts.pass, 1); // Of the first, one was given up and two are done
    assert_int_equal(counts.todo, 3);
    assert_int_equal(run->step, 2);
    assert_int_equal(run->samples_done, 12);
    free(run);
    run = run_after(count);
    counts = leases_count(&run->table, &lease_rules);
    assert_int_equal(counts.pass, 0); // The run has gone back
    assert_int_equal(counts.pending, 1);
    assert_int_equal(counts.todo, 2);
    free(run);
}

static void each_lease_has_its_full_time(void **state)
{
    (void)state;
    const struct lease_rules lease_rules = leases_rules_of(leases_config(&rules));
    struct run *run = run_after(10); // Leases 1 and 2 are out
    leases_rearm(&leases_run_times(run)->leases, &lease_rules, 5000);
    assert_int_equal(leases_due_ms(&leases_run_of(run)->leases), 6000);
    free(run);
    run = run_after(12); // One has ended, by its record after 10 ms
    leases_run_arm(leases_run_times(run), &lease_rules, 7000);
    assert_int_equal(leases_run_lease(leases_run_of(run), 3)->deadline_ms, 8000);
    free(run);
}

// A server's death before a step is committed: what is trained of it is dealt again.
static void what_nobody_holds_is_dealt_again(void **state)
{
    (void)state;
    const struct interval samples = { 0, 4 };
    struct run *run = run_after(8);
    const struct wire_lease lease = {
        .number = 1, .instance = 7, .samples = &samples, .samples_count = 1
    };
    run_apply(run, FRAME_RECORD_LEASE, &lease);
    run_apply(run, FRAME_RECORD_LEASE_END,
              &(struct wire_lease_ended){ .lease = 1, .samples = 4, .rest = 4 });
    assert_int_equal(run->samples_done, 4);
    assert_int_equal(run->table.cursor, 4);
    run_apply(run, FRAME_RECORD_PHASE, &(struct wire_record_phase){ .phase = PHASE_COOLDOWN });
    assert_int_equal(run->samples_done, 0);
    assert_int_equal(run->table.cursor, 0);
    free(run);
}

// The same with two tasks out, which get no strike.
static void what_is_out_is_dealt_again(void **state)
{
    (void)state;
    struct run *run = run_after(10);
    assert_int_equal(run->table.count, 2);
    run_apply(run, FRAME_RECORD_PHASE, &(struct wire_record_phase){ .phase = PHASE_COOLDOWN });
    assert_int_equal(run->table.cursor, 0);
    assert_int_equal(run->table.count, 0);
    assert_int_equal(leases_run_of(run)->leases.count, 0);
    assert_int_equal(leases_run_of(run)->leases.struck_count, 0);
    free(run);
}

static void an_epoch_begins_with_a_whole_step(void **state)
{
    (void)state;
    struct run *run = run_after(9); // Lease 1 is out
    const struct wire_group again = { .number = 2, .epoch = 1, .step = 1, .samples_done = 8 };
    run_apply(run, FRAME_RECORD_LEASE_END,
              &(struct wire_lease_ended){ .lease = 1, .samples = 8, .end = 1, .rest = 2 });
    run_apply(run, FRAME_RECORD_CLOSE, &(struct wire_close_group){ 1, 1, 1, 7, false });
    run_apply(run, FRAME_RECORD_SETTLED, &(struct wire_group_settled){ 1, 1, 0 });
    run_apply(run, FRAME_RECORD_PHASE, &(struct wire_record_phase){ .phase = PHASE_COOLDOWN });
    assert_true(leases_run_has_settled(leases_run_of(run), 0, 7));
    assert_false(leases_run_has_settled(leases_run_of(run), 0, 8));
    run_apply(run, FRAME_RECORD_PHASE, &(struct wire_record_phase){ .phase = PHASE_WAITING });
    run_apply(run, FRAME_RECORD_PHASE, &(struct wire_record_phase){ .phase = PHASE_WARMUP });
    run_apply(run, FRAME_RECORD_GROUP, &again);
    assert_int_equal(leases_run_of(run)->rest, 0);
    assert_int_equal(run->samples_done, 8);
    free(run);
}

static void members_that_are_named_keep_their_place(void **state)
{
    (void)state;
    struct run *run = run_after(8);
    assert_true(run->pace->refers_to(run, 1));
    assert_false(run->pace->refers_to(run, 3));
    free(run);
}

// ---- snapshots that can be none -------------------------------------------------------------------

// Of the run with leases 2 and 3 out, and a strike of the first task.
static struct wire_snapshot torn(struct run *run, struct wire_leases_snapshot *part,
                                 uint8_t memory[RUN_PART_BYTES])
{
    struct wire_snapshot snapshot = run_to_snapshot(run, memory);
    *part = *(const struct wire_leases_snapshot *)snapshot.pace.body;
    snapshot.pace.body = part;
    return snapshot;
}

static void a_torn_snapshot_is_refused(void **state)
{
    (void)state;
    uint8_t memory[RUN_PART_BYTES];
    struct run *run = run_after(12);
    struct wire_leases_snapshot part;
    struct wire_lease_out out[3];
    struct wire_strikes struck[2] = { { .task = 0, .count = 1 }, { .task = 0, .count = 2 } };
    const struct interval some = { 2, 5 }, others = { 4, 6 };
    for (int i = 0; i < 16; i++) {
        struct wire_snapshot snapshot = torn(run, &part, memory);
        struct run *again = new_run();
        assert_int_equal(part.leases_count, 2);
        assert_int_equal(part.struck_count, 1);
        memcpy(out, part.leases, 2 * sizeof *out);
        part.leases = out;
        switch (i) {
        case 0: break; // It is sound
        case 1: out[1].number = out[0].number; break;
        case 2: part.newest = 2; break;
        case 3: out[1].instance = 8; break;
        case 4: out[1].member = 3; break;
        case 5: part.leases_count = 1; break; // Samples are pending, of nobody
        case 6: part.is_open = false; break;
        case 7: part.closing = (struct wire_close_group){ 1, 1, 0, 7, false }; break;
        case 8:
            part.struck = struck;
            part.struck_count = 2;
            break;
        case 9: part.differ = 8; break;
        case 10: part.settled = true; break;
        case 11: part.group.group_count = 1; break; // One that has a lease is not in it
        case 12: snapshot.pace.kind = FRAME_WINDOWS_SNAPSHOT; break;
        case 13: part.begin = (struct wire_data_position){ 4, &some, 1, NULL, 0 }; break;
        case 14: part.begin = (struct wire_data_position){ 9, &some, 1, &others, 1 }; break;
        case 15: part.begin = (struct wire_data_position){ 4, NULL, 0, &others, 1 }; break;
        }
        assert_int_equal(i == 12 ? run_from_snapshot(again, &snapshot) : load(again, &snapshot),
                         i == 0);
        free(again);
    }
    free(run);
}

// ---- what the records prove -----------------------------------------------------------------------

static struct evidence *evidence_after(uint32_t end)
{
    struct evidence *evidence = calloc(1, sizeof *evidence);
    assert_non_null(evidence);
    evidence_init(evidence, &rules, NULL);
    for (uint32_t i = 0; i < end; i++)
        if (!evidence_hear(evidence, i + 1, records[i].kind, record(i)))
            fail_msg("%s", evidence->text);
    return evidence;
}

static void the_records_follow(void **state)
{
    (void)state;
    struct evidence *evidence = evidence_after(count);
    assert_int_equal(evidence->step, 1);
    assert_int_equal(evidence->counts[0], 3); // Groups
    assert_int_equal(evidence->counts[1], 8); // Tasks
    assert_int_equal(evidence->counts[2], 4); // Steps
    free(evidence);
}

// Record i is refused if this one stands in its place.
static void assert_refused(uint32_t i, uint16_t kind, const void *body)
{
    struct evidence *evidence = evidence_after(i);
    assert_int_equal(kind, records[i].kind);
    assert_false(evidence_hear(evidence, i + 1, kind, body));
    assert_true(evidence->text[0] != 0);
    free(evidence);
}

static uint32_t find(uint16_t kind, uint32_t nth)
{
    for (uint32_t i = 0; i < count; i++)
        if (records[i].kind == kind && nth-- == 0) return i;
    fail_msg("no such record");
    return 0;
}

static void a_group_that_does_not_follow_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        const uint32_t at = find(FRAME_RECORD_GROUP, 0);
        struct wire_group group = *(const struct wire_group *)record(at);
        struct wire_place places[3];
        memcpy(places, group.group, sizeof places);
        group.group = places;
        switch (i) {
        case 0: group.number = 2; break;
        case 1: group.step = 1; break;
        case 2: group.samples_done = 1; break;
        case 3: group.group_count = 2; break;  // No server
        case 4: places[0].member = 9; break;   // No member
        case 5: places[0].instance = 8; break; // Another process
        case 6: places[1] = places[0]; break;  // Twice
        case 7: places[2].member = 0; break;   // No server
        }
        assert_refused(at, FRAME_RECORD_GROUP, &group);
    }
}

static void a_lease_that_does_not_follow_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 7; i++) {
        const uint32_t at = find(FRAME_RECORD_LEASE, 1); // Lease 2
        struct wire_lease lease = *(const struct wire_lease *)record(at);
        struct interval samples = lease.samples[0];
        lease.samples = &samples;
        switch (i) {
        case 0: lease.number = 1; break;   // Once more
        case 1: lease.member = 0; break;   // It has one
        case 2: lease.member = 1; break;   // A server
        case 3: lease.instance = 8; break; // Not of the group
        case 4: lease.task = 16; break;    // Not the next one
        case 5: samples.end = 15; break;   // Not all of it
        case 6: samples.begin = 0; break;  // More than it
        }
        assert_refused(at, FRAME_RECORD_LEASE, &lease);
    }
}

static void an_end_that_does_not_follow_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        const uint32_t at = find(FRAME_RECORD_LEASE_END, 1); // Lease 2 is done
        struct wire_lease_ended ended = *(const struct wire_lease_ended *)record(at);
        switch (i) {
        case 0: ended.lease = 1; break; // It is over
        case 1: ended.fate = FATE_RETURNED; break;
        case 2: ended.cause = LEASE_CAUSE_LATE; break;
        case 3: ended.samples = 7; break;
        case 4: ended.step = 1; break;
        case 5: ended.end = 2; break;
        case 6: ended.rest = 1; break;
        case 7: ended.lr_bits ^= 1; break;
        case 8: ended.lease = 9; break;
        case 9: // A step without a lease, while one is out
            ended = (struct wire_lease_ended){ .cause = LEASE_CAUSE_CLOSED, .end = 1 };
            ended.lr_bits = ((const struct wire_lease_ended *)record(at))->lr_bits;
            break;
        }
        assert_refused(at, FRAME_RECORD_LEASE_END, &ended);
    }
    const uint32_t last = find(FRAME_RECORD_LEASE_END, 2); // Of a task that is given up
    struct wire_lease_ended ended = *(const struct wire_lease_ended *)record(last);
    ended.fate = FATE_RETURNED;
    assert_refused(last, FRAME_RECORD_LEASE_END, &ended);
}

static void a_closing_that_does_not_follow_is_refused(void **state)
{
    (void)state;
    const uint32_t at = find(FRAME_RECORD_CLOSE, 1), settled = find(FRAME_RECORD_SETTLED, 0);
    assert_refused(at, FRAME_RECORD_CLOSE, &(struct wire_close_group){ 1, 2, 1, 5, false });
    assert_refused(at, FRAME_RECORD_CLOSE, &(struct wire_close_group){ 2, 1, 1, 5, false });
    assert_refused(at, FRAME_RECORD_CLOSE, &(struct wire_close_group){ 2, 2, 2, 5, false });
    assert_refused(at, FRAME_RECORD_CLOSE,
                   &(struct wire_close_group){ 2, 2, 1, 3, false }); // No server
    assert_refused(at, FRAME_RECORD_CLOSE, &(struct wire_close_group){ 2, 2, 1, 13, false });
    assert_refused(settled, FRAME_RECORD_SETTLED, &(struct wire_group_settled){ 1, 2, 0 });
    assert_refused(settled, FRAME_RECORD_SETTLED, &(struct wire_group_settled){ 2, 1, 0 });
    assert_refused(settled, FRAME_RECORD_SETTLED, &(struct wire_group_settled){ 2, 2, 2 });
    assert_refused(settled, FRAME_RECORD_SETTLED, &(struct wire_group_settled){ 2, 2, 5 });
}

// After this record, that one does not follow.
static void assert_no_sequel(uint32_t i, uint16_t kind, const void *body)
{
    struct evidence *evidence = evidence_after(i + 1);
    assert_false(evidence_hear(evidence, i + 2, kind, body));
    free(evidence);
}

static void what_a_group_may_not_do_is_refused(void **state)
{
    (void)state;
    const struct interval samples = { 8, 16 };
    const struct wire_lease lease = {
        .number = 9, .member = 0, .instance = 7, .task = 8, .samples = &samples, .samples_count = 1
    };
    const uint32_t last = find(FRAME_RECORD_LEASE, 7), close = find(FRAME_RECORD_CLOSE, 0);
    struct evidence *evidence = evidence_after(last + 1);
    assert_true(evidence_hear(evidence, last + 2, FRAME_RECORD_LEASE, &lease));
    free(evidence);
    assert_no_sequel(close, FRAME_RECORD_LEASE, &lease);                             // It is closed
    assert_no_sequel(find(FRAME_RECORD_SETTLED, 0) + 1, FRAME_RECORD_LEASE, &lease); // It is over
    assert_no_sequel(last, FRAME_RECORD_CLOSE, // A task is out
                     &(struct wire_close_group){ 3, 1, 1, 7, false });
    assert_no_sequel(last, FRAME_RECORD_RESTORE, &(struct wire_record_restore){ .epoch = 4 });
    // It has dealt a task and committed no step
    assert_no_sequel(find(FRAME_RECORD_LEASE_END, 5), FRAME_RECORD_CLOSE,
                     &(struct wire_close_group){ 2, 1, 0, 7, false });
    // Another step of a group that has committed one
    struct wire_lease_ended again =
        *(const struct wire_lease_ended *)record(find(FRAME_RECORD_LEASE_END, 6));
    again.step++, again.end++;
    assert_no_sequel(find(FRAME_RECORD_LEASE_END, 6), FRAME_RECORD_LEASE_END, &again);
}

// What a group has trained meanwhile, of no step yet, is in no checkpoint of the step that it began with.
static void a_checkpoint_of_the_first_state_has_its_data_position(void **state)
{
    const struct interval some = { 0, 4 };
    const struct wire_lease lease = {
        .number = 1, .member = 0, .instance = 7, .samples = &some, .samples_count = 1
    };
    const struct wire_lease_ended done = { .lease = 1, .fate = FATE_DONE, .samples = 4, .rest = 4 };
    const uint32_t group = find(FRAME_RECORD_GROUP, 0);
    struct wire_checkpoint checkpoint = { .digest = { { 1 } }, .name = "step-00000000" };
    struct run *run = run_after(group);
    (void)state;
    run->digest = checkpoint.digest; // The first state is pinned, as a configuration may do
    run_apply(run, FRAME_RECORD_GROUP, record(group));
    run_apply(run, FRAME_RECORD_LEASE, &lease);
    run_apply(run, FRAME_RECORD_LEASE_END, &done);
    assert_true(run->step == 0 && run->samples_done == 4);
    run_apply(run, FRAME_RECORD_CHECKPOINT, &checkpoint);
    const struct wire_record_restore back = run_restore_point(run);
    assert_true(hash_equal(&back.digest, &checkpoint.digest));
    assert_int_equal(back.data_position.cursor, 0);
    assert_int_equal(back.samples_done, 0);
    free(run);
}

// Group 3 saves step 2 on its way. As it is to end there, it commits another step: no two states have one number.
// That one is saved as it is put together, in whatever attempt. The data position of a save is that of its step.
static void what_is_saved_has_a_number_of_its_own(void **state)
{
    const uint32_t end = count - 1;
    const struct wire_close_group early = { 3, 1, 2, 7, false };
    assert_no_sequel(end, FRAME_RECORD_SAVE, &(struct wire_save_share){ 3, 1 }); // It began there
    put_lease(9, 0, 8, 16);
    put_end(8, FATE_DONE, LEASE_CAUSE_FINISHED, 8, 1, 2, 2);
    assert_no_sequel(count - 1, FRAME_RECORD_SAVE, &(struct wire_save_share){ 2, 2 });
    assert_no_sequel(count - 1, FRAME_RECORD_SAVE, &(struct wire_save_share){ 3, 3 });
    put(FRAME_RECORD_SAVE, &(struct wire_save_share){ 3, 2 });
    assert_no_sequel(count - 1, FRAME_RECORD_SAVE, &(struct wire_save_share){ 3, 2 });
    struct run *run = run_after(count);
    const struct wire_record_restore save = run_point_whole(&run->save_point);
    assert_true(save.step == 2 && save.samples_done == 8);
    assert_int_equal(save.data_position.cursor, 8); // What is out is trained again
    assert_int_equal(save.data_position.returned_count, 0);
    free(run);
    put_end(9, FATE_RETURNED, LEASE_CAUSE_LATE, 0, 2, 2, 2);
    assert_no_sequel(count - 1, FRAME_RECORD_CLOSE, &early);
    put_end(0, FATE_DONE, LEASE_CAUSE_CLOSED, 0, 2, 3, 0);
    put(FRAME_RECORD_CLOSE, &(struct wire_close_group){ 3, 1, 3, 7, true });
    assert_no_sequel(count - 1, FRAME_RECORD_SAVE, &(struct wire_save_share){ 3, 3 });
    put(FRAME_RECORD_CLOSE, &(struct wire_close_group){ 3, 2, 3, 7, true });
    put(FRAME_RECORD_SETTLED, &(struct wire_group_settled){ 3, 2, 0 });
    free(evidence_after(count));
    run = run_after(count);
    assert_int_equal(run->save_point.at.step, 3);
    free(run);
    a_snapshot_leads_to_the_same_run(state);
}

TESTS_WITH(tell_run, forget_run, TEST(a_snapshot_leads_to_the_same_run), TEST(tasks_are_counted),
           TEST(each_lease_has_its_full_time), TEST(what_nobody_holds_is_dealt_again),
           TEST(what_is_out_is_dealt_again), TEST(an_epoch_begins_with_a_whole_step),
           TEST(members_that_are_named_keep_their_place), TEST(a_torn_snapshot_is_refused),
           TEST(the_records_follow), TEST(a_group_that_does_not_follow_is_refused),
           TEST(a_lease_that_does_not_follow_is_refused),
           TEST(an_end_that_does_not_follow_is_refused),
           TEST(a_closing_that_does_not_follow_is_refused),
           TEST(what_a_group_may_not_do_is_refused),
           TEST(a_checkpoint_of_the_first_state_has_its_data_position),
           TEST(what_is_saved_has_a_number_of_its_own)) // Last: it adds records
