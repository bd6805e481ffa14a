// honest_audits -- N results of honest members, each made again by members of other processors as
// an audit does (result_again), and held against what they claim: payload and residual.
//
//     author: gradient, clip, compress on its instruction set and threads ──▶ payload, residual_to
//     auditor: another instruction set, other threads, the shown residual ──▶ the same, to the bit?
//     every result is then applied by all six members, as a commit, and their digests are compared
//
// Both precisions, one bit and full values, two shapes of model; samples, batch size and rate by
// chance. `make honest-audits N=10000`. Ends with 0 if nothing differed. Linked with --wrap so that
// the transform's kernels (distro_kernels.h) follow the instruction set as the model's do.

#include "common/base/ensure.h"
#include "common/crypto/merkle.h"
#include "common/kernel/kernels.h"
#include "common/model/genesis.h"
#include "common/model/model_tensors.h"
#include "common/optimizer/distro_kernels.h"
#include "common/optimizer/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A case is a shape, a precision and a kind of payload.
enum { ISAS = 4, MEMBERS = 8, MICRO_BATCH = 4, BATCH_MAX = 9, RENEW = 40, CASES = 12 };

static const char *const isas[ISAS] = { "avx2", "avx512", "avx512bf16", "amx" };
static const uint32_t threads[MEMBERS] = { 1, 3, 2, 1, 7, 2, 1, 4 };

// Not every vocabulary and side is a multiple of a vector.
static const struct model_shape shapes[] = {
    { .vocab = 97,
      .dim = 32,
      .layers = 2,
      .heads = 2,
      .kv_heads = 1,
      .head_dim = 16,
      .ffn = 72,
      .seq_len_max = 24,
      .rope_theta = 10000,
      .rms_eps = 1e-5,
      .tied = true },
    { .vocab = 512,
      .dim = 96,
      .layers = 3,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 24,
      .ffn = 264,
      .seq_len_max = 48,
      .rope_theta = 10000,
      .rms_eps = 1e-5,
      .tied = false },
};

static uint32_t present[ISAS], present_count; // On this processor
static uint32_t isa_now;                      // Of the member that computes

const struct distro_kernels *__wrap_distro_kernels_best(void);
const struct distro_kernels *__wrap_distro_kernels_best(void)
{
    const struct distro_kernels *kernels =
        distro_kernels_named(isa_now == 0 ? "avx2" : "avx512"); // Which have no bf16 of their own
    ensure(kernels);
    return kernels;
}

struct member {
    uint32_t isa;
    pool_t *pool;
    compute_t *compute;
    optimizer_t *distro;
};

// One model in one precision, held alike by all members.
struct run {
    const struct model_shape *shape;
    uint64_t floats, seed, leaf_count;
    struct layout_tensor *room;
    struct layout layout;
    size_t bytes; // Of a payload
    struct member members[MEMBERS];
    uint8_t *payload, *again;
    struct hash *leaves;
    uint32_t *tokens;
    uint32_t round;
};

struct counts {
    uint64_t audits, payloads_differ, residuals_differ;
};

static uint64_t draw(struct run *run)
{
    uint64_t z = run->seed += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static void become(const struct member *member)
{
    isa_now = member->isa;
    ensure(learn_set_isa(isas[member->isa]));
}

static void must(int rc, const struct why *why)
{
    if (rc == 0) return;
    fprintf(stderr, "%s: %s\n", fault_name(rc), why->text);
    exit(1);
}

// All members at the same parameters, with no residual.
static void renew(struct run *run)
{
    struct why why = { 0 };
    const uint64_t seed = draw(run);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        become(&run->members[i]);
        genesis_fill(run->shape, seed, compute_host(run->members[i].compute));
        must(compute_push(run->members[i].compute, &why), &why);
        must(optimizer_forget(run->members[i].distro, &why), &why);
    }
}

static void run_init(struct run *run, uint32_t number)
{
    struct why why = { 0 };
    struct compute_device device;
    *run = (struct run){ .shape = &shapes[number / (2 * GEMM_PRECISIONS)], .seed = number };
    run->floats = model_parameter_count(run->shape);
    run->leaf_count = digest_leaf_count(run->floats);
    run->room = calloc(model_tensor_count(run->shape), sizeof *run->room);
    ensure(run->room);
    must(model_tensors_layout(run->shape, run->room, &why, &run->layout), &why);
    must(compute_find("cpu", &why, &device), &why);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct member *member = &run->members[i];
        *member =
            (struct member){ .isa = present[i % present_count], .pool = pool_new(threads[i]) };
        become(member);
        const struct optimizer_place place = {
            run->shape, &run->layout, { 0, run->floats }, member->pool
        };
        const struct optimizer_settings settings = {
            .decay = 0.999f, .keeps_former = true, .chunk = 32, .topk = 8, .one_bit = number % 2
        };
        must(optimizer_new(&optimizer_distro, &place, &settings, &why, &member->distro), &why);
        struct compute_config config = { .shape = *run->shape,
                                         .micro_batch = MICRO_BATCH,
                                         .seq = run->shape->seq_len_max,
                                         .trains = true,
                                         .precision = number / 2 % GEMM_PRECISIONS,
                                         .recompute = i >= ISAS,
                                         .pool = member->pool };
        optimizer_ask(member->distro, &config);
        must(compute_new(&device, &config, &why, &member->compute), &why);
        must(optimizer_begin(member->distro, member->compute, &why), &why);
    }
    run->bytes = payload_bytes(result_form(run->members[0].distro));
    run->payload = malloc(run->bytes);
    run->again = malloc(run->bytes);
    run->leaves = calloc(run->leaf_count, sizeof *run->leaves);
    run->tokens = calloc(BATCH_MAX * ((size_t)run->shape->seq_len_max + 1), sizeof *run->tokens);
    ensure(run->payload && run->again && run->leaves && run->tokens);
}

static void run_end(struct run *run)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        compute_destroy(&run->members[i].compute);
        optimizer_destroy(&run->members[i].distro);
        pool_destroy(&run->members[i].pool);
    }
    free(run->room);
    free(run->payload), free(run->again), free(run->leaves), free(run->tokens);
}

static uint32_t fill_batch(struct run *run)
{
    const uint32_t count = 1 + (uint32_t)(draw(run) % BATCH_MAX);
    for (size_t i = 0; i < count * ((size_t)run->shape->seq_len_max + 1); i++)
        run->tokens[i] = (uint32_t)(draw(run) % (1 + draw(run) % run->shape->vocab));
    return count;
}

static void audit(struct run *run, const struct member *author, const struct member *auditor,
                  const struct result_work *work, const struct hash *to, struct counts *counts)
{
    struct why why = { 0 };
    struct hash found;
    struct result_work own = *work;
    own.params = compute_host(auditor->compute);
    become(auditor);
    must(result_gradient_again(auditor->distro, &own, &why), &why);
    must(result_again(auditor->distro, &own, &why, run->again, &found), &why);
    struct counts *count = &counts[author->isa * ISAS + auditor->isa];
    count->audits++;
    count->payloads_differ += memcmp(run->again, run->payload, run->bytes) != 0;
    count->residuals_differ += !hash_equal(&found, to);
}

// The commit of this one result. Returns how many hold other parameters than the first afterwards.
static uint64_t commit(struct run *run, const struct member *author, float rate)
{
    const struct apply_result result = { 0, run->payload, run->bytes, false };
    const struct apply_step step = { .rate = rate, .weight_decay = 0.1f };
    struct why why = { 0 };
    struct hash first = { { 0 } };
    uint64_t differ = 0;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct member *member = &run->members[i];
        become(member);
        must(result_apply(member->distro, &result, 1, &step, &why), &why);
        must(compute_leaves(member->compute, COMPUTE_PARAMETERS, &why, run->leaves), &why);
        const struct hash digest = merkle_root(run->leaves, run->leaf_count);
        if (i == 0) first = digest;
        differ += !hash_equal(&digest, &first);
        if (member == author) result_adopt(member->distro);
    }
    return differ;
}

// One result, audited by every other member. Returns how many replicas differ once it is applied.
static uint64_t play(struct run *run, struct counts *counts)
{
    const struct member *author = &run->members[draw(run) % MEMBERS];
    struct result_work work = { .tokens = run->tokens,
                                .count = fill_batch(run),
                                .clip = 1.0,
                                .rate = 1e-4f * (float)(1 + draw(run) % 100) };
    struct why why = { 0 };
    struct hash from, to;
    double loss, norm;
    if (run->round++ % RENEW == 0) renew(run);
    become(author);
    must(compute_gradient(author->compute, work.tokens, work.count, &why, &loss), &why);
    must(compute_clip(author->compute, work.clip, &why, &norm), &why);
    must(result_make(author->distro, work.rate, &why, run->payload), &why);
    must(result_hashes(author->distro, &why, &from, &to), &why);
    work.residual = hash_is_none(&from) ? NULL : result_residual(author->distro, &from);
    ensure(hash_is_none(&from) || work.residual);
    for (uint32_t i = 0; i < MEMBERS; i++)
        if (&run->members[i] != author) audit(run, author, &run->members[i], &work, &to, counts);
    return commit(run, author, work.rate);
}

static void print_table(const struct counts *counts, uint64_t replicas_differ)
{
    printf("%-11s %-11s %8s %16s %17s\n", "author", "auditor", "audits", "payloads differ",
           "residuals differ");
    for (uint32_t i = 0; i < ISAS * ISAS; i++)
        if (counts[i].audits > 0)
            printf("%-11s %-11s %8" PRIu64 " %16" PRIu64 " %17" PRIu64 "\n", isas[i / ISAS],
                   isas[i % ISAS], counts[i].audits, counts[i].payloads_differ,
                   counts[i].residuals_differ);
    printf("replicas that differed after a commit: %" PRIu64 "\n", replicas_differ);
}

int main(int argc, char **argv)
{
    static struct run run;
    const unsigned long wanted = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
    struct counts counts[ISAS * ISAS] = { 0 };
    uint64_t audits = 0, differ = 0, replicas_differ = 0;
    ensure(wanted >= 1 && wanted <= 100000000);
    for (uint32_t i = 0; i < ISAS; i++)
        if (learn_set_isa(isas[i])) present[present_count++] = i;
        else printf("%s: not on this processor\n", isas[i]);
    if (present_count == 0) {
        printf("ok 1 - honest audits # SKIP not even AVX2 on this processor\n");
        return 0;
    }
    // The larger model has a fifth of them: it takes ten times as long
    for (uint32_t number = 0; number < CASES; number++) {
        const uint64_t share = wanted * (number < CASES / 2 ? 4 : 1) / (5 * CASES / 2) + 1;
        run_init(&run, number);
        for (uint64_t made = 0; made < share; made += MEMBERS - 1)
            replicas_differ += play(&run, counts);
        run_end(&run);
    }
    for (uint32_t i = 0; i < ISAS * ISAS; i++) {
        audits += counts[i].audits;
        differ += counts[i].payloads_differ + counts[i].residuals_differ;
    }
    print_table(counts, replicas_differ);
    const bool same = differ == 0 && replicas_differ == 0 && audits >= wanted;
    // One instruction set against itself shows only other numbers of threads, so the test is
    // skipped
    printf("%s 1 - %" PRIu64 " honest audits, %" PRIu64 " differ%s\n", same ? "ok" : "not ok",
           audits, differ, same && present_count == 1 ? " # SKIP only one instruction set" : "");
    return !same;
}
