#pragma once
// group -- direct links among the members of a window, and sums over them.
//
//     group_new ─▶ group_form (who is in it) ─▶ group_add, group_tell, group_hear ... ─▶ group_form ...
//         ├─▶ group_expect (who may be in the next one), group_serve: their links stand before that
//         └─▶ group_ask, group_hear_answer / group_hear_question, group_answer: between two members
//
//              contributions                results
//     member 0 ─────────────▶ owner of ───────────────▶ member 0
//     member 1 ─────────────▶ a share  ───────────────▶ member 1        every member owns a share
//     member 2 ─────────────▶          ───────────────▶ member 2
//
// A vector of floats is cut into buckets, and a bucket into one share a member, at borders of
// GROUP_LEAF_FLOATS. Each member sends its tree nodes (common/vector/lanes.h) of a share to the owner;
// the owner adds them in the order of the tree and sends the sum to all. So the result has the same
// bits for every number of members. A small vector is one share that everybody owns: each sends all to
// all, one hop. The buckets go from the end of the vector to its beginning, several at a time: a
// gradient can be summed behind a backward pass that is still at work before (group_begin).
//
// A link is a control connection to a member (words, and whether it is there) and one or more
// channels, which carry sums. The handshake of each (common/net/handshake.h) proves both keys and
// names the run, the window's members are the only ones that get further, and from then on the bytes
// are either plain or sealed with AES-256-GCM, a key for each direction. Links outlive a window: the
// next one connects only what is missing or has ended, the whole link of a member that was waited for
// in vain, and after a broken window new channels. All connections are kept alive: a dead line ends
// them, also while they are idle (tcp_watch).
//
// A link that ends breaks the sum in hand, unless all that was to come of that member is here: the
// call returns the fault and names the member whose bytes are missing, and the others are told.
// Nothing is repeated here; who is in the next window is not decided here. group_form returns when
// all members are in the window, so nothing of a window reaches a member that is not in it.
//
// The two halves of a sum are there alone, too: GROUP_SCATTER leaves each owner with the sum of its
// share, and GROUP_GATHER has each owner send its share of a vector to all. So what lies between them
// is done once, by the owner. There the shares are whole intervals (group_interval).
//
// A window has sums, in which all take part, or questions, each between two members (below).
//
// Threads: all functions on the thread that made the group, except group_abort (any thread).
// Nothing moves while the caller is not inside one of them. Waiting sleeps.
// Memory, beside the caller's vectors: at most GROUP_MEMORY bytes, and 12 KiB more for each sealed
// connection of this process beyond the 768th; and the words that wait: of each peer up to 192 KiB
// until they are heard, and up to 320 KiB to it until it reads them. One that answers questions keeps a
// vector for each member that sends or gets floats, until the next group_form.

#include "common/base/fault.h"
#include "common/base/interval.h"
#include "common/base/key.h"
#include "common/vector/lanes.h"

struct identity;

enum {
    GROUP_MEMBERS_MAX = 64,
    GROUP_LEAF_FLOATS = 16384, // = DIGEST_LEAF_FLOATS = GRADIENT_PIECE
    GROUP_WORD_MAX = 65536,    // Bytes of one word (group_tell)
    GROUP_HEADER_MAX = 128,    // Bytes of the header of a question or an answer
    GROUP_CONNECTIONS_MAX = 64,
    GROUP_MEMORY = 16 << 20, // Without the words that wait
};

enum group_link { GROUP_PLAIN, GROUP_SEALED }; // Plain: only between loopback or private addresses

struct group_options {
    const struct identity *identity; // Borrowed
    const char *run;                 // Both ends must name the same; borrowed
    uint64_t instance;               // Of this process
    const char *bind;                // "ADDRESS:PORT"; port 0: any that is free
    enum group_link link;
    uint32_t connections; // 1..GROUP_CONNECTIONS_MAX to each member
    // A process that was never linked may begin to listen up to so long after group_form was called,
    // before a port that refuses ends the wait. 0: until its timeout_ms is over.
    uint32_t refused_ms;
    // A wait, but that of group_hear_out, ends with FAULT_INTERRUPTED when `called` returns true. It is
    // asked before each sleep, and whenever `called_fd` is readable; it empties called_fd, or returns
    // true. called_fd -1: before each sleep only. NULL: never.
    int called_fd;
    bool (*called)(void *arg);
    void *called_arg;
};

typedef struct group group_t;

// Binds the port. FAULT_BUSY: the port is taken; FAULT_UNAVAILABLE: no address of this machine;
// FAULT_CONFIG: plain at a public address; FAULT_RANGE; FAULT_MEMORY.
int group_new(const struct group_options *options, struct why *why, group_t **ret_group);
void group_destroy(group_t **self_p); // NULL is allowed
uint16_t group_port(const group_t *self);

struct group_member {
    struct key key;
    uint64_t instance;
    char endpoint[128]; // "tcp://192.0.2.7:7001" (common/net/endpoint.h)
};

// Whose bytes are missing when a call fails.
struct group_blame {
    uint32_t member; // Index in the group; UINT32_MAX: of no member
    bool gone;       // Its connection was reset, and a new one was refused: the process is dead
};

// The keys that may link besides the members, up to the handshake: pending members, so that their
// links stand when a window names them. Nothing of a window reaches them. Their links are connected
// at leisure: in group_serve, and while other calls wait. A list takes the place of the one before;
// the caller may be in it. Keeps a copy. More than GROUP_MEMBERS_MAX end the process. FAULT_CONFIG:
// one is not linked, as group_form would refuse it (the first is named); the others are expected all
// the same.
int group_expect(group_t *self, const struct group_member *members, uint32_t count,
                 struct why *why);

// Bit i: the link with member i of that list stands, and nobody was waited for over it in vain. The
// caller's own bit is set.
uint64_t group_linked(const group_t *self);

// Makes and keeps links while the caller has nothing else to do here, up to timeout_ms. 0: does what is
// due, and does not wait. Returns 0 as soon as group_linked has changed. FAULT_TIMEOUT: it has not;
// FAULT_INTERRUPTED. No fault breaks a window.
int group_serve(group_t *self, uint32_t timeout_ms, struct why *why);

// Takes up window `window`, higher than those before: `members` in order, the caller at `place`.
// Connects what is missing, and waits up to timeout_ms until all links stand and all members have
// come to this window; 200 ms more, if members do not answer whether they are there. The one with the
// smaller key connects. A port that refuses ends the wait if that process was linked before: it is
// dead; else it may not listen yet (refused_ms).
// FAULT_UNREACHABLE, FAULT_TIMEOUT, FAULT_DENIED (another key, run or instance answers), each with the
// member in *ret_blame; FAULT_CONFIG: plain over a public address; FAULT_NOT_NOW: that member is in a
// later window; FAULT_INTERRUPTED. After a fault the window is broken.
int group_form(group_t *self, uint64_t window, const struct group_member *members, uint32_t count,
               uint32_t place, uint32_t timeout_ms, struct why *why, struct group_blame *ret_blame);

enum group_way {
    GROUP_ALL,     // The sum, to all
    GROUP_SCATTER, // Of the sum, to each member its share; what else lies in its result means nothing
    GROUP_GATHER, // No sum: the result is the vector. Its own share is there, those of the others come
};

// One sum of `floats` floats.
struct group_sum {
    uint64_t number;       // Rises by 1 with each sum of a window, from 0; all members agree
    uint64_t floats;       // At least 1
    uint32_t lanes, batch; // Say who has which nodes; all members agree. Not 0
    // The caller's nodes, in the order of lane_nodes (lanes, batch, its lanes, ...): whole vectors,
    // unchanged until the call returns. None for a member without lanes or samples.
    // For GROUP_GATHER: NULL.
    const float *const *nodes;
    float *result; // The sum, [floats]. May be nodes[0]
    uint32_t timeout_ms;
    // If not NULL, [GROUP_MEMBERS_MAX]: to each member is added for how many microseconds the call slept
    // while that member's part was what the next piece of the caller's share lacked. So one that
    // comes late shows, and one whose bytes wait behind it does not.
    uint64_t *waited_us;
    // If not NULL: called once for each leaf of the caller's own shares when it is summed, while it is
    // in the cache.
    void (*summed)(void *arg, struct interval at, const float *values);
    void *arg;
    enum group_way way; // All members agree
    // The first `computers` members bring nodes, and receive what is gathered. The last `owners` members own a share
    // each. A member may be both. 0: all members. At most the members of the window, or the process ends. All members agree.
    uint32_t computers, owners;
};

// The share of a member of `members`, for GROUP_SCATTER and GROUP_GATHER: whole leaves, equal but for one.
// It may be empty.
struct interval group_interval(uint64_t floats, uint32_t member, uint32_t members);

// The buckets of a sum, which follow from its floats, lanes and batch, and from the window. The share of
// a member in each, from bucket 0, the beginning of the vector, on: whole leaves; it may be empty. Of a
// small vector whose way is GROUP_ALL, one bucket, each member owns all. A member that the window does
// not have, or a bucket that the sum does not have, ends the process.
uint64_t group_buckets(group_t *self, const struct group_sum *sum);
struct interval group_share(group_t *self, const struct group_sum *sum, uint64_t bucket,
                            uint32_t member);

// Sums. On success the result is whole here; others may not have it yet. On a fault the result means
// nothing, the nodes are unchanged (a node that is the result is lost), and the window is broken:
// every later call fails alike until group_form. FAULT_TIMEOUT, FAULT_UNREACHABLE, FAULT_FORMAT
// (a member sent something of another size or kind), FAULT_INTERRUPTED: aborted, or called.
//
// Large plain vectors go without a copy. So if the call fails at one member, and that member then
// changes its vectors, the result of another may be wrong although its call returned 0: use a result
// only once all members have said that they have it.
int group_add(group_t *self, const struct group_sum *sum, struct why *why,
              struct group_blame *ret_blame);

// group_add in parts, for nodes that become final from their ends down:
//
//     group_begin ─▶ compute ─▶ group_offer ─▶ compute ─▶ group_offer ... ─▶ group_end
//
// Between the first and the last of them no other function is called but group_abort; the sum and its
// list of nodes stay as they are. After group_begin the numbers of the caller's nodes may still change.
// group_offer says that those from `from` on are final in all of its nodes, and moves what can be moved
// without waiting. The result may be written from there on; of a caller without nodes all of it, from
// group_begin on. group_end says that all are final, and waits: `timeout_ms` begins there. It returns
// what group_add would, also a fault that group_offer met. After a fault of group_begin no sum is
// begun.
int group_begin(group_t *self, const struct group_sum *sum, struct why *why,
                struct group_blame *ret_blame);
void group_offer(group_t *self, uint64_t from);
int group_end(group_t *self, struct why *why, struct group_blame *ret_blame);

// Says a word to every other member: at most GROUP_WORD_MAX bytes; more end the process. Copied; what the socket does not
// take at once goes out in later calls. One whose window is broken is told as well: it may hear that out
// (group_hear_out). FAULT_LIMIT: a member does not read its words.
int group_tell(group_t *self, const void *bytes, size_t count, struct why *why,
               struct group_blame *ret_blame);

// The next word of any member, in the order in which each said them; waits up to timeout_ms.
// *ret_bytes is good until the next call. FAULT_TIMEOUT: none came; FAULT_INTERRUPTED: called, or
// aborted: both leave the window whole; and the faults of group_add. A word of a member whose link
// ended later is still heard. Of each member up to 16 words (128 KiB) wait until they are heard; one
// that says more has its link ended. A word may be heard before a sum that was begun earlier is done.
//
// That a member's link has ended, or that its window is broken, is told once, behind the words that
// wait: FAULT_UNREACHABLE or FAULT_FORMAT. It does not break this window: the words of the others can
// still be heard, and a member may have said all that matters before it left.
int group_hear(group_t *self, uint32_t timeout_ms, struct why *why, struct group_blame *ret_blame,
               uint32_t *ret_member, const void **ret_bytes, size_t *ret_count);

// The same in a window that is broken, too, until the next group_form: what the others said before they stopped is heard
// out. That a link has ended is not told: FAULT_TIMEOUT then. `called` is not asked, and called_fd not watched; only
// group_abort ends it.
int group_hear_out(group_t *self, uint32_t timeout_ms, struct why *why, uint32_t *ret_member,
                   const void **ret_bytes, size_t *ret_count);

// ---- questions
//
// A member asks another one, which answers: a header each, and floats or none. So a trainer gives a parameter server
// its gradient, or gets parameters.
//
//     one that asks:     group_ask ─▶ group_ask (another) ─▶ group_hear_answer ─▶ group_hear_answer ...
//     one that answers:  group_hear_question ─▶ group_answer ─▶ group_hear_question ...
//
// In a window of questions each member either asks or answers: its first call of one of them decides, and one of the
// other kind, or a sum, ends the process. A member that asks has at most one question to each of the others under
// way, and any number of others may be asked at once. What goes between two of them waits for no third: a member
// that stops in the middle of its question or of our answer delays nobody else.
//
// None of this breaks a window, except that a broken one fails all calls. A link that ends, or that is ended for
// what came over it, concerns that member alone, and is told (FAULT_UNREACHABLE, FAULT_FORMAT). `gone` is always
// false here: to learn whether that process is dead, call group_dead, which may wait 200 ms. After FAULT_TIMEOUT and
// FAULT_INTERRUPTED all goes on with the next call. group_form ends what is under way.

struct group_letter {
    const void *header; // 1..GROUP_HEADER_MAX bytes; more or none end the process
    size_t count;
    const float *floats; // NULL: none
    uint64_t floats_count;
};

struct group_question {
    uint32_t to; // Not the caller
    struct group_letter
        said; // Header copied. The floats are unchanged until the answer, or the fault, is heard
    // The answer has as many floats, which come here, or none. Before it is heard they mean nothing.
    float *ret_floats;
    uint64_t answer_floats;
};

// Asks, and sends what can be without waiting. One question to a member at a time: a second one ends the process.
// FAULT_UNREACHABLE, FAULT_FORMAT: that member has left the window, and is not asked; the faults of a broken window.
int group_ask(group_t *self, const struct group_question *question, struct why *why,
              struct group_blame *ret_blame);

// The next answer of any member that was asked; waits up to timeout_ms. With 0, moves what can be moved. With nobody
// asked the process ends. *ret_answer is good until that member is asked again. FAULT_TIMEOUT: none came, and the
// first member that is still asked is named. FAULT_UNREACHABLE, FAULT_FORMAT: that member, which is named, will not
// answer. It is no longer asked; whether it has taken the question is not known.
int group_hear_answer(group_t *self, uint32_t timeout_ms, struct why *why,
                      struct group_blame *ret_blame, uint32_t *ret_member,
                      struct group_letter *ret_answer);

// The next question that is whole, of any member, in the order in which they became so; waits up to timeout_ms. A
// question has `floats` floats or none, else its sender's link is ended. Another number than in the window's first
// call ends the process. *ret_question, floats included, lies in a room lent to the caller until group_answer, which
// each question must have. The questions of other members can be heard meanwhile. FAULT_TIMEOUT: none came. That a
// member has left is told once, behind its own question: FAULT_UNREACHABLE, FAULT_FORMAT.
int group_hear_question(group_t *self, uint64_t floats, uint32_t timeout_ms, struct why *why,
                        struct group_blame *ret_blame, uint32_t *ret_member,
                        struct group_letter *ret_question);

// Answers the question of a member that was heard. Keeps header and floats: these are copied to the room of the
// question, and may lie there already. Does not wait: what the socket does not take goes out in later calls. To one
// that has left nothing is sent.
void group_answer(group_t *self, uint32_t member, const struct group_letter *answer);

// The members of the window in hand that are certainly dead, as far as this process can tell, as bits
// by place: the link with each was there and has ended, and its port refuses a connection. So one that
// lives is never among them. One that has just died may be missing: ask again. To be called after a
// fault, until the next group_form. Takes at most 200 ms, and far less if each port answers. `called`
// is not asked, and group_abort does not end it.
uint64_t group_dead(group_t *self);

// Makes the call in hand, or the next one, return FAULT_INTERRUPTED. Any thread.
void group_abort(group_t *self);
