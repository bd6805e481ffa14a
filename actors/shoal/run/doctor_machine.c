// This machine: its clock, the disk of the state folder, the device, and its free memory against what a trainer of the
// run takes. That is computed as the learner does it (common/learner/learner.c); a live test compares the two numbers.

#include "actors/shoal/run/doctor.h"
#include "actors/shoal/shoal.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/memory.h"
#include "common/kernel/kernels.h"
#include "common/member/blobs.h"
#include "common/model/model_tensors.h"
#include <inttypes.h>
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    CLOCK_SLACK_MS = 5000, // Two good clocks do not differ by more
    LEAST_BYTES = 1 << 20, // For an actor of which nothing is known
    CHECKPOINTS_KEPT = 4   // The newest three, and one that is being written
};

// ---- clock --------------------------------------------------------------------------------------

// No frame carries the present time. But a member names the instant of its start, and that lies in the
// past.
static void check_clock(struct doctor *self)
{
    struct checkup *checkup = &self->checkup;
    struct timex timex = { .modes = 0 };
    const uint64_t now_ms = clock_unix_ms();
    const int state = adjtimex(&timex);
    if (state < 0)
        checkup_add(checkup, CHECKUP_NOT_CHECKED, "clock", "the kernel does not tell: %s",
                    strerror(errno));
    else if (timex.status & STA_UNSYNC)
        checkup_add(checkup, CHECKUP_WARNING, "clock",
                    "the kernel's clock is not synchronised: install systemd-timesyncd or chrony; "
                    "invitations expire by the clock");
    else checkup_add(checkup, CHECKUP_OK, "clock", "the kernel's clock is synchronised");
    if (self->latest_unix_ms > now_ms + CLOCK_SLACK_MS)
        checkup_add(checkup, CHECKUP_WARNING, "clock",
                    "%s started %" PRIu64 " s from now by this machine's clock: one of the two is "
                    "wrong; compare `date -u` on both",
                    self->latest_name, (self->latest_unix_ms - now_ms) / 1000);
    else if (self->latest_unix_ms)
        checkup_add(checkup, CHECKUP_OK, "clock",
                    "no member started later than it is now by this clock; that this clock is fast "
                    "cannot be seen, as no frame says the time");
}

// ---- disk ---------------------------------------------------------------------------------------

// The folder, or the nearest one above it that is there.
static void find_folder(const char *dir, char ret_path[PATH_MAX])
{
    snprintf(ret_path, PATH_MAX, "%s", dir);
    while (access(ret_path, F_OK) != 0 && errno == ENOENT) {
        char *slash = strrchr(ret_path, '/');
        if (!slash) snprintf(ret_path, PATH_MAX, ".");
        else slash[slash == ret_path] = 0;
    }
}

// A trainer keeps the results of the newest 2 · snapshot_rounds + 2 steps (common/pace/rounds).
static uint64_t results_bytes(const struct doctor_demands *run)
{
    const uint64_t steps = blobs_steps_kept(2 * (uint64_t)run->snapshot_rounds + 2, run->trainers);
    return steps * run->trainers * run->result_bytes;
}

static uint64_t state_bytes(const struct doctor_demands *run)
{
    return run->state_floats * sizeof(float) * model_parameter_count(&run->shape);
}

static void compare_disk(struct doctor *self, const char *dir, uint64_t free_bytes)
{
    const struct doctor_demands *run = &self->demands;
    struct checkup *checkup = &self->checkup;
    if (!run->known) {
        const bool is_full = free_bytes < LEAST_BYTES;
        checkup_add(checkup, is_full ? CHECKUP_WRONG : CHECKUP_OK, "disk",
                    "%s has %" PRIu64 " MiB free%s", dir, free_bytes >> 20,
                    is_full ? ": free some, or --state-dir names another folder" : "");
        return;
    }
    const uint64_t results = results_bytes(run),
                   checkpoints = CHECKPOINTS_KEPT * state_bytes(run) + results,
                   trains = results + run->disk_copies * state_bytes(run);
    char ledger[64] = "", trainer[40];
    if (trains) snprintf(trainer, sizeof trainer, "%" PRIu64 " MiB", memory_mib_needed(trains));
    else snprintf(trainer, sizeof trainer, "next to nothing"); // It keeps no results on disk
    if (run->ledger_bytes)
        snprintf(ledger, sizeof ledger, ", a ledger up to %" PRIu64 " MiB",
                 memory_mib_needed(run->ledger_bytes));
    const enum checkup_result kind = free_bytes < trains ? CHECKUP_WRONG
                                     : free_bytes < checkpoints || free_bytes < run->ledger_bytes
                                         ? CHECKUP_WARNING
                                         : CHECKUP_OK;
    checkup_add(
        checkup, kind, "disk",
        "%s has %" PRIu64 " MiB free; a trainer takes %s, a checkpointer %" PRIu64 " MiB%s%s", dir,
        free_bytes >> 20, trainer, memory_mib_needed(checkpoints), ledger,
        kind == CHECKUP_OK        ? ""
        : kind == CHECKUP_WARNING ? ": enough for some of them; --state-dir names another folder"
                                  : ": free some, or --state-dir names another folder");
}

static void check_disk(struct doctor *self)
{
    const char *dir = self->command.state_dir ? self->command.state_dir : ".";
    struct checkup *checkup = &self->checkup;
    struct statfs space;
    char path[PATH_MAX];
    find_folder(dir, path);
    if (statfs(path, &space) != 0) {
        checkup_add(checkup, CHECKUP_WRONG, "disk", "%s: %s", path, strerror(errno));
        return;
    }
    if (access(path, W_OK | X_OK) != 0)
        checkup_add(checkup, CHECKUP_WRONG, "disk",
                    "%s: %s; an actor writes its state there, or where --state-dir says", path,
                    strerror(errno));
    const bool in_memory = space.f_type == TMPFS_MAGIC || space.f_type == RAMFS_MAGIC;
    if (in_memory || space.f_type == NFS_SUPER_MAGIC)
        checkup_add(checkup, CHECKUP_WARNING, "disk",
                    "%s is %s: no folder for a coordinator's ledger; a trainer may have its state "
                    "there",
                    path,
                    in_memory ? "a file system in memory, gone after a reboot"
                              : "on NFS, which LMDB does not support");
    if (in_memory) { // Then the learner keeps its copies of the state in its own memory (blob_store.h)
        self->demands.copies += self->demands.disk_copies;
        self->demands.disk_copies = 0;
    }
    compare_disk(self, path, (uint64_t)space.f_bavail * (uint64_t)space.f_bsize);
}

// ---- device and memory --------------------------------------------------------------------------

static bool check_device(struct doctor *self, struct compute_device *ret_device)
{
    const struct doctor_demands *run = &self->demands;
    struct checkup *checkup = &self->checkup;
    struct why why = { 0 };
    const uint32_t processors = shoal_threads();
    if (compute_find(self->device, &why, ret_device) < 0) {
        checkup_add(checkup, CHECKUP_WRONG, "device", "%s", why.text);
        return false;
    }
    if (run->known && run->verification_percent && ret_device->kind != COMPUTE_CPU) {
        checkup_add(checkup, CHECKUP_WRONG, "device",
                    "%s; but the run recomputes results (verification_percent %u), and those of a "
                    "GPU cannot be recomputed to the bit: use --device cpu",
                    ret_device->text, run->verification_percent);
        return true;
    }
    if (run->known && run->no_gpu && ret_device->kind != COMPUTE_CPU) {
        checkup_add(checkup, CHECKUP_WRONG, "device",
                    "%s; but a run of allreduce, sharded or server computes on the CPU in this "
                    "version: use --device cpu",
                    ret_device->text);
        return true;
    }
    const bool too_many = self->threads > processors;
    checkup_add(checkup, too_many ? CHECKUP_WARNING : CHECKUP_OK, "device",
                "%s; --threads %" PRIu64 ", processors: %u%s", ret_device->text, self->threads,
                processors, too_many ? "; more threads than processors are slower" : "");
    return true;
}

// Which way products are computed here. The type is the run's choice; how fast it is depends on the processor.
static void check_products(struct doctor *self, const struct compute_device *device)
{
    const enum gemm_precision precision = self->demands.precision;
    const char *kernels = kernels_chosen()->name;
    const bool tiles = strcmp(kernels, "amx") == 0;
    if (!self->demands.known || device->kind != COMPUTE_CPU) return;
    if (precision == GEMM_BF16_AMX && !tiles)
        checkup_add(&self->checkup, CHECKUP_WARNING, "products",
                    "%s, but this processor has no AMX (kernels %s): a step takes longer than in "
                    "float32, with the same bits",
                    gemm_precision_name(precision), kernels);
    else
        checkup_add(&self->checkup, CHECKUP_OK, "products", "%s, kernels %s%s",
                    gemm_precision_name(precision), kernels,
                    precision != GEMM_BF16_AMX && tiles
                        ? "; a run with compute.products = \"bf16-amx\" would be faster here"
                        : "");
}

// As plan_memory of the learner: parameters, gradient, state and activations, copies of what members
// hold alike, and what the jobs of the strategy take.
static int ask_memory(const struct doctor *self, const struct compute_device *device,
                      bool recompute, struct why *why, struct compute_memory *ret_memory)
{
    const struct doctor_demands *run = &self->demands;
    const uint32_t own = (uint32_t)self->micro_batch;
    struct layout_tensor *room = calloc(model_tensor_count(&run->shape), sizeof *room);
    struct layout layout;
    pool_t *pool = pool_new((uint32_t)self->threads);
    ensure(room && pool);
    const struct solo_place place = { device, &run->shape, &layout, pool };
    const struct solo_options options = {
        .optimizer = run->optimizer,
        .settings = run->settings,
        .seq = run->seq_len,
        .batch_max = run->batch,
        .lanes = run->lanes,
        .micro_batch = run->same_bits ? run->micro_batch : own,
        .precision = run->precision,
        .recompute = recompute,
    };
    int rc = model_tensors_layout(&run->shape, room, why, &layout);
    if (rc == 0) rc = solo_memory(&place, &options, why, ret_memory);
    if (rc == 0)
        ret_memory->host +=
            run->beside + run->copies * run->state_floats * sizeof(float) * layout.total;
    pool_destroy(&pool);
    free(room);
    return rc;
}

static void check_memory(struct doctor *self, const struct compute_device *device)
{
    struct checkup *checkup = &self->checkup;
    const uint64_t free_bytes = memory_available_bytes();
    struct compute_memory need = { 0 };
    struct why why = { 0 };
    bool recompute = false;
    int rc = ask_memory(self, device, false, &why, &need);
    if (rc == 0 && free_bytes && need.host > free_bytes)
        rc = ask_memory(self, device, recompute = true, &why, &need);
    if (rc < 0) checkup_add(checkup, CHECKUP_WRONG, "memory", "%s", why.text);
    else if (free_bytes == 0)
        checkup_add(checkup, CHECKUP_NOT_CHECKED, "memory",
                    "a trainer takes %" PRIu64 " MiB; the free memory cannot be read here",
                    memory_mib_needed(need.host));
    else if (need.host > free_bytes)
        checkup_add(checkup, CHECKUP_WRONG, "memory",
                    "a trainer takes %" PRIu64 " MiB, and %" PRIu64 " are free; %s",
                    memory_mib_needed(need.host), free_bytes >> 20,
                    self->micro_batch > 1 && !self->demands.same_bits
                        ? "--micro-batch-size 1 takes the least"
                        : "free some, or take a larger machine");
    else
        checkup_add(checkup, recompute ? CHECKUP_WARNING : CHECKUP_OK, "memory",
                    "a trainer takes %" PRIu64 " MiB, and %" PRIu64 " are free%s",
                    memory_mib_needed(need.host), free_bytes >> 20,
                    recompute ? "; it computes activations twice, and is slower" : "");
    if (rc == 0 && device->kind == COMPUTE_CUDA)
        checkup_add(checkup, need.device > device->free_bytes ? CHECKUP_WRONG : CHECKUP_OK,
                    "GPU memory", "a trainer takes %" PRIu64 " MiB, and %" PRIu64 " are free%s",
                    memory_mib_needed(need.device), device->free_bytes >> 20,
                    need.device > device->free_bytes
                        ? "; a smaller --micro-batch-size takes less, or --device cpu"
                        : "");
}

// Where nothing says what a trainer takes.
static void tell_memory(struct doctor *self)
{
    const char *needs = "what a trainer takes is known from the coordinator of a run, or from "
                        "--state";
    const uint64_t free_bytes = memory_available_bytes();
    if (free_bytes)
        checkup_add(&self->checkup, CHECKUP_NOT_CHECKED, "memory", "%" PRIu64 " MiB are free; %s",
                    free_bytes >> 20, needs);
    else
        checkup_add(&self->checkup, CHECKUP_NOT_CHECKED, "memory",
                    "the free memory cannot be read here; %s", needs);
}

void doctor_machine(struct doctor *self)
{
    struct compute_device device;
    check_clock(self);
    check_disk(self);
    const bool has_device = check_device(self, &device);
    if (has_device) check_products(self, &device);
    if (!self->demands.known) tell_memory(self);
    else if (has_device) check_memory(self, &device);
}
