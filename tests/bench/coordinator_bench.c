// coordinator_bench -- the core's own time for one round, by the number of members.
//
// Everything a round asks of it: a ping from each member, the votes of 32 witnesses that each name
// every client, the commit, the next round's draw, deal and election, and packing all that is
// stored and told. No sockets, no disk. The limit it is compared with: growing no faster than
// linearly, so the time per member at 10,000 is to be no more than at 100. (Psyche stops at 256
// members.)
//
// And how much of its memory it has touched by then: a struct coordinator has room for 16,384 members, and
// what nobody needs is never touched. The limit: 16 MiB for all of them.

#include "actors/coordinator/coordinator.h"
#include "common/base/ensure.h"
#include "common/pace/rounds/bloom.h"
#include "common/pace/rounds/claims.h"
#include "common/pace/rounds/rounds.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 12, BODY_MAX = 64 << 20 };

static struct key key_of(uint32_t i)
{
    const struct hash hash = hash_of_two("member", 6, &i, sizeof i);
    struct key key;
    memcpy(key.bytes, hash.bytes, KEY_BYTES);
    return key;
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

struct bench {
    struct coordinator *core;
    struct outbox out;
    uint64_t clock_ms;
    uint32_t members;
    struct wire_seen *seen;
    uint64_t *words;
    uint8_t *participants;
};

static void tell(struct bench *self, uint32_t member, uint16_t kind, const void *body)
{
    char name[ACTOR_NAME_MAX + 1];
    struct key key = key_of(member);
    actor_name(ACTOR_TRAINER, &key, name);
    struct msg in = { .now_ms = self->clock_ms,
                      .kind = kind,
                      .run = "bench",
                      .from = name,
                      .sender = key,
                      .body = body };
    outbox_clear(&self->out);
    coordinator_step(self->core, &in, &self->out);
}

static void wake(struct bench *self, uint16_t kind, const void *body)
{
    struct msg in = { .now_ms = self->clock_ms, .kind = kind, .run = "", .from = "", .body = body };
    outbox_clear(&self->out);
    coordinator_step(self->core, &in, &self->out);
}

static void join_all(struct bench *self)
{
    for (uint32_t i = 0; i < self->members; i++) {
        struct wire_join join = { .role = ACTOR_TRAINER, .instance = 1 };
        struct key key = key_of(i);
        actor_name(ACTOR_TRAINER, &key, join.name);
        tell(self, i, FRAME_JOIN, &join);
    }
    self->clock_ms += 2000;
    wake(self, FRAME_WAKE, &(struct wire_wake){ 0 });
    struct hash digest = hash_of("parameters", 10);
    for (uint32_t i = 0; i < self->members; i++)
        tell(self, i, FRAME_HOLDS,
             &(struct wire_holds){ .step = self->core->run.step, .digest = digest });
    ensure(self->core->run.phase == PHASE_TRAIN);
}

// One round as its witnesses see it. The votes are made before the clock starts.
static double time_round(struct bench *self)
{
    struct run *run = &self->core->run;
    uint32_t clients = round_of(run)->clients_count, count = 0;
    struct bloom bloom;
    bloom_init(&bloom, clients, round_of(run)->opened.seed, self->words);
    for (uint32_t c = 0; c < clients; c++) {
        struct share share;
        struct hash item =
            hash_of(run->roster.members[round_of(run)->clients[c].member].key.bytes, HASH_BYTES);
        bloom_add(&bloom, &item);
        if (!deal_of_trainer(&rounds_live(self->core->live)->deal, c, &share)) continue;
        uint64_t what[2] = { round_of(run)->opened.round, c };
        self->seen[count++] = (struct wire_seen){ .client = c,
                                                  .result = hash_of(what, sizeof what),
                                                  .payload = hash_of_two(what, sizeof what, "p", 1),
                                                  .payload_bytes = 5000,
                                                  .base = hash_of(&run->step, sizeof run->step) };
        if (run->digest_step == run->step) self->seen[count - 1].base = run->digest;
    }
    bloom_store(&bloom, self->participants);
    struct wire_vote vote = { .round = round_of(run)->opened.round,
                              .complete = true,
                              .seen = self->seen,
                              .seen_count = count,
                              .participants = { self->participants,
                                                (uint32_t)bloom_bytes(clients) } };
    uint32_t witnesses[WITNESSES_MAX], elected = round_of(run)->witnesses_count;
    for (uint32_t i = 0; i < elected; i++) witnesses[i] = round_of(run)->witnesses[i].member;
    uint64_t before = round_of(run)->opened.round;
    self->clock_ms += 500;
    double began = now_ms();
    for (uint32_t i = 0; i < self->members; i++)
        tell(self, i, FRAME_PING, &(struct wire_ping){ .instance = 1, .round = before });
    for (uint32_t i = 0; i < elected && round_of(run)->opened.round == before; i++)
        tell(self, witnesses[i], FRAME_VOTE, &vote);
    double took = now_ms() - began;
    ensure(round_of(run)->opened.round == before + 1 && run->step == before);
    return took;
}

static double touched_mib(const struct coordinator *core)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (uintptr_t)core & ~(page - 1);
    const size_t pages = ((uintptr_t)(core + 1) - first + page - 1) / page;
    unsigned char *is_here = calloc(pages, 1);
    size_t count = 0;
    ensure(is_here && mincore((void *)first, pages * page, is_here) == 0);
    for (size_t i = 0; i < pages; i++) count += is_here[i] & 1;
    free(is_here);
    return (double)(count * page) / (1 << 20);
}

static double measure(uint32_t members, double *ret_mib)
{
    struct rules rules = { .run_id = "bench",
                           .run_seed = 1,
                           .waiting_ms = 1000,
                           .warmup_ms = 100000,
                           .train_ms = 100000,
                           .witness_ms = 100000,
                           .cooldown_ms = 1000,
                           .epoch_rounds = 1000000,
                           .total_steps = 1000000,
                           .min_clients = 1,
                           .init_min_clients = members,
                           .batch_start = 16384,
                           .batch_end = 16384,
                           .seq_len = 128,
                           .lr = { .base_lr = 1e-3 },
                           .heartbeat_ms = 1000,
                           .lease_ms = 10000000,
                           .unhealthy_rounds = 3,
                           .snapshot_rounds = 16,
                           .frame = { .data.kind = DATA_LOCAL } };
    const struct wire_rounds_config strategy = { .payload_bytes = 5000 };
    rules_set_strategy(&rules, FRAME_ROUNDS_CONFIG, &strategy, sizeof strategy);
    struct bench self = { .core = calloc(1, sizeof *self.core),
                          .members = members,
                          .clock_ms = 1000,
                          .seen = calloc(members, sizeof *self.seen),
                          .words = calloc(BLOOM_WORDS(members), sizeof *self.words),
                          .participants = calloc(1, bloom_bytes(members)),
                          .out = { .effects = calloc(65536, sizeof(struct effect)),
                                   .count_max = 65536,
                                   .bytes = malloc(BODY_MAX),
                                   .bytes_max = BODY_MAX } };
    ensure(self.core && self.seen && self.words && self.participants && self.out.effects &&
           self.out.bytes);
    coordinator_init(self.core, &rules);
    wake(&self, FRAME_START, &(struct wire_start){ .incarnation = 1, .instance = 1 });
    join_all(&self);
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double took = time_round(&self);
        if (took < best) best = took;
    }
    *ret_mib = touched_mib(self.core);
    free(self.core), free(self.seen), free(self.words), free(self.participants);
    free(self.out.effects), free(self.out.bytes);
    return best;
}

int main(void)
{
    const uint32_t sizes[] = { 100, 1000, 10000, MEMBERS_MAX };
    double per_member = 0, mib;
    puts("coordinator core, one round (CPU time, best of 12): pings, 32 votes naming all, commit, "
         "next round");
    for (int i = 0; i < 4; i++) {
        double ms = measure(sizes[i], &mib);
        if (i == 0) per_member = ms / sizes[i];
        printf("  %6u members %9.3f ms  %7.2f us a member   %.2f of linear from 100   %.2f MiB "
               "touched\n",
               sizes[i], ms, 1e3 * ms / sizes[i], ms / sizes[i] / per_member, mib);
    }
    return 0;
}
