#pragma once
// dataset -- the hashes that identify the samples of a run. Pure; any thread.
//
//     manifest's digest ─────────────────────────────┐
//     positions ─┬─▶ order ──────────────────────────┴─▶ digest   what state.toml pins
//     samples ───┘
//
// A manifest says which bytes there are, but not how they are cut into samples: a data provider
// could still choose that. The positions (common/data/proof.h) say where each sample begins, the
// count of samples says where a pass ends:
//
//     order  = SHA-256( "shoal-order-2" ‖ positions ‖ LE64 samples )
//     digest = SHA-256( "shoal-dataset-1" ‖ manifest's digest ‖ order )
//
// A run is bound to the manifest and the order (RECORD_DATA). Members check every sample against
// both.

#include "common/base/hash.h"

// `samples`: the count of one pass.
struct hash dataset_order(const struct hash *positions, uint64_t samples);
struct hash dataset_digest(const struct hash *manifest, const struct hash *order);
