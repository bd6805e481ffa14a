// Key pairs against RFC 8032, and every way in which a secret can be refused.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/crypto/identity.h"
#include "tests/test.h"

// RFC 8032, 7.1, tests 1 and 2.
static const struct {
    const char *secret, *key, *message;
    size_t count;
    const char *signature;
} rfc[] = {
    { "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
      "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "", 0,
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
      "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b" },
    { "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
      "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "\x72", 1,
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
      "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00" },
};

static char dir[256], path[300];
static struct why why;

static int setup(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/identity_test.XXXXXX", tmp ? tmp : P_tmpdir);
    if (!mkdtemp(dir)) return -1;
    snprintf(path, sizeof path, "%s/secret.key", dir);
    why.text[0] = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static void write_file(const void *bytes, size_t count, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, count), (ssize_t)count);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void assert_refused(int fault, const char *word)
{
    struct identity *identity = NULL;
    assert_int_equal(identity_load(path, NULL, &why, &identity), fault);
    assert_null(identity);
    assert_non_null(strstr(why.text, word));
    assert_non_null(strstr(why.text, path));
}

static void rfc_8032_is_met(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rfc / sizeof *rfc; i++) {
        struct identity *identity;
        struct signature signature;
        char text[2 * SIGNATURE_BYTES + 1];
        assert_int_equal(identity_load(NULL, rfc[i].secret, &why, &identity), 0);
        assert_string_equal(key_to_hex(identity_key(identity), text), rfc[i].key);
        identity_sign(identity, rfc[i].message, rfc[i].count, &signature);
        for (int k = 0; k < SIGNATURE_BYTES; k++) sprintf(text + 2 * k, "%02x", signature.bytes[k]);
        assert_string_equal(text, rfc[i].signature);
        assert_true(
            signature_verify(identity_key(identity), rfc[i].message, rfc[i].count, &signature));
        identity_destroy(&identity);
        assert_null(identity);
    }
}

static void a_signature_is_of_these_bytes_by_this_key(void **state)
{
    (void)state;
    struct identity *identity;
    struct signature signature;
    uint8_t message[100] = { 1, 2, 3 };
    assert_int_equal(identity_load(NULL, rfc[0].secret, &why, &identity), 0);
    struct key key = *identity_key(identity);
    identity_sign(identity, message, sizeof message, &signature);
    assert_true(signature_verify(&key, message, sizeof message, &signature));
    assert_false(signature_verify(&key, message, sizeof message - 1, &signature));
    for (int i = 0; i < SIGNATURE_BYTES; i++) {
        signature.bytes[i] ^= 1;
        assert_false(signature_verify(&key, message, sizeof message, &signature));
        signature.bytes[i] ^= 1;
    }
    for (int i = 0; i < KEY_BYTES; i++) {
        key.bytes[i] ^= 1;
        assert_false(signature_verify(&key, message, sizeof message, &signature));
        key.bytes[i] ^= 1;
    }
    message[99] = 1;
    assert_false(signature_verify(&key, message, sizeof message, &signature));
    identity_destroy(&identity);
}

static void keys_of_no_one_verify_nothing(void **state)
{
    (void)state;
    // The neutral element and zero, with the signature R = neutral, S = 0 that they would accept
    struct signature signature = { { 1 } };
    struct key neutral = { { 1 } }, zero = { { 0 } };
    assert_false(signature_verify(&neutral, "x", 1, &signature));
    assert_false(signature_verify(&zero, "x", 1, &signature));
}

static void a_made_secret_loads_and_is_never_overwritten(void **state)
{
    (void)state;
    struct identity *a, *b;
    struct stat stat_before;
    assert_int_equal(identity_create(path, &why), 0);
    assert_int_equal(stat(path, &stat_before), 0);
    assert_int_equal(stat_before.st_mode & 07777, 0600);
    assert_int_equal(identity_load(path, NULL, &why, &a), 0);
    assert_int_equal(identity_create(path, &why), FAULT_DENIED);
    assert_non_null(strstr(why.text, "exists"));
    assert_int_equal(identity_load(path, rfc[0].secret, &why, &b), 0); // The path wins
    assert_true(key_equal(identity_key(a), identity_key(b)));
    identity_destroy(&a);
    identity_destroy(&b);
    identity_destroy(&b); // Destroying nothing is allowed
    assert_int_equal(identity_create("/no such directory/secret.key", &why), FAULT_NOT_FOUND);
}

static void file_and_digits_give_the_same_identity(void **state)
{
    (void)state;
    struct identity *a, *b;
    uint8_t secret[SECRET_BYTES];
    char text[2 * SECRET_BYTES + 1];
    for (int i = 0; i < SECRET_BYTES; i++) {
        secret[i] = (uint8_t)(i * 7 + 1);
        sprintf(text + 2 * i, i % 2 ? "%02x" : "%02X", secret[i]);
    }
    write_file(secret, sizeof secret, 0400);
    assert_int_equal(identity_load(path, NULL, &why, &a), 0);
    assert_int_equal(identity_load(NULL, text, &why, &b), 0);
    assert_true(key_equal(identity_key(a), identity_key(b)));
    identity_destroy(&a);
    identity_destroy(&b);
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    uint8_t bytes[SECRET_BYTES + 1] = { 1 };
    static const mode_t modes[] = { 0640, 0604, 0620, 0601, 0666 };
    assert_refused(FAULT_NOT_FOUND, "No such file");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        write_file(bytes, SECRET_BYTES, modes[i]);
        assert_refused(FAULT_DENIED, "chmod 600 ");
    }
    write_file(bytes, SECRET_BYTES + 1, 0600);
    assert_refused(FAULT_FORMAT, "33 bytes");
    write_file(bytes, SECRET_BYTES - 1, 0600);
    assert_refused(FAULT_FORMAT, "31 bytes");
    write_file(bytes, 0, 0600);
    assert_refused(FAULT_FORMAT, "0 bytes");
    memset(bytes, 0, sizeof bytes);
    write_file(bytes, SECRET_BYTES, 0600);
    assert_refused(FAULT_FORMAT, "zeros");
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    assert_int_equal(mkdir(path, 0700), 0);
    assert_refused(FAULT_FORMAT, "regular file");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); // A FIFO without a writer: load must not wait
    assert_refused(FAULT_FORMAT, "regular file");
}

static void bad_digits_are_refused_and_not_shown(void **state)
{
    (void)state;
    struct identity *identity = NULL;
    char text[128];
    strcpy(text, rfc[0].secret);
    text[63] = 'g';
    assert_int_equal(identity_load(NULL, text, &why, &identity), FAULT_CONFIG);
    assert_non_null(strstr(why.text, IDENTITY_ENV));
    assert_null(strstr(why.text, "9d61"));
    text[63] = 0;
    assert_int_equal(identity_load(NULL, text, &why, &identity), FAULT_CONFIG);
    assert_int_equal(identity_load(NULL, "", &why, &identity), FAULT_CONFIG);
    snprintf(text, sizeof text, "%s0", rfc[0].secret);
    assert_int_equal(identity_load(NULL, text, &why, &identity), FAULT_CONFIG);
    memset(text, '0', 64);
    text[64] = 0;
    assert_int_equal(identity_load(NULL, text, &why, &identity), FAULT_FORMAT);
    assert_int_equal(identity_load(NULL, NULL, &why, &identity), FAULT_CONFIG);
    assert_non_null(strstr(why.text, "openssl rand"));
    assert_null(identity);
}

static void keys_have_names(void **state)
{
    (void)state;
    struct key key, other;
    char text[KEY_HEX];
    assert_true(key_from_hex(rfc[0].key, &key));
    assert_string_equal(key_to_hex(&key, text), rfc[0].key);
    other = key;
    other.bytes[31] ^= 1;
    assert_false(key_equal(&key, &other));
    assert_true((key_compare(&key, &other) < 0) == (key.bytes[31] < other.bytes[31]));
    text[5] = 'x';
    assert_false(key_from_hex(text, &other));
    assert_false(key_from_hex("d75a", &other));
    assert_false(key_from_hex("", &other));
}

#define FILE_TEST(name) TEST_WITH(name, setup, teardown)

TESTS(TEST(rfc_8032_is_met), TEST(a_signature_is_of_these_bytes_by_this_key),
      TEST(keys_of_no_one_verify_nothing), FILE_TEST(a_made_secret_loads_and_is_never_overwritten),
      FILE_TEST(file_and_digits_give_the_same_identity), FILE_TEST(bad_files_are_refused),
      FILE_TEST(what_is_no_file_is_refused), TEST(bad_digits_are_refused_and_not_shown),
      TEST(keys_have_names))
