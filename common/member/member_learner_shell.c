// Starts the learner of a member: a thread that holds the replica's state and computes on it. It
// first finds the device that the flags name, and where links would end: at the address of the bulk
// server, at the port behind its own if the operator chose that one, else at any free port.

#include "common/learner/learner.h"
#include "common/base/log.h"
#include "common/member/member_shell.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint16_t port_behind(const char *endpoint)
{
    const unsigned long port = strtoul(strrchr(endpoint, ':') + 1, NULL, 10);
    return port < 65535 ? (uint16_t)(port + 1) : 0;
}

static void place_links(const struct member_place *place, struct learner_options *learner)
{
    const char *bound = place->bulk_endpoint + strlen("tcp://");
    const bool chosen = strcmp(place->options->bulk_port, "*") != 0;
    snprintf(learner->links_bind, sizeof learner->links_bind, "%.*s:%u",
             (int)(strrchr(bound, ':') - bound), bound, chosen ? port_behind(bound) : 0);
    learner->links_announced = place->member->endpoint;
    learner->links_port = chosen ? port_behind(place->member->endpoint) : 0;
}

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
                                        .trains = role_takes_steps(place->member->role),
                                        .serves = place->member->role == ACTOR_SERVER,
                                        .checkpoint_root = options->checkpoint_dir,
                                        .tokenizer_dir = options->tokenizer_dir,
                                        .instance = place->instance };
    place_links(place, &learner);
    *ret_worker = worker_new(PORT_LEARNER, learner_body, &learner);
    return 0;
}
