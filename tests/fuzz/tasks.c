// The records of a run that is not in step: groups, leases of tasks, how they end, how a group is closed. The first byte
// chooses:
//
//     'r'   records, eight bytes each, behind those with which each run begins: the verifier of a ledger takes each, or
//           says why it does not follow (evidence.h). Accepted if it takes one that ends a lease
//     's'   the packed part of a snapshot: a run loads it, or refuses it (run.h). What it loads it stores again

#include "common/base/ensure.h"
#include "common/pace/evidence.h"
#include "common/pace/leases/leases_pace.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { RECORD = 8, PASS = 20, TASK = 8, BYTES_MAX = 1 << 16 };

static struct rules rules;

static void make_rules(void)
{
    const struct wire_leases_config config = { .servers = 1,
                                               .task_samples = TASK,
                                               .strikes_max = 1,
                                               .time_min_ms = 1,
                                               .time_max_ms = 1000,
                                               .pass_barrier = true,
                                               .batch_start = 6,
                                               .batch_end = 6 };
    rules = (struct rules){ .run_id = "tasks",
                            .total_steps = 20,
                            .seq_len = 4,
                            .lr = { .kind = SCHEDULE_CONSTANT, .base_lr = 0.5 } };
    rules_set_strategy(&rules, FRAME_LEASES_CONFIG, &config, sizeof config);
}

// As it comes from a disk: packed, and unpacked. False: it has no such bytes, or says nothing that can be.
static bool hear(struct evidence *evidence, uint64_t *seq, uint16_t kind, const void *body)
{
    static uint8_t packed[BYTES_MAX], room[4 * BYTES_MAX];
    struct wire_arena arena = { room, 0, sizeof room };
    struct wire_refusal refusal;
    const void *heard;
    if (!wire_valid(kind, body, &refusal)) return false;
    const size_t used = wire_pack_body(kind, body, packed, sizeof packed);
    ensure(used > 0);
    ensure(wire_unpack_body(packed, used, kind, &arena, &heard, &refusal));
    ++*seq;
    const bool follows = evidence_hear(evidence, *seq, kind, heard);
    ensure(follows || evidence->text[0]);
    if (!follows && fuzz_is_verbose()) printf("%s\n", evidence->text);
    return follows;
}

// What is known of the tasks adds up after each record.
static void check_tasks(const struct evidence *evidence)
{
    const struct leases_witness *witness = (const void *)evidence->pace_state;
    const struct lease_rules lease_rules = leases_rules_of(leases_config(&rules));
    const struct lease_counts counts = leases_count(&witness->table, &lease_rules);
    ensure(counts.todo + counts.pending + counts.done + counts.failed == 3);
    ensure(witness->run.leases.count <= 2); // One a trainer
}

static void hear_start(struct evidence *evidence, uint64_t *seq)
{
    static const uint8_t roles[] = { ACTOR_TRAINER, ACTOR_SERVER, ACTOR_TRAINER };
    ensure(
        hear(evidence, seq, FRAME_RECORD_GENESIS, &(struct wire_record_genesis){ .run = "tasks" }));
    ensure(
        hear(evidence, seq, FRAME_RECORD_START, &(struct wire_record_start){ .incarnation = 1 }));
    for (uint32_t i = 0; i < 3; i++) {
        struct wire_member member = { .index = i, .role = roles[i], .instance = 7 };
        member.state = MEMBER_PENDING;
        member.key.bytes[0] = (uint8_t)(i + 1);
        ensure(hear(evidence, seq, FRAME_RECORD_MEMBER, &member));
    }
    ensure(hear(evidence, seq, FRAME_RECORD_DATA, &(struct wire_record_data){ .samples = PASS }));
    ensure(hear(evidence, seq, FRAME_RECORD_PHASE,
                &(struct wire_record_phase){ .phase = PHASE_WARMUP }));
}

static uint64_t number(uint8_t byte) { return byte == 255 ? UINT64_MAX : byte; }

static bool hear_group(struct evidence *evidence, uint64_t *seq, const uint8_t *at)
{
    static const uint32_t order[] = { 0, 2, 1 };
    struct wire_place places[3];
    for (uint32_t i = 0; i < 3; i++)
        places[i] = (struct wire_place){ .member = order[i] ^ (at[7] >> i & 1),
                                         .instance = at[6] == 1 ? 8 : 7,
                                         .links = "a" };
    return hear(evidence, seq, FRAME_RECORD_GROUP,
                &(struct wire_group){ .number = number(at[1]),
                                      .epoch = at[2],
                                      .step = number(at[3]),
                                      .samples_done = number(at[4]),
                                      .group = places,
                                      .group_count = 3 });
}

static bool hear_lease(struct evidence *evidence, uint64_t *seq, const uint8_t *at)
{
    const struct interval samples[] = { { number(at[3]), number(at[4]) }, { at[5], at[6] } };
    return hear(evidence, seq, FRAME_RECORD_LEASE,
                &(struct wire_lease){ .number = number(at[1]),
                                      .member = at[2] % 4,
                                      .instance = 7,
                                      .task = number(at[3]),
                                      .samples = samples,
                                      .samples_count = at[7] ? 2 : 1 });
}

static bool hear_end(struct evidence *evidence, uint64_t *seq, const uint8_t *at)
{
    const float rate = 0.5f;
    uint32_t bits;
    memcpy(&bits, &rate, sizeof bits);
    struct wire_lease_ended ended = { .lease = number(at[1]),
                                      .fate = at[2] % FATE_COUNT,
                                      .cause = at[2] / FATE_COUNT % LEASE_CAUSE_COUNT,
                                      .samples = number(at[3]),
                                      .step = number(at[4]),
                                      .end = number(at[5]),
                                      .rest = number(at[6]) };
    ended.lr_bits = ended.end > ended.step ? bits : 0;
    return hear(evidence, seq, FRAME_RECORD_LEASE_END, &ended);
}

static bool hear_record(struct evidence *evidence, uint64_t *seq, const uint8_t *at)
{
    switch (at[0] % 8) {
    case 0: return hear_group(evidence, seq, at);
    case 1:
    case 2: return hear_lease(evidence, seq, at);
    case 3:
    case 4: return hear_end(evidence, seq, at);
    case 5: {
        const struct wire_close_group closing = { number(at[1]), number(at[2]), number(at[3]),
                                                  number(at[4]), at[5] & 1 };
        return hear(evidence, seq, FRAME_RECORD_CLOSE, &closing);
    }
    case 7: {
        const struct wire_save_share save = { number(at[1]), number(at[2]) };
        const struct wire_record_kept kept = { save.number, save.step, { { at[4] } } };
        if (at[3] % 3 == 2) return hear(evidence, seq, FRAME_RECORD_KEPT, &kept);
        return hear(evidence, seq, at[3] % 3 ? FRAME_RECORD_COPY : FRAME_RECORD_SAVE, &save);
    }
    default: {
        const struct wire_group_settled settled = { number(at[1]), number(at[2]), number(at[3]) };
        return hear(evidence, seq, FRAME_RECORD_SETTLED, &settled);
    }
    }
}

static bool hear_records(const uint8_t *bytes, size_t count)
{
    const size_t size = sizeof(struct evidence);
    struct evidence *evidence =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t seq = 0;
    bool has_ended = false;
    ensure(evidence != MAP_FAILED);
    evidence_init(evidence, &rules, NULL);
    hear_start(evidence, &seq);
    for (const uint8_t *at = bytes; (size_t)(bytes + count - at) >= RECORD; at += RECORD) {
        if (!hear_record(evidence, &seq, at)) break;
        check_tasks(evidence);
        has_ended |= at[0] % 7 == 3 || at[0] % 7 == 4;
    }
    munmap(evidence, size);
    return has_ended;
}

static bool load_snapshot(const uint8_t *bytes, size_t count)
{
    static uint8_t room[1 << 20], memory[RUN_PART_BYTES], packed[2][BYTES_MAX];
    struct wire_arena arena = { room, 0, sizeof room };
    struct wire_refusal refusal;
    const void *body;
    if (!wire_unpack_body(bytes, count, FRAME_LEASES_SNAPSHOT, &arena, &body, &refusal))
        return false;
    struct run *run = calloc(1, sizeof *run);
    ensure(run);
    run_init(run, &pace_of(&rules)->run, PASS);
    run->roster.count = 3;
    const struct wire_part part = { FRAME_LEASES_SNAPSHOT, body };
    const bool loads = leases_run_load(run, &part);
    if (loads) {
        const struct wire_part stored = leases_run_store(run, memory);
        const size_t one = wire_pack_body(FRAME_LEASES_SNAPSHOT, body, packed[0], BYTES_MAX);
        const size_t other =
            wire_pack_body(FRAME_LEASES_SNAPSHOT, stored.body, packed[1], BYTES_MAX);
        ensure(one == other && memcmp(packed[0], packed[1], one) == 0);
    }
    free(run);
    return loads;
}

bool tasks_fuzz_check(const uint8_t *bytes, size_t count)
{
    if (!rules.total_steps) make_rules();
    if (count == 0) return false;
    if (bytes[0] == 'r') return hear_records(bytes + 1, count - 1);
    return bytes[0] == 's' && load_snapshot(bytes + 1, count - 1);
}

void tasks_fuzz_write_seeds(const char *folder)
{
    enum {
        DONE = FATE_DONE + FATE_COUNT * LEASE_CAUSE_FINISHED,
        LATE = FATE_RETURNED + FATE_COUNT * LEASE_CAUSE_LATE
    };
    static const uint8_t run[] = {
        'r', 0, 1,    0, 0,  0, 0, 0, 0, // A group
        1,   1, 0,    0, 8,  0, 0, 0,    // Tasks for both trainers
        1,   2, 2,    8, 16, 0, 0, 0,    //
        3,   1, LATE, 0, 0,  0, 0, 0,    //
        3,   2, DONE, 8, 0,  1, 2, 0,    // A step, and 2 samples more
        7,   1, 1,    1, 0,  0, 0, 0,    // It is copied
        7,   1, 1,    2, 9,  0, 0, 0,    // and kept
    };
    static const uint8_t late[] = { 'r', 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 8, 16, 0, 0, 0 };
    const struct wire_strikes struck[] = { { .task = 8, .count = 1 } };
    static const struct wire_place keepers[] = { { .member = 1, .instance = 7, .links = "" } };
    const struct wire_leases_snapshot snapshot = {
        .newest = 3,
        .struck = struck,
        .struck_count = 1,
        .copy_number = 1,
        .copy_step = 4,
        .memory = { .kept = { .step = 4 }, .kept_in = 1, .keepers = keepers, .keepers_count = 1 },
    };
    uint8_t packed[1024] = "s";
    const size_t used =
        wire_pack_body(FRAME_LEASES_SNAPSHOT, &snapshot, packed + 1, sizeof packed - 1);
    fuzz_write_seed(folder, "accepted-run", run, sizeof run);
    fuzz_write_seed(folder, "refused-task", late, sizeof late);
    fuzz_write_seed(folder, "accepted-snapshot", packed, used + 1);
}
