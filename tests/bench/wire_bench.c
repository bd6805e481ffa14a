// wire_bench -- how long a roster of 1000 members takes to pack and to unpack, beside msgpack-c
// doing the same work in the same run: the same bytes out, the same structs back. Medians of 201.

#include "common/base/ensure.h"
#include "common/wire/wire.h"

#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MEMBERS = 1000, REPETITIONS = 201, BYTES_MAX = 1 << 20 };

static struct wire_member members[MEMBERS], copied[MEMBERS];
static struct wire_roster roster = { .version = 7, .members = members, .members_count = MEMBERS };
static uint8_t packed[BYTES_MAX], arena_bytes[BYTES_MAX];
static size_t packed_count;
static msgpack_sbuffer buffer;

static void make_roster(void)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        members[i] = (struct wire_member){ .index = i,
                                           .role = ACTOR_TRAINER,
                                           .state = MEMBER_HEALTHY,
                                           .instance = 1700000000000 + i,
                                           .joined_number = 1 + i / 8 };
        const struct hash hash = hash_of(&i, sizeof i);
        memcpy(members[i].key.bytes, hash.bytes, KEY_BYTES);
        snprintf(members[i].name, sizeof members[i].name, "trainer.%016x", i);
        snprintf(members[i].endpoint, sizeof members[i].endpoint, "tcp://10.0.%u.%u:6000", i / 250,
                 i % 250);
    }
}

static void wire_packs(void)
{
    packed_count = wire_pack_body(FRAME_ROSTER, &roster, packed, sizeof packed);
    ensure(packed_count > 0);
}

static void wire_unpacks(void)
{
    struct wire_arena arena = { arena_bytes, 0, sizeof arena_bytes };
    struct wire_refusal refusal;
    const void *body;
    ensure(wire_unpack_body(packed, packed_count, FRAME_ROSTER, &arena, &body, &refusal));
}

static void pack_text(msgpack_packer *packer, const char *text)
{
    msgpack_pack_str(packer, strlen(text));
    msgpack_pack_str_body(packer, text, strlen(text));
}

static void msgpack_packs(void)
{
    msgpack_packer packer;
    msgpack_sbuffer_clear(&buffer);
    msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
    msgpack_pack_array(&packer, 2);
    msgpack_pack_uint64(&packer, roster.version);
    msgpack_pack_array(&packer, MEMBERS);
    for (const struct wire_member *member = members; member < members + MEMBERS; member++) {
        msgpack_pack_array(&packer, 9);
        msgpack_pack_uint32(&packer, member->index);
        msgpack_pack_bin(&packer, HASH_BYTES);
        msgpack_pack_bin_body(&packer, member->key.bytes, HASH_BYTES);
        msgpack_pack_uint8(&packer, member->role);
        msgpack_pack_uint8(&packer, member->state);
        pack_text(&packer, member->name);
        pack_text(&packer, member->endpoint);
        msgpack_pack_uint64(&packer, member->instance);
        msgpack_pack_uint64(&packer, member->joined_number);
        msgpack_pack_uint64(&packer, member->dropped_number);
    }
}

static void copy_text(char *out, size_t max, const msgpack_object *object)
{
    ensure(object->type == MSGPACK_OBJECT_STR && object->via.str.size < max);
    memcpy(out, object->via.str.ptr, object->via.str.size);
    out[object->via.str.size] = 0;
}

static void msgpack_unpacks(void)
{
    msgpack_unpacked result;
    size_t offset = 0;
    msgpack_unpacked_init(&result);
    ensure(msgpack_unpack_next(&result, buffer.data, buffer.size, &offset) ==
           MSGPACK_UNPACK_SUCCESS);
    const msgpack_object_array *list = &result.data.via.array.ptr[1].via.array;
    for (uint32_t i = 0; i < list->size; i++) {
        const msgpack_object *field = list->ptr[i].via.array.ptr;
        copied[i].index = (uint32_t)field[0].via.u64;
        ensure(field[1].type == MSGPACK_OBJECT_BIN && field[1].via.bin.size == HASH_BYTES);
        memcpy(copied[i].key.bytes, field[1].via.bin.ptr, KEY_BYTES);
        copied[i].role = (uint8_t)field[2].via.u64;
        copied[i].state = (uint8_t)field[3].via.u64;
        copy_text(copied[i].name, sizeof copied[i].name, &field[4]);
        copy_text(copied[i].endpoint, sizeof copied[i].endpoint, &field[5]);
        copied[i].instance = field[6].via.u64;
        copied[i].joined_number = field[7].via.u64;
        copied[i].dropped_number = field[8].via.u64;
    }
    msgpack_unpacked_destroy(&result);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_us(void (*work)(void))
{
    double took_us[REPETITIONS];
    for (int i = 0; i < REPETITIONS; i++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        work();
        clock_gettime(CLOCK_MONOTONIC, &end);
        took_us[i] =
            (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) / 1e3;
    }
    qsort(took_us, REPETITIONS, sizeof *took_us, by_value);
    return took_us[REPETITIONS / 2];
}

static void report(const char *what, double ours_us, double theirs_us)
{
    printf("%s: wire %.0f us (%.0f MB/s), msgpack-c %.0f us\n", what, ours_us,
           (double)packed_count / ours_us, theirs_us);
}

int main(void)
{
    make_roster();
    msgpack_sbuffer_init(&buffer);
    const double pack_us = median_us(wire_packs), msgpack_pack_us = median_us(msgpack_packs);
    ensure(buffer.size == packed_count && memcmp(buffer.data, packed, packed_count) == 0);
    const double unpack_us = median_us(wire_unpacks),
                 msgpack_unpack_us = median_us(msgpack_unpacks);
    const struct wire_roster copy = { .version = 7, .members = copied, .members_count = MEMBERS };
    ensure(wire_equal(FRAME_ROSTER, &roster, &copy));
    printf("roster of %d members, %zu bytes\n", MEMBERS, packed_count);
    report("pack", pack_us, msgpack_pack_us);
    report("unpack", unpack_us, msgpack_unpack_us);
    msgpack_sbuffer_destroy(&buffer);
    return 0;
}
