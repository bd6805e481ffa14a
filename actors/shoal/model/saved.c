// saved -- what lies in a save of pieces (common/checkpoint/pieces.h): `shoal checkpoint show` and
// `shoal checkpoint verify`. Show reads manifest, cut and hashes; verify reads every byte.

#include "actors/shoal/model/saved.h"
#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include "common/checkpoint/pieces.h"
#include "common/learner/state_pieces.h"
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct saved {
    const char *folder;
    bool json, verify;
    char digest[HASH_HEX]; // Of the state that members hold alike; "": the save has none
};

// The digest that `shoal status` shows. There is none if the items are another program's, if a piece begins within a
// leaf, or if an item is larger than the parameters.
static int take_digest(struct saved *self, const pieces_t *pieces, struct why *why)
{
    struct hash digest;
    const int rc = state_pieces_digest(pieces, NULL, why, &digest);
    if (rc == 0) hash_to_hex(&digest, self->digest);
    if (rc != FAULT_NOT_FOUND && rc != FAULT_UNSUPPORTED && rc != FAULT_FOREIGN) return rc;
    *why = (struct why){ 0 };
    return 0;
}

// ---- as JSON ------------------------------------------------------------------------------------

static json_t *items_of(const struct pieces_meta *meta)
{
    json_t *items = json_array();
    for (size_t i = 0; i < meta->count; i++) {
        const struct pieces_item *item = &meta->items[i];
        json_t *pieces = json_array();
        for (uint32_t w = 0; w < meta->workers; w++)
            if (item->begins[w] < item->begins[w + 1])
                json_array_append_new(pieces, json_pack("{s:I, s:I, s:I}", "worker", (json_int_t)w,
                                                        "begin", (json_int_t)item->begins[w], "end",
                                                        (json_int_t)item->begins[w + 1]));
        json_array_append_new(items,
                              json_pack("{s:s, s:s, s:I, s:I, s:o}", "name", item->name, "tag",
                                        tags_tag_name(item->tag), "element_bytes",
                                        (json_int_t)item->element_bytes, "elements",
                                        (json_int_t)item->begins[meta->workers], "pieces", pieces));
    }
    return items;
}

static json_t *tensors_of(const struct layout *layout)
{
    json_t *tensors = json_array();
    for (size_t i = 0; i < layout->count; i++) {
        const struct layout_tensor *tensor = &layout->tensors[i];
        const struct interval at = layout_interval(tensor);
        json_t *shape = tensor->dims == 1 ? json_pack("[I]", (json_int_t)tensor->cols)
                                          : json_pack("[I, I]", (json_int_t)tensor->rows,
                                                      (json_int_t)tensor->cols);
        json_array_append_new(tensors, json_pack("{s:s, s:o, s:I, s:I}", "name", tensor->name,
                                                 "shape", shape, "begin", (json_int_t)at.begin,
                                                 "end", (json_int_t)at.end));
    }
    return tensors;
}

static int print_json(const struct saved *self, const pieces_t *pieces, struct why *why)
{
    const struct pieces_about *about = pieces_about(pieces);
    const struct pieces_meta *meta = pieces_meta(pieces);
    return shoal_print_json(
        json_pack("{s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:b, s:s*, s:o, s:o}", "schema",
                  "shoal.pieces.1", "folder", shoal_text(self->folder), "run", about->run,
                  "born_unix_ms", (json_int_t)about->born_unix_ms, "step", (json_int_t)about->step,
                  "written_unix_s", (json_int_t)about->written_unix_s, "workers",
                  (json_int_t)meta->workers, "verified", (int)self->verify, "digest",
                  self->digest[0] ? self->digest : NULL, "items", items_of(meta), "tensors",
                  tensors_of(&meta->layout)),
        why);
}

// ---- as text ------------------------------------------------------------------------------------

static void print_item(const struct pieces_meta *meta, const struct pieces_item *item)
{
    printf("%-20s %-9s %12" PRIu64 " x %" PRIu32 " B ", item->name, tags_tag_name(item->tag),
           item->begins[meta->workers], item->element_bytes);
    for (uint32_t w = 0; w < meta->workers; w++)
        if (item->begins[w] < item->begins[w + 1])
            printf(" %" PRIu64 "-%" PRIu64, item->begins[w], item->begins[w + 1]);
    puts("");
}

static void print_tensor(const struct layout_tensor *tensor)
{
    const struct interval at = layout_interval(tensor);
    char shape[48];
    if (tensor->dims == 1) snprintf(shape, sizeof shape, "[%" PRIu64 "]", tensor->cols);
    else snprintf(shape, sizeof shape, "[%" PRIu64 ", %" PRIu64 "]", tensor->rows, tensor->cols);
    printf("  %-46s %-18s %" PRIu64 "-%" PRIu64 "\n", tensor->name, shape, at.begin, at.end);
}

static void print_text(const struct saved *self, const pieces_t *pieces)
{
    const struct pieces_about *about = pieces_about(pieces);
    const struct pieces_meta *meta = pieces_meta(pieces);
    printf("%s: run %s, step %" PRIu64 ", saved by %" PRIu32 " worker%s%s\n\n", self->folder,
           about->run, about->step, meta->workers, meta->workers == 1 ? "" : "s",
           self->verify ? "; every byte is the one that was written" : "");
    if (self->digest[0]) printf("state digest %s\n\n", self->digest);
    printf("%-20s %-9s %18s  pieces\n", "item", "tag", "elements");
    for (size_t i = 0; i < meta->count; i++) print_item(meta, &meta->items[i]);
    if (meta->layout.count) printf("\n  %-46s %-18s elements\n", "tensor", "shape");
    for (size_t i = 0; i < meta->layout.count; i++) print_tensor(&meta->layout.tensors[i]);
}

// ---- the command --------------------------------------------------------------------------------

static int split(const char *folder, char root[PATH_MAX], uint64_t *ret_step, struct why *why)
{
    const int rc = checkpoint_split(folder, why, root, ret_step);
    if (rc == 0) return 0;
    return why_set(why, rc, "%s is no save: give a folder step-NNNNNNNN, beside its meta-*.json",
                   folder);
}

int saved_open(const char *folder, struct why *why, pieces_t **ret_pieces)
{
    char root[PATH_MAX];
    uint64_t step = 0;
    int rc = split(folder, root, &step, why);
    if (rc < 0) return rc;
    rc = pieces_open(root, step, NULL, why, ret_pieces);
    if (rc != FAULT_FORMAT || pieces_is_save(folder)) return rc;
    const struct why inner = *why;
    return why_set(why, rc, "%.1000s; if it is a checkpoint, see shoal eval, shoal export",
                   inner.text);
}

// What to do about it.
static int advise(const char *folder, int rc, struct why *why)
{
    char root[PATH_MAX];
    uint64_t step;
    const bool is_damaged = rc == FAULT_CORRUPT || rc == FAULT_DIGEST || rc == FAULT_FORMAT ||
                            rc == FAULT_RANGE || rc == FAULT_LIMIT;
    if (!is_damaged || !pieces_is_save(folder)) return rc;
    if (split(folder, root, &step, NULL) < 0) return rc;
    const struct why inner = *why;
    return why_set(why, rc, "%.1000s; use an older save of %s", inner.text, root);
}

static int run(struct saved *self, struct why *why)
{
    pieces_t *pieces = NULL;
    int rc = saved_open(self->folder, why, &pieces);
    if (rc == 0 && self->verify) rc = pieces_verify(pieces, why);
    if (rc == 0) rc = take_digest(self, pieces, why);
    if (rc < 0) rc = advise(self->folder, rc, why);
    if (rc == 0 && self->json) rc = print_json(self, pieces, why);
    else if (rc == 0) print_text(self, pieces);
    pieces_close(&pieces);
    return rc;
}

static const struct flag flags[] = {
    FLAG("json", 0, NULL, TO_SWITCH(struct saved, json), "Print one JSON object"),
    { 0 },
};

static int saved(int argc, char **argv, bool verify, const char *about)
{
    const struct command_line line = { .flags = flags,
                                       .usage = "DIR",
                                       .about = about,
                                       .arguments = TO_TEXT(struct saved, folder),
                                       .none = "DIR is missing: the folder of a save" };
    struct saved self = { .verify = verify };
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc == 0) rc = run(&self, &why);
    return fault_exit(rc, &why);
}

int saved_show(int argc, char **argv)
{
    return saved(argc, argv, false,
                 "What lies in a save of pieces: its items, how they are cut, its tensors, and the "
                 "digest of the state. Of the pieces only the hashes are read.\n\n"
                 "  shoal checkpoint show /mnt/run/a-1700000000000/step-00000120\n"
                 "  shoal checkpoint show --json step-00000120\n");
}

int saved_verify(int argc, char **argv)
{
    return saved(argc, argv, true,
                 "Reads every byte of a save of pieces and compares it with the hashes of its "
                 "manifest. The first one that differs is named.\n\n"
                 "  shoal checkpoint verify /mnt/run/a-1700000000000/step-00000120\n"
                 "  shoal checkpoint verify --json step-00000120\n");
}
