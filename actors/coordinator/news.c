// news -- packs the recorded state and the members' progress into RUN, ROSTER and BEAT. The pace itself
// tells the round, window or group that it has open.
//
// After each decision of a turn, news_settle compares each with what was told last, and tells what differs:
// first ROSTER, then what is open, RUN, BEAT. RUN is told at once if its change is urgent
// (is_urgent), otherwise with the next ROSTER or heartbeat. A commit and EPOCH_END are events, not
// states: the function that records one also tells it.

#include "actors/coordinator/news.h"
#include "common/pace/pace.h"
#include <stdio.h>
#include <string.h>

enum {
    ANSWER_EVERY_MS = 200,  // Between two answers of one topic to one member
    WHOLE_EVERY_MS = 10000, // Between two ROSTERs, while the changes fit in a MEMBERS
    CHANGES_TOLD_MAX = 64,  // Lines of a MEMBERS
    COMMITS_A_JOB_MAX = 64, // Commits that one ASK gets
};

// The lower median: the value at index (count - 1) / 2 once they are sorted. Changes their order
// (quickselect: Hoare, Algorithm 65: Find, 1961): values[low..high] has the wanted one. After the inner loop none of
// [low, j] is above `middle`, and none of [j + 1, high] below.
static float lower_median(float *values, uint32_t count)
{
    const uint32_t wanted = (count - 1) / 2;
    for (uint32_t low = 0, high = count - 1; low < high;) {
        const float middle = values[low + (high - low) / 2];
        uint32_t i = low, j = high;
        for (;; i++, j--) {
            while (values[i] < middle) i++;
            while (values[j] > middle) j--;
            if (i >= j) break;
            const float value = values[i];
            values[i] = values[j];
            values[j] = value;
        }
        if (wanted <= j) high = j;
        else low = j + 1;
    }
    return values[wanted];
}

// A trainer may report any finite number as its loss; 0 or less counts as no report. Fewer than half of those that
// report cannot push the median beyond what the others report.
static float median_loss(const struct turn *turn)
{
    float losses[MEMBERS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < turn->run->roster.count; i++)
        if (turn->run->roster.members[i].role == ACTOR_TRAINER && turn_is_live(turn, i) &&
            turn->presence->loss[i] > 0)
            losses[count++] = turn->presence->loss[i];
    // mutant: news: one report makes the run's loss
    return count ? lower_median(losses, count) : 0;
}

// The newest state in members' memory, if the pace has one.
static void add_way_back(const struct turn *turn, struct wire_run *state)
{
    struct way_back way;
    if (!turn->pace->way_back || !turn->pace->way_back(turn, &way)) return;
    state->memory_step = way.point.step;
    state->memory_window = way.window;
}

static struct wire_run run_state(const struct turn *turn, const char *lacks)
{
    const struct run *run = turn->run;
    uint64_t left_ms =
        turn->presence->deadline_ms == UINT64_MAX || turn->presence->deadline_ms < turn->now_ms
            ? 0
            : turn->presence->deadline_ms - turn->now_ms;
    struct wire_run state = {
        .phase = run->phase,
        .epoch = run->epoch,
        .round = run->number,
        .step = run->step,
        .total_steps = turn->rules->total_steps,
        .log_seq = run->log_seq,
        .phase_left_ms = left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX,
        .pending = roster_count(&run->roster, ACTOR_TRAINER, MEMBER_PENDING),
        .healthy = roster_count(&run->roster, ACTOR_TRAINER, MEMBER_HEALTHY),
        .roster_version = run->roster.version,
        .samples_done = run->samples_done,
        .digest_step = run->digest_step,
        .digest = run->digest,
        .pin_step = run->pin_step,
        .pin_digest = run->pin_digest,
        .source = run->source,
        .restore_point_step = run->restore_point.at.step,
        .restored_step = run->restored_step,
        .restored_epoch = run->restored_epoch,
        .checkpoint_step = run->checkpoint.step,
        .checkpoint_digest = run->checkpoint.digest,
        .checkpoint_pieces = run->restore_point.at.pieces &&
                             run->restore_point.at.step == run->checkpoint.step &&
                             hash_equal(&run->restore_point.at.digest, &run->checkpoint.digest),
        .older = run_older_saves(run),
        .data = run->data,
        .order = run->order,
        .pausing = run->pausing,
        .tokens_done = run->samples_done * turn->rules->seq_len,
        .pass_samples = run->pass_samples,
        .passes = run->pass_samples ? table_frontier(&run->table) / run->pass_samples : 0,
        .tasks = pace_count_tasks(turn),
    };
    memcpy(state.checkpoint_name, run->checkpoint.name, sizeof state.checkpoint_name);
    snprintf(state.lacks, sizeof state.lacks, "%s", lacks);
    add_way_back(turn, &state);
    return state;
}

static struct wire_roster roster(const struct turn *turn)
{
    return (struct wire_roster){ .version = turn->run->roster.version,
                                 .members = turn->run->roster.members,
                                 .members_count = turn->run->roster.count };
}

static struct wire_beat beat(const struct run *run)
{
    return (struct wire_beat){ .log_seq = run->log_seq,
                               .phase = run->phase,
                               .round = run->number,
                               .step = run->step,
                               .roster_version = run->roster.version,
                               .chain = run->chain,
                               .born_unix_ms = run->born_unix_ms };
}

// A change that a member may wait for is urgent. The counts are told with the roster, and so is what the run waits for,
// which has a count; but a wait that begins or ends is urgent. What changes all the time is told with the heartbeat.
static bool is_urgent(const struct wire_run *told, const struct wire_run *now)
{
    struct wire_run before = *told;
    before.log_seq = now->log_seq;
    before.phase_left_ms = now->phase_left_ms;
    before.pending = now->pending, before.healthy = now->healthy;
    before.roster_version = now->roster_version;
    if (before.lacks[0] && now->lacks[0]) memcpy(before.lacks, now->lacks, sizeof before.lacks);
    before.tasks = now->tasks;
    // mutant: data: nobody is told what the run is bound to
    return !wire_equal(FRAME_RUN, &before, now);
}

// The roster has changed since the last ROSTER, and ten seconds are over.
static bool is_whole_due(const struct news *self, const struct turn *turn)
{
    return self->whole_version != turn->run->roster.version && turn->now_ms >= self->whole_ms;
}

// MEMBERS has all lines that differ from the last ROSTER. The broker keeps both, so a late subscriber has the newest
// roster from these two frames.
static void tell_roster(struct news *self, const struct turn *turn)
{
    const struct roster *now = &turn->run->roster;
    struct wire_member lines[CHANGES_TOLD_MAX];
    const uint32_t count = roster_changes(now, self->whole_version, lines, CHANGES_TOLD_MAX);
    // mutant: the whole roster is told at each change
    if (!self->told || is_whole_due(self, turn) || count > CHANGES_TOLD_MAX) {
        const struct wire_roster all = roster(turn);
        outbox_news(turn->out, FRAME_ROSTER, &all);
        self->whole_version = now->version;
        self->whole_ms = turn->now_ms + WHOLE_EVERY_MS;
    } else {
        const struct wire_members change = { self->whole_version, now->version, lines, count };
        outbox_news(turn->out, FRAME_MEMBERS, &change);
    }
    self->roster_version = now->version;
}

void news_settle(struct news *self, const struct turn *turn, const char *lacks)
{
    const struct run *run = turn->run;
    struct wire_run now = run_state(turn, lacks);
    now.loss = self->run.loss; // The median is taken below, only if RUN may be sent
    const bool urgent = !self->told || is_urgent(&self->run, &now);
    const bool tells_roster =
        !self->told || ((urgent || self->beat_due || self->roster_delay_over) &&
                        self->roster_version != run->roster.version);
    const uint64_t open = turn->pace->open_number(run);
    const bool open_due = open > 0 && (!self->told || self->open_number != open);
    // The change of the roster is told now, or was told before: it needs no alarm
    if (tells_roster || self->roster_delay_over) turn->presence->roster_changed = false;
    // Before RUN: a member asks for a roster version that it lacks. A heartbeat brings the whole roster if only MEMBERS
    // was told for ten seconds
    if (tells_roster || (self->beat_due && is_whole_due(self, turn))) tell_roster(self, turn);
    if (open_due) {
        turn->pace->tell(turn, NULL);
        self->open_number = open;
    }
    if (urgent || tells_roster || self->beat_due) {
        if (now.lacks[0] && strcmp(now.lacks, self->run.lacks) != 0)
            outbox_note(turn->out, "run.waits because=\"%s\"", now.lacks);
        now.loss = median_loss(turn);
        // mutant: counts and the time left are told once
        if (urgent || !wire_equal(FRAME_RUN, &self->run, &now))
            outbox_news(turn->out, FRAME_RUN, &now);
        self->run = now;
    }
    if (!self->told || self->beat_due || self->beat_log_seq != run->log_seq) {
        const struct wire_beat said = beat(run);
        outbox_news(turn->out, FRAME_BEAT, &said);
        self->beat_log_seq = run->log_seq;
    }
    self->told = true;
    self->roster_delay_over = self->beat_due = false;
}

struct wire_epoch_end news_epoch_end(const struct turn *turn, uint64_t epoch,
                                     const struct hash *digest)
{
    const struct run *run = turn->run;
    struct wire_epoch_end end = { .epoch = epoch,
                                  .step = run->step,
                                  .digest = *digest,
                                  .data_position = run_data_position(run, turn->lists),
                                  .samples_done = run->samples_done };
    return end;
}

static void tell_end(const struct turn *turn, const char *to)
{
    const struct run *run = turn->run;
    bool ended = run->phase == PHASE_COOLDOWN || run->phase == PHASE_FINISHED;
    if (!ended || !run_has_digest(run)) return;
    // run->epoch rises when Cooldown ends (epoch.c), so in FINISHED it is one too high
    struct wire_epoch_end end =
        news_epoch_end(turn, run->epoch - (run->phase == PHASE_FINISHED), &run->digest);
    outbox_mail(turn->out, to, FRAME_EPOCH_END, &end);
}

// The sender's index in the roster, or NO_MEMBER. The broker vouches for the name `from`.
static uint32_t asker(const struct turn *turn, const struct msg *in)
{
    const struct roster *roster = &turn->run->roster;
    for (uint32_t i = 0; i < roster->count; i++)
        if (actor_name_is_same(roster->members[i].name, in->from)) return i;
    return NO_MEMBER;
}

// A small ASK costs much: the roster may have megabytes, and each of up to COMMITS_A_JOB_MAX commits is read and
// signed. So a topic is answered once in ANSWER_EVERY_MS for each member, and once for all strangers together. A member
// that is refused asks again, at the next BEAT at the latest.
static bool refuse_too_soon(const struct turn *turn, const struct msg *in, uint32_t member)
{
    const struct wire_ask *ask = in->body;
    uint64_t *not_before_ms =
        &turn->presence->answer_ms[ask->topic][member == NO_MEMBER ? MEMBERS_MAX : member];
    // mutant: who asks without end is answered
    if (turn->now_ms < *not_before_ms) {
        turn_refuse(turn, in, REFUSAL_NOT_NOW, 0,
                    "a topic is answered once in %d ms to each member, and once to all strangers "
                    "together; ask again later",
                    ANSWER_EVERY_MS);
        return true;
    }
    *not_before_ms = turn->now_ms + ANSWER_EVERY_MS;
    return false;
}

// Only members get commits. A member that is further behind asks again.
static void send_commits(const struct turn *turn, const struct msg *in, uint32_t member,
                         uint64_t from)
{
    if (member == NO_MEMBER || !roster_is_here(&turn->run->roster.members[member])) {
        turn_refuse(turn, in, REFUSAL_NOT_MEMBER, 0,
                    "commits are sent to members of this run alone; JOIN first");
        return;
    }
    // Not beyond the present step: a restore gave up the later ones.
    const uint64_t count = from < turn->run->step ? turn->run->step - from : 0;
    if (count == 0) return; // There is none yet: BEAT tells when there is
    struct wire_send_commits job = { .from_step = from,
                                     .count = count < COMMITS_A_JOB_MAX ? (uint32_t)count
                                                                        : COMMITS_A_JOB_MAX };
    memcpy(job.to, in->from, strlen(in->from) + 1);
    // mutant: a member that asks for commits is not answered
    outbox_job(turn->out, PORT_DISK, FRAME_SEND_COMMITS, &job);
}

void news_hear_ask(const struct turn *turn, const struct msg *in, const char *lacks)
{
    const struct wire_ask *ask = in->body;
    if (!in->from[0]) return; // A port of our own: nobody to answer
    const uint32_t member = asker(turn, in);
    if (refuse_too_soon(turn, in, member)) return;
    switch (ask->topic) {
    case TOPIC_RUN: {
        struct wire_run state = run_state(turn, lacks);
        state.loss = median_loss(turn);
        outbox_mail(turn->out, in->from, FRAME_RUN, &state);
        tell_end(turn, in->from);
        if (turn->pace->open_number(turn->run)) turn->pace->tell(turn, in->from);
        break;
    }
    case TOPIC_ROSTER: {
        const struct wire_roster all = roster(turn);
        outbox_mail(turn->out, in->from, FRAME_ROSTER, &all);
        break;
    }
    case TOPIC_CONFIG: {
        const struct wire_config config = rules_frame(turn->rules);
        outbox_mail(turn->out, in->from, FRAME_CONFIG, &config);
        break;
    }
    case TOPIC_COMMITS:
        send_commits(turn, in, member, ask->from);
        break; // The disk sends a mail for each commit
    }
}
