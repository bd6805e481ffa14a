// watch -- measures two things, from the news alone: each member's share of the samples of the newest
// commits (rounds: of the results that they accepted; windows: as the members report), and the curve of the loss since the watch began, in so many means that it
// fits into a line. The rest is copied from the view. What a member does now follows from its state,
// the phase, and whether it has reported a result of the open round.

#include "actors/shoal/run/watch.h"
#include "actors/shoal/show.h"
#include "common/actor/run_words.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { BROKER_SILENT_MS = 2000 }; // It is asked every second: named within three of its death
#define KEPT 0.95 // Of the older results' weight, at each commit: about twenty count

// ---- what is measured ---------------------------------------------------------------------------

static void hear_loss(struct watch *self, double loss)
{
    self->loss = loss;
    if (self->per_loss == 0) self->per_loss = 1;
    if (self->losses_count == 0 || self->in_newest == self->per_loss) {
        if (self->losses_count == WATCH_LOSSES) { // Two become one
            for (unsigned i = 0; i < WATCH_LOSSES / 2; i++)
                self->losses[i] = (self->losses[2 * i] + self->losses[2 * i + 1]) / 2;
            self->losses_count = WATCH_LOSSES / 2;
            self->per_loss *= 2;
        }
        self->losses[self->losses_count++] = 0;
        self->in_newest = 0;
    }
    double *newest = &self->losses[self->losses_count - 1];
    self->in_newest++;
    *newest += (loss - *newest) / self->in_newest;
}

static void add_samples(struct watch *self, uint32_t member, uint64_t samples)
{
    self->samples[member] += (double)samples;
    self->all_samples += (double)samples;
}

static void forget_older(struct watch *self)
{
    self->all_samples *= KEPT;
    for (uint32_t i = 0; i < MEMBERS_MAX; i++) self->samples[i] *= KEPT;
}

static void hear_parts(struct watch *self, const struct run_view *view)
{
    forget_older(self);
    for (uint32_t i = 0; i < view->window.members_count; i++) {
        const uint32_t member = view->window.members[i];
        if (member < MEMBERS_MAX) add_samples(self, member, view->progress[member].samples);
    }
}

static void hear_results(struct watch *self, const struct round *round)
{
    if (round->last.outcome != OUTCOME_COMMITTED || round->last.round != round->opened.round)
        return;
    forget_older(self);
    for (uint32_t i = 0; i < round->accepted_count; i++) {
        const struct wire_accepted *accepted = &round->accepted[i];
        if (accepted->client >= round->clients_count || accepted->end < accepted->begin) continue;
        const uint32_t member = round->clients[accepted->client].member;
        if (member >= MEMBERS_MAX) continue;
        add_samples(self, member, accepted->end - accepted->begin);
    }
}

void watch_hear(struct watch *self, const struct run_view *view, unsigned heard)
{
    if (heard & VIEW_COMMIT && view->window.number) hear_parts(self, view);
    else if (heard & VIEW_COMMIT) hear_results(self, &view->round);
    if (!(heard & VIEW_RUN)) return;
    const double loss = (double)view->now.loss;
    if (loss > 0 && view->now.step != self->loss_step) hear_loss(self, loss);
    self->loss_step = view->now.step;
}

// ---- what is shown ------------------------------------------------------------------------------

// Eight heights, from the lowest loss to the highest.
static void put_curve(FILE *out, const struct watch *self, bool utf8)
{
    static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    static const char plain[] = "_.-~=+*#";
    double low = INFINITY, high = -INFINITY;
    for (unsigned i = 0; i < self->losses_count; i++) {
        low = fmin(low, self->losses[i]);
        high = fmax(high, self->losses[i]);
    }
    for (unsigned i = 0; i < self->losses_count; i++) {
        const double at = high > low ? (self->losses[i] - low) / (high - low) : 0;
        const int height = (int)(at * 7 + 0.5);
        if (utf8) fputs(blocks[height], out);
        else putc(plain[height], out);
    }
}

// What a client of the open round does. Whether it audits instead is not public yet.
static const char *trains(const struct run_view *view, uint32_t index)
{
    if (view->window.number) return run_view_in_group(view, index) ? "computes" : "stands by";
    const uint64_t round = view->round.opened.round;
    if (round == 0 || round != view->now.round) return "follows";
    if (round_client_place(&view->round, index) == NO_MEMBER) return "not in this round";
    return view->progress[index].round >= round ? "has its result, waits for the others"
                                                : "computes";
}

static const char *what_trainer_does(const struct run_view *view, uint32_t index)
{
    static const char waits[] = "waits for the next epoch";
    const bool pending = view->roster.members[index].state == MEMBER_PENDING;
    switch (view->now.phase) {
    case PHASE_WAITING: return "waits for the run to begin";
    case PHASE_WARMUP: return "gets the model";
    case PHASE_TRAIN: return pending ? waits : trains(view, index);
    case PHASE_WITNESS: return pending ? waits : "waits for the votes";
    case PHASE_COOLDOWN: return "waits for the checkpoint";
    case PHASE_PAUSED: return "waits: the run is paused";
    default: return "done";
    }
}

static const char *what_server_does(const struct run_view *view, uint32_t index)
{
    if (view->now.phase != PHASE_TRAIN) return what_trainer_does(view, index);
    return run_view_in_group(view, index) ? "holds a share" : "stands by";
}

static const char *what_it_does(const struct run_view *view, uint32_t index,
                                const struct watch_heard *heard)
{
    const struct wire_member *member = &view->roster.members[index];
    if (heard->was_told[index] && !heard->members[index].connected) return "not connected";
    if (heard->was_told[index] && !last_heard_is_alive(&heard->members[index])) return "silent";
    if (member->state == MEMBER_DROPPED) return "was silent too long: may join again";
    switch (member->role) {
    case ACTOR_TRAINER: return what_trainer_does(view, index);
    case ACTOR_SERVER: return what_server_does(view, index);
    case ACTOR_WITNESS: return view->now.phase == PHASE_WITNESS ? "votes" : "follows";
    case ACTOR_CHECKPOINTER:
        return view->now.phase == PHASE_COOLDOWN ? "writes the checkpoint" : "follows";
    case ACTOR_PROVIDER: return "serves samples";
    default: return "follows";
    }
}

static const char *show_heard(const struct last_heard *heard, char text[SHOW_MAX])
{
    char duration[SHOW_MAX];
    if (!heard || heard->ms_ago == NEVER_HEARD) return "-";
    show_duration((double)heard->ms_ago / 1000, duration);
    return snprintf(text, SHOW_MAX, "%.32s ago", duration), text;
}

bool watch_shows(const struct run_view *view, uint32_t index)
{
    const uint8_t state = view->roster.members[index].state;
    return state != MEMBER_WITHDRAWN && state != MEMBER_EJECTED;
}

// The names are as wide as the longest that is shown.
static int name_width(const struct run_view *view)
{
    size_t width = strlen("member");
    uint32_t shown = 0;
    for (uint32_t i = 0; i < view->roster.count && shown < WATCH_MEMBERS; i++) {
        if (!watch_shows(view, i)) continue;
        const size_t length = strlen(view->roster.members[i].name);
        if (length > width) width = length;
        shown++;
    }
    return (int)width;
}

static void draw_member(FILE *out, uint32_t index, double tokens_per_s, int width,
                        const struct run_view *view, const struct watch_heard *heard)
{
    char speed[SHOW_MAX], ago[SHOW_MAX];
    const struct wire_member *member = &view->roster.members[index];
    const bool has_speed = member->role == ACTOR_TRAINER && !isnan(tokens_per_s);
    fprintf(out, "  %-*s  %-9s %8s  %-9s %s\n", width, member->name,
            wire_enum_name(&wire_enum_member_state, member->state),
            has_speed ? show_count(tokens_per_s, speed) : "-",
            show_heard(heard->was_told[index] ? &heard->members[index] : NULL, ago),
            what_it_does(view, index, heard));
}

static void draw_members(FILE *out, const struct watch *self, const struct run_view *view,
                         const struct watch_heard *heard)
{
    const double rate = (double)view->now.tokens_per_s;
    const int width = name_width(view);
    uint32_t shown = 0;
    fprintf(out, "\n  %-*s  %-9s %8s  %-9s %s\n", width, "member", "state", "tokens/s", "heard",
            "now");
    for (uint32_t i = 0; i < view->roster.count; i++) {
        if (!watch_shows(view, i) || shown++ >= WATCH_MEMBERS) continue;
        draw_member(out, i, rate * self->samples[i] / self->all_samples, width, view, heard);
    }
    if (shown > WATCH_MEMBERS) fprintf(out, "  ... and %u more\n", shown - WATCH_MEMBERS);
}

static void draw_head(FILE *out, const char *run, const struct run_view *view,
                      const struct watch_heard *heard)
{
    char text[SHOW_MAX], lacks[RUN_WORDS_MAX];
    const struct wire_run *now = &view->now;
    const bool dead = heard->coordinator && !last_heard_is_alive(heard->coordinator);
    fprintf(out, "run %s: ", run);
    if (heard->broker_silent_ms > BROKER_SILENT_MS)
        fprintf(out, "the broker has been silent for %s; its last word was: ",
                show_duration((double)heard->broker_silent_ms / 1000, text));
    else if (dead)
        fprintf(out, "the coordinator is %s, last heard %s; its last word was: ",
                heard->coordinator->connected ? "silent" : "not connected",
                show_heard(heard->coordinator, text));
    fprintf(out, "%s%s", run_view_phase(view), now->pausing ? ", pausing" : "");
    if (now->phase_left_ms && !dead)
        fprintf(out, ", at most %s more", show_duration(now->phase_left_ms / 1000.0, text));
    if (heard->coordinator && !dead)
        fprintf(out, "; coordinator heard %s", show_heard(heard->coordinator, text));
    putc('\n', out);
    if (now->lacks[0]) fprintf(out, "%s\n", run_words_lacks(now, lacks));
}

void watch_draw(FILE *out, const struct watch *self, const char *run, const struct run_view *view,
                const struct watch_heard *heard, bool utf8)
{
    char bar[SHOW_MAX], rate[SHOW_MAX], done[SHOW_MAX], left[SHOW_MAX];
    char silent[RUN_WORDS_MAX], loss[RUN_WORDS_LOSS_MAX];
    const struct wire_run *now = &view->now;
    const double steps_per_s = (double)now->steps_per_s;
    draw_head(out, run, view, heard);
    show_bar(now->total_steps ? (double)now->step / (double)now->total_steps : 0, 24, bar);
    fprintf(out, "step %" PRIu64 " of %" PRIu64 " [%s] epoch %" PRIu64, now->step, now->total_steps,
            bar, now->epoch);
    if (view->unit) fprintf(out, ", %s %" PRIu64, view->unit->name, now->round);
    putc('\n', out);
    fprintf(out, "loss %s  ", run_words_loss(self->loss, loss));
    put_curve(out, self, utf8);
    putc('\n', out);
    if (steps_per_s > 0) fprintf(out, "%.3g steps/s, ", steps_per_s);
    fprintf(out, "%s tokens/s, %s tokens so far",
            now->tokens_per_s > 0 ? show_count((double)now->tokens_per_s, rate) : "-",
            show_count((double)now->tokens_done, done));
    const bool dead = heard->coordinator && !last_heard_is_alive(heard->coordinator);
    const double left_s = dead ? -1 : run_words_left_s(now);
    if (left_s > 0) fprintf(out, ", about %s left", show_duration(left_s, left));
    else if (!dead && run_words_silent(now, silent)[0]) fprintf(out, ", %s", silent);
    putc('\n', out);
    draw_members(out, self, view, heard);
}
