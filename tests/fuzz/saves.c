// A whole save of pieces on a disk, changed anywhere: it is refused by name, or each byte that is read of it is the
// one that was written. With the first byte 'S' the change is a forgery: the cut gets a seal that fits, pieces are made that
// fit it, and the manifest names them. Then what is read lies within what the texts say.
//
//     's' or 'S', the worker that loads, how many there are, then edits of the files of a template:
//     'w' file, place (2 bytes), count (1..16), bytes         written over what is there
//     'i' file, place, count, bytes                           put in between
//     'd' file, place, count                                  taken out
//     't' file, length (2 bytes)                              the file ends there
//     'c' file, from                                          another file in its place
//     'x' file                                                it is not there
//
// Files are counted as they are listed here: manifest, cut, then the pieces.

#include "common/base/dirfile.h"
#include "common/base/ensure.h"
#include "common/checkpoint/piece_file.h"
#include "common/checkpoint/pieces_names.h"
#include "common/checkpoint/pieces_text.h"
#include "common/checkpoint/world.h"
#include "common/learner/state_pieces.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/scratch.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS = 2, PARTS = 4, STEP = 5, FLOATS = 17000, LEAF_FLOATS = PIECE_LEAF_BYTES / 4 };
enum {
    MANIFEST,
    CUT,
    FILES_MAX = 2 + PARTS * WORKERS,
    FILE_MAX = 80 << 10,
    PATH = PIECES_NAME + 32
};
enum { MADE_MAX = 256 << 10 }; // Bytes of the pieces that are made for a cut

#define ROOT   "saves"
#define FOLDER ROOT "/step-00000005"

struct file {
    char name[PATH];
    bool gone;
    size_t count;
    uint8_t bytes[FILE_MAX];
};

static struct file template[FILES_MAX], files[FILES_MAX];
static size_t file_count;
static float values[FLOATS];
static const uint8_t seen[WORKERS][20] = { "of worker 0, twice.", "of worker 1, twice." };
static const uint8_t timers[WORKERS][6] = { "12", "34567" };

static struct pieces_save save_of(uint32_t worker, uint32_t workers)
{
    static char root[512];
    snprintf(root, sizeof root, "%s", scratch_path(ROOT));
    return (struct pieces_save){ .root = root,
                                 .run = "demo",
                                 .step = STEP,
                                 .attempt = 1,
                                 .worker = worker,
                                 .workers = workers };
}

// ---- the template -------------------------------------------------------------------------------

// Worker 0 has one leaf of the parameters, worker 1 the rest.
static void list_parts(struct pieces_part parts[PARTS], uint32_t worker)
{
    const uint64_t begin = worker ? LEAF_FLOATS : 0, end = worker ? FLOATS : LEAF_FLOATS;
    parts[0] =
        (struct pieces_part){ STATE_PARAMETERS, TAG_RESHARD, 4, end - begin, values + begin };
    parts[1] = (struct pieces_part){ "schedule", TAG_REPLICATE, 1, 5, "abcde" };
    parts[2] = (struct pieces_part){ "seen", TAG_CUSTOM, 10, 2, seen[worker] };
    parts[3] = (struct pieces_part){ "timer", TAG_DROP, 3, 1 + worker, timers[worker] };
}

static void take_file(const char *folder, const char *name)
{
    struct file *file = &template[file_count++];
    snprintf(file->name, sizeof file->name, "%s/%s", folder, name);
    const int fd = openat(scratch_fd(), file->name, O_RDONLY | O_CLOEXEC);
    const ssize_t count = fd < 0 ? -1 : read(fd, file->bytes, FILE_MAX);
    ensure(count > 0 && count < FILE_MAX);
    file->count = (size_t)count;
    close(fd);
}

static void take_files(const pieces_t *pieces)
{
    const struct pieces_meta *meta = pieces_meta(pieces);
    char name[PIECES_NAME];
    for (size_t i = 0; i < meta->count; i++)
        for (uint32_t w = 0; w < meta->workers; w++)
            if (pieces_bytes_of(&meta->items[i], w) > 0)
                take_file(FOLDER, pieces_piece_name(&meta->items[i], w, name));
}

static struct hash cut_of(const struct file *manifest_file)
{
    struct pieces_manifest manifest;
    ensure(pieces_manifest_unpack("it", (const char *)manifest_file->bytes, manifest_file->count,
                                  NULL, &manifest) == 0);
    const struct hash cut = manifest.cut;
    pieces_manifest_clear(&manifest);
    return cut;
}

static void make_template(void)
{
    struct layout_tensor tensors[2];
    struct layout layout;
    struct pieces_part parts[PARTS];
    uint32_t missing;
    pieces_t *pieces = NULL;
    char name[PIECES_NAME];
    for (int i = 0; i < FLOATS; i++) values[i] = (float)i;
    layout_init(&layout, tensors, 2);
    ensure(layout_add_matrix(&layout, "w", 100, 169, LAYOUT_F32, NULL) == 0);
    ensure(layout_add_vector(&layout, "norm", 100, LAYOUT_F32, NULL) == 0);
    scratch_make_folder(ROOT);
    for (uint32_t w = 0; w < WORKERS; w++) {
        struct pieces_save save = save_of(w, WORKERS);
        save.layout = &layout;
        list_parts(parts, w);
        ensure(pieces_write(&save, parts, PARTS, NULL) == 0);
        ensure(pieces_seal(&save, NULL, &missing) == 0);
    }
    ensure(pieces_open(scratch_path(ROOT), STEP, "demo", NULL, &pieces) == 0);
    take_file(FOLDER, CHECKPOINT_MANIFEST);
    const struct hash cut = cut_of(&template[MANIFEST]);
    take_file(ROOT, pieces_cut_name(&cut, name));
    take_files(pieces);
    pieces_close(&pieces);
    ensure(file_count == FILES_MAX - 1); // One copy of the schedule
}

// ---- edits --------------------------------------------------------------------------------------

struct edits {
    const uint8_t *at, *end;
};

static unsigned next(struct edits *self) { return self->at < self->end ? *self->at++ : 0; }
static unsigned next_two(struct edits *self)
{
    const unsigned low = next(self);
    return low | next(self) << 8;
}

static void edit_file(struct file *file, char what, struct edits *edits)
{
    size_t place = next_two(edits) % (file->count + 1), count = 1 + next(edits) % 16;
    const size_t left = (size_t)(edits->end - edits->at);
    if (what != 'd' && count > left) count = left;
    if (what != 'i' && count > file->count - place) count = file->count - place;
    if (what == 'i' && file->count + count > FILE_MAX) return;
    uint8_t *const at = file->bytes + place;
    if (what == 'i') memmove(at + count, at, file->count - place), file->count += count;
    if (what == 'd') {
        memmove(at, at + count, file->count - place - count);
        file->count -= count;
        return;
    }
    memcpy(at, edits->at, count);
    edits->at += count;
}

static void edit(struct edits *edits)
{
    while (edits->at < edits->end) {
        const char what = (char)next(edits);
        struct file *file = &files[next(edits) % file_count];
        switch (what) {
        case 'w':
        case 'i':
        case 'd': edit_file(file, what, edits); break;
        case 't': file->count = next_two(edits) % (file->count + 1); break;
        case 'x': file->gone = true; break;
        case 'c': {
            const struct file *from = &template[next(edits) % file_count];
            memcpy(file->bytes, from->bytes, file->count = from->count);
        }
        }
    }
}

// ---- a forgery ----------------------------------------------------------------------------------

static void set_text(struct file *file, char *text)
{
    file->count = strlen(text) < FILE_MAX ? strlen(text) : FILE_MAX;
    memcpy(file->bytes, text, file->count);
    free(text);
}

static void seal(struct file *file)
{
    char *sealed = files_seal_json((const char *)file->bytes, file->count);
    if (sealed) set_text(file, sealed);
}

// Writes the pieces that a cut says, with bytes of some kind. Returns the roots.
static json_t *make_pieces(const struct pieces_meta *meta)
{
    char name[PIECES_NAME], hex[HASH_HEX];
    json_t *roots = json_array();
    size_t made = 0;
    const int dir = openat(scratch_fd(), FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ensure(dir >= 0);
    for (size_t i = 0; i < meta->count; i++)
        for (uint32_t w = 0; w < meta->workers; w++) {
            const uint64_t bytes = pieces_bytes_of(&meta->items[i], w);
            struct hash root = { { 0 } };
            if (bytes > 0 && bytes <= sizeof values && (made += bytes) <= MADE_MAX) {
                pieces_piece_name(&meta->items[i], w, name);
                ensure(dirfile_remove(dir, name, NULL) == 0);
                ensure(piece_file_write(dir, name, values, bytes, NULL, &root) == 0);
            }
            json_array_append_new(roots, json_string(hash_to_hex(&root, hex)));
        }
    close(dir);
    return roots;
}

// The manifest goes with a cut that is read. Without one, or as no JSON, it stays as it is.
static void forge(void)
{
    struct file *cut = &files[CUT], *manifest = &files[MANIFEST];
    struct pieces_meta meta;
    char hex[HASH_HEX], name[PIECES_NAME];
    json_t *root = json_loadb((const char *)manifest->bytes, manifest->count, 0, NULL);
    seal(cut);
    if (json_is_object(root)) {
        const struct hash hash = hash_of(cut->bytes, cut->count);
        snprintf(cut->name, sizeof cut->name, ROOT "/%s", pieces_cut_name(&hash, name));
        json_object_set_new(root, "cut", json_string(hash_to_hex(&hash, hex)));
        if (pieces_cut_unpack("it", (const char *)cut->bytes, cut->count, NULL, &meta) == 0) {
            json_object_set_new(root, "roots", make_pieces(&meta));
            pieces_meta_clear(&meta);
        }
        set_text(manifest, json_dumps(root, 0));
    }
    json_decref(root);
    seal(manifest);
}

static void put(const struct file *file)
{
    if (!file->gone) scratch_put(file->name, file->bytes, file->count);
}

// ---- what is read -------------------------------------------------------------------------------

static bool refused(const struct why *why)
{
    if (fuzz_is_verbose()) printf("%s: ", why->text);
    ensure(why->text[0]);
    return false;
}

// What the template has of an item, all workers together.
static size_t all_of(const char *name, uint8_t *bytes)
{
    size_t count = 0;
    for (uint32_t w = 0; w < WORKERS; w++) {
        struct pieces_part parts[PARTS];
        list_parts(parts, w);
        for (int i = 0; i < PARTS; i++) {
            const size_t has = parts[i].elements * parts[i].element_bytes;
            if (strcmp(parts[i].name, name) != 0 || (parts[i].tag == TAG_REPLICATE && w > 0))
                continue;
            memcpy(bytes + count, parts[i].bytes, has);
            count += has;
        }
    }
    return count;
}

static bool read_item(const pieces_t *pieces, const struct pieces_item *item, bool honest,
                      uint32_t worker, uint32_t workers)
{
    static uint8_t expected[sizeof values];
    struct why why = { 0 };
    const uint64_t all = item->begins[pieces_meta(pieces)->workers];
    const struct interval at = interval_share(all, worker, workers);
    const uint64_t count = interval_length(at) * item->element_bytes;
    struct hash root;
    ensure(count <= 4 * MADE_MAX); // No larger pieces are on the disk
    uint8_t *bytes = malloc(count + 1);
    ensure(bytes);
    if (pieces_root(pieces, item, &why, &root) < 0) refused(&why);
    const bool reads = pieces_read(pieces, item, at, bytes, &why) == 0 || refused(&why);
    if (reads && honest) {
        ensure(all_of(item->name, expected) == all * item->element_bytes);
        ensure(memcmp(bytes, expected + at.begin * item->element_bytes, count) == 0);
    }
    free(bytes);
    return reads;
}

static int take_first(void *arg, const struct world_value *all, uint32_t count, uint32_t worker,
                      uint32_t workers, struct why *why, struct world_value *ret_value)
{
    (void)arg, (void)why;
    ensure(count > 0 && worker < workers);
    *ret_value = (struct world_value){ all[0].elements, calloc(1, 1) };
    return 0;
}

// As the next world, with the items that the save says.
static bool load_world(const pieces_t *pieces, uint32_t worker, uint32_t workers)
{
    const struct pieces_meta *meta = pieces_meta(pieces);
    const struct pieces_save now = save_of(worker, workers);
    struct world_item items[PIECES_ITEMS_MAX];
    struct why why = { 0 };
    for (size_t i = 0; i < meta->count; i++) {
        items[i] = world_item(meta->items[i].name, meta->items[i].tag, meta->items[i].element_bytes,
                              0, NULL);
        items[i].merge = take_first;
    }
    if (world_load(&now, items, meta->count, &why) < 0) return refused(&why);
    for (size_t i = 0; i < meta->count; i++) free(items[i].bytes);
    return true;
}

static bool check_save(bool honest, uint32_t worker, uint32_t workers)
{
    struct why why = { 0 };
    struct hash digest;
    pieces_t *pieces = NULL;
    if (pieces_open(scratch_path(ROOT), STEP, "demo", &why, &pieces) < 0) return refused(&why);
    const struct pieces_meta *meta = pieces_meta(pieces);
    bool whole = pieces_verify(pieces, &why) == 0 || refused(&why);
    if (state_pieces_digest(pieces, NULL, &why, &digest) < 0) refused(&why);
    for (size_t i = 0; i < meta->count; i++)
        ensure(read_item(pieces, &meta->items[i], honest, worker, workers) || !whole);
    ensure(load_world(pieces, worker, workers) || !whole);
    pieces_close(&pieces);
    return whole;
}

bool saves_fuzz_check(const uint8_t *bytes, size_t count)
{
    struct edits edits = { bytes, bytes + count };
    if (file_count == 0) make_template();
    const bool honest = next(&edits) != 'S';
    const uint32_t workers = 1 + next(&edits) % 8, worker = next(&edits) % workers;
    memcpy(files, template, sizeof files);
    scratch_remove(FOLDER), scratch_remove(ROOT);
    scratch_make_folder(ROOT), scratch_make_folder(FOLDER);
    edit(&edits);
    for (size_t i = CUT + 1; i < file_count; i++) put(&files[i]);
    if (!honest) forge();
    put(&files[CUT]);
    put(&files[MANIFEST]);
    return check_save(honest, worker, workers);
}

// A word of a file of the template is replaced by another one of its length, and the texts get seals that fit.
static void write_word(const char *folder, const char *name, uint8_t file, const char *word,
                       const char *by)
{
    uint8_t seed[64] = { 'S', 1, 1, 'w', file };
    const struct file *text = &template[file];
    const uint8_t *at = memmem(text->bytes, text->count, word, strlen(word));
    ensure(at && strlen(by) == strlen(word));
    const size_t place = (size_t)(at - text->bytes);
    seed[5] = (uint8_t)place, seed[6] = (uint8_t)(place >> 8), seed[7] = (uint8_t)(strlen(by) - 1);
    memcpy(seed + 8, by, strlen(by));
    fuzz_write_seed(folder, name, seed, 8 + strlen(by));
}

void saves_fuzz_write_seeds(const char *folder)
{
    if (file_count == 0) make_template();
    fuzz_write_seed(folder, "accepted-alone", "s\0\0", 3);
    fuzz_write_seed(folder, "accepted-by-three", "s\2\1", 3);
    fuzz_write_seed(folder, "accepted-sealed", "S\1\1", 3);
    fuzz_write_seed(folder, "refused-flip", "s\0\0w\2\7\0\0\xff", 9);
    fuzz_write_seed(folder, "refused-short", "s\0\0t\3\5\1", 7);
    fuzz_write_seed(folder, "refused-missing", "s\0\0x\1", 5);
    fuzz_write_seed(folder, "refused-other", "s\0\0c\2\3", 6);
    write_word(folder, "accepted-shorter", CUT, "17000\n", "16999\n");
    write_word(folder, "accepted-wider", CUT, "\"element_bytes\": 10", "\"element_bytes\": 99");
    write_word(folder, "accepted-older", MANIFEST, "\"attempt\": 1", "\"attempt\": 0");
    write_word(folder, "refused-falls", CUT, "16384", "99999");
    write_word(folder, "refused-tag", CUT, "\"custom\"", "\"cusTom\"");
    write_word(folder, "refused-twice", CUT, "\"timer\"", "\"seen\" ");
    write_word(folder, "refused-shape", CUT, "169", "168");
    write_word(folder, "refused-workers", CUT, "\"workers\": 2", "\"workers\": 3");
    write_word(folder, "refused-step", MANIFEST, "\"step\": 5", "\"step\": 6");
    write_word(folder, "refused-run", MANIFEST, "\"demo\"", "\"dema\"");
}
