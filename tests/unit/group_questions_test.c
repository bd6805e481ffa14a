// group: questions between members, as trainers ask parameter servers: the floats arrive, and nobody waits for a
// third.

#include "tests/unit/group_fixture.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

// Of `world` members the last `servers` answer.
static uint32_t servers = 2;
enum { ANSWER_MS = 10000, LONG = 4 << 20 };

struct kind {
    enum group_link link;
    uint32_t connections;
};

// ---- what they say ----------------------------------------------------------------------------

enum verb { PUSH = 'p', PULL = 'g', PLAIN = 'n', BYE = 'b' }; // PLAIN: no floats

static bool answers(uint32_t member) { return member >= world - servers; }

// Floats that follow from who says them to whom, and when; each other than its neighbours.
static uint32_t salt_of(uint32_t from, uint32_t to, uint64_t number)
{
    return (from * MAX + to) * 0x9E3779B1u + (uint32_t)number;
}

static float next(uint32_t *salt)
{
    *salt = *salt * 1664525 + 1013904223;
    return (float)(*salt >> 8);
}

static void fill(float *values, uint64_t floats, uint32_t from, uint32_t to, uint64_t number)
{
    uint32_t salt = salt_of(from, to, number);
    for (uint64_t i = 0; i < floats; i++) values[i] = next(&salt);
}

static bool is_filled(const float *values, uint64_t floats, uint32_t from, uint32_t to,
                      uint64_t number)
{
    uint32_t salt = salt_of(from, to, number);
    for (uint64_t i = 0; i < floats; i++)
        if (values[i] != next(&salt)) return false;
    return true;
}

// A header of its own length for each number.
static size_t write_header(uint8_t header[GROUP_HEADER_MAX], enum verb verb, uint64_t number)
{
    const size_t count = 9 + number * 7 % (GROUP_HEADER_MAX - 8);
    memset(header, (int)number, count);
    header[0] = (uint8_t)verb;
    memcpy(header + 1, &number, sizeof number);
    return count;
}

static uint64_t number_in(const struct group_letter *letter)
{
    uint8_t header[GROUP_HEADER_MAX];
    uint64_t number;
    memcpy(&number, (const uint8_t *)letter->header + 1, sizeof number);
    const uint8_t verb = *(const uint8_t *)letter->header;
    CHECK(letter->count == write_header(header, verb, number));
    CHECK(memcmp(letter->header, header, letter->count) == 0);
    return number;
}

static void ask(group_t *group, uint32_t to, enum verb verb, uint64_t number, float *floats,
                uint64_t count)
{
    uint8_t header[GROUP_HEADER_MAX];
    struct group_question question = { .to = to,
                                       .said = { .header = header },
                                       .ret_floats = verb == PULL ? floats : NULL,
                                       .answer_floats = verb == PULL ? count : 0 };
    question.said.count = write_header(header, verb, number);
    if (verb == PUSH) question.said.floats = floats, question.said.floats_count = count;
    CHECK(group_ask(group, &question, &why, &blame) == 0);
    memset(header, 0, sizeof header);
}

static uint32_t hear(group_t *group, uint64_t number)
{
    struct group_letter answer;
    uint32_t from;
    CHECK(group_hear_answer(group, ANSWER_MS, &why, &blame, &from, &answer) == 0);
    CHECK(number_in(&answer) == number && from != me && blame.member == UINT32_MAX);
    return from;
}

// Answers one question; false: it was a BYE.
static bool answer_one(group_t *group, uint64_t floats, float *vector)
{
    struct group_letter question, answer = { 0 };
    uint8_t header[GROUP_HEADER_MAX];
    uint32_t from;
    CHECK(group_hear_question(group, floats, ANSWER_MS, &why, &blame, &from, &question) == 0);
    CHECK(!answers(from));
    const enum verb verb = *(const uint8_t *)question.header;
    const uint64_t number = number_in(&question);
    CHECK(question.floats_count == (verb == PUSH ? floats : 0));
    CHECK(is_filled(question.floats, question.floats_count, from, me, number));
    answer.header = header;
    answer.count = write_header(header, verb, number);
    if (verb == PULL) {
        fill(vector, floats, me, from, number);
        answer.floats = vector, answer.floats_count = floats;
    }
    group_answer(group, from, &answer);
    memset(vector, 0xee, floats * sizeof(float)); // Ours again
    return verb != BYE;
}

static void ask_both(group_t *group, uint64_t number, enum verb verb, float *floats[MAX],
                     uint64_t count)
{
    uint64_t heard = 0;
    for (uint32_t s = world - servers; s < world; s++) {
        if (verb == PUSH) fill(floats[s], count, me, s, number);
        ask(group, s, verb, number, floats[s], count);
    }
    for (uint32_t i = 0; i < servers; i++) heard |= 1u << hear(group, number);
    for (uint32_t s = world - servers; s < world; s++) {
        CHECK(heard >> s & 1);
        CHECK(verb != PULL || is_filled(floats[s], count, s, me, number));
    }
}

static void talk(group_t *group, uint64_t floats, int turns)
{
    float *room[MAX] = { NULL };
    for (uint32_t m = 0; m < world; m++) room[m] = malloc(floats * sizeof(float) + 1);
    if (answers(me)) {
        for (uint32_t left = world - servers; left > 0;)
            left -= !answer_one(group, floats, room[me]);
    } else {
        for (int i = 0; i < turns; i++) {
            ask_both(group, (uint64_t)(2 * i), PUSH, room, floats);
            ask_both(group, (uint64_t)(2 * i + 1), PULL, room, floats);
        }
        ask_both(group, 99, BYE, room, 0);
    }
    for (uint32_t m = 0; m < world; m++) free(room[m]);
    pthread_barrier_wait(&shared->barrier);
}

// All are in the window before one goes on: it may end, or go to the next one at once.
static void form(group_t *group, uint64_t window)
{
    CHECK(group_form(group, window, shared->members, world, me, FORM_MS, &why, &blame) == 0);
    pthread_barrier_wait(&shared->barrier);
}

static group_t *begin(const struct kind *kind)
{
    struct group_options options = options_of(me);
    options.link = kind->link;
    options.connections = kind->connections;
    group_t *group = group_of(&options);
    form(group, 1);
    return group;
}

static const struct kind plain = { GROUP_PLAIN, 1 };

// ---- all is well ------------------------------------------------------------------------------

static void talk_of_all_sizes(void *arg)
{
    static const uint64_t sizes[] = { 1, 1000, 32768, 32769, 200001, 1 << 20 };
    group_t *group = begin(arg);
    for (uint64_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        form(group, 2 + i);
        talk(group, sizes[i], sizes[i] >= 1 << 20 ? 2 : 9);
    }
    form(group, 9);
    add(group, 0, world, me, 8, 64, 70001, false); // A window of sums follows one of questions
    CHECK(sum_zeros(group, 1, 1 << 20, SUM_MS) == 0);
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static void floats_arrive_both_ways(void **state)
{
    struct kind kinds[] = {
        { GROUP_PLAIN, 1 }, { GROUP_SEALED, 1 }, { GROUP_PLAIN, 3 }, { GROUP_SEALED, 2 }
    };
    (void)state;
    for (int i = 0; i < 4; i++) run(4, talk_of_all_sizes, &kinds[i], 0);
    run(3, talk_of_all_sizes, &kinds[0], 0); // One trainer
}

// ---- one that stops ---------------------------------------------------------------------------

static pthread_barrier_t *pair; // Of two members

static void pair_up(void)
{
    pthread_barrierattr_t attr;
    pair = mmap(NULL, sizeof *pair, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(pair != MAP_FAILED);
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(pair, &attr, 2);
}

static void meet(void) { pthread_barrier_wait(pair); }

static void ask_and_hear(group_t *group, uint32_t to, enum verb verb)
{
    ask(group, to, verb, 1, NULL, 0);
    CHECK(hear(group, 1) == to);
}

// Asks with more floats than sockets hold, and does not move on before member 1 has had its answers.
static void stop_within(group_t *group, uint32_t server, enum verb verb, float *room)
{
    if (verb == PUSH) fill(room, LONG, me, server, 7);
    ask(group, server, verb, 7, room, LONG);
    meet();
    meet();
    hear(group, 7);
    CHECK(verb == PUSH || is_filled(room, LONG, server, me, 7));
}

static void ask_meanwhile(group_t *group, uint32_t server)
{
    meet();
    for (int i = 0; i < 50; i++) ask_and_hear(group, server, PLAIN);
    meet();
}

static void stop_in_the_middle(void *arg)
{
    group_t *group = begin(arg);
    float *room = malloc(LONG * sizeof(float));
    const uint32_t server = world - 1;
    if (me == server)
        for (int left = 2; left > 0;) left -= !answer_one(group, LONG, room);
    if (me == 0) {
        stop_within(group, server, PUSH, room);
        stop_within(group, server, PULL, room);
    } else if (me == 1) {
        ask_meanwhile(group, server);
        ask_meanwhile(group, server);
    }
    if (me < 2) ask_and_hear(group, server, BYE);
    free(room);
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static void one_that_stops_delays_nobody(void **state)
{
    struct kind sealed = { GROUP_SEALED, 2 };
    (void)state;
    pair_up();
    run(4, stop_in_the_middle, (void *)(uintptr_t)&plain, 0);
    run(4, stop_in_the_middle, &sealed, 0);
}

// ---- one that dies ----------------------------------------------------------------------------

// Server 3 dies when it has heard a question. Trainer 0 dies with half of its question said.
static void die(void *arg)
{
    group_t *group = begin(arg);
    float *room = malloc(LONG * sizeof(float));
    struct group_letter letter;
    uint32_t from;
    if (me == 3) {
        CHECK(group_hear_question(group, LONG, ANSWER_MS, &why, &blame, &from, &letter) == 0);
        _exit(0);
    } else if (me == 2) {
        for (int left = 50;
             left > 0;) { // Trainer 0 is told once, and the questions of trainer 1 go on
            const int rc =
                group_hear_question(group, LONG, ANSWER_MS, &why, &blame, &from, &letter);
            CHECK(rc == 0 || rc == FAULT_UNREACHABLE);
            if (rc == 0) {
                CHECK(from == 1);
                group_answer(group, from,
                             &(struct group_letter){ letter.header, letter.count, NULL, 0 });
                left--;
            } else {
                CHECK(blame.member == 0 || blame.member == 3);
                CHECK(!(shared->numbers[2] >> blame.member & 1) && !blame.gone);
                shared->numbers[2] |= 1u << blame.member;
            }
        }
        while (shared->numbers[2] != 9) {
            CHECK(group_hear_question(group, LONG, ANSWER_MS, &why, &blame, &from, &letter) ==
                  FAULT_UNREACHABLE);
            shared->numbers[2] |= 1u << blame.member;
        }
        CHECK(group_hear_question(group, LONG, 0, &why, &blame, &from, &letter) == FAULT_TIMEOUT);
        CHECK(blame.member == UINT32_MAX);
        meet();
    } else if (me == 0) {
        fill(room, LONG, me, 2, 0);
        ask(group, 2, PUSH, 0, room, LONG);
        _exit(0);
    } else {
        ask(group, 3, PLAIN, 1, NULL, 0);
        for (int i = 0; i < 50; i++) { // That of server 3 is told between the answers of server 2
            ask(group, 2, PLAIN, 1, NULL, 0);
            const int rc = group_hear_answer(group, ANSWER_MS, &why, &blame, &from, &letter);
            if (rc == 0) {
                CHECK(from == 2);
                continue;
            }
            CHECK(rc == FAULT_UNREACHABLE && blame.member == 3 && shared->numbers[1] == 0);
            CHECK(strstr(why.text, "member 3"));
            shared->numbers[1] = 1;
            hear(group, 1);
        }
        if (shared->numbers[1] == 0) {
            CHECK(group_hear_answer(group, ANSWER_MS, &why, &blame, &from, &letter) ==
                  FAULT_UNREACHABLE);
            CHECK(blame.member == 3);
        }
        const struct group_question again = { .to = 3, .said = { .header = "x", .count = 1 } };
        CHECK(group_ask(group, &again, &why, &blame) == FAULT_UNREACHABLE && blame.member == 3);
        while (!(group_dead(group) & 8)) { // Its connections may end before its port
        }
        meet();
    }
    free(room);
    group_destroy(&group);
}

static void one_that_dies_is_named_and_the_others_go_on(void **state)
{
    struct kind sealed = { GROUP_SEALED, 2 };
    (void)state;
    pair_up();
    run(4, die, (void *)(uintptr_t)&plain, 0);
    run(4, die, &sealed, 0);
}

// Its end is known before its question is read.
static void ask_and_die(void *arg)
{
    group_t *group = begin(arg);
    struct group_letter letter;
    uint32_t from;
    if (me == 0) {
        ask(group, 1, PLAIN, 8, NULL, 0);
        _exit(0);
    }
    while (!(group_dead(group) & 1)) {
    }
    CHECK(group_hear_question(group, 16, ANSWER_MS, &why, &blame, &from, &letter) == 0);
    CHECK(from == 0 && number_in(&letter) == 8);
    group_answer(group, from, &letter); // To nobody
    CHECK(group_hear_question(group, 16, ANSWER_MS, &why, &blame, &from, &letter) ==
          FAULT_UNREACHABLE);
    CHECK(blame.member == 0);
    group_destroy(&group);
}

static void a_question_is_heard_before_the_end_of_its_member(void **state)
{
    struct kind sealed = { GROUP_SEALED, 3 };
    (void)state;
    run(2, ask_and_die, (void *)(uintptr_t)&plain, 0);
    run(2, ask_and_die, &sealed, 0);
}

// ---- one that breaks the rules ----------------------------------------------------------------

static void put(group_t *group, uint32_t to, const struct message *message, const void *payload)
{
    uint8_t bytes[HEAD_BYTES + 256] = { 0 };
    struct message said = *message;
    said.window = group->window;
    message_pack(&said, bytes);
    memcpy(bytes + HEAD_BYTES, payload, message->length);
    const size_t count = HEAD_BYTES + message->length;
    CHECK(send(group->members[to]->channels[0].fd, bytes, count, 0) == (ssize_t)count);
}

// What member 0 sends to a server that takes 16 floats, and what the server says of it.
static const struct forgery {
    const char *said;
    struct message messages[4];
} forgeries[] = {
    { "is part of no question", { { .kind = MESSAGE_PART, .length = 8 } } },
    { "is part of no question", { { .kind = 99, .number = 1, .length = 8 } } },
    { "an answer to no question", { { .kind = MESSAGE_ANSWER, .number = 1, .length = 8 } } },
    { "of the wrong size",
      { { .kind = MESSAGE_QUESTION, .number = 1, .length = 8, .offset = 60 } } },
    { "of the wrong size",
      { { .kind = MESSAGE_QUESTION, .number = 1, .length = 8, .offset = (uint64_t)1 << 50 } } },
    { "of the wrong size", { { .kind = MESSAGE_QUESTION, .number = 1, .length = 129 } } },
    { "of the wrong size", { { .kind = MESSAGE_QUESTION, .number = 1, .length = 0 } } },
    { "before the answer", { { .kind = MESSAGE_QUESTION, .number = 2, .length = 8 } } },
    { "before the answer",
      { { .kind = MESSAGE_QUESTION, .number = 1, .length = 8, .offset = 64 },
        { .kind = MESSAGE_QUESTION, .number = 2, .length = 8, .offset = 64 } } },
    { "floats before their header", { { .kind = MESSAGE_FLOATS, .number = 1, .length = 64 } } },
    { "floats of no question", { { .kind = MESSAGE_FLOATS, .number = 0, .length = 64 } } },
    { "no piece of its vector",
      { { .kind = MESSAGE_QUESTION, .number = 1, .length = 8, .offset = 64 },
        { .kind = MESSAGE_FLOATS, .number = 1, .length = 60 } } },
    { "no piece of its vector",
      { { .kind = MESSAGE_QUESTION, .number = 1, .length = 8, .offset = 64 },
        { .kind = MESSAGE_FLOATS, .number = 1, .length = 32, .offset = 32 } } },
    { "no piece of its vector",
      { { .kind = MESSAGE_QUESTION, .number = 1, .length = 8, .offset = 64 },
        { .kind = MESSAGE_FLOATS, .number = 1, .length = 64, .offset = 128 << 10 } } },
};

static void forge(void *arg)
{
    const struct forgery *forgery = arg;
    group_t *group = begin(&plain);
    struct group_letter letter;
    uint32_t from;
    if (me == 0) {
        for (int i = 0; forgery->messages[i].kind; i++)
            put(group, world - 1, &forgery->messages[i], (const uint8_t[256]){ 0 });
        pthread_barrier_wait(&shared->barrier);
    } else if (me == world - 1) {
        for (int told = 0, heard = 0; told < 1 || heard < 1;) {
            const int rc = group_hear_question(group, 16, ANSWER_MS, &why, &blame, &from, &letter);
            CHECK(rc == 0 || (rc == FAULT_FORMAT && blame.member == 0 && !told));
            if (rc == 0) {
                CHECK(from == 1);
                group_answer(group, from, &letter);
                heard++;
            } else {
                CHECK(strstr(why.text, forgery->said));
                told++;
            }
        }
        pthread_barrier_wait(&shared->barrier);
    } else {
        float floats[16];
        fill(floats, 16, me, world - 1, 5);
        const struct group_question question = {
            .to = world - 1,
            .said = { .header = "echo", .count = 4, .floats = floats, .floats_count = 16 },
            .ret_floats = floats,
            .answer_floats = 16
        };
        CHECK(group_ask(group, &question, &why, &blame) == 0);
        CHECK(group_hear_answer(group, ANSWER_MS, &why, &blame, &from, &letter) == 0);
        CHECK(letter.floats == floats && letter.floats_count == 16 && letter.count == 4);
        CHECK(is_filled(floats, 16, me, world - 1, 5) && memcmp(letter.header, "echo", 4) == 0);
        pthread_barrier_wait(&shared->barrier);
    }
    group_destroy(&group);
}

static void a_question_that_breaks_the_rules_ends_its_link_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++)
        run(3, forge, (void *)(uintptr_t)&forgeries[i], 0);
}

// A piece twice: of a vector of two pieces.
static void repeat_a_piece(void *arg)
{
    enum { FLOATS = 2 << 15 };
    group_t *group = begin(arg);
    struct group_letter letter;
    uint32_t from;
    if (me == 0) {
        static float piece[FLOATS / 2];
        uint8_t head[HEAD_BYTES];
        const int fd = group->members[1]->channels[0].fd;
        put(group, 1,
            &(struct message){
                .kind = MESSAGE_QUESTION, .number = 1, .length = 8, .offset = FLOATS * 4 },
            "01234567");
        const struct message floats = {
            .kind = MESSAGE_FLOATS, .window = 1, .number = 1, .length = sizeof piece
        };
        message_pack(&floats, head);
        for (int i = 0; i < 2; i++) {
            CHECK(send(fd, head, sizeof head, MSG_NOSIGNAL) == sizeof head);
            for (size_t at = 0; i == 0 && at < sizeof piece;) {
                const ssize_t n = send(fd, (uint8_t *)piece + at, sizeof piece - at, MSG_NOSIGNAL);
                CHECK(n > 0 || errno == EAGAIN);
                if (n > 0) at += (size_t)n;
                else CHECK(poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, 5000) == 1);
            }
        }
    } else {
        CHECK(group_hear_question(group, FLOATS, ANSWER_MS, &why, &blame, &from, &letter) ==
              FAULT_FORMAT);
        CHECK(blame.member == 0 && strstr(why.text, "a piece twice"));
    }
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

// A server whose answer has another size than was asked for, or that answers nothing that was asked.
static void answer_wrongly(void *arg)
{
    const struct message *answer = arg;
    group_t *group = begin(&plain);
    float room[16] = { 0 };
    struct group_letter letter;
    uint32_t from;
    if (me == 0) {
        ask(group, 1, PULL, 3, room, 16);
        CHECK(group_hear_answer(group, ANSWER_MS, &why, &blame, &from, &letter) == FAULT_FORMAT);
        CHECK(blame.member == 1 && strstr(why.text, "an answer"));
        CHECK(room[0] == 0);
    } else {
        CHECK(group_hear_question(group, 16, ANSWER_MS, &why, &blame, &from, &letter) == 0);
        put(group, 0, answer, (const uint8_t[256]){ 0 });
    }
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static void what_is_no_piece_or_no_answer_is_refused(void **state)
{
    struct message answers[] = {
        { .kind = MESSAGE_ANSWER, .number = 1, .length = 4, .offset = 60 },
        { .kind = MESSAGE_ANSWER, .number = 1, .length = 129, .offset = 64 },
        { .kind = MESSAGE_ANSWER, .number = 2, .length = 4, .offset = 64 },
    };
    (void)state;
    run(2, repeat_a_piece, (void *)(uintptr_t)&plain, 0);
    for (int i = 0; i < 3; i++) run(2, answer_wrongly, &answers[i], 0);
}

// ---- one that is called away ------------------------------------------------------------------

static void *abort_soon(void *group)
{
    group_abort(group);
    return NULL;
}

static void be_called(void *arg)
{
    group_t *group = begin(arg);
    float room[16];
    struct group_letter letter;
    pthread_t thread;
    uint32_t from;
    if (me == 0) {
        ask(group, 1, PULL, 4, room, 16);
        CHECK(pthread_create(&thread, NULL, abort_soon, group) == 0);
        CHECK(group_hear_answer(group, ANSWER_MS, &why, &blame, &from, &letter) ==
              FAULT_INTERRUPTED);
        pthread_join(thread, NULL);
        CHECK(group_hear_answer(group, 0, &why, &blame, &from, &letter) == FAULT_TIMEOUT);
        CHECK(blame.member == 1);
        pthread_barrier_wait(&shared->barrier); // Now it is answered
        CHECK(hear(group, 4) == 1 && is_filled(room, 16, 1, 0, 4));
    } else {
        CHECK(pthread_create(&thread, NULL, abort_soon, group) == 0);
        pthread_join(thread, NULL);
        // Though there may be a question
        CHECK(group_hear_question(group, 16, ANSWER_MS, &why, &blame, &from, &letter) ==
              FAULT_INTERRUPTED);
        pthread_barrier_wait(&shared->barrier);
        CHECK(answer_one(group, 16, room));
    }
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static void one_that_is_called_away_goes_on_later(void **state)
{
    (void)state;
    servers = 1;
    run(2, be_called, (void *)(uintptr_t)&plain, 0);
    servers = 2;
}

// ---- the next window --------------------------------------------------------------------------

// Windows end with questions half said, half answered, or not heard at all. Nothing of them is in the next one.
static void leave_halves(void *arg)
{
    group_t *group = begin(arg);
    float *room[MAX] = { NULL };
    struct group_letter letter;
    uint32_t from;
    for (uint32_t m = 0; m < world; m++) room[m] = malloc(LONG * sizeof(float));
    for (uint64_t turn = 2; turn < 8; turn++) {
        if (!answers(me)) {
            const enum verb verb = turn % 3 == 0 ? PUSH : turn % 3 == 1 ? PULL : PLAIN;
            for (uint32_t s = world - servers; s < world; s++)
                ask(group, s, verb, 1, room[s], verb == PLAIN ? 0 : LONG);
        } else if (turn % 2) { // Of one asker it hears the question, if it was said as a whole
            const int rc = group_hear_question(group, LONG, 20, &why, &blame, &from, &letter);
            CHECK(rc == 0 || rc == FAULT_TIMEOUT || rc == FAULT_UNREACHABLE);
            if (rc == 0 && turn == 7)
                group_answer(group, from, &(struct group_letter){ "x", 1, room[me], LONG });
        }
        form(group, 3 * turn);
        if (turn == 4) add(group, 0, world, me, 8, 64, 70001, false);
        else talk(group, 70001, 2);
        form(group, 3 * turn + 1);
    }
    for (uint32_t m = 0; m < world; m++) free(room[m]);
    group_destroy(&group);
}

static void nothing_of_a_window_is_in_the_next_one(void **state)
{
    struct kind kinds[] = { { GROUP_PLAIN, 1 }, { GROUP_SEALED, 3 } };
    (void)state;
    for (int i = 0; i < 2; i++) run(4, leave_halves, &kinds[i], 0);
}

TESTS(cmocka_unit_test(floats_arrive_both_ways), cmocka_unit_test(one_that_stops_delays_nobody),
      cmocka_unit_test(one_that_dies_is_named_and_the_others_go_on),
      cmocka_unit_test(a_question_is_heard_before_the_end_of_its_member),
      cmocka_unit_test(a_question_that_breaks_the_rules_ends_its_link_alone),
      cmocka_unit_test(what_is_no_piece_or_no_answer_is_refused),
      cmocka_unit_test(one_that_is_called_away_goes_on_later),
      cmocka_unit_test(nothing_of_a_window_is_in_the_next_one))
