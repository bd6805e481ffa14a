#pragma once
// leases -- what the two files of the simulator that know of leases share: what learners of a group do
// (leases_learner.c), and what must hold (check_leases.c).

#include "tests/sim/windows.h"

bool leases_learn(struct sim *self, uint8_t id, uint16_t kind, const void *job);
uint32_t leases_settle_ms(const struct sim *sim); // As the configuration says

// Memory saves (copies.c). _begin_group: a group is taken. _take_share: a copy as it is. _hash_share: it is hashed; false:
// it is not the newest any more. _list: the lists of all are known.
void copies_begin_group(struct sim *self, uint8_t id, const struct wire_take_group *job);
void copies_take_share(struct sim *self, uint8_t id, const struct wire_save_share *job,
                       uint32_t place, const struct hash *share);
bool copies_hash_share(struct sim *self, uint8_t id, uint64_t number, uint64_t step,
                       struct wire_blob *ret_list);
void copies_list(struct sim *self, uint8_t id, const struct wire_keep_shares *job);

// A learner takes a group; a trainer takes a task, and has pushed all of it to each server of its group; all servers
// have written their parts of a save; the members of an attempt have put a state together.
void check_group_taken(struct sim *sim, uint8_t id, const struct wire_take_group *job);
void check_task_taken(struct sim *sim, uint8_t id, const struct wire_train_task *job);
void check_task_pushed(struct sim *sim, uint8_t id, uint64_t lease);
void check_saved_whole(struct sim *sim, uint64_t number, uint64_t step, const struct hash *digest);
void check_together(struct sim *sim, const struct wire_close_group *closing,
                    const struct hash *digest);
