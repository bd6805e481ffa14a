// http_range -- one call is a loop of attempts, and one attempt asks each place once, the one that
// answered last first. After each request the answer is judged (http_answer.h), then the caller's
// check sees the bytes. A fault that a retry may cure leads to a pause, which doubles; any other
// fault, the last attempt and stop_fd end the call.

#include "common/base/ensure.h"
#include "common/data/http_answer.h"
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct http_range {
    CURL *curl;
    struct http_config config;
    unsigned place; // Index of the place that answered last
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool global_ready;
static void init_global(void) { global_ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK; }

// ---- configuration

static int check_number(const char *name, uint32_t value, uint32_t low, uint32_t high,
                        struct why *why)
{
    return value >= low && value <= high
               ? 0
               : why_set(why, FAULT_RANGE, "%s is %u; it must be %u to %u", name, value, low, high);
}

static int check_config(const struct http_config *config, struct why *why)
{
    int rc = check_number("timeout_ms", config->timeout_ms, 10, 600000, why);
    if (rc == 0)
        rc = check_number("connect_timeout_ms", config->connect_timeout_ms, 10, 600000, why);
    if (rc == 0) rc = check_number("attempts", config->attempts, 1, 20, why);
    if (rc == 0) rc = check_number("pause_ms", config->pause_ms, 1, HTTP_PAUSE_MAX_MS, why);
    if (rc == 0) rc = check_number("redirects", config->redirects, 0, 5, why);
    return rc;
}

int http_range_check_url(const char *url, struct why *why)
{
    const size_t count = strnlen(url, HTTP_URL_MAX + 1);
    const char *host = strncasecmp(url, "http://", 7) == 0    ? url + 7
                       : strncasecmp(url, "https://", 8) == 0 ? url + 8
                                                              : NULL;
    if (!host || !*host || *host == '/')
        return why_set(why, FAULT_CONFIG,
                       "a data URL must begin with http:// or https:// and a"
                       " host");
    if (count > HTTP_URL_MAX)
        return why_set(why, FAULT_CONFIG, "a data URL has more than %d bytes", HTTP_URL_MAX);
    for (const char *at = url; *at; at++)
        if (*at <= ' ' || *at > '~')
            return why_set(why, FAULT_CONFIG,
                           "a data URL has a blank, a control or a non-ASCII"
                           " character at byte %td; write it as %%XX",
                           at - url);
    return 0;
}

void http_range_name(const char *url, char name[HTTP_URL_MAX + 1])
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    const size_t authority = strcspn(host, "/?#");
    const char *at = memrchr(host, '@', authority);
    const char *rest = at ? at + 1 : host;
    snprintf(name, HTTP_URL_MAX + 1, "%.*s%.*s", (int)(host - url), url, (int)strcspn(rest, "?#"),
             rest);
}

// ---- one attempt

static bool is_stopped(const struct http_config *config, int wait_ms)
{
    struct pollfd stop = { .fd = config->stop_fd, .events = POLLIN };
    return poll(&stop, config->stop_fd >= 0, wait_ms) > 0;
}

static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct attempt *attempt = context;
    (void)a, (void)b, (void)c, (void)d;
    attempt->stopped = is_stopped(attempt->config, 0);
    return attempt->stopped;
}

static void ask(CURL *curl, const struct attempt *attempt)
{
    char range[64];
    snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, attempt->offset,
             (uint64_t)(attempt->offset + attempt->count - 1));
    const bool secure = strncasecmp(attempt->url, "https:", 6) == 0;
    curl_easy_setopt(curl, CURLOPT_URL, attempt->url);
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, attempt);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, attempt);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, attempt);
    if (attempt->count) {
        curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L); // Also undoes NOBODY
        curl_easy_setopt(curl, CURLOPT_RANGE, attempt->whole ? NULL : range);
    } else {
        curl_easy_setopt(curl, CURLOPT_RANGE, NULL);
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    }
}

// Wrong bytes (FAULT_DIGEST) may be right at the next attempt; any other fault of the check is our
// own. The text may quote the bytes, so line ends are removed: a server must not forge a log line.
static int check_bytes(struct attempt *attempt, struct why *why)
{
    int rc = attempt->check(attempt->check_arg, attempt->out, (size_t)attempt->got, why);
    for (char *c = why->text; rc < 0 && *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = ' ';
    attempt->again = rc == FAULT_DIGEST;
    attempt->final = rc < 0 && rc != FAULT_DIGEST;
    return rc == FAULT_DIGEST ? why_wrap(why, rc, "%s", attempt->name) : rc;
}

static int try_once(http_range_t *self, struct attempt *attempt, struct why *why)
{
    attempt->got = 0;
    attempt->status = 0;
    attempt->has_range = attempt->encoded = attempt->too_long = attempt->stopped = false;
    attempt->no_memory = attempt->again = attempt->final = false;
    ask(self->curl, attempt);
    const CURLcode code = curl_easy_perform(self->curl);
    curl_easy_getinfo(self->curl, CURLINFO_RESPONSE_CODE, &attempt->status);
    int rc = http_answer_judge(attempt, code, why);
    return rc == 0 && attempt->check ? check_bytes(attempt, why) : rc;
}

// ---- several attempts

static void tell(const struct attempt *attempt, const struct why *why, const char *next)
{
    const struct http_config *config = attempt->config;
    const bool is_there =
        attempt->status != 403 && attempt->status != 404 && attempt->status != 410;
    if (config->refused && (is_there || !attempt->spare))
        config->refused(config->arg, why->text, next);
}

// Asks each place once, the one that answered last first. *ret_again: a retry may succeed.
static int ask_places(http_range_t *self, const struct http_places *places, struct attempt *attempt,
                      struct why *why, bool *ret_again)
{
    const unsigned count = places->url[1] ? 2 : 1;
    *ret_again = false;
    for (unsigned i = 0;; i++) {
        const unsigned place = (self->place + i) % count;
        attempt->url = places->url[place];
        http_range_name(attempt->url, attempt->name);
        int rc = try_once(self, attempt, why);
        if (rc == 0) self->place = place;
        if (rc == 0 || attempt->final || attempt->stopped) return rc;
        *ret_again |= attempt->again;
        if (i + 1 == count) return rc;
        tell(attempt, why, "the other place is asked");
    }
}

static int repeat(http_range_t *self, const struct http_places *places, struct attempt *attempt,
                  struct why *why)
{
    uint32_t pause_ms = self->config.pause_ms;
    char next[64];
    for (uint32_t number = 1;; number++) {
        bool again;
        int rc = ask_places(self, places, attempt, why, &again);
        if (rc == 0 || attempt->final || attempt->stopped) return rc;
        const bool last = !again || number == self->config.attempts;
        snprintf(next, sizeof next, last ? "given up" : "retrying in %u ms", pause_ms);
        tell(attempt, why, next);
        if (!again) return rc;
        if (last) return why_wrap(why, rc, "given up after %u attempts", number);
        if (is_stopped(&self->config, (int)pause_ms))
            return why_wrap(why, rc, "given up after %u attempts, because this process is stopping",
                            number);
        pause_ms = pause_ms < HTTP_PAUSE_MAX_MS / 2 ? 2 * pause_ms : HTTP_PAUSE_MAX_MS;
    }
}

static int perform(http_range_t *self, const struct http_places *places, struct attempt *attempt,
                   struct why *why)
{
    struct why own = { 0 };
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < HTTP_PLACES_MAX && places->url[i]; i++)
        rc = http_range_check_url(places->url[i], why);
    return rc < 0 ? rc : repeat(self, places, attempt, why ? why : &own);
}

// ---- the four calls

static void set_up(http_range_t *self)
{
    CURL *curl = self->curl;
    const struct http_config *config = &self->config;
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L); // Threads: no SIGALRM for time-outs
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, config->redirects ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)config->redirects);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)config->timeout_ms);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)config->connect_timeout_ms);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, http_answer_hear);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, http_answer_take);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "shoal");
}

int http_range_new(const struct http_config *config, struct why *why, http_range_t **ret_self)
{
    int rc = check_config(config, why);
    if (rc < 0) return rc;
    pthread_once(&once, init_global);
    http_range_t *self = calloc(1, sizeof *self);
    if (!self || !global_ready || !(self->curl = curl_easy_init())) {
        free(self);
        return why_set(why, FAULT_MEMORY, "libcurl does not start");
    }
    self->config = *config;
    set_up(self);
    *ret_self = self;
    return 0;
}

void http_range_destroy(http_range_t **self_p)
{
    if (!*self_p) return;
    curl_easy_cleanup((*self_p)->curl);
    free(*self_p);
    *self_p = NULL;
}

int http_range_size(http_range_t *self, const struct http_places *places, struct why *why,
                    uint64_t *ret_bytes)
{
    struct attempt attempt = { .curl = self->curl, .config = &self->config };
    curl_off_t bytes = -1;
    int rc = perform(self, places, &attempt, why);
    if (rc < 0) return rc;
    curl_easy_getinfo(self->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &bytes);
    if (bytes < 0)
        return why_set(why, FAULT_PROTOCOL, "%s: the answer to HEAD has no Content-Length",
                       attempt.name);
    *ret_bytes = (uint64_t)bytes;
    return 0;
}

int http_range_read(http_range_t *self, const struct http_places *places,
                    const struct http_part *part, struct why *why)
{
    ensure(part->count > 0 && part->offset < part->size &&
           part->count <= part->size - part->offset);
    struct attempt attempt = { .curl = self->curl,
                               .config = &self->config,
                               .size = part->size,
                               .offset = part->offset,
                               .count = part->count,
                               .out = part->out,
                               .check = part->check,
                               .check_arg = part->arg,
                               .spare = part->spare };
    return perform(self, places, &attempt, why);
}

int http_range_whole(http_range_t *self, const struct http_places *places, size_t bytes_max,
                     http_check *check, void *arg, struct why *why)
{
    struct attempt attempt = { .curl = self->curl,
                               .config = &self->config,
                               .whole = true,
                               .count = bytes_max,
                               .check = check,
                               .check_arg = arg };
    int rc = perform(self, places, &attempt, why);
    free(attempt.out);
    return rc;
}
