// Starts the learner of a member: a thread that holds the replica's parameters and computes on
// them. It first finds the device that the flags name.

#include "common/learner/learner.h"
#include "common/base/log.h"
#include "common/member/member_shell.h"

int member_learner(const struct member_place *place, struct why *why, struct worker **ret_worker)
{
    static struct learner_options learner; // For the thread's life
    const struct member_options *options = place->options;
    struct compute_device device = { .kind = COMPUTE_CPU };
    int rc = compute_find(options->device, why, &device);
    if (rc < 0) return rc;
    log_line(LOG_INFO, "learner.device uses=\"%s\"", device.text);
    learner = (struct learner_options){ .identity = place->identity,
                                        .store = place->store,
                                        .run_id = place->member->run,
                                        .device = device,
                                        .threads = (uint32_t)options->threads,
                                        .micro_batch = (uint32_t)options->micro_batch,
                                        .keep = (uint32_t)options->keep,
                                        .trains = place->member->role == ACTOR_TRAINER,
                                        .checkpoint_root = options->checkpoint_dir,
                                        .tokenizer_dir = options->tokenizer_dir };
    *ret_worker = worker_new(PORT_LEARNER, learner_body, &learner);
    return 0;
}
