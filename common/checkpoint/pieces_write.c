// The half of a worker: it checks what it was given, writes its pieces, then its note under another
// name, and renames that. So a note that is there is whole, and so are the pieces that it names.
#include "common/base/clock.h"
#include "common/base/dirfile.h"
#include "common/base/failpoint.h"
#include "common/checkpoint/checkpoint_root.h"
#include "common/checkpoint/piece_file.h"
#include "common/checkpoint/pieces.h"
#include "common/checkpoint/pieces_names.h"
#include "common/checkpoint/pieces_text.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIR_MODE = 0755 };

static int check_parts(uint32_t worker, const struct pieces_part *parts, size_t count,
                       struct why *why)
{
    if (count > PIECES_ITEMS_MAX)
        return why_set(why, FAULT_LIMIT, "a save: %zu state items, allowed are %d; nothing written",
                       count, PIECES_ITEMS_MAX);
    for (size_t i = 0; i < count; i++) {
        const int rc = pieces_check_item("a save", parts[i].name, parts[i].tag,
                                         parts[i].element_bytes, parts[i].elements, why);
        if (rc < 0) return rc;
        if (!parts[i].bytes && parts[i].elements > 0 &&
            !(parts[i].tag == TAG_REPLICATE && worker > 0))
            return why_set(why, FAULT_RANGE,
                           "a save: state item '%s' has no bytes; nothing written", parts[i].name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(parts[k].name, parts[i].name) == 0)
                return why_set(why, FAULT_RANGE,
                               "a save: state item '%s' is there twice; nothing written",
                               parts[i].name);
    }
    return 0;
}

int pieces_check_save(const struct pieces_save *save, struct why *why)
{
    if (!dirfile_name_valid(save->run) || strlen(save->run) > CHECKPOINT_RUN_MAX)
        return why_set(why, FAULT_RANGE,
                       "a save: a run's id is 1 to %d of A-Z a-z 0-9 . _ - and does not begin "
                       "with a dot or dash; nothing written",
                       CHECKPOINT_RUN_MAX);
    if (save->step > CHECKPOINT_STEP_MAX || save->attempt < 1 || save->attempt > 999999999)
        return why_set(why, FAULT_RANGE,
                       "a save of step %" PRIu64 ", attempt %" PRIu32
                       ": steps go to %d, attempts from 1 to 999999999; nothing written",
                       save->step, save->attempt, CHECKPOINT_STEP_MAX);
    if (save->workers < 1 || save->workers > PIECES_WORKERS_MAX || save->worker >= save->workers)
        return why_set(why, FAULT_RANGE,
                       "a save by worker %" PRIu32 " of %" PRIu32
                       ": there are 1 to %d workers, counted from 0; nothing written",
                       save->worker, save->workers, PIECES_WORKERS_MAX);
    return 0;
}

// Opens the folder of the attempt; the first worker that comes makes it.
static int open_attempt(const struct pieces_save *save, struct why *why, int *ret_dir)
{
    char name[PIECES_NAME];
    int root, rc = checkpoint_root_open_own(save->root, why, &root);
    if (rc < 0) return rc;
    pieces_attempt_name(save->step, save->attempt, name);
    int dir = -1;
    if (mkdirat(root, name, DIR_MODE) == 0 || errno == EEXIST)
        dir = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0) {
        const int error = errno;
        rc = why_set(why, fault_from_errno(error), "%s/%s: making the folder failed: %s; not saved",
                     save->root, name, strerror(error));
    } else *ret_dir = dir;
    close(root);
    return rc;
}

// Of what all have alike, worker 0 writes the only copy; the others note what it must be, or that any will do.
static int write_part(int dir, uint32_t worker, const struct pieces_part *part, struct why *why,
                      struct pieces_noted *note)
{
    char name[PIECES_NAME];
    const uint64_t bytes = part->elements * part->element_bytes;
    *note = (struct pieces_noted){ .tag = part->tag,
                                   .element_bytes = part->element_bytes,
                                   .elements = part->elements };
    snprintf(note->name, sizeof note->name, "%s", part->name);
    if (bytes == 0) return 0;
    if (part->tag == TAG_REPLICATE && worker > 0) {
        if (part->bytes) note->root = piece_root(part->bytes, bytes);
        return 0;
    }
    return piece_file_write(dir, pieces_written_name(part->name, part->tag, worker, name),
                            part->bytes, bytes, why, &note->root);
}

int pieces_put_text(int dir, uint32_t worker, const char *name, const char *text, struct why *why)
{
    char beside[PIECES_NAME + 48];
    struct dirfile file;
    uint64_t bytes;
    // Processes of two machines may have one number, and those of one worker follow one another
    snprintf(beside, sizeof beside, "new.%ld.%" PRIu32 ".%s", (long)getpid(), worker, name);
    int rc = dirfile_remove(dir, beside, why); // Of a process that died and had our numbers
    if (rc == 0) rc = dirfile_begin_unhashed(&file, dir, beside, why);
    if (rc < 0) return rc;
    rc = dirfile_add(&file, text, strlen(text), why);
    if (rc < 0) dirfile_abandon(&file);
    else rc = dirfile_end(&file, why, NULL, &bytes);
    if (rc == 0 && renameat(dir, beside, dir, name) < 0) {
        const int error = errno;
        rc = why_set(why, fault_from_errno(error), "%s: renaming to %s failed: %s", beside, name,
                     strerror(error));
    }
    return rc == 0 ? dirfile_sync_dir(dir, name, why) : rc;
}

static int write_all(int dir, const struct pieces_save *save, const struct pieces_part *parts,
                     size_t count, struct pieces_note *note, struct why *why)
{
    char name[PIECES_NAME], *text;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = write_part(dir, save->worker, &parts[i], why, &note->items[i]);
    if (rc < 0) return rc;
    note->worker = save->worker;
    note->count = count;
    note->written_unix_s = clock_unix_ms() / 1000;
    failpoint("pieces_note");
    rc = pieces_note_pack(save, note, why, &text);
    if (rc < 0) return rc;
    rc = pieces_put_text(dir, save->worker, pieces_note_name(save->worker, name), text, why);
    free(text);
    return rc;
}

int pieces_write(const struct pieces_save *save, const struct pieces_part *parts, size_t count,
                 struct why *why)
{
    int dir = -1, rc = pieces_check_save(save, why);
    if (rc == 0) rc = check_parts(save->worker, parts, count, why);
    if (rc == 0) rc = open_attempt(save, why, &dir);
    if (rc < 0) return rc;
    struct pieces_note *note = calloc(1, sizeof *note);
    rc = note ? write_all(dir, save, parts, count, note, why)
              : why_set(why, FAULT_MEMORY, "no memory for a note");
    free(note);
    close(dir);
    return rc < 0
               ? why_wrap(why, rc, "step %" PRIu64 ", worker %" PRIu32 " of %" PRIu32 " not saved",
                          save->step, save->worker, save->workers)
               : 0;
}
