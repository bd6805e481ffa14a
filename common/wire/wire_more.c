// No program has frames beside those of frames.def. This file has nothing else: a test's own
// wire_more then takes its place when the test is linked.

#include "common/wire/wire_table.h"

const struct wire_more wire_more = { 0, 0, NULL };
