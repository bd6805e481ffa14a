// paces -- the table of all paces, made from their registration lines. A test that brings a pace of its own
// links another table (tests/pace).

#include "common/pace/pace.h"

#define WENUM(name, PREFIX)
#define RECORD(name)
#define FRAME(number, KIND, record, flags)
#define ALSO(number, KIND, record, flags)

#define PACE(name) extern const struct pace pace_##name;
#include "common/pace/paces.def"
#undef PACE

#define PACE(name) &pace_##name,
const struct pace *const paces[] = {
#include "common/pace/paces.def"
    NULL,
};
