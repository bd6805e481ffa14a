// Takes a message through a role's list: the member hears it, then every part hears it, then every
// part looks. The position is stored in between, so that it is on disk before anything that a part
// sends because of it.

#include "common/member/parts.h"
#include <sysexits.h>

static void finish(const struct member_turn *turn, const struct part *parts)
{
    bool stays = false;
    for (const struct part *part = parts; part->self; part++) {
        if (!part->done) continue;
        const bool is_guest = turn->member->is_guest;
        if (!part->done(part->self, turn) && !is_guest) return;
        stays = !is_guest;
    }
    turn->member->finished = true;
    // mutant: a member that serves nobody outlives its run
    if (!stays) outbox_quit(turn->out, EX_OK, "the run is finished");
}

void parts_step(struct member_turn *turn, const struct part *parts)
{
    struct member *member = turn->member;
    turn->heard = member_hear(member, turn->in, turn->out);
    for (const struct part *part = parts; part->self; part++)
        if (part->hear) part->hear(part->self, turn);
    if (member_should_keep(member)) member_promise(member, turn->out);
    for (const struct part *part = parts; part->self; part++)
        if (part->look) part->look(part->self, turn);
    if (member->has_run && member->now.phase == PHASE_FINISHED && !member->finished)
        finish(turn, parts);
}
