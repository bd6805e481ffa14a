#pragma once
// witness -- records who delivered what in a round, and proves it with one signed vote.
//
//     CLAIM ──checked──▶ FETCH payload ──here──▶ seen ──all that are waited for──▶ VOTE (complete)
//                                                 └────── RoundWitness begins ────▶ VOTE (what it has)
//
// What makes a claim count: this round, signed by the client whose batch it names, the interval
// that the seed assigns to it, the pinned base if there is one, and the payload in our own store: a
// vote is a promise to serve those bytes. A witness that has a replica also names no result of
// parameters other than its own, and none at all while it is not at the round's step: one liar's base
// must not become the run's (seeds 52440, 59904). The first claim of a client counts; another is shown to
// the coordinator together with it, and so is any that the coordinator asks for, of the round before,
// too: where two witnesses name two claims of one client, its question may come after the round's end.
// So is one in whose place another was committed: a vote that names it may come too late to be counted.
// A claim whose frame is too long to be kept for that is none. Nobody is answered more than ANSWERS_MAX
// times in a round, nor shown more than PROOFS_MAX times: what a witness may send is its own, and not
// for others to spend. The two are counted apart, or who is answered enough could then sign another.
// The one vote of a round is journalled before it is sent; a restart that finds it abstains.
//
// The same core runs inside an elected trainer and as an actor of its own. Pure.

#include "common/member/blobs.h"
#include "common/pace/rounds/round_view.h"
#include "common/run/bloom.h"
#include "common/wire/claims.h"

enum {
    ANSWERS_MAX = 32,
    PROOFS_MAX = 4,
    REFUSALS_NOTED_MAX = 16
}; // Of a client twice, of all; in a round

struct sighting {
    struct wire_seen seen;
    uint64_t
        instance; // Of the client's process when the round began: a later one resumes with the next
    bool claimed;
    uint8_t answers, shown; // Acknowledgements; other claims shown to the coordinator
    uint32_t frame_bytes;   // Of the claim as its author signed it; 0: ours, or not signed
    uint8_t frame[CLAIM_FRAME_MAX];
};

struct witness {
    uint64_t round, round_before; // Whose sightings these are
    bool voted, acknowledged;
    uint64_t resend_ms;
    uint32_t refused; // Claims
    bool has_replica; // In the same process: it knows which base is right
    struct hash base; // Its digest of the round's step; none: it is not there yet
    struct sighting *sightings,
        *sightings_before; // Each one half of the memory; NULL: no round yet
    struct sighting memory[2][MEMBERS_MAX];
    struct wire_seen list[MEMBERS_MAX]; // Of the vote, kept for sending again
    struct wire_vote vote;
    uint8_t participants[32768], broadcasts[32768];
    uint64_t words[BLOOM_WORDS(MEMBERS_MAX)];
};

// A new round has opened: forgets all but the claims of the last one.
void witness_begin(struct witness *self, const struct round_view *view,
                   const struct member *member);

// Takes a CLAIM, by mail or as news, whoever signed it. An accepted one that came by mail is
// acknowledged; so is one that is known already.
void witness_hear_claim(struct witness *self, const struct round_view *view,
                        const struct turn *turn);

// Whether it is time to vote, and the vote: its hash is journalled before it is sent.
bool witness_is_due(const struct witness *self, const struct round_view *view,
                    const struct blobs *blobs, const struct member *member);
struct hash witness_cast(struct witness *self, const struct round_view *view,
                         const struct blobs *blobs, const struct member *member);
// The coordinator wants to see the claim that we heard.
void witness_hear_produce(const struct witness *self, const struct wire_produce *produce,
                          struct outbox *out);
// A round is committed, the open one or the one before: whoever has another claim than those of the commit
// in its place says so. At most PROOFS_MAX times of a client, with those that were shown before.
void witness_hear_commit(struct witness *self, const struct wire_commit *commit,
                         struct outbox *out);

// Keeps track of rounds and claims; votes, until the vote is acknowledged.
void witness_hear(struct witness *self, const struct round_view *view, const struct turn *turn);
void witness_look(struct witness *self, const struct round_view *view, const struct turn *turn);
