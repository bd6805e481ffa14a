#pragma once
// sim -- a whole run of Shoal in one process, in virtual time, from one seed.
//
//     coordinator, broker, trainers, witnesses, checkpointer, data provider, operator: the cores of
//     the field, linked as they are; everything else is the simulator's
//
//     core ──effects──▶ ports.c ──▶ network.c   mail and news, by way of the broker's core
//      ▲                        ├──▶ disk.c      ledger, journals, checkpoints: what a crash leaves
//      │                        └──▶ learner.c   compute and bulk transfer: a delay and a hash
//      └──messages── world.c ◀──────── flights, in order of time       check_*.c: what must hold
//                     faults.c: what goes wrong now and then
//
// The network is a priority queue, a crash is forgetting a struct, parameters are a hash. Chance
// comes from the seed alone (plan.c draws how hostile the seed's world is), so the same seed gives
// the same run. A seed has two parts: everything breaks until `plan.heal_ms`; then all is healed
// and the run must get on. The checker's picture of the run (struct ghost) is made of records,
// messages and what the learners did; where it looks into a core, it holds what that believes
// against this picture. Who checks is checked, too: a run in which
// most lie (`sim --canary`) must break, and so must each bug of mutants.sh.
//
// What only one pace knows, struct sim_pace has: of rounds check_rounds.c; of windows check_windows.c, with its
// invariants W1 to W10, and windows_learner.c, the exchange of a group; of leases check_leases.c, with L1 to L9, and
// leases_learner.c; of another pace a file of its own. paces.def registers what is linked beside the paces of the product, and plan.c gives it its seeds.
//
// The 28 invariants, and where they are held:
//
//    1  record numbers rise          disk.c  "what is true is on disk"; a log is only appended to
//    2  nothing said before durable  check_words.c  check_recorded, check_run, check_roster, BEAT
//    3  one content for a number     check_words.c  "what is published is what is on record"
//    4  epoch, step never go back    check_words.c  "epoch and step never go back", hear_phase in check_records.c
//    5  each links the one before    check_rounds.c   "each state links the one before"
//    6  one owner, accepted once     check_words.c check_alone, check_share; check_rounds.c  finish
//    7  no sample left out           check_records.c check_dealt; check_rounds.c return_rest;
//                                    check_words.c check_table
//    8  equal steps, equal bits      check_words.c  check_stepped, check_applied
//    9  replicas are the log         check_rounds.c  keep_step, held against by 8 and epoch ends
//   10  distinct, elected voters     check_rounds.c   check_witnesses, check_voters, count_votes
//   11  two thirds for a result      check_rounds.c   check_accepted
//   12  two claims eject             check_guilt.c  check_shown, check_claim_copy, check_punished
//   13  nobody honest is ejected     check_guilt.c  check_ejection
//   14  the ejected are not heard    check_guilt.c check_finding; check_records.c hear_member;
//                                    check_rounds.c check_accepted, check_clients,
//                                    check_witnesses; hear_vote
//   15  recovery is a prefix         disk.c  disk_recover
//   16  ... whenever it is cut       the same; a start is a step like any, and dies within (world.c)
//   17  no step without a quorum     check_rounds.c   check_accepted, "a void accepts nothing"
//   18  phases move as drawn         check_records.c  may_enter; check_rounds.c may_enter, hear_round, hear_commit
//   19  checkpoints are committed    check_words.c check_saved; check_records.c hear_checkpoint
//   20  a commit applies whole       check_words.c  check_applied; check_windows.c (all of a group or none)
//   21  queues are bounded           network.c push, learner.c store_add, check_words.c check_room
//   22  no timer spins               world.c  count_wake, turns
//   23  requests are answered        check_words.c  check_answered; members' own retries by 24
//   24  once healed it gets on       world.c  live, due_ms; check_guilt.c check_at_large
//    -  a restore gives up what came later, and nothing else: check_restore.c
//    -  a run whose ledger is lost is another run: check_words.c check_one_run; check_restore.c
//   25  a seed is a run              sim.c  run_checked, one in a hundred runs twice
//   26  nobody late sets the pace    check_rounds.c  check_pace
//   27  letters do not wait long     work.c  work_next
//   28  equal versions, equal rosters   check_words.c  check_same_roster

// The threats, and who plays them here, or which test elsewhere does:
//
//    T1  wrong result                liar.c liar_makes_up
//    T2  said again                  liar.c copy_result; intruder.c replay
//    T3  two claims of a round       liar.c twist_claim
//    T4  withheld                    liar.c liar_withholds, liar_serves
//    T5  malformed payload           outside: unit and fuzz payload, adversary_test "nan"
//    T6  huge or endless letters     outside: fuzz wire.c, unit bulk_limits_test, live floods_test
//    T7  lying witness               liar.c twist_vote
//    T8  false hits of a bloom       none counts: unit coordinator_test, bloom_test
//    T9  quorum rounded down         liar.c twist_vote; all sizes: unit quorum_test
//   T10  unelected voter             intruder.c intruder_vote, act_unbidden, spam
//   T11  false checkpoint            liar.c twist_checkpoint; its bytes: unit byte_flips_test
//   T12  false samples               outside: unit proof_test, live provider_test, web_data_test
//   T13  who is not listed           outside: live admission_test
//   T14  floods                      intruder.c spam; of bytes and connections: live floods_test
//   T15  seeds chosen by somebody    check_rounds.c "the key fits the lock"
//   T16  false count of work         check_rounds.c "a commit counts its samples"
//   T17  names that lead elsewhere   outside: unit checkpoint_test, live systemd_test.sh
//   T18  false accuser, accomplices  liar.c twist_finding, partial; intruder.c find_unasked
//   T19  another coordinator         impostor.c
//   T20  late, always or now and then   learner.c is_belated, liar.c liar_delay_ms; check_rounds.c "nobody late sets the
//                                      pace"
//   T21  greed                       greedy.c; work.c "no letter to the coordinator waits for long", none "is refused"
//   T22  loose words in a window     loose.c

#include "actors/checkpointer/checkpointer.h"
#include "actors/coordinator/coordinator.h"
#include "common/pace/evidence.h"
#include "actors/data-provider/data_provider.h"
#include "actors/trainer/trainer.h"
#include "actors/witness/witness_actor.h"
#include "broker/post_office.h"
#include "common/pace/rounds/rounds.h"
#include "common/pace/rounds/rounds_member.h"
#include "common/run/holder.h"
#include <setjmp.h>

enum {
    RESTORES_MAX = 8,
    PASTS_MAX = 64,
    PASTS_WHEN_LOST_MAX = 4, // With so many no ledger is lost any more
    NODES_MAX = 16,
    COORDINATOR = 0,
    NOBODY = 255,
    RECORDS_MAX = 8192,
    ROUNDS_MAX = 2048,
    POSITIONS_MAX = 1 << 16,
    BLOBS_KEPT_MAX = 1024,
    PINS_MAX = 3,
    CLAIMS_MAX = 8192,
    GHOST_SEEN_MAX = 512,
    GHOST_JOB_MAX = 64,
    LETTERS_MAX = 32,
    GREEDY_KEPT = 8,
    LATE_PROOF_MS = 8000,
    SIM_PORT = 1000,
    RESIDUAL_BYTES = 400,
    PAYLOAD_BYTES = 1000, // Of every result
    GHOST_PACE_BYTES = 64 << 10,
    FLIGHTS_MAX = 20000, // Letters under way, of all nodes
    EFFECTS_MAX = 4096,
    SCRATCH_BYTES = 4 << 20,
};

// ---- what the seed draws (plan.c) ---------------------------------------------------------------

enum fault_kind {
    LOSS,
    DUPLICATE,
    DELAY,
    PARTITION,
    CRASH,
    CUT,
    REBOOT,
    FREEZE,
    LEAVE,
    BROKER_CRASH,
    LIE,
    PAUSE,
    DAMAGE,
    WRONG,   // Results that a liar's learner made up
    REPLAY,  // Old letters of a liar's own, sent again
    FORGERY, // What nobody asked it for, or elected it to say
    SPAM,
    SKEW,      // Letters of another version of the protocol
    FULL_DISK, // Stores that failed
    EJECTION,
    BEHIND,
    RESTORE,     // The owner takes the run back to its checkpoint
    LOSS_OF_ALL, // Every replica dies at once
    TORN,        // Records and snapshots that a crash fell into
    AMNESIA,     // The whole ledger lost: the run is begun anew under its name
    LOST_JOURNAL,
    THIN_LINE, // Fetches of a residual that did not come through
    SPOILT,    // States of trainers that changed by themselves
    IMPOSTURE, // What only the coordinator says, by another key
    BELATED,   // Results of an honest trainer that is late on purpose
    COPIED,    // Memory saves on record
    GREED,     // Seconds in which a trainer says as much as it may
    DECAYED,   // Saves that cannot be read any more
    ENTERED,   // Windows that a trainer entered without a state
    FAULT_KINDS
};

// What a liar does that lies so: each by chance, and now and then tells the truth.
enum lie {
    LIES_IN_VOTES = 1, // Names what was not claimed, leaves out, votes twice
    LIES_TWICE = 2,    // One claim here, another there
    LIES_ABOUT_DIGESTS = 4,
    LIES_IN_RESULTS = 8, // Made up, copied from another, of an earlier round, nothing
    LIES_IN_FINDINGS = 16,
    LIES_BY_SILENCE = 32,    // Reveals or finds nothing, serves its blobs to some
    LIES_IN_BASES = 64,      // Claims to have begun with other parameters
    LIES_IN_RESIDUALS = 128, // ... with a residual that no commit led to. Both: too large
                             // a result, or that it is a residual that somebody showed
    LIES_IN_REVEALS = 256,   // Another residual, another claim
    LIES_BY_REPLAY = 512,
    LIES_UNBIDDEN = 1024,     // Votes, finds, controls though nobody elected it
    LIES_IN_TESTIMONY = 2048, // Others' claims of other rounds, other runs, other births
    LIES_BY_SPAM = 4096,
    LIES_ALL = 8191,
    LIES_BY_DELAY =
        8192, // Holds votes, findings and reports back, up to twice as long as is waited for them
};

struct plan {
    uint32_t trainers, witnesses; // Besides one checkpointer and one data provider
    uint32_t servers;             // Parameter servers; one of them may stand by
    bool checkpointer;
    uint64_t heal_ms;                                       // From then on nothing fails any more
    uint32_t loss, duplicate, delay;                        // Of 1000 letters
    uint32_t delay_ms;                                      // At most, of a delayed one
    uint32_t late_proofs;                                   // Of 1000 claim_copies
    uint32_t partition, freeze, leave, broker_crash, pause; // Of 1000 seconds (and nodes)
    uint32_t crash;                                         // Of 1000 seconds and nodes
    uint32_t damage;         // Of 1000 starts of the checkpointer: its newest are unreadable;
                             // and of 4000 folders read
    uint32_t behind;         // Of 1000 starts of the coordinator: its disk is an older copy
    uint32_t amnesia;        // ... or empty, and no copy is left
    uint32_t lose_journal;   // Of 1000 starts of a member that has one
    uint32_t cut;            // Of 10000 steps: the crash falls between two of its effects
    uint32_t restore;        // Of 1000 seconds in which there is a restore point
    uint32_t lose_all;       // Of 1000 seconds with one: all copies of what came later
    uint32_t slow;           // Node that computes ten times slower; NOBODY
    uint32_t thin;           // Honest trainer whose line never carries a residual; NOBODY
    uint32_t liars;          // Nodes that lie, as bits: fewer than a third
    uint32_t lies;           // How: of enum lie
    bool collude;            // They cover for one another
    bool stubborn;           // They lie on when all else is healed
    bool impostor;           // Somebody says that it is the coordinator
    uint32_t late;           // Trainer that is late for ever; NOBODY
    uint32_t late_every;     // ... in one round of so many
    uint32_t greedy;         // Trainer that says as much as it may; NOBODY
    uint32_t loose;          // Trainer that says anything of where it stands in a window; 0: nobody
    uint32_t work_times;     // The coordinator's work takes so many times as long as in cost.h
    bool tickets;            // Members know the owner's key from the beginning
    uint32_t skew;           // Of 1000 letters, as they arrive
    uint32_t full;           // Of 1000 seconds and nodes: its disk is full for a while
    uint32_t train_ms;       // At most, of an ordinary trainer
    uint32_t snapshot_every; // Records
    struct rules rules;
};

// ---- what only one pace knows (paces.c) ----------------------------------------------------------

struct pin;
struct sim;

struct sim_pace {
    // In one seed of so many this pace is in the place of rounds; 0: it is rounds.
    uint32_t one_in;
    // Sets the rules' strategy, when all else is drawn, and takes out of the plan what it does not have.
    void (*draw)(struct sim *self);

    // A job of the learner, done after `takes` ms. The kinds of all paces (BUILD, LOAD, SAVE, PIN) are done
    // elsewhere. False: it is no job of this pace.
    bool (*learn)(struct sim *self, uint8_t id, uint16_t kind, const void *job);
    uint64_t (*takes_ms)(struct sim *self, uint8_t id); // (optional: as rounds' jobs do)
    void (*built)(struct sim *self,
                  uint8_t id); // What a learner says beside BUILT. (optional: nothing)

    // ---- the checker ----

    // A PHASE record that ends a phase in which steps are made.
    bool (*may_enter)(const struct sim *sim, uint8_t from, uint8_t to);
    void (*entered)(struct sim *sim, uint8_t to); // A PHASE record is on disk (optional)
    // What counts as rounds when a seed has seen enough (optional: the number of the newest round)
    uint64_t (*rounds)(const struct sim *sim);
    bool (*admits)(const struct sim *sim); // A trainer may enter in mid-phase (optional: never)
    // The coordinator takes the run back by itself. (optional: never)
    bool (*may_restore)(const struct sim *sim);
    // Where a restore may go back to: its newest checkpoint, unless this changes it. `lost`: the state is, so it
    // may be the run's own doing; `own`: it is, as no order of the owner is open. What the restore gives up is
    // forgotten. (optional)
    void (*way_back)(struct sim *sim, const struct wire_record_restore *record, bool lost, bool own,
                     struct pin *back);
    // This crash leaves somebody who holds what is committed. (optional: the commits lead to it)
    bool (*may_lose)(const struct sim *sim, uint8_t id);
    // Something is still to come before the run may end, though it gets on. (optional: nothing)
    bool (*awaits)(const struct sim *sim);
    // A record that is of this pace, as it becomes durable. It moves the ghost on: the phase, the round, the
    // step with its digest, the samples. Other kinds are none of its business.
    void (*hear_record)(struct sim *sim, uint16_t kind, const void *record);
    // The coordinator pauses the run by itself. (optional: never)
    bool (*may_pause)(const struct sim *sim);
    // An EPOCH_END: the run is bound to this digest from now on. (optional: that of the commits)
    void (*pinned)(struct sim *sim, const struct wire_epoch_end *end);
    // What goes out in place of the truth, or beside it; NULL: the truth alone. (optional)
    struct parcel *(*twist)(struct sim *sim, uint8_t id, const struct effect *effect);
    // What a node says, before it does; hears, before it acts; is, after a step; and a new life. (optional)
    void (*said)(struct sim *sim, uint8_t id, const struct effect *effect);
    void (*heard)(struct sim *sim, uint8_t id, const struct msg *in);
    void (*stepped)(struct sim *sim, uint8_t id);
    void (*rebooted)(struct sim *sim, uint8_t id);
};

extern const struct sim_pace *const sim_paces[]; // In the order of `paces`

// ---- parcels and flights (network.c) ------------------------------------------------------------

// A packed body with its head; counted, since a piece of news goes to many.
struct parcel {
    uint32_t refs, bytes;
    uint16_t kind;
    struct key sender;
    uint64_t incarnation, seq;
    bool forked; // Said by a coordinator whose disk fell behind
    uint8_t body[];
};

enum flight_to {
    TO_BROKER_MAIL,
    TO_BROKER_NEWS,
    TO_NODE_MAIL,
    TO_NODE_NEWS,
    TO_LEARNER,
    TO_SAVER, // A checkpoint has been written
    TO_FETCHER,
    TO_POST,
    TO_CORE, // What a worker says
};

struct flight {
    uint64_t at_ms, seq;
    enum flight_to to;
    uint8_t node;                  // That sent it (to the broker), or that is to hear it
    uint32_t life;                 // Of that node; 0: whichever
    char name[ACTOR_NAME_MAX + 1]; // Receiver's on the way to the broker, sender's after it
    struct parcel *parcel;
};

struct broker {
    bool up;
    uint64_t up_again_ms, instance;
    struct parcel *kept[256]; // The last of each state topic, by kind
};

// ---- nodes (world.c) ----------------------------------------------------------------------------

struct pin {
    uint64_t step;
    struct hash digest;
    uint64_t epoch, born_unix_ms; // Of a checkpoint
};

// A save in pieces, in the folder that all see (saves.c): which parts are written, as bits.
enum { SAVES_MAX = 64 };
struct sim_save {
    uint64_t born_unix_ms, step, window, written;
    uint32_t workers;
    bool whole;
    bool tried, decayed; // Somebody has read it; and found that it cannot be read
    struct hash digest;
};

// A window in the learner's hands, and the process that its links lead to at each place.
enum { WINDOW_SAMPLES_MAX = 512 };
struct sim_window {
    uint64_t number, step, end;
    uint64_t samples_done, taken; // Before it; and by its steps so far
    uint32_t place, count;
    uint8_t nodes[NODES_MAX];
    uint64_t instances[NODES_MAX];
    uint32_t samples_count;
    struct interval samples[WINDOW_SAMPLES_MAX];
    uint64_t born_unix_ms, spare; // Of its saves
    uint64_t kept_step, kept_window;
    bool drops;
};

// Whom a learner links with, and what it has told of that (windows_learner.c).
struct sim_links {
    uint64_t number, told_number, told, turn;
    uint32_t count;
    uint8_t nodes[NODES_MAX];
    uint64_t instances[NODES_MAX];
};

// The share of the optimizer's state that a learner keeps (learner_shares.c).
struct sim_shares {
    uint32_t owner, owners; // Share `owner` of so many; owners 0: none was taken
    bool computes;          // It owns no share: servers do
    bool pulls;             // It entered without a state, and has no parameters yet
    bool only;              // The other shares are not here
    bool lost;              // Another share is wanted, and `only`
    bool dropped;           // It could not say where its window ended: nobody counts on its state
    bool ends;              // Somebody's HAVE of the step in hand: it knows no further window
    bool gathering, gathered;
    uint64_t met; // By place: has gathered all, too
};

// The copy of a share in a learner's memory, and of those of its predecessors, as places (copies.c). step 0: none.
struct sim_copy {
    uint64_t step, window;
    struct hash digest;
    uint32_t place, count;
    uint64_t has;
    bool hashed;
    bool
        apart; // Members copied at different moments: `digest` is that of its own share, until all is here
};
struct sim_copies {
    struct sim_copy kept, newest; // On record, as far as it has heard; not yet
    uint64_t listed;              // Places whose HAVE has told that their copies are hashed
    bool told;                    // LISTED
    uint64_t since_ms;            // When `newest` was made
    bool somebody, early; // Copies, by the HAVE of the step in hand; and by those of the next one
    uint64_t copied, copied_window;
};

// What a learner is at with the other members of its window (windows_learner.c).
struct exchange {
    struct sim_links links;
    uint32_t count; // Windows in hand; the first is the present one
    struct sim_window windows[2];
    struct holder holder;
    bool arrived, broken; // Its contribution is out; it has given up
    uint64_t since_ms;    // When it arrived, or began
    uint64_t turn;        // Of the words to itself that count
    struct sim_shares shares;
    struct sim_copies copies;
    uint64_t taken, taken_window; // The newest step of which its part of a save was taken
    bool writes,
        somebody_writes; // An earlier save: here; somewhere, by the HAVE of the step in hand
};

// The group that a learner has in hand, and a trainer's task (leases_learner.c).
struct sim_group {
    uint64_t number, step; // number 0: none
    uint32_t place, count, servers;
    uint8_t nodes[NODES_MAX];
    uint64_t instances[NODES_MAX];
    bool formed;                     // Its links stand
    bool broken, frozen;             // It has said so; a server applies no push any more
    struct hash began;               // The state when it began
    struct hash share;               // Of a server: all pushes since; none: there were none
    uint64_t lease, newest, samples; // lease 0: no task is in hand
    uint32_t pushed;                 // To so many servers
    uint64_t forming_ms;             // When it was taken
    uint64_t since_ms;               // When it began to push to the next one
    uint64_t turn;                   // Of the words to itself that count
    struct wire_close_group closing; // The newest attempt; 0: none
    uint64_t closing_ms;
    bool met;              // All of that attempt are together
    uint64_t born_unix_ms; // Of its saves
};

struct learner {
    bool built, holding, has_candidate, staged, has_previous;
    uint64_t step, busy_until_ms, generation; // Generation: of the residual, new with every load
    uint64_t saving_until_ms;                 // A checkpoint is written beside the other jobs
    struct hash digest, residual, candidate, candidate_to, previous;
    uint64_t loaded_step; // Where its history begins
    // Its state has changed by itself, before this step, in this leaf; until it loads another one.
    bool differs, is_named; // Named: a record says so
    uint64_t differs_from;
    uint32_t leaf;
    struct pin pins[PINS_MAX], stage;
    uint32_t pins_count;
    struct exchange exchange;
    struct sim_group group;
    uint32_t tasks_failed; // In a row
};

enum worker { LEARNER, FETCHER, WORKER_COUNT };

struct store {
    uint32_t count;
    struct wire_blob blobs[BLOBS_KEPT_MAX];
};

struct node {
    uint8_t role;
    struct key key;
    char name[ACTOR_NAME_MAX + 1];
    bool up, leaving, quits, ended; // Ended: for good, the run being finished
    uint32_t life;
    uint64_t skew_ms; // Its clock shows now + skew, modulo 2^64
    uint64_t alarm_ms, frozen_ms, up_again_ms, patience_ms, hello_ms;
    uint64_t full_ms; // Until then its disk takes nothing
    uint64_t instance, incarnation, seq, broker_instance;
    bool has_genesis; // A folder with the first parameters
    void *state;      // Of the core: the system's memory, zeroed for each life
    size_t state_bytes;
    // What a crash leaves.
    bool has_journal;
    struct wire_journal journal;
    uint64_t promised_round; // The newest when its journal was lost: what late news of that
                             // or an older one make it say is not held against it
    struct pin checkpoints[PINS_MAX + 1]; // By step; and the one that a restore needs
    uint32_t checkpoints_count;
    struct store store; // Cleared by a crash, unless it is the checkpointer's
    struct learner learner;
    uint64_t said_ms[WORKER_COUNT]; // When the newest answer of each is heard
    uint64_t turns, turn_ms;        // Steps at the same instant: a timer that spins is seen here
    uint64_t wakes, wakes_ms;       // By the clock, in the second that began then
    uint64_t born_unix_ms;          // Of the run that this life was admitted to first
    bool was_ejected;               // From a run whose ledger was lost: late word of it may come
};

// ---- what must hold (check_*.c): kept outside the cores, fed by what is durable and what is said
// --

struct ghost_claim {
    struct hash name, payload, residual_from, residual_to;
    uint64_t round, generation;
    uint8_t author; // Node
    bool wrong;     // Nobody who recomputes it comes to the same
};

struct ghost_commit {
    uint64_t round;
    uint32_t accepted, lr_bits;
    struct hash payloads[NODES_MAX], results[NODES_MAX];
};

// The run as it stood after a record.
struct ghost_point {
    uint8_t phase;
    uint64_t epoch, round, step, samples_done;
    struct hash body; // Of the record
    uint16_t kind;
};

struct ghost_member {
    bool known;
    uint8_t role, state;
    struct key key;
    uint64_t instance, joined_number, dropped_number;
    uint32_t owed; // Audits, see frames.def
};

struct ghost_accepted {
    struct hash result, payload, residual_from, residual_to;
    uint32_t member;
    uint64_t round, step;
    bool given_up; // By a restore
};

// What a node has heard of one author: the first claim of the newest round, whether another came
// for the same batch, and how many it has shown to the coordinator.
struct ghost_heard {
    uint64_t round;
    struct hash name;
    bool twice;
    uint32_t shown;
};

// The first claim of a round that this life of the coordinator was shown.
struct ghost_claim_copy {
    uint64_t round;
    struct hash name;
    bool asked;
};

struct ghost_vote {
    bool voted;
    uint32_t count;
    struct wire_seen seen[GHOST_SEEN_MAX];
};

// The newest share a learner has trained.
struct ghost_job {
    uint64_t round, total;
    uint32_t count;
    struct interval samples[GHOST_JOB_MAX];
};

// What a restore or the loss of the ledger gave up: the run's steps as they were known until then.
struct ghost_past {
    uint64_t steps; // Those ahead of the commits included
    struct hash digest[ROUNDS_MAX];
    struct ghost_commit commits[ROUNDS_MAX];
};

// The newest memory save on record; step 0: none (check_memory.c).
struct ghost_memory {
    struct pin kept;
    uint64_t kept_in; // The window or group in which the copies were made
    struct wire_place keepers[NODES_MAX];
    uint32_t keepers_count, buddies;
};

struct ghost {
    uint64_t records;
    struct ghost_point points[RECORDS_MAX];
    struct ghost_member members[NODES_MAX];
    uint32_t members_count;
    bool pausing, round_open, pause_asked;
    uint64_t ahead; // Steps beyond the newest commit whose digest is settled all the same
    _Alignas(16) uint8_t pace[GHOST_PACE_BYTES]; // What a pace beside rounds keeps
    struct hash last_commit;
    // The open round.
    struct wire_audit audits[NODES_MAX];
    uint8_t findings[NODES_MAX]; // On record, by place: enum finding
    uint32_t audits_count, ejected_count;
    uint32_t due; // Members that a verdict on record ejects, as bits
    struct interval dealt[512];
    uint32_t dealt_count, clients_count, witnesses_count, batch_size, lr_bits;
    struct hash audit_lock;
    uint32_t trainers; // On the roster when the round was opened
    uint32_t clients[NODES_MAX], witnesses[NODES_MAX];
    struct ghost_vote votes[NODES_MAX]; // As this life of the coordinator heard them, by place
    // All rounds, all steps.
    uint64_t round_record[ROUNDS_MAX], commit_record[ROUNDS_MAX]; // Number of the record
    struct ghost_commit commits[ROUNDS_MAX];                      // By step
    uint64_t pin_step;
    struct hash promised[CLAIMS_MAX]; // Payloads named in votes of the newest round
    uint32_t promised_count;
    struct hash digest[ROUNDS_MAX];      // Of the parameters of each step
    uint64_t commit_of_step[ROUNDS_MAX]; // Number of the record, by the last step that it commits
    struct hash claimed[NODES_MAX][ROUNDS_MAX], voted[NODES_MAX][ROUNDS_MAX];
    struct ghost_accepted accepted[CLAIMS_MAX];
    uint32_t accepted_count;
    struct ghost_claim claims[CLAIMS_MAX];
    uint32_t claims_count;
    uint8_t samples[POSITIONS_MAX]; // By position: enum table_state
    struct ghost_job jobs[NODES_MAX];
    struct hash residual[NODES_MAX]; // Of each replica, as the commits lead to it
    uint64_t cursor, done, voids, epoch_end_record;
    // Guilt.
    struct hash revealed;           // The newest residual that somebody showed
    struct hash made_up[NODES_MAX]; // The newest payload that a liar's learner made up
    struct wire_claim newest[NODES_MAX], before[NODES_MAX];      // The two newest true claims
    struct ghost_heard heard[NODES_MAX][NODES_MAX];              // [Hearer][author]
    struct ghost_claim_copy shown[NODES_MAX][CLAIM_AGE_MAX + 1]; // [Member][round modulo]
    struct wire_claim bent[NODES_MAX]; // The newest lie of who says the same to all
    uint64_t committed_round;          // The newest of this life of the coordinator, and
    uint32_t committed_by[NODES_MAX], committed_by_count; // the members who could vote in it
    uint64_t twice_round[NODES_MAX];    // Of two claims that an honest witness heard; 0: none
    uint32_t wrong_accepted[NODES_MAX]; // Since all was healed
    uint32_t late_rounds;               // The same
    uint32_t unshown[NODES_MAX];        // By member: see frames.def
    // The restore point.
    uint16_t done_step[POSITIONS_MAX]; // Of each sample that is done: the commit that says so
    bool all_lost;                     // And not yet restored
    uint32_t restores_asked, restores_unasked, restores;
    uint64_t restore_record;
    struct pin restore_point;          // The newest checkpoint on record as of its very step
    struct pin older[OLDER_SAVES_MAX]; // Behind it: the saves in pieces before it, the newest first
    bool is_saved;                     // It is in pieces
    bool may_decay;                    // No save has decayed since the newest one came on record
    bool is_unread[ROUNDS_MAX];        // By step: a trainer said that it cannot read the save
    struct pin end_point;              // The newest end of an epoch
    struct ghost_memory memory;
    bool is_split; // The newest RUN says that no majority holds the same state
    // What is lost.
    uint64_t born_unix_ms;             // Of the run that the ledger is of
    uint32_t pasts, pasts_before;      // All, and those of runs whose ledger was lost
    uint64_t rounds_before;            // Of such runs
    struct ghost_past past[PASTS_MAX]; // Last: not cleared with the rest
};

struct stored {
    uint16_t kind;
    uint32_t bytes;
    uint8_t *body;
    struct hash chain;
};
struct kept_snapshot {
    uint8_t *body;
    uint32_t bytes;
    uint64_t seq;
    struct hash hash;
};
enum { BEHIND_MAX = 40 };

struct disk {
    struct stored log[RECORDS_MAX];
    uint64_t count;
    struct kept_snapshot snapshots[2]; // The newest and the one before, in either order
    // While an older copy lies in its place: what the copy does not have.
    bool behind;
    uint64_t base, newer_count;
    struct stored newer[BEHIND_MAX];
};

struct letter {
    uint8_t node;
    char to[ACTOR_NAME_MAX + 1];
    struct parcel *parcel;
};

// ---- the world ----------------------------------------------------------------------------------

struct sim {
    uint64_t seed, prng, now_ms, seq, steps, trace, tick_ms;
    bool verbose;
    bool canary; // Most lie: the run must break
    struct plan plan;
    const struct sim_pace *pace;
    struct node nodes[NODES_MAX];
    uint32_t nodes_count, operator_node, provider_node, checkpointer_node;
    struct broker broker;
    struct post_office *office;
    struct disk disk;
    struct sim_save saves[SAVES_MAX];
    uint32_t saves_count;
    struct run *replayed; // The second struct run that recovery is held against
    struct flight **heap;
    uint32_t heap_count, heap_max;
    uint32_t far;    // Nodes beyond the partition, as bits
    uint64_t far_ms; // Since when
    bool deaf, mute; // Which ways it cuts: towards them, from them
    uint64_t faults[FAULT_KINDS], commits_at_heal;
    struct letter letters[LETTERS_MAX]; // That liars sent, for sending again
    struct parcel *greedy[GREEDY_KEPT]; // What the greedy one said last, of each kind
    struct inbox *inbox;                // The coordinator's: of flights
    uint64_t busy_until_us, work_us;    // Its processor; what the letter in hand has cost so far
    struct ghost ghost;
    // Scratch.
    struct outbox out;
    struct wire_arena arena, scratch; // Of the message in hand; of whatever looks at an effect
    struct wire_arena inside;         // Of what is packed inside of it
    struct evidence *evidence;        // Of the coordinator's records
    uint8_t *bytes;
    bool hears_forked; // The message in hand is of a coordinator whose disk fell behind
    uint64_t incarnation_before, log_seq_before, epoch_before,
        step_before; // Of who is about to hear
    bool had_run;
    uint32_t shown_guilty;  // Member of whom the claim_copy in hand is the second; UINT32_MAX
    uint64_t unasked_round; // Of the claim that the claim_copy in hand has asked for; 0: none
    uint8_t frame[1024];    // Of the letter in hand, as its sender signed it
    jmp_buf broken;
    char verdict[512];
};

extern const char *const fault_names[FAULT_KINDS];

// Runs one seed. Returns 0, or 1 with self->verdict saying which invariant broke, and when.
int sim_run(struct sim *self, uint64_t seed);
struct sim *sim_new(void);
void sim_end(struct sim *self); // Frees what its last seed took; the rest goes with the process

// Zeroed memory from the system: what is not touched costs nothing, and forgetting is cheap.
void *memory_take(size_t bytes);
void memory_forget(void *memory, size_t bytes);

uint64_t roll(struct sim *self, uint64_t below);                 // [0, below); 0 if below is 0
uint64_t between(struct sim *self, uint64_t low, uint64_t high); // Both included
bool faulty(const struct sim *self);
bool chance(struct sim *self, uint32_t of_1000); // Only while faults last
struct hash hash_number(const char *what, uint64_t number);
struct key key_number(uint64_t number); // Of nodes

// An invariant is broken: gives up the seed.
_Noreturn void broken(struct sim *self, const char *invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define hold(what, invariant, ...) ((what) ? (void)0 : broken(sim, invariant, __VA_ARGS__))

void plan_draw(struct sim *self);
uint64_t aside(const struct sim *self, const char *what,
               uint64_t below); // Beside all that is drawn

void network_clear(struct sim *self);
void network_forget(struct sim *self); // The broker's bulletins
struct parcel *parcel_new(struct sim *self, const struct node *from, uint16_t kind,
                          const void *packed, uint32_t bytes);
void parcel_release(struct parcel *parcel);
void network_fly(struct sim *self, uint64_t delay_ms, enum flight_to to, uint8_t node,
                 uint32_t life, const char *name, struct parcel *parcel);
struct flight *network_land(struct sim *self);
void network_done(struct sim *self, struct flight *flight);
void network_mail(struct sim *self, uint8_t from, const char *to, struct parcel *parcel);
void network_news(struct sim *self, uint8_t from, struct parcel *parcel);
void broker_hear_mail(struct sim *self, const struct flight *flight);
void broker_hear_news(struct sim *self, const struct flight *flight);
void broker_boot(struct sim *self);
void broker_crash(struct sim *self);
void post_tick(struct sim *self, uint8_t id); // HELLO
void post_hear(struct sim *self, uint8_t id,
               const struct parcel *parcel);                      // What the broker says itself
bool reachable(const struct sim *self, uint8_t from, uint8_t to); // Over the bulk plane
uint32_t node_named(const struct sim *self, const char *name);

uint64_t node_clock(const struct sim *self, const struct node *node);
void node_boot(struct sim *self, uint8_t id);
void node_crash(struct sim *self, uint8_t id, uint64_t down_ms);
uint64_t down_for(struct sim *self); // How long, drawn
void faults_draw(struct sim *self);  // Once a second or so (faults.c)
void node_step(struct sim *self, uint8_t id, struct msg *in);
void node_hear(struct sim *self, uint8_t id, uint16_t kind, const void *body); // From a port

void perform(struct sim *self, uint8_t id, const struct effect *effect);
const void *unpack(struct sim *self, struct wire_arena *arena, uint16_t kind, const uint8_t *body,
                   uint32_t bytes);

void disk_clear(struct disk *self);
void disk_store(struct sim *self, uint8_t id, const struct effect *effect);
void disk_lose(struct sim *self);         // Before the coordinator starts, perhaps
void disk_fall_behind(struct sim *self);  // The same
void disk_found_behind(struct sim *self); // Nobody that could say so is up
void disk_send_commits(struct sim *self, uint8_t id, const struct wire_send_commits *send_commits);
void disk_snapshot(struct sim *self);
// A crash falls into the writing of this effect, or into that of a snapshot (NULL).
void disk_tear(struct sim *self, uint8_t id, const struct effect *effect);
void disk_recover(struct sim *self, struct coordinator *core);

void learner_take(struct sim *self, uint8_t id, const struct effect *effect);
void learner_finish(struct sim *self, uint8_t id, const struct parcel *job);
void saver_finish(struct sim *self, uint8_t id, const struct parcel *written);
void learner_says(struct sim *self, uint8_t id, uint16_t kind, const void *body);
void fetcher_says(struct sim *self, uint8_t id, uint16_t kind, const void *body);
bool learner_of_rounds(struct sim *self, uint8_t id, uint16_t kind, const void *job);
bool learner_has_data(const struct sim *self, uint8_t id, const struct wire_holder *providers,
                      uint32_t count);
void learner_forget(struct sim *self, uint8_t id, const struct effect *effect); // Judged, then done
void fetcher_take(struct sim *self, uint8_t id, const struct effect *effect);
void fetcher_finish(struct sim *self, uint8_t id, const struct parcel *job);
bool store_has(const struct store *self, const struct hash *hash);
bool store_holds(const struct store *self, const struct hash *hash, uint32_t bytes); // Of this size
void store_add(struct sim *sim, struct store *self, const struct hash *hash, uint32_t bytes);
// copies.c. _fetch: FETCH_SHARE. _serve: this state lies whole in the copies of the node and of these holders, as far as it
// reaches them. _lie: it does in those of all processes that are up and of the run.
// A memory save is on record, kept by these processes; and the run goes back, with the state that it may go back to in *back
// (struct sim_pace, way_back).
void check_memory_kept(struct sim *sim, const struct wire_record_kept *said,
                       const struct wire_place *owners, uint32_t count, uint32_t buddies);
void check_memory_back(struct sim *sim, const struct wire_record_restore *record, bool lost,
                       bool is_own, struct pin *back);

void copies_fetch(struct sim *self, uint8_t id, const struct wire_fetch_share *job);
bool copies_serve(const struct sim *self, uint8_t id, const struct wire_fetch_model *job);
bool copies_lie(const struct sim *self, uint64_t step, const struct hash *digest);
uint8_t node_at(const struct wire_holder *holder); // learner.c

// saves.c. _find: one that is whole; NULL: there is none. _begin: a member takes its part of a state that all hold; _add:
// of one that is the sum of the parts, whichever time each is of. _written: it is written; the
// save, if that makes it whole.
uint32_t saves_keep(const struct sim *self); // checkpoint.keep
// Somebody reads it: a disk may have damaged it since it was written, if there is an older one that can be read.
void saves_try(struct sim *self, uint64_t born_unix_ms, uint64_t step);
const struct sim_save *saves_find(const struct sim *self, uint64_t born_unix_ms, uint64_t step);
// Of the present run: it can be read, or an older one on record, which is where the run goes then.
bool saves_have(const struct sim *self, uint64_t step, const struct hash *digest);
void saves_begin(struct sim *self, uint64_t born_unix_ms, uint64_t step, uint64_t window,
                 uint32_t workers, const struct hash *digest);
void saves_add(struct sim *self, uint64_t born_unix_ms, uint64_t step, uint64_t window,
               uint32_t workers, const struct hash *part);
const struct sim_save *saves_written(struct sim *self, uint64_t born_unix_ms, uint64_t step,
                                     uint64_t window, uint32_t place, uint64_t spare);
bool checkpoints_have(const struct node *node, uint64_t step, const struct hash *digest);
bool pins_have(const struct learner *self, uint64_t step, const struct hash *digest);
struct hash digest_after(const struct hash *digest, const struct hash *payloads, uint32_t count,
                         uint32_t lr_bits);

// What the coordinator's work costs (work.c). True: the letter in hand waits, or is refused.
bool work_must_wait(struct sim *self, const struct flight *flight);
uint64_t work_due_ms(const struct sim *self); // When its processor hears the next one that waits
struct flight *work_next(struct sim *self);   // That one, the caller's
void work_heard(struct sim *self);            // The letter in hand, and all that follows is done
void work_done(struct sim *self, uint8_t id, uint32_t bytes, bool from_ledger); // A letter goes out
void work_clear(struct sim *self);

// False if nobody else could serve what the run may still need: such a crash is not drawn.
bool may_lose(const struct sim *self, uint8_t id);

// What goes out in place of the true mail, or beside it; NULL: it is honest this time, or there is
// nobody to outvote it.
struct parcel *liar_twist(struct sim *self, uint8_t id, const struct effect *effect);
bool liar_keeps_apart(const struct sim *self,
                      uint8_t id); // Who hears which of its claims, in this round
void liar_overhears(struct sim *self, const struct effect *effect); // What is shown to one of them
bool liar_withholds(struct sim *self, uint8_t id, const struct effect *effect);
bool liar_writes_to_each(const struct sim *self, uint8_t id, const struct effect *effect);
bool liar_serves(const struct sim *self, uint8_t id, uint8_t to, const struct hash *blob);
// The result that a liar's learner says it has made; false: the true one.
bool liar_makes_up(struct sim *self, uint8_t id, uint64_t round, struct hash *payload);

bool is_liar(const struct sim *self, uint8_t id);
bool lying(struct sim *self, uint8_t id, enum lie lie, uint32_t of_1000); // This time
struct hash invent(struct sim *self);
struct parcel *lie_pack(struct sim *self, uint8_t id, uint16_t kind, const void *body);
uint64_t liar_delay_ms(struct sim *self, uint8_t id,
                       uint16_t kind); // How long a letter is held back

// What no honest core would send at all (intruder.c).
void intruder_send_claim_copy(struct sim *self, uint8_t id,
                              const struct wire_claim *claim); // Says who signed it
void intruder_act(struct sim *self, uint8_t id);               // Once a second
void impostor_act(struct sim *self);                           // Once a second; impostor.c
void greedy_act(struct sim *self);                             // The same; greedy.c
void greedy_keep(struct sim *self, uint8_t id, const char *to, struct parcel *parcel);
void greedy_clear(struct sim *self);
void intruder_vote(struct sim *self, uint8_t id, const struct effect *effect);
void intruder_keep(struct sim *self, uint8_t id, const char *to, struct parcel *parcel);
void intruder_clear(struct sim *self);

// What the owner took the run back from (check_restore.c). Whoever has not heard of it goes on there.
void check_restore(struct sim *sim, const struct wire_record_restore *record);
void check_begin_anew(struct sim *sim); // The ledger is lost
// Its PINGs reach the coordinator, and it has heard nothing of it for as long as one is searched for that may hold the
// newest step. Unless most hold the step the run may go back without it.
bool faults_is_deaf(const struct sim *sim, uint8_t id);
bool check_is_of_before(const struct sim *sim, uint8_t id); // Lives in a run whose ledger was lost
bool check_is_digest(const struct sim *sim, uint64_t step, const struct hash *digest);
// At some time of this run, or of one before it whose ledger was lost.
bool check_was_of_run(const struct sim *sim, uint64_t step, const struct hash *digest);
bool check_was_digest(const struct sim *sim, uint64_t step, const struct hash *digest);
// The commit of that step and round, also a given-up one, which leads to this digest; NULL: there is
// none.
const struct ghost_commit *check_commit_to(const struct sim *sim, uint64_t step, uint64_t round,
                                           const struct hash *digest);
// Where that member's newest accepted result led to, as the run stands; none.
struct hash check_residual_of(const struct sim *sim, uint32_t member);
bool check_may_restore(const struct sim *sim); // And would change something
// Below the cursor all is done but for what is returned, and what is given up.
void check_position(struct sim *sim, const char *what, const struct wire_data_position *said);

void check_claimed_falsely(struct sim *sim, uint8_t id, const struct wire_claim *claim);
uint32_t check_members(const struct ghost *ghost, uint8_t role, uint8_t state); // How many
// The samples of a record: dealt, the lowest first, that are to do (returns how many); and done, in the step
// after the ghost's. And the same bytes as the record of that number, which therefore is on disk.
uint64_t check_dealt(struct sim *sim, const struct interval *list, uint32_t count);
void check_done(struct sim *sim, uint64_t position);
void check_recorded(struct sim *sim, uint64_t record, const struct effect *effect);
const struct replica *check_replica(const struct node *node); // NULL: it has none
// A replica may hold this: committed, or settled ahead of the commits.
bool check_is_settled(const struct sim *sim, uint64_t step, const struct hash *digest);
void check_begin(struct sim *sim);
void check_record(struct sim *sim, uint16_t kind, const void *record, const uint8_t *body,
                  uint32_t bytes);
void check_said(struct sim *sim, uint8_t id, const struct effect *effect);
void check_heard(struct sim *sim, uint8_t id, const struct msg *in);
void check_stepped(struct sim *sim, uint8_t id, const struct msg *in);
void check_rebooted(struct sim *sim, uint8_t id);
void check_trained(struct sim *sim, uint8_t id, const struct wire_train *job);
void check_applied(struct sim *sim, uint8_t id, const struct wire_apply *job);
void check_forgotten(struct sim *sim, uint8_t id, const struct hash *payload);
void check_saved(struct sim *sim, const struct wire_save *job);
void check_loaded(struct sim *sim, uint8_t id);
void check_quit(struct sim *sim, uint8_t id, const struct wire_quit *quit);
void check_end(struct sim *sim);
uint32_t check_member(const struct sim *sim, uint8_t id);   // Its place, or UINT32_MAX
uint8_t check_node(const struct sim *sim, uint32_t member); // Whose place it is, or NOBODY
bool check_ejected(const struct sim *sim, uint8_t id);
bool check_at_large(const struct sim *sim); // Somebody makes wrong results for ever, and is audited
uint64_t check_step(const struct sim *sim); // Of the newest record
uint64_t check_commits(const struct sim *sim); // Steps done since the run began
uint8_t check_phase(const struct sim *sim);
uint64_t check_round(const struct sim *sim);
