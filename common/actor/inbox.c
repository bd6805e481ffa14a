// inbox -- letters and senders lie in two arrays and refer to one another by place: place n is index n - 1, and 0 is
// none. A sender with a letter that waits is in the ring of turns, any other in the list of idle ones. inbox_next
// takes the first letter of the sender whose turn it is; inbox_charge then says what that letter has cost.

#include "common/actor/inbox.h"
#include "common/base/ensure.h"
#include <string.h>

// ---- senders --------------------------------------------------------------------------------------

static uint32_t *bucket_of(struct inbox *self, const struct key *key)
{
    uint32_t number;
    memcpy(&number, key->bytes, sizeof number); // Key bytes are as good as random
    return &self->buckets[number % INBOX_BUCKETS];
}

static struct inbox_sender *find(struct inbox *self, const struct key *key)
{
    uint32_t place = *bucket_of(self, key);
    while (place && !key_equal(&self->senders[place - 1].key, key))
        place = self->senders[place - 1].chain;
    return place ? &self->senders[place - 1] : NULL;
}

static uint32_t place_of(const struct inbox *self, const struct inbox_sender *sender)
{
    return (uint32_t)(sender - self->senders) + 1;
}

static void leave_idle(struct inbox *self, struct inbox_sender *sender)
{
    if (sender->before) self->senders[sender->before - 1].after = sender->after;
    else self->idle_first = sender->after;
    if (sender->after) self->senders[sender->after - 1].before = sender->before;
    else self->idle_last = sender->before;
    sender->before = sender->after = 0;
}

static void join_idle(struct inbox *self, struct inbox_sender *sender)
{
    const uint32_t place = place_of(self, sender);
    sender->before = self->idle_last;
    if (self->idle_last) self->senders[self->idle_last - 1].after = place;
    else self->idle_first = place;
    self->idle_last = place;
}

static void forget(struct inbox *self, struct inbox_sender *sender)
{
    uint32_t *at = bucket_of(self, &sender->key);
    while (*at != place_of(self, sender)) at = &self->senders[*at - 1].chain;
    *at = sender->chain;
    leave_idle(self, sender);
}

// A place for a new sender; if all are taken, that of the sender that was idle for longest. There is an idle one:
// every other sender has a letter here or is being heard, and has_room has found room for one more letter.
static struct inbox_sender *add(struct inbox *self, const struct key *key)
{
    struct inbox_sender *sender;
    if (self->senders_used < INBOX_SENDERS) sender = &self->senders[self->senders_used++];
    else {
        ensure(self->idle_first);
        sender = &self->senders[self->idle_first - 1];
        forget(self, sender);
    }
    uint32_t *bucket = bucket_of(self, key);
    *sender = (struct inbox_sender){ .key = *key, .chain = *bucket };
    *bucket = place_of(self, sender);
    join_idle(self, sender);
    return sender;
}

// ---- letters --------------------------------------------------------------------------------------

static bool has_room(const struct inbox *self, const struct inbox_sender *sender, size_t bytes)
{
    const uint32_t left = INBOX_LETTERS - self->count;
    const size_t left_bytes = INBOX_BYTES - self->bytes;
    // mutant: inbox: one sender fills it
    return left > 0 && bytes <= left_bytes && sender->count < left &&
           (sender->count == 0 || sender->bytes + bytes <= left_bytes - bytes);
}

bool inbox_put(struct inbox *self, const struct key *key, void *what, size_t bytes)
{
    static const struct inbox_sender nobody;
    struct inbox_sender *sender = find(self, key);
    if (!has_room(self, sender ? sender : &nobody, bytes)) return false;
    if (!sender) sender = add(self, key);
    uint32_t place = self->free_letter;
    if (place) self->free_letter = self->letters[place - 1].next;
    else place = ++self->letters_used;
    self->letters[place - 1] = (struct inbox_letter){ .what = what, .bytes = bytes };
    if (sender->last) self->letters[sender->last - 1].next = place;
    else sender->first = place;
    sender->last = place;
    if (sender->count == 0 && sender != self->heard) leave_idle(self, sender);
    sender->count++, sender->bytes += bytes;
    self->count++, self->bytes += bytes;
    self->turns.quantum = INBOX_TURN_US;
    turns_add(&self->turns, &sender->turn);
    return true;
}

void *inbox_next(struct inbox *self)
{
    ensure(!self->heard);
    struct waiter *waiter = turns_next(&self->turns);
    if (!waiter) return NULL;
    struct inbox_sender *sender = (struct inbox_sender *)waiter;
    const uint32_t place = sender->first;
    struct inbox_letter *letter = &self->letters[place - 1];
    sender->first = letter->next;
    if (!sender->first) sender->last = 0;
    letter->next = self->free_letter;
    self->free_letter = place;
    sender->count--, sender->bytes -= letter->bytes;
    self->count--, self->bytes -= letter->bytes;
    self->heard = sender;
    return letter->what;
}

void inbox_charge(struct inbox *self, uint64_t us)
{
    struct inbox_sender *sender = self->heard;
    ensure(sender);
    // mutant: inbox: a sender's turn is not counted
    turns_charge(&sender->turn, us);
    self->heard = NULL;
    if (sender->count > 0) return;
    turns_remove(&self->turns, &sender->turn);
    join_idle(self, sender);
}
