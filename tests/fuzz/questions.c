// Questions of peers to a server of blobs, leaves and samples: bulk_answers.c from inside, without its
// sockets. Questions are events (events.h). Every answer must hold exactly the bytes that were asked for,
// or say why not.

#include "common/bulk/bulk_server_inside.h"

static size_t fuzz_answer(struct bulk_line *line, const char *run, uint16_t kind, const void *body,
                          const void *raw, size_t raw_count);
#define bulk_line_put    fuzz_answer
#define bulk_is_question fuzz_is_question // The product's own are linked, too
#define bulk_answer      fuzz_bulk_answer
#define bulk_purse_of    fuzz_bulk_purse_of
#define bulk_may_have    fuzz_bulk_may_have
bool fuzz_is_question(const struct bulk_server *self, const struct bulk_mail *mail);
size_t fuzz_bulk_answer(struct bulk_server *self, struct seat *seat);
enum bulk_purse fuzz_bulk_purse_of(const struct bulk_server *self, const struct bulk_mail *mail);
bool fuzz_bulk_may_have(const struct bulk_server *self, struct seat *seat, uint64_t now_ms);
#include "common/bulk/bulk_answers.c"
#undef bulk_line_put
#undef bulk_is_question
#undef bulk_answer
#undef bulk_purse_of
#undef bulk_may_have

#include "common/base/ensure.h"
#include "common/crypto/merkle.h"
#include "tests/fuzz/events.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/network.h"

enum {
    EVENTS_PER_INPUT = 60,
    LARGE = BULK_CHUNK_MAX + 1000,
    SMALL = 9,
    FLOATS = DIGEST_LEAF_FLOATS + 7,
    SAMPLE_BYTES = 100,
    DESCRIPTION = 33
};

static uint8_t large[LARGE], small[SMALL] = "somewhat", description[DESCRIPTION];
static float params[FLOATS];
static struct hash large_hash, small_hash, leaves[2], digest;

// The question in hand, who asks, and how often it was answered.
static struct {
    struct seat seat;
    struct asker asker;
    uint32_t answers, chunks;
} now;

static bool is_inside(const uint8_t *whole, size_t whole_count, uint64_t offset, const void *bytes,
                      size_t count)
{
    return offset <= whole_count && count <= whole_count - offset &&
           (count == 0 || memcmp(whole + offset, bytes, count) == 0);
}

static void check_chunk(const struct wire_want *want, const struct wire_chunk *chunk,
                        const void *raw, size_t count)
{
    const bool is_large = hash_equal(&want->hash, &large_hash);
    const bool is_small = hash_equal(&want->hash, &small_hash);
    ensure(chunk->request == want->request && hash_equal(&chunk->hash, &want->hash));
    ensure(chunk->offset == want->offset && count > 0 && count <= want->count);
    if (is_large || is_small) {
        ensure(chunk->total == (is_large ? LARGE : SMALL));
        ensure(is_inside(is_large ? large : small, is_large ? LARGE : SMALL, want->offset, raw,
                         count));
    } else { // A leaf of what is pinned
        const size_t leaf = hash_equal(&want->hash, &leaves[1]);
        ensure(leaf || hash_equal(&want->hash, &leaves[0]));
        ensure(is_inside((const uint8_t *)params, sizeof params,
                         leaf * DIGEST_LEAF_FLOATS * sizeof(float) + want->offset, raw, count));
    }
    now.chunks++;
}

static void check_answer(const struct bulk_mail *to, uint16_t kind, const void *body,
                         const void *raw, size_t count)
{
    const void *asked = to->body;
    const uint16_t question = to->head.kind;
    if (kind == FRAME_CHUNK) {
        ensure(question == FRAME_WANT && raw);
        check_chunk(asked, body, raw, count);
    } else if (kind == FRAME_LEAVES) {
        ensure(question == FRAME_WANT_LEAVES && raw);
        ensure(hash_equal(&((const struct wire_want_leaves *)asked)->digest, &digest));
        ensure(count == sizeof leaves && memcmp(raw, leaves, sizeof leaves) == 0);
        ensure(((const struct wire_leaves *)body)->floats == FLOATS);
    } else if (kind == FRAME_SAMPLES) {
        const struct wire_want_samples *want = asked;
        ensure(question == FRAME_WANT_SAMPLES && raw);
        ensure(count == want->count % 7 * SAMPLE_BYTES);
        ensure(((const struct wire_samples *)body)->position == want->position);
    } else if (kind == FRAME_DATASET) {
        ensure(question == FRAME_WANT_DATASET && raw);
        ensure(is_inside(description, DESCRIPTION, 0, raw, count));
    } else {
        ensure(!raw && (kind == FRAME_LACKING || kind == FRAME_NO_SAMPLES));
    }
}

static size_t fuzz_answer(struct bulk_line *line, const char *run, uint16_t kind, const void *body,
                          const void *raw, size_t raw_count)
{
    struct wire_refusal refusal;
    ensure(line == &now.seat.line && strcmp(run, "fuzz") == 0);
    ensure(wire_valid(kind, body, &refusal) && ++now.answers == 1);
    check_answer(&now.seat.mail, kind, body, raw, raw_count);
    return 1;
}

// A provider that cannot give everything, and says so in its own words.
static int give_samples(void *arg, uint64_t position, uint32_t count, uint8_t **ret_bytes,
                        size_t *ret_count, struct why *why)
{
    (void)arg;
    if (position % 5 == 4)
        return why_set(why, FAULT_CORRUPT, "position %" PRIu64 "\n is bad", position);
    if (position % 5 == 3) return FAULT_IO;
    *ret_count = count % 7 * SAMPLE_BYTES;
    ensure((*ret_bytes = calloc(1, *ret_count + 1)));
    return 0;
}

static blob_store_t *make_store(void)
{
    blob_store_t *store;
    struct hash hash;
    ensure(blob_store_new(NULL, NULL, &store) == 0);
    for (size_t i = 0; i < sizeof large; i++) large[i] = (uint8_t)(i >> 8 | 1);
    for (size_t i = 0; i < FLOATS; i++) params[i] = (float)i;
    ensure(blob_store_put(store, large, sizeof large, NULL, &large_hash) == 0);
    ensure(blob_store_put(store, small, sizeof small, NULL, &small_hash) == 0);
    ensure(blob_store_put(store, "", 0, NULL, &hash) == 0);
    digest_fill_leaves(params, FLOATS, 0, 2, leaves);
    digest = merkle_root(leaves, 2);
    const struct blob_snapshot state = { 3, digest, state_cut_of_floats(FLOATS) };
    ensure(blob_store_pin(store, &state, (const void *[]){ params }, leaves, NULL) == 0);
    return store;
}

static void ask(struct bulk_server *self, const struct event *event, struct event_memory *memory,
                struct wire_arena *arena)
{
    const struct wire_frame *frame = wire_table_frame(event->what);
    if (!frame || !(wire_kind_flags(event->what) & WIRE_BULK)) return;
    struct bulk_mail *mail = &now.seat.mail;
    mail->head = (struct wire_head){ .kind = event->what };
    snprintf(mail->head.run, sizeof mail->head.run, "%s", event->other_run ? "other" : "fuzz");
    mail->body = event_body(event, memory, NULL, arena);
    mail->raw = event->bearer % 4 == 3 ? small : NULL;
    now.answers = 0;
    if (!fuzz_is_question(self, mail)) return;
    now.asker = (struct asker){ 0 }; // Its purses are full: what is tested is the answer
    now.seat.asker = &now.asker;
    now.seat.purse = fuzz_bulk_purse_of(self, mail);
    (void)fuzz_bulk_may_have(self, &now.seat, 1000);
    ensure(fuzz_bulk_answer(self, &now.seat) > 0 && now.answers == 1);
}

bool questions_fuzz_check(const uint8_t *bytes, size_t count)
{
    static char run[] = "fuzz";
    static struct bulk_server server = { .run = run };
    static struct event_memory memory;
    static uint8_t room[1 << 16];
    struct wire_arena arena = { room, 0, sizeof room };
    const uint8_t *at = bytes;
    struct event event;
    static blob_store_t *store;
    if (!store) store = make_store();
    server.options = (struct bulk_server_options){ .store = store,
                                                   .answer = give_samples,
                                                   .description = description,
                                                   .description_bytes = sizeof description,
                                                   .seq_len = 1000 };
    memset(&memory, 0, sizeof memory);
    const struct hash known[] = { leaves[1], leaves[0], small_hash, large_hash };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        event_memory_keep(&memory, FRAME_WANT, &(struct wire_want){ .hash = known[i], .count = 1 });
    event_memory_keep(&memory, FRAME_WANT_LEAVES, &(struct wire_want_leaves){ .digest = digest });
    now.chunks = 0;
    for (int n = 0; n < EVENTS_PER_INPUT && event_next(&at, bytes + count, &event); n++)
        ask(&server, &event, &memory, &arena);
    return now.chunks > 0;
}

void questions_fuzz_write_seeds(const char *folder)
{
    static const uint8_t seed[] = { FRAME_WANT,
                                    0,
                                    0,
                                    0,
                                    FRAME_WANT,
                                    0,
                                    0,
                                    4,
                                    0,
                                    0,
                                    0,
                                    0x99,
                                    FRAME_WANT,
                                    0,
                                    0,
                                    2,
                                    0,
                                    1,
                                    FRAME_WANT,
                                    0,
                                    0,
                                    2,
                                    0,
                                    3,
                                    FRAME_WANT_LEAVES,
                                    0,
                                    0,
                                    0,
                                    FRAME_WANT_SAMPLES,
                                    0,
                                    0,
                                    3,
                                    0,
                                    0,
                                    0x3a,
                                    FRAME_WANT_SAMPLES,
                                    0,
                                    0,
                                    2,
                                    0,
                                    0x4a,
                                    FRAME_WANT_DATASET,
                                    0,
                                    0,
                                    0,
                                    FRAME_CHUNK,
                                    0,
                                    0,
                                    0,
                                    FRAME_WANT,
                                    0,
                                    0x20,
                                    0,
                                    FRAME_WANT,
                                    0,
                                    0x10,
                                    0 };
    fuzz_write_seed(folder, "accepted-all", seed, sizeof seed);
}
