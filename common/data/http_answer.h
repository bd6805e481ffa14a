#pragma once
// http_answer -- inside http_range: one attempt, what it asks and whether the answer fits. It takes
// headers and body as libcurl hands them over, then judges the answer and names what is wrong. It
// takes no byte that was not asked for.

#include <curl/curl.h>

#include "common/data/http_range.h"

// One attempt: what was asked, and what has come.
struct attempt {
    CURL *curl;
    const struct http_config *config;
    const char *url;
    char name[HTTP_URL_MAX + 1]; // The URL without secrets, for texts (http_range_name)
    bool whole;                  // The whole file is asked for, `count` bytes at most
    bool spare;
    uint64_t size, offset, count; // Asked for; count 0: the size alone
    uint8_t *out;                 // Of a whole file: ours, with memory for `capacity` bytes
    size_t capacity;
    http_check *check;
    void *check_arg;
    uint64_t got;
    long status; // Of the last answer
    bool has_range, encoded, too_long, no_memory, stopped, again, final;
    uint64_t first, last, total; // Its Content-Range
};

// Callbacks for libcurl. A return value other than the count that came in ends the transfer, so an
// unwanted answer costs one packet.
size_t http_answer_hear(char *line, size_t size, size_t items, void *attempt);
size_t http_answer_take(char *bytes, size_t size, size_t items, void *attempt);

bool http_answer_is_wanted(const struct attempt *attempt, long status);

// After the transfer, which ended with `code`: 0 or a fault. Sets `again` if a retry may succeed,
// and `final` if no retry can.
int http_answer_judge(struct attempt *attempt, CURLcode code, struct why *why);
