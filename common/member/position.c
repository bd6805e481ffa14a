// position -- the newest ledger record that a member knows of, and which coordinator process it
// follows.
//
//     BEAT of the followed process    ─▶ kept as it was signed, if its record is newer than the
//                                        known one, or the operator has put back an older ledger
//     a frame of another process      ─▶ POSITION, at most one a second ─▶ ACK ─▶ followed
//
// A coordinator whose disk went back does not have that record, and ends when it receives the
// POSITION. So no member follows it, and no step is applied twice. The journal keeps the position
// across restarts.

#include "common/member/member.h"
#include <inttypes.h>
#include <string.h>

enum { KEEP_EVERY = 16, DOUBTS_SAID = 3 };

void member_recall(struct member *self, const struct wire_journal *journal)
{
    self->journal = *journal;
    // mutant: after a restart any coordinator is followed
    if (key_is_none(&self->coordinator)) self->coordinator = journal->owner;
    self->position = journal->position;
    self->proved_incarnation = journal->position.incarnation;
}

bool member_should_keep(const struct member *self)
{
    const struct wire_position *kept = &self->journal.position;
    return self->position.log_seq >= kept->log_seq + KEEP_EVERY ||
           self->position.log_seq < kept->log_seq ||
           self->position.born_unix_ms != kept->born_unix_ms;
}

void member_promise(struct member *self, struct outbox *out)
{
    self->journal.position = self->position;
    outbox_store(out, FRAME_JOURNAL, &self->journal);
}

void member_forget_position(struct member *self, uint64_t born_unix_ms)
{
    if (self->position.log_seq == 0 || self->position.born_unix_ms == born_unix_ms) return;
    self->position = (struct wire_position){ 0 };
    self->proved_incarnation = 0;
}

static void take_down(struct member *self, const struct msg *in)
{
    const struct wire_beat *beat = in->body;
    struct wire_position *known = &self->position;
    // A later process has proved itself although its ledger is behind the known record: the
    // operator has given that record up. Version and round of the abandoned ledger must not count
    // any more.
    // mutant: what the owner gave up is kept
    const bool given_up = in->incarnation > known->incarnation && beat->log_seq < known->log_seq;
    self->proved_incarnation = in->incarnation;
    if (given_up) {
        self->roster.version = 0;
        self->has_round = self->has_run = false;
    }
    if ((beat->log_seq <= known->log_seq && !given_up) || in->frame_bytes > sizeof known->beat)
        return;
    *known = (struct wire_position){ .log_seq = beat->log_seq,
                                     .chain = beat->chain,
                                     .incarnation = in->incarnation,
                                     .born_unix_ms = beat->born_unix_ms,
                                     .beat_bytes = (uint16_t)in->frame_bytes };
    memcpy(known->beat, in->frame, in->frame_bytes);
}

static bool is_other_life(const struct member *self, const struct msg *in)
{
    return self->position.log_seq > 0 && in->incarnation != self->proved_incarnation;
}

static void doubt(struct member *self, const struct msg *in, struct outbox *out)
{
    if (in->now_ms < self->doubt_ms || self->leaving) return;
    self->doubt_ms = in->now_ms + MEMBER_RETRY_MS;
    outbox_mail(out, "coordinator", FRAME_POSITION, &self->position);
    if (++self->doubts != DOUBTS_SAID) return;
    char hex[HASH_HEX];
    outbox_note(out,
                "coordinator.unproved incarnation=%" PRIu64
                ": it has not shown that its ledger has record %" PRIu64
                ", chain %.16s; not followed until it does",
                in->incarnation, self->position.log_seq, hash_to_hex(&self->position.chain, hex));
}

bool member_hear_coordinator(struct member *self, const struct msg *in, struct outbox *out)
{
    if (is_other_life(self, in)) {
        doubt(self, in, out);
        // mutant: a coordinator whose disk fell behind is followed
        return false;
    }
    if (in->kind == FRAME_BEAT && in->frame) take_down(self, in);
    return true;
}

void member_hear_proof(struct member *self, const struct msg *in)
{
    const struct wire_ack *ack = in->body;
    // mutant: an impostor proves its ledger
    if (!key_equal(&in->sender, &self->coordinator) || ack->round != self->position.log_seq ||
        !hash_equal(&ack->hash, &self->position.chain) || in->incarnation < self->incarnation)
        return;
    self->proved_incarnation = in->incarnation;
    self->doubts = 0;
    self->has_run = false; // Asks for the frames that were ignored
    self->ask_ms = self->join_ms = 0;
}
