// pause, resume, checkpoint, restore -- orders of a run's owner to its coordinator, signed with the
// coordinator's own key. Each order names the coordinator's present life, so that an old one cannot
// be replayed later. We do not know that life at first: we send the order, learn the life from any
// answer, and send it again. An order also has a number, by our clock, which must exceed that of the order before. Where
// that one came from a machine whose clock is ahead, the refusal names its number, and we send ours again with a higher one.

#include "actors/shoal/model/saved.h"
#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include "common/actor/tap.h"
#include "common/base/clock.h"
#include <stdio.h>
#include <string.h>

enum { ANSWER_MS = 5000, RESEND_MS = 1000 };

struct control {
    struct command command;
    struct wire_control order; // For the coordinator's present life, once it is known
    struct key owner;
};

static const struct flag flags[] = {
    FLAGS_OF(command_flags, struct control, command),
    { 0 },
};

static const struct flag restore_flags[] = {
    FLAG("step", 0, "N", TO_NUMBER(struct control, order.step, 1, INT64_MAX),
         "Go back to the save in pieces of step N (the newest save or checkpoint)"),
    FLAGS_OF(command_flags, struct control, command),
    { 0 },
};

// 1: the coordinator accepts. Negative: it refuses. 0: another message. Every message of the
// coordinator also tells its present life, for which the order must be.
static int judge(struct control *self, const struct letter *letter, struct why *why)
{
    const struct msg *msg = &letter->msg;
    if (key_equal(&msg->sender, &self->owner) && msg->incarnation > self->order.incarnation)
        self->order.incarnation = msg->incarnation;
    if (strcmp(letter->from, "coordinator") != 0) return 0;
    if (msg->kind == FRAME_ACK) {
        // Of the owner alone: where the broker's owner is not known, anybody may be "coordinator"
        const struct wire_ack *ack = msg->body;
        return key_equal(&msg->sender, &self->owner) && ack->kind == FRAME_CONTROL &&
               ack->round == self->order.number;
    }
    if (msg->kind != FRAME_REFUSED) return 0;
    const struct wire_refused *refused = msg->body;
    if (refused->kind != FRAME_CONTROL) return 0;
    if (refused->reason == REFUSAL_STALE) {
        if (refused->round >= self->order.number) self->order.number = refused->round + 1;
        return 0;
    }
    if (refused->round && refused->round != self->order.number)
        return 0; // For an order that another process gave before
    if (refused->reason == REFUSAL_NOT_NOW)
        return why_set(why, FAULT_NOT_NOW, "%sthe coordinator refuses: %s",
                       self->order.action == ACTION_RESUME ? "the run is not paused; " : "",
                       refused->text);
    return why_set(why, FAULT_DENIED, "the coordinator refuses (%s): %s",
                   wire_enum_name(&wire_enum_refusal, refused->reason), refused->text);
}

// Sent again each second, since mail may be lost. The coordinator answers a repeated order as it answered the first.
static int ask(struct control *self, struct tap *tap, struct why *why)
{
    uint64_t end_ms = clock_ms() + ANSWER_MS, send_ms = 0;
    while (clock_ms() < end_ms && !tap_is_refused(tap)) {
        struct letter letter;
        uint64_t now_ms = clock_ms();
        if (tap_is_connected(tap) && now_ms >= send_ms) {
            tap_mail(tap, "coordinator", FRAME_CONTROL, &self->order);
            send_ms = now_ms + RESEND_MS;
        }
        tap_wait(tap, -1, tap_is_connected(tap) && send_ms < end_ms ? send_ms : end_ms);
        for (enum tap_result got; (got = tap_take(tap, &letter)) != TAP_NOTHING;) {
            const struct wire_control meant = self->order;
            int verdict = got == TAP_FRAME ? judge(self, &letter, why) : 0;
            if (verdict) return verdict < 0 ? verdict : 0;
            if (self->order.incarnation != meant.incarnation || self->order.number != meant.number)
                send_ms = 0;
        }
    }
    if (tap_is_refused(tap) || !tap_is_connected(tap))
        return tap_no_answer(tap, self->command.server_addr, ANSWER_MS, why);
    return why_set(why, FAULT_UNREACHABLE,
                   "the broker at %s answers, but no coordinator within %d s: check that it runs",
                   self->command.server_addr, ANSWER_MS / 1000);
}

static int run(struct control *self, struct why *why)
{
    static const uint16_t kinds[] = { FRAME_RUN };
    struct identity *identity = NULL;
    struct tap *tap = NULL;
    int rc = command_check_broker(&self->command, SHOAL_BROKER, why);
    if (rc == 0 && !self->command.run_id)
        rc = why_set(why, FAULT_USAGE, "--run-id ID (or RUN_ID) is needed");
    if (rc == 0 && !self->command.identity_path && !command_env(IDENTITY_ENV))
        rc = why_set(why, FAULT_USAGE,
                     "the owner's key is needed: -i FILE (of shoal up DIR it is "
                     "DIR/run/keys/coordinator.key)");
    if (rc == 0) rc = command_identity(&self->command, why, &identity);
    if (rc < 0) return rc;
    struct tap_options options = { .broker = &self->command.ticket,
                                   .run = self->command.run_id,
                                   .identity = identity,
                                   .role = ACTOR_OPERATOR,
                                   .kinds = kinds,
                                   .kinds_count = 1 };
    self->owner = *identity_key(identity);
    rc = tap_open(&options, why, &tap);
    if (rc == 0) rc = ask(self, tap, why);
    tap_close(&tap);
    identity_destroy(&identity);
    return rc;
}

static int control(int argc, char **argv, uint8_t action, const char *about, const char *done)
{
    const struct command_line line = { .flags = action == ACTION_RESTORE ? restore_flags : flags,
                                       .about = about };
    struct control self = { .order = { .action = action, .number = clock_unix_ms() } };
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc == 0) rc = run(&self, &why);
    if (rc == 0 && self.command.json)
        rc = shoal_print_json(json_pack("{s:s, s:s, s:b}", "schema", "shoal.control.1", "action",
                                        wire_enum_name(&wire_enum_action, action), "ok", 1),
                              &why);
    else if (rc == 0) puts(done);
    return fault_exit(rc, &why);
}

int shoal_pause(int argc, char **argv)
{
    return control(
        argc, argv, ACTION_PAUSE,
        "The epoch ends with the round in hand, or with kind = \"allreduce\", "
        "\"sharded\" or \"server\" after the step in hand (mode async: once the tasks that "
        "are out are done), and the run rests once its checkpoint is written.\n"
        "It goes on with a new epoch.\n\n"
        "  shoal pause --ticket ticket -i coordinator.key\n"
        "  TICKET=ticket shoal pause -i coordinator.key\n",
        "the run will pause after the round or step in hand");
}

int shoal_resume(int argc, char **argv)
{
    return control(argc, argv, ACTION_RESUME,
                   "A paused run goes on.\n\n"
                   "  shoal resume --ticket ticket -i coordinator.key\n"
                   "  TICKET=ticket shoal resume -i coordinator.key\n",
                   "the run goes on");
}

int shoal_checkpoint(int argc, char **argv)
{
    // With a word behind it, it looks at a save instead of asking for one
    static char show[] = "shoal checkpoint show", verify[] = "shoal checkpoint verify";
    static char export[] = "shoal checkpoint export";
    static const struct {
        char *name;
        int (*run)(int argc, char **argv);
    } words[] = { { show, saved_show }, { verify, saved_verify }, { export, shoal_export } };
    for (size_t i = 0; i < sizeof words / sizeof *words && argc > 1; i++)
        if (strcmp(argv[1], strrchr(words[i].name, ' ') + 1) == 0) {
            argv[1] = words[i].name;
            return words[i].run(argc - 1, argv + 1);
        }
    if (argc > 1 && argv[1][0] != '-') {
        struct why why = { 0 };
        why_set(&why, FAULT_USAGE,
                "shoal checkpoint %.64s: no such word; with one it is show, verify or export",
                argv[1]);
        return fault_exit(FAULT_USAGE, &why);
    }
    return control(argc, argv, ACTION_CHECKPOINT,
                   "Has the checkpointers write a checkpoint: of the newest pinned step, in the "
                   "middle of an epoch; with kind = \"allreduce\", \"sharded\" or \"server\" the "
                   "epoch ends for it as soon as the open windows are done, and its last step is "
                   "written.\n\n"
                   "  shoal checkpoint --ticket ticket -i coordinator.key\n"
                   "  shoal status --ticket ticket              shows when it is written\n\n"
                   "\"shoal checkpoint show DIR\" says what lies in a save of pieces, \"shoal "
                   "checkpoint verify DIR\" reads it whole; \"shoal checkpoint export --save DIR "
                   "--model MODEL --out OUT\" makes a model of it that other tools read.\n",
                   "the checkpointers have been asked");
}

int shoal_restore(int argc, char **argv)
{
    return control(
        argc, argv, ACTION_RESTORE,
        "Goes back to the newest checkpoint, for a run that has lost every copy of its newest "
        "parameters; or with --step to an older save in pieces. All later "
        "samples will be trained again. "
        "Allowed only while the run waits, warms up or is paused, or while it cools down "
        "and no member holds its step.\n\n"
        "  shoal restore --ticket ticket -i coordinator.key\n"
        "  shoal restore --step 200 --ticket ticket -i coordinator.key\n"
        "  shoal status --ticket ticket          shows the checkpoints\n",
        "the run is back there; no restore goes to a newer checkpoint or save any more");
}
