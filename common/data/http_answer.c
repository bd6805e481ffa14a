// http_answer -- libcurl hands over one header line or some bytes at a time. Bytes are taken only
// if the status and the headers so far are those of the answer that was asked for; otherwise the
// transfer ends at once. Afterwards the judgement names the first thing that is wrong, in this
// order: the transfer, the status, the kind of answer, its length.

#include "common/data/http_answer.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// ---- what libcurl calls

// "Content-Range: bytes 0-99/1234", in exactly this form: no sign, no blank, no leading zero.
static bool parse_range(const char *text, struct attempt *attempt)
{
    uint64_t first, last, total;
    char canonical[80];
    if (sscanf(text, "bytes %18" PRIu64 "-%18" PRIu64 "/%18" PRIu64, &first, &last, &total) != 3)
        return false;
    snprintf(canonical, sizeof canonical, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, first, last,
             total);
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

size_t http_answer_hear(char *line, size_t size, size_t items, void *context)
{
    struct attempt *attempt = context;
    const size_t count = size * items;
    char value[128];
    if (count > 5 && strncmp(line, "HTTP/", 5) == 0) { // A new answer: the last was a redirect
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
    return attempt->has_range && attempt->first == attempt->offset &&
           attempt->total == attempt->size && attempt->last == attempt->offset + attempt->count - 1;
}

static bool is_whole_file(const struct attempt *attempt)
{
    return attempt->offset == 0 && attempt->count == attempt->size;
}

bool http_answer_is_wanted(const struct attempt *attempt, long status)
{
    if (attempt->encoded) return false;
    if (attempt->whole) return status == 200;
    return (status == 206 && is_exact_range(attempt)) || (status == 200 && is_whole_file(attempt));
}

// Room for that many bytes of a whole file: the buffer doubles until it is large enough.
static bool make_room(struct attempt *attempt, size_t bytes)
{
    size_t capacity = attempt->capacity ? attempt->capacity : 65536;
    while (capacity < bytes) capacity *= 2;
    if (capacity == attempt->capacity) return true;
    uint8_t *out = realloc(attempt->out, capacity);
    if (!out) return false;
    attempt->out = out;
    attempt->capacity = capacity;
    return true;
}

// A return value other than `count` ends the transfer, so an unwanted answer costs one packet.
size_t http_answer_take(char *bytes, size_t size, size_t items, void *context)
{
    struct attempt *attempt = context;
    const size_t count = size * items;
    long status = 0;
    curl_easy_getinfo(attempt->curl, CURLINFO_RESPONSE_CODE, &status);
    if (!http_answer_is_wanted(attempt, status)) return 0;
    attempt->too_long = count > attempt->count - attempt->got;
    if (attempt->too_long) return 0;
    attempt->no_memory = attempt->whole && !make_room(attempt, (size_t)attempt->got + count);
    if (attempt->no_memory) return 0;
    memcpy(attempt->out + attempt->got, bytes, count);
    attempt->got += count;
    return count;
}

// ---- what it means

// There is no answer, or it is not complete.
static int judge_transfer(struct attempt *attempt, CURLcode code, struct why *why)
{
    const char *text = curl_easy_strerror(code), *name = attempt->name;
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return why_set(why, FAULT_DENIED, "%s: its certificate does not verify: %s", name, text);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL: return why_set(why, FAULT_CONFIG, "%s: %s", name, text);
    case CURLE_TOO_MANY_REDIRECTS:
        return why_set(why, FAULT_PROTOCOL, "%s: more than %u redirects", name,
                       attempt->config->redirects);
    case CURLE_OUT_OF_MEMORY: return why_set(why, FAULT_MEMORY, "%s: %s", name, text);
    case CURLE_OPERATION_TIMEDOUT:
        attempt->again = true;
        return why_set(why, FAULT_TIMEOUT, "%s: %" PRIu64 " of %" PRIu64 " bytes after %u ms", name,
                       attempt->got, attempt->count, attempt->config->timeout_ms);
    default: attempt->again = true; return why_set(why, FAULT_UNREACHABLE, "%s: %s", name, text);
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
        return why_set(why, FAULT_CORRUPT,
                       "%s: status 416: bytes from %" PRIu64 " are no longer there;"
                       " it had %" PRIu64 " bytes when it was opened, or by its manifest",
                       name, attempt->offset, attempt->size);
    if (status >= 300 && status < 400)
        return why_set(why, FAULT_PROTOCOL, "%s: status %ld, a redirect; %u are followed", name,
                       status, attempt->config->redirects);
    attempt->again = status >= 500 || status == 408 || status == 429;
    return why_set(why, attempt->again ? FAULT_UNREACHABLE : FAULT_PROTOCOL, "%s: status %ld", name,
                   status);
}

// The status is a success, but not the answer that was asked for.
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
        return why_set(why, FAULT_CORRUPT,
                       "%s has %" PRIu64 " bytes and had %" PRIu64 " when it was opened,"
                       " or by its manifest",
                       name, attempt->total, attempt->size);
    if (attempt->status == 206)
        return why_set(why, FAULT_PROTOCOL,
                       "%s: status 206 with another Content-Range than asked,"
                       " or none (%" PRIu64 " bytes from %" PRIu64 " were asked)",
                       name, attempt->count, attempt->offset);
    if (attempt->status == 200)
        return why_set(why, FAULT_PROTOCOL,
                       "%s: status 200 with the whole file where 206 with"
                       " %" PRIu64 " bytes from %" PRIu64
                       " was asked: this server does not serve ranges",
                       name, attempt->count, attempt->offset);
    return why_set(why, FAULT_PROTOCOL, "%s: status %ld", name, attempt->status);
}

int http_answer_judge(struct attempt *attempt, CURLcode code, struct why *why)
{
    const bool refused = code == CURLE_WRITE_ERROR; // By on_body: the status says why
    if (attempt->stopped)
        return why_set(why, FAULT_UNREACHABLE, "%s: given up, because this process is stopping",
                       attempt->name);
    attempt->final = attempt->no_memory;
    if (attempt->no_memory)
        return why_set(why, FAULT_MEMORY, "%s: more than %zu bytes of it", attempt->name,
                       attempt->capacity);
    if (attempt->too_long)
        return why_set(why, FAULT_PROTOCOL, "%s: more than the %" PRIu64 " bytes that were asked",
                       attempt->name, attempt->count);
    if (code != CURLE_OK && !refused) return judge_transfer(attempt, code, why);
    if (attempt->status < 200 || attempt->status >= 300) return judge_status(attempt, why);
    if (attempt->count == 0 && attempt->status == 200 && !attempt->encoded) return 0;
    if (!http_answer_is_wanted(attempt, attempt->status)) return judge_answer(attempt, why);
    if (attempt->whole || attempt->got == attempt->count) return 0;
    attempt->again = true;
    return why_set(why, FAULT_UNREACHABLE,
                   "%s: the answer ends after %" PRIu64 " of %" PRIu64 " bytes", attempt->name,
                   attempt->got, attempt->count);
}
