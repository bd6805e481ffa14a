// A name is recognised by making it again of the numbers in it: what differs is none of ours.
#include "common/checkpoint/pieces_names.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *pieces_folder_name(uint64_t step, char name[PIECES_NAME])
{
    snprintf(name, PIECES_NAME, "step-%08" PRIu64, step);
    return name;
}

const char *pieces_attempt_name(uint64_t step, uint32_t attempt, char name[PIECES_NAME])
{
    snprintf(name, PIECES_NAME, "step-%08" PRIu64 ".save-%" PRIu32, step, attempt);
    return name;
}

const char *pieces_cut_name(const struct hash *cut, char name[PIECES_NAME])
{
    char hex[HASH_HEX];
    snprintf(name, PIECES_NAME, "meta-%.16s.json", hash_to_hex(cut, hex));
    return name;
}

const char *pieces_note_name(uint32_t worker, char name[PIECES_NAME])
{
    snprintf(name, PIECES_NAME, "NOTE.worker-%" PRIu32, worker);
    return name;
}

const char *pieces_written_name(const char *item, enum tag tag, uint32_t worker,
                                char name[PIECES_NAME])
{
    if (tag == TAG_REPLICATE) snprintf(name, PIECES_NAME, "%.*s", TAGS_NAME_MAX, item);
    else snprintf(name, PIECES_NAME, "%.*s.worker-%" PRIu32, TAGS_NAME_MAX, item, worker);
    return name;
}

const char *pieces_piece_name(const struct pieces_item *item, uint32_t worker,
                              char name[PIECES_NAME])
{
    if (item->tag != TAG_RESHARD) return pieces_written_name(item->name, item->tag, worker, name);
    snprintf(name, PIECES_NAME, "%s.%" PRIu64 "-%" PRIu64, item->name, item->begins[worker],
             item->begins[worker + 1]);
    return name;
}

bool pieces_is_attempt(const char *name, uint64_t *ret_step, uint32_t *ret_attempt)
{
    char again[PIECES_NAME];
    uint64_t step;
    uint32_t attempt;
    if (sscanf(name, "step-%8" SCNu64 ".save-%9" SCNu32, &step, &attempt) != 2) return false;
    if (strcmp(name, pieces_attempt_name(step, attempt, again)) != 0) return false;
    *ret_step = step;
    *ret_attempt = attempt;
    return true;
}

bool pieces_is_cut(const char *name)
{
    return strncmp(name, "meta-", 5) == 0 && strspn(name + 5, "0123456789abcdef") == 16 &&
           strcmp(name + 21, ".json") == 0;
}

uint64_t pieces_bytes_of(const struct pieces_item *item, uint32_t worker)
{
    return (item->begins[worker + 1] - item->begins[worker]) * item->element_bytes;
}
