// pool_test -- every task of a job runs once, side by side with others; waiting costs no processor
// time.

#include "common/kernel/pool.h"
#include "tests/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TASKS_MAX = 1000 };

struct job {
    uint32_t times[TASKS_MAX];            // How often each task ran
    atomic_uint inside[POOL_THREADS_MAX]; // Tasks running now under each worker
    atomic_uint clashes;                  // Times a worker was given two tasks at once
    uint32_t threads;
};

static void count_task(void *arg, uint32_t task, uint32_t worker)
{
    struct job *job = arg;
    if (worker >= job->threads || atomic_fetch_add(&job->inside[worker], 1) != 0) job->clashes++;
    job->times[task]++;
    atomic_fetch_sub(&job->inside[worker], 1);
}

static void every_task_runs_once(void **state)
{
    (void)state;
    static const uint32_t threads[] = { 1, 2, 3, 4, 8 }, tasks[] = { 0, 1, 2, 3, 7, TASKS_MAX };
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        pool_t *pool = pool_new(threads[i]);
        assert_non_null(pool);
        assert_int_equal(pool_threads(pool), threads[i]);
        for (int again = 0; again < 20; again++) {
            for (size_t k = 0; k < sizeof tasks / sizeof tasks[0]; k++) {
                struct job job = { .threads = threads[i] };
                pool_run(pool, tasks[k], count_task, &job);
                for (uint32_t t = 0; t < TASKS_MAX; t++)
                    assert_int_equal(job.times[t], t < tasks[k]);
                assert_int_equal(job.clashes, 0);
            }
        }
        pool_destroy(&pool);
        assert_null(pool);
        pool_destroy(&pool);
    }
}

static void no_pool_runs_inline(void **state)
{
    (void)state;
    struct job job = { .threads = 1 };
    pool_run(NULL, 5, count_task, &job);
    for (uint32_t t = 0; t < TASKS_MAX; t++) assert_int_equal(job.times[t], t < 5);
    assert_int_equal(pool_threads(NULL), 1);
}

// Two tasks that each wait for the other can only end well if they run at the same time.
struct meeting {
    pthread_mutex_t mutex;
    pthread_cond_t came;
    uint32_t count, met;
    struct timespec until;
};

static void meet(void *arg, uint32_t task, uint32_t worker)
{
    (void)task, (void)worker;
    struct meeting *self = arg;
    pthread_mutex_lock(&self->mutex);
    self->count++;
    pthread_cond_broadcast(&self->came);
    int rc = 0;
    while (self->count < 2 && rc == 0)
        rc = pthread_cond_timedwait(&self->came, &self->mutex, &self->until);
    if (self->count == 2 && rc == 0) self->met++;
    pthread_mutex_unlock(&self->mutex);
}

static void tasks_run_side_by_side(void **state)
{
    (void)state;
    struct meeting meeting = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, { 0 } };
    clock_gettime(CLOCK_REALTIME, &meeting.until);
    meeting.until.tv_sec += 10;
    pool_t *pool = pool_new(2);
    pool_run(pool, 2, meet, &meeting);
    assert_int_equal(meeting.met, 2);
    pool_destroy(&pool);
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// A wait that is known to last: what it costs the others is the question.
static void nap(void *arg, uint32_t task, uint32_t worker)
{
    (void)arg, (void)worker;
    if (task == 0) nanosleep(&(struct timespec){ 0, 100 * 1000000 }, NULL);
}

static void waiting_costs_no_processor(void **state)
{
    (void)state;
    pool_t *pool = pool_new(4);
    pool_run(pool, 8, nap, NULL);
    const double before = cpu_seconds();
    pool_run(pool, 8, nap, NULL);                            // Three wait for one
    nanosleep(&(struct timespec){ 0, 100 * 1000000 }, NULL); // All wait for work
    assert_true(cpu_seconds() - before < 0.05);
    pool_destroy(&pool);
}

static void nested(void *arg, uint32_t task, uint32_t worker)
{
    (void)task, (void)worker;
    pool_run(arg, 1, nap, NULL);
}

static void a_task_must_not_run_a_job(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        const pid_t child = fork();
        if (child == 0) {
            close(STDERR_FILENO);
            pool_t *pool = pool_new(threads);
            pool_run(pool, 1, nested, pool);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

static void shares_cover_all_once(void **state)
{
    (void)state;
    static const uint64_t counts[] = { 0, 1, 15, 16, 17, 100, 1000, 4097 };
    static const uint64_t grains[] = { 1, 4, 16, 64 };
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        for (size_t g = 0; g < sizeof grains / sizeof grains[0]; g++) {
            for (uint32_t parts = 1; parts < 20; parts++) {
                uint64_t at = 0;
                for (uint32_t part = 0; part < parts; part++) {
                    const struct pool_share share =
                        pool_share_of(counts[c], grains[g], parts, part);
                    assert_int_equal(share.first, at);
                    assert_true(share.end >= share.first && share.end <= counts[c]);
                    assert_true(share.end == counts[c] || share.end % grains[g] == 0);
                    at = share.end;
                }
                assert_int_equal(at, counts[c]);
            }
        }
    }
}

TESTS(TEST(every_task_runs_once), TEST(no_pool_runs_inline), TEST(tasks_run_side_by_side),
      TEST(waiting_costs_no_processor), TEST(a_task_must_not_run_a_job),
      TEST(shares_cover_all_once))
