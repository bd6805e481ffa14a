// Trees against known roots, every path of every small tree, and what a liar could alter in a path.

#include <stdlib.h>
#include <string.h>
#include "common/crypto/merkle.h"
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

// Paths prove their own leaf in their own place in their own tree, and nothing else.
static void check_tree(const struct hash *leaves, size_t count)
{
    struct hash root = merkle_root(leaves, count), path[MERKLE_PATH_MAX], other;
    for (size_t i = 0; i < count; i++) {
        size_t depth = merkle_make_path(leaves, count, i, path);
        assert_true(merkle_check_path(&root, &leaves[i], i, count, path, depth));
        assert_false(merkle_check_path(&root, &leaves[i], i, count, path, depth + 1));
        assert_false(merkle_check_path(&root, &leaves[i], i + count, count, path, depth));
        other = number_leaf(count + 7);
        assert_false(merkle_check_path(&root, &other, i, count, path, depth));
        for (size_t j = 0; j < depth; j++) {
            path[j].bytes[j % HASH_BYTES] ^= 1;
            assert_false(merkle_check_path(&root, &leaves[i], i, count, path, depth));
            path[j].bytes[j % HASH_BYTES] ^= 1;
        }
        if (depth) assert_false(merkle_check_path(&root, &leaves[i], i, count, path, depth - 1));
        for (size_t j = 0; j < count; j++)
            if (j != i) assert_false(merkle_check_path(&root, &leaves[i], j, count, path, depth));
    }
}

static void every_path_of_small_trees_proves_its_place_only(void **state)
{
    (void)state;
    struct hash leaves[TREE_MAX];
    for (size_t i = 0; i < TREE_MAX; i++) leaves[i] = number_leaf(i);
    for (size_t count = 1; count <= 17; count++) check_tree(leaves, count);
    check_tree(leaves, TREE_MAX - 1);
}

static void a_path_from_outside_is_bounded(void **state)
{
    (void)state;
    struct hash leaf = number_leaf(1), path[MERKLE_PATH_MAX + 1] = { 0 };
    assert_false(merkle_check_path(&leaf, &leaf, 0, 0, path, 0));
    assert_true(merkle_check_path(&leaf, &leaf, 0, 1, path, 0));
    assert_false(merkle_check_path(&leaf, &leaf, 0, UINT64_MAX, path, MERKLE_PATH_MAX + 1));
    assert_false(
        merkle_check_path(&leaf, &leaf, UINT64_MAX - 1, UINT64_MAX, path, MERKLE_PATH_MAX));
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
      TEST(every_path_of_small_trees_proves_its_place_only), TEST(a_path_from_outside_is_bounded),
      TEST(a_node_is_no_leaf), TEST(a_digest_is_the_root_of_its_leaves_however_they_are_cut),
      TEST(a_digest_sees_every_bit_and_the_length))
