#pragma once
// claims -- the hashes that name claims and commits. Both cover only values that every honest
// member computes equally, no times and no rates, so that two runs of the same work give the same
// names. Pure; any thread.

#include "common/wire/wire.h"

// The longest CLAIM that is unpacked, as a signed frame: wire_frame_max of it.
enum { CLAIM_FRAME_MAX = 516 };

// The name of a result: SHA-256 over a domain tag and the packed CLAIM. It binds run, epoch, step,
// round, batch, author, the parameters and the residual it started from, and the payload.
struct hash claim_hash(const struct wire_claim *claim);

// The name of a commit. It covers the name of the commit before: SHA-256 over a domain tag,
// previous, round, step, outcome, lr_bits, base and each accepted (begin, end, bytes, result,
// payload).
struct hash commit_hash(const struct wire_commit *commit);

// Whether a COMMIT from outside is consistent: batches ascend and do not overlap, begin < end, a
// void round has accepted nothing and a committed one something.
bool commit_is_sound(const struct wire_commit *commit);
