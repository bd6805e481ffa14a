#pragma once
// status_view -- a run as `shoal status` shows it once, from its news and from what the broker says of its actors.
//
//     run demo: RoundTrain, about 3m05s left
//
//       epoch 4   round 131   step 123 of 460   pass 0
//       ...
//
// Prints to standard output; the caller checks whether that could be written.

#include "actors/shoal/run/watch.h"
#include "actors/shoal/show.h"
#include <jansson.h>

// The coordinator is silent or not connected, as the broker says. False: it has not said.
bool status_is_dead(const struct watch_heard *heard);

// "7.0s ago"; "long ago" if it was never heard.
const char *status_show_heard(const struct last_heard *heard, char text[SHOW_MAX]);

// shoal.status.1; the caller frees. NULL: no memory.
json_t *status_view_to_json(const char *run, const struct run_view *view,
                            const struct watch_heard *heard);

// Its tasks by state: {"pass": 0, "tasks": 10, "todo": 9, ...}; null: it has none.
json_t *status_tasks_to_json(const struct wire_task_counts *tasks);

void status_view_print(const char *run, const struct run_view *view,
                       const struct watch_heard *heard);
