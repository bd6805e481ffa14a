// assignment -- shuffles the trainers, cuts the batch in that order, and keeps an index by trainer,
// so that deal_of_trainer is a binary search.

#include "common/run/assignment.h"
#include "common/base/ensure.h"

// Knuth's constants for 64 bits (MMIX), as in Psyche.
static uint64_t lcg_next(uint64_t *state)
{
    return *state = *state * 6364136223846793005u + 1442695040888963407u;
}

// Writes to shares[place].trainer the rank of the trainer that gets that share.
static void shuffle(uint64_t seed, struct share *shares, uint32_t trainers)
{
    for (uint32_t rank = 0; rank < trainers; rank++) shares[rank].trainer = rank;
    for (uint32_t i = trainers; i-- > 1;) {
        const uint32_t j = (uint32_t)(lcg_next(&seed) % (i + 1));
        const uint32_t trainer = shares[i].trainer;
        shares[i].trainer = shares[j].trainer;
        shares[j].trainer = trainer;
    }
}

void assignment_deal(uint64_t seed, const uint32_t *trainer_indices, uint32_t trainers,
                     uint32_t batch_size, struct deal *out)
{
    ensure(trainers <= out->capacity && trainers <= MEMBERS_MAX);
    for (uint32_t i = 1; i < trainers; i++) ensure(trainer_indices[i - 1] < trainer_indices[i]);
    out->trainers = trainers;
    out->count = trainers < batch_size ? trainers : batch_size;
    shuffle(seed, out->shares, trainers);
    for (uint32_t place = 0, begin = 0; place < trainers; place++) {
        struct share *share = &out->shares[place];
        out->by_trainer[share->trainer] = place;
        share->trainer = trainer_indices[share->trainer];
        share->begin = begin;
        share->end = begin += batch_size / trainers + (place < batch_size % trainers);
    }
}

bool deal_of_trainer(const struct deal *self, uint32_t trainer, struct share *ret_share)
{
    uint32_t low = 0, high = self->trainers;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (self->shares[self->by_trainer[middle]].trainer < trainer) low = middle + 1;
        else high = middle;
    }
    if (low == self->trainers) return false;
    const struct share *share = &self->shares[self->by_trainer[low]];
    if (share->trainer != trainer || share->begin == share->end) return false;
    *ret_share = *share;
    return true;
}
