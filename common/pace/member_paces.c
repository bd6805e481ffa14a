// The table of all paces, made from common/pace/paces.def. It is a file of its own, so that a test
// program can link another table in its place.

#include "common/member/pace_part.h"

#define WENUM(name, PREFIX)
#define RECORD(name)
#define FRAME(number, KIND, record, flags)
#define ALSO(number, KIND, record, flags)

#define PACE(name) extern const struct member_pace member_pace_##name;
#include "common/pace/paces.def"
#undef PACE

#define PACE(name) &member_pace_##name,
const struct member_pace *const member_paces[] = {
#include "common/pace/paces.def"
    NULL
};
#undef PACE
