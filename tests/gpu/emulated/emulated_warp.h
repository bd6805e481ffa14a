#pragma once
// emulated_warp -- the warp's instructions of common/compute/cuda/warp.cuh, from the tables of the
// PTX manual.

#include <vector>

static inline float emulated_half(uint32_t both, int which)
{
    return __uint_as_float(which ? both & 0xffff0000u : both << 16);
}

static inline void warp_multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    struct {
        uint32_t a[4], b[2];
    } mine = { { a[0], a[1], a[2], a[3] }, { b0, b1 } }, theirs;
    const uint64_t(*place)[4] = emulated_exchange(&mine, sizeof mine);
    const int g = (int)emulated_lane() / 4, t = (int)emulated_lane() % 4;
    float rows[2][16], columns[16][2]; // Of the two matrices, those that meet in this lane's c
    for (int from = 0; from < 4; from++) {
        memcpy(&theirs, place[4 * g + from], sizeof theirs);
        for (int i = 0; i < 4; i++)
            for (int half = 0; half < 2; half++)
                rows[i % 2][2 * from + i / 2 * 8 + half] = emulated_half(theirs.a[i], half);
        for (int column = 0; column < 2; column++) {
            memcpy(&theirs, place[4 * (2 * t + column) + from], sizeof theirs);
            for (int i = 0; i < 2; i++)
                for (int half = 0; half < 2; half++)
                    columns[2 * from + i * 8 + half][column] = emulated_half(theirs.b[i], half);
        }
    }
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 16; k++) c[i] += rows[i / 2][k] * columns[k][i % 2];
}

static inline void emulated_load(uint32_t (&to)[4], const bf16 *row, bool turned)
{
    if ((uintptr_t)row % 16 != 0) abort(); // As the hardware would
    const uint64_t(*place)[4] = emulated_exchange(&row, sizeof row);
    const int g = (int)emulated_lane() / 4, t = (int)emulated_lane() % 4;
    for (int i = 0; i < 4; i++) {
        uint16_t halves[2];
        for (int half = 0; half < 2; half++) {
            const int r = turned ? 2 * t + half : g, column = turned ? g : 2 * t + half;
            const bf16 *from;
            memcpy(&from, place[8 * i + r], sizeof from);
            halves[half] = from[column].bits;
        }
        to[i] = halves[0] | (uint32_t)halves[1] << 16;
    }
}
static inline void warp_load(uint32_t (&to)[4], const bf16 *row) { emulated_load(to, row, false); }
static inline void warp_load_turned(uint32_t (&to)[4], const bf16 *row)
{
    emulated_load(to, row, true);
}

// A copy is made when its thread waits for it, not before: a kernel that forgets to wait sees NaN.
// In reverse order it is made at once: a kernel that overwrites a place too early sees the next
// data.
struct emulated_copy {
    bf16 *to;
    const bf16 *from;
    bool there;
    unsigned group;
};
struct emulated_copies {
    std::vector<emulated_copy> open;
    unsigned groups;
};
bool emulated_reverse();
emulated_copies &emulated_copies_of_thread(); // Empty when its block begins

static inline void copy_begin(bf16 *to, const bf16 *from, bool there)
{
    if ((uintptr_t)to % 16 != 0 || (there && (uintptr_t)from % 16 != 0)) abort();
    emulated_copies &self = emulated_copies_of_thread();
    if (!emulated_reverse()) self.open.push_back({ to, from, there, self.groups });
    else if (there) memcpy(to, from, 16);
    else memset(to, 0, 16);
}
static inline void copy_commit() { emulated_copies_of_thread().groups++; }
template <int open> inline void copy_wait()
{
    emulated_copies &self = emulated_copies_of_thread();
    size_t kept = 0;
    for (const emulated_copy &copy : self.open) {
        if (copy.group + open >= self.groups) self.open[kept++] = copy;
        else if (copy.there) memcpy(copy.to, copy.from, 16);
        else memset(copy.to, 0, 16);
    }
    self.open.resize(kept);
}
static inline float exp2_fast(float x) { return exp2f(x); }
