#include "common/learn/combination.h"
#include "common/ensure.h"

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

// a·(a-1)·...·(a-count+1) = C(a, count)·count!
static inline number_t falling(uint32_t a, uint32_t count)
{
    number_t product = 1;
    for (uint32_t i = 0; i < count; i++) product *= a - i;
    return product;
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
    uint32_t count = self->top_k; // Nearly always: what is zero is rare
    while (number < self->first[count]) count--;
    const number_t within = number - self->first[count];
    *ret_signs = (uint32_t)within & ((1u << count) - 1);
    *ret_rank = within >> count;
    return count;
}

// About the largest a with falling(a, count) <= product. The product is close to the power of its
// middle factor; the last term is what the spread of the factors takes from it.
static inline uint32_t guess(number_t product, uint32_t count, uint32_t least, uint32_t most)
{
    const float value = (float)(uint64_t)(product >> 64) * 0x1p64f + (float)(uint64_t)product;
    const float middle = exp2f(log2f(value) / (float)count);
    const float spread = (float)(count * count - 1) / (24.0f * middle);
    const float a = middle + spread + 0.5f * (float)(count - 1);
    return a < (float)most ? a > (float)least ? (uint32_t)a : least : most;
}

// The greatest number first. `scaled` is what is left of the rank, times count!. The guess may be
// off by one where floats round; integers decide.
void combination_decode(const struct combination *self, number_t rank, uint32_t count,
                        uint16_t *ret_numbers)
{
    number_t scaled = rank * self->factorial[count];
    uint32_t end = self->elements; // What is left lies below it
    for (uint32_t i = count; i >= 1; i--) {
        uint32_t a = i - 1; // The least that has i-1 below it: C(a, i) = 0
        number_t product = 0;
        if (scaled != 0) {
            a = guess(scaled, i, i - 1, end - 1);
            for (;;) {
                const number_t shared = falling(a, i - 1);
                product = shared * (a - (i - 1));
                if (product > scaled) a--;
                else if (shared * (a + 1) <= scaled) a++;
                else break;
            }
        }
        ret_numbers[i - 1] = (uint16_t)a;
        scaled = divide(scaled - product, &self->by[i]);
        end = a;
    }
}
