// The others, nearest first: the broker's name, its answer, what it keeps of the run, when it last
// heard the coordinator, and that one's answer; then the members (doctor_peers.c). What comes after a
// broker or a coordinator that is silent is not checked.

#include "actors/shoal/run/doctor_network.h"
#include "actors/shoal/show.h"
#include "common/actor/run_words.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/net/addresses.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_MS = 2500, // For the broker
    RUN_MS = 3000,    // For a coordinator that is about to start
    CORE_MS = 3000,   // For the coordinator's answer
    AGAIN_MS = 500    // Until the coordinator is asked once more
};

// ---- listening ----------------------------------------------------------------------------------

static void take_config(struct network *self, const struct wire_config *config)
{
    struct doctor_demands *run = &self->doctor->demands;
    if (!doctor_demands_of(config, run)) return;
    self->has_config = true;
    if (self->doctor->has_config && strcmp(self->doctor->config_run, config->run) == 0 &&
        !hash_equal(&self->doctor->config_digest, &config->config))
        checkup_add(&self->doctor->checkup, CHECKUP_WARNING, "state.toml",
                    "the coordinator began its run with other settings than %s; with this file it "
                    "would not start again",
                    self->doctor->state_path);
}

// An older coordinator does not know the question, and so not its number.
static void hear_refused(struct network *self, const struct wire_refused *refused)
{
    const bool is_unknown = refused->reason == REFUSAL_NOT_ALLOWED;
    if (refused->kind != FRAME_REACH) return;
    if (refused->round != self->asked_number && !is_unknown) return;
    self->answer = ANSWER_REFUSED;
    self->refused = *refused;
}

static void hear(struct network *self, const struct letter *letter)
{
    const void *body = letter->msg.body;
    const struct wire_ack *ack = body;
    run_view_hear(self->view, &letter->msg);
    if (strcmp(letter->msg.from, "coordinator") != 0) return;
    switch (letter->msg.kind) {
    case FRAME_CONFIG: take_config(self, body); break;
    case FRAME_REFUSED: hear_refused(self, body); break;
    case FRAME_ACK:
        if (ack->kind == FRAME_REACH && ack->round == self->asked_number) self->answer = ANSWER_ACK;
        break;
    }
}

// The broker's answer, when it last heard an actor.
static void hear_of(struct network *self, const struct letter *letter)
{
    struct last_heard heard;
    const char *name = tap_heard(letter, &heard);
    const struct roster *roster = &self->view->roster;
    if (strcmp(name, "coordinator") == 0) {
        self->coordinator = heard;
        self->was_told = true;
        return;
    }
    self->untold -= self->untold > 0;
    for (uint32_t i = 0; i < roster->count; i++)
        if (strcmp(roster->members[i].name, name) == 0)
            self->peers[i].is_away = !last_heard_is_alive(&heard);
}

void network_listen(struct network *self, bool (*is_done)(const struct network *), unsigned ms)
{
    const uint64_t until_ms = clock_ms() + ms;
    while (!(is_done && is_done(self)) && !tap_is_refused(self->tap) && clock_ms() < until_ms) {
        struct letter letter;
        tap_wait(self->tap, -1, until_ms);
        for (enum tap_result got; (got = tap_take(self->tap, &letter)) != TAP_NOTHING;)
            if (got == TAP_FRAME) hear(self, &letter);
            else if (got == TAP_COMPLETE) self->complete = true;
            else if (got == TAP_HEARD) hear_of(self, &letter);
    }
}

static bool is_complete(const struct network *self) { return self->complete; }
static bool knows_run(const struct network *self) { return self->view->has_run; }
static bool knows_core(const struct network *self) { return self->was_told && self->has_config; }

// ---- broker, run, coordinator -------------------------------------------------------------------

static bool check_name(struct network *self)
{
    struct why why = { 0 };
    char own[ADDRESSES_TEXT_MAX];
    const char *address = self->doctor->command.server_addr;
    const int rc = addresses_towards(address, &why, own);
    if (rc == 0) return true;
    checkup_add(&self->doctor->checkup, CHECKUP_UNREACHABLE, "broker", "%s%s", why.text,
                rc == FAULT_NOT_FOUND ? "; check the name, or ask for a new ticket"
                                      : "; check this machine's network");
    return false;
}

// Only a broker with --admit invite reads invitations, so one that is over may do no harm.
static void check_invitation(struct network *self)
{
    const struct ticket *ticket = &self->doctor->command.ticket;
    struct invitation invitation;
    if (!ticket->has_invitation ||
        !invitation_parse(ticket->invitation, INVITATION_BYTES, &invitation))
        return;
    if (invitation.expires_unix_s <= clock_unix_ms() / 1000)
        checkup_add(&self->doctor->checkup, CHECKUP_WARNING, "invitation",
                    "that of the ticket has expired by this machine's clock: a broker that admits "
                    "by invitation will not let a new key in; ask for a new ticket");
}

static bool check_broker(struct network *self)
{
    struct checkup *checkup = &self->doctor->checkup;
    const char *address = self->doctor->command.server_addr;
    struct why why = { 0 };
    network_listen(self, is_complete, ANSWER_MS);
    if (tap_is_connected(self->tap) && !tap_is_refused(self->tap)) {
        checkup_add(checkup, CHECKUP_OK, "broker", "%s answers, with the ticket's key", address);
        return true;
    }
    tap_no_answer(self->tap, address, ANSWER_MS, &why);
    if (!tap_is_refused(self->tap))
        checkup_add(checkup, CHECKUP_UNREACHABLE, "broker",
                    "%s (ask its owner whether it runs, and whether a firewall lets us through)",
                    why.text);
    else if (self->identity) checkup_add(checkup, CHECKUP_WRONG, "broker", "%s", why.text);
    else
        checkup_add(checkup, CHECKUP_WARNING, "broker",
                    "it answers, and lets only keys in that it knows, so the rest cannot be seen: "
                    "give the trainer's key with -i FILE");
    return false;
}

static bool check_run(struct network *self)
{
    const char *run = self->doctor->command.run_id;
    const struct wire_run *now = &self->view->now;
    char lacks[RUN_WORDS_MAX] = "";
    network_listen(self, knows_run, RUN_MS);
    if (!self->view->has_run) {
        checkup_add(&self->doctor->checkup, CHECKUP_UNREACHABLE, "run",
                    "the broker knows nothing of run \"%s\": start its coordinator, or ask its "
                    "owner; members wait until then",
                    run);
        return false;
    }
    run_words_lacks(now, lacks);
    checkup_add(&self->doctor->checkup, CHECKUP_OK, "run",
                "\"%s\": %s, step %" PRIu64 " of %" PRIu64 ", %u trainers healthy, %u pending%s%s",
                run, run_view_phase(self->view), now->step, now->total_steps, now->healthy,
                now->pending, lacks[0] ? "; " : "", lacks);
    if (now->healthy + now->pending > self->doctor->demands.trainers)
        self->doctor->demands.trainers = now->healthy + now->pending;
    if (self->doctor->demands.trainers == 0) self->doctor->demands.trainers = 1;
    return true;
}

// A coordinator says BEAT once a second. ROSTER and CONFIG are answers of its core; mail keeps its
// order, so the newest roster is there when CONFIG is. All askers that are not members share one rate limit for each
// topic, so an answer may be refused to us, and we ask again.
static bool check_coordinator(struct network *self)
{
    const struct wire_ask roster = { .topic = TOPIC_ROSTER }, config = { .topic = TOPIC_CONFIG };
    struct checkup *checkup = &self->doctor->checkup;
    char text[SHOW_MAX] = "long ago";
    for (unsigned ms = 0; !knows_core(self) && ms < CORE_MS; ms += AGAIN_MS) {
        tap_ask_heard(self->tap, "coordinator");
        tap_mail(self->tap, "coordinator", FRAME_ASK, &roster);
        tap_mail(self->tap, "coordinator", FRAME_ASK, &config);
        network_listen(self, knows_core, AGAIN_MS);
    }
    if (self->coordinator.ms_ago != NEVER_HEARD) {
        show_duration((double)self->coordinator.ms_ago / 1000, text);
        snprintf(text + strlen(text), sizeof text - strlen(text), " ago");
    }
    if (!self->was_told)
        checkup_add(checkup, CHECKUP_NOT_CHECKED, "coordinator",
                    "the broker does not say when it last heard it");
    else if (!last_heard_is_alive(&self->coordinator))
        checkup_add(checkup, CHECKUP_UNREACHABLE, "coordinator",
                    "%s, last heard %s: start it, or ask the owner of the run; members wait for it",
                    self->coordinator.connected ? "silent" : "not connected", text);
    else if (!self->has_config)
        checkup_add(checkup, CHECKUP_UNREACHABLE, "coordinator",
                    "heard %s, but it has not answered within %g s: ask the owner of the run", text,
                    CORE_MS / 1000.0);
    else checkup_add(checkup, CHECKUP_OK, "coordinator", "answers; heard %s", text);
    return self->has_config;
}

// An ejected key stays out for good, and no other check would say so.
static void check_key(struct network *self)
{
    if (!self->identity) return;
    const uint32_t member = run_view_member(self->view, identity_key(self->identity));
    if (member != NO_MEMBER && self->view->roster.members[member].state == MEMBER_EJECTED)
        checkup_add(&self->doctor->checkup, CHECKUP_WRONG, "key",
                    "%s was ejected from the run for good; make another with `shoal new-identity`",
                    self->view->roster.members[member].name);
}

// ---- all of it ----------------------------------------------------------------------------------

static void check_all(struct network *self)
{
    const bool has_run = check_broker(self) && check_run(self);
    const bool has_core = has_run && check_coordinator(self);
    if (has_run) {
        check_key(self);
        network_check_members(self);
    }
    network_check_own(self, has_core);
}

// -i, or the environment; false: it was given and cannot be used.
static bool open_identity(struct network *self, struct why *why)
{
    const struct command *command = &self->doctor->command;
    if (!command->identity_path && !command_env(IDENTITY_ENV)) return true;
    return command_identity(command, why, &self->identity) == 0;
}

void doctor_network(struct doctor *doctor)
{
    static const uint16_t kinds[] = { FRAME_RUN, FRAME_ROSTER, FRAME_MEMBERS, FRAME_BEAT };
    static struct network self;
    self = (struct network){ .doctor = doctor, .coordinator.ms_ago = NEVER_HEARD };
    struct why why = { 0 };
    check_invitation(&self);
    if (!open_identity(&self, &why))
        checkup_add(&doctor->checkup, CHECKUP_WRONG, "key", "%s", why.text);
    self.view = calloc(1, sizeof *self.view);
    ensure(self.view);
    const struct tap_options options = { .broker = &doctor->command.ticket,
                                         .run = doctor->command.run_id,
                                         .identity = self.identity,
                                         .role = ACTOR_MONITOR,
                                         .kinds = kinds,
                                         .kinds_count = sizeof kinds / sizeof *kinds };
    if (check_name(&self)) {
        if (tap_open(&options, &why, &self.tap) < 0)
            checkup_add(&doctor->checkup, CHECKUP_WRONG, "broker", "%s", why.text);
        else check_all(&self);
    }
    tap_close(&self.tap);
    identity_destroy(&self.identity);
    free(self.view);
}
