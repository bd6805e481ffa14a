// Each frame is printed in one line. Its sender's name follows from the kind and the key, as the
// broker lets only one role publish each kind; the newest roster has its label. One table says which
// frames are numbered without gaps, so that a jump in the numbers tells how many were lost.

#include "actors/zmq-monitor/lines.h"
#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/log.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 64 << 10, LINE_BYTES_MAX = 256 << 20 };

static size_t print(const struct lines *self, const struct letter *letter)
{
    struct wire_head head = tap_head(letter);
    const struct msg *msg = &letter->msg;
    return self->json ? wire_print_json(&head, msg->kind, msg->body, self->line, self->line_max)
                      : wire_print(msg->kind, msg->body, self->line, self->line_max);
}

// Prints into self->line, which grows as needed.
static void make_line(struct lines *self, const struct letter *letter)
{
    size_t needed = print(self, letter);
    if (needed < self->line_max) return;
    ensure(needed < LINE_BYTES_MAX); // A frame is at most 4 MiB
    self->line_max = needed < LINE_BYTES ? LINE_BYTES : needed + 1;
    self->line = realloc(self->line, self->line_max);
    ensure(self->line);
    print(self, letter);
}

// ---- gaps ---------------------------------------------------------------------------------------

// What a frame covers: [begin, end) of its numbers. A round or a window covers its own.
static struct interval of_round(const void *body)
{
    const uint64_t round = ((const struct wire_round *)body)->round;
    return (struct interval){ round, round + 1 };
}

static struct interval of_commit(const void *body)
{
    const uint64_t round = ((const struct wire_commit *)body)->round;
    return (struct interval){ round, round + 1 };
}

static struct interval of_window(const void *body)
{
    const uint64_t number = ((const struct wire_window *)body)->number;
    return (struct interval){ number, number + 1 };
}

static struct interval of_steps(const void *body)
{
    const struct wire_steps *steps = body;
    return (struct interval){ steps->step, steps->end };
}

static const struct counted {
    uint16_t kind;
    const char *unit;
    struct interval (*covers)(const void *body);
} counted[LINES_COUNTED] = {
    { FRAME_ROUND, "round", of_round },
    { FRAME_COMMIT, "round", of_commit },
    { FRAME_WINDOW, "window", of_window },
    { FRAME_STEPS, "step", of_steps },
};

static void look_for_gap(struct lines *self, const struct letter *letter)
{
    size_t place = 0;
    while (place < LINES_COUNTED && counted[place].kind != letter->msg.kind) place++;
    if (place == LINES_COUNTED) return;
    const struct counted *as = &counted[place];
    const struct interval here = as->covers(letter->msg.body);
    uint64_t *end = &self->last[place];
    if (*end && here.begin > *end) {
        self->missing[place] += here.begin - *end;
        fprintf(stderr, "gap: no %s of the %" PRIu64 " %ss before %s %" PRIu64 "\n",
                wire_kind_name(as->kind), (uint64_t)(here.begin - *end), as->unit, as->unit,
                here.begin);
    }
    if (here.end > *end) *end = here.end;
}

// "3 ROUND or COMMIT frames", "1 WINDOW frame and STEPS of 40 steps"
static void print_gaps(const struct lines *self)
{
    const uint64_t *missing = self->missing;
    if (self->last[2] || self->last[3])
        fprintf(stderr,
                "gaps: %" PRIu64 " WINDOW frames, and STEPS of %" PRIu64 " steps, did not arrive, ",
                missing[2], missing[3]);
    else
        fprintf(stderr, "gaps: %" PRIu64 " ROUND or COMMIT frames did not arrive, ",
                missing[0] + missing[1]);
    fprintf(stderr, "%" PRIu64 " were dropped as bad\n", self->dropped);
}

static void hear_roster(struct lines *self, const struct msg *msg)
{
    const struct wire_roster *roster = msg->body;
    if (msg->incarnation < self->roster_incarnation) return;
    if (!self->roster) self->roster = calloc(1, sizeof *self->roster);
    ensure(self->roster);
    roster_load(self->roster, roster->version, roster->members, roster->members_count);
    self->roster_incarnation = msg->incarnation;
}

static void hear_members(struct lines *self, const struct msg *msg)
{
    if (self->roster && msg->incarnation == self->roster_incarnation)
        roster_change(self->roster, msg->body);
}

// The broker lets only the coordinator publish state and orders, and only trainers all other news. What comes
// by mail is the coordinator's answer to a question of the tap.
static void name_sender(const struct lines *self, const struct letter *letter,
                        char name[ACTOR_NAME_MAX + 1])
{
    const struct key *key = &letter->msg.sender;
    const bool is_its = wire_kind_flags(letter->msg.kind) & (WIRE_STATE | WIRE_ORDER);
    const uint8_t role = is_its || letter->from[0] ? ACTOR_COORDINATOR : ACTOR_TRAINER;
    const uint32_t member = self->roster ? roster_find(self->roster, key) : NO_MEMBER;
    actor_name(role, key, name);
    if (member != NO_MEMBER && actor_name_fits(self->roster->members[member].name, role, key))
        memcpy(name, self->roster->members[member].name, ACTOR_NAME_MAX + 1);
}

// --member: anna, trainer.anna, trainer.3fa2 and 3fa2 all mean trainer.anna.3fa2b1c4d5e6f708.
static bool is_called(const char *name, const char *wanted)
{
    char plain[ACTOR_NAME_MAX + 1];
    actor_name_plain(name, plain);
    if (strncmp(plain, wanted, strlen(wanted)) == 0) return true;
    for (const char *at = name; at; at = strchr(at, '.')) {
        at += *at == '.';
        if (strncmp(at, wanted, strlen(wanted)) == 0) return true;
    }
    return false;
}

// The next "lr_bits=" (JSON: "lr_bits":) that is a field's name, not a part of a text; NULL: none.
// In JSON a text cannot have it, since the quotes in a text are escaped.
static const char *find_bits(const char *line, bool json)
{
    bool in_text = false;
    if (json) return strstr(line, "\"lr_bits\":");
    for (; *line; line++) {
        if (*line == '"') in_text = !in_text;
        else if (in_text && *line == '\\' && line[1]) line++;
        else if (!in_text && strncmp(line, "lr_bits=", 8) == 0) return line;
    }
    return NULL;
}

static void put_float(uint32_t bits, bool json)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    if (isfinite(number)) printf(json ? "%.9g" : "%.6g", (double)number);
    else printf("null");
}

// The bits of one rate. Returns where the line goes on.
static const char *put_rate(const char *digits, bool json)
{
    printf(json ? "\"lr\":" : "lr=");
    put_float((uint32_t)strtoul(digits, NULL, 10), json);
    return digits + strspn(digits, "0123456789");
}

// A WINDOW has the bits of all its rates; the first and the last are printed. In the line they are one
// word in hexadecimal digits.
static const char *put_rates(const struct wire_bytes *bits, const char *at, bool json)
{
    printf(json ? "\"lr\":[" : "lr=");
    if (bits->count >= 4) {
        put_float((uint32_t)le_get(bits->data, 4), json);
        printf(json ? "," : "..");
        put_float((uint32_t)le_get(bits->data + bits->count / 4 * 4 - 4, 4), json);
    }
    if (json) putchar(']');
    return at + strcspn(at, json ? ",}" : " }");
}

static void put_line(const struct lines *self, const struct msg *msg, const char *name)
{
    char time[LOG_TIME];
    const char *rest = self->line, *at;
    if (self->json) {
        printf("{\"unix_ms\":%" PRIu64 ",\"from\":\"%s\",", clock_unix_ms(), name);
        rest++; // The line's own brace
    } else printf("%s %s ", log_time(time), name);
    while ((at = find_bits(rest, self->json))) {
        fwrite(rest, 1, (size_t)(at - rest), stdout);
        at += strcspn(at, "=:") + 1;
        rest = msg->kind == FRAME_WINDOW
                   ? put_rates(&((const struct wire_window *)msg->body)->lr_bits, at, self->json)
                   : put_rate(at, self->json);
    }
    puts(rest);
    fflush(stdout);
}

void lines_print(struct lines *self, const struct letter *letter)
{
    char name[ACTOR_NAME_MAX + 1];
    if (self->shows_gaps) look_for_gap(self, letter);
    if (letter->msg.kind == FRAME_ROSTER) hear_roster(self, &letter->msg);
    if (letter->msg.kind == FRAME_MEMBERS) hear_members(self, &letter->msg);
    if (letter->msg.kind == FRAME_ROSTER && self->hides_roster) return;
    if (letter->msg.kind == FRAME_MEMBERS && self->hides_members) return;
    name_sender(self, letter, name);
    if (self->member && !is_called(name, self->member)) {
        self->hidden++;
        return;
    }
    make_line(self, letter);
    put_line(self, &letter->msg, name);
    self->printed++;
}

void lines_drop(struct lines *self, const struct letter *letter)
{
    self->dropped++;
    fprintf(stderr, "frame dropped: %s\n", letter->reason);
}

void lines_end(struct lines *self)
{
    if (self->shows_gaps) print_gaps(self);
    free(self->line);
    free(self->roster);
}
