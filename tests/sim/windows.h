#pragma once
// windows -- what the two files of the simulator that know of windows share: the learners' exchange
// (windows_learner.c), and what must hold (check_windows.c).

#define WIRE_MORE "tests/sim/words.def"
#include "common/wire/wire_more.h"
#include "tests/sim/sim.h"

// A word of a learner, to another one or to itself. And whether the link between two of them is cut now: by the
// partition, or by itself for some seconds.
void words_send(struct sim *self, uint8_t to, uint64_t delay_ms, const struct wire_sim_word *word);
uint64_t words_take_ms(struct sim *self, uint8_t id); // A job only begins something
void words_built(struct sim *self, uint8_t id);       // LINKS
bool words_are_cut(const struct sim *self, uint8_t a, uint8_t b);

// The state after a step: a hash of that before it and of the step's samples. `done`: samples before it.
struct hash windows_digest(const struct hash *digest, const struct interval *samples,
                           uint32_t count);
uint32_t windows_batch(const struct sim *sim, uint64_t done);

// Whose gradient is not finite at this step of a window, by its place; NOBODY: nobody's.
uint32_t windows_void_place(const struct sim *sim, uint64_t window, uint64_t step, uint32_t count);

// A state has so many leaves here. Whether that of this learner, once it holds `step`, changes by itself.
enum { LEAVES = 8 };
uint32_t windows_save_steps(const struct sim *sim); // 0: they do not save
bool windows_spoils(const struct sim *sim, uint8_t id, uint64_t step);
// Each learner keeps its share of the optimizer's state only.
bool windows_have_shares(const struct sim *sim);
// All that the step in hand needs is here.
bool windows_has(const struct sim *sim, uint8_t id);
// Two trainers that cannot link with one another, by the seed's will, until some time before all is healed; false:
// the seed has none.
bool windows_unlinkable(const struct sim *sim, uint8_t ret_pair[2]);
bool windows_may_link(const struct sim *sim, uint8_t a, uint8_t b); // Now

// Memory saves (copies.c). _begin: the first window in hand begins. _step: a step begins. _take: a step is applied.
// _hashed: the copy of that step is. _tell, _hear: HAVE. _kept: a memory save is on record.
void copies_begin(struct sim *self, uint8_t id);
void copies_step(struct sim *self, uint8_t id);
bool copies_take(struct sim *self, uint8_t id);
void copies_hashed(struct sim *self, uint8_t id, const struct wire_sim_word *word);
void copies_tell(struct sim *self, uint8_t id, struct wire_sim_word *word);
void copies_hear(struct sim *self, uint8_t id, const struct wire_sim_word *word);
void copies_kept(struct sim *self, uint8_t id, const struct wire_kept *job);

// The words of the one that says anything (loose.c); NULL: it says the truth.
struct parcel *windows_twist(struct sim *self, uint8_t id, const struct effect *effect);

bool windows_learn(struct sim *self, uint8_t id, uint16_t kind, const void *job);

// A learner may apply the step in hand: all have said HAVE.
void check_window_agrees(struct sim *sim, uint8_t id);

// A learner has applied a step of this window.
void check_window_step(struct sim *sim, uint8_t id, uint64_t window);
// It begins a window that it was given.
void check_window_begun(struct sim *sim, uint8_t id, const struct wire_take_window *job);
