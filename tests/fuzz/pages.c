// A ledger's file as LMDB keeps it, changed anywhere: a template with edits. It is refused by name, or
// it is read to its end, and then it says nothing that the template never said. LMDB believes what
// lies in its pages, so what gets by pages_check may kill it: that is what is looked for.
//
//     which template, then edits:  'w' at place, count (1..8), bytes
//                                  'c' page from, page to, -          a page in another's place
//                                  't' pages, -, -                    the file ends there

#include "common/base/ensure.h"
#include "common/ledger/ledger.h"
#include "common/ledger/record.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEMPLATES = 2, FILE_MAX = 1 << 20, RECORDS_MAX = 64, PAGE_BYTES = 4096, EDIT_HEAD = 4 };

struct template
{
    uint8_t *bytes;
    size_t count;
    struct hash chain[RECORDS_MAX]; // After each record it ever had
};

static int keep_chain(void *arg, const struct record *record)
{
    struct template *self = arg;
    ensure(record->seq < RECORDS_MAX);
    self->chain[record->seq] = record->chain;
    return 0;
}

static void commit_one(struct ledger *ledger, uint64_t number, size_t bytes)
{
    static uint8_t body[3 * PAGE_BYTES];
    uint64_t seq;
    memset(body, (int)number, sizeof body);
    ensure(ledger_begin(ledger, NULL) == 0);
    ensure(ledger_append(ledger, body, bytes, number % 2 ? &number : NULL, NULL, &seq) == 0);
    if (number % 6 == 5) ensure(ledger_put_snapshot(ledger, body, 300, NULL) == 0);
    ensure(ledger_commit(ledger, NULL) == 0);
}

// A small one; and one with large records, snapshots, pages that are free again.
static const struct template *template_of(unsigned number)
{
    static struct template templates[TEMPLATES];
    static const struct ledger_options options = { .map_bytes_start = 256 << 10 };
    struct template *self = &templates[number % TEMPLATES];
    struct ledger *ledger;
    char dir[512];
    if (self->bytes) return self;
    snprintf(dir, sizeof dir, "%s", scratch_path("template"));
    ensure(ledger_open(dir, "run", &options, NULL, &ledger) == 0);
    const uint64_t records = number % TEMPLATES ? 40 : 4;
    for (uint64_t i = 1; i <= records; i++)
        commit_one(ledger, i, number % TEMPLATES && i % 4 == 0 ? 2 * PAGE_BYTES + 9 : 40 * i);
    ensure(ledger_each(ledger, 1, keep_chain, self, NULL) == 0);
    ledger_close(&ledger);
    self->bytes = malloc(FILE_MAX);
    const int fd = open(scratch_path("template/data.mdb"), O_RDONLY | O_CLOEXEC);
    const ssize_t count = fd < 0 ? -1 : read(fd, self->bytes, FILE_MAX);
    ensure(self->bytes && count > 0 && count < FILE_MAX && count % PAGE_BYTES == 0);
    close(fd);
    self->count = (size_t)count;
    scratch_remove("template");
    return self;
}

static size_t edit(uint8_t *file, size_t count, const uint8_t *at, const uint8_t *end)
{
    const size_t pages = count / PAGE_BYTES;
    while (end - at > EDIT_HEAD && count > 0) {
        const size_t place = (at[1] | (size_t)at[2] << 8 | (size_t)at[3] << 16) % count;
        const size_t from = at[1] % pages * PAGE_BYTES, to = at[2] % pages * PAGE_BYTES;
        const size_t left = (size_t)(end - at) - EDIT_HEAD - 1;
        size_t length = 1 + at[4] % 8;
        switch (at[0]) {
        case 'c': memmove(file + to, file + from, PAGE_BYTES); break;
        case 't': count = from; break;
        default:
            if (length > left) length = left;
            if (length > count - place) length = count - place;
            memcpy(file + place, at + EDIT_HEAD + 1, length);
            at += length;
        }
        at += EDIT_HEAD + 1;
    }
    return count;
}

static int visit(void *arg, const struct record *record)
{
    const struct template *template = arg;
    ensure(record->seq < RECORDS_MAX && hash_equal(&record->chain, &template->chain[record->seq]));
    return 0;
}

static bool check_ledger(const struct template *template, const char *dir)
{
    struct why why = { 0 };
    struct ledger *ledger = NULL;
    struct snapshot snapshot;
    struct hash head;
    uint64_t seq, found;
    if (ledger_open_readonly(dir, &why, &ledger) < 0) {
        if (fuzz_is_verbose()) printf("%s: ", why.text);
        ensure(why.text[0]);
        return false;
    }
    ledger_head(ledger, &seq, &head);
    ensure(seq < RECORDS_MAX);
    if (seq > 0) ensure(hash_equal(&head, &template->chain[seq]));
    if (seq > 0) ensure(ledger_each(ledger, 1, visit, (void *)(uintptr_t) template, &why) == 0);
    ensure(ledger_snapshot(ledger, &why, &snapshot) == 0 && snapshot.seq <= seq);
    for (uint64_t key = 0; key < 8; key++)
        ensure(ledger_find(ledger, key, &why, &found) < 0 || found <= seq);
    ledger_close(&ledger);
    return true;
}

bool pages_fuzz_check(const uint8_t *bytes, size_t count)
{
    static uint8_t file[FILE_MAX];
    static bool has_folder;
    char dir[512];
    if (count == 0) return false;
    if (!has_folder) scratch_make_folder("pages");
    has_folder = true;
    const struct template *template = template_of(bytes[0]);
    memcpy(file, template->bytes, template->count);
    const size_t length = edit(file, template->count, bytes + 1, bytes + count);
    scratch_put("pages/data.mdb", file, length);
    snprintf(dir, sizeof dir, "%s", scratch_path("pages"));
    return check_ledger(template, dir);
}

void pages_fuzz_write_seeds(const char *folder)
{
    fuzz_write_seed(folder, "accepted-small", "\0", 1);
    fuzz_write_seed(folder, "accepted-large", "\1", 1);
    fuzz_write_seed(folder, "seed-copy", "\1c\3\4\0\0", 6);
    fuzz_write_seed(folder, "seed-cut", "\1t\5\0\0\0", 6);
    fuzz_write_seed(folder, "seed-flip", "\1w\x20\x30\0\0\xff", 7);
    fuzz_write_seed(folder, "seed-meta", "\1w\x80\0\0\7\xff\xff\xff\xff\xff\xff\xff\xff", 14);
}
