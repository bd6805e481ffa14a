// testnet_test -- what one turn of the loop makes of children that have ended and of signals, and which files a start
// that fails half-way leaves behind.

#include "actors/shoal/local/fleet.c" // The front command's own parts are in no library
#include "actors/shoal/local/testnet.c"
#include "actors/shoal/local/way_in.c"
#include "actors/shoal/run/run_view.c"
#include "tests/unit/folder_fixture.h"
#include <sys/resource.h>

// Nothing is said, and nothing is waited for.
static char roles[8]; // Of the taps in their order
int tap_open(const struct tap_options *options, struct why *why, struct tap **ret_tap)
{
    (void)why, (void)ret_tap;
    roles[strlen(roles)] = options->role == ACTOR_OPERATOR && options->identity ? 'o' : 'm';
    return 0;
}
void tap_close(struct tap **self_p) { (void)self_p; }
bool tap_wait(struct tap *self, int fd, uint64_t until_ms)
{
    (void)self, (void)fd, (void)until_ms;
    return false;
}
enum tap_result tap_take(struct tap *self, struct letter *ret_letter)
{
    (void)self, (void)ret_letter;
    return TAP_NOTHING;
}

static struct child children[3];

// Broker, coordinator and checkpointer; none runs, and none is due.
static struct testnet make(void)
{
    static const char *const names[] = { "broker", "coordinator", "checkpointer" };
    memset(children, 0, sizeof children);
    for (uint32_t i = 0; i < 3; i++) {
        snprintf(children[i].name, sizeof children[i].name, "%s", names[i]);
        snprintf(children[i].log, sizeof children[i].log, "/dev/null");
        arguments_add(&children[i].arguments, "/bin/sleep");
        arguments_add(&children[i].arguments, "600");
    }
    return (struct testnet){ .fleet = { .children = children, .count = 3 },
                             .coordinator = &children[1],
                             .members_from = 2,
                             .signals = -1 };
}

static void end_all(struct testnet *self)
{
    fleet_stop(&self->fleet, 0, -1);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(children[i].pid, 0);
}

// `up` was interrupted and saves: what dies now is still needed for it.
static void a_child_is_started_again_while_up_saves(void **state)
{
    (void)state;
    struct testnet self = make();
    struct why why = { 0 };
    self.asked_to_stop = true;
    children[1].due_ms = 1;
    assert_int_equal(testnet_turn(&self, 0, &why), 0);
    assert_int_not_equal(children[1].pid, 0);
    assert_int_equal(fleet_due_ms(&self.fleet), UINT64_MAX);
    end_all(&self);
}

// Else the loop would not wait any more: it would be due for ever.
static void a_child_that_cannot_be_started_is_tried_once(void **state)
{
    (void)state;
    struct testnet self = make();
    struct why why = { 0 };
    children[0].due_ms = children[1].due_ms = UINT64_MAX; // They are to be started some day
    snprintf(children[2].log, sizeof children[2].log, "/nowhere/log");
    children[2].due_ms = 1;
    assert_int_equal(testnet_turn(&self, 0, &why), FAULT_NOT_FOUND);
    assert_int_equal(testnet_turn(&self, 0, &why), 0);
    assert_int_equal(fleet_due_ms(&self.fleet), UINT64_MAX);
}

// `kill` of the coordinator: it ends with 0, and the members would wait for it for ever.
static void a_coordinator_that_somebody_told_to_end_is_a_fault(void **state)
{
    (void)state;
    struct testnet self = make();
    struct why why = { 0 };
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(fleet_start(&children[i], &why), 0);
    assert_int_equal(testnet_turn(&self, 0, &why), 0);
    const pid_t pid = children[1].pid;
    children[1].pid = 0; // As fleet_reap leaves it after code 0
    assert_int_equal(testnet_turn(&self, 0, &why), FAULT_UNAVAILABLE);
    assert_non_null(strstr(why.text, "the coordinator was told to end"));
    self.asked_to_stop = true; // All processes were told
    assert_int_equal(testnet_turn(&self, 0, &why), 0);
    self.asked_to_stop = false;
    children[1].pid = pid;
    end_all(&self);
}

// An ssh session ends: the kernel and the shell say so one after the other, and `up` shall save.
static void the_end_of_a_session_stops_and_does_not_insist(void **state)
{
    (void)state;
    struct testnet self = { 0 };
    signal(SIGHUP, SIG_DFL);
    watch_signals(&self);
    for (int i = 0; i < 2; i++) {
        raise(SIGHUP);
        take_signals(&self);
        assert_true(self.asked_to_stop && !self.insists);
        raise(SIGHUP);
        assert_false(is_insisted(self.signals));
    }
    raise(SIGPIPE); // `| tee` has ended as well
    raise(SIGTERM);
    take_signals(&self);
    assert_true(self.insists);
    raise(SIGINT);
    assert_true(is_insisted(self.signals));
    close(self.signals);
}

static void nohup_stays_nohup(void **state)
{
    (void)state;
    struct testnet self = { 0 };
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    signal(SIGHUP, SIG_IGN);
    watch_signals(&self);
    raise(SIGHUP);
    take_signals(&self);
    assert_false(self.asked_to_stop);
    close(self.signals);
}

// As on a full disk, for this process alone.
static void limit_files(rlim_t bytes)
{
    const struct rlimit limit = { bytes, RLIM_INFINITY };
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_key_that_cannot_be_written_is_not_there(void **state)
{
    (void)state;
    struct why why = { 0 };
    for (rlim_t bytes = 0; bytes < 20; bytes += 10) { // Nothing is written, or a part
        limit_files(bytes);
        assert_true(make_numbered_key(path_of("trainer-1.key"), 1, &why) < 0);
        limit_files(RLIM_INFINITY);
        assert_int_equal(access(path_of("trainer-1.key"), F_OK), -1);
    }
    assert_non_null(strstr(why.text, "No space left"));
    assert_int_equal(make_numbered_key(path_of("trainer-1.key"), 1, &why), 0);
}

// `shoal checkpoint -i coordinator.key` has taken the owner's name at the broker since `up` had it.
static void the_owners_tap_is_opened_anew(void **state)
{
    (void)state;
    static struct testnet self;
    struct why why = { 0 };
    snprintf(self.state_dir, sizeof self.state_dir, "%s", folder);
    assert_int_equal(folder_make(path_of("keys"), 0700, &why), 0);
    assert_int_equal(identity_create(path_of("keys/coordinator.key"), &why), 0);
    assert_int_equal(testnet_become_owner(&self, &why), 0);
    assert_int_equal(testnet_become_observer(&self, &why), 0);
    assert_int_equal(testnet_become_owner(&self, &why), 0);
    assert_string_equal(roles, "omo");
    identity_destroy(&self.owner);
}

// The ticket alone knows at which address the run was.
static void a_ticket_stays_where_the_next_one_cannot_be_written(void **state)
{
    (void)state;
    static struct testnet self = { .options.way_in = { .bind = "192.0.2.1", .port = 7000 } };
    struct why why = { 0 };
    struct ticket ticket;
    snprintf(self.state_dir, sizeof self.state_dir, "%s", folder);
    assert_int_equal(folder_make(path_of("keys"), 0700, &why), 0);
    put("ticket", "an old one", 10);
    assert_int_equal(make_ticket(&self, &why), 0);
    self.options.way_in.port = 8000;
    limit_files(10);
    assert_true(make_ticket(&self, &why) < 0);
    limit_files(RLIM_INFINITY);
    assert_int_equal(ticket_read(path_of("ticket"), &why, &ticket), 0);
    assert_string_equal(ticket.address, "192.0.2.1:7000");
}

TESTS(TEST(a_child_is_started_again_while_up_saves),
      TEST(a_child_that_cannot_be_started_is_tried_once),
      TEST(a_coordinator_that_somebody_told_to_end_is_a_fault),
      TEST(the_end_of_a_session_stops_and_does_not_insist), TEST(nohup_stays_nohup),
      TEST_WITH(a_key_that_cannot_be_written_is_not_there, folder_set_up, folder_tear_down),
      TEST_WITH(the_owners_tap_is_opened_anew, folder_set_up, folder_tear_down),
      TEST_WITH(a_ticket_stays_where_the_next_one_cannot_be_written, folder_set_up,
                folder_tear_down))
