// Golden conversations with the coordinator's core: tests/golden/coordinator has at least one file
// for each row of the table in coordinator.h. Comments and messages to the core begin at the
// margin; the effects of the core are indented. The test plays the messages, and what it prints
// must equal the file.
//
//     # what this conversation shows
//     set min_clients=2                        a rule that differs from the test's default
//     @ 1000 t1 > JOIN                         at 1000 ms; t: trainer, w: witness, c: checkpointer,
//         disk  RECORD_MEMBER key=t1 ..        d: data provider, owner; fields as in frames.def
//         t1    ADMITTED ..                    mail to t1; zero and empty fields are left out
//
// Hashes are words: digest=x is the hash that reads x. In a VOTE, seen=0:a,1:b names results a and
// b of clients 0 and 1, and who=t1,t2 is its bloom. In a CLAIM_COPY, claim=t4:2:a is the CLAIM of
// t4, which is client 3, in round 2 with payload a. pin=m:p:8 pins the dataset of manifest m,
// positions p and 8 samples. windows=1000 makes it a run in windows of so many ms, leases=8:2 one in tasks of 8
// samples with 2 parameter servers, leases_dir=/s that they save in; then its records are verified at the end
// (evidence.h). A second START is a restart: another core begins with the records. GOLDEN=write rewrites the files;
// then read the difference.

#include "actors/coordinator/coordinator.h"
#include "common/pace/evidence.h"
#include "common/pace/leases/leases_group.h"
#include "common/pace/rounds/rounds.h"
#include "common/run/dataset.h"
#include "common/wire/wire_table.h"
#include "tests/test.h"
#include <inttypes.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_MAX = 1 << 18,
    RECORDS_MAX = 256,
    EFFECTS_MAX = 256,
    BYTES_MAX = 1 << 20,
    LINE_MAX_BYTES = 1024
};

struct stored {
    uint16_t kind;
    uint32_t bytes;
    uint8_t *body;
};

struct talk {
    struct coordinator *core;
    struct rules rules;
    struct stored log[RECORDS_MAX];
    uint32_t log_count;
    struct outbox out;
    struct wire_arena arena;
    struct hash words[64]; // Hashes that the file has used as words, to print them as words again
    char texts[64][16];
    uint32_t words_count;
    uint64_t linking; // Number of the newest LINKING
    char *said;
    size_t said_bytes;
};

static const struct rules usual = {
    .run_id = "talk",
    .waiting_ms = 1000,
    .warmup_ms = 5000,
    .train_ms = 10000,
    .witness_ms = 2000,
    .cooldown_ms = 3000,
    .epoch_rounds = 3,
    .total_steps = 100,
    .min_clients = 2,
    .init_min_clients = 2,
    .batch_start = 4,
    .batch_end = 4,
    .seq_len = 16,
    .heartbeat_ms = 100000,
    .lease_ms = 60000,
    .unhealthy_rounds = 3,
    .snapshot_rounds = 2,
    .lr = { .kind = SCHEDULE_CONSTANT, .base_lr = 0.001 },
    .frame = { .seq_len = 16,
               .heartbeat_ms = 1,
               .lease_ms = 1,
               .snapshot_rounds = 2,
               .total_steps = 100,
               .data = { .kind = DATA_LOCAL, .token_bytes = 2 } },
};

// clang-format off
#define RULE(name) { #name, offsetof(struct rules, name), sizeof(((struct rules *)0)->name) }
#define RULE_OF_DRAW(type, name) \
    { #name, offsetof(struct rules, strategy) + offsetof(struct wire_rounds_config, name), sizeof(type) },
#define RULE_OF_LEASES(name) \
    { #name, offsetof(struct rules, strategy) + offsetof(struct wire_leases_config, name), \
      sizeof(((struct wire_leases_config *)0)->name) }
static const struct { const char *name; size_t offset, size;
} rule_names[] = {
    RULE(waiting_ms),  RULE(warmup_ms),        RULE(train_ms),         RULE(witness_ms),
    RULE(cooldown_ms), RULE(epoch_ms),         RULE(epoch_rounds),     RULE(total_steps),
    RULE(min_clients), RULE(init_min_clients), RULE(lease_ms),         RULE(heartbeat_ms),
    RULE(unhealthy_rounds), RULE(start_paused),     RULE(cold_start_steps),
    { "lr_warmup_steps", offsetof(struct rules, lr.warmup_steps), 4 },
    { "data_kind", offsetof(struct rules, frame.data.kind), 1 },
    DRAW_RULES(RULE_OF_DRAW)
    // Behind leases= in their line
    RULE_OF_LEASES(time_max_ms), RULE_OF_LEASES(strikes_max), RULE_OF_LEASES(settle_ms), RULE_OF_LEASES(save_steps),
    RULE_OF_LEASES(save_passes), RULE_OF_LEASES(batch_warmup_tokens),
    RULE_OF_LEASES(memory_every), RULE_OF_LEASES(buddies),
};
// clang-format on

static void say(struct talk *self, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct talk *self, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    self->said_bytes +=
        (size_t)vsnprintf(self->said + self->said_bytes, TEXT_MAX - self->said_bytes, format, args);
    va_end(args);
    assert_true(self->said_bytes < TEXT_MAX);
}

// ---- names --------------------------------------------------------------------------------------

// A word as a key or a digest: its letters, then zeros. So t1 comes before t2 in order of identity.
static struct hash hash_named(struct talk *self, const char *word)
{
    struct hash hash = { 0 };
    assert_true(strlen(word) > 0 && strlen(word) < 16);
    memcpy(hash.bytes, word, strlen(word));
    for (uint32_t i = 0; i < self->words_count; i++)
        if (hash_equal(&self->words[i], &hash)) return hash;
    assert_true(self->words_count < 64);
    snprintf(self->texts[self->words_count], 16, "%s", word);
    self->words[self->words_count++] = hash;
    return hash;
}

static struct key key_of(struct hash hash)
{
    struct key key;
    memcpy(key.bytes, hash.bytes, KEY_BYTES);
    return key;
}

static struct key key_named(struct talk *self, const char *word)
{
    return key_of(hash_named(self, word));
}

static uint8_t role_named(const char *word)
{
    switch (word[0]) {
    case 't': return ACTOR_TRAINER;
    case 's': return ACTOR_SERVER;
    case 'w': return ACTOR_WITNESS;
    case 'c': return ACTOR_CHECKPOINTER;
    case 'd': return ACTOR_PROVIDER;
    default: return ACTOR_OPERATOR;
    }
}

static void replace(char *text, const char *old, const char *new)
{
    for (char *at = text; (at = strstr(at, old)); at += strlen(new)) {
        memmove(at + strlen(new), at + strlen(old), strlen(at + strlen(old)) + 1);
        memcpy(at, new, strlen(new));
    }
}

// Replaces names of actors and digits of hashes by the words of the file, which are never longer.
static void to_words(const struct talk *self, char *text)
{
    for (uint32_t i = 0; i < self->words_count; i++) {
        char name[ACTOR_NAME_MAX + 1], hex[HASH_HEX];
        const struct key key = key_of(self->words[i]);
        actor_name(role_named(self->texts[i]), &key, name);
        replace(text, name, self->texts[i]);
        hash_to_hex(&self->words[i], hex);
        static const int lengths[] = { 2 * HASH_BYTES, 16, 8 }; // Digits in messages and notes
        for (int n = 0; n < 3; n++) {
            hex[lengths[n]] = 0;
            replace(text, hex, self->texts[i]);
        }
    }
    replace(text, " residual_from=none residual_to=none", ""); // The declared zero
}

static bool is_empty_value(const char *value, size_t length)
{
    static const char *const empty[] = { "", "0", "false", "\"\"", "none", "[]" };
    bool is = false;
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
        is |= length == strlen(empty[i]) && memcmp(value, empty[i], length) == 0;
    return is;
}

// {first={step=0 digest=none} ...}: each of its values is. One with a text in it never is.
static bool is_empty_record(const char *value, size_t length)
{
    if (length < 2 || value[0] != '{' || memchr(value, '"', length)) return false;
    for (const char *at = value, *end = value + length; at < end;) {
        const char *equals = memchr(at, '=', (size_t)(end - at));
        if (!equals) break;
        at = equals + 1;
        const size_t count = strcspn(at, " }");
        if (*at != '{' && !is_empty_value(at, count)) return false;
    }
    return true;
}

// Removes top-level fields that are zero, false or empty, and records that have only such fields.
static void drop_empty(char *text)
{
    char *to = text, *from = text;
    while (*from) {
        size_t count = 0;
        int depth = 0;
        bool quoted = false;
        for (; from[count] && (from[count] != ' ' || depth || quoted); count++) {
            if (from[count] == '"') quoted = !quoted;
            if (!quoted && strchr("[{", from[count])) depth++;
            if (!quoted && strchr("]}", from[count])) depth--;
        }
        char *value = memchr(from, '=', count);
        size_t length = value ? (size_t)(from + count - value - 1) : 1;
        const bool keep =
            !value || (!is_empty_value(value + 1, length) && !is_empty_record(value + 1, length));
        if (keep && to != text) *to++ = ' ';
        if (keep) memmove(to, from, count), to += count;
        from += count + (from[count] == ' ');
    }
    *to = 0;
}

// ---- messages to the core -----------------------------------------------------------------------

static void set_number(void *field, size_t size, uint64_t value)
{
    memcpy(field, &value, size); // Little-endian machines only, as the tests' are
}

static uint64_t enum_named(const struct wire_enum *of, const char *name)
{
    unsigned value = 0;
    while (value < of->count && strcmp(wire_enum_name(of, value), name) != 0) value++;
    if (value == of->count) fail_msg("no %s is named %s", of->name, name);
    return value;
}

// A field of a record within a record: lags.of_0=4.
static void set_field(struct talk *self, const struct wire_record *record, void *body,
                      const char *name, const char *value)
{
    const char *dot = strchr(name, '.');
    for (uint32_t i = 0; i < record->field_count; i++) {
        const struct wire_field *field = &record->fields()[i];
        uint8_t *at = (uint8_t *)body + field->offset;
        const size_t length = strlen(field->name);
        if (dot && field->type == WIRE_TYPE_SUB && length == (size_t)(dot - name) &&
            memcmp(field->name, name, length) == 0) {
            set_field(self, field->record, at, dot + 1, value);
            return;
        }
        if (strcmp(field->name, name) != 0) continue;
        switch (field->type) {
        case WIRE_TYPE_BOOL:
            if (strcmp(value, "1") != 0) fail_msg("%s=%s, and only 1 can be said", name, value);
            set_number(at, 1, 1);
            return;
        case WIRE_TYPE_U8: set_number(at, 1, strtoull(value, NULL, 10)); return;
        case WIRE_TYPE_U16: set_number(at, 2, strtoull(value, NULL, 10)); return;
        case WIRE_TYPE_U32: set_number(at, 4, strtoull(value, NULL, 10)); return;
        case WIRE_TYPE_U64: set_number(at, 8, strtoull(value, NULL, 10)); return;
        case WIRE_TYPE_F32: memcpy(at, &(float){ strtof(value, NULL) }, sizeof(float)); return;
        case WIRE_TYPE_STR: snprintf((char *)at, field->max + 1, "%s", value); return;
        case WIRE_TYPE_ENUM: set_number(at, 1, enum_named(field->names, value)); return;
        case WIRE_TYPE_BIN: {
            struct hash hash = hash_named(self, value);
            memcpy(at, hash.bytes, HASH_BYTES);
            return;
        }
        default: fail_msg("field %s cannot be said here", name);
        }
    }
    fail_msg("%s has no field %s", record->name, name);
}

struct vote_parts {
    struct wire_seen seen[16];
    uint8_t bloom[256];
};

// seen=0:a,1:b names results a and b of clients 0 and 1. On other parameters than g: seen=0:a@s1.
// With 7 bytes: seen=0:a/7. From residual q to r: seen=0:a<q>r.
static void set_seen(struct talk *self, struct wire_vote *vote, struct vote_parts *parts,
                     char *value)
{
    char *save;
    for (char *item = strtok_r(value, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        struct wire_seen *seen = &parts->seen[vote->seen_count++];
        char payload[16];
        *seen = (struct wire_seen){ .client = (uint32_t)strtoul(item, &item, 10),
                                    .payload_bytes = 100 };
        char *base = strchr(item, '@'), *bytes = strchr(item, '/'), *from = strchr(item, '<'),
             *to = strchr(item, '>');
        if (base) *base++ = 0;
        if (bytes) *bytes++ = 0;
        if (from) *from++ = 0;
        if (to) *to++ = 0;
        if (from) seen->residual_from = hash_named(self, from);
        if (to) seen->residual_to = hash_named(self, to);
        if (bytes) seen->payload_bytes = (uint32_t)strtoul(bytes, NULL, 10);
        snprintf(payload, sizeof payload, "%s.p", item + 1);
        seen->result = hash_named(self, item + 1);
        seen->payload = hash_named(self, payload);
        seen->base = hash_named(self, base ? base : "g");
    }
    vote->seen = parts->seen;
}

// who=t1,t2
static void set_who(struct talk *self, struct wire_vote *vote, struct vote_parts *parts,
                    char *value)
{
    uint64_t words[BLOOM_WORDS(16)] = { 0 };
    struct bloom bloom;
    char *save;
    bloom_init(&bloom, round_of(&self->core->run)->clients_count, 1, words);
    for (char *item = strtok_r(value, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        struct key key = key_named(self, item);
        struct hash member = hash_of(key.bytes, KEY_BYTES);
        bloom_add(&bloom, &member);
    }
    bloom_store(&bloom, parts->bloom);
    vote->participants =
        (struct wire_bytes){ parts->bloom,
                             (uint32_t)bloom_bytes(round_of(&self->core->run)->clients_count) };
}

// claim=t4:2:a
static void set_claim(struct talk *self, struct wire_claim_copy *claim_copy, char *value)
{
    static const uint8_t signature[WIRE_SIGNATURE_BYTES] = { 1 }; // The shell would check it
    static uint8_t frame[CLAIM_FRAME_MAX];
    struct wire_head head = { .kind = FRAME_CLAIM, .run = "talk" };
    char *round = strchr(value, ':'), *payload = round ? strchr(round + 1, ':') : NULL;
    assert_non_null(payload);
    *round++ = *payload++ = 0;
    const struct wire_claim claim = { .run = "talk",
                                      .author = key_named(self, value),
                                      .client = (uint32_t)strtoul(value + 1, NULL, 10) - 1,
                                      .round = strtoull(round, NULL, 10),
                                      .end = 1,
                                      .payload_bytes = 100,
                                      .payload = hash_named(self, payload) };
    head.sender = claim.author;
    size_t bytes = wire_pack(&head, &claim, frame, sizeof frame);
    bytes = wire_put_signature(frame, bytes, signature, sizeof frame);
    assert_true(bytes > 0);
    claim_copy->claim = (struct wire_bytes){ frame, (uint32_t)bytes };
}

// saved=1:4:w: of group 1, step 4, and with this digest, or with none.
static void set_saved(struct talk *self, struct wire_busy *busy, char *value)
{
    char *step = strchr(value, ':'), *digest = step ? strchr(step + 1, ':') : NULL;
    assert_non_null(digest);
    busy->saved = (struct wire_share_saved){ .number = strtoull(value, NULL, 10),
                                             .step = strtoull(step + 1, NULL, 10) };
    if (digest[1]) busy->saved.digest = hash_named(self, digest + 1);
}

// copied=1:4:l: of group 1, step 4, and with this list, or with none. kept=1:4:w: with this digest.
static void set_copied(struct talk *self, struct wire_busy *busy, char *value)
{
    const struct wire_share_saved saved = busy->saved;
    set_saved(self, busy, value);
    busy->copied = (struct wire_share_copied){ busy->saved.number,
                                               busy->saved.step,
                                               { busy->saved.digest, 32 } };
    busy->saved = saved;
}

static void set_kept(struct talk *self, struct wire_busy *busy, char *value)
{
    const struct wire_share_saved saved = busy->saved;
    set_saved(self, busy, value);
    busy->kept = busy->saved;
    busy->saved = saved;
}

static void fill(struct talk *self, uint16_t kind, const char *from, char *fields, void *body,
                 struct vote_parts *parts)
{
    const struct wire_record *record = wire_table_frame(kind)->record;
    if (kind == FRAME_JOIN) {
        struct wire_join *join = body;
        struct key key = key_named(self, from);
        *join = (struct wire_join){ .role = role_named(from), .instance = 1 };
        actor_name(join->role, &key, join->name);
    }
    if (kind == FRAME_PING || kind == FRAME_LEAVE || kind == FRAME_STANDS || kind == FRAME_BUSY ||
        kind == FRAME_GET_TASK || kind == FRAME_TASK_END || kind == FRAME_SETTLED)
        set_field(self, record, body, "instance", "1");
    if (kind == FRAME_STANDS) { // All links of the newest list stand, unless the line says else
        struct wire_stands *stands = body;
        stands->linking = self->linking;
        stands->linked = UINT64_MAX;
    }
    char *save;
    for (char *field = strtok_r(fields, " ", &save); field; field = strtok_r(NULL, " ", &save)) {
        char *value = strchr(field, '=');
        assert_non_null(value);
        *value++ = 0;
        if (strcmp(field, "seen") == 0) set_seen(self, body, parts, value);
        else if (strcmp(field, "who") == 0) set_who(self, body, parts, value);
        else if (strcmp(field, "claim") == 0) set_claim(self, body, value);
        else if (kind == FRAME_BUSY && strcmp(field, "saved") == 0) set_saved(self, body, value);
        else if (kind == FRAME_BUSY && strcmp(field, "copied") == 0) set_copied(self, body, value);
        else if (kind == FRAME_BUSY && strcmp(field, "kept") == 0) set_kept(self, body, value);
        else set_field(self, record, body, field, value);
    }
}

// ---- effects of the core ------------------------------------------------------------------------

static const void *unpack(struct talk *self, uint16_t kind, const uint8_t *body, uint32_t bytes)
{
    struct wire_refusal refusal;
    const void *unpacked;
    self->arena.used = 0;
    assert_true(wire_unpack_body(body, bytes, kind, &self->arena, &unpacked, &refusal));
    return unpacked;
}

static void tell(struct talk *self, const struct effect *effect)
{
    char line[LINE_MAX_BYTES], to[64] = "";
    const void *body = unpack(self, effect->kind, effect->body, effect->bytes);
    if (effect->port == PORT_CLOCK || effect->kind == FRAME_BEAT) return;
    if (effect->kind == FRAME_LINKING) self->linking = ((const struct wire_linking *)body)->number;
    if (effect->port == PORT_DISK && effect->kind != FRAME_SEND_COMMITS) {
        assert_true(self->log_count < RECORDS_MAX);
        struct stored *stored = &self->log[self->log_count++];
        *stored = (struct stored){ effect->kind, effect->bytes, malloc(effect->bytes) };
        memcpy(stored->body, effect->body, effect->bytes);
    }
    wire_print(effect->kind, body, line, sizeof line);
    if (effect->port == PORT_LOG)
        snprintf(line, sizeof line, "%s", ((const struct wire_note *)body)->text);
    else drop_empty(line);
    snprintf(to, sizeof to, "%s",
             effect->port == PORT_MAIL   ? effect->to
             : effect->port == PORT_NEWS ? "news"
             : effect->port == PORT_DISK ? "disk"
                                         : "note");
    to_words(self, to);
    to_words(self, line);
    say(self, "    %-5s %s\n", to, line);
}

static void begin(struct talk *self)
{
    free(self->core); // Of fresh memory only what is used costs anything
    self->core = calloc(1, sizeof *self->core);
    assert_non_null(self->core);
    coordinator_init(self->core, &self->rules);
    for (uint32_t i = 0; i < self->log_count; i++)
        run_apply(&self->core->run, self->log[i].kind,
                  unpack(self, self->log[i].kind, self->log[i].body, self->log[i].bytes));
}

// "@ 1000 t1 > JOIN field=value .."
static void hear(struct talk *self, char *line)
{
    char from[16], kind_name[32], name[ACTOR_NAME_MAX + 1] = "";
    uint64_t at_ms;
    int used = 0;
    static union {
        struct wire_join join;
        struct wire_checkpoint checkpoint;
        struct wire_vote vote;
        uint8_t bytes[4096];
    } body;
    static struct vote_parts parts;
    assert_int_equal(sscanf(line, "@ %" PRIu64 " %15s > %31s %n", &at_ms, from, kind_name, &used),
                     3);
    uint16_t kind = wire_kind_from_name(kind_name);
    char *seq =
        strstr(line + used, " seq="); // The sender's number of this letter, last in the line
    if (seq) *seq = 0;
    assert_true(kind && wire_table_frame(kind)->record->size <= sizeof body);
    memset(&body, 0, sizeof body);
    fill(self, kind, from, line + used, &body, &parts);
    bool local = strcmp(from, "clock") == 0 || strcmp(from, "disk") == 0;
    struct msg in = {
        .now_ms = at_ms, .kind = kind, .run = local ? "" : "talk", .from = name, .body = &body
    };
    if (seq) in.seq = strtoull(seq + 5, NULL, 10);
    if (!local) {
        in.sender = key_named(self, from);
        actor_name(role_named(from), &in.sender, name);
    }
    if (kind == FRAME_START) begin(self);
    outbox_clear(&self->out);
    coordinator_step(self->core, &in, &self->out);
    for (uint32_t i = 0; i < self->out.count; i++) tell(self, &self->out.effects[i]);
}

// MANIFEST:POSITIONS:SAMPLES
static void set_pin(struct talk *self, char *value)
{
    char *positions = strchr(value, ':'), *samples = positions ? strchr(positions + 1, ':') : NULL;
    assert_non_null(samples);
    *positions++ = *samples++ = 0;
    const struct hash data = hash_named(self, value), places = hash_named(self, positions),
                      order = dataset_order(&places, strtoull(samples, NULL, 10));
    self->rules.dataset_digest = dataset_digest(&data, &order);
}

// MILLISECONDS, or with parameter servers MILLISECONDS:SERVERS
static void set_windows(struct talk *self, const char *window_ms, uint8_t parts)
{
    const char *servers = strchr(window_ms, ':');
    const struct wire_windows_config strategy = { .lanes = 8,
                                                  .window_ms =
                                                      (uint32_t)strtoul(window_ms, NULL, 10),
                                                  .step_timeout_ms = 5000,
                                                  .connections = 1,
                                                  .parts = parts,
                                                  .keep = 3,
                                                  .servers =
                                                      servers ? (uint32_t)atoi(servers + 1) : 0,
                                                  .buddies = 1,
                                                  .batch_start = self->rules.batch_start,
                                                  .batch_end = self->rules.batch_end };
    rules_set_strategy(&self->rules, FRAME_WINDOWS_CONFIG, &strategy, sizeof strategy);
}

// SAMPLES:SERVERS
static void set_leases(struct talk *self, const char *task_samples)
{
    const char *servers = strchr(task_samples, ':');
    const struct wire_leases_config strategy = { .servers = (uint32_t)atoi(servers + 1),
                                                 .push_every = 1,
                                                 .pull_every = 1,
                                                 .staleness = 1.5,
                                                 .keep = 3,
                                                 .task_samples = strtoull(task_samples, NULL, 10),
                                                 .strikes_max = 3,
                                                 .time_min_ms = 2000,
                                                 .time_max_ms = 20000,
                                                 .pass_barrier = true,
                                                 .settle_ms = 4000,
                                                 .connections = 1,
                                                 .batch_start = self->rules.batch_start,
                                                 .batch_end = self->rules.batch_end };
    rules_set_strategy(&self->rules, FRAME_LEASES_CONFIG, &strategy, sizeof strategy);
}

static void set_rule(struct talk *self, char *line)
{
    char *save;
    for (char *item = strtok_r(line + 4, " ", &save); item; item = strtok_r(NULL, " ", &save)) {
        char *value = strchr(item, '=');
        bool found = false;
        assert_non_null(value);
        *value++ = 0;
        if (strcmp(item, "pin") == 0) {
            set_pin(self, value);
            continue;
        }
        if (strcmp(item, "windows") == 0) {
            set_windows(self, value, PARTS_NONE);
            continue;
        }
        if (strcmp(item, "windows_keep") == 0) { // Behind windows= in its line
            ((struct wire_windows_config *)(void *)self->rules.strategy)->keep =
                (uint32_t)strtoul(value, NULL, 10);
            continue;
        }
        if (strcmp(item, "leases") == 0) {
            set_leases(self, value);
            continue;
        }
        if (strcmp(item, "leases_dir") == 0) { // Behind leases= in its line
            struct wire_leases_config *part = (void *)self->rules.strategy;
            snprintf(part->shared_dir, sizeof part->shared_dir, "%s", value);
            continue;
        }
        if (strcmp(item, "shares") == 0) {
            set_windows(self, value, PARTS_MOMENTS);
            continue;
        }
        for (size_t i = 0; i < sizeof rule_names / sizeof *rule_names; i++)
            if (strcmp(rule_names[i].name, item) == 0) {
                set_number((uint8_t *)&self->rules + rule_names[i].offset, rule_names[i].size,
                           strtoull(value, NULL, 10));
                found = true;
            }
        if (!found) fail_msg("no rule is called %s", item);
    }
}

// ---- files --------------------------------------------------------------------------------------

static void converse(struct talk *self, const char *text)
{
    char line[LINE_MAX_BYTES];
    for (const char *end; *text; text = end + 1) {
        end = strchr(text, '\n');
        assert_non_null(end);
        snprintf(line, sizeof line, "%.*s", (int)(end - text), text);
        if (line[0] == ' ') continue; // An expected effect: the test prints its own
        say(self, "%s\n", line);
        if (line[0] == '@') hear(self, line);
        else if (strncmp(line, "set ", 4) == 0) set_rule(self, line);
    }
}

// What the core has recorded follows from its rules.
static void verify(struct talk *self)
{
    struct evidence *evidence = calloc(1, sizeof *evidence);
    assert_non_null(evidence);
    evidence_init(evidence, &self->rules, NULL);
    for (uint32_t i = 0; i < self->log_count; i++)
        if (!evidence_hear(evidence, i + 1, self->log[i].kind,
                           unpack(self, self->log[i].kind, self->log[i].body, self->log[i].bytes)))
            fail_msg("%s", evidence->text);
    assert_int_equal(evidence->step, self->core->run.step);
    free(evidence);
}

static void compare(const char *path, const char *expected, const char *said)
{
    int line = 1;
    while (*expected && *expected == *said) {
        line += *expected == '\n';
        expected++, said++;
    }
    if (!*expected && !*said) return;
    while (line > 1 && expected[-1] != '\n') expected--, said--;
    fail_msg("%s:%d\n  expected: %.*s\n  said:     %.*s", path, line, (int)strcspn(expected, "\n"),
             expected, (int)strcspn(said, "\n"), said);
}

static void free_talk(struct talk *self)
{
    for (uint32_t i = 0; i < self->log_count; i++) free(self->log[i].body);
    free(self->core), free(self->out.effects), free(self->out.bytes), free(self->arena.bytes),
        free(self->said);
    free(self);
}

static void conversation(void **state)
{
    const char *path = *state;
    char *text = calloc(1, TEXT_MAX);
    FILE *file = fopen(path, "r");
    assert_true(file && text && fread(text, 1, TEXT_MAX - 1, file) > 0);
    fclose(file);
    struct talk *self = calloc(1, sizeof *self);
    self->core = calloc(1, sizeof *self->core);
    const struct wire_rounds_config strategy = { .payload_bytes = 100, .least_train_ms = 2000 };
    self->rules = usual;
    rules_set_strategy(&self->rules, FRAME_ROUNDS_CONFIG, &strategy, sizeof strategy);
    self->rules.config = hash_named(self, "config");
    self->rules.owner = key_named(self, "owner");
    self->said = malloc(TEXT_MAX);
    self->out = (struct outbox){ .effects = calloc(EFFECTS_MAX, sizeof(struct effect)),
                                 .count_max = EFFECTS_MAX,
                                 .bytes = malloc(BYTES_MAX),
                                 .bytes_max = BYTES_MAX };
    self->arena = (struct wire_arena){ .bytes = malloc(BYTES_MAX), .max = BYTES_MAX };
    converse(self, text);
    if (getenv("GOLDEN")) {
        file = fopen(path, "w");
        assert_true(file && fwrite(self->said, 1, self->said_bytes, file) == self->said_bytes);
        fclose(file);
    } else compare(path, text, self->said);
    if (self->rules.frame.strategy.kind == FRAME_LEASES_CONFIG) verify(self);
    free_talk(self);
    free(text);
}

int main(void)
{
    glob_t files;
    if (glob("tests/golden/coordinator/*.txt", 0, NULL, &files) != 0) return 1;
    struct CMUnitTest *tests = calloc(files.gl_pathc, sizeof *tests);
    for (size_t i = 0; i < files.gl_pathc; i++)
        tests[i] = (struct CMUnitTest){ .name = strrchr(files.gl_pathv[i], '/') + 1,
                                        .test_func = conversation,
                                        .initial_state = files.gl_pathv[i] };
    int failed = _cmocka_run_group_tests("golden conversations", tests, files.gl_pathc, NULL, NULL);
    free(tests);
    globfree(&files);
    return failed;
}
