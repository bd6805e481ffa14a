// Walks from the window's first step, because each batch follows from the samples before it.

#include "common/pace/windows/window.h"
#include "common/base/ensure.h"
#include <string.h>

// The address of an empty list may be NULL, which memmove does not allow.
static void copy(void *to, const void *from, size_t bytes)
{
    if (bytes) memmove(to, from, bytes);
}

void window_keep(struct window *self, const struct wire_window *frame)
{
    ensure(frame->group_count <= WINDOW_MEMBERS_MAX &&
           frame->lr_bits.count <= sizeof self->lr_bits);
    copy(self->group, frame->group, frame->group_count * sizeof *frame->group);
    copy(self->lr_bits, frame->lr_bits.data, frame->lr_bits.count);
    copy(self->samples, frame->samples, frame->samples_count * sizeof *frame->samples);
    self->frame = *frame;
    self->frame.group = self->group;
    self->frame.lr_bits.data = self->lr_bits;
    self->frame.samples = self->samples;
}

uint32_t window_place(const struct wire_window *self, uint32_t member, uint64_t instance)
{
    for (uint32_t i = 0; i < self->group_count; i++)
        if (self->group[i].member == member && self->group[i].instance == instance) return i;
    return UINT32_MAX;
}

uint32_t window_batch(const struct wire_windows_config *config, uint32_t seq_len,
                      uint64_t samples_done)
{
    return schedule_batch_size(config->batch_start, config->batch_end, config->batch_warmup_tokens,
                               samples_done * seq_len);
}

uint64_t window_count(const struct wire_window *self, const struct wire_windows_config *config,
                      uint32_t seq_len, uint64_t step, uint64_t end)
{
    uint64_t count = 0, done = self->samples_done;
    for (uint64_t k = self->step; k < end; k++) {
        const uint32_t batch = window_batch(config, seq_len, done);
        done += batch;
        if (k >= step) count += batch;
    }
    return count;
}

// Whether this member is in one of the first `count` places.
static bool is_listed(const struct wire_window *self, uint32_t count, uint32_t member)
{
    for (uint32_t i = 0; i < count; i++)
        if (self->group[i].member == member) return true;
    return false;
}

bool window_is_sound(const struct wire_window *self, const struct wire_windows_config *config,
                     uint32_t seq_len)
{
    bool in_order = self->group_count > config->servers;
    const uint32_t trainers = in_order ? self->group_count - config->servers : 0;
    for (uint32_t i = 1; i < self->group_count; i++)
        in_order &= i == trainers || self->group[i - 1].member < self->group[i].member;
    for (uint32_t i = trainers; in_order && i < self->group_count; i++)
        in_order &= !is_listed(self, trainers, self->group[i].member);
    return in_order && self->steps > 0 && self->lr_bits.count == 4 * self->steps &&
           interval_list_total(self->samples, self->samples_count) ==
               window_count(self, config, seq_len, self->step, window_end(self));
}

uint32_t window_lr_bits(const struct wire_window *self, uint64_t step)
{
    const uint8_t *bytes = self->lr_bits.data + 4 * (step - self->step);
    ensure(step >= self->step && 4 * (step - self->step) + 4 <= self->lr_bits.count);
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

struct hash steps_hash(const struct wire_steps *steps)
{
    static const char domain[] = "shoal steps 1";
    uint8_t bytes[256];
    const size_t count = wire_pack_body(FRAME_STEPS, steps, bytes, sizeof bytes);
    ensure(count > 0);
    return hash_of_two(domain, sizeof domain, bytes, count);
}
