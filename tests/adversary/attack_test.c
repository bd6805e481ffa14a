// attack_test -- what one admitted key can cost a run that attacks lines, processors and deadlines
// instead of lying: the hostile trainer of attacks.c, or the late data-provider of
// hostile_provider.c, beside three honest trainers.
//
//     make attacks                    every attack, half a minute each; needs root, ip and tc
//     make attacks A="gorge probes"   these
//     ATTACK_OUT=/tmp/x make attacks  keeps the logs of each run as /tmp/x.WORD.ACTOR.log
//
// Of the honest trainers, trainer2 is in a network namespace of its own, in some of the attacks
// behind a line of 4 Mbit/s whose queues hold 200 ms. The attack begins in round FROM. One line for
// each attack says: rounds a second before and meanwhile, whether an honest member was dropped or
// ejected, and whether `shoal status` named the attacker meanwhile (its row says that it is
// anything but healthy, or another line has its name).
//
// Fails if an honest member was lost, or if the rounds fell below the share that the tree
// withstands (`least` in the table). 0: only shown. A finding within min_round_train_time is waited
// for by design, and of held HOLDS the first two Warmups fill the time that is measured here. A machine
// that does other work as well has slow rounds in both halves.

#include "common/base/clock.h"
#include "tests/live/netns.h"
#include "tests/live/testbed.h"
#include "tests/test.h"
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define HERE   "10.213.7.1"
#define THERE  "10.213.7.2"
#define LIAR   "trainer3"
#define SECOND "data-provider2"

enum {
    FIRST = 20,
    FROM = 100,
    DURING_MS = 20000,
    BEFORE_MS = 60000,
    STEPS = 100000,
    LOOK_MS = 1000
};

struct attack {
    const char *word;   // HOSTILE
    const char *ms;     // HOSTILE_MS
    const char *victim; // HOSTILE_VICTIM
    bool has_line;      // trainer2 is behind a slow line
    bool by_provider;   // The attacker is a data-provider
    unsigned verification_percent, epoch_rounds;
    double least; // Share of the rounds that is left at least; 0: only shown
    const char *what;
};

static const struct attack attacks[] = {
    { "gorge", "0", THERE, true, false, 0, 0, 0.5,
      "fetches the same without end from a slow line" },
    { "reveals", "1650", THERE, true, false, 0, 0, 0.5, "1,650 letters a second to a slow line" },
    { "slow-provider", "380", "", false, true, 0, 0, 0.5, "each answer after 380 ms" },
    { "probes", "4000", HERE, false, false, 0, 0, 0.5, "4,000 probes a second to a trainer" },
    { "late-vote", "1500", "", false, false, 0, 0, 0.5,
      "claims to all but one, votes after 1.5 s" },
    { "empty-vote", "0", "", false, false, 0, 0, 0.5, "votes at once, for nothing" },
    { "silent-to-one", "0", "", false, false, 0, 0, 0.5, "serves all but one" },
    { "late-finding", "1500", "", false, false, 25, 0, 0, "finds after 1.5 s; 25 % audits" },
    { "held-holds", "0", "", false, false, 0, FROM + 50, 0, "never says HOLDS; epochs" },
};

static pid_t holder; // Lives in the other namespace
static int netns;
static const char *wanted = ""; // Words between blanks; "": all

// ---- the line -----------------------------------------------------------------------------------

static void connect_them(void)
{
    char line[160];
    assert_int_equal(unshare(CLONE_NEWNET), 0);
    netns = netns_hold(&holder);
    snprintf(line, sizeof line, "ip link add live0 type veth peer name live1 netns %d",
             (int)holder);
    assert_true(netns_run(-1, "ip link set lo up") && netns_run(-1, line) &&
                netns_run(-1, "ip addr add " HERE "/30 dev live0") &&
                netns_run(-1, "ip link set live0 up") && netns_run(netns, "ip link set lo up") &&
                netns_run(netns, "ip addr add " THERE "/30 dev live1") &&
                netns_run(netns, "ip link set live1 up"));
}

static void set_line(bool is_slow)
{
#define TBF " root tbf rate 4mbit burst 4000 latency 200ms"
    static bool was_slow;
    if (is_slow && !was_slow)
        assert_true(netns_run(-1, "tc qdisc add dev live0" TBF) &&
                    netns_run(netns, "tc qdisc add dev live1" TBF));
    if (!is_slow && was_slow)
        assert_true(netns_run(-1, "tc qdisc del dev live0 root") &&
                    netns_run(netns, "tc qdisc del dev live1 root"));
    was_slow = is_slow;
}

// ---- what is seen -------------------------------------------------------------------------------

struct seen {
    const struct attack *attack;
    char attacker[ACTOR_NAME_MAX + 1], brief[ACTOR_NAME_MAX + 1]; // brief: as reasons name it
    uint64_t look_ms, until_ms, commits;
    char named[200]; // The line of status that first did
};

static void read_status(struct testbed *bed, struct seen *seen)
{
    char command[1024], line[512];
    snprintf(command, sizeof command, "cd %s && %s/shoal status --ticket ticket --run-id %s 2>&1",
             bed->dir, bed->bin, bed->options.run_id);
    FILE *status = popen(command, "r");
    assert_non_null(status);
    while (fgets(line, sizeof line, status)) {
        const bool is_row =
            strstr(line, seen->attacker) && strstr(line, "healthy") && !strstr(line, "unhealthy");
        if (seen->named[0] || is_row || !strstr(line, seen->brief)) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(seen->named, sizeof seen->named, "%.*s", (int)sizeof seen->named - 1,
                 line + strspn(line, " "));
    }
    pclose(status);
}

static bool has_committed(struct testbed *bed, const void *arg)
{
    return bed->news.commits >= ((const struct seen *)arg)->commits;
}

static bool is_over(struct testbed *bed, const void *arg)
{
    struct seen *seen = (struct seen *)(uintptr_t)arg;
    const uint64_t now_ms = clock_ms();
    if (now_ms >= seen->look_ms) {
        seen->look_ms = now_ms + LOOK_MS;
        read_status(bed, seen);
    }
    return now_ms >= seen->until_ms;
}

// Members that the coordinator dropped or ejected, but for the attacker.
static unsigned count_lost(struct testbed *bed, const struct seen *seen, bool *ret_attacker)
{
    char line[1024];
    unsigned lost = 0;
    FILE *log = fopen(testbed_actor(bed, "coordinator")->log, "r");
    assert_non_null(log);
    *ret_attacker = false;
    while (fgets(line, sizeof line, log)) {
        if (!strstr(line, " member.dropped ") && !strstr(line, " member.ejected ")) continue;
        if (strstr(line, seen->attacker)) *ret_attacker = true;
        else {
            lost++;
            printf("    %s", line);
        }
    }
    fclose(log);
    return lost;
}

static void keep_logs(const struct testbed *bed, const struct attack *attack)
{
    const char *out = getenv("ATTACK_OUT");
    char command[1024];
    if (!out) return;
    snprintf(command, sizeof command, "for f in %s/*.log; do cp $f %s.%s.$(basename $f); done",
             bed->dir, out, attack->word);
    if (system(command) != 0) printf("    the logs could not be kept as %s\n", out);
}

// ---- an attack ----------------------------------------------------------------------------------

static struct testbed *new_bed(const struct attack *attack)
{
    return testbed_new(&(struct testbed_options){
        .run_id = "attack",
        .trainers = 3,
        .host = HERE,
        .init_min_clients = 4,
        .min_clients = 2,
        .total_steps = STEPS,
        .epoch_rounds = attack->epoch_rounds ? attack->epoch_rounds : STEPS,
        .verification_percent = attack->verification_percent,
        .full_values = true,
        .train_s = 4,
        .least_s = 2,
        .witness_s = 2,
        .lease_s = 3,
        .warmup_s = 10,
        .cooldown_s = 10 });
}

static void start_all(struct testbed *bed, const struct attack *attack)
{
    char as[64], ms[64], from[64], after[64], victim[64];
    snprintf(as, sizeof as, "HOSTILE=%s", attack->word);
    snprintf(ms, sizeof ms, "HOSTILE_MS=%s", attack->ms);
    snprintf(from, sizeof from, "HOSTILE_FROM=%d", FROM);
    snprintf(after, sizeof after, "HOSTILE_AFTER=%d", FROM);
    snprintf(victim, sizeof victim, "HOSTILE_VICTIM=%s", attack->victim);
    const char *const env[] = { as, ms, from, after, victim, NULL };
    const char *const args[] = { "--bulk-bind", HERE, NULL };
    const struct testbed_launch here = { .args = args },
                                there = { .args =
                                              (const char *const[]){ "--bulk-bind", THERE, NULL },
                                          .netns = netns },
                                liar = { args, env, .program = "hostile-trainer" },
                                late = { args, env, .program = "hostile-provider" };
    testbed_start(bed, "broker");
    testbed_start(bed, "coordinator");
    if (attack->by_provider) {
        testbed_start_with(bed, SECOND, &late); // Named before the other
        testbed_await_log(bed, SECOND, "member.admitted", TESTBED_WAIT_MS);
    }
    testbed_start_with(bed, "data-provider", &here);
    testbed_start_with(bed, "checkpointer", &here);
    testbed_start_with(bed, "trainer0", &here);
    testbed_start_with(bed, LIAR, attack->by_provider ? &here : &liar);
    testbed_start_with(bed, "trainer1", &here);
    testbed_start_with(bed, "trainer2", &there);
    testbed_actor(bed, attack->by_provider ? SECOND : LIAR)->may_end = true;
}

static void name_attacker(struct seen *seen)
{
    const bool by_provider = seen->attack->by_provider;
    struct identity *identity = testbed_identity(by_provider ? SECOND : LIAR);
    actor_name(by_provider ? ACTOR_PROVIDER : ACTOR_TRAINER, identity_key(identity),
               seen->attacker);
    snprintf(seen->brief, sizeof seen->brief, "%.*s", (int)(strcspn(seen->attacker, ".") + 1 + 8),
             seen->attacker);
    identity_destroy(&identity);
}

// Commits a second until there are so many.
static double await_commits(struct testbed *bed, struct seen *seen, uint64_t commits)
{
    const uint64_t began_ms = clock_ms(), before = bed->news.commits;
    seen->commits = commits;
    testbed_await(bed, has_committed, seen, BEFORE_MS, "rounds before the attack");
    return (double)(bed->news.commits - before) * 1000.0 / (double)(clock_ms() - began_ms);
}

static bool play(void **state, const struct attack *attack)
{
    struct seen seen = { .attack = attack };
    bool attacker_lost;
    set_line(attack->has_line);
    struct testbed *bed = *state = new_bed(attack);
    name_attacker(&seen);
    start_all(bed, attack);
    await_commits(bed, &seen, FIRST);
    const double before = await_commits(bed, &seen, FROM);
    const uint64_t began_ms = clock_ms(), commits = bed->news.commits;
    seen.until_ms = began_ms + DURING_MS;
    testbed_wait(bed, is_over, &seen, 2 * DURING_MS);
    const double during =
        (double)(bed->news.commits - commits) * 1000.0 / (double)(clock_ms() - began_ms);
    const unsigned lost = count_lost(bed, &seen, &attacker_lost);
    const bool is_well = lost == 0 && during >= attack->least * before;
    printf("%-14s %5.1f rounds/s before, %5.1f meanwhile; honest lost: %u; attacker %s; status "
           "%s%s%s   %s%s\n",
           attack->word, before, during, lost, attacker_lost ? "dropped" : "stays",
           seen.named[0] ? "names it: \"" : "does not name it", seen.named,
           seen.named[0] ? "\"" : "", attack->what, is_well ? "" : "   FAILED");
    fflush(stdout);
    keep_logs(bed, attack);
    testbed_kill_all(bed);
    testbed_destroy((struct testbed **)state);
    return is_well;
}

static bool is_wanted(const char *word)
{
    char padded[64];
    snprintf(padded, sizeof padded, " %s ", word);
    return !*wanted || strstr(wanted, padded);
}

static void every_attack_is_withstood(void **state)
{
    unsigned failed = 0, played = 0;
    connect_them();
    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
        if (!is_wanted(attacks[i].word)) continue;
        failed += !play(state, &attacks[i]);
        played++;
    }
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    assert_true(played > 0);
    assert_int_equal(failed, 0);
}

int main(int argc, char **argv)
{
    static char words[1024] = " ";
    for (int i = 1; i < argc; i++) {
        const size_t used = strlen(words);
        snprintf(words + used, sizeof words - used, "%s ", argv[i]);
    }
    if (argc > 1) wanted = words;
    const struct CMUnitTest tests[] = { TESTBED_TEST(every_attack_is_withstood) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
