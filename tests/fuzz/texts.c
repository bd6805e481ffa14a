// Short texts of a command line or a small file, by their first byte: 'k' a key, 'h' a hash, 'a' an
// address, 'u' a list of topics, 'c' of clients to be killed, 'o' a setting, 'i' the number of a
// process's last life, 's' a secret. And texts to be tokenised, as files.

#include "actors/shoal/local/kill_list.h"
#include "common/actor/tap.h"
#include "common/base/ensure.h"
#include "common/base/instance.h"
#include "common/config/override.h"
#include "common/crypto/identity.h"
#include "common/text/corpus.h"
#include "common/text/unicode.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/scratch.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool refused(const struct why *why)
{
    if (fuzz_is_verbose()) printf("%s: ", why->text);
    ensure(why->text[0]);
    return false;
}

static bool is_same_hex(const char *said, const char *text)
{
    while (*said && *text && tolower((uint8_t)*text) == *said) said++, text++;
    return !*said && !*text;
}

static bool check_key(const char *text)
{
    char hex[KEY_HEX];
    struct key key;
    if (!key_from_hex(text, &key)) return false;
    ensure(is_same_hex(key_to_hex(&key, hex), text));
    return true;
}

static bool check_hash(const char *text)
{
    char hex[HASH_HEX];
    struct hash hash;
    if (!hash_from_hex(text, &hash)) return false;
    ensure(is_same_hex(hash_to_hex(&hash, hex), text));
    return true;
}

static bool check_address(const char *text)
{
    char endpoint[128], again[128];
    if (!post_endpoint(text, POST_PORTS - 1, endpoint, sizeof endpoint)) return false;
    ensure(strncmp(endpoint, "tcp://", 6) == 0 && post_endpoint(endpoint, 0, again, sizeof again));
    ensure(strcmp(endpoint, again) == 0);
    ensure(!strpbrk(endpoint + 6, " /;*#@?\\\"'") &&
           isalnum((uint8_t)endpoint[strlen(endpoint) - 1]));
    return true;
}

static bool check_topics(const char *text)
{
    enum { MOST = 4 };
    struct why why = { 0 };
    uint16_t kinds[MOST];
    size_t count;
    if (tap_parse_topics(text, MOST, &why, kinds, &count) < 0) return refused(&why);
    ensure(count >= 1 && count <= MOST);
    for (size_t i = 0; i < count; i++) ensure(wire_kind_flags(kinds[i]) & WIRE_NEWS);
    return true;
}

static bool check_kills(const char *text)
{
    enum { CLIENTS = 20 };
    struct why why = { 0 };
    struct kill_list list;
    uint32_t seen = 0;
    if (kill_list_parse(text, CLIENTS, 7, &why, &list) < 0) return refused(&why);
    ensure(list.count >= 1 && list.count <= CLIENTS);
    for (uint32_t i = 0; i < list.count; i++) {
        ensure(list.clients[i] >= 1 && list.clients[i] <= CLIENTS);
        ensure(!(seen >> list.clients[i] & 1));
        seen |= 1u << list.clients[i];
    }
    return true;
}

static bool check_setting(const char *text)
{
    static struct config_faults faults;
    static struct run_config loaded, changed;
    static bool is_loaded;
    struct why why = { 0 };
    if (!is_loaded) ensure(config_load_run("config/demo/state.toml", &loaded, &faults) == 0);
    is_loaded = true;
    memcpy(&changed, &loaded, sizeof changed);
    if (config_override(&changed, text, &why) < 0) {
        ensure(memcmp(&changed, &loaded, sizeof changed) == 0);
        return refused(&why);
    }
    return config_override_check(&changed, &why) == 0 || refused(&why);
}

static bool check_instance(const char *text, size_t count)
{
    struct why why = { 0 };
    uint64_t first, second;
    scratch_put("instance", text, count);
    if (instance_take(scratch_dir(), 5, &why, &first) < 0) return refused(&why);
    ensure(first >= 5);
    if (instance_take(scratch_dir(), 5, &why, &second) == 0) ensure(second == first + 1);
    else ensure(first == UINT64_MAX); // After the last life there is none
    return true;
}

static bool check_secret(const char *text, size_t count)
{
    struct why why = { 0 };
    struct identity *identity = NULL;
    scratch_put("secret", text, count);
    const bool by_file = identity_load(scratch_path("secret"), NULL, &why, &identity) == 0;
    if (by_file) ensure(count == SECRET_BYTES);
    else ensure(why.text[0] && (count < 8 || !strstr(why.text, text))); // Not said aloud
    identity_destroy(&identity);
    const bool by_text = identity_load(NULL, text, &why, &identity) == 0;
    ensure(!by_text || strlen(text) == 2 * SECRET_BYTES);
    identity_destroy(&identity);
    return by_file || by_text;
}

bool texts_fuzz_check(const uint8_t *bytes, size_t count)
{
    bool accepted = false;
    if (count == 0) return false;
    char *text = strndup((const char *)bytes + 1, count - 1);
    ensure(text);
    switch (bytes[0]) {
    case 'k': accepted = check_key(text); break;
    case 'h': accepted = check_hash(text); break;
    case 'a': accepted = check_address(text); break;
    case 'u': accepted = check_topics(text); break;
    case 'c': accepted = check_kills(text); break;
    case 'o': accepted = check_setting(text); break;
    case 'i': accepted = check_instance(text, strlen(text)); break;
    case 's': accepted = check_secret(text, strlen(text)); break;
    }
    free(text);
    return accepted;
}

void texts_fuzz_write_seeds(const char *folder)
{
    static const char *const seeds[] = {
        "ahost:5550",
        "atcp://[::1]:1",
        "uRUN,COMMIT",
        "c1,2,20",
        "ototal_steps=7",
        "olr_schedule=Cosine",
        "oAdamW.eps=1e-8",
        "i17\n",
        "i18446744073709551615\n",
        "s0123456789012345678901234567890123456789012345678901234567890123",
        "s01234567890123456789012345678901",
        "k0123456789ABCDEF012345678901234567890123456789012345678901234567",
        "h0123456789abcdef012345678901234567890123456789012345678901234567"
    };
    char name[16];
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        snprintf(name, sizeof name, "seed-%zu", i);
        fuzz_write_seed(folder, name, seeds[i], strlen(seeds[i]));
    }
}

// ---- a corpus -----------------------------------------------------------------------------------

static size_t cut_anywhere(const void *context, const uint8_t *text, size_t count)
{
    (void)context, (void)text;
    return count;
}

// Of a plain text all of it comes, in its order; of lines of JSON, one document each.
static bool read_units(corpus_t *corpus, bool is_json, const uint8_t *bytes, size_t count)
{
    struct why why = { 0 };
    const struct corpus_unit *units;
    size_t units_count, at = 0;
    int rc;
    bool valid = true;
    while ((rc = corpus_next(corpus, &why, &units, &units_count)) == 0 && units_count > 0)
        for (size_t i = 0; i < units_count; i++) {
            const bool is_valid = corpus_check(&units[i], &why) == 0;
            ensure(is_valid ==
                   (unicode_valid_until(units[i].text, units[i].count) == units[i].count));
            ensure(!is_json || (units[i].begins && units[i].ends && units[i].line > 0));
            ensure(is_json || (units[i].count <= count - at &&
                               memcmp(units[i].text, bytes + at, units[i].count) == 0));
            valid &= is_valid;
            at += units[i].count;
        }
    if (rc < 0) return refused(&why);
    ensure(is_json || at == count);
    ensure(corpus_bytes_read(corpus) == count && corpus_bytes(corpus) == count);
    return valid;
}

static void count_skip(void *context, const char *text)
{
    ensure(text[0]);
    ++*(uint64_t *)context;
}

// 'j' lines of JSON, 'a' perhaps an array; 's' and 'A' the same with bad ones passed over; else a
// text.
bool corpus_fuzz_check(const uint8_t *bytes, size_t count)
{
    struct corpus_options options = { .field = "text", .cut = cut_anywhere };
    struct why why = { 0 };
    corpus_t *corpus;
    uint64_t skipped = 0;
    char path[512];
    const char *paths[] = { path };
    if (count == 0) return false;
    const bool is_array = bytes[0] == 'a' || bytes[0] == 'A';
    const bool is_json = is_array || bytes[0] == 'j' || bytes[0] == 's';
    if (bytes[0] == 's' || bytes[0] == 'A')
        options.skip = count_skip, options.skip_context = &skipped;
    const char *name = is_array ? "corpus.json" : is_json ? "corpus.jsonl" : "corpus.txt";
    scratch_put(name, bytes + 1, count - 1);
    snprintf(path, sizeof path, "%s", scratch_path(name));
    if (corpus_open(paths, 1, &options, &why, &corpus) < 0) return refused(&why);
    const bool accepted = read_units(corpus, is_json, bytes + 1, count - 1);
    ensure(skipped <= corpus_skipped(corpus) && corpus_skipped(corpus) <= corpus_records(corpus));
    ensure(!options.skip || skipped == corpus_skipped(corpus));
    corpus_close(&corpus);
    return accepted;
}

void corpus_fuzz_write_seeds(const char *folder)
{
    static const char *const seeds[] = {
        "tA text.\nOf two lines: é世\n",
        "j{\"text\":\"one\"}\n\n{\"text\":\"\\u00e9\\n\",\"n\":1}\n{\"text\":\"\"}",
        "s{\"text\":\"\\u0000\"}\n[]\n{\"text\":\"\\ud800\"}\n{\"t\":\"2\"}\n{\"text\":null}\n",
        "a\n[{\"text\":\"o,]\\\"ne\"},\n {\"id\":[1,{}],\"text\":\"two\"} ]\n",
        "A[{\"text\":\"one\"},7,,{\"txt\":[\"]\"]},{\"text\":\"two\"}"
    };
    fuzz_write_seed(folder, "accepted-text", seeds[0], strlen(seeds[0]));
    fuzz_write_seed(folder, "accepted-lines", seeds[1], strlen(seeds[1]));
    fuzz_write_seed(folder, "accepted-skips", seeds[2], strlen(seeds[2]));
    fuzz_write_seed(folder, "accepted-array", seeds[3], strlen(seeds[3]));
    fuzz_write_seed(folder, "accepted-array-skips", seeds[4], strlen(seeds[4]));
}
