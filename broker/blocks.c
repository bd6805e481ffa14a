// blocks -- the prefix of an address, then the bucket of its block. There are few blocks, and few strangers a
// second: each is searched for from the front.

#include "broker/blocks.h"
#include <netinet/in.h>
#include <string.h>

static const struct budget budget = { BLOCK_STRANGERS_S, BLOCK_BURST, UINT32_MAX, UINT32_MAX };

static void put_prefix(uint8_t kind, const uint8_t *address, uint8_t prefix[BLOCK_PREFIX])
{
    memset(prefix, 0, BLOCK_PREFIX);
    prefix[0] = kind;
    memcpy(prefix + 1, address, kind == 4 ? 3 : 6);
}

// False: the address is of this machine, or of no kind that has blocks.
static bool read_prefix(const struct sockaddr *from, uint8_t prefix[BLOCK_PREFIX])
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    if (from->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof in);
        put_prefix(4, (const uint8_t *)&in.sin_addr, prefix);
    } else if (from->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, from, sizeof in);
        const uint8_t *address = in.sin6_addr.s6_addr;
        if (IN6_IS_ADDR_LOOPBACK(&in.sin6_addr)) return false;
        if (memcmp(address, mapped, sizeof mapped) == 0) put_prefix(4, address + 12, prefix);
        else put_prefix(6, address, prefix);
    } else return false;
    return prefix[0] != 4 || prefix[1] != 127;
}

// Its place, or that of the one heard longest ago, made free for it.
static struct block *place_of(struct blocks *self, const uint8_t prefix[BLOCK_PREFIX],
                              uint64_t now_ms)
{
    struct block *oldest = self->of;
    for (uint32_t i = 0; i < BLOCKS_MAX; i++) {
        struct block *block = &self->of[i];
        if (memcmp(block->prefix, prefix, BLOCK_PREFIX) == 0) return block;
        if (block->heard_ms < oldest->heard_ms) oldest = block;
    }
    *oldest = (struct block){ 0 };
    memcpy(oldest->prefix, prefix, BLOCK_PREFIX);
    bucket_fill(&oldest->bucket, &budget, now_ms);
    return oldest;
}

bool blocks_is_here(const struct sockaddr *from)
{
    uint8_t prefix[BLOCK_PREFIX];
    return !read_prefix(from, prefix);
}

bool blocks_admit(struct blocks *self, const struct sockaddr *from, uint64_t now_ms)
{
    uint8_t prefix[BLOCK_PREFIX];
    if (!read_prefix(from, prefix)) return true;
    struct block *block = place_of(self, prefix, now_ms);
    block->heard_ms = now_ms;
    return bucket_take(&block->bucket, &budget, 1, 0, now_ms) == BUDGET_WITHIN;
}
