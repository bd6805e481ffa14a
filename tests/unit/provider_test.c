// Providers: local, fetched, and over HTTP against a small server in a thread, honest and
// otherwise.
#include "common/data/provider.h"
#include "tests/unit/web_fixture.h"
#include "tests/test.h"

static struct why why;

// ---- the files: numbered, number n with its own length; token i of file n is 100 n + i

enum { FILES = 4, BODY_MAX = 4096 };
static const uint32_t lengths[FILES] = { 41, 9, 100, 1500 };

static size_t make_body(uint32_t number, bool npy, uint8_t body[BODY_MAX])
{
    size_t count = 0;
    if (npy) {
        memcpy(body, "\x93NUMPY\x01\x00", 8);
        char *text = (char *)body + 10;
        int length = sprintf(text, "{'descr': '<u2', 'fortran_order': False, 'shape': (%u,), }",
                             lengths[number]);
        length += sprintf(text + length, "%*s\n", 117 - length, "");
        body[8] = (uint8_t)length;
        body[9] = 0;
        count = 10 + (size_t)length;
    }
    for (uint32_t i = 0; i < lengths[number]; i++) {
        body[count++] = (uint8_t)(100 * number + i);
        body[count++] = (uint8_t)((100 * number + i) >> 8);
    }
    return count;
}

// ---- the server: one request for each connection; the first part of the path says how it behaves

static struct {
    struct web_server web;
    atomic_uint requests; // GETs answered or not
} server;

static void answer_range(int fd, const char *mode, const uint8_t *body, size_t size, size_t first,
                         size_t last)
{
    const bool is_long = strcmp(mode, "long") == 0, is_brief = strcmp(mode, "brief") == 0;
    const bool is_short = strcmp(mode, "short") == 0 || is_brief;
    const size_t count = last - first + 1;
    web_say(fd, "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %zu-%zu/%zu\r\n",
            first + (strcmp(mode, "lie1") == 0), last + (strcmp(mode, "lie2") == 0),
            strcmp(mode, "grown") ? size : size + 2);
    if (!is_brief) web_say(fd, "Content-Length: %zu\r\n", count + is_long);
    web_say(fd, "%sConnection: close\r\n\r\n",
            strcmp(mode, "gzip") ? "" : "Content-Encoding: gzip\r\n");
    if (strcmp(mode, "slow") == 0) web_wait_until_gone(fd);
    else send(fd, body + first, is_short ? count / 2 : count, MSG_NOSIGNAL);
    if (is_long) send(fd, "x", 1, MSG_NOSIGNAL);
}

static void answer_get(int fd, const char *mode, const uint8_t *body, size_t size, size_t first,
                       size_t last)
{
    const unsigned number = ++server.requests;
    if (strcmp(mode, "flaky") == 0 && number <= 2)
        web_say(fd, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    else if (strcmp(mode, "gone") == 0)
        web_say(fd, "HTTP/1.1 404 Gone\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngone");
    else if (strcmp(mode, "shrunk") == 0)
        web_say(fd, "HTTP/1.1 416 No\r\nContent-Range: bytes */2\r\nContent-Length: 0\r\n\r\n");
    else if (strcmp(mode, "whole") == 0) {
        web_say(fd, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", size);
        send(fd, body, size, MSG_NOSIGNAL);
    } else if (strcmp(mode, "hangup") != 0)
        answer_range(fd, mode, body, size, first, last < size ? last : size - 1);
}

static void answer(void *arg, int fd, const char *request)
{
    (void)arg;
    char verb[8] = "", mode[16] = "", name[16] = "";
    uint8_t body[BODY_MAX];
    unsigned number = 0;
    size_t first = 0, last = 0;
    const char *range = strstr(request, "Range: bytes=");
    if (sscanf(request, "%7[A-Z] /%15[a-z0-9]/%15s", verb, mode, name) != 3) return;
    if (range) sscanf(range, "Range: bytes=%zu-%zu", &first, &last);
    sscanf(name, "%u", &number);
    const size_t size = make_body(number < FILES ? number : 0, strstr(name, ".npy") != NULL, body);
    if (strcmp(mode, "moved") == 0)
        web_say(fd, "HTTP/1.1 302 Moved\r\nLocation: /ok/%s\r\nContent-Length: 0\r\n\r\n", name);
    else if (strcmp(mode, "loop") == 0)
        web_say(fd, "HTTP/1.1 302 Moved\r\nLocation: /loop/%s\r\nContent-Length: 0\r\n\r\n", name);
    else if (strcmp(verb, "GET") == 0) answer_get(fd, mode, body, size, first, last);
    else if (strcmp(mode, "nolength") == 0)
        web_say(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    else if (strcmp(mode, "dead") != 0)
        web_say(fd, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", size);
}

static int start_server(void **state)
{
    (void)state;
    web_server_start(&server.web, answer, NULL);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    web_server_stop(&server.web);
    return 0;
}

// ---- helpers

static const struct samples_config config = { .token_bytes = 2, .seq_len = 8, .vocab_size = 4096 };

static struct http_config quick(void)
{
    return (struct http_config){
        .timeout_ms = 5000, .connect_timeout_ms = 2000, .attempts = 3, .pause_ms = 1, .stop_fd = -1
    };
}

static int open_url(const char *mode, const char *name, const struct http_config *http,
                    provider_t **ret_self)
{
    char url[256];
    snprintf(url, sizeof url, "http://user:secret@127.0.0.1:%u/%s/%s?key=secret", server.web.port,
             mode, name);
    const struct remote_source source = { .kind = REMOTE_SINGLE_URL, .url = url };
    server.requests = 0;
    why.text[0] = 0;
    int rc = provider_open_http(&source, http, &config, &why, ret_self);
    assert_null(strstr(why.text, "secret"));
    return rc;
}

static void assert_says(const char *word)
{
    if (!strstr(why.text, word)) fail_msg("'%s' is not in '%s'", word, why.text);
    assert_null(strstr(why.text, "secret")); // Neither password nor query
}

// Opens file 2 in a mode and reads two samples from its middle.
static int read_in_mode(const char *mode, const struct http_config *http)
{
    provider_t *self = NULL;
    uint32_t tokens[2][9];
    int rc = open_url(mode, "2.bin", http, &self);
    if (rc < 0) print_message("%s\n", why.text);
    assert_int_equal(rc, 0);
    rc = provider_read(self, 3, 2, &tokens[0][0], &why);
    if (rc == 0)
        for (uint32_t i = 0; i < 9; i++) {
            assert_int_equal(tokens[0][i], 200 + 24 + i);
            assert_int_equal(tokens[1][i], 200 + 32 + i);
        }
    provider_close(&self);
    assert_null(self);
    return rc;
}

// ---- HTTP

static void test_http_single_url(void **state)
{
    (void)state;
    struct http_config http = quick();
    provider_t *self = NULL;
    uint32_t tokens[12][9];
    assert_int_equal(read_in_mode("ok", &http), 0);
    assert_int_equal(server.requests, 1); // Two neighbours, one request
    assert_int_equal(open_url("ok", "2.bin", &http, &self), 0);
    assert_int_equal(provider_count(self), 12);
    assert_int_equal(provider_seq_len(self), 8);
    assert_null(provider_digest(self));
    assert_int_equal(provider_read(self, 12 * 5, 12, &tokens[0][0], &why), 0); // A later pass
    for (uint32_t s = 0; s < 12; s++) assert_int_equal(tokens[s][8], 200 + 8 * s + 8);
    assert_int_equal(server.requests, 1);
    assert_int_equal(provider_read(self, 0, 0, NULL, &why), 0);
    provider_close(&self);
    assert_int_equal(open_url("ok", "2.npy", &http, &self), 0);
    assert_int_equal(provider_read(self, 1, 1, &tokens[0][0], &why), 0);
    assert_int_equal(tokens[0][0], 208);
    provider_close(&self);
}

static char folder[256];

static void put_local_files(void)
{
    uint8_t body[BODY_MAX];
    snprintf(folder, sizeof folder, "%s/shoal-provider-XXXXXX", P_tmpdir);
    assert_non_null(mkdtemp(folder));
    for (uint32_t n = 0; n < FILES; n++) {
        char path[300];
        snprintf(path, sizeof path, "%s/%03u.bin", folder, n);
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        const size_t count = make_body(n, false, body);
        assert_int_equal(fwrite(body, 1, count, file), count);
        fclose(file);
    }
}

static void remove_local_files(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

// The same files give the same samples, here and there, in order and shuffled, over passes.
static void test_http_agrees_with_local(void **state)
{
    (void)state;
    struct http_config http = quick();
    char url[128];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/ok/{}.bin", server.web.port);
    const struct remote_source source = {
        .kind = REMOTE_NUMBERED_FILES, .url = url, .num_files = FILES, .n_left_pad_zeros = 3
    };
    put_local_files();
    for (int shuffled = 0; shuffled < 2; shuffled++) {
        struct samples_config both = config;
        provider_t *here = NULL, *there = NULL;
        both.shuffled = shuffled;
        assert_int_equal(provider_open_local(folder, &both, &why, &here), 0);
        assert_int_equal(provider_open_http(&source, &http, &both, &why, &there), 0);
        const uint64_t count = provider_count(here);
        assert_int_equal(count, 5 + 1 + 12 + 187);
        assert_int_equal(provider_count(there), count);
        const uint32_t ask = shuffled ? 20 : (uint32_t)count + 7;
        const size_t bytes = ask * 9 * sizeof(uint32_t);
        uint32_t *a = malloc(bytes), *b = malloc(bytes);
        assert_non_null(a);
        assert_non_null(b);
        server.requests = 0;
        assert_int_equal(provider_read(here, count - 3, ask, a, &why), 0);
        assert_int_equal(provider_read(there, count - 3, ask, b, &why), 0);
        assert_memory_equal(a, b, bytes);
        if (!shuffled) assert_int_equal(server.requests, 1 + FILES + 1); // A run for each file
        free(a);
        free(b);
        provider_close(&here);
        provider_close(&there);
    }
    remove_local_files();
}

static void test_http_is_patient(void **state)
{
    (void)state;
    struct http_config http = quick();
    assert_int_equal(read_in_mode("flaky", &http), 0); // 503, 503, 206
    assert_int_equal(server.requests, 3);
    http.attempts = 2;
    assert_int_equal(read_in_mode("flaky", &http), FAULT_UNREACHABLE);
    assert_says("after 2 attempts");
    assert_says("status 503");
    assert_int_equal(read_in_mode("short", &http), FAULT_UNREACHABLE);
    assert_int_equal(server.requests, 2);
    assert_int_equal(read_in_mode("brief", &http), FAULT_UNREACHABLE); // No length, half of it
    assert_says("ends after 17 of 34 bytes");
    assert_int_equal(read_in_mode("hangup", &http), FAULT_UNREACHABLE);
    assert_int_equal(server.requests, 2);
    http.timeout_ms = 60;
    assert_int_equal(read_in_mode("slow", &http), FAULT_TIMEOUT);
    assert_int_equal(server.requests, 2);
    assert_says("0 of 34 bytes after 60 ms");
}

// What will not pass by itself is not asked twice.
static void test_http_refuses_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *mode;
        int fault;
        const char *says;
    } wrong[] = {
        { "whole", FAULT_PROTOCOL, "does not serve ranges" },
        { "lie1", FAULT_PROTOCOL, "another Content-Range" },
        { "lie2", FAULT_PROTOCOL, "another Content-Range" },
        { "long", FAULT_PROTOCOL, "more than the 34 bytes" },
        { "gzip", FAULT_PROTOCOL, "compressed" },
        { "grown", FAULT_CORRUPT, "has 202 bytes and had 200" },
        { "shrunk", FAULT_CORRUPT, "416" },
        { "gone", FAULT_NOT_FOUND, "404" },
    };
    struct http_config http = quick();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(read_in_mode(wrong[i].mode, &http), wrong[i].fault);
        assert_says(wrong[i].says);
        assert_int_equal(server.requests, 1);
    }
}

// A server without ranges is enough where a whole file is asked for: here one sample is one.
static void test_http_whole_file(void **state)
{
    (void)state;
    struct http_config http = quick();
    provider_t *self = NULL;
    uint32_t tokens[9];
    assert_int_equal(open_url("whole", "1.bin", &http, &self), 0);
    assert_int_equal(provider_count(self), 1);
    assert_int_equal(provider_read(self, 0, 1, tokens, &why), 0);
    assert_int_equal(tokens[8], 108);
    provider_close(&self);
}

static void test_http_refused_at_open(void **state)
{
    (void)state;
    struct http_config http = quick();
    provider_t *self = NULL;
    assert_int_equal(open_url("dead", "2.bin", &http, &self), FAULT_UNREACHABLE);
    assert_says("after 3 attempts");
    assert_int_equal(open_url("nolength", "2.bin", &http, &self), FAULT_PROTOCOL);
    assert_says("no Content-Length");
    assert_int_equal(open_url("moved", "2.bin", &http, &self), FAULT_PROTOCOL);
    assert_says("302, a redirect; 0 are followed");
    http.redirects = 2;
    assert_int_equal(read_in_mode("moved", &http), 0);
    assert_int_equal(open_url("loop", "2.bin", &http, &self), FAULT_PROTOCOL);
    assert_says("more than 2 redirects");
    assert_null(self);
}

static void test_http_port_without_a_listener(void **state)
{
    (void)state;
    struct http_config http = quick();
    provider_t *self = NULL;
    char url[64];
    uint16_t port = 0;
    close(web_listen(&port));
    snprintf(url, sizeof url, "http://127.0.0.1:%u/a.bin", port);
    const struct remote_source source = { .kind = REMOTE_SINGLE_URL, .url = url };
    assert_int_equal(provider_open_http(&source, &http, &config, &why, &self), FAULT_UNREACHABLE);
    assert_says("after 3 attempts");
}

static void test_http_stops_when_told(void **state)
{
    (void)state;
    struct http_config http = quick();
    provider_t *self = NULL;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    http.stop_fd = ends[0];
    http.pause_ms = HTTP_PAUSE_MAX_MS;
    assert_int_equal(open_url("ok", "2.bin", &http, &self), 0);
    provider_close(&self);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(open_url("dead", "2.bin", &http, &self), FAULT_UNREACHABLE);
    assert_says("this process is stopping");
    close(ends[0]);
    close(ends[1]);
}

static void test_http_bad_configuration(void **state)
{
    (void)state;
    static const struct {
        struct remote_source source;
        int fault;
        const char *says;
    } bad[] = {
        { { .kind = REMOTE_GCP, .url = "bucket" }, FAULT_UNSUPPORTED, "Gcp" },
        { { .kind = REMOTE_SINGLE_URL, .url = "ftp://a/b.bin" }, FAULT_CONFIG, "http://" },
        { { .kind = REMOTE_SINGLE_URL, .url = "file:///etc/a.bin" }, FAULT_CONFIG, "http://" },
        { { .kind = REMOTE_SINGLE_URL, .url = "https:///b.bin" }, FAULT_CONFIG, "host" },
        { { .kind = REMOTE_SINGLE_URL, .url = "http://a/b c.bin" }, FAULT_CONFIG, "byte 10" },
        { { .kind = REMOTE_SINGLE_URL, .url = "http://a/b\r\nX: y" }, FAULT_CONFIG, "byte 10" },
        { { .kind = REMOTE_NUMBERED_FILES, .url = "http://a/b", .num_files = 1 },
          FAULT_CONFIG,
          "{}" },
        { { .kind = REMOTE_NUMBERED_FILES, .url = "http://a/{}{}", .num_files = 1 },
          FAULT_CONFIG,
          "{}" },
        { { .kind = REMOTE_NUMBERED_FILES, .url = "http://a/{}" }, FAULT_RANGE, "num_files is 0" },
        { { .kind = REMOTE_NUMBERED_FILES,
            .url = "http://a/{}",
            .num_files = 1,
            .n_left_pad_zeros = 21 },
          FAULT_RANGE,
          "n_left_pad_zeros" },
        { { .kind = REMOTE_NUMBERED_FILES,
            .url = "http://a/{}",
            .num_files = 2,
            .start_index = UINT32_MAX },
          FAULT_RANGE,
          "start_index" },
    };
    struct http_config http = quick();
    provider_t *self = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(provider_open_http(&bad[i].source, &http, &config, &why, &self),
                         bad[i].fault);
        assert_says(bad[i].says);
    }
    http.attempts = 0;
    assert_int_equal(open_url("ok", "2.bin", &http, &self), FAULT_RANGE);
    assert_says("attempts is 0");
    assert_null(self);
}

static void test_http_token_outside_vocabulary(void **state)
{
    (void)state;
    struct http_config http = quick();
    struct samples_config small = config;
    provider_t *self = NULL;
    uint32_t tokens[9];
    char url[64];
    small.vocab_size = 210;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/ok/2.bin", server.web.port);
    const struct remote_source source = { .kind = REMOTE_SINGLE_URL, .url = url };
    assert_int_equal(provider_open_http(&source, &http, &small, &why, &self), 0);
    assert_int_equal(provider_read(self, 0, 1, tokens, &why), 0);
    assert_int_equal(provider_read(self, 1, 1, tokens, &why), FAULT_RANGE);
    assert_says("2.bin: token 10 is 210");
    provider_close(&self);
}

// ---- fetch

struct source {
    uint32_t calls, closed;
    int fault;
    uint32_t value;
};

static int bring(void *context, uint64_t position, uint32_t count, uint32_t *tokens,
                 struct why *reason)
{
    struct source *source = context;
    source->calls++;
    if (source->fault) return why_set(reason, source->fault, "gone fishing");
    for (uint32_t i = 0; i < count * 9; i++) tokens[i] = source->value + (uint32_t)position;
    return 0;
}

static void shut(void *context) { ((struct source *)context)->closed++; }

static void test_fetch(void **state)
{
    (void)state;
    struct source source = { .value = 5 };
    struct provider_fetch fetch = {
        .fetch = bring, .close = shut, .context = &source, .count = 77
    };
    provider_t *self = NULL;
    uint32_t tokens[2][9];
    assert_int_equal(provider_open_fetch(&fetch, &config, &why, &self), 0);
    assert_int_equal(provider_count(self), 77);
    assert_int_equal(provider_read(self, 100, 2, &tokens[0][0], &why), 0);
    assert_int_equal(tokens[1][8], 105);
    source.value = 4096;
    assert_int_equal(provider_read(self, 0, 2, &tokens[0][0], &why), FAULT_RANGE);
    assert_says("is 4096");
    source.fault = FAULT_TIMEOUT;
    assert_int_equal(provider_read(self, 0, 2, &tokens[0][0], &why), FAULT_TIMEOUT);
    assert_says("gone fishing");
    assert_int_equal(source.calls, 3);
    provider_close(&self);
    provider_close(&self);
    assert_int_equal(source.closed, 1);
    fetch.count = 0;
    assert_int_equal(provider_open_fetch(&fetch, &config, &why, &self), FAULT_RANGE);
}

TESTS_WITH(start_server, stop_server, TEST(test_http_single_url), TEST(test_http_agrees_with_local),
           TEST(test_http_is_patient), TEST(test_http_refuses_by_name), TEST(test_http_whole_file),
           TEST(test_http_refused_at_open), TEST(test_http_port_without_a_listener),
           TEST(test_http_stops_when_told), TEST(test_http_bad_configuration),
           TEST(test_http_token_outside_vocabulary), TEST(test_fetch))
