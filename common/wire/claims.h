#pragma once
// claims -- the hashes by which claims and commits are known. Both cover only what every honest
// party computes alike: no times, no rates, so that two runs of the same work give the same names.
// Pure; any thread.

#include "common/wire/wire.h"

enum { CLAIM_FRAME_MAX = 640 }; // The longest CLAIM there is, as a frame, signed

// The name of a result: SHA-256 over a domain tag and the packed CLAIM. It binds run, epoch, step,
// round, batch, author, the parameters and the residual it started from, and the payload.
struct hash claim_hash(const struct wire_claim *claim);

// The name of a commit, with the one before it inside: SHA-256 over a domain tag, previous, round,
// step, outcome, lr_bits, base and each accepted (begin, end, bytes, result, payload).
struct hash commit_hash(const struct wire_commit *commit);

// Whether a COMMIT from outside can be what it says: batches rise and do not overlap, begin < end,
// a void has accepted nothing and a commit something.
bool commit_is_sound(const struct wire_commit *commit);
