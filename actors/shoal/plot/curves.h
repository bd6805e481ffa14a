#pragma once
// curves -- the numbers of a log, step by step: what `shoal train --log` writes, as CSV or as JSON
// lines, and run.csv of a coordinator (actors/coordinator/log_shell.h).
//
//     step,tokens,batch,loss,learning_rate,gradient_norm,seconds,tokens_per_s,heldout_loss
//     {"step":1,"loss":5.12,"learning_rate":0.004,"tokens_per_s":8120,"heldout_loss":null}
//
// Columns are known by their names, so their order and other columns do not matter. Only `step` is
// needed.

#include "common/base/fault.h"
#include <stddef.h>
#include <stdint.h>

enum curve { CURVE_LOSS, CURVE_HELDOUT, CURVE_RATE, CURVE_TOKENS, CURVES };

struct curves_row {
    uint64_t step;
    double values[CURVES]; // -1e100 to 1e100; NaN: the log does not say, or says more
};

struct curves {
    struct curves_row *rows; // `count` of them, with rising steps
    size_t count, capacity;
};

// Reads a log; curves_free frees it, in any case. A row whose step is not greater than the one
// before belongs to a training that went back (resumed, or restored) and replaces the later rows.
// The last line counts only with its newline, as it may be half written. FAULT_FORMAT, with the
// line; FAULT_NOT_FOUND, FAULT_IO: the file cannot be read.
int curves_read(const char *path, struct why *why, struct curves *ret_curves);
void curves_free(struct curves *self);

double curves_last(const struct curves *self, enum curve curve); // NaN: no row has it
