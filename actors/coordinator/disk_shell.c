// disk_shell -- one turn of the shell is one transaction: begin, a record for each store, a
// snapshot if one is due, commit. Then the ledger head must equal the core's; if it differs, the
// process dies before a message of that turn leaves.
//
// Then come the two jobs of the core (POSITION and SEND_COMMITS), and recovery at the start.

#include "actors/coordinator/disk_shell.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/ledger/stored.h"
#include "common/net/signed_frame.h"
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    SNAPSHOT_EVERY = 1000, // Records
    RECORD_MAX = 8 << 20,  // Bytes
    SNAPSHOT_BYTES_MAX = 32 << 20,
    ARENA_BYTES = 64 << 20,
    ROOM_WARN_PERCENT = 80,
    STEPS_OF_RECORD_MAX = 4096 // Steps that one record commits
};

// ---- records ------------------------------------------------------------------------------------

static int disk_begin(void *arg, struct why *why)
{
    return ledger_begin(((struct disk_shell *)arg)->ledger, why);
}

static int disk_store(void *arg, uint16_t kind, const uint8_t *body, size_t count, struct why *why)
{
    struct disk_shell *self = arg;
    struct wire_refusal refusal;
    const void *record;
    self->arena.used = 0;
    ensure(wire_unpack_body(body, count, kind, &self->arena, &record, &refusal));
    size_t bytes = wire_pack_record(kind, record, self->buffer, RECORD_MAX);
    ensure(bytes > 0);
    // The ledger's index finds a commit by the last of its steps.
    const struct interval steps = self->core->pace->commits(kind, record);
    const uint64_t last = steps.end - 1;
    uint64_t seq;
    const int rc = ledger_append(self->ledger, self->buffer, bytes,
                                 interval_length(steps) > 0 ? &last : NULL, why, &seq);
    if (rc == 0 && self->log) log_shell_hear(self->log, kind, record);
    return rc;
}

// Warns before the ledger is full: at 80 percent, then at each further one.
static void look_at_room(struct disk_shell *self)
{
    uint64_t bytes, bytes_max;
    ledger_room(self->ledger, &bytes, &bytes_max);
    const unsigned percent = (unsigned)(100 * (bytes >> 12) / (bytes_max >> 12));
    if (percent < ROOM_WARN_PERCENT || percent <= self->warned_percent) return;
    self->warned_percent = percent;
    log_line(LOG_WARNING,
             "ledger.filling percent=%u mib=%" PRIu64 "; the run halts when it is full: raise "
             "ledger.map_mib_max, %" PRIu64 ", in %s and start the coordinator again",
             percent, (uint64_t)(bytes >> 20), (uint64_t)(bytes_max >> 20),
             self->folder->state_path);
}

static int disk_commit(void *arg, struct why *why)
{
    struct disk_shell *self = arg;
    struct run *run = &self->core->run;
    if (run->log_seq >= self->snapshot_seq + SNAPSHOT_EVERY) {
        _Alignas(max_align_t) uint8_t part[RUN_PART_BYTES];
        struct wire_snapshot snapshot = run_to_snapshot(run, part);
        size_t bytes =
            wire_pack_record(FRAME_SNAPSHOT, &snapshot, self->buffer, SNAPSHOT_BYTES_MAX);
        ensure(bytes > 0);
        failpoint("ledger_snapshot");
        int rc = ledger_put_snapshot(self->ledger, self->buffer, bytes, why);
        if (rc < 0) return rc;
        self->snapshot_seq = run->log_seq;
    }
    int rc = ledger_commit(self->ledger, why);
    if (rc < 0) return rc;
    uint64_t head;
    struct hash chain;
    ledger_head(self->ledger, &head, &chain);
    ensure(head == run->log_seq && hash_equal(&chain, &run->chain)); // The core's state is on disk
    look_at_room(self);
    return 0;
}

// A member sends the newest BEAT that it received, and this ledger must contain the record that it
// names. Only a BEAT that our own key signed for this run counts, so nobody else can claim that the
// ledger is too old. A life of the coordinator is known by the time of its start; the owner may
// have given up what earlier lives said (run_folder).
static int hear_position(struct disk_shell *self, const struct wire_position *said, struct why *why)
{
    struct wire_head head;
    struct wire_refusal refusal;
    const void *body;
    struct run_folder *folder = self->folder;
    const struct rules *rules = &self->core->rules;
    self->arena.used = 0;
    if (!wire_unpack(said->beat, said->beat_bytes, WIRE_NEWS, &self->arena, &head, &body,
                     &refusal) ||
        head.kind != FRAME_BEAT || strcmp(head.run, rules->run_id) != 0 ||
        !key_equal(&head.sender, &rules->owner) ||
        !signed_frame_verify(said->beat, said->beat_bytes, &head))
        return 0;
    const struct wire_beat *beat = body;
    const bool is_this_run = beat->born_unix_ms == self->core->run.born_unix_ms;
    const bool is_given_up =
        run_folder_gave_up(folder, head.incarnation, is_this_run, beat->log_seq);
    if (is_this_run) {
        const int rc = ledger_covers(self->ledger, beat->log_seq, &beat->chain, why);
        return rc == FAULT_CORRUPT && is_given_up ? 0 : rc;
    }
    if (is_given_up) return 0;
    if (folder->begin_anew) return run_folder_give_up(folder, head.incarnation, why);
    return why_set(
        why, FAULT_CORRUPT,
        "members know another run of this name and key, up to record "
        "%" PRIu64
        ". Its ledger was lost, or is in another --state-dir than %s. Put it back; or give "
        "that run up and start once with --begin-anew",
        beat->log_seq, folder->path);
}

// Mails the records that commit these steps, one a mail, and signs them now. A record of several
// steps is in the index under the last of them, so a step that is not found may belong to a later
// one. Never looks beyond the present step: a restore gave up the later records, and they are still
// in the index.
//
// Limit: after a restore the index may still have a given-up record under a step that lies inside a
// new record of several steps. Rounds commit one step a record, so each entry is replaced. With
// windows such a STEPS may be mailed. A member takes it for the run's only while it stands in that
// window itself, and then RUN says that its step was given up (replica_is_given_up).
static int send_commits(struct disk_shell *self, const struct wire_send_commits *asked,
                        struct why *why)
{
    const struct wire_send_commits send_commits = *asked;
    const struct pace *pace = self->core->pace;
    const uint64_t end = self->core->run.step;
    uint32_t sent = 0, missed = 0;
    failpoint("send_commits");
    for (uint64_t step = send_commits.from_step;
         step < end && sent < send_commits.count && missed < STEPS_OF_RECORD_MAX; step++) {
        uint64_t seq;
        struct record record;
        uint16_t kind;
        const void *body;
        int rc = ledger_find(self->ledger, step, why, &seq);
        if (rc == FAULT_NOT_FOUND) {
            missed++;
            continue;
        }
        if (rc == 0) rc = ledger_read(self->ledger, seq, why, &record);
        if (rc == 0)
            rc = stored_unpack("ledger record", seq, record.bytes, record.count, &self->arena, why,
                               &kind, &body);
        if (rc == 0 && interval_length(pace->commits(kind, body)) == 0)
            rc = why_set(why, FAULT_CORRUPT, "ledger record %" PRIu64 ", a %s, commits no step",
                         seq, wire_kind_name(kind));
        if (rc < 0) return rc;
        shell_mail(self->shell, send_commits.to, pace->commit_frame, body);
        sent++;
    }
    return 0;
}

static int disk_job(void *arg, uint16_t kind, const void *body, struct why *why)
{
    if (kind == FRAME_POSITION) return hear_position(arg, body, why);
    ensure(kind == FRAME_SEND_COMMITS);
    return send_commits(arg, body, why);
}

// ---- recovery -----------------------------------------------------------------------------------

struct replaying {
    struct disk_shell *disk;
    struct why *why;
};

static int replay(void *arg, const struct record *record)
{
    struct replaying *self = arg;
    struct run *run = &self->disk->core->run;
    uint16_t kind;
    const void *body;
    int rc = stored_unpack("ledger record", record->seq, record->bytes, record->count,
                           &self->disk->arena, self->why, &kind, &body);
    if (rc < 0) return rc;
    run_apply(run, kind, body);
    ensure(run->log_seq == record->seq);
    return 0;
}

static int recover(struct disk_shell *self, struct why *why)
{
    struct snapshot snapshot;
    int rc = ledger_snapshot(self->ledger, why, &snapshot);
    if (rc < 0) return rc;
    if (ledger_damaged_snapshots(self->ledger) > 0)
        log_line(LOG_WARNING,
                 "ledger.damaged_snapshots count=%u; recovered from the records instead; "
                 "check this disk",
                 ledger_damaged_snapshots(self->ledger));
    if (snapshot.seq > 0) {
        const void *body;
        rc = stored_unpack_kind("the snapshot after ledger record", snapshot.seq, snapshot.bytes,
                                snapshot.count, FRAME_SNAPSHOT, &self->arena, why, &body);
        if (rc < 0) return rc;
        if (!run_from_snapshot(&self->core->run, body))
            return why_set(why, FAULT_CORRUPT,
                           "the snapshot after ledger record %" PRIu64
                           " is of another strategy than "
                           "the configuration, \"%s\"",
                           snapshot.seq, self->core->pace->name);
        self->snapshot_seq = snapshot.seq;
    }
    uint64_t head;
    ledger_head(self->ledger, &head, &self->core->run.chain);
    struct replaying replaying = { self, why };
    if (head > snapshot.seq)
        rc = ledger_each(self->ledger, snapshot.seq + 1, replay, &replaying, why);
    if (rc == 0 && head > 0)
        log_line(LOG_INFO,
                 "ledger.recovered records=%" PRIu64 " from_snapshot=%" PRIu64 " step=%" PRIu64
                 " phase=%s",
                 head, snapshot.seq, self->core->run.step, run_phase_name(self->core->run.phase));
    return rc;
}

// ---- life ---------------------------------------------------------------------------------------

int disk_shell_open(struct disk_shell *self, const struct ledger_options *options, struct why *why)
{
    self->buffer = malloc(SNAPSHOT_BYTES_MAX);
    self->arena = (struct wire_arena){ .bytes = malloc(ARENA_BYTES), .max = ARENA_BYTES };
    ensure(self->buffer && self->arena.bytes);
    int rc = ledger_open(self->folder->path, self->core->rules.run_id, options, why, &self->ledger);
    if (rc == 0) rc = recover(self, why);
    if (rc == 0) failpoint("ledger_recovered");
    return rc;
}

void disk_shell_close(struct disk_shell *self)
{
    ledger_close(&self->ledger);
    free(self->buffer);
    free(self->arena.bytes);
}

struct disk disk_shell_port(struct disk_shell *self)
{
    return (struct disk){ .arg = self,
                          .begin = disk_begin,
                          .store = disk_store,
                          .commit = disk_commit,
                          .job = disk_job };
}
