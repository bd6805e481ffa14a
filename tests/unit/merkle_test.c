// Trees against known roots, every range of every small tree, and what a liar could alter in its
// proof.

#include <stdlib.h>
#include <string.h>
#include "common/crypto/leaf_pair.h"
#include "common/kernel/digest.h"
#include "tests/test.h"

// The leaves and roots that Certificate Transparency implementations share as test vectors.
static const struct {
    const char *bytes;
    size_t count;
    const char *root;
} known[] = {
    { "", 0, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d" },
    { "\0", 1, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125" },
    { "\x10", 1, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77" },
    { "\x20\x21", 2, "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7" },
    { "\x30\x31", 2, "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4" },
    { "\x40\x41\x42\x43", 4, "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef" },
    { "PQRSTUVW", 8, "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c" },
    { "`abcdefghijklmno", 16, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328" },
};
enum { KNOWN = sizeof known / sizeof *known, TREE_MAX = 130 };

static struct hash number_leaf(size_t number) { return merkle_leaf(&number, sizeof number); }

static void known_roots_are_met(void **state)
{
    (void)state;
    struct hash leaves[KNOWN];
    char text[HASH_HEX];
    for (size_t i = 0; i < KNOWN; i++) {
        leaves[i] = merkle_leaf(known[i].bytes, known[i].count);
        struct hash root = merkle_root(leaves, i + 1);
        assert_string_equal(hash_to_hex(&root, text), known[i].root);
    }
}

static void no_leaves_have_no_hash(void **state)
{
    (void)state;
    struct hash root = merkle_root(NULL, 0), digest = digest_of(NULL, 0);
    assert_true(hash_is_none(&root) && hash_is_none(&digest));
}

struct tree {
    struct hash *leaves;
    size_t count;
    struct hash root;
};

static struct hash subtree(void *arg, uint64_t from, uint64_t to)
{
    const struct hash *leaves = arg;
    return merkle_root(leaves + from, to - from);
}

static bool proves(const struct tree *tree, uint64_t first, uint64_t length, const struct hash *own,
                   const struct hash *path, size_t size)
{
    return merkle_check_range(&tree->root, tree->count, first, first + length, own, path, size);
}

// The proof of leaves [first, first + length) proves them, there, in this tree, and nothing else.
static void check_range(const struct tree *tree, uint64_t first, uint64_t length)
{
    struct hash path[MERKLE_RANGE_MAX + 1] = { 0 }, *own = tree->leaves + first;
    const size_t size =
        merkle_make_range(tree->count, first, first + length, subtree, tree->leaves, path);
    assert_true(proves(tree, first, length, own, path, size));
    assert_false(proves(tree, first, length, own, path, size + 1));
    if (size) assert_false(proves(tree, first, length, own, path, size - 1));
    assert_false(proves(tree, first + tree->count, length, own, path, size));
    for (uint64_t other = 0; other + length <= tree->count; other++)
        if (other != first) assert_false(proves(tree, other, length, own, path, size));
    for (uint64_t i = 0; i < size + length; i++) {
        uint8_t *byte = &(i < size ? &path[i] : &own[i - size])->bytes[i % HASH_BYTES];
        *byte ^= 1;
        assert_false(proves(tree, first, length, own, path, size));
        *byte ^= 1;
    }
}

static void every_range_of_small_trees_proves_its_place_only(void **state)
{
    (void)state;
    struct hash leaves[TREE_MAX];
    for (size_t i = 0; i < TREE_MAX; i++) leaves[i] = number_leaf(i);
    for (size_t count = 1; count <= 17; count++) {
        const struct tree tree = { leaves, count, merkle_root(leaves, count) };
        for (uint64_t first = 0; first < count; first++)
            for (uint64_t length = 1; first + length <= count; length++)
                check_range(&tree, first, length);
    }
    const struct tree tree = { leaves, TREE_MAX, merkle_root(leaves, TREE_MAX) };
    for (uint64_t first = 0; first < TREE_MAX; first++) check_range(&tree, first, 1);
}

static void a_proof_from_outside_is_bounded(void **state)
{
    (void)state;
    struct hash leaf = number_leaf(1), path[MERKLE_LEVELS_MAX] = { 0 };
    assert_false(merkle_check_range(&leaf, 0, 0, 1, &leaf, path, 0));
    assert_false(merkle_check_range(&leaf, 1, 0, 0, &leaf, path, 0));
    assert_true(merkle_check_range(&leaf, 1, 0, 1, &leaf, path, 0));
    assert_false(merkle_check_range(&leaf, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX, &leaf, path,
                                    MERKLE_LEVELS_MAX));
}

// A node's 64 bytes offered as a leaf do not hash to that node.
static void a_node_is_no_leaf(void **state)
{
    (void)state;
    struct hash pair[2] = { number_leaf(1), number_leaf(2) };
    struct hash node = merkle_node(&pair[0], &pair[1]), leaf = merkle_leaf(pair, sizeof pair);
    assert_false(hash_equal(&node, &leaf));
}

enum { FLOATS = 40000 }; // Two full leaves and a short one

static float *vector_new(void)
{
    float *values = malloc(FLOATS * sizeof *values);
    assert_non_null(values);
    for (int i = 0; i < FLOATS; i++) values[i] = (float)i * 0.5f - 7;
    return values;
}

static void a_digest_is_the_root_of_its_leaves_however_they_are_cut(void **state)
{
    (void)state;
    float *values = vector_new();
    struct hash digest = digest_of(values, FLOATS), leaves[3], root;
    char text[HASH_HEX];
    // From an independent implementation of the definition in merkle.h.
    assert_string_equal(hash_to_hex(&digest, text),
                        "833f7dea66e7be4cb3f5559aab92d784870ea142ba2d3e5147f501e311932505");
    assert_int_equal(digest_leaf_count(FLOATS), 3);
    digest_fill_leaves(values, FLOATS, 2, 1, leaves + 2);
    digest_fill_leaves(values, FLOATS, 0, 2, leaves);
    root = merkle_root(leaves, 3);
    assert_true(hash_equal(&digest, &root));
    free(values);
}

// Pairs of leaves are hashed by our own code, so at every length that a padding can have it is held
// against OpenSSL's.
static void leaves_hashed_together_are_the_same_as_alone(void **state)
{
    (void)state;
    enum { MOST = 5, LONGEST = 400 };
    uint8_t bytes[MOST * LONGEST];
    struct hash leaves[MOST];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 2654435761u >> 11);
    if (!leaf_pair_is_here()) print_message("this processor hashes one by one\n");
    for (size_t length = 0; length <= LONGEST; length++) {
        merkle_leaves(bytes, length, MOST, leaves);
        for (size_t i = 0; i < MOST; i++) {
            const struct hash alone = merkle_leaf(bytes + i * length, length);
            assert_true(hash_equal(&leaves[i], &alone));
        }
    }
}

static void threads_fill_the_leaves_of_a_digest(void **state)
{
    (void)state;
    float *values = vector_new();
    struct hash leaves[3], by_threads[3];
    pool_t *pools[] = { NULL, pool_new(3) };
    assert_non_null(pools[1]);
    for (size_t count = 0; count <= FLOATS; count += DIGEST_LEAF_FLOATS / 2) {
        const size_t leaf_count = digest_leaf_count(count);
        for (size_t i = 0; i < leaf_count; i++) digest_fill_leaves(values, count, i, 1, leaves + i);
        for (int i = 0; i < 2; i++) {
            digest_leaves(values, count, pools[i], by_threads);
            assert_memory_equal(leaves, by_threads, leaf_count * sizeof *leaves);
        }
    }
    pool_destroy(&pools[1]);
    free(values);
}

static void a_digest_sees_every_bit_and_the_length(void **state)
{
    (void)state;
    float *values = vector_new();
    struct hash before = digest_of(values, FLOATS), after;
    static const int places[] = { 0, DIGEST_LEAF_FLOATS - 1, DIGEST_LEAF_FLOATS, FLOATS - 1 };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        uint32_t bits, kept;
        memcpy(&kept, &values[places[i]], sizeof kept);
        bits = kept ^ 1;
        memcpy(&values[places[i]], &bits, sizeof bits);
        after = digest_of(values, FLOATS);
        assert_false(hash_equal(&before, &after));
        memcpy(&values[places[i]], &kept, sizeof kept);
    }
    values[14] = 0.0f; // It was -7 + 7 = 0 before, too
    after = digest_of(values, FLOATS);
    assert_true(hash_equal(&before, &after));
    values[14] = -0.0f;
    after = digest_of(values, FLOATS);
    assert_false(hash_equal(&before, &after));
    values[14] = 0.0f;
    after = digest_of(values, FLOATS - 1);
    assert_false(hash_equal(&before, &after));
    assert_int_equal(digest_leaf_count(0), 0);
    assert_int_equal(digest_leaf_count(DIGEST_LEAF_FLOATS), 1);
    assert_int_equal(digest_leaf_count(DIGEST_LEAF_FLOATS + 1), 2);
    free(values);
}

TESTS(TEST(known_roots_are_met), TEST(no_leaves_have_no_hash),
      TEST(every_range_of_small_trees_proves_its_place_only), TEST(a_proof_from_outside_is_bounded),
      TEST(a_node_is_no_leaf), TEST(a_digest_is_the_root_of_its_leaves_however_they_are_cut),
      TEST(leaves_hashed_together_are_the_same_as_alone), TEST(threads_fill_the_leaves_of_a_digest),
      TEST(a_digest_sees_every_bit_and_the_length))
