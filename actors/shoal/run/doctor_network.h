#pragma once
// doctor_network -- what the checks of the network share. Private to doctor_network.c, which hears the
// broker and the coordinator, and doctor_peers.c, which is about bulk endpoints: those of the members,
// seen from here, and our own, seen from the coordinator.

#include "actors/shoal/run/doctor.h"
#include "actors/shoal/run/run_view.h"
#include "common/actor/tap.h"

struct network_peer { // A member
    bool answers;     // At its endpoint
    bool is_away;     // The broker says so
    int error;        // Of the newest attempt (knock.h); 0: none, or it answers
};

enum network_answer { ANSWER_NONE, ANSWER_ACK, ANSWER_REFUSED };

struct network {
    struct doctor *doctor;
    struct identity *identity; // NULL: none was given
    struct tap *tap;
    struct run_view *view;
    bool complete;             // The broker's kept state has arrived
    bool was_told, has_config; // By the broker, of the coordinator; by the coordinator
    struct last_heard coordinator;
    struct network_peer peers[MEMBERS_MAX]; // By index in the roster
    uint32_t untold;       // So many questions about peers has the broker not answered
    uint64_t asked_number; // Of our REACH, and its answer
    enum network_answer answer;
    struct wire_refused refused;
};

// Takes letters until `is_done` (NULL: never), or until the time is up.
void network_listen(struct network *self, bool (*is_done)(const struct network *), unsigned ms);

void network_check_members(struct network *self);
void network_check_own(struct network *self, bool coordinator_answers);
