// Starts the fetcher of a member: a thread that fetches blobs and parameters from peers.

#include "common/bulk/fetcher.h"
#include "common/member/member_shell.h"

int member_fetcher(const struct member_place *place, struct why *why, struct worker **ret_worker)
{
    static struct fetcher_options fetcher; // For the thread's life
    (void)why;
    fetcher = (struct fetcher_options){ .identity = place->identity,
                                        .store = place->store,
                                        .run = place->member->run,
                                        .namer = place->namer };
    *ret_worker = worker_new(PORT_FETCHER, fetcher_run, &fetcher);
    return 0;
}
