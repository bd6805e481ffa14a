// network -- untrusted bytes beside frames, each against its decoder: a value that is accepted must
// pack to the same bytes again, and a proof is believed only if it is the true one.

#include "tests/fuzz/network.h"
#include "common/pace/rounds/tally.h"
#include "common/base/ensure.h"
#include "common/crypto/merkle.h"
#include "common/optimizer/payload.h"
#include "common/pace/rounds/claims.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/wire_fill.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- payloads -----------------------------------------------------------------------------------

enum { FORMS = 10, CHUNK_MAX = 64 };

// Shared numbers, numbers of their own; from 6 on selections, without lows and with them.
static const payload_form_t *form_of(unsigned number)
{
    static payload_form_t *forms[FORMS];
    static const struct chunks_tensor tensors[2] = { { 0, 8, 12 }, { 100, 1, 20 } };
    static const struct chunks_tensor large = { 0, 32, 32 };
    static const uint8_t limit[FORMS] = { 4, 4, 4, 8, 8, 8, 8, 8, 32, 32 };
    static const uint8_t top_k[FORMS] = { 1, 4, 7, 1, 4, 7, 30, 30, 20, 20 };
    const unsigned kind = number % FORMS;
    payload_form_t **place = &forms[kind];
    chunks_t *chunks;
    if (*place) return *place;
    if (kind < 8) ensure(chunks_new(tensors, 2, 120, limit[kind], NULL, &chunks) == 0);
    else ensure(chunks_new(&large, 1, 1024, limit[kind], NULL, &chunks) == 0);
    ensure(payload_form_new(chunks, top_k[kind], kind & 1, NULL, place) == 0);
    return *place;
}

// What was accepted says one thing only: written again from what it says, it is the same bytes.
bool payload_fuzz_check(const uint8_t *bytes, size_t count)
{
    struct why why = { 0 };
    uint16_t numbers[CHUNK_MAX];
    float values[CHUNK_MAX];
    if (count == 0) return false;
    const payload_form_t *form = form_of(bytes[0]);
    const size_t size = payload_bytes(form);
    if (payload_check(form, bytes + 1, count - 1, &why) < 0 && count - 1 == size) {
        ensure(why.text[0]);
        return false;
    }
    uint8_t *exact = calloc(1, size), *again = malloc(size);
    ensure(exact && again);
    memcpy(exact, bytes + 1, count - 1 < size ? count - 1 : size);
    const bool accepted = payload_check(form, exact, size, &why) == 0;
    ensure(accepted || why.text[0]);
    payload_clear(form, again);
    for (uint32_t c = 0; accepted && c < chunks_count(payload_chunks(form)); c++) {
        const uint32_t k = payload_top_k(form, c);
        ensure(k <= CHUNK_MAX);
        const uint32_t chosen = payload_read(form, c, exact, numbers, values);
        ensure(chosen <= k);
        for (uint32_t i = 0; i < chosen; i++)
            ensure(isfinite(values[i]) && values[i] != 0 &&
                   (i == 0 || numbers[i - 1] < numbers[i]));
        payload_write(form, c, numbers, values, chosen, again);
    }
    ensure(!accepted || memcmp(exact, again, size) == 0);
    free(exact);
    free(again);
    return accepted;
}

void payload_fuzz_write_seeds(const char *folder)
{
    static const uint16_t numbers[] = { 0, 3, 7 };
    static const float values[] = { 1, -1, 1 };
    uint8_t seed[2048];
    char name[32];
    for (uint8_t n = 0; n < FORMS; n++) {
        const payload_form_t *form = form_of(n);
        ensure(payload_bytes(form) < sizeof seed);
        seed[0] = n;
        payload_clear(form, seed + 1);
        for (uint32_t c = 0; c < chunks_count(payload_chunks(form)); c++) {
            const uint32_t k = payload_top_k(form, c);
            payload_write(form, c, numbers, values, c % 2 == 0 ? (k < 2 ? k : 2) : 0, seed + 1);
        }
        snprintf(name, sizeof name, "seed-%u", n);
        fuzz_write_seed(folder, name, seed, 1 + payload_bytes(form));
    }
}

// ---- Merkle proofs ------------------------------------------------------------------------------

static struct hash subtree(void *arg, uint64_t from, uint64_t to)
{
    const struct hash *leaves = arg;
    return merkle_root(leaves + from, to - from);
}

// A proof is believed if and only if it is the one that the leaves give.
bool merkle_fuzz_check(const uint8_t *bytes, size_t count)
{
    enum { LEAVES_MAX = 70, SAID_MAX = 64, HEAD_BYTES = 5 };
    struct hash leaves[LEAVES_MAX], path[MERKLE_RANGE_MAX], said[SAID_MAX];
    if (count < HEAD_BYTES) return false;
    const size_t leaf_count = 1 + bytes[0] % LEAVES_MAX, first = bytes[1] % leaf_count;
    const size_t length = 1 + bytes[2] % (leaf_count - first);
    for (size_t i = 0; i < leaf_count; i++) leaves[i] = merkle_leaf(&i, sizeof i);
    const size_t last = first + length;
    const struct hash root = merkle_root(leaves, leaf_count);
    const size_t size = merkle_make_range(leaf_count, first, last, subtree, leaves, path);
    ensure(merkle_check_range(&root, leaf_count, first, last, leaves + first, path, size));
    const uint8_t *at = bytes + HEAD_BYTES, *end = bytes + count;
    size_t said_size = 0;
    while (said_size < SAID_MAX && end - at >= 2) { // A hash of the path, or another
        said[said_size] = at[0] < size ? path[at[0]] : leaves[at[0] % leaf_count];
        said[said_size++].bytes[at[1] % HASH_BYTES] ^= at[1] & 0x80 ? 1 : 0;
        at += 2;
    }
    const size_t said_first = bytes[3], said_count = bytes[4];
    const bool is_true = said_first == first && said_size == size && said_count == leaf_count &&
                         memcmp(said, path, size * sizeof *path) == 0;
    const bool accepted = merkle_check_range(&root, said_count, said_first, said_first + length,
                                             leaves + first, said, said_size);
    ensure(!is_true || accepted);
    // The root does not bind the count: another one is believed only where it gives the same tree.
    ensure(!accepted || is_true || said_count != leaf_count);
    return accepted;
}

// ---- claims -------------------------------------------------------------------------------------

static uint8_t arena_bytes[8 << 20];

static bool check_commit(const struct wire_commit *commit)
{
    if (!commit_is_sound(commit)) return false;
    uint64_t positions = 0;
    for (uint32_t i = 0; i < commit->accepted_count; i++) {
        ensure(commit->accepted[i].begin < commit->accepted[i].end);
        ensure(i == 0 || commit->accepted[i].begin >= commit->accepted[i - 1].end);
        positions += commit->accepted[i].end - commit->accepted[i].begin;
    }
    ensure(positions <= 65535);
    struct wire_commit other = *commit;
    const struct hash name = commit_hash(commit);
    other.lr_bits ^= 1;
    const struct hash changed = commit_hash(&other);
    ensure(!hash_equal(&name, &changed));
    return true;
}

// A vote counts whole or not at all, and once.
static bool check_vote(const struct wire_vote *vote)
{
    static const struct hash secret;
    static struct tally *tally;
    if (!tally) tally = calloc(1, sizeof *tally);
    ensure(tally);
    tally_init(tally, 12, 3, &secret);
    const enum tally_verdict verdict = tally_count(tally, 1, vote);
    ensure(tally->voted == (verdict == TALLY_COUNTED));
    ensure(verdict != TALLY_COUNTED || tally_count(tally, 1, vote) == TALLY_TWICE);
    ensure(verdict != TALLY_COUNTED || tally_count(tally, 2, vote) == TALLY_COUNTED);
    for (uint32_t i = 0; verdict == TALLY_COUNTED && i < vote->seen_count; i++) {
        const struct wire_seen *accepted = tally_accepted(tally, vote->seen[i].client);
        ensure(accepted && hash_equal(&accepted->result, &vote->seen[i].result));
    }
    return verdict == TALLY_COUNTED;
}

bool claims_fuzz_check(const uint8_t *bytes, size_t count)
{
    struct wire_arena arena = { arena_bytes, 0, sizeof arena_bytes };
    struct wire_refusal refusal;
    const void *body;
    if (count == 0) return false;
    const uint16_t kind = bytes[0] == 'v' ? FRAME_VOTE : FRAME_COMMIT;
    if (!wire_unpack_body(bytes + 1, count - 1, kind, &arena, &body, &refusal)) return false;
    return kind == FRAME_VOTE ? check_vote(body) : check_commit(body);
}

void claims_fuzz_write_seeds(const char *folder)
{
    static const struct wire_accepted accepted[] = { { .begin = 0, .end = 4 },
                                                     { .client = 1, .begin = 4, .end = 9 } };
    static const struct wire_seen seen[] = { { .client = 0 }, { .client = 3 }, { .client = 11 } };
    const struct wire_commit commit = {
        .round = 1, .outcome = OUTCOME_COMMITTED, .accepted = accepted, .accepted_count = 2
    };
    const struct wire_vote vote = { .round = 1, .seen = seen, .seen_count = 3 };
    static const struct wire_accepted overlapping[] = { { .begin = 0, .end = 4 },
                                                        { .client = 1, .begin = 3, .end = 9 } };
    struct wire_commit overlap = commit;
    uint8_t seed[1024] = { 'c' };
    size_t count = wire_pack_body(FRAME_COMMIT, &commit, seed + 1, sizeof seed - 1);
    fuzz_write_seed(folder, "seed-commit", seed, 1 + count);
    overlap.accepted = overlapping;
    count = wire_pack_body(FRAME_COMMIT, &overlap, seed + 1, sizeof seed - 1);
    fuzz_write_seed(folder, "refused-overlap", seed, 1 + count);
    seed[0] = 'v';
    count = wire_pack_body(FRAME_VOTE, &vote, seed + 1, sizeof seed - 1);
    fuzz_write_seed(folder, "seed-vote", seed, 1 + count);
}
