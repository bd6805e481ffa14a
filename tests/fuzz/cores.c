// cores -- each actor's core, driven by a conversation (events.h) that any senders could hold with
// it: members, strangers, liars, a coordinator that contradicts itself; and by its own process.
//
// A core dies of nothing that comes from outside: every ensure that is reached is a finding. After
// each step its effects are held against what may be said at all; at the end of a life, the
// coordinator's records against its state, and a member's promises against its journal.

#include "actors/coordinator/coordinator.h"
#include "common/base/ensure.h"
#include "common/pace/rounds/claims.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/talk.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

// Of one step: far less than a shell's outbox takes.
enum {
    EFFECTS_MAX = 2048,
    OUTBOX_BYTES = 16 << 20,
    WAKES_MAX = 24,
    EVENTS_PER_INPUT = 400,
    FRAME_BYTES = 65536
};

_Static_assert((int)EVENT_REBORN < (int)CORE_KINDS, "core_counts counts every kind of event");

// ---- lives --------------------------------------------------------------------------------------

struct core_counts *core_counted(const char *name)
{
    static struct core_counts counts[8];
    size_t i = 0;
    while (counts[i].name && strcmp(counts[i].name, name) != 0) i++;
    ensure(i + 1 < sizeof counts / sizeof *counts);
    counts[i].name = name;
    return &counts[i];
}

// By the note's first word, which stays the same.
static void count_note(struct core_counts *counts, const struct wire_note *note)
{
    const size_t bytes = strcspn(note->text, " ");
    uint32_t i = 0;
    while (i < counts->notes &&
           (strncmp(counts->noted[i], note->text, bytes) != 0 || counts->noted[i][bytes] != 0))
        i++;
    if (i < counts->notes || i == CORE_NOTES || bytes >= sizeof counts->noted[i]) return;
    memcpy(counts->noted[i], note->text, bytes);
    counts->notes++;
}

static void *take_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ensure(memory != MAP_FAILED);
    return memory;
}

const void *talk_unpack(struct wire_arena *arena, uint16_t kind, const uint8_t *body, size_t bytes)
{
    struct wire_refusal refusal;
    const void *ret = NULL;
    arena->used = 0;
    ensure(wire_unpack_body(body, bytes, kind, arena, &ret, &refusal));
    return ret;
}

void talk_hear_local(struct talk *talk, uint16_t kind, const void *body)
{
    const struct msg in = {
        .now_ms = talk->now_ms, .kind = kind, .run = "", .from = "", .body = body
    };
    talk_hear(talk, &in);
}

// The state that the last life leaves, as a snapshot that was just written.
static size_t pack_snapshot(struct talk *talk, uint8_t *bytes, size_t max)
{
    struct coordinator *core = talk->state;
    _Alignas(max_align_t) uint8_t part[RUN_PART_BYTES];
    const struct wire_snapshot snapshot = run_to_snapshot(&core->run, part);
    const size_t count = wire_pack_body(FRAME_SNAPSHOT, &snapshot, bytes, max);
    ensure(count > 0);
    return count;
}

static void begin_life(struct talk *talk, bool by_snapshot)
{
    static uint8_t snapshot[RECORDS_BYTES], again[RECORDS_BYTES];
    const size_t bytes = by_snapshot && talk_is_coordinator(talk)
                             ? pack_snapshot(talk, snapshot, sizeof snapshot)
                             : 0;
    const struct event_person *person = &event_people()[talk->core->person];
    ensure(madvise(talk->state, talk->core->state_bytes, MADV_DONTNEED) == 0);
    talk->core->init(talk);
    talk->life++;
    talk->alarm_ms = UINT64_MAX;
    talk->quits = false;
    talk_forget_jobs(talk);
    talk->residual = talk->candidate = talk->candidate_payload = (struct hash){ { 0 } };
    struct run *run = &((struct coordinator *)talk->state)->run;
    if (bytes) {
        run_from_snapshot(run, talk_unpack(&talk->scratch, FRAME_SNAPSHOT, snapshot, bytes));
        ensure(pack_snapshot(talk, again, sizeof again) == bytes);
        ensure(memcmp(snapshot, again, bytes) == 0); // It comes back as it went
    } else if (talk_is_coordinator(talk)) talk_replay(talk, run);
    if (!talk_is_coordinator(talk)) {
        struct member *member = talk->state;
        member->key = person->key;
        memcpy(member->name, person->name, sizeof member->name);
        memcpy(member->run, "fuzz", 5);
        memcpy(member->endpoint, "tcp://127.0.0.1:4", 18);
        if (talk->has_journal) talk_hear_local(talk, FRAME_JOURNAL, &talk->journal);
        if (talk_is_checkpointer(talk)) talk_hear_local(talk, FRAME_RESUME, &talk->resume);
        if (talk->stored_count)
            talk_hear_local(talk, FRAME_INHERITED,
                            &(struct wire_inherited){ talk->stored, talk->stored_count });
    }
    talk_hear_local(talk, FRAME_START,
                    &(struct wire_start){
                        .incarnation = talk_is_coordinator(talk) ? talk->life : person->instance,
                        .instance = person->instance,
                        .unix_ms = 1800000000000u + talk->now_ms });
}

// ---- effects ------------------------------------------------------------------------------------

// One claim and one vote for a round, whatever happens, and both journalled before they are said.
// A promise to another run of the same name does not count.
static void check_promise(struct talk *talk, const struct effect *effect, const void *body)
{
    if (talk_is_coordinator(talk)) return;
    if (talk->journal.born_unix_ms != talk->born_unix_ms) {
        talk->born_unix_ms = talk->journal.born_unix_ms;
        talk->claimed_round = talk->voted_round = 0;
    }
    if (effect->kind == FRAME_CLAIM) {
        const struct wire_claim *claim = body;
        const struct hash name = claim_hash(claim);
        ensure(talk->has_journal && talk->journal.first.number == claim->round);
        ensure(hash_equal(&talk->journal.first.what, &name));
        ensure(talk->claimed_round != claim->round || hash_equal(&talk->claimed, &name));
        talk->claimed_round = claim->round;
        talk->claimed = name;
    } else if (effect->kind == FRAME_VOTE) {
        const struct wire_vote *vote = body;
        const struct hash said = hash_of(effect->body, effect->bytes);
        ensure(talk->has_journal && talk->journal.second.number == vote->round);
        ensure(talk->voted_round != vote->round || hash_equal(&talk->voted, &said));
        talk->voted_round = vote->round;
        talk->voted = said;
    }
}

static void perform(struct talk *talk, const struct effect *effect)
{
    const unsigned flags = wire_kind_flags(effect->kind);
    const void *body = talk_unpack(&talk->scratch, effect->kind, effect->body, effect->bytes);
    event_memory_keep(&talk->memory, effect->kind, body);
    talk->counts->said[effect->port][effect->kind]++;
    if (!talk_is_coordinator(talk)) honest_note_said(&talk->honest, effect->kind, body);
    switch (effect->port) {
    case PORT_MAIL:
        ensure(flags & WIRE_MAIL);
        check_promise(talk, effect, body);
        break;
    case PORT_NEWS:
        ensure(flags & WIRE_NEWS);
        check_promise(talk, effect, body);
        break;
    case PORT_DISK: talk_store(talk, effect); break;
    case PORT_CLOCK: {
        const struct wire_wake *wake = body;
        if (wake->at_ms < talk->alarm_ms) talk->alarm_ms = wake->at_ms;
        break;
    }
    case PORT_LOG: count_note(talk->counts, body); break;
    case PORT_LEARNER:
    case PORT_FETCHER:
        ensure(flags & WIRE_LOCAL || effect->kind == FRAME_CONFIG);
        talk_keep_job(talk, effect);
        break;
    case PORT_SHELL: talk->quits = true; break;
    default: ensure_failed("a port that this core has", __FILE__, __LINE__);
    }
}

static void print(const struct talk *talk, const char *way, uint16_t kind, const void *body)
{
    char line[512];
    wire_print(kind, body, line, sizeof line);
    printf("%8" PRIu64 "  %-24.24s %s\n", talk->now_ms, way, line);
}

void talk_hear(struct talk *talk, const struct msg *in)
{
    static const char *const ways[PORT_COUNT] = { "> mail", "> news",    "> disk",    "> clock",
                                                  "> log",  "> learner", "> fetcher", "> shell" };
    const bool verbose = fuzz_is_verbose();
    if (verbose) print(talk, in->from[0] ? in->from : "local or news", in->kind, in->body);
    outbox_clear(&talk->out);
    talk->counts->heard[in->kind]++;
    talk->core->step(talk->state, in, &talk->out);
    for (uint32_t i = 0; i < talk->out.count; i++) {
        const struct effect *effect = &talk->out.effects[i];
        if (verbose && effect->port != PORT_CLOCK)
            print(talk, ways[effect->port], effect->kind,
                  talk_unpack(&talk->scratch, effect->kind, effect->body, effect->bytes));
        perform(talk, effect);
    }
}

// The clock rings as often as it was asked to, until the event.
static void pass_time(struct talk *talk, uint64_t until_ms)
{
    for (int n = 0; n < WAKES_MAX && talk->alarm_ms <= until_ms && !talk->quits; n++) {
        if (talk->alarm_ms > talk->now_ms) talk->now_ms = talk->alarm_ms;
        talk->alarm_ms = UINT64_MAX;
        talk_hear_local(talk, FRAME_WAKE, &(struct wire_wake){ talk->now_ms });
    }
    talk->now_ms = until_ms;
}

// ---- what others say ----------------------------------------------------------------------------

static const void *honest_body(const struct talk *talk, const struct event *event)
{
    return talk_is_coordinator(talk)
               ? honest_to_coordinator(talk->state, event->what, event->signer)
               : honest_to_member(&talk->honest, talk->state, talk_view(talk), event->what,
                                  event->signer);
}

// As it was signed. That the signature is its sender's is the shell's to see.
static uint32_t pack_frame(const struct msg *in, uint8_t *frame, size_t max)
{
    static const uint8_t signature[WIRE_SIGNATURE_BYTES];
    struct wire_head head = { .kind = in->kind, .incarnation = in->incarnation, .seq = in->seq };
    snprintf(head.run, sizeof head.run, "%s", in->run);
    head.sender = in->sender;
    const size_t count = wire_pack(&head, in->body, frame, max);
    return count ? (uint32_t)wire_put_signature(frame, count, signature, max) : 0;
}

// As post_take would return it: a signature is its sender's; mail has the name of the actor that
// brought it, and news have none.
static void hear_others(struct talk *talk, const struct event *event)
{
    static uint8_t frame[FRAME_BYTES];
    const struct event_person *people = event_people();
    const unsigned flags = wire_kind_flags(event->what);
    const bool by_mail = flags & WIRE_MAIL && (!(flags & WIRE_NEWS) || event->bearer % 2 == 0);
    struct msg in = { .now_ms = talk->now_ms,
                      .kind = event->what,
                      .from = "",
                      .run = event->other_run ? "other" : "fuzz" };
    if (!(flags & (WIRE_MAIL | WIRE_NEWS))) return;
    if (event->what == FRAME_WELCOME || event->what == FRAME_UNDELIVERABLE) {
        if (event->what == FRAME_UNDELIVERABLE) return; // The shell's
        in.from = "broker";
    } else if (by_mail) in.from = people[event->bearer].name;
    if (flags & WIRE_SIGNED) in.sender = people[event->signer].key;
    in.incarnation = event->signer == 0 ? 2 + talk->reborn : people[event->signer].instance;
    in.incarnation -= event->late;
    in.seq = talk->now_ms;
    in.body = event_body(event, &talk->memory, honest_body(talk, event), &talk->arena);
    event_memory_keep(&talk->memory, event->what, in.body);
    if (flags & WIRE_SIGNED) in.frame_bytes = pack_frame(&in, frame, sizeof frame);
    if (in.frame_bytes) in.frame = frame;
    if (!talk_is_coordinator(talk) && event->signer == 0)
        honest_note_heard(&talk->honest, talk->state, talk_view(talk), event->what, in.body);
    talk_hear(talk, &in);
}

static void take_event(struct talk *talk, const struct event *event)
{
    pass_time(talk, talk->now_ms + event->after_ms);
    if (talk->quits || event->what == EVENT_RESTART)
        begin_life(talk, event->choices_count > 0 && event->choices[0]);
    else if (event->what == EVENT_REBORN) talk->reborn++;
    else if (event->what == EVENT_ANSWER) talk_answer(talk, event);
    else if (event->what == EVENT_QUIT) talk_hear_local(talk, FRAME_QUIT, &(struct wire_quit){ 0 });
    else if (event->what == EVENT_WAKE) {
        talk->alarm_ms = UINT64_MAX;
        talk_hear_local(talk, FRAME_WAKE, &(struct wire_wake){ talk->now_ms });
    } else hear_others(talk, event);
}

// ---- at the end ---------------------------------------------------------------------------------

// What the records lead to is what the core believes: to the last bit of a snapshot.
static void check_replay(struct talk *talk)
{
    static struct run *other;
    _Alignas(max_align_t) uint8_t parts[2][RUN_PART_BYTES];
    struct coordinator *self = talk->state;
    if (!other) other = take_memory(sizeof *other);
    ensure(madvise(other, sizeof *other, MADV_DONTNEED) == 0);
    run_init(other, &self->pace->run, self->rules.snapshot_rounds);
    talk_replay(talk, other);
    const struct wire_snapshot ours = run_to_snapshot(&self->run, parts[0]);
    const struct wire_snapshot theirs = run_to_snapshot(other, parts[1]);
    ensure(wire_equal(FRAME_SNAPSHOT, &ours, &theirs));
}

static struct talk *talk_with(const struct core *core)
{
    static struct talk *talks[TALK_CORES];
    struct talk **place = &talks[core - talk_cores];
    if (!*place) {
        ensure(wire_table_last() < EVENT_ANSWER); // One byte says which frame or EVENT_* it is
        struct talk *talk = *place = take_memory(sizeof *talk);
        talk->core = core;
        talk->counts = core_counted(core->name);
        talk->state = take_memory(core->state_bytes);
        talk->records = take_memory(RECORDS_BYTES);
        talk->out = (struct outbox){ .effects = take_memory(EFFECTS_MAX * sizeof(struct effect)),
                                     .count_max = EFFECTS_MAX,
                                     .bytes = take_memory(OUTBOX_BYTES),
                                     .bytes_max = OUTBOX_BYTES };
        talk->arena =
            (struct wire_arena){ .bytes = take_memory(OUTBOX_BYTES), .max = OUTBOX_BYTES };
        talk->scratch =
            (struct wire_arena){ .bytes = take_memory(OUTBOX_BYTES), .max = OUTBOX_BYTES };
    }
    struct talk *talk = *place;
    memset(&talk->memory, 0, sizeof talk->memory);
    talk->now_ms = 1000;
    talk->life = talk->reborn = talk->records_bytes = talk->stored_count = 0;
    talk->honest = (struct honest){ 0 };
    talk->resume = (struct wire_load){ .path = "checkpoints" };
    talk->has_journal = false;
    talk->journal = (struct wire_journal){ 0 };
    talk->claimed_round = talk->voted_round = talk->born_unix_ms = 0;
    return talk;
}

static bool converse(const struct core *core, const uint8_t *bytes, size_t count)
{
    struct talk *talk = talk_with(core);
    struct event event;
    const uint8_t *at = bytes;
    int events = 0;
    talk->rules = count > EVENT_HEAD && at[0] == EVENT_RULES && at[3] ? at[EVENT_HEAD] : 0;
    begin_life(talk, false);
    for (; events < EVENTS_PER_INPUT && event_next(&at, bytes + count, &event); events++)
        take_event(talk, &event);
    if (talk_is_coordinator(talk)) check_replay(talk);
    talk_forget_jobs(talk);
    return events > 0;
}

bool core_check_coordinator(const uint8_t *bytes, size_t count)
{
    return converse(&talk_cores[0], bytes, count);
}

bool core_check_trainer(const uint8_t *bytes, size_t count)
{
    return converse(&talk_cores[1], bytes, count);
}

bool core_check_witness(const uint8_t *bytes, size_t count)
{
    return converse(&talk_cores[2], bytes, count);
}

bool core_check_checkpointer(const uint8_t *bytes, size_t count)
{
    return converse(&talk_cores[3], bytes, count);
}

bool core_check_provider(const uint8_t *bytes, size_t count)
{
    return converse(&talk_cores[4], bytes, count);
}
