// The half of the one that seals, and of the one that cleans. Sealing goes in this order: all notes
// are read; they must fit together; the sizes in them give the cut; each piece is named by its
// interval; the cut is written, if no file has it; then the manifest; the folder gets its final
// name; the notes go.
//
// Two workers may seal at the same time. Both come to the same names and the same bytes, so that
// each step which the other one has done already is done: a piece or a folder that is not there
// under its old name is there under its new one, or else it is a fault.
#include "common/base/dirfile.h"
#include "common/base/failpoint.h"
#include "common/checkpoint/checkpoint_root.h"
#include "common/checkpoint/pieces.h"
#include "common/checkpoint/pieces_names.h"
#include "common/checkpoint/pieces_text.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sealing {
    const struct pieces_save *save;
    int root, dir;
    struct pieces_note *notes; // Of each worker
    struct pieces_meta meta;
    struct pieces_manifest manifest;
};

// ---- what is there ------------------------------------------------------------------------------

static int read_manifest(int dir, struct why *why, struct pieces_manifest *ret_manifest)
{
    char *text;
    size_t count;
    int rc = dirfile_slurp(dir, CHECKPOINT_MANIFEST, false, PIECES_TEXT_MAX, why, &text, &count);
    if (rc < 0) return rc;
    rc = pieces_manifest_unpack(CHECKPOINT_MANIFEST, text, count, why, ret_manifest);
    free(text);
    return rc;
}

// The attempt that made the save in this folder. UINT64_MAX: there is none of this run that can be read.
static uint64_t attempt_of(const struct sealing *self, const char *folder)
{
    struct pieces_manifest manifest;
    uint64_t attempt = UINT64_MAX;
    const int dir = openat(self->root, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0) return attempt;
    if (read_manifest(dir, NULL, &manifest) == 0) {
        if (strcmp(manifest.about.run, self->save->run) == 0 &&
            manifest.about.born_unix_ms == self->save->born_unix_ms)
            attempt = manifest.about.attempt;
        pieces_manifest_clear(&manifest);
    }
    close(dir);
    return attempt;
}

// Whether this attempt has its final name already.
static bool is_sealed(const struct sealing *self)
{
    char name[PIECES_NAME];
    return attempt_of(self, pieces_folder_name(self->save->step, name)) == self->save->attempt;
}

// Stops at the first worker without a note.
static int read_notes(struct sealing *self, struct why *why, uint32_t *ret_missing)
{
    const struct pieces_save *save = self->save;
    char name[PIECES_NAME], *text;
    size_t count;
    self->notes = calloc(save->workers, sizeof *self->notes);
    if (!self->notes) return why_set(why, FAULT_MEMORY, "%" PRIu32 " notes", save->workers);
    for (uint32_t w = 0; w < save->workers; w++) {
        *ret_missing = w;
        int rc = dirfile_slurp(self->dir, pieces_note_name(w, name), false, PIECES_TEXT_MAX, why,
                               &text, &count);
        if (rc == FAULT_NOT_FOUND) return 0;
        if (rc == 0) {
            rc = pieces_note_unpack(save, name, text, count, why, &self->notes[w]);
            free(text);
        }
        if (rc == 0 && self->notes[w].worker != w)
            rc = why_set(why, FAULT_FOREIGN, "%s is of worker %" PRIu32 "; refused", name,
                         self->notes[w].worker);
        if (rc < 0) return rc;
    }
    *ret_missing = save->workers;
    return 0;
}

// ---- the cut ------------------------------------------------------------------------------------

// Whether worker w has the item that worker 0 has in this place of its list.
static int check_alike(const struct sealing *self, size_t i, uint32_t w, struct why *why)
{
    const struct pieces_noted *first = &self->notes[0].items[i], *item = &self->notes[w].items[i];
    if (i >= self->notes[w].count || strcmp(first->name, item->name) != 0)
        return why_set(why, FAULT_FOREIGN,
                       "state item '%s' of worker 0 is not item %zu of worker %" PRIu32
                       "; all workers save the same items in the same order; not saved",
                       first->name, i, w);
    if (first->tag != item->tag || first->element_bytes != item->element_bytes)
        return why_set(why, FAULT_FOREIGN,
                       "state item '%s' is %s with %" PRIu32 " bytes an element at worker 0, and "
                       "%s with %" PRIu32 " at worker %" PRIu32 "; not saved",
                       first->name, tags_tag_name(first->tag), first->element_bytes,
                       tags_tag_name(item->tag), item->element_bytes, w);
    // One without a root says that the value of worker 0 is that of all
    // mutant: pieces: two values of a replicated item are one
    if (first->tag == TAG_REPLICATE &&
        (first->elements != item->elements ||
         (!hash_is_none(&item->root) && !hash_equal(&first->root, &item->root))))
        return why_set(why, FAULT_FOREIGN,
                       "state item '%s' is replicated, but workers 0 and %" PRIu32
                       " have different values; not saved",
                       first->name, w);
    return 0;
}

static int cut_item(struct sealing *self, size_t i, struct why *why)
{
    const uint32_t workers = self->save->workers;
    const struct pieces_noted *first = &self->notes[0].items[i];
    struct pieces_item *item = &self->meta.items[i];
    *item = (struct pieces_item){ .tag = first->tag, .element_bytes = first->element_bytes };
    snprintf(item->name, sizeof item->name, "%s", first->name);
    item->begins = calloc((size_t)workers + 1, sizeof *item->begins);
    if (!item->begins) return why_set(why, FAULT_MEMORY, "the cut of '%s'", item->name);
    self->meta.count = i + 1;
    for (uint32_t w = 0; w < workers; w++) {
        const int rc = check_alike(self, i, w, why);
        if (rc < 0) return rc;
        const bool is_here = item->tag != TAG_REPLICATE || w == 0;
        item->begins[w + 1] = item->begins[w] + (is_here ? self->notes[w].items[i].elements : 0);
    }
    return pieces_check_item("a save", item->name, item->tag, item->element_bytes,
                             item->begins[workers], why);
}

static int make_cut(struct sealing *self, struct why *why)
{
    const struct pieces_save *save = self->save;
    int rc = 0;
    for (uint32_t w = 1; w < save->workers; w++)
        if (self->notes[w].count != self->notes[0].count)
            return why_set(why, FAULT_FOREIGN,
                           "worker 0 has %zu state items and worker %" PRIu32 " has %zu; not saved",
                           self->notes[0].count, w, self->notes[w].count);
    self->meta.workers = save->workers;
    for (size_t i = 0; rc == 0 && i < self->notes[0].count; i++) rc = cut_item(self, i, why);
    if (rc < 0 || !save->layout) return rc;
    const size_t room = save->layout->count + 1;
    struct layout_tensor *tensors = calloc(room, sizeof *tensors);
    if (!tensors) return why_set(why, FAULT_MEMORY, "the tensors of a cut");
    layout_init(&self->meta.layout, tensors, room);
    layout_copy_as(&self->meta.layout, save->layout, LAYOUT_F32);
    return 0;
}

// Whether the file of a cut is there, and is not damaged.
static bool has_cut(const struct sealing *self, const char *name)
{
    char *text;
    size_t count;
    if (dirfile_slurp(self->root, name, false, PIECES_TEXT_MAX, NULL, &text, &count) < 0)
        return false;
    const struct hash is = hash_of(text, count);
    free(text);
    return hash_equal(&is, &self->manifest.cut);
}

// A reader takes no more than so many tensors and values: older saves shall not go for one that nobody can read.
static int check_cut(const char *name, const char *text, struct why *why)
{
    struct pieces_meta meta = { 0 };
    const int rc = pieces_cut_unpack(name, text, strlen(text), why, &meta);
    if (rc < 0) return why_wrap(why, rc, "this state could not be read back; nothing is saved");
    pieces_meta_clear(&meta);
    return 0;
}

// A cut that another save had has its file already: it is not written again. One that was damaged since is: else this
// save and all that follow could not be read.
static int put_cut(struct sealing *self, struct why *why)
{
    char name[PIECES_NAME], *text;
    int rc = pieces_cut_pack(&self->meta, why, &text);
    if (rc < 0) return rc;
    self->manifest.cut = hash_of(text, strlen(text));
    pieces_cut_name(&self->manifest.cut, name);
    if (!has_cut(self, name)) {
        rc = check_cut(name, text, why);
        if (rc == 0) rc = pieces_put_text(self->root, self->save->worker, name, text, why);
    }
    free(text);
    return rc;
}

// ---- the rest -----------------------------------------------------------------------------------

static int name_piece(const struct sealing *self, const struct pieces_item *item, uint32_t w,
                      struct why *why)
{
    char from[PIECES_NAME], to[PIECES_NAME];
    if (pieces_bytes_of(item, w) == 0 || item->tag != TAG_RESHARD) return 0;
    pieces_written_name(item->name, item->tag, w, from);
    pieces_piece_name(item, w, to);
    if (renameat(self->dir, from, self->dir, to) == 0) return 0;
    const int error = errno;
    if (error == ENOENT && faccessat(self->dir, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0) return 0;
    return why_set(why, fault_from_errno(error), "%s: renaming to %s failed: %s; not saved", from,
                   to, strerror(error));
}

static int name_pieces(struct sealing *self, struct why *why)
{
    struct pieces_manifest *manifest = &self->manifest;
    const uint32_t workers = self->save->workers;
    manifest->roots = calloc(self->meta.count * workers + 1, sizeof *manifest->roots);
    if (!manifest->roots) return why_set(why, FAULT_MEMORY, "the roots of a manifest");
    for (size_t i = 0; i < self->meta.count; i++) {
        const struct pieces_item *item = &self->meta.items[i];
        for (uint32_t w = 0; w < workers; w++) {
            const int rc = name_piece(self, item, w, why);
            if (rc < 0) return rc;
            // One copy of a replicated item: that of worker 0
            if (pieces_bytes_of(item, w) > 0)
                manifest->roots[manifest->root_count] = self->notes[w].items[i].root;
            manifest->root_count++;
        }
    }
    return 0;
}

static int put_manifest(struct sealing *self, struct why *why)
{
    const struct pieces_save *save = self->save;
    struct pieces_manifest *manifest = &self->manifest;
    char *text;
    snprintf(manifest->about.run, sizeof manifest->about.run, "%s", save->run);
    manifest->about.born_unix_ms = save->born_unix_ms;
    manifest->about.step = save->step;
    manifest->about.attempt = save->attempt;
    manifest->about.written_unix_s = self->notes[0].written_unix_s;
    failpoint("pieces_manifest");
    int rc = pieces_manifest_pack(manifest, why, &text);
    if (rc < 0) return rc;
    rc = pieces_put_text(self->dir, self->save->worker, CHECKPOINT_MANIFEST, text, why);
    free(text);
    return rc;
}

// A save of this step by an earlier attempt goes: the run has gone back before it and come to the step again. Two
// workers may be here at once: the one that has moved the new save away moves it back. False: it stays.
static bool remove_earlier(const struct sealing *self, const char *to)
{
    char going[PIECES_NAME];
    const uint64_t attempt = self->save->attempt;
    if (attempt_of(self, to) >= attempt) return false;
    pieces_attempt_name(self->save->step, 0, going);
    if (dirfile_remove(self->root, going, NULL) < 0) return false;
    if (renameat(self->root, to, self->root, going) < 0) return errno == ENOENT;
    if (attempt_of(self, going) >= attempt) return renameat(self->root, going, self->root, to) == 0;
    return dirfile_remove(self->root, going, NULL) == 0;
}

// 0, or errno.
static int rename_in(const struct sealing *self, const char *from, const char *to)
{
    return renameat(self->root, from, self->root, to) < 0 ? errno : 0;
}

static int publish(struct sealing *self, struct why *why)
{
    char from[PIECES_NAME], to[PIECES_NAME];
    pieces_attempt_name(self->save->step, self->save->attempt, from);
    pieces_folder_name(self->save->step, to);
    int error = failpoint("pieces_publish") < 0 ? errno : rename_in(self, from, to);
    // mutant: pieces: a save that the run has gone back before is kept
    if ((error == ENOTEMPTY || error == EEXIST) && remove_earlier(self, to))
        error = rename_in(self, from, to);
    if (error) {
        if (error == ENOENT && is_sealed(self)) return 0;
        if (error == ENOTEMPTY || error == EEXIST)
            return why_set(why, FAULT_BUSY,
                           "%s is there already, by a later attempt, or cannot be read; not "
                           "saved: remove it, or save with a higher attempt",
                           to);
        return why_set(why, fault_from_errno(error), "%s: renaming to %s failed: %s; not saved",
                       from, to, strerror(error));
    }
    return dirfile_sync_dir(self->root, self->save->root, why);
}

static int seal(struct sealing *self, struct why *why)
{
    char name[PIECES_NAME];
    int rc = make_cut(self, why);
    if (rc == 0) rc = name_pieces(self, why);
    if (rc == 0) rc = put_cut(self, why);
    if (rc == 0) rc = put_manifest(self, why);
    if (rc == 0) rc = publish(self, why);
    for (uint32_t w = 0; rc == 0 && w < self->save->workers; w++)
        unlinkat(self->dir, pieces_note_name(w, name), 0); // One that stays is read by nobody
    return rc;
}

// Without the folder of the attempt it is sealed, or nobody has written.
static int open_and_seal(struct sealing *self, struct why *why, uint32_t *ret_missing)
{
    char name[PIECES_NAME];
    uint32_t missing = 0;
    int rc = 0;
    self->dir = openat(self->root, pieces_attempt_name(self->save->step, self->save->attempt, name),
                       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (self->dir < 0 && errno != ENOENT)
        return why_set(why, fault_from_errno(errno), "%s: %s; not sealed", name, strerror(errno));
    if (self->dir >= 0) rc = read_notes(self, why, &missing);
    if (rc == 0 && missing == self->save->workers) rc = seal(self, why);
    else if (rc == 0 && is_sealed(self)) missing = self->save->workers;
    if (rc == 0) *ret_missing = missing;
    return rc;
}

int pieces_seal(const struct pieces_save *save, struct why *why, uint32_t *ret_missing)
{
    struct sealing *self = NULL;
    int root, rc = pieces_check_save(save, why);
    if (rc == 0) rc = checkpoint_root_open_own(save->root, why, &root);
    if (rc < 0) return rc;
    if (!(self = calloc(1, sizeof *self))) rc = why_set(why, FAULT_MEMORY, "sealing a save");
    else {
        self->save = save;
        self->root = root;
        rc = open_and_seal(self, why, ret_missing);
        if (self->dir >= 0) close(self->dir);
        pieces_meta_clear(&self->meta);
        pieces_manifest_clear(&self->manifest);
        free(self->notes);
        free(self);
    }
    close(root);
    return rc < 0 ? why_wrap(why, rc, "%s: step %" PRIu64, save->root, save->step) : 0;
}

// ---- cleaning -----------------------------------------------------------------------------------

// What cannot be removed, as somebody has put a folder into it, say, stays alone: all else is removed, and the first fault
// told.
struct faults {
    int first;
    struct why *why; // Of the first
};

static void add_fault(struct faults *self, int rc, const struct why *why)
{
    if (rc == 0 || self->first < 0) return;
    self->first = rc;
    if (self->why) *self->why = *why;
}

// Calls `judge` for each name in the root and removes those for which it is true.
typedef bool judge_fn(const char *name, const void *arg);
static void remove_each(int root, const char *place, judge_fn *judge, const void *arg,
                        struct faults *faults)
{
    struct why why = { 0 };
    const int again = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again < 0 ? NULL : fdopendir(again);
    if (!list) {
        const int error = errno;
        if (again >= 0) close(again);
        const int rc = why_set(&why, fault_from_errno(error), "%s: listing failed: %s", place,
                               strerror(error));
        add_fault(faults, rc, &why);
        return;
    }
    struct dirent *entry;
    int rc;
    while ((rc = dirfile_next(list, place, &why, &entry)) == 0 && entry)
        if (judge(entry->d_name, arg))
            add_fault(faults, dirfile_remove(root, entry->d_name, &why), &why);
    add_fault(faults, rc, &why);
    closedir(list);
}

struct before {
    uint64_t step;
    uint32_t attempt;
};

static bool is_before(const char *name, const void *arg)
{
    const struct before *now = arg;
    uint64_t step;
    uint32_t attempt;
    return pieces_is_attempt(name, &step, &attempt) &&
           (step < now->step || (step == now->step && attempt < now->attempt));
}

struct cuts {
    size_t count;
    struct hash of[CHECKPOINT_LIST_MAX];
};

static bool is_unused(const char *name, const void *arg)
{
    const struct cuts *used = arg;
    char is[PIECES_NAME];
    if (!pieces_is_cut(name)) return false;
    for (size_t i = 0; i < used->count; i++)
        if (strcmp(pieces_cut_name(&used->of[i], is), name) == 0) return false;
    return true;
}

// A text whose writer died before it had its name (pieces_put_text).
static bool is_left_over(const char *name, const void *arg)
{
    (void)arg;
    return strncmp(name, "new.", 4) == 0;
}

static bool is_ours(const struct pieces_manifest *manifest, const struct pieces_save *save)
{
    return strcmp(manifest->about.run, save->run) == 0 &&
           manifest->about.born_unix_ms == save->born_unix_ms;
}

static bool read_manifest_of(int root, uint64_t step, struct pieces_manifest *ret_manifest)
{
    char name[PIECES_NAME];
    const int dir = openat(root, pieces_folder_name(step, name),
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const bool reads = dir >= 0 && read_manifest(dir, NULL, ret_manifest) == 0;
    if (dir >= 0) close(dir);
    return reads;
}

// A save that goes is renamed first, so that none is seen with half of its pieces.
static int retire(int root, uint64_t step, struct why *why)
{
    char name[PIECES_NAME], going[PIECES_NAME];
    pieces_folder_name(step, name);
    pieces_attempt_name(step, 0, going);
    int rc = dirfile_remove(root, going, why);
    if (rc == 0 && renameat(root, name, root, going) < 0) {
        const int error = errno;
        if (error == ENOENT) return 0; // Another worker was here first
        rc = why_set(why, fault_from_errno(error), "%s: renaming to %s failed: %s", name, going,
                     strerror(error));
    }
    return rc == 0 ? dirfile_remove(root, going, why) : rc;
}

// The newest first. A folder without a manifest that can be read does not count: else anybody could make folders beside
// the saves that have these removed. It stays as long as it is newer than one of the `keep`, and keeps all cuts: somebody
// may want to look at it. So does the save of another run, which is never removed.
static void retire_older(int root, const struct pieces_save *save, size_t keep, struct cuts *cuts,
                         struct faults *faults)
{
    struct checkpoint_steps list = { 0 };
    struct why why = { 0 };
    const int rc = checkpoint_root_steps(root, save->root, &why, &list);
    bool knows_all = rc == 0;
    add_fault(faults, rc, &why);
    for (size_t i = 0; i < list.count; i++) {
        struct pieces_manifest manifest;
        // mutant: pieces: what is to be spared is removed
        const bool stays = cuts->count < keep || list.steps[i] >= save->spare;
        const bool reads = read_manifest_of(root, list.steps[i], &manifest);
        // mutant: pieces: the save of another run beside ours is removed
        const bool is_foreign = reads && !is_ours(&manifest, save);
        // mutant: pieces: a folder without a manifest is one of those that are kept
        // mutant: pieces: what cannot be removed ends the cleaning
        if (is_foreign) knows_all = false;
        else if (!stays) add_fault(faults, retire(root, list.steps[i], &why), &why);
        else if (reads) cuts->of[cuts->count++] = manifest.cut;
        else knows_all = false;
        if (reads) pieces_manifest_clear(&manifest);
    }
    if (knows_all) remove_each(root, save->root, is_unused, cuts, faults);
}

// Somebody who may write beside the folder of a run can replace it by the folder of another run: then no save in it is
// ours. A manifest that cannot be read says nothing, and does not stop the cleaning.
static int check_ours(int root, const struct pieces_save *save, struct why *why)
{
    struct checkpoint_steps list;
    struct why foreign = { 0 };
    const int rc = checkpoint_root_steps(root, save->root, why, &list);
    bool has_ours = false, has_foreign = false;
    for (size_t i = 0; rc == 0 && i < list.count && !has_ours; i++) {
        struct pieces_manifest manifest;
        if (!read_manifest_of(root, list.steps[i], &manifest)) continue;
        has_ours = is_ours(&manifest, save);
        if (!has_ours && !has_foreign)
            why_set(&foreign, FAULT_FOREIGN,
                    "step %" PRIu64 " is of run '%s', born %" PRIu64 ", ours is '%s', born %" PRIu64
                    "; nothing removed",
                    list.steps[i], manifest.about.run, manifest.about.born_unix_ms, save->run,
                    save->born_unix_ms);
        has_foreign |= !has_ours;
        pieces_manifest_clear(&manifest);
    }
    // mutant: pieces: the saves of another run are removed
    return !has_foreign || has_ours ? rc : why_set(why, FAULT_FOREIGN, "%s", foreign.text);
}

// Opens the root, and removes attempts.
static int begin_cleaning(const struct pieces_save *save, struct faults *faults, struct why *why,
                          int *ret_root)
{
    int root, rc = checkpoint_root_open_own(save->root, why, &root);
    if (rc < 0) return rc;
    rc = check_ours(root, save, why);
    if (rc < 0) {
        close(root);
        return rc;
    }
    const struct before before = { save->step, save->attempt };
    remove_each(root, save->root, is_before, &before, faults);
    *ret_root = root;
    return 0;
}

int pieces_clean_attempts(const struct pieces_save *save, struct why *why)
{
    int root;
    struct faults faults = { .why = why };
    int rc = begin_cleaning(save, &faults, why, &root);
    if (rc == 0) {
        rc = faults.first;
        close(root);
    }
    return rc < 0 ? why_wrap(why, rc, "cleaning %s", save->root) : 0;
}

int pieces_clean(const struct pieces_save *save, unsigned keep, struct why *why)
{
    struct faults faults = { .why = why };
    int root, rc = begin_cleaning(save, &faults, why, &root);
    if (rc == 0) {
        struct cuts *cuts = calloc(1, sizeof *cuts);
        if (!cuts) rc = why_set(why, FAULT_MEMORY, "a list of cuts");
        else {
            retire_older(root, save, keep, cuts, &faults);
            remove_each(root, save->root, is_left_over, NULL, &faults);
            rc = faults.first;
        }
        free(cuts);
        close(root);
    }
    return rc < 0 ? why_wrap(why, rc, "cleaning %s", save->root) : 0;
}
