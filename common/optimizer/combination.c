// Encoding sums binomials; decoding finds them from the greatest number down. A guess in floats
// comes near the number, exact integers decide. Both avoid division: a multiple of a known divisor
// is divided by a multiplication with its inverse modulo 2^128.
#include "common/optimizer/combination.h"
#include "common/base/ensure.h"

#include <math.h>

typedef combination_number number_t;

static uint32_t bits_of(number_t value)
{
    const uint64_t high = (uint64_t)(value >> 64), low = (uint64_t)value;
    if (high) return 128 - (uint32_t)__builtin_clzll(high);
    return low ? 64 - (uint32_t)__builtin_clzll(low) : 0;
}

bool combination_fits(uint32_t elements, uint32_t top_k)
{
    ensure(top_k >= 1 && top_k <= elements && elements <= 65536);
    return top_k <= COMBINATION_COUNT_MAX && top_k * bits_of(elements - 1) <= 128;
}

// ---- exact division: of a multiple it is a multiplication, modulo 2^128

static struct combination_divisor divisor_of(number_t divisor)
{
    uint32_t shift = 0;
    for (; divisor % 2 == 0; divisor /= 2) shift++;
    number_t inverse = 1;
    for (int right = 1; right < 128; right *= 2) inverse *= 2 - divisor * inverse; // Newton's
    return (struct combination_divisor){ inverse, shift };
}

static inline number_t divide(number_t multiple, const struct combination_divisor *by)
{
    return (multiple >> by->shift) * by->inverse;
}

// a·(a-1)·...·(a-count+1) = C(a, count)·count!, for a <= 65536; in fours, for speed.
static inline number_t falling(uint32_t a, uint32_t count)
{
    number_t product = 1;
    uint64_t factor = a;
    for (; count >= 4; count -= 4, factor -= 4)
        product *= (number_t)(factor * (factor - 1)) * ((factor - 2) * (factor - 3));
    uint64_t rest = 1;
    for (; count > 0; count--) rest *= factor--;
    return product * rest;
}

static void fill_root(struct combination_root *root, uint32_t i)
{
    const double power = 1.0 / (double)i;
    for (int e = 0; e < 128; e++) root->octave[e] = (float)exp2(e * power);
    for (int q = 0; q <= COMBINATION_ROOT_STEPS; q++)
        root->mantissa[q] = (float)pow(1.0 + (double)q / COMBINATION_ROOT_STEPS, power);
}

void combination_init(struct combination *self, uint32_t elements, uint32_t top_k)
{
    ensure(combination_fits(elements, top_k));
    *self = (struct combination){ .elements = elements, .top_k = top_k };
    self->factorial[0] = 1;
    self->by_factorial[0] = divisor_of(1);
    self->first[1] = 1; // Nothing chosen is one state, number 0
    for (uint32_t i = 1; i <= top_k; i++) {
        self->factorial[i] = self->factorial[i - 1] * i;
        self->by[i] = divisor_of(i);
        fill_root(&self->root[i], i);
        self->by_factorial[i] = divisor_of(self->factorial[i]);
        const number_t subsets = divide(falling(elements, i), &self->by_factorial[i]);
        self->first[i + 1] = self->first[i] + (subsets << i);
    }
    self->bits = bits_of(self->first[top_k + 1] - 1);
}

// Sums C(a, i)·i! by Horner's rule, so that one division by count! at the end is enough.
number_t combination_encode(const struct combination *self, const uint16_t *numbers, uint32_t signs,
                            uint32_t count)
{
    ensure(count <= self->top_k);
    number_t sum = 0;
    for (uint32_t i = 1; i <= count; i++) sum = sum * i + falling(numbers[i - 1], i);
    const number_t rank = divide(sum, &self->by_factorial[count]);
    return self->first[count] + (rank << count) + signs;
}

uint32_t combination_split(const struct combination *self, number_t number, uint32_t *ret_signs,
                           number_t *ret_rank)
{
    ensure(number < self->first[self->top_k + 1]);
    uint32_t count = self->top_k; // Nearly always: a zero coefficient is rare
    while (number < self->first[count]) count--;
    const number_t within = number - self->first[count];
    *ret_signs = (uint32_t)within & ((1u << count) - 1);
    *ret_rank = within >> count;
    return count;
}

// About the largest a with falling(a, i) <= product, which is not 0: the product is close to the
// i-th power of its middle factor. Of small products it may lie below i - 1 (i = 25, product 25!:
// 22), where falling is 0 because one factor is 0: the search goes up from there.
static inline uint32_t guess(const struct combination_root *root, number_t product, uint32_t i,
                             uint32_t most)
{
    const uint32_t length = bits_of(product);                         // 1..128
    const uint64_t top = (uint64_t)(product << (128 - length) >> 64); // Its leading one at bit 63
    const uint32_t q = (uint32_t)(top >> 57) & 63, rest = (uint32_t)(top >> 33) & 0xffffff;
    const float low = root->mantissa[q], high = root->mantissa[q + 1];
    const float mantissa = low + (high - low) * (float)(int32_t)rest * 0x1p-24f;
    const float a = root->octave[length - 1] * mantissa + 0.5f * (float)(int32_t)(i - 1);
    return a < (float)(int32_t)most ? (uint32_t)(int32_t)a : most;
}

// Takes the i-th number from below, which is below `end`. *scaled is the rest of the rank times i!,
// and becomes the new rest times (i-1)!. The guess may be off by one where floats round, and by a
// few where the rest is small; integers decide.
static inline uint16_t take_number(const struct combination *self, number_t *scaled, uint32_t i,
                                   uint32_t end)
{
    if (i == 1) return (uint16_t)*scaled;
    if (*scaled == 0) return (uint16_t)(i - 1); // The least that has i-1 below it: C(i-1, i) = 0
    uint32_t a = guess(&self->root[i], *scaled, i, end - 1);
    for (;;) {
        const number_t shared = falling(a, i - 1), product = shared * (a - (i - 1));
        if (product > *scaled) {
            a--;
        } else if (shared * (a + 1) <= *scaled) {
            a++;
        } else {
            *scaled = divide(*scaled - product, &self->by[i]);
            return (uint16_t)a;
        }
    }
}

// Decodes the greatest numbers first.
void combination_decode(const struct combination *self, struct combination_state *states,
                        uint32_t count)
{
    ensure(count <= COMBINATION_STATES_MAX);
    uint32_t end[COMBINATION_STATES_MAX]; // The numbers still to come lie below it
    for (uint32_t s = 0; s < count; s++) {
        states[s].rank *= self->factorial[states[s].count];
        end[s] = self->elements;
    }
    for (uint32_t i = self->top_k; i >= 1; i--) {
        for (uint32_t s = 0; s < count; s++) {
            if (i > states[s].count) continue;
            const uint16_t number = take_number(self, &states[s].rank, i, end[s]);
            states[s].numbers[i - 1] = number;
            end[s] = number;
        }
    }
}
