#pragma once
// witness -- records which members delivered which results in a round, and proves it with one
// signed vote.
//
//     CLAIM ──checked──▶ FETCH payload ──here──▶ seen ──the rest is late, or all are here──▶ VOTE (complete)
//                                                 └───────── RoundWitness begins ─────────▶ VOTE (partial)
//
// A claim counts if it is of this round, is signed by the client whose batch it names, names the
// interval that the seed deals to that client, names the pinned base if there is one, and its
// payload is in our own store: a vote is a promise to serve those bytes. A witness that has a
// replica votes only for results that are based on its own parameters, and for none while its
// replica is not at the round's step. Otherwise the false base of one liar could become the run's
// (seeds 52440, 59904).
//
// Each witness judges by its own clock who is late (common/run/lateness.h): from the opening of the
// round, longer than min_round_train_time, than three times what is usual, and than three times
// what half of this round's results took. So a round in which all are slow has no late ones, and
// while less than half of the results are here, all are waited for. A late result counts all the
// same if enough other witnesses have it. A member learns in each round what is usual, not only in
// those in which it is elected: of many trainers each is elected seldom, and a new one waits for
// all until it has learned from LATENESS_FIRST rounds. While it is not elected, it counts the
// payloads that it fetches early. A forged claim can thus make the usual time shorter. It cannot
// hurry a vote: three times what half of the round's verified results took is waited for in any
// case.
//
// The first claim of a client counts. The witness sends signed claims to the coordinator as
// equivocation evidence in three cases:
//
//     a client signs a second claim       both claims are sent
//     the coordinator asks (SEND_CLAIM)      the claim we have, of this round or the previous one: two
//                                         witnesses may have named two claims of one client, and
//                                         the question may come after the round's end
//     a commit names another claim        the claim we have: a vote that names it may come too late
//
// A member that is not elected keeps no claims. It fetches the payload that the first claim of each
// client names, so that it is here when the commit comes, and notes when it came. It believes
// nothing else that the claim says.
//
// A claim whose signed frame is too long to keep is refused. In one round a client gets at most
// ANSWERS_MAX acknowledgements and causes at most PROOFS_MAX proofs: replies are rate-limited, so
// that a peer cannot exhaust our outgoing budget. The two limits are separate; otherwise a client
// could use up the acknowledgements and then sign a second claim without consequence.
//
// The one vote of a round is journalled before it is sent. After a restart a witness that finds its
// vote in the journal abstains.
//
// The same core runs inside an elected trainer and as an actor of its own. Pure.

#include "common/member/blobs.h"
#include "common/pace/rounds/round_view.h"
#include "common/pace/rounds/bloom.h"
#include "common/pace/rounds/claims.h"
#include "common/run/lateness.h"

enum {
    ANSWERS_MAX = 32,
    PROOFS_MAX = 4,
    REFUSALS_NOTED_MAX = 16
}; // In a round: for a client, for a client, for all clients together

struct sighting {
    struct wire_seen seen; // If we do not vote, only its payload is set
    uint64_t
        instance; // The client's process when the round began; a later one trains in later rounds
    bool claimed;
    bool is_coming;         // If we do not vote: its payload is being fetched early
    uint8_t answers, shown; // Acknowledgements sent; proofs sent to the coordinator
    bool is_here;           // Its payload came
    uint32_t frame_bytes;   // The claim as its author signed it; 0: our own claim
    uint8_t frame[CLAIM_FRAME_MAX];
};

struct witness {
    uint64_t round, round_before; // The rounds of the sightings, and of the previous ones
    bool voted, acknowledged;
    uint64_t resend_ms;
    uint64_t began_ms; // When we heard of the round
    uint32_t here;     // Results of it that came
    uint32_t half_ms;  // What the quicker half of them took at most; 0: less than half are here
    uint32_t last, last_ms; // The client whose result came last, and what that took
    struct lateness lateness;
    uint32_t refused; // Claims that were refused
    bool has_replica; // The role has a replica, which knows the right base
    struct hash base; // The replica's digest at the round's step; none: it is at another step
    struct sighting *sightings,
        *sightings_before;            // Each is one half of `memory`; NULL: no round yet
    uint32_t clients, clients_before; // So many of them are of these rounds
    struct sighting memory[2][MEMBERS_MAX];
    struct wire_seen list[MEMBERS_MAX]; // The vote's list, kept for retries
    struct wire_vote vote;
    uint8_t participants[32768], broadcasts[32768];
    uint64_t words[BLOOM_WORDS(MEMBERS_MAX)];
};

// A new round has opened: forgets all but the claims of the last one, and what is usual.
void witness_begin(struct witness *self, const struct round_view *view, const struct member *member,
                   uint64_t now_ms);

// Takes a CLAIM, by mail or as news, from any sender. Acknowledges it if it came by mail and is the
// claim that counts, also when it comes again.
void witness_hear_claim(struct witness *self, const struct round_view *view,
                        const struct member_turn *turn);

// Notes which payloads are here by now. Call it before witness_is_due.
void witness_note(struct witness *self, const struct round_view *view, const struct blobs *blobs,
                  uint64_t now_ms);

// True if it is time to vote. witness_cast makes the vote and returns its hash, for the journal.
bool witness_is_due(const struct witness *self, const struct round_view *view,
                    const struct blobs *blobs, const struct member *member, uint64_t now_ms);
struct hash witness_cast(struct witness *self, const struct round_view *view,
                         const struct blobs *blobs, const struct member *member, uint64_t now_ms);
// The coordinator asks for the claim of a client: sends it, if it is kept and signed by another
// member.
void witness_hear_send_claim(const struct witness *self, const struct wire_send_claim *asked,
                             struct outbox *out);
// A round is committed, the open one or the previous one. If the commit names another claim of a
// client than the one that we have, sends ours as evidence. Counts towards PROOFS_MAX of that
// client.
void witness_hear_commit(struct witness *self, const struct wire_commit *commit,
                         struct outbox *out);

// witness_hear follows rounds and claims. witness_look votes when due, and sends the vote until it
// is acknowledged.
void witness_hear(struct witness *self, const struct round_view *view,
                  const struct member_turn *turn);
void witness_look(struct witness *self, const struct round_view *view,
                  const struct member_turn *turn);
