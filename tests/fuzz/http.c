// The header lines of an HTTP answer, as libcurl hands them to http_answer.c, from inside that
// file.

#include "common/base/ensure.h"
#include "common/data/http_answer.c"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/network.h"
#include <inttypes.h>

void http_fuzz_print_dictionary(void)
{
    static const char *const words[] = { "HTTP/1.1 206\r\n",
                                         "Content-Range:",
                                         " bytes 20-29/100\r\n",
                                         "Content-Encoding:",
                                         "identity",
                                         "gzip",
                                         "http://",
                                         "https://",
                                         "@",
                                         "?",
                                         "#" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        fuzz_print_token("", "word", (const uint8_t *)words[i], strlen(words[i]));
}

bool http_fuzz_check(const uint8_t *bytes, size_t count)
{
    static const struct http_config config = HTTP_CONFIG_DEFAULT;
    struct attempt attempt = { .config = &config, .size = 100, .offset = 20, .count = 10 };
    struct why why = { 0 };
    char canonical[128], value[128];
    char name[HTTP_URL_MAX + 1];
    for (size_t at = 0; at < count;) {
        const uint8_t *newline = memchr(bytes + at, '\n', count - at);
        const size_t length = newline ? (size_t)(newline - bytes) + 1 - at : count - at;
        char *line = malloc(length); // Its own block, and not ended by a zero
        ensure(line);
        memcpy(line, bytes + at, length);
        ensure(http_answer_hear(line, 1, length, &attempt) == length);
        if (attempt.has_range && value_of(line, length, "Content-Range", value, sizeof value)) {
            snprintf(canonical, sizeof canonical, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
                     attempt.first, attempt.last, attempt.total);
            ensure(strcmp(canonical, value) == 0); // One way to write it, and no other
        }
        free(line);
        at += length;
    }
    char *url = strndup((const char *)bytes, count);
    ensure(url);
    if (http_range_check_url(url, NULL) == 0) http_range_name(url, name);
    free(url);
    attempt.status = 206;
    if (http_answer_is_wanted(&attempt, 206)) {
        ensure(attempt.first == 20 && attempt.last == 29 && attempt.total == 100);
        return true;
    }
    ensure(judge_answer(&attempt, &why) < 0 && why.text[0]);
    return false;
}
