// The backlog: bytes that wait for a receiver are counted exactly and bounded, for each and for
// all; only a receiver that does not read is cut off.
#include "broker/backlog.h"
#include "tests/test.h"

enum {
    PART = 1 << 20,
    PART_ON_WIRE = PART + 33 + 9,
    COMMIT_BYTES = 5 << 19,
    ROSTER_BYTES = 1 << 21
};

struct cuts {
    int fds[64], count;
};

static void note(void *arg, int fd)
{
    struct cuts *cuts = arg;
    cuts->fds[cuts->count++] = fd;
}

static void fill(struct backlog *self, int fd)
{
    while (!backlog_is_full(self, fd)) backlog_sent(self, fd, PART);
}

static void mail_is_bounded_for_each_receiver(void **state)
{
    (void)state;
    struct backlog *self = backlog_new();
    for (int fd = 10; fd < 13; fd++) backlog_opened(self, fd, AT_MAIL);
    uint64_t sent = 0;
    for (; !backlog_is_full(self, 10); sent += PART_ON_WIRE) backlog_sent(self, 10, PART);
    assert_in_range(sent, BACKLOG_MAX, BACKLOG_MAX + PART_ON_WIRE);
    assert_false(backlog_is_full(self, 11)); // Never for another's
    backlog_measured(self, 10, sent - BACKLOG_MAX - 1, false, 1);
    assert_true(backlog_is_full(self, 10));
    backlog_measured(self, 10, sent - BACKLOG_MAX, false, 1); // To the byte
    assert_false(backlog_is_full(self, 10));
    backlog_sent(self, 10, 0);
    assert_true(backlog_is_full(self, 10));
    backlog_opened(self, 10, AT_MAIL); // The number is another's now
    assert_false(backlog_is_full(self, 10));
    backlog_trust(self, 12, true);
    for (sent = 0; !backlog_is_full(self, 12); sent += PART_ON_WIRE) backlog_sent(self, 12, PART);
    assert_in_range(sent, BACKLOG_TRUSTED_MAX, BACKLOG_TRUSTED_MAX + PART_ON_WIRE);
    backlog_sent(self, 99, PART), backlog_sent(self, -1, PART), backlog_closed(self, -1, AT_MAIL);
    assert_false(backlog_is_full(self, 99) || backlog_is_full(self, -1));
    backlog_destroy(&self);
}

static void the_largest_backlog_goes_when_all_is_too_much(void **state)
{
    (void)state;
    struct backlog *self = backlog_new();
    struct cuts cuts = { .count = 0 };
    for (int fd = 10; fd < 40; fd++) backlog_opened(self, fd, AT_MAIL);
    backlog_trust(self, 10, true);
    fill(self, 10);                                  // Counts apart, and is never cut
    for (int fd = 11; fd < 18; fd++) fill(self, fd); // 7 times 16 MiB fit in 128
    for (int fd = 20; fd < 40; fd++) backlog_sent(self, fd, 1 << 18);
    for (int fd = 10; fd < 40; fd++) backlog_measured(self, fd, 0, false, 1);
    backlog_cut_full(self, 2, note, &cuts);
    assert_int_equal(cuts.count, 0);
    fill(self, 18), backlog_sent(self, 18, PART);
    fill(self, 19);
    backlog_cut_full(self, 2, note, &cuts);
    assert_int_equal(cuts.count, 2);
    assert_int_equal(cuts.fds[0], 18);
    assert_in_range(cuts.fds[1], 11, 19); // None of those with little
    backlog_measured(self, 18, 1 << 30, true, 1);
    assert_true(backlog_is_full(self, 18)); // Until its end is known
    backlog_cut_full(self, 2, note, &cuts);
    assert_int_equal(cuts.count, 2);
    backlog_destroy(&self);
}

// Rounds of 16,384 members, one a second: a COMMIT and a ROSTER. A reader that takes them late
// stays, and so does one that takes most of them; a reader that takes nothing goes.
static void a_reader_behind_with_the_news_goes(void **state)
{
    (void)state;
    enum { PROMPT, STOPPED, THIN, PICKY, DEAF, SUBSCRIBERS };
    struct backlog *self = backlog_new();
    struct cuts cuts = { .count = 0 };
    uint64_t taken[SUBSCRIBERS] = { 0 }, all = 0, deaf_waits = 0;
    for (int fd = 0; fd < SUBSCRIBERS; fd++) backlog_opened(self, fd, AT_NEWS);
    for (uint64_t second = 1; second <= 60; second++) {
        const uint64_t now_ms = 1000 * second;
        backlog_published(self, COMMIT_BYTES), backlog_published(self, ROSTER_BYTES);
        all += COMMIT_BYTES + ROSTER_BYTES + 2 * (33 + 9);
        taken[PROMPT] = all;
        if (second <= 20 || second > 30) taken[STOPPED] = all; // SIGSTOP, for ten seconds
        taken[THIN] = all / 8 * 7;                             // For a minute it takes too little
        taken[PICKY] += 1000;
        for (int fd = 0; fd < SUBSCRIBERS; fd++)
            backlog_measured(self, fd, taken[fd], fd == PICKY || taken[fd] == all, now_ms);
        backlog_cut_full(self, now_ms, note, &cuts);
        if (cuts.count == 0) deaf_waits = all;
    }
    assert_int_equal(cuts.count, 1);
    assert_int_equal(cuts.fds[0], DEAF);
    assert_in_range(deaf_waits, BACKLOG_NEWS_MAX - (8 << 20), BACKLOG_NEWS_MAX);
    backlog_destroy(&self);
}

// However little it is: in half a minute some of it must have been taken.
static void a_reader_that_takes_nothing_goes(void **state)
{
    (void)state;
    enum { IDLE, SLOW, TRUSTED, DEAF, RECEIVERS };
    struct backlog *self = backlog_new();
    struct cuts cuts = { .count = 0 };
    uint64_t began_ms = 5000, now_ms = began_ms, at_ms = 0;
    for (int fd = 0; fd < RECEIVERS; fd++) {
        backlog_opened(self, fd, AT_MAIL);
        backlog_trust(self, fd, fd == TRUSTED);
        backlog_sent(self, fd, 1000);
    }
    for (; now_ms <= began_ms + 10 * BACKLOG_STALLED_MS; now_ms += 1000) {
        const uint64_t some = (now_ms - began_ms) / (BACKLOG_STALLED_MS - 1000);
        backlog_measured(self, IDLE, 7, true, now_ms);
        backlog_measured(self, SLOW, some, false, now_ms);
        backlog_measured(self, TRUSTED, some, false, now_ms);
        backlog_measured(self, DEAF, 7, false, now_ms);
        backlog_cut_full(self, now_ms, note, &cuts);
        if (cuts.count && !at_ms) at_ms = now_ms;
    }
    assert_int_equal(cuts.count, 1);
    assert_int_equal(cuts.fds[0], DEAF);
    assert_in_range(at_ms, began_ms + BACKLOG_STALLED_MS, began_ms + BACKLOG_STALLED_MS + 1000);
    backlog_destroy(&self);
}

// The news report the end of a connection after the mail have reported the next one on its descriptor.
static void the_end_of_a_subscriber_is_not_that_of_a_receiver_of_mail(void **state)
{
    (void)state;
    struct backlog *self = backlog_new();
    backlog_opened(self, 10, AT_NEWS);
    backlog_opened(self, 10, AT_MAIL);
    backlog_closed(self, 10, AT_NEWS);
    backlog_sent(self, 10, BACKLOG_MAX);
    assert_true(backlog_is_full(self, 10));
    backlog_closed(self, 10, AT_MAIL);
    assert_false(backlog_is_full(self, 10));
    backlog_destroy(&self);
}

TESTS(TEST(mail_is_bounded_for_each_receiver), TEST(the_largest_backlog_goes_when_all_is_too_much),
      TEST(a_reader_behind_with_the_news_goes), TEST(a_reader_that_takes_nothing_goes),
      TEST(the_end_of_a_subscriber_is_not_that_of_a_receiver_of_mail))
