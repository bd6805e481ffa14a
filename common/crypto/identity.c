// identity -- a secret is read from a file or from hexadecimal digits, checked, turned into a key
// pair in guarded memory, and its copy on the stack is wiped. Error texts say how to make a good
// secret; they never show the digits.

#include "common/base/ensure.h"
#include "common/crypto/identity.h"
#include <inttypes.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(KEY_BYTES == crypto_sign_PUBLICKEYBYTES, "an Ed25519 public key");
_Static_assert(SECRET_BYTES == crypto_sign_SEEDBYTES, "an Ed25519 seed");
_Static_assert(SIGNATURE_BYTES == crypto_sign_BYTES, "an Ed25519 signature");

struct identity {
    struct key key;
    uint8_t secret[crypto_sign_SECRETKEYBYTES]; // libsodium's form: seed ‖ public key
};

static void start_sodium(void) { ensure(sodium_init() >= 0); }

static void need_sodium(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_sodium);
}

int identity_from_secret(const uint8_t secret[SECRET_BYTES], struct why *why,
                         struct identity **ret_identity)
{
    need_sodium();
    if (sodium_is_zero(secret, SECRET_BYTES))
        return why_set(why, FAULT_FORMAT,
                       "the secret is all zeros: make one with "
                       "`openssl rand 32 > secret.key`");
    // Guarded pages, locked in memory where RLIMIT_MEMLOCK allows, and left out of core dumps.
    struct identity *self = sodium_malloc(sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "no memory for a key pair");
    ensure(crypto_sign_seed_keypair(self->key.bytes, self->secret, secret) == 0);
    sodium_mprotect_readonly(self);
    *ret_identity = self;
    return 0;
}

static int check_file(int fd, const char *path, struct why *why)
{
    struct stat stat;
    if (fstat(fd, &stat) < 0)
        return why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
    if (!S_ISREG(stat.st_mode))
        return why_set(why, FAULT_FORMAT,
                       "%s: not a regular file: give the file that holds the "
                       "%d bytes of the secret",
                       path, SECRET_BYTES);
    if (stat.st_mode & 077)
        return why_set(why, FAULT_DENIED,
                       "%s: mode %04o gives group or others access to the secret: "
                       "chmod 600 %s",
                       path, (unsigned)stat.st_mode & 07777, path);
    if (stat.st_size != SECRET_BYTES)
        return why_set(why, FAULT_FORMAT,
                       "%s: %" PRId64 " bytes, a secret has exactly %d: make one with "
                       "`openssl rand %d > %s`",
                       path, (int64_t)stat.st_size, SECRET_BYTES, SECRET_BYTES, path);
    return 0;
}

static int read_file(const char *path, struct why *why, uint8_t ret_secret[SECRET_BYTES])
{
    // NONBLOCK, so that opening a FIFO does not wait for a writer: check_file refuses it.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
    int rc = check_file(fd, path, why);
    if (rc == 0) {
        ssize_t count = read(fd, ret_secret, SECRET_BYTES);
        if (count != SECRET_BYTES)
            rc = why_set(why, FAULT_IO, "%s: read %zd of %d bytes", path, count, SECRET_BYTES);
    }
    close(fd);
    return rc;
}

static int read_hex(const char *hex, struct why *why, uint8_t ret_secret[SECRET_BYTES])
{
    size_t digits = strlen(hex); // The digits themselves are never shown
    if (digits != 2 * SECRET_BYTES ||
        sodium_hex2bin(ret_secret, SECRET_BYTES, hex, digits, NULL, NULL, NULL) != 0)
        return why_set(why, FAULT_CONFIG,
                       IDENTITY_ENV ": %zu characters that are not %d "
                                    "hexadecimal digits: make them with `openssl rand -hex %d`",
                       digits, 2 * SECRET_BYTES, SECRET_BYTES);
    return 0;
}

int identity_load(const char *path, const char *env_hex, struct why *why,
                  struct identity **ret_identity)
{
    uint8_t secret[SECRET_BYTES] = { 0 };
    int rc;
    if (!path && !env_hex)
        return why_set(
            why, FAULT_CONFIG,
            "no identity: give the path of a secret "
            "(`openssl rand 32 > secret.key; chmod 600 secret.key`), or set " IDENTITY_ENV
            " (`openssl rand -hex 32`)");
    need_sodium();
    sodium_mlock(secret, sizeof secret); // May fail under a small RLIMIT_MEMLOCK: no harm
    rc = path ? read_file(path, why, secret) : read_hex(env_hex, why, secret);
    if (rc == 0) {
        rc = identity_from_secret(secret, why, ret_identity);
        if (rc < 0) why_wrap(why, rc, "%s", path ? path : IDENTITY_ENV);
    }
    sodium_munlock(secret, sizeof secret); // Wipes it too
    return rc;
}

static int write_secret(int fd)
{
    uint8_t secret[SECRET_BYTES];
    randombytes_buf(secret, sizeof secret);
    errno = EIO; // A short write does not set it
    bool done = write(fd, secret, sizeof secret) == sizeof secret && fsync(fd) == 0;
    sodium_memzero(secret, sizeof secret);
    return done ? 0 : errno;
}

// A new file name is durable only after its directory is synced.
static int sync_directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = !slash          ? strdup(".")
                 : slash == path ? strdup("/")
                                 : strndup(path, (size_t)(slash - path));
    if (!name) return ENOMEM;
    int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = fd < 0 || fsync(fd) < 0 ? errno : 0;
    if (fd >= 0) close(fd);
    free(name);
    return error;
}

int identity_create(const char *path, struct why *why)
{
    need_sodium();
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
        return why_set(why, FAULT_DENIED,
                       "%s exists, and a secret is never overwritten: move it "
                       "away first",
                       path);
    if (fd < 0) return why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
    int error = write_secret(fd);
    close(fd);
    if (error == 0) error = sync_directory_of(path);
    if (error == 0) return 0;
    unlink(path);
    return why_set(why, fault_from_errno(error), "%s: %s; no secret was made", path,
                   strerror(error));
}

void identity_destroy(struct identity **self_p)
{
    sodium_free(*self_p); // Wipes what it frees
    *self_p = NULL;
}

const struct key *identity_key(const struct identity *self) { return &self->key; }

void identity_sign(const struct identity *self, const void *bytes, size_t count,
                   struct signature *ret_signature)
{
    ensure(crypto_sign_detached(ret_signature->bytes, NULL, bytes, count, self->secret) == 0);
}

void identity_derive(const struct identity *self, const char *context,
                     uint8_t ret_secret[SECRET_BYTES])
{
    ensure(crypto_generichash(ret_secret, SECRET_BYTES, (const uint8_t *)context, strlen(context),
                              self->secret, crypto_sign_SEEDBYTES) == 0);
}

bool signature_verify(const struct key *key, const void *bytes, size_t count,
                      const struct signature *signature)
{
    need_sodium();
    return crypto_sign_verify_detached(signature->bytes, bytes, count, key->bytes) == 0;
}
