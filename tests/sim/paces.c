// paces -- the simulator's tables: all paces of the product, and those of paces.def, which brings frames
// along. They take the place of common/pace/paces.c, common/pace/member_paces.c and common/wire/wire_more.c.

#define WIRE_MORE "tests/sim/paces.def"
#define WIRE_MORE_DEFINE
#include "common/wire/wire_more.h"
#include "tests/sim/sim.h"

#define WENUM(name, PREFIX)
#define RECORD(name)
#define FRAME(number, KIND, record, flags)
#define ALSO(number, KIND, record, flags)

#define PACE(name)                                                                                 \
    extern const struct pace pace_##name;                                                          \
    extern const struct member_pace member_pace_##name;                                            \
    extern const struct sim_pace sim_pace_##name;
#include "common/pace/paces.def"
#include "tests/sim/paces.def"
#undef PACE

#define PACE(name) &pace_##name,
const struct pace *const paces[] = {
#include "common/pace/paces.def"
#include "tests/sim/paces.def"
    NULL,
};
#undef PACE

#define PACE(name) &member_pace_##name,
const struct member_pace *const member_paces[] = {
#include "common/pace/paces.def"
#include "tests/sim/paces.def"
    NULL
};
#undef PACE

#define PACE(name) &sim_pace_##name,
const struct sim_pace *const sim_paces[] = {
#include "common/pace/paces.def"
#include "tests/sim/paces.def"
    NULL
};
