#pragma once
// shell -- gives a core a clock, a disk, workers and sockets, and then stays out of its way.
//
//     ┌── one thread, one loop ────────────────────────────────────────────────────────────────┐
//     │ wait: mail (DEALER to the broker), news (SUB), workers, signals, the alarm              │
//     │ inbox.h: each frame waits for the turn of its sender, which pays for what the frame costs │
//     │ decode: wire_unpack, signature, newest instance only; stamp the time                     │
//     │ step the core for each message whose turn it is (at most SHELL_TURN_MAX)                 │
//     │ stores of the turn in one transaction, durable; then all other effects, in their order   │
//     └────────────────────────────────────────────────────────────────────────────────────────┘
//
// So nothing is sent before the record that justifies it is on disk, and messages that arrive
// together share one fsync. A frame that does not decode, or whose signature is missing or wrong,
// is dropped with a line in the log (one a second at most) and changes nothing. Only of hints (`is_hint`) the
// signature is not verified.
//
// If the broker is silent for POST_SILENCE_MS, the sockets are opened again (a connecting ZeroMQ
// socket can go deaf for good), and HELLO is sent again. SIGTERM and SIGINT become a QUIT message
// to the core, which leaves the run. A second signal, or SHELL_PATIENCE_MS, ends the process in any
// case.
//
// While no broker answers, while a member is not admitted, while its coordinator is silent, and while
// the run lacks something, a line of the log says what the actor waits for: after SHELL_WAITING_MS,
// then every ten seconds.
//
// systemd: READY=1 after the first step, WATCHDOG=1 from the loop. STATUS= says what is true now, once
// a second at most: what the actor waits for, else what `status` tells. It is never an event, so a
// failure that is over does not stay there.

#include "common/actor/msg.h"
#include "common/actor/ticket.h"
#include "common/actor/worker.h"
#include "common/base/fault.h"
#include "common/crypto/identity.h"
#include <signal.h>

enum {
    SHELL_TURN_MAX = 128,
    SHELL_PATIENCE_MS = 3000,
    SHELL_WAITING_MS = 3000,
    SHELL_WAITING_AGAIN_MS = 10000,
    SHELL_WORKERS_MAX = 4,
    SHELL_STATUS_MAX = 512
};

// Where records go. All functions are called from the loop's thread. A fault ends the process; a
// restart recovers from what is on disk.
struct disk {
    void *arg;
    int (*begin)(void *arg, struct why *why);
    int (*store)(void *arg, uint16_t kind, const uint8_t *body, size_t count, struct why *why);
    int (*commit)(void *arg, struct why *why); // Durable when it returns 0
    // A job for PORT_DISK that is not a store (SEND_COMMITS, POSITION, FORGET). May be NULL: jobs are
    // ignored.
    int (*job)(void *arg, uint16_t kind, const void *body, struct why *why);
};

struct shell_options {
    const struct actor *actor;
    void *state;
    const struct identity *identity;
    uint8_t role;
    const char *name;            // "" or NULL: the role and the key, see actor_name
    const char *run;             // Run id, 1 to 32 bytes
    const struct ticket *broker; // Its address and key
    bool follows_news;           // Subscribes to the run
    const char *const *deaf_to;  // Kinds of news not to subscribe to, NULL-terminated; or NULL
    uint64_t incarnation;        // For START and for every frame it sends
    uint64_t instance;           // Of this process: unix ms at its start
    struct disk disk;
    // Called after each turn; may read the core's state but must not change it. May be NULL.
    void (*after_turn)(void *arg);
    void *after_turn_arg;
    // With the same argument. `status` writes what the actor does, in a few words; NULL: it has no
    // Status.
    void (*status)(const void *arg, char text[SHELL_STATUS_MAX]);
    // What the run waits for, as a sentence, or "". It is logged like what the actor waits for. It
    // may be NULL.
    void (*lacks)(const void *arg, char text[SHELL_STATUS_MAX]);
    // With the same argument: how far the run is, as a line, or "". It is logged every ten seconds
    // while the actor waits for no other. It may be NULL.
    void (*progress)(const void *arg, char text[SHELL_STATUS_MAX]);
    bool is_guest; // What it waits for is said in words for somebody else than the run's owner
    // With the same argument: fills in, before a frame is signed and sent, what only a shell can
    // tell, such as what it has measured. No core decides anything by that. It may be NULL.
    void (*fill_in)(void *arg, uint16_t kind, void *body);
    // With the same argument: whether frames of this kind are only hints (post.h). NULL: no kind is.
    bool (*is_hint)(const void *arg, uint16_t kind);
    // A descriptor that the loop waits for beside its own; 0: none. After each wait `take` is called,
    // with the same argument: it must not block.
    int ready_fd;
    void (*take)(void *arg);
    // Of a member, with the same argument: whether the coordinator has admitted it. NULL: the actor
    // waits for no coordinator.
    bool (*is_admitted)(const void *arg);
    struct worker *workers[SHELL_WORKERS_MAX];
    uint32_t workers_count;
    // Messages before START (a JOURNAL, a RESUME); an entry without a body ends the list.
    struct {
        uint16_t kind;
        const void *body;
    } first[4];
    int verbose; // 0: lines of the core's notes; 1: every message too
};

struct shell;

int shell_new(const struct shell_options *options, struct why *why, struct shell **ret_shell);
void shell_destroy(struct shell **self_p);

// Runs until the core quits or a fault. Returns the core's exit code (0 ..) or a negative fault.
int shell_run(struct shell *self, struct why *why);

// From within disk.job or `take`, on the loop's thread: sends one frame by mail, signed.
void shell_mail(struct shell *self, const char *to, uint16_t kind, const void *body);

// Blocks SIGTERM, SIGINT and SIGHUP for this thread and all threads it starts. Call it first in
// main, so that only the shell's loop takes these signals.
sigset_t shell_block_signals(void);
