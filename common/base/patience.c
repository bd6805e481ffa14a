#include "common/base/patience.h"
#include <sched.h>

void patience_set(bool is_patient)
{
    const struct sched_param none = { 0 };
    sched_setscheduler(0, is_patient ? SCHED_BATCH : SCHED_OTHER, &none);
}
