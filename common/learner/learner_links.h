#pragma once
// learner_links -- the links of a learner whose strategy has a group (common/group): they are opened at BUILD, and
// the core is told where they end. For the learner's files alone; on its thread.

#include "common/group/group.h"
#include "common/learner/learner_inside.h"

struct learner_links_options {
    uint8_t link; // LINK_PLAIN or LINK_SEALED, as CONFIG has it
    uint32_t connections;
    bool (*called)(void *learner); // As `called` of group_options
};

// The faults of group_new.
int learner_links_open(struct learner *self, const struct learner_links_options *options,
                       struct why *why, group_t **ret_group);

// Answers LINKS, and keeps what it said in *ret_links: our links end at the announced address of the bulk server,
// with a port of their own.
void learner_links_say(struct learner *self, const group_t *group, uint8_t link,
                       struct wire_links *ret_links);

// A member of a group, as the core names it.
void learner_links_member(struct group_member *ret_member, const struct wire_linked *said);
