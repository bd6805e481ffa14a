// fuzz_lives_test -- the seeds of the cores are whole lives: each core of tests/fuzz hears, says
// and notes from its seeds alone what a run is made of. Where it does not, a fuzzer cannot get past
// the first messages: the honest senders in tests/fuzz (honest.c, cores.c) no longer say what the
// core waits for.

#include "tests/fuzz/cores.h"
#include "tests/fuzz/fuzz.h"
#include "tests/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KINDS_MAX = 40, NOTES_MAX = 16, HEARS = PORT_COUNT };

struct must {
    const char *target;
    int way;                   // enum port, or HEARS
    uint16_t kinds[KINDS_MAX]; // Ended by 0
};

static const struct must musts[] = {
    { "coordinator",
      HEARS,
      { FRAME_START, FRAME_WAKE, FRAME_JOIN, FRAME_PING, FRAME_ASK, FRAME_HOLDS, FRAME_VOTE,
        FRAME_CHECKPOINT, FRAME_LEAVE, FRAME_CONTROL, FRAME_FINDING, FRAME_CLAIM_COPY,
        FRAME_POSITION } },
    { "coordinator",
      PORT_MAIL,
      { FRAME_ADMITTED, FRAME_ACK, FRAME_REFUSED, FRAME_CONFIG, FRAME_RUN, FRAME_ROSTER,
        FRAME_ROUND, FRAME_SEND_CLAIM, FRAME_CONTROL, FRAME_EPOCH_END } },
    { "coordinator",
      PORT_NEWS,
      { FRAME_RUN, FRAME_ROSTER, FRAME_ROUND, FRAME_COMMIT, FRAME_EPOCH_END, FRAME_BEAT } },
    { "coordinator",
      PORT_DISK,
      { FRAME_RECORD_GENESIS, FRAME_RECORD_START, FRAME_RECORD_MEMBER, FRAME_RECORD_PHASE,
        FRAME_RECORD_ROUND, FRAME_RECORD_COMMIT, FRAME_RECORD_EPOCH_END, FRAME_RECORD_CHECKPOINT,
        FRAME_RECORD_PAUSE, FRAME_RECORD_DATA, FRAME_RECORD_RESTORE, FRAME_RECORD_FINDING,
        FRAME_RECORD_EJECTION, FRAME_SEND_COMMITS, FRAME_POSITION } },
    { "trainer", HEARS, { FRAME_START,      FRAME_WAKE,      FRAME_QUIT,         FRAME_JOURNAL,
                          FRAME_INHERITED,  FRAME_WELCOME,   FRAME_ADMITTED,     FRAME_CONFIG,
                          FRAME_ROSTER,     FRAME_RUN,       FRAME_ROUND,        FRAME_BEAT,
                          FRAME_COMMIT,     FRAME_EPOCH_END, FRAME_ACK,          FRAME_REFUSED,
                          FRAME_SEND_CLAIM, FRAME_CLAIM,     FRAME_REVEAL,       FRAME_BUILT,
                          FRAME_LOADED,     FRAME_TRAINED,   FRAME_APPLIED,      FRAME_SHOWN,
                          FRAME_RECOMPUTED, FRAME_FETCHED,   FRAME_FETCHED_MODEL } },
    { "trainer",
      PORT_MAIL,
      { FRAME_JOIN, FRAME_PING, FRAME_ASK, FRAME_HOLDS, FRAME_VOTE, FRAME_CLAIM, FRAME_ACK,
        FRAME_FINDING, FRAME_REVEAL, FRAME_CLAIM_COPY, FRAME_POSITION, FRAME_LEAVE } },
    { "trainer", PORT_NEWS, { FRAME_CLAIM, FRAME_PROGRESS } },
    { "trainer", PORT_DISK, { FRAME_JOURNAL, FRAME_FORGET } },
    { "trainer",
      PORT_LEARNER,
      { FRAME_BUILD, FRAME_LOAD, FRAME_TRAIN, FRAME_APPLY, FRAME_PIN, FRAME_SHOW,
        FRAME_RECOMPUTE } },
    { "trainer", PORT_FETCHER, { FRAME_FETCH, FRAME_FETCH_MODEL, FRAME_FORGET } },
    { "trainer", PORT_SHELL, { FRAME_QUIT } },
    { "witness",
      HEARS,
      { FRAME_START, FRAME_WAKE, FRAME_QUIT, FRAME_JOURNAL, FRAME_INHERITED, FRAME_ADMITTED,
        FRAME_ROSTER, FRAME_RUN, FRAME_ROUND, FRAME_BEAT, FRAME_CLAIM, FRAME_FETCHED, FRAME_ACK,
        FRAME_SEND_CLAIM, FRAME_REFUSED } },
    { "witness",
      PORT_MAIL,
      { FRAME_JOIN, FRAME_PING, FRAME_ASK, FRAME_ACK, FRAME_VOTE, FRAME_CLAIM_COPY, FRAME_POSITION,
        FRAME_LEAVE } },
    { "witness", PORT_DISK, { FRAME_JOURNAL, FRAME_FORGET } },
    { "witness", PORT_FETCHER, { FRAME_FETCH, FRAME_FORGET } },
    { "witness", PORT_SHELL, { FRAME_QUIT } },
    { "checkpointer",
      HEARS,
      { FRAME_START,     FRAME_WAKE,     FRAME_QUIT,    FRAME_JOURNAL,      FRAME_RESUME,
        FRAME_INHERITED, FRAME_ADMITTED, FRAME_CONFIG,  FRAME_ROSTER,       FRAME_RUN,
        FRAME_ROUND,     FRAME_BEAT,     FRAME_COMMIT,  FRAME_EPOCH_END,    FRAME_ACK,
        FRAME_REFUSED,   FRAME_CONTROL,  FRAME_CLAIM,   FRAME_BUILT,        FRAME_LOADED,
        FRAME_APPLIED,   FRAME_SAVED,    FRAME_FETCHED, FRAME_FETCHED_MODEL } },
    { "checkpointer",
      PORT_MAIL,
      { FRAME_JOIN, FRAME_PING, FRAME_ASK, FRAME_HOLDS, FRAME_CHECKPOINT, FRAME_POSITION,
        FRAME_LEAVE } },
    { "checkpointer", PORT_DISK, { FRAME_JOURNAL, FRAME_FORGET } },
    { "checkpointer",
      PORT_LEARNER,
      { FRAME_BUILD, FRAME_LOAD, FRAME_APPLY, FRAME_PIN, FRAME_SAVE } },
    { "checkpointer", PORT_FETCHER, { FRAME_FETCH, FRAME_FETCH_MODEL, FRAME_FORGET } },
    { "checkpointer", PORT_SHELL, { FRAME_QUIT } },
    { "data-provider",
      HEARS,
      { FRAME_START, FRAME_WAKE, FRAME_QUIT, FRAME_JOURNAL, FRAME_ADMITTED, FRAME_CONFIG,
        FRAME_ROSTER, FRAME_RUN, FRAME_ROUND, FRAME_BEAT, FRAME_ACK } },
    { "data-provider",
      PORT_MAIL,
      { FRAME_JOIN, FRAME_PING, FRAME_ASK, FRAME_POSITION, FRAME_LEAVE } },
    { "data-provider", PORT_DISK, { FRAME_JOURNAL } },
    { "data-provider", PORT_SHELL, { FRAME_QUIT } },
    { "view",
      HEARS,
      { FRAME_RUN, FRAME_ROSTER, FRAME_ROUND, FRAME_COMMIT, FRAME_EPOCH_END, FRAME_PROGRESS } },
    { "broker",
      HEARS,
      { FRAME_RUN, FRAME_ROSTER, FRAME_ROUND, FRAME_COMMIT, FRAME_EPOCH_END, FRAME_BEAT,
        FRAME_PROGRESS, FRAME_CLAIM, FRAME_JOIN, FRAME_VOTE, FRAME_FINDING, FRAME_CLAIM_COPY,
        FRAME_REVEAL, FRAME_ADMITTED, FRAME_ACK, FRAME_SEND_CLAIM } },
};

static const struct {
    const char *target, *notes[NOTES_MAX];
} must_note[] = {
    { "coordinator",
      { "member.joined", "member.withdrawn", "member.dropped", "member.ejected", "digest.pinned",
        "round.committed", "round.void", "audit.same", "audit.different", "audit.judged",
        "checkpoint.registered", "run.restored" } },
    { "trainer",
      { "member.admitted", "claim.refused", "claim.equivocation", "model.fetched", "model.restored",
        "run.finished", "model.unavailable", "train.failed", "blob.missing" } },
    { "witness", { "member.admitted", "claim.refused", "claim.equivocation" } },
    { "checkpointer", { "model.fetched", "model.restored", "run.finished" } },
};

size_t fuzz_mutate_blindly(uint8_t *bytes, size_t count, size_t max)
{
    (void)bytes, (void)max;
    return count;
}

static void live(const struct fuzz_target *target, const char *path)
{
    static uint8_t room[1 << 16];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t count = fread(room, 1, sizeof room, file);
    fclose(file);
    if (count > target->bytes_max)
        fail_msg("%s: %zu bytes, at most %zu are fuzzed", path, count, target->bytes_max);
    target->check(room, count);
}

// Each seed of the target, from a folder that is gone afterwards.
static void live_all(const struct fuzz_target *target)
{
    char folder[] = "/tmp/fuzz_lives_XXXXXX", path[512];
    assert_non_null(mkdtemp(folder));
    target->write_seeds(folder);
    DIR *files = opendir(folder);
    assert_non_null(files);
    for (const struct dirent *entry; (entry = readdir(files));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        live(target, path);
        unlink(path);
    }
    closedir(files);
    assert_int_equal(rmdir(folder), 0);
}

static uint32_t count_lacking(const struct must *must)
{
    static const char *const ways[] = { "sends no",
                                        "publishes no",
                                        "stores no",
                                        "sets no",
                                        "logs no",
                                        "gives the learner no",
                                        "gives the fetcher no",
                                        "ends with no",
                                        "sends its peers no",
                                        "hears no" };
    const struct core_counts *counts = core_counted(must->target);
    uint32_t lacking = 0;
    for (int i = 0; must->kinds[i]; i++) {
        const uint16_t kind = must->kinds[i];
        if (must->way == HEARS ? counts->heard[kind] : counts->said[must->way][kind]) continue;
        print_error("%s %s %s\n", must->target, ways[must->way], wire_kind_name(kind));
        lacking++;
    }
    return lacking;
}

static bool is_noted(const struct core_counts *counts, const char *note)
{
    for (uint32_t i = 0; i < counts->notes; i++)
        if (strcmp(counts->noted[i], note) == 0) return true;
    return false;
}

static void seeds_are_whole_lives(void **state)
{
    const char *name = *state;
    const struct fuzz_target *target = fuzz_target_named(name);
    uint32_t lacking = 0;
    assert_non_null(target);
    live_all(target);
    for (size_t i = 0; i < sizeof musts / sizeof *musts; i++)
        if (strcmp(musts[i].target, name) == 0) lacking += count_lacking(&musts[i]);
    for (size_t i = 0; i < sizeof must_note / sizeof *must_note; i++)
        for (int n = 0; strcmp(must_note[i].target, name) == 0 && must_note[i].notes[n]; n++) {
            if (is_noted(core_counted(name), must_note[i].notes[n])) continue;
            print_error("%s notes no %s\n", name, must_note[i].notes[n]);
            lacking++;
        }
    assert_int_equal(lacking, 0);
}

int main(void)
{
    static char names[][16] = { "coordinator",   "trainer", "witness", "checkpointer",
                                "data-provider", "view",    "broker" };
    struct CMUnitTest tests[sizeof names / sizeof *names];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        tests[i] = (struct CMUnitTest){ .name = names[i],
                                        .test_func = seeds_are_whole_lives,
                                        .initial_state = names[i] };
    return _cmocka_run_group_tests("fuzz_lives_test", tests, sizeof names / sizeof *names, NULL,
                                   NULL);
}
