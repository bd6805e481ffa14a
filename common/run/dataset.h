#pragma once
// dataset -- by which hashes a run knows the samples it trains on. Pure.
//
//     manifest's digest ─────────────────────────────┐
//     positions ─┬─▶ order ──────────────────────────┴─▶ digest   what state.toml pins
//     samples ───┘
//
// A manifest says which bytes there are, and nothing of what is made of them: whoever deals the
// samples could still choose. The positions (common/data/proof.h) say where each sample begins, the
// count of samples where a pass ends:
//
//     order  = SHA-256( "shoal-order-2" ‖ positions ‖ LE64 samples )
//     digest = SHA-256( "shoal-dataset-1" ‖ manifest's digest ‖ order )
//
// A run is bound to manifest and order (RECORD_DATA); members hold against both what they are told.

#include "common/base/hash.h"

// `samples`: of one pass.
struct hash dataset_order(const struct hash *positions, uint64_t samples);
struct hash dataset_digest(const struct hash *manifest, const struct hash *order);
