// Bulk endpoints. Those of the members: do they take a connection from here? Our own, bound as
// shoal-trainer binds it: does the coordinator find our key there?

#include "actors/shoal/run/doctor_network.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/bulk/bulk_server.h"
#include "common/net/addresses.h"
#include "common/net/announce.h"
#include "common/net/knock.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KNOCK_MS = 3000, // For all members together
    AGAIN_MS = 300,  // A member that has just come back announces its new address within that time
    HEARD_MS = 1000,
    REACH_MS = 5000,       // For the coordinator, which tries for three seconds
    REACH_AGAIN_MS = 2100, // It tries one address of a key in two seconds
    SHOWN = 5,
    ASKED_MAX = 100 // The broker takes so many letters of an observer in a burst
};

// ---- members ------------------------------------------------------------------------------------

static const char *without_tcp(const char *endpoint)
{
    return strncmp(endpoint, "tcp://", 6) == 0 ? endpoint + 6 : endpoint;
}

static bool is_told(const struct network *self) { return self->untold == 0; }

static bool is_there(const struct wire_member *member)
{
    return member->endpoint[0] && roster_is_here(member);
}

// The instant of a member's start, as it says, is the only time of day that the run's frames have.
static void note_latest(struct network *self)
{
    struct doctor *doctor = self->doctor;
    const struct roster *roster = &self->view->roster;
    for (uint32_t i = 0; i < roster->count; i++) {
        const struct wire_member *member = &roster->members[i];
        if (!is_there(member) || member->instance <= doctor->latest_unix_ms) continue;
        doctor->latest_unix_ms = member->instance;
        snprintf(doctor->latest_name, sizeof doctor->latest_name, "%s", member->name);
    }
}

// Knocks at those that have not answered yet. Returns how many of them still have not.
static uint32_t knock_once(struct network *self, struct knock *knocks, uint32_t *places,
                           unsigned ms)
{
    const struct roster *roster = &self->view->roster;
    uint32_t count = 0, silent = 0;
    for (uint32_t i = 0; i < roster->count; i++) {
        if (!is_there(&roster->members[i]) || self->peers[i].answers) continue;
        places[count] = i;
        knocks[count++] = (struct knock){ .endpoint = roster->members[i].endpoint };
    }
    knock_all(knocks, count, ms);
    for (uint32_t k = 0; k < count; k++) {
        self->peers[places[k]].answers = knocks[k].error == 0;
        self->peers[places[k]].error = knocks[k].error;
        silent += knocks[k].error != 0;
    }
    return silent;
}

// News come in between two attempts, and with them the new address of a member that was restarted.
static uint32_t knock_all_members(struct network *self)
{
    struct knock *knocks = calloc(MEMBERS_MAX, sizeof *knocks);
    uint32_t *places = calloc(MEMBERS_MAX, sizeof *places), silent;
    const uint64_t end_ms = clock_ms() + KNOCK_MS;
    uint64_t now_ms = clock_ms();
    ensure(knocks && places);
    while ((silent = knock_once(self, knocks, places, (unsigned)(end_ms - now_ms))) > 0) {
        network_listen(self, NULL, AGAIN_MS);
        if ((now_ms = clock_ms()) >= end_ms) break;
    }
    free(places);
    free(knocks);
    return silent;
}

static void ask_broker(struct network *self)
{
    const struct roster *roster = &self->view->roster;
    for (uint32_t i = 0; i < roster->count && self->untold < ASKED_MAX; i++)
        if (self->peers[i].error) {
            tap_ask_heard(self->tap, roster->members[i].name);
            self->untold++;
        }
    network_listen(self, is_told, HEARD_MS);
}

// A member that has left the broker is the run's business. One that is there, and that nobody can
// fetch from, holds up the others.
static void say_silent(struct network *self)
{
    const struct roster *roster = &self->view->roster;
    uint32_t shown = 0, more = 0;
    bool is_bad = false; // One of those that are not shown
    ask_broker(self);
    for (uint32_t i = 0; i < roster->count; i++) {
        const struct network_peer *peer = &self->peers[i];
        if (!peer->error || !is_there(&roster->members[i])) continue;
        if (shown++ >= SHOWN) more++, is_bad = is_bad || !peer->is_away;
        else if (peer->is_away)
            checkup_add(&self->doctor->checkup, CHECKUP_WARNING, "members",
                        "%s is not connected to the broker now; its owner can start it again",
                        roster->members[i].name);
        else
            checkup_add(&self->doctor->checkup, CHECKUP_UNREACHABLE, "members",
                        "%s at %.60s %s; its owner must let the others in", roster->members[i].name,
                        without_tcp(roster->members[i].endpoint), knock_says(peer->error));
    }
    if (more)
        checkup_add(&self->doctor->checkup, is_bad ? CHECKUP_UNREACHABLE : CHECKUP_WARNING,
                    "members", "and %u more", more);
}

void network_check_members(struct network *self)
{
    const struct roster *roster = &self->view->roster;
    uint32_t count = 0;
    const uint32_t silent = knock_all_members(self);
    note_latest(self);
    for (uint32_t i = 0; i < roster->count; i++) count += self->peers[i].answers;
    if (silent) say_silent(self);
    if (count + silent == 0)
        checkup_add(&self->doctor->checkup, CHECKUP_NOT_CHECKED, "members",
                    "there are none that serve others yet");
    else
        checkup_add(&self->doctor->checkup, count ? CHECKUP_OK : CHECKUP_NOT_CHECKED, "members",
                    "%u of %u answer at the address that they have announced", count,
                    count + silent);
}

// ---- our own endpoint ---------------------------------------------------------------------------

static bool has_answer(const struct network *self) { return self->answer != ANSWER_NONE; }

// The same server as a trainer's, so that it is refused for the same reasons.
static int open_own(struct network *self, const char *port, struct why *why,
                    bulk_server_t **ret_server, char ret_endpoint[ANNOUNCE_MAX])
{
    const struct doctor *doctor = self->doctor;
    char own[ADDRESSES_TEXT_MAX], endpoint[300];
    const char *host = doctor->bulk_bind;
    int rc = host ? 0 : addresses_towards(doctor->command.server_addr, why, own);
    if (rc < 0) return rc;
    if (!host) host = own;
    snprintf(endpoint, sizeof endpoint, "tcp://%s:%s", host, port);
    const struct bulk_server_options options = { .identity = tap_identity(self->tap),
                                                 .endpoint = endpoint,
                                                 .run = doctor->command.run_id };
    const struct announce how = { .bulk_bind = host,
                                  .announce = doctor->announce,
                                  .broker = doctor->command.server_addr };
    rc = bulk_server_new(&options, why, ret_server);
    if (rc == FAULT_BUSY)
        return why_set(
            why, FAULT_BUSY,
            "something listens on port %s here already: a running shoal-trainer? stop it "
            "first, or look at its log for address.refused",
            port);
    return rc < 0 ? rc
                  : announce_endpoint(&how, bulk_server_endpoint(*ret_server), why, ret_endpoint);
}

// The coordinator tries it from where it is, and looks for our key there. `is_drawn`: the port is any
// free one, so what is found is not true of the next one.
static void ask_coordinator(struct network *self, const char *what, const char *endpoint,
                            bool is_drawn)
{
    struct checkup *checkup = &self->doctor->checkup;
    struct wire_reach reach = { .number = clock_unix_ms() };
    const char *at = without_tcp(endpoint);
    snprintf(reach.endpoint, sizeof reach.endpoint, "%s", endpoint);
    self->asked_number = reach.number;
    self->answer = ANSWER_NONE;
    tap_mail(self->tap, "coordinator", FRAME_REACH, &reach);
    network_listen(self, has_answer, REACH_MS);
    if (self->answer == ANSWER_ACK)
        checkup_add(checkup, CHECKUP_OK, what, "the coordinator reaches us at %s%s", at,
                    is_drawn ? " (a port chosen now; give --bind-p2p-port for the one that will be "
                               "used)"
                             : "");
    else if (self->answer == ANSWER_NONE)
        checkup_add(checkup, CHECKUP_NOT_CHECKED, what,
                    "the coordinator has not said within %g s whether it reaches %s",
                    REACH_MS / 1000.0, at);
    else if (self->refused.reason == REFUSAL_UNREACHABLE)
        checkup_add(checkup, CHECKUP_UNREACHABLE, what, "%s%s", self->refused.text,
                    is_drawn
                        ? "; the port was chosen now: give --bind-p2p-port for the one that will "
                          "be used"
                        : "");
    else checkup_add(checkup, CHECKUP_NOT_CHECKED, what, "%s", self->refused.text);
}

// The same address, with the port above.
static void port_above(const char *endpoint, char ret_above[ANNOUNCE_MAX])
{
    const char *colon = strrchr(endpoint, ':');
    const unsigned port = (unsigned)strtoul(colon + 1, NULL, 10);
    snprintf(ret_above, ANNOUNCE_MAX, "%.*s:%u", (int)(colon - endpoint), endpoint, port + 1);
}

// Where trainers sum among themselves each listens at a second port for its links. We let the
// coordinator try it as if it were a bulk endpoint: what a firewall does to one it does to the other.
static void check_links(struct network *self, const char *endpoint, bool coordinator_answers)
{
    struct checkup *checkup = &self->doctor->checkup;
    struct why why = { 0 };
    char above[ANNOUNCE_MAX], text[16], bound[ANNOUNCE_MAX];
    bulk_server_t *server = NULL;
    const uint32_t port = (uint32_t)strtoul(self->doctor->bulk_port, NULL, 10) + 1;
    if (port < 2 || port > 65535) {
        checkup_add(checkup, CHECKUP_NOT_CHECKED, "link port",
                    "trainers of this run link with one another at the port above that of "
                    "--bind-p2p-port; give one below 65535, and both are checked");
        return;
    }
    snprintf(text, sizeof text, "%" PRIu32, port);
    port_above(endpoint, above);
    if (open_own(self, text, &why, &server, bound) < 0)
        checkup_add(checkup, CHECKUP_WRONG, "link port", "%s", why.text);
    else if (coordinator_answers) {
        network_listen(self, NULL, REACH_AGAIN_MS); // It tries an address of ours so often
        ask_coordinator(self, "link port", above, false);
    } else
        checkup_add(checkup, CHECKUP_NOT_CHECKED, "link port",
                    "we can listen at %s; no coordinator answers that could connect to it",
                    without_tcp(above));
    bulk_server_destroy(&server);
}

void network_check_own(struct network *self, bool coordinator_answers)
{
    struct why why = { 0 };
    char endpoint[ANNOUNCE_MAX];
    bulk_server_t *server = NULL;
    const bool is_open = open_own(self, self->doctor->bulk_port, &why, &server, endpoint) == 0;
    if (!is_open) checkup_add(&self->doctor->checkup, CHECKUP_WRONG, "own address", "%s", why.text);
    else if (coordinator_answers)
        ask_coordinator(
            self, "own address", endpoint,
            strcmp(self->doctor->bulk_port, "*") == 0 &&
                strcmp(strrchr(endpoint, ':'), strrchr(bulk_server_endpoint(server), ':')) == 0);
    else
        checkup_add(&self->doctor->checkup, CHECKUP_NOT_CHECKED, "own address",
                    "we can listen at %s; no coordinator answers that could connect to it",
                    without_tcp(endpoint));
    if (is_open && self->doctor->demands.links) check_links(self, endpoint, coordinator_answers);
    bulk_server_destroy(&server);
}
