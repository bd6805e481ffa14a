#pragma once
// group_inside -- what the sources of a group share. group.h is the manual; here is how it is built.
//
//     group.c     life, faults, the one place where it sleeps
//     links.c     who may link, connecting, accepting, handshakes
//     form.c      group_form
//     control.c   the control connection of a link: words, and what members tell each other
//     channel.c   the connections that carry sums: messages in and out
//     add.c       group_add: the turns over all links, and how a sum ends
//     sum.c       which message next, where it goes, when a segment can be added
//     tree.c      the adding
//     questions.c group_ask: what two members say to each other
//
// A link to a member is one control connection and `connections` channels. The control connection
// says whether the member is there, and its messages never wait behind floats. A channel that a
// broken window leaves with half a message is closed; group_form connects another.

#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/group/group.h"
#include "common/group/tree.h"
#include "common/net/callers.h"
#include "common/net/handshake.h"
#include "common/net/sealing.h"
#include "common/net/tcp.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define GROUP_PROTOCOL "shoal link 1" // Of handshakes

enum {
    HEAD_BYTES = 32,
    HEAD_MAX = HEAD_BYTES + SEALING_TAG,
    SEGMENT_MAX =
        512 << 10, // Bytes of a member's share of a bucket: sent, added and sent on in one
    PIECE_MIN =
        16 << 10,        // A segment is sent in pieces, one a connection, of at least so many bytes
    FLAT_MAX = 64 << 10, // Vectors up to so many bytes go from all to all, in one hop
    SPLICE_MIN = 4 << 20, // Plain vectors from so many bytes on go without a copy
    SLOTS_MAX = 8 << 20,  // Bytes of contributions that wait to be added
    AHEAD_MIN = 2,        // Segments that may wait while another is added
    AHEAD_MAX = 8,
    RECORD_MAX = 128 << 10,    // Bytes that are sealed at a time
    RECORD_ROOM_MAX = 3 << 20, // Of all channels; of more than 768 each has 4 KiB
    WORDS_MAX = 16,            // Of one member that nobody has heard yet; and their bytes
    WORDS_BYTES_MAX = 2 * GROUP_WORD_MAX,
    PEERS_MAX = 2 * GROUP_MEMBERS_MAX,
    PROBE_MS = 200, // So long an answer is awaited to whether a process is there
};

// ---- messages -------------------------------------------------------------------------------

// In its 32 bytes, little-endian: kind 1, node 1, record 2 (in KiB), length 4, window 8, number 8,
// offset 8. On a sealed connection the head is one record; the payload follows in records of
// `record` KiB, the last one shorter.
enum message_kind {
    // On channels, in a window of sums:
    MESSAGE_PART = 1, // Of node `node` of the sum `number`, from byte `offset` on, to its owner
    MESSAGE_RESULT,   // Of the sum, from its owner
    // On the control connection:
    // The sender is in `window`. number: 1 if its channels are to be replaced. offset: how many sums
    // of its window before it has done
    MESSAGE_FORM,
    MESSAGE_WORD,  // group_tell
    MESSAGE_DONE,  // The sender has all of sum `number`, and reads no more of it
    MESSAGE_BREAK, // The sender's window is broken. number: 1 + the member whose bytes it lacks
    // On channels, in a window of questions. number: of the question, from 1
    MESSAGE_QUESTION, // Its header. offset: how many bytes of floats come behind it
    MESSAGE_ANSWER,   // Alike
    MESSAGE_FLOATS,   // Of the question or the answer, from byte `offset` on
    MESSAGE_KINDS,
};

struct message {
    enum message_kind kind;
    uint32_t node, record, length;
    uint64_t window, number, offset;
};

void message_pack(const struct message *self, uint8_t ret_bytes[HEAD_BYTES]);
void message_unpack(const uint8_t bytes[HEAD_BYTES], struct message *ret_message);

// ---- connections ----------------------------------------------------------------------------

struct channel {
    int fd; // -1: none
    struct sealing seal, unseal;
    uint64_t window; // In which it was made
    bool may_read, may_write, hung_up;

    // Out. `iov` is what is left to write; of a sealed payload `from` is what is not sealed yet.
    uint8_t head_out[HEAD_MAX];
    struct iovec iov[2];
    int iov_count;
    const uint8_t *from;
    size_t from_left;
    uint8_t *room; // A sealed record
    int pipe[2];   // -1: none. On its way to the socket without a copy
    size_t piped;

    // In. `left` is what is to come of the payload, to `to`.
    uint8_t head_in[HEAD_MAX], tag[SEALING_TAG];
    size_t head_got, left, record_got;
    struct message in;
    uint8_t *to;
    bool reading, held; // held: its message cannot be taken yet
};

struct control {
    int fd; // -1: none
    struct sealing seal, unseal;
    bool may_read;
    uint8_t head_in[HEAD_MAX];
    size_t head_got;
    struct message in;
    struct word *word; // Being read
    size_t word_got;
    uint8_t *out; // Not written yet
    size_t out_count, out_room;
};

struct word {
    struct word *next;
    struct peer *from;
    size_t count;
    uint8_t bytes[]; // count + SEALING_TAG
};

// A question or an answer on its way: its header, then its floats in pieces.
struct letter {
    uint8_t header[GROUP_HEADER_MAX];
    uint32_t header_count; // 0: not known yet
    bool header_done;      // Given to a channel, or here
    uint8_t *floats;
    uint64_t bytes, at; // Of the floats; how many of them are given to channels, or are here
    uint64_t ready;     // Out: how many may be given
    uint8_t *taken;     // In: a bit for each piece that has a place, in taken_room bytes
    size_t taken_room;
};

// What goes between the caller and another member.
//
//     one that asks:     NONE ─group_ask─▶ ASKED ─answer is whole─▶ ANSWERED ─group_hear_answer─▶ NONE
//     one that answers:  NONE ─its header─▶ COMES ─question is whole─▶ WAITS ─group_hear_question─▶ LENT
//                                             ▲                                                       │
//                                             └── next header ── ANSWERS ◀────── group_answer ────────┘
enum talk_phase {
    TALK_NONE,
    TALK_ASKED,
    TALK_ANSWERED,
    TALK_COMES,
    TALK_WAITS,
    TALK_LENT,
    TALK_ANSWERS,
};

struct talk {
    enum talk_phase phase;
    uint64_t number;       // Of the newest question, from 1
    uint64_t wanted_bytes; // Of the answer's floats, if it has any
    struct letter out, in;
    uint8_t *room; // Of one that answers: for the question's floats, then for those of the answer
    size_t room_bytes;
    uint64_t whole_at;  // Rises with each question and answer that became whole
    uint32_t turn_left; // Messages that it may yet be given in this turn
    bool end_told;      // By group_hear_question
};

// Another member, or one that is expected.
struct peer {
    struct group_member who;
    bool we_connect; // Our key is the smaller one
    bool expected;
    uint32_t expected_at; // Its index in the list of group_expect
    uint32_t place;       // In the window; UINT32_MAX: no member
    struct control control;
    struct channel *channels; // [connections]
    uint32_t words, words_bytes;
    uint32_t idle_messages; // Since our window was formed: neither words nor DONE of a further sum

    // Its link. fault: why its bytes end in this window (0: they do not), `said` is the sentence.
    int fault;
    char said[256];
    bool was_linked; // Its link stood once
    bool silent;     // Since its link stands, something of it was waited for in vain
    bool dirty;      // Its channels may hold half a message, or one has ended
    bool form_said, renewed;
    uint64_t formed; // The newest window of which it has said FORM, and what it said
    bool formed_dirty;
    uint64_t left_sums; // How many sums it had done when it left this window
    int form_fault;     // Why it cannot be linked; form_final: trying again is of no use
    bool form_final;
    uint64_t retry_at_ms, probe_at_ms;
    uint32_t pause_ms;

    // The window.
    bool broke; // It said BREAK, for member broke_for - 1
    uint32_t broke_for;
    uint64_t moved_ms; // Since its end is known: when something of it was last read
    bool end_told;     // By group_hear
    uint64_t done;     // 1 + the newest sum of which it has said DONE

    // The sum in hand. Cursors: what of our part and our result it is to be sent next.
    struct cursor {
        uint64_t turn, offset; // Which bucket, from the end; byte of the segment
        uint32_t node;
    } part, result;
    uint64_t results_got;        // Bytes
    size_t parts_got[AHEAD_MAX]; // Bytes of each segment that waits
    uint64_t parts_whole;        // Bytes of its parts that have come, of all segments
    // A bit for each piece that was given its place: of its share [turn], and of its parts that wait.
    // A segment has at most SEGMENT_MAX / PIECE_MIN = 32 pieces.
    uint32_t *results_taken, parts_taken[AHEAD_MAX][LANE_NODES_MAX];
    size_t results_room;
    uint8_t *slots; // [ahead][nodes][segment]
    bool done_said;

    struct talk talk;
};

struct byte_range {
    uint64_t begin, end;
};

struct sum {
    const struct group_sum *ask;
    uint64_t bytes;           // Of the vector
    uint64_t whole, got;      // Of the result, those that the caller is to have; how many are here
    uint64_t ready;           // Our nodes are final from this byte on
    uint64_t bucket, buckets; // Bytes of a bucket; how many there are
    uint64_t added;           // Turns of which our segment is added, or has no bytes
    size_t segment, piece;
    uint32_t owners, first_owner; // How many own a share; the place of the first
    uint32_t ahead;
    bool flat, spliced;
};

static inline uint64_t range_length(struct byte_range range) { return range.end - range.begin; }
static inline size_t at_most(uint64_t count, size_t most)
{
    return count < most ? (size_t)count : most;
}

struct attempt {
    struct attempt *next;
    int fd;
    bool connects, stands; // stands: the TCP connection does
    struct peer *peer;     // Of one that connects
    uint32_t channel;
    uint64_t begun_ms, deadline_ms;
    struct sockaddr_storage caller; // Whose answer was counted (callers.h)
    struct handshake handshake;
};

struct group {
    struct group_options options;
    struct handshake_self self;
    struct key key;
    int listener, abort_fd;
    uint16_t port;

    struct peer *peers[PEERS_MAX];
    uint32_t peer_count;
    uint64_t expected_self; // Our own bit in the list of group_expect; 0: we are not in it
    bool idle;              // In group_serve, which has time
    bool forming;           // In group_form
    bool hears_out;         // In group_hear_out, from which nobody is called away
    struct peer *members[GROUP_MEMBERS_MAX]; // NULL at our place
    uint32_t member_count, place;
    struct attempt *attempts; // The newest first
    struct attempt *judged;   // Whose HELLO links_judge is asked about
    struct callers callers;   // How often a handshake is answered that comes to nothing
    uint64_t accept_at_ms;

    uint64_t window, form_ms;             // form_ms: when it was begun
    uint64_t next_sum, done, done_before; // Sums; those done, in this window and the one before it
    int fault;                            // Of the window; and what to say of it
    struct why why;
    struct group_blame blame;
    struct word *first_word, *last_word, *told; // told: what group_hear gave last

    enum traffic {
        TRAFFIC_NONE,
        TRAFFIC_SUMS,
        TRAFFIC_ASKS,
        TRAFFIC_ANSWERS
    } traffic;               // Of this window
    uint64_t question_bytes; // Of the floats of a question, if it has any
    uint64_t whole_count;    // Questions and answers that became whole

    struct tree tree;
    struct sum sum;
    uint8_t *slots;
    size_t slots_bytes;

    struct pollfd *polls;
    struct waiter *waiters;
    size_t poll_room, poll_count;
};

// ---- group.c --------------------------------------------------------------------------------

// Ends this window for us: remembers the fault, tells the others. Returns the fault.
int group_break(group_t *self, int fault, uint32_t member, bool gone, struct why *why,
                struct group_blame *ret_blame, const char *format, ...)
    __attribute__((format(printf, 7, 8)));
// The fault of a window that is broken, again. 0: it is not.
int group_again(const group_t *self, struct why *why, struct group_blame *ret_blame);

// "member 2 (0123abcd)": for the words of an error.
enum { PEER_NAME_MAX = 32 };
const char *peer_name(const struct peer *peer, char text[PEER_NAME_MAX]);

// Its bytes end here, for this window. Keeps the first reason.
void peer_end(struct peer *peer, int fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Why nothing more comes of a peer that has left the window, and who is to blame: a fault.
int peer_why(group_t *self, struct peer *peer, struct why *ret_why, struct group_blame *ret_blame);
// group_break with that.
int group_break_for(group_t *self, struct peer *peer, struct why *why,
                    struct group_blame *ret_blame);
// It takes and sends nothing more of this window: its link has ended, it said BREAK, or it is in a
// later window.
bool peer_has_left(const group_t *self, const struct peer *peer);

// Sleeps until something moves or the time is over, and serves handshakes and control connections.
// Marks the channels that may be read or written, if `channels`. FAULT_INTERRUPTED, or 0.
int group_wait(group_t *self, uint64_t until_ms, bool channels, struct why *why);
// tcp_probe of peers, at most GROUP_MEMBERS_MAX, all at once: at most PROBE_MS. Meanwhile handshakes are
// served, as the others may probe us; it ends early, as without an answer, if the caller is called away.
void group_probe(group_t *self, struct peer *const *peers, uint32_t count, int *ret_errors);

// ---- links.c --------------------------------------------------------------------------------

enum handshake_refusal links_judge(void *arg, const struct handshake_party *from,
                                   const struct handshake_purpose *purpose);
void links_accept(group_t *self);
bool links_may_accept(const group_t *self); // Whether the listener is watched
void links_move(group_t *self, struct attempt *attempt);
void links_begin_due(group_t *self);         // To those that are expected; drops what is late
uint64_t links_next_ms(const group_t *self); // When it, or group_form, has something to do
void links_destroy(group_t *self);

struct peer *links_find(const group_t *self, const struct key *key, uint64_t instance);
struct peer *links_peer_new(group_t *self, const struct group_member *who);
int links_public(const char *address, struct why *why); // FAULT_CONFIG, and its sentence
int links_check(const group_t *self, const struct group_member *who, struct why *why);
void links_drop_others(group_t *self); // Peers that are neither members nor expected
bool links_is_attempted(const group_t *self, const struct peer *peer, uint32_t channel);
void links_connect(group_t *self, struct peer *peer, uint32_t channel);
// The link with a peer is not tried again for a while: twice as long as the time before, in a window.
void links_pause(struct peer *peer);
// A link that does not come to stand: the sentence, and whether trying again is of any use.
void links_refuse(struct peer *peer, int fault, bool final, const struct why *why);
// Whether an error of connect says that trying again is of no use.
bool links_refuses(const group_t *self, const struct peer *peer, int error);
// A window is formed: attempts have no more than 5 s left, and ours at a channel of an earlier window end.
void links_hurry(group_t *self);

// ---- form.c ---------------------------------------------------------------------------------

// When group_form has something to do for a member's link, though nothing moves.
uint64_t form_next_ms(const group_t *self, const struct peer *peer);

// ---- control.c ------------------------------------------------------------------------------

// False: more waits to be written than a member may leave unread.
bool control_say(group_t *self, struct peer *peer, const struct message *message,
                 const void *payload);
void control_write(struct peer *peer);
void control_read(group_t *self, struct peer *peer);
void control_close(struct peer *peer);
void words_drop(group_t *self);

// ---- channel.c ------------------------------------------------------------------------------

void channel_close(struct channel *self);
// Writes what can be without waiting; asks sum_next or talk_next for messages. True: something moved.
bool channels_write(group_t *self, struct peer *peer);
bool channels_read(group_t *self, struct peer *peer);
bool channels_idle(const group_t *self, const struct peer *peer); // Nothing is half written

// ---- sum.c ----------------------------------------------------------------------------------

// How many nodes a member has in the sum in hand.
static inline uint32_t sum_brings(const group_t *self, uint32_t member)
{
    return self->sum.ask->way == GROUP_GATHER ? 0 : self->tree.brings[member];
}
// Whether owners send this member what they own. Of a small vector each member adds all. A vector is gathered for
// those that compute.
static inline bool sum_takes_results(const group_t *self, uint32_t member)
{
    const struct group_sum *ask = self->sum.ask;
    if (self->sum.flat || ask->way == GROUP_SCATTER) return false;
    return ask->way == GROUP_ALL || !ask->computers || member < ask->computers;
}
// The next message for a peer, and its payload. False: there is none now.
bool sum_next(group_t *self, struct peer *peer, struct message *ret_message,
              const uint8_t **ret_from);
// Where the payload of a message goes. SUM_HELD: it must wait. SUM_WRONG: it is none of ours; the
// peer's link is ended.
enum sum_place { SUM_TAKEN, SUM_HELD, SUM_WRONG };
enum sum_place sum_place(group_t *self, struct peer *peer, const struct message *message,
                         uint8_t **ret_to);
void sum_arrived(group_t *self, struct peer *peer, const struct message *message);
void sum_begin(group_t *self, const struct group_sum *ask);
uint64_t sum_share_bytes(const group_t *self, uint32_t member); // Of a member, in all buckets
size_t sum_next_bytes(const group_t *self); // Of our next segment; 0: all are added
bool sum_parts_are_sent(const group_t *self, const struct peer *peer);
bool sum_results_are_sent(const group_t *self, const struct peer *peer);
// Adds our next segment if all of it is here.
bool sum_add_segment(group_t *self);

// ---- questions.c ----------------------------------------------------------------------------

// As sum_next, sum_place and sum_arrived, in a window of questions.
bool talk_next(group_t *self, struct peer *peer, struct message *ret_message,
               const uint8_t **ret_from);
enum sum_place talk_place(group_t *self, struct peer *peer, const struct message *message,
                          uint8_t **ret_to);
void talk_arrived(group_t *self, struct peer *peer, const struct message *message);
bool talk_is_under_way(const struct peer *peer); // Its channels may hold a part of it
void talk_end(struct peer *peer);                // With the window; takes the room back
