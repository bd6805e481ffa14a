#include "common/learner/learner_links.h"
#include "common/base/ensure.h"
#include "common/base/log.h"
#include <stdio.h>
#include <string.h>

enum { REFUSED_MS = 1000 }; // Members listen before a group names them: one that does not is dead

int learner_links_open(struct learner *self, const struct learner_links_options *options,
                       struct why *why, group_t **ret_group)
{
    const struct group_options group = {
        .identity = self->options->identity,
        .run = self->options->run_id,
        .instance = self->options->instance,
        .bind = self->options->links_bind,
        .link = options->link == LINK_PLAIN ? GROUP_PLAIN : GROUP_SEALED,
        .connections = options->connections,
        .refused_ms = REFUSED_MS,
        .called_fd = worker_jobs_fd(self->worker),
        .called = options->called,
        .called_arg = self,
    };
    return group_new(&group, why, ret_group);
}

void learner_links_say(struct learner *self, const group_t *group, uint8_t link,
                       struct wire_links *ret_links)
{
    const char *announced = self->options->links_announced, *port = strrchr(announced, ':');
    ensure(port);
    const unsigned said = self->options->links_port ? self->options->links_port : group_port(group);
    snprintf(ret_links->endpoint, sizeof ret_links->endpoint, "%.*s:%u", (int)(port - announced),
             announced, said);
    log_line(LOG_INFO, "learner.links endpoint=%s link=%s", ret_links->endpoint,
             wire_enum_name(&wire_enum_link, link));
    worker_answer(self->worker, FRAME_LINKS, ret_links);
}

void learner_links_member(struct group_member *ret_member, const struct wire_linked *said)
{
    ret_member->key = said->key;
    ret_member->instance = said->instance;
    memcpy(ret_member->endpoint, said->endpoint, sizeof ret_member->endpoint);
}
