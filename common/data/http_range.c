#include "common/data/http_range.h"
#include "common/ensure.h"
#include <curl/curl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct http_range {
    CURL *curl;
    struct http_config config;
    unsigned place;                         // Which answered last
};

// One attempt: what was asked, and what has come.
struct attempt {
    const http_range_t *self;
    const char *url;
    char name[HTTP_URL_MAX + 1];            // The URL as texts may show it
    bool whole;                             // All there is, `count` bytes at most
    bool spare;
    uint64_t size, offset, count;           // Asked for; count 0: the size alone
    uint8_t *out;                           // Of a whole file: ours, with room for `room` bytes
    size_t room;
    http_check *check;
    void *check_arg;
    uint64_t got;
    long status;                            // Of the last answer
    bool has_range, encoded, too_long, no_memory, stopped, again, final;
    uint64_t first, last, total;            // Its Content-Range
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool global_ready;
static void init_global(void) { global_ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK; }

// ---- configuration

static int check_number(const char *name, uint32_t value, uint32_t low, uint32_t high,
                        struct why *why)
{
    return value >= low && value <= high ? 0
         : why_set(why, FAULT_RANGE, "%s is %u; it must be %u to %u", name, value, low, high);
}

static int check_config(const struct http_config *config, struct why *why)
{
    int rc = check_number("timeout_ms", config->timeout_ms, 10, 600000, why);
    if (rc == 0) rc = check_number("connect_timeout_ms", config->connect_timeout_ms, 10, 600000,
                                   why);
    if (rc == 0) rc = check_number("attempts", config->attempts, 1, 20, why);
    if (rc == 0) rc = check_number("pause_ms", config->pause_ms, 1, HTTP_PAUSE_MAX_MS, why);
    if (rc == 0) rc = check_number("redirects", config->redirects, 0, 5, why);
    return rc;
}

int http_range_check_url(const char *url, struct why *why)
{
    const size_t count = strnlen(url, HTTP_URL_MAX + 1);
    const char *host = strncasecmp(url, "http://", 7) == 0 ? url + 7
                     : strncasecmp(url, "https://", 8) == 0 ? url + 8 : NULL;
    if (!host || !*host || *host == '/')
        return why_set(why, FAULT_CONFIG, "a data URL must begin with http:// or https:// and a"
                       " host");
    if (count > HTTP_URL_MAX)
        return why_set(why, FAULT_CONFIG, "a data URL has more than %d bytes", HTTP_URL_MAX);
    for (const char *at = url; *at; at++)
        if (*at <= ' ' || *at > '~')
            return why_set(why, FAULT_CONFIG, "a data URL has a blank, a control or a non-ASCII"
                           " character at byte %td; write it as %%XX", at - url);
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

// ---- what libcurl calls

static bool is_stopped(const http_range_t *self, int wait_ms)
{
    struct pollfd stop = { .fd = self->config.stop_fd, .events = POLLIN };
    return poll(&stop, self->config.stop_fd >= 0, wait_ms) > 0;
}

// "Content-Range: bytes 0-99/1234", written in this one way: no sign, no blank, no zero in front.
static bool parse_range(const char *text, struct attempt *attempt)
{
    unsigned long long first, last, total;
    char canonical[80];
    if (sscanf(text, "bytes %18llu-%18llu/%18llu", &first, &last, &total) != 3) return false;
    snprintf(canonical, sizeof canonical, "bytes %llu-%llu/%llu", first, last, total);
    if (strcmp(text, canonical) != 0) return false;
    attempt->first = first;
    attempt->last = last;
    attempt->total = total;
    return true;
}

// A header's value without blanks around it, if `line` is the header `name`.
static bool value_of(const char *line, size_t count, const char *name, char *value, size_t max)
{
    const size_t skip = strlen(name);
    if (count <= skip || line[skip] != ':' || strncasecmp(line, name, skip) != 0) return false;
    size_t begin = skip + 1, end = count;
    while (begin < end && strchr(" \t\r\n", line[begin])) begin++;
    while (end > begin && strchr(" \t\r\n", line[end - 1])) end--;
    snprintf(value, max, "%.*s", (int)(end - begin), line + begin);
    return true;
}

static size_t on_header(char *line, size_t size, size_t items, void *context)
{
    struct attempt *attempt = context;
    const size_t count = size * items;
    char value[128];
    if (count > 5 && strncmp(line, "HTTP/", 5) == 0) {      // A new answer: the last was a redirect
        attempt->has_range = attempt->encoded = false;
    } else if (value_of(line, count, "Content-Range", value, sizeof value)) {
        attempt->has_range = parse_range(value, attempt);
    } else if (value_of(line, count, "Content-Encoding", value, sizeof value)) {
        attempt->encoded = strcasecmp(value, "identity") != 0;
    }
    return count;
}

static bool is_exact_range(const struct attempt *attempt)
{
    return attempt->has_range && attempt->first == attempt->offset
        && attempt->total == attempt->size && attempt->last == attempt->offset + attempt->count - 1;
}

static bool is_whole_file(const struct attempt *attempt)
{
    return attempt->offset == 0 && attempt->count == attempt->size;
}

static bool is_wanted(const struct attempt *attempt, long status)
{
    if (attempt->encoded) return false;
    if (attempt->whole) return status == 200;
    return (status == 206 && is_exact_range(attempt)) || (status == 200 && is_whole_file(attempt));
}

// Room for so many bytes of a whole file: twice as many as there was, until it is enough.
static bool make_room(struct attempt *attempt, size_t bytes)
{
    size_t room = attempt->room ? attempt->room : 65536;
    while (room < bytes) room *= 2;
    if (room == attempt->room) return true;
    uint8_t *out = realloc(attempt->out, room);
    if (!out) return false;
    attempt->out = out;
    attempt->room = room;
    return true;
}

// Anything but `count` ends the transfer: an answer that is not wanted costs one packet of it.
static size_t on_body(char *bytes, size_t size, size_t items, void *context)
{
    struct attempt *attempt = context;
    const size_t count = size * items;
    long status = 0;
    curl_easy_getinfo(attempt->self->curl, CURLINFO_RESPONSE_CODE, &status);
    if (!is_wanted(attempt, status)) return 0;
    attempt->too_long = count > attempt->count - attempt->got;
    if (attempt->too_long) return 0;
    attempt->no_memory = attempt->whole && !make_room(attempt, (size_t)attempt->got + count);
    if (attempt->no_memory) return 0;
    memcpy(attempt->out + attempt->got, bytes, count);
    attempt->got += count;
    return count;
}

static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct attempt *attempt = context;
    (void)a, (void)b, (void)c, (void)d;
    attempt->stopped = is_stopped(attempt->self, 0);
    return attempt->stopped;
}

// ---- one attempt

static void ask(CURL *curl, const struct attempt *attempt)
{
    char range[64];
    snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)attempt->offset,
             (unsigned long long)(attempt->offset + attempt->count - 1));
    const bool secure = strncasecmp(attempt->url, "https:", 6) == 0;
    curl_easy_setopt(curl, CURLOPT_URL, attempt->url);
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, attempt);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, attempt);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, attempt);
    if (attempt->count) {
        curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);        // Also undoes NOBODY
        curl_easy_setopt(curl, CURLOPT_RANGE, attempt->whole ? NULL : range);
    } else {
        curl_easy_setopt(curl, CURLOPT_RANGE, NULL);
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    }
}

// No answer, or not all of it.
static int judge_transfer(struct attempt *attempt, CURLcode code, struct why *why)
{
    const char *text = curl_easy_strerror(code), *name = attempt->name;
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return why_set(why, FAULT_DENIED, "%s: its certificate does not verify: %s", name, text);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return why_set(why, FAULT_CONFIG, "%s: %s", name, text);
    case CURLE_TOO_MANY_REDIRECTS:
        return why_set(why, FAULT_PROTOCOL, "%s: more than %u redirects", name,
                       attempt->self->config.redirects);
    case CURLE_OUT_OF_MEMORY:
        return why_set(why, FAULT_MEMORY, "%s: %s", name, text);
    case CURLE_OPERATION_TIMEDOUT:
        attempt->again = true;
        return why_set(why, FAULT_TIMEOUT, "%s: %llu of %llu bytes after %u ms", name,
                       (unsigned long long)attempt->got, (unsigned long long)attempt->count,
                       attempt->self->config.timeout_ms);
    default:
        attempt->again = true;
        return why_set(why, FAULT_UNREACHABLE, "%s: %s", name, text);
    }
}

// A status that is not success.
static int judge_status(struct attempt *attempt, struct why *why)
{
    const long status = attempt->status;
    const char *name = attempt->name;
    if (status == 404 || status == 410)
        return why_set(why, FAULT_NOT_FOUND, "%s: status %ld", name, status);
    if (status == 401 || status == 403 || status == 407)
        return why_set(why, FAULT_DENIED, "%s: status %ld", name, status);
    if (status == 416)
        return why_set(why, FAULT_CORRUPT, "%s: status 416: bytes from %llu are no longer there;"
                       " it had %llu bytes when it was opened, or by its manifest", name,
                       (unsigned long long)attempt->offset, (unsigned long long)attempt->size);
    if (status >= 300 && status < 400)
        return why_set(why, FAULT_PROTOCOL, "%s: status %ld, a redirect; %u are followed", name,
                       status, attempt->self->config.redirects);
    attempt->again = status >= 500 || status == 408 || status == 429;
    return why_set(why, attempt->again ? FAULT_UNREACHABLE : FAULT_PROTOCOL, "%s: status %ld", name,
                   status);
}

// A success that is not the one that was asked for.
static int judge_answer(struct attempt *attempt, struct why *why)
{
    const char *name = attempt->name;
    if (attempt->whole && !attempt->encoded)
        return why_set(why, FAULT_PROTOCOL, "%s: status %ld where the whole file was asked", name,
                       attempt->status);
    if (attempt->encoded)
        return why_set(why, FAULT_PROTOCOL, "%s: the answer is compressed, which was not asked for",
                       name);
    if (attempt->status == 206 && attempt->has_range && attempt->total != attempt->size)
        return why_set(why, FAULT_CORRUPT, "%s has %llu bytes and had %llu when it was opened,"
                       " or by its manifest", name, (unsigned long long)attempt->total,
                       (unsigned long long)attempt->size);
    if (attempt->status == 206)
        return why_set(why, FAULT_PROTOCOL, "%s: status 206 with another Content-Range than asked,"
                       " or none (%llu bytes from %llu were asked)", name,
                       (unsigned long long)attempt->count, (unsigned long long)attempt->offset);
    if (attempt->status == 200)
        return why_set(why, FAULT_PROTOCOL, "%s: status 200 with the whole file where 206 with"
                       " %llu bytes from %llu was asked: this server does not serve ranges", name,
                       (unsigned long long)attempt->count, (unsigned long long)attempt->offset);
    return why_set(why, FAULT_PROTOCOL, "%s: status %ld", name, attempt->status);
}

static int judge(struct attempt *attempt, CURLcode code, struct why *why)
{
    const bool refused = code == CURLE_WRITE_ERROR;         // By on_body: the status says why
    if (attempt->stopped)
        return why_set(why, FAULT_UNREACHABLE, "%s: given up, as we are told to stop",
                       attempt->name);
    attempt->final = attempt->no_memory;
    if (attempt->no_memory)
        return why_set(why, FAULT_MEMORY, "%s: more than %zu bytes of it", attempt->name,
                       attempt->room);
    if (attempt->too_long)
        return why_set(why, FAULT_PROTOCOL, "%s: more than the %llu bytes that were asked",
                       attempt->name, (unsigned long long)attempt->count);
    if (code != CURLE_OK && !refused) return judge_transfer(attempt, code, why);
    if (attempt->status < 200 || attempt->status >= 300) return judge_status(attempt, why);
    if (attempt->count == 0 && attempt->status == 200 && !attempt->encoded) return 0;
    if (!is_wanted(attempt, attempt->status)) return judge_answer(attempt, why);
    if (attempt->whole || attempt->got == attempt->count) return 0;
    attempt->again = true;
    return why_set(why, FAULT_UNREACHABLE, "%s: the answer ends after %llu of %llu bytes",
                   attempt->name, (unsigned long long)attempt->got,
                   (unsigned long long)attempt->count);
}

// Bytes that are not what they should be may be better the next time; what else is wrong is ours.
// The text may quote them: no line of a log begins where a server wants it.
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
    int rc = judge(attempt, code, why);
    return rc == 0 && attempt->check ? check_bytes(attempt, why) : rc;
}

// ---- several attempts

static void tell(const struct attempt *attempt, const struct why *why, const char *next)
{
    const struct http_config *config = &attempt->self->config;
    const bool is_there = attempt->status != 403 && attempt->status != 404 && attempt->status != 410;
    if (config->refused && (is_there || !attempt->spare))
        config->refused(config->arg, why->text, next);
}

// Asks each place once, the one that answered last first. *ret_again: asking again may be of use.
static int ask_places(http_range_t *self, const struct http_places *places, struct attempt *attempt,
                      struct why *why, bool *ret_again)
{
    const unsigned count = places->url[1] ? 2 : 1;
    *ret_again = false;
    for (unsigned i = 0; ; i++) {
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
    for (uint32_t number = 1; ; number++) {
        bool again;
        int rc = ask_places(self, places, attempt, why, &again);
        if (rc == 0 || attempt->final || attempt->stopped) return rc;
        const bool last = !again || number == self->config.attempts;
        snprintf(next, sizeof next, last ? "given up" : "asked again in %u ms", pause_ms);
        tell(attempt, why, next);
        if (!again) return rc;
        if (last) return why_wrap(why, rc, "given up after %u attempts", number);
        if (is_stopped(self, (int)pause_ms))
            return why_wrap(why, rc, "given up after %u attempts, as we are told to stop", number);
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
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);           // Threads: no SIGALRM for time-outs
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, config->redirects ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)config->redirects);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)config->timeout_ms);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)config->connect_timeout_ms);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
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
    struct attempt attempt = { .self = self };
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
    ensure(part->count > 0 && part->offset < part->size
           && part->count <= part->size - part->offset);
    struct attempt attempt = { .self = self, .size = part->size, .offset = part->offset,
                               .count = part->count, .out = part->out, .check = part->check,
                               .check_arg = part->arg, .spare = part->spare };
    return perform(self, places, &attempt, why);
}

int http_range_whole(http_range_t *self, const struct http_places *places, size_t bytes_max,
                     http_check *check, void *arg, struct why *why)
{
    struct attempt attempt = { .self = self, .whole = true, .count = bytes_max, .check = check,
                               .check_arg = arg };
    int rc = perform(self, places, &attempt, why);
    free(attempt.out);
    return rc;
}
