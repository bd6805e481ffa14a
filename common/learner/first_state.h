#pragma once
// first_state -- the state that an earlier run has left and with which another one begins (progress.state): parameters
// and what the optimizer keeps. It lies in a folder <root>/step-00000120, as a save in pieces by any number of workers
// (common/checkpoint/pieces.h) or as a checkpoint (checkpoint.h). Of which run is not asked; the model must have the
// same tensors, and the optimizer the same items.
//
// Functions return 0 or a negative enum fault, `why` names the folder.

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/pieces.h"

struct first_state { // One of the two
    pieces_t *pieces;
    checkpoint_t *checkpoint;
};

// Whether the folder is there and is of this step: reads its name and looks for a manifest, no more. FAULT_USAGE: no
// such name. FAULT_RANGE: of another step. FAULT_NOT_FOUND and those of the file system.
int first_state_look(const char *folder, uint64_t step, struct why *why);

// How many parameters it has, by the cut of a save, whose pieces must all be there in their sizes. 0: it is a
// checkpoint. Faults of pieces_open; FAULT_NOT_FOUND: it has no parameters.
int first_state_count(const char *folder, struct why *why, uint64_t *ret_count);

// The digest of its parameters, as model.digest pins them, from the hashes in a save. None: it is a checkpoint, which
// would have to be read whole for that. Faults of pieces_open and pieces_root; FAULT_NOT_FOUND: it has no parameters.
int first_state_params(const char *folder, struct why *why, struct hash *ret_digest);

// Faults of pieces_open and checkpoint_open; the latter reads all of a checkpoint. first_state_close after it.
int first_state_open(const char *folder, struct why *why, struct first_state *ret_state);
void first_state_close(struct first_state *self);
