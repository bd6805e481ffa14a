// The control connection of a link: small messages, a head and at most one word behind it. It is
// read whenever the group sleeps, whatever else waits, so that a word never stands before a BREAK.
//
// A word that nobody has heard waits in memory; a member that has more than WORDS_MAX of them
// waiting here breaks the rules of a group.

#include "common/group/group_inside.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IDLE_MESSAGES_MAX = 1000 }; // Of a peer, in a window

void control_close(struct peer *peer)
{
    struct control *control = &peer->control;
    if (control->fd >= 0) close(control->fd);
    sealing_destroy(&control->seal);
    sealing_destroy(&control->unseal);
    free(control->word);
    free(control->out);
    *control = (struct control){ .fd = -1 };
    peer->form_said = false;
    peer->formed = 0;
}

static void end(struct peer *peer, const char *how)
{
    char name[PEER_NAME_MAX];
    peer_end(peer, FAULT_UNREACHABLE, "%s: its link ended: %s", peer_name(peer, name), how);
    control_close(peer);
}

// ---- out ------------------------------------------------------------------------------------

void control_write(struct peer *peer)
{
    struct control *control = &peer->control;
    size_t done = 0;
    while (done < control->out_count) {
        const ssize_t n = send(control->fd, control->out + done, control->out_count - done,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
        // What it said before it died is still read
        if (n < 0 && errno != EAGAIN) control->may_read = true;
        if (n < 0) break;
        done += (size_t)n;
    }
    control->out_count -= done;
    memmove(control->out, control->out + done, control->out_count);
}

static void put(struct control *control, const void *bytes, size_t count)
{
    uint8_t *to = control->out + control->out_count;
    control->out_count += count;
    if (control->seal.context) {
        sealing_put(&control->seal, bytes, count, to, to + count);
        control->out_count += SEALING_TAG;
    } else {
        memcpy(to, bytes, count);
    }
}

bool control_say(group_t *self, struct peer *peer, const struct message *message,
                 const void *payload)
{
    struct control *control = &peer->control;
    const size_t needs = control->out_count + HEAD_BYTES + message->length + 2 * SEALING_TAG;
    uint8_t head[HEAD_BYTES];
    (void)self;
    if (control->fd < 0) return true; // Its end is seen elsewhere
    if (control->out_count > 2 * WORDS_BYTES_MAX) return false;
    if (needs > control->out_room) {
        control->out = realloc(control->out, needs);
        ensure(control->out);
        control->out_room = needs;
    }
    message_pack(message, head);
    put(control, head, sizeof head);
    if (message->length) put(control, payload, message->length);
    control_write(peer);
    return true;
}

// ---- in -------------------------------------------------------------------------------------

void words_drop(group_t *self)
{
    while (self->first_word) {
        struct word *word = self->first_word;
        self->first_word = word->next;
        free(word);
    }
    self->last_word = NULL;
    for (uint32_t i = 0; i < self->peer_count; i++)
        self->peers[i]->words = self->peers[i]->words_bytes = 0;
}

static void keep_word(group_t *self, struct peer *peer, struct word *word)
{
    if (self->last_word) self->last_word->next = word;
    else self->first_word = word;
    self->last_word = word;
    peer->words++;
    peer->words_bytes += (uint32_t)word->count;
}

static void refuse(struct peer *peer, const char *what, uint64_t value)
{
    char name[PEER_NAME_MAX];
    peer_end(peer, FAULT_FORMAT, "%s: %s (%llu); the link is closed", peer_name(peer, name), what,
             (unsigned long long)value);
    control_close(peer);
}

// A window needs few messages that are neither a word of it nor the DONE of a further sum: FORM, BREAK,
// and what was under way when it was formed. False: there are more; the link is ended.
static bool count_idle(struct peer *peer)
{
    if (peer->idle_messages++ < IDLE_MESSAGES_MAX) return true;
    refuse(peer, "it sent messages that this window does not need, and more than may be",
           IDLE_MESSAGES_MAX);
    return false;
}

// A message of this window, or what is said before it. False: the link is ended.
static bool hear(group_t *self, struct peer *peer)
{
    struct control *control = &peer->control;
    const struct message *in = &control->in;
    const bool ours = in->window == self->window && peer->place != UINT32_MAX;
    switch (in->kind) {
    case MESSAGE_FORM:
        if (peer->formed <= self->window) peer->left_sums = in->offset;
        peer->formed = in->window;
        peer->formed_dirty = in->number != 0;
        return count_idle(peer);
    case MESSAGE_WORD:
        if (!ours) return count_idle(peer);
        keep_word(self, peer, control->word);
        control->word = NULL;
        return true;
    case MESSAGE_DONE:
        if (!ours || in->number < peer->done || in->number == UINT64_MAX) return count_idle(peer);
        peer->done = in->number + 1;
        return true;
    case MESSAGE_BREAK:
        if (ours) {
            peer->broke = true;
            peer->moved_ms = clock_ms();
            peer->broke_for = in->number <= self->member_count ? (uint32_t)in->number : 0;
        }
        return count_idle(peer);
    default: refuse(peer, "it sent a message of an unknown kind", in->kind); return false;
    }
}

// The head is here. False: the link is ended.
static bool begin(group_t *self, struct peer *peer)
{
    struct control *control = &peer->control;
    if (control->unseal.context && !sealing_take(&control->unseal, control->head_in, HEAD_BYTES,
                                                 control->head_in + HEAD_BYTES)) {
        refuse(peer, "it sent what is not sealed with its key: message", control->unseal.next);
        return false;
    }
    message_unpack(control->head_in, &control->in);
    const struct message *in = &control->in;
    if (in->length > (in->kind == MESSAGE_WORD ? GROUP_WORD_MAX : 0)) {
        refuse(peer, "it sent a message that is too long", in->length);
        return false;
    }
    if (in->length == 0 && in->kind != MESSAGE_WORD) return true;
    if (peer->words >= WORDS_MAX || peer->words_bytes + in->length > WORDS_BYTES_MAX) {
        refuse(peer, "more of its words wait than may be unheard; the last one's bytes",
               in->length);
        return false;
    }
    control->word = calloc(1, sizeof *control->word + in->length + SEALING_TAG);
    ensure(control->word);
    control->word->from = peer;
    control->word->count = in->length;
    control->word_got = 0;
    (void)self;
    return true;
}

static bool is_sealed_word(struct control *control)
{
    const size_t count = control->in.length;
    return !control->unseal.context || count == 0 ||
           sealing_take(&control->unseal, control->word->bytes, count,
                        control->word->bytes + count);
}

// The message is whole. False: the link is ended.
static bool finish(group_t *self, struct peer *peer)
{
    struct control *control = &peer->control;
    if (control->word && !is_sealed_word(control)) {
        refuse(peer, "it sent a word that is not sealed with its key: message",
               control->unseal.next);
        return false;
    }
    control->head_got = 0;
    const bool goes_on = hear(self, peer);
    if (!goes_on) return false;
    free(control->word);
    control->word = NULL;
    return true;
}

// Where the next bytes go, and how many are missing.
static uint8_t *wanted(struct control *control, size_t *ret_count)
{
    const size_t tag = control->unseal.context ? SEALING_TAG : 0;
    if (!control->word) {
        *ret_count = HEAD_BYTES + tag - control->head_got;
        return control->head_in + control->head_got;
    }
    *ret_count = control->in.length ? control->in.length + tag - control->word_got : 0;
    return control->word->bytes + control->word_got;
}

// A part of what is here, so that the caller looks up also while a peer sends without end. If more is
// left, the next poll returns at once.
void control_read(group_t *self, struct peer *peer)
{
    enum { READS_MAX = 64 };
    struct control *control = &peer->control;
    for (int reads = 0; reads < READS_MAX && control->fd >= 0 && control->may_read; reads++) {
        size_t count;
        uint8_t *to = wanted(control, &count);
        const ssize_t n = count ? recv(control->fd, to, count, MSG_DONTWAIT) : 0;
        if (n < 0 && errno == EAGAIN) {
            control->may_read = false;
            return;
        }
        if (n < 0 || (n == 0 && count)) {
            end(peer, n < 0 ? strerror(errno) : "it hung up");
            return;
        }
        *(control->word ? &control->word_got : &control->head_got) += (size_t)n;
        if ((size_t)n < count) continue;
        if (!control->word && !begin(self, peer)) return;
        if (control->word && control->in.length && control->word_got == 0) continue;
        if (!finish(self, peer)) return;
    }
}

// ---- the calls ------------------------------------------------------------------------------

static bool is_told(struct group *self, struct peer *peer, const struct message *message,
                    const void *bytes)
{
    // One whose window is broken may still need what we say (group_hear_out). It has ended its channels, and so looks
    // as if its link had ended; but its control connection stands.
    // mutant: group: one whose window is broken is told nothing more
    const bool is_further = peer->formed > self->window;
    return is_further || control_say(self, peer, message, bytes);
}

int group_tell(group_t *self, const void *bytes, size_t count, struct why *why,
               struct group_blame *ret_blame)
{
    const struct message message = { .kind = MESSAGE_WORD,
                                     .length = (uint32_t)count,
                                     .window = self->window };
    char name[PEER_NAME_MAX];
    int rc = group_again(self, why, ret_blame);
    ensure(count <= GROUP_WORD_MAX);
    if (rc < 0) return rc;
    struct peer *deaf = NULL, *left = NULL;
    for (uint32_t m = 0; m < self->member_count; m++) {
        struct peer *peer = self->members[m];
        if (!peer) continue;
        if (!is_told(self, peer, &message, bytes)) deaf = peer;
        if (peer_has_left(self, peer)) left = peer;
    }
    if (deaf)
        return group_break(self, FAULT_LIMIT, deaf->place, false, why, ret_blame,
                           "%s does not read: more than %d bytes of words to it wait",
                           peer_name(deaf, name), 2 * WORDS_BYTES_MAX);
    return left ? group_break_for(self, left, why, ret_blame) : 0;
}

static struct word *take_word(group_t *self)
{
    struct word *word = self->first_word;
    if (!word) return NULL;
    self->first_word = word->next;
    if (!self->first_word) self->last_word = NULL;
    word->from->words--;
    word->from->words_bytes -= (uint32_t)word->count;
    free(self->told);
    self->told = word;
    return word;
}

// A member of which no more words come. Each is told once, so that the others can still be heard.
static int hear_end(group_t *self, struct why *why, struct group_blame *ret_blame)
{
    for (uint32_t m = 0; m < self->member_count; m++) {
        struct peer *peer = self->members[m];
        if (!peer || peer->end_told || !(peer->fault || peer->broke)) continue;
        struct why reason;
        peer->end_told = true;
        const int fault = peer_why(self, peer, &reason, ret_blame);
        return why_set(why, fault, "%s", reason.text);
    }
    return 0;
}

// `broken`: the window may be.
static int hear_word(group_t *self, bool broken, uint32_t timeout_ms, struct why *why,
                     struct group_blame *ret_blame, uint32_t *ret_member, const void **ret_bytes,
                     size_t *ret_count)
{
    const uint64_t until_ms = clock_ms() + timeout_ms;
    for (;;) {
        const struct word *word = take_word(self);
        if (word) {
            *ret_member = word->from->place;
            *ret_bytes = word->bytes;
            *ret_count = word->count;
            return 0;
        }
        int rc = broken ? 0 : group_again(self, why, ret_blame);
        if (rc == 0 && !broken) rc = hear_end(self, why, ret_blame);
        if (rc < 0) return rc;
        *ret_blame = (struct group_blame){ .member = UINT32_MAX };
        rc = group_wait(self, until_ms, false, why);
        if (rc < 0) return rc;
        if (!self->first_word && clock_ms() >= until_ms)
            return why_set(why, FAULT_TIMEOUT, "no word came within %u ms", timeout_ms);
    }
}

int group_hear(group_t *self, uint32_t timeout_ms, struct why *why, struct group_blame *ret_blame,
               uint32_t *ret_member, const void **ret_bytes, size_t *ret_count)
{
    return hear_word(self, false, timeout_ms, why, ret_blame, ret_member, ret_bytes, ret_count);
}

int group_hear_out(group_t *self, uint32_t timeout_ms, struct why *why, uint32_t *ret_member,
                   const void **ret_bytes, size_t *ret_count)
{
    struct group_blame blame;
    self->hears_out = true;
    const int rc = hear_word(self, true, timeout_ms, why, &blame, ret_member, ret_bytes, ret_count);
    self->hears_out = false;
    return rc;
}
