// inbox_test -- senders share the time of who hears them, whatever they send and whatever it costs; nobody is kept
// out by those that fill it.

#include "common/actor/cost.h"
#include "common/actor/inbox.h"
#include "common/base/ensure.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

enum { LETTER_US = 100, KEYS = 20000 };

static struct inbox *inbox;
static int letters[INBOX_LETTERS + 1]; // What waits is the address of one

static int set_up(void **state)
{
    (void)state;
    free(inbox);
    inbox = calloc(1, sizeof *inbox);
    ensure(inbox);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(inbox);
    inbox = NULL;
    return 0;
}

static struct key key(uint32_t number)
{
    struct key key = { .bytes = { 1 } };
    memcpy(key.bytes + 1, &number, sizeof number);
    return key;
}

static bool put(uint32_t sender, int *letter, size_t bytes)
{
    const struct key from = key(sender);
    return inbox_put(inbox, &from, letter, bytes);
}

static int *hear(uint64_t us)
{
    int *letter = inbox_next(inbox);
    if (letter) inbox_charge(inbox, us);
    return letter;
}

static void letters_of_one_keep_their_order(void **state)
{
    (void)state;
    assert_null(inbox_next(inbox));
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 1000; i++) assert_true(put(1, &letters[i], 10));
        for (int i = 0; i < 1000; i++) assert_ptr_equal(hear(LETTER_US), &letters[i]);
        assert_null(inbox_next(inbox));
    }
    assert_int_equal(inbox->count, 0);
    assert_int_equal(inbox->bytes, 0);
}

// One has a thousand letters there when those of ten others come, one each: all ten are heard in one round.
static void many_letters_delay_nobody(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) assert_true(put(1, &letters[0], 10));
    for (int i = 1; i <= 10; i++) assert_true(put(1 + (uint32_t)i, &letters[i], 10));
    uint64_t us = 0;
    for (int left = 10; left > 0; us += LETTER_US) left -= hear(LETTER_US) != &letters[0];
    assert_in_range(us, 10 * LETTER_US, 2 * INBOX_TURN_US + 10 * LETTER_US);
}

// What one asks for takes fifty times as long: it is heard a fiftieth as often.
static void costly_letters_pay_for_themselves(void **state)
{
    (void)state;
    uint32_t heard[2] = { 0 };
    for (int i = 0; i < 2000; i++) assert_true(put(1, &letters[0], 10) && put(2, &letters[1], 10));
    for (int i = 0; i < 1020; i++) {
        int *letter = inbox_next(inbox);
        heard[letter - letters]++;
        inbox_charge(inbox, letter == &letters[0] ? 50 * LETTER_US : LETTER_US);
    }
    assert_in_range(heard[0], 18, 22);
}

// One that sends the next costly letter only when its last was heard owes for that one all the same.
static void going_away_pays_no_debt(void **state)
{
    (void)state;
    uint32_t costly = 0;
    for (int i = 0; i < 1000; i++) assert_true(put(2, &letters[1], 10));
    assert_true(put(1, &letters[0], 10));
    for (int i = 0; i < 500; i++) {
        const bool is_costly = inbox_next(inbox) == &letters[0];
        inbox_charge(inbox, is_costly ? 50 * LETTER_US : LETTER_US);
        costly += is_costly;
        if (is_costly) assert_true(put(1, &letters[0], 10));
    }
    assert_in_range(costly, 5, 15);
}

// One may take half of it, a second a half of the rest; there is always room for one more.
static void nobody_fills_it(void **state)
{
    (void)state;
    for (uint32_t sender = 1, left = INBOX_LETTERS; sender <= 10; sender++) {
        uint32_t taken = 0;
        while (put(sender, &letters[0], 0)) taken++;
        assert_in_range(taken, left / 2, left / 2 + 1);
        left -= taken;
    }
    set_up(NULL);
    for (uint32_t sender = 1; sender <= 10; sender++)
        while (put(sender, &letters[0], INBOX_BYTES / 1024)) continue;
    assert_in_range(inbox->bytes, INBOX_BYTES / 2, INBOX_BYTES - 1);
    assert_true(put(11, &letters[0], 4));
    assert_false(put(12, &letters[0], (size_t)INBOX_BYTES + 1));
}

// More keys than it has places for, one letter each, some heard in between.
static void any_number_of_keys_pass(void **state)
{
    (void)state;
    uint32_t heard = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        assert_true(put(i, &letters[0], 1));
        if (i % 2 == 0) heard += hear(LETTER_US) != NULL;
    }
    while (hear(LETTER_US)) heard++;
    assert_int_equal(heard, KEYS);
    for (uint32_t i = 0; i < INBOX_LETTERS; i++) assert_true(put(KEYS + i, &letters[0], 1));
    assert_false(put(2 * KEYS, &letters[0], 1));
    for (heard = 0; hear(LETTER_US);) heard++;
    assert_int_equal(heard, INBOX_LETTERS);
}

// ---- cost -----------------------------------------------------------------------------------------

static void what_is_asked_for_is_counted(void **state)
{
    (void)state;
    struct effect effects[8];
    uint8_t bytes[4096];
    struct outbox out = { effects, 0, 8, bytes, 0, sizeof bytes };
    const struct wire_ping ping = { .instance = 1 };
    assert_int_equal(cost_of_hearing(FRAME_ASK, 0), COST_HEAR_US);
    assert_int_equal(cost_of_hearing(FRAME_PING, 500), COST_HEAR_US + COST_VERIFY_US + 10);
    assert_int_equal(cost_of_hearing(FRAME_CLAIM_COPY, 0), COST_HEAR_US + 2 * COST_VERIFY_US);
    outbox_wake(&out, 7);
    assert_int_equal(cost_of_effects(&out, 0), 0);
    outbox_mail(&out, "coordinator", FRAME_PING, &ping);
    outbox_job(&out, PORT_DISK, FRAME_SEND_COMMITS,
               &(struct wire_send_commits){ .to = "trainer.1", .count = 64 });
    outbox_store(&out, FRAME_RECORD_PAUSE, &(struct wire_record_pause){ 0 });
    assert_int_equal(cost_of_effects(&out, 0),
                     COST_SAY_US + 64 * (COST_READ_US + COST_SAY_US) + COST_STORE_US);
    assert_int_equal(cost_of_effects(&out, 3), COST_STORE_US);
    assert_int_equal(cost_in_frames(FRAME_HELLO), 1);
    assert_true(cost_in_frames(FRAME_JOIN) > cost_in_frames(FRAME_PING));
}

TESTS(TEST_WITH(letters_of_one_keep_their_order, set_up, tear_down),
      TEST_WITH(many_letters_delay_nobody, set_up, tear_down),
      TEST_WITH(costly_letters_pay_for_themselves, set_up, tear_down),
      TEST_WITH(going_away_pays_no_debt, set_up, tear_down),
      TEST_WITH(nobody_fills_it, set_up, tear_down),
      TEST_WITH(any_number_of_keys_pass, set_up, tear_down), TEST(what_is_asked_for_is_counted))
