#pragma once
// baselines -- how well the bytes of a text can be guessed by counting: the Witten-Bell baselines (ngram.h), fitted on the
// part to train on and scored on the part held out. A trained model is compared with them.

#include "common/base/fault.h"
#include "common/data/ngram.h"
#include <stdint.h>

// Bytes of a part: both are held in memory, two bytes each while they are read.
enum { BASELINES_TEXT_MAX = 1 << 30 };

// Of a folder that text_tokens has written. Writes DIR/baselines.json, too:
//
//   { "unit": "nats per byte", "train_bytes": N, "heldout_bytes": N, "nats": [order 0, 1, 2] }
//
// *ret_nats: of orders 0, 1, 2, per held-out byte; undefined after a fault. FAULT_LIMIT: a part is longer than
// BASELINES_TEXT_MAX. FAULT_MEMORY, and those of text_tokens_load and json_file_write.
int baselines_make(const char *dir, struct why *why, double ret_nats[NGRAM_ORDERS]);
