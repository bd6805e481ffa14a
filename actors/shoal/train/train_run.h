#pragma once
// train_run -- the work of `shoal train`: memory asked for and refused before it is taken, model
// and data opened, then step after step, with what is due on the way.
//
//     read samples ─▶ solo_step ─▶ held-out loss ─▶ a row for the log ─▶ checkpoint ─▶ next step
//                        └ a loss that is no number: stop, keep the state before it
//
// Ctrl-C (SIGINT, SIGTERM) or the end of its session (SIGHUP, unless it is ignored as under nohup) ends it after the
// step in hand, with a checkpoint. A second SIGINT or SIGTERM kills.

#include "actors/shoal/train/train_settings.h"

// Prints progress on stderr and the end on stdout. FAULT_TIMEOUT without a text if it was
// interrupted, and said so. Once in a process.
int train_run(const struct train_flags *flags, struct why *why);
