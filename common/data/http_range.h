#pragma once
// http_range -- parts of a file that lies behind a URL, on libcurl: its size by HEAD, its bytes by
// Range GET; and small files whole.
//
// The same file may lie behind two URLs. The place that answered last is asked first. When it
// fails, or the caller's check refuses its bytes, the other place is asked at once.
//
// An answer is accepted only if it is exactly what was asked for: status 206 with the Content-Range
// that was asked for and a total that is still the file's size (or 200, if the whole file was
// asked for), no Content-Encoding, not one byte more. Memory never holds more than the bytes asked
// for, whatever the server sends. https certificates and names are always verified; the only
// protocols are http and https; redirects are refused unless allowed, then bounded, and never lead
// from https to http.
//
// A failure that may pass (no connection, a time-out, an early end, 408, 429, 5xx, wrong bytes) is
// retried after a pause that doubles. A failure that will not pass (404, 403, a 200 where 206 was
// asked for, a changed size) ends the call, once every place has answered so. libcurl reads the
// proxy settings of the environment (https_proxy, no_proxy).
//
// Calls block: use them in the thread of a job. Not for two threads at once; a connection is kept
// between calls. Texts name the URL without its user, password and query, which may hold a
// signature.

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/fault.h"

enum { HTTP_URL_MAX = 2048, HTTP_PAUSE_MAX_MS = 30000, HTTP_PLACES_MAX = 2 };

struct http_config {
    uint32_t timeout_ms;         // For one attempt, whole: 10 .. 600000
    uint32_t connect_timeout_ms; // Of that, until connected: 10 .. 600000
    uint32_t attempts;           // At each place: 1 .. 20
    uint32_t pause_ms;           // Before the second attempt: 1 .. HTTP_PAUSE_MAX_MS
    uint32_t redirects;          // Followed at most: 0 .. 5
    int stop_fd;                 // Readable: give up at once, also in a pause; -1: none
    // Told of every attempt that failed: which URL and why, and what happens next. May be NULL.
    void (*refused)(void *arg, const char *reason, const char *next);
    void *arg;
};

// Five attempts within about 4 s of pauses; no redirects.
#define HTTP_CONFIG_DEFAULT                                                                        \
    {                                                                                              \
        .timeout_ms = 30000, .connect_timeout_ms = 5000, .attempts = 5, .pause_ms = 250,           \
        .redirects = 0, .stop_fd = -1                                                              \
    }

typedef struct http_range http_range_t;

// Where a file lies. `url[1]` is NULL or a second URL of the same file.
struct http_places {
    const char *url[HTTP_PLACES_MAX];
};

// The caller's check of the bytes. FAULT_DIGEST blames the place, and another place is asked; any
// other fault is our own and is returned at once.
typedef int http_check(void *arg, const uint8_t *bytes, size_t count, struct why *why);

int http_range_new(const struct http_config *config, struct why *why, http_range_t **ret_self);
void http_range_destroy(http_range_t **self);

// FAULT_CONFIG unless `url` begins with http:// or https://, has a host, is at most HTTP_URL_MAX
// bytes long and has neither blanks nor control characters.
int http_range_check_url(const char *url, struct why *why);

// Writes the URL as texts may show it, without user, password, query and fragment. Total.
void http_range_name(const char *url, char name[HTTP_URL_MAX + 1]);

// The size of the file, by HEAD. FAULT_PROTOCOL if the answer has none.
int http_range_size(http_range_t *self, const struct http_places *places, struct why *why,
                    uint64_t *ret_bytes);

struct http_part {
    uint64_t size;     // Of the whole file
    uint64_t offset;   // Below size
    size_t count;      // 1 or more
    void *out;         // `count` bytes
    http_check *check; // NULL: the bytes are not checked
    void *arg;
    bool spare; // The file is optional: that it is missing is not reported
};

// Bytes [offset, offset + count) of a file that has `size` bytes. FAULT_CORRUPT if the size has
// changed, FAULT_PROTOCOL if the server does not serve ranges, FAULT_NOT_FOUND, FAULT_DENIED,
// FAULT_TIMEOUT, FAULT_UNREACHABLE, FAULT_DIGEST or another of the check's.
int http_range_read(http_range_t *self, const struct http_places *places,
                    const struct http_part *part, struct why *why);

// A whole file of at most `bytes_max` bytes, handed to `check`, which keeps what it needs. Faults
// as above.
int http_range_whole(http_range_t *self, const struct http_places *places, size_t bytes_max,
                     http_check *check, void *arg, struct why *why);
