// Wrappers with the names of the library's functions: each measures the thread's processor time,
// calls the library's own function, and adds to counters in a mapped file. A call within a call is
// not counted.
#include "tests/bench/crypto_counts.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { CLOCK_TRIES = 1000 };

static struct crypto_counts *counts;
static int64_t clock_ns;        // Between two looks at the clock, one after the other
static _Thread_local int depth; // Libraries call each other: only the outermost counts

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

__attribute__((constructor)) static void open_file(void)
{
    const char *dir = getenv("SHOAL_CRYPTO_COUNTS");
    char path[512];
    if (!dir) return;
    snprintf(path, sizeof path, CRYPTO_COUNTS_FILE, dir, (int)getpid());
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    void *map = fd < 0 || ftruncate(fd, sizeof *counts) != 0
                    ? MAP_FAILED
                    : mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (map == MAP_FAILED) {
        perror(path);
        _exit(73);
    }
    for (int i = 0; i < CLOCK_TRIES; i++) {
        const int64_t began = now_ns();
        clock_ns += now_ns() - began;
    }
    clock_ns /= CLOCK_TRIES;
    counts = map;
}

static int64_t begin(void) { return depth++ == 0 && counts ? now_ns() : 0; }

static void add(int64_t *number, int64_t more)
{
    __atomic_fetch_add(number, more, __ATOMIC_RELAXED);
}

static void end(enum crypto_counted kind, int calls, size_t bytes, int64_t began)
{
    if (--depth > 0 || !counts) return;
    const int64_t ns = now_ns() - began - clock_ns;
    add(&counts->of[kind].calls, calls);
    add(&counts->of[kind].bytes, (int64_t)bytes);
    add(&counts->of[kind].ns, ns);
}

// The library's own function, ours having taken its name.
#define COUNTED_CALL(kind, calls, bytes, result, name, params, args)                               \
    result name params                                                                             \
    {                                                                                              \
        static result(*next) params;                                                               \
        if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name);                                      \
        const int64_t began = begin();                                                             \
        result answer = next args;                                                                 \
        end(kind, calls, bytes, began);                                                            \
        return answer;                                                                             \
    }

typedef unsigned char u8;
typedef unsigned long long ull;

COUNTED_CALL(COUNT_SIGNED, 1, m_count, int, crypto_sign_detached,
             (u8 * signature, ull *count, const u8 *m, ull m_count, const u8 *secret),
             (signature, count, m, m_count, secret))
COUNTED_CALL(COUNT_VERIFIED, 1, m_count, int, crypto_sign_verify_detached,
             (const u8 *signature, const u8 *m, ull m_count, const u8 *key),
             (signature, m, m_count, key))

COUNTED_CALL(COUNT_HASHED, 1, count, u8 *, SHA256, (const u8 *m, size_t count, u8 *hash),
             (m, count, hash))
COUNTED_CALL(COUNT_HASHED, 0, 0, int, EVP_DigestInit_ex,
             (EVP_MD_CTX * self, const EVP_MD *type, ENGINE *engine), (self, type, engine))
COUNTED_CALL(COUNT_HASHED, 0, count, int, EVP_DigestUpdate,
             (EVP_MD_CTX * self, const void *m, size_t count), (self, m, count))
COUNTED_CALL(COUNT_HASHED, 1, 0, int, EVP_DigestFinal_ex,
             (EVP_MD_CTX * self, u8 *hash, unsigned *count), (self, hash, count))

// Of the older pair the message has room before it for what is added.
COUNTED_CALL(COUNT_CURVE, 1, m_count - crypto_box_ZEROBYTES, int, crypto_box_afternm,
             (u8 * c, const u8 *m, ull m_count, const u8 *nonce, const u8 *key),
             (c, m, m_count, nonce, key))
COUNTED_CALL(COUNT_CURVE, 1, c_count - crypto_box_ZEROBYTES, int, crypto_box_open_afternm,
             (u8 * m, const u8 *c, ull c_count, const u8 *nonce, const u8 *key),
             (m, c, c_count, nonce, key))
COUNTED_CALL(COUNT_CURVE, 1, m_count, int, crypto_box_easy_afternm,
             (u8 * c, const u8 *m, ull m_count, const u8 *nonce, const u8 *key),
             (c, m, m_count, nonce, key))
COUNTED_CALL(COUNT_CURVE, 1, c_count - crypto_box_MACBYTES, int, crypto_box_open_easy_afternm,
             (u8 * m, const u8 *c, ull c_count, const u8 *nonce, const u8 *key),
             (m, c, c_count, nonce, key))
