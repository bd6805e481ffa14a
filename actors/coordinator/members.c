// members -- decides which members the run has.
//
// 1. JOIN is refused, in this order: if role or name do not fit, a server comes to a run without servers, the key was
//    ejected, the process is older than the member's, the key has another role, the endpoint is no number, a data
//    provider has other data, no index is free, the member was dropped again for being late (for a while), or
//    it has caused too many changes. A known key keeps its index and what is recorded against it, and has the name of
//    its newest JOIN; a new key gets a free index.
// 2. A trainer or parameter server is pending until the next epoch, unless the pace admits it at once. All other roles
//    serve at once.
// 3. PING renews a member's lease, and its progress is kept.
// 4. LEAVE withdraws a member, unless the pace still needs it.
// 5. A member that stays silent longer than its lease is dropped.

#include "actors/coordinator/members.h"
#include "actors/coordinator/holdings.h"
#include "common/pace/pace.h"
#include "common/net/endpoint.h"
#include "common/run/dataset.h"
#include <inttypes.h>
#include <string.h>

enum {
    ROSTER_DELAY_MS = 50, // So that many joins lead to one ROSTER
    CHANGES_MAX = 20,     // Rate limit: changes that a member may cause in CHANGES_MS,
    CHANGES_MS = 60000,   // as each of them is a record
};

// ---- joining ------------------------------------------------------------------------------------

// Whether the run keeps its data: a round, window or lease was opened on it, or a provider other than the joiner is
// here and has it. Otherwise the joiner may bind the run to other data.
static bool is_bound(const struct run *run, uint32_t joiner)
{
    uint32_t others = roster_count(&run->roster, ACTOR_PROVIDER, MEMBER_HEALTHY);
    if (joiner != NO_MEMBER && run->roster.members[joiner].state == MEMBER_HEALTHY) others--;
    // mutant: data: the first to join binds the run for ever
    // mutant: data: what was trained on becomes other data
    return run->pass_samples && (run->number > 0 || others > 0);
}

static struct wire_record_data data_of(const struct wire_join *join)
{
    return (struct wire_record_data){ .samples = join->samples,
                                      .data = join->data,
                                      .order = dataset_order(&join->positions, join->samples) };
}

static bool is_data_of_run(const struct run *run, const struct wire_record_data *data)
{
    return data->samples == run->pass_samples && hash_equal(&data->data, &run->data) &&
           hash_equal(&data->order, &run->order);
}

// Whether the sender, a data provider, may join with its data. If not, it is refused here.
static bool may_provide(const struct turn *turn, const struct msg *in)
{
    const struct wire_join *join = in->body;
    const struct run *run = turn->run;
    const struct wire_record_data data = data_of(join);
    const struct hash digest = dataset_digest(&data.data, &data.order);
    const struct hash *pin = &turn->rules->dataset_digest;
    char has[HASH_HEX], wanted[HASH_HEX];
    if (turn->rules->frame.data.kind != DATA_SERVER) return true; // No member fetches from it
    if (join->samples == 0) {
        turn_refuse(turn, in, REFUSAL_WRONG_DATA, 0,
                    "this data provider has 0 samples; allowed: 1 and more");
        return false;
    }
    // mutant: data: any order of the pinned files is let in
    if (!hash_is_none(pin) && !hash_equal(&digest, pin)) {
        turn_refuse(turn, in, REFUSAL_WRONG_DATA, 0,
                    "[data] dataset_digest pins %.16s, this source is %.16s; give it the run's "
                    "files and data.toml",
                    hash_to_hex(pin, wanted), hash_to_hex(&digest, has));
        return false;
    }
    if (is_bound(run, roster_find(&run->roster, &in->sender)) && !is_data_of_run(run, &data)) {
        turn_refuse(turn, in, REFUSAL_WRONG_DATA, 0,
                    "the run trains on %" PRIu64 " samples a pass, this "
                    "source has %" PRIu64 ", another manifest or another order; give it the run's "
                    "files and data.toml",
                    run->pass_samples, join->samples);
        return false;
    }
    return true;
}

static bool is_member_role(uint8_t role)
{
    return role != ACTOR_COORDINATOR && role != ACTOR_MONITOR && role != ACTOR_OPERATOR;
}

// Whether the sender may join, so far as role, key, process, endpoint and data go. If not, it is refused here.
static bool may_join(const struct turn *turn, const struct msg *in)
{
    const struct wire_join *join = in->body;
    const struct run *run = turn->run;
    uint32_t index = roster_find(&run->roster, &in->sender);
    if (!is_member_role(join->role) || !actor_name_fits(join->name, join->role, &in->sender)) {
        turn_refuse(turn, in, REFUSAL_WRONG_ROLE, 0,
                    "a %s called %s cannot join; allowed: trainer, witness, checkpointer, "
                    "data-provider, parameter-server, named ROLE.KEY or ROLE.LABEL.KEY",
                    wire_enum_name(&wire_enum_role, join->role), join->name);
        return false;
    }
    // mutant: servers: a server joins a run that has none
    if (join->role == ACTOR_SERVER && !(turn->pace->servers && turn->pace->servers(turn->rules))) {
        turn_refuse(turn, in, REFUSAL_WRONG_ROLE, 0,
                    "this run has no parameter servers (strategy.kind)");
        return false;
    }
    // mutant: guilt: an ejected member may join again
    if (index != NO_MEMBER && run->roster.members[index].state == MEMBER_EJECTED) {
        turn_refuse(turn, in, REFUSAL_EJECTED, 0, "this identity was ejected; give up");
        return false;
    }
    if (index != NO_MEMBER && join->instance < run->roster.members[index].instance) {
        turn_refuse_older(turn, in, join->instance);
        return false;
    }
    if (index != NO_MEMBER && join->role != run->roster.members[index].role) {
        turn_refuse(turn, in, REFUSAL_WRONG_ROLE, 0,
                    "this key is a %s of the run; a %s needs a key of its own",
                    wire_enum_name(&wire_enum_role, run->roster.members[index].role),
                    wire_enum_name(&wire_enum_role, join->role));
        return false;
    }
    if (join->endpoint[0] && !endpoint_is_numeric(join->endpoint)) {
        turn_refuse(turn, in, REFUSAL_MALFORMED, 0,
                    "endpoint %.60s: must be tcp://IPv4:PORT or tcp://[IPv6]:PORT, numbers "
                    "and no name; give --bulk-bind an address of yours",
                    join->endpoint);
        return false;
    }
    return join->role != ACTOR_PROVIDER || may_provide(turn, in);
}

// Refuses the message, if it is one too many of those that change the member; else counts it.
static bool refuse_too_many_changes(const struct turn *turn, const struct msg *in, uint32_t index)
{
    if (turn->now_ms - turn->presence->changes_ms[index] >= CHANGES_MS) {
        turn->presence->changes_ms[index] = turn->now_ms;
        turn->presence->changes[index] = 0;
    }
    if (turn->presence->changes[index] < CHANGES_MAX) {
        turn->presence->changes[index]++;
        return false;
    }
    turn_refuse(turn, in, REFUSAL_NOT_NOW, 0,
                "%d changes of this member within a minute; retry when it is over", CHANGES_MAX);
    return true;
}

// Too few members that are here have reported the newest step: no epoch can begin before others
// come that hold it.
static bool lacks_parameters(const struct turn *turn, const struct holdings *holdings)
{
    const uint8_t phase = turn->run->phase;
    // mutant: late: who is out is back while the others still report an earlier step
    return (phase == PHASE_WAITING || phase == PHASE_WARMUP) &&
           !holdings_somebody_says(holdings, turn);
}

// Fewer than min_clients trainers are here, and a Cooldown cannot end with so few. After the last step no epoch follows
// in which the run could wait for more: in seed 33042 two trainers waited for a third, which asked to join and was
// refused.
static bool cooldown_lacks_trainers(const struct turn *turn)
{
    const struct roster *roster = &turn->run->roster;
    return turn->run->phase == PHASE_COOLDOWN &&
           roster_count(roster, ACTOR_TRAINER, MEMBER_HEALTHY) +
                   roster_count(roster, ACTOR_TRAINER, MEMBER_PENDING) <
               turn->rules->min_clients;
}

// Refuses a member that was dropped again because the others waited for it in vain: it stays out for a while. But one
// that the run needs now is let in (members.h). A member that is in says JOIN again if it has not heard that it is: in
// seed 22246 a refusal of its vote overtook the answer.
static bool refuse_late(const struct turn *turn, const struct holdings *holdings,
                        const struct msg *in, uint32_t index)
{
    const uint64_t until_ms = turn->presence->out_until_ms[index];
    const bool is_in =
        index < turn->run->roster.count && roster_is_here(&turn->run->roster.members[index]);
    // mutant: late: the last that holds the newest step stays out
    // mutant: late: who is in is refused when it joins again
    if (is_in || turn->now_ms >= until_ms || turn_count_missing(turn) > 0 ||
        // mutant: late: who is out cannot end the last cooldown
        lacks_parameters(turn, holdings) || cooldown_lacks_trainers(turn) ||
        turn->run->phase == PHASE_FINISHED)
        return false;
    turn_refuse(
        turn, in, REFUSAL_NOT_NOW, 0,
        "too late in too many rounds: this machine is too slow for the run, or cut off (see "
        "`shoal doctor`); it may join in %" PRIu64 " s, or if no epoch can begin or end without it",
        (until_ms - turn->now_ms + 999) / 1000);
    return true;
}

// Another key takes the index: what the one before did is not held against it.
static void forget_index(struct presence *presence, uint32_t index)
{
    presence->out_until_ms[index] = 0;
    presence->changes_ms[index] = 0;
    presence->changes[index] = 0;
}

// The index of the sender: its own, or a free one, of which everything is forgotten. NO_MEMBER: refused, as none is
// free.
static uint32_t take_index(const struct turn *turn, const struct msg *in)
{
    uint32_t index = roster_find(&turn->run->roster, &in->sender);
    if (index != NO_MEMBER) return index;
    index = run_free_place(turn->run);
    if (index != NO_MEMBER) forget_index(turn->presence, index);
    else
        turn_refuse(turn, in, REFUSAL_FULL, 0, "all %d places are taken; try again later",
                    MEMBERS_MAX);
    return index;
}

// The sender's line of the roster once it is admitted. `was`: its line so far, or NULL. A new process has joined now. A
// healthy member stays healthy; a pending one becomes healthy if the pace admits it by now.
static struct wire_member joined_as(const struct turn *turn, const struct msg *in, uint32_t index,
                                    const struct wire_member *was)
{
    const struct wire_join *join = in->body;
    struct wire_member member = { 0 };
    if (was) member = *was;
    if (!was || was->instance != join->instance) member.joined_number = turn->run->number;
    const bool stays = was && was->state == MEMBER_HEALTHY;
    const bool waits = role_takes_steps(join->role) && !stays && !pace_admits(turn);
    member.index = index, member.key = in->sender, member.role = join->role;
    member.state = waits ? MEMBER_PENDING : MEMBER_HEALTHY;
    member.instance = join->instance;
    memcpy(member.name, join->name, sizeof member.name);
    memcpy(member.endpoint, join->endpoint, sizeof member.endpoint);
    return member;
}

static enum arrival arrival_of(const struct wire_member *was, const struct wire_member *now)
{
    if (!was) return ARRIVAL_NEW_KEY;
    if (wire_equal(FRAME_RECORD_MEMBER, now, was)) return ARRIVAL_NONE;
    return was->state == MEMBER_HEALTHY ? ARRIVAL_STAYS : ARRIVAL_RETURNS;
}

// Whether a sender of this role, which may join with this data, binds the run to it.
static bool binds_run(const struct turn *turn, uint8_t role, const struct wire_record_data *data)
{
    return role == ACTOR_PROVIDER && turn->rules->frame.data.kind == DATA_SERVER &&
           !is_data_of_run(turn->run, data);
}

// Records the member. A PING of its earlier process says nothing of this one.
static void record_member(const struct turn *turn, const struct wire_member *member)
{
    turn->presence->step_held[member->index] = turn->presence->ping_seq[member->index] = 0;
    turn->presence->pinged[member->index] = false;
    turn->presence->loss[member->index] = 0; // That of its process, or of another key, before
    turn_put(turn, FRAME_RECORD_MEMBER, member);
    turn_tell_roster_later(turn, ROSTER_DELAY_MS);
    outbox_note(turn->out, "member.joined name=%s index=%u state=%s endpoint=%s", member->name,
                member->index, wire_enum_name(&wire_enum_member_state, member->state),
                member->endpoint);
}

static void send_admitted(const struct turn *turn, const struct msg *in,
                          const struct wire_member *member)
{
    outbox_mail(turn->out, in->from, FRAME_ADMITTED,
                &(struct wire_admitted){ .index = member->index,
                                         .state = member->state,
                                         .instance = member->instance,
                                         .config = turn->rules->config,
                                         .born_unix_ms = turn->run->born_unix_ms });
}

enum arrival members_hear_join(const struct turn *turn, const struct holdings *holdings,
                               const struct msg *in, uint32_t *ret_member)
{
    if (!may_join(turn, in)) return ARRIVAL_NONE;
    const uint32_t index = take_index(turn, in);
    if (index == NO_MEMBER || refuse_late(turn, holdings, in, index)) return ARRIVAL_NONE;
    const bool known = roster_find(&turn->run->roster, &in->sender) == index;
    const struct wire_member *was = known ? &turn->run->roster.members[index] : NULL;
    const struct wire_member member = joined_as(turn, in, index, was);
    const struct wire_record_data data = data_of(in->body);
    const enum arrival arrival = arrival_of(was, &member);
    const bool differs = arrival != ARRIVAL_NONE, binds = binds_run(turn, member.role, &data);
    turn->presence->heard_ms[index] = turn->now_ms; // Also if its change is refused: it lives
    // mutant: data: a provider changes its mind without end
    // mutant: a member fills the ledger
    if (known && (binds || differs) && refuse_too_many_changes(turn, in, index))
        return ARRIVAL_NONE;
    if (differs) record_member(turn, &member);
    if (binds) turn_put(turn, FRAME_RECORD_DATA, &data);
    // mutant: a member is admitted before it is stored (2)
    send_admitted(turn, in, &member);
    *ret_member = index;
    return arrival;
}

// ---- staying and going --------------------------------------------------------------------------

void members_hear_ping(const struct turn *turn, const struct msg *in)
{
    const struct wire_ping *ping = in->body;
    uint32_t index = turn_member(turn, in); // Renews its lease
    if (index == NO_MEMBER) return;
    if (ping->instance < turn->run->roster.members[index].instance) {
        turn_refuse_older(turn, in, ping->instance);
        return;
    }
    // PINGs may come in another order than they were sent. In seed 74552 an older PING undid what a newer one had said,
    // the coordinator found that nobody held the step, and began the run again
    // mutant: members: an earlier word of what a member holds takes the place of a later one
    if (in->seq < turn->presence->ping_seq[index]) return;
    turn->presence->ping_seq[index] = in->seq;
    turn->presence->loss[index] = ping->loss;
    turn->presence->pinged[index] = true;
    // A step beyond the run's was made before a restore, and counts as none
    turn->presence->step_held[index] =
        ping->step <= turn->run->step + pace_ahead(turn) ? ping->step : 0;
}

void members_hear_leave(const struct turn *turn, const struct msg *in)
{
    const struct wire_leave *leave = in->body;
    uint32_t index = roster_find(&turn->run->roster, &in->sender);
    const bool takes_part = index != NO_MEMBER &&
                            roster_is_here(&turn->run->roster.members[index]) &&
                            leave->instance >= turn->run->roster.members[index].instance;
    // mutant: the only holder may go
    if (takes_part && turn->pace->needs(turn, index)) {
        turn_refuse(turn, in, REFUSAL_NOT_NOW, 0,
                    "no other member holds step %" PRIu64
                    " yet; serve it until one does, then retry",
                    turn->run->step);
        return;
    }
    if (takes_part && refuse_too_many_changes(turn, in, index)) return;
    if (takes_part) turn_set_state(turn, index, MEMBER_WITHDRAWN);
    turn_ack(turn, in, 0, NULL);
}

void members_check_leases(const struct turn *turn)
{
    for (uint32_t i = 0; i < turn->run->roster.count; i++) {
        if (!roster_is_here(&turn->run->roster.members[i])) continue;
        if (turn->now_ms - turn->presence->heard_ms[i] > turn->rules->lease_ms)
            turn_set_state(turn, i, MEMBER_DROPPED);
    }
}
