// pages -- reads the file page by page, as mdb.c lays it out: the two meta pages, then every page
// of the main tree and of the tables' trees, then the free list. A bit for each page finds a page
// that is used twice; entries are checked for their place, size and order; the counts in each
// tree's head must agree. The first fault ends the check and names its page.

#include "common/ledger/pages.h"
#include "common/base/ensure.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BRANCH = 1, LEAF = 2, OVERFLOW = 4, META = 8 }; // Of a page
enum { BIG_DATA = 1, SUB_DATA = 2 };                   // Of an entry
enum { INTEGER_KEY = 8 };                              // Of a tree
enum { PAGE_HEAD = 16, ENTRY_HEAD = 8, KEY_MAX = 511, DEPTH_MAX = 32, PAGE_MAX = 65536 };
#define NO_PAGE UINT64_MAX

struct tree {
    uint32_t pad;
    uint16_t flags, depth;
    uint64_t branches, leaves, overflows, entries, root;
};
struct meta {
    uint32_t magic, version;
    uint64_t address, map_bytes;
    struct tree free, main;
    uint64_t last_page, number; // Number: of the transaction that wrote it
};
struct head {
    uint64_t page;
    uint16_t pad, flags, lower, upper;
}; // Overflow: u32 pages
struct entry {
    uint16_t low, high, flags, key_bytes;
};
_Static_assert(sizeof(struct tree) == 48 && sizeof(struct meta) == 136, "as mdb.c lays them out");
_Static_assert(sizeof(struct head) == PAGE_HEAD && sizeof(struct entry) == ENTRY_HEAD, "likewise");

struct check {
    const char *dir;
    struct why *why;
    int fd;
    size_t page_bytes;
    struct meta meta;
    uint8_t *used;        // A bit for each page
    bool in_free;         // The tree that is walked is the free list
    uint64_t free_newest; // The last key of the free list so far
};

struct walk { // Through one tree, in order of its keys
    const struct tree *tree;
    uint64_t branches, leaves, overflows, entries;
    uint8_t key[KEY_MAX]; // The last key so far
    size_t key_bytes;
    bool has_key, is_border; // is_border: the last key stands in a branch page
};

static int bad(const struct check *self, uint64_t page, const char *what)
{
    return why_set(self->why, FAULT_CORRUPT, "%s/data.mdb: page %" PRIu64 ": %s", self->dir, page,
                   what);
}

static int read_page(const struct check *self, uint64_t page, uint8_t *bytes)
{
    const ssize_t count =
        pread(self->fd, bytes, self->page_bytes, (off_t)(page * self->page_bytes));
    if (count < 0)
        return why_set(self->why, fault_from_errno(errno),
                       "%s/data.mdb: reading page %" PRIu64 ": %s", self->dir, page,
                       strerror(errno));
    return count == (ssize_t)self->page_bytes ? 0 : bad(self, page, "the file ends before it");
}

// Marks pages as used; each page is used once, by a tree or by the free list.
static int claim(struct check *self, uint64_t page, uint64_t count)
{
    if (page < 2 || page > self->meta.last_page || count > self->meta.last_page - page + 1)
        return bad(self, page, "lies outside of what the file has in use");
    for (uint64_t i = page; i < page + count; i++) {
        if (self->used[i / 8] >> i % 8 & 1) return bad(self, i, "is used twice");
        self->used[i / 8] |= (uint8_t)(1u << i % 8);
    }
    return 0;
}

// ---- entries ------------------------------------------------------------------------------------

// Compares a key with the last one: below 0, 0, above 0. Numbers are in the machine's byte order.
static int compare(const struct check *self, const struct walk *walk, const uint8_t *key,
                   size_t count)
{
    if (self->in_free) {
        uint64_t a, b;
        memcpy(&a, key, 8), memcpy(&b, walk->key, 8);
        return a < b ? -1 : a > b;
    }
    const size_t least = count < walk->key_bytes ? count : walk->key_bytes;
    const int order = memcmp(key, walk->key, least);
    return order ? order : count < walk->key_bytes ? -1 : count > walk->key_bytes;
}

static int check_key(struct check *self, struct walk *walk, uint64_t page, const uint8_t *key,
                     size_t count, bool is_border)
{
    if (count == 0 || count > KEY_MAX || (self->in_free && count != 8))
        return bad(self, page, "has a key of an invalid size");
    const int order = walk->has_key ? compare(self, walk, key, count) : 1;
    if (order < 0 || (order == 0 && !walk->is_border))
        return bad(self, page, "its keys do not ascend");
    memcpy(walk->key, key, count);
    walk->key_bytes = count;
    walk->has_key = true;
    walk->is_border = is_border;
    return 0;
}

static int walk_tree(struct check *self, const struct tree *tree, bool in_main);

// The pages that one transaction freed: their count, then their numbers in descending order.
static int check_free(struct check *self, uint64_t page, const uint8_t *key, const uint8_t *data,
                      uint64_t count)
{
    uint64_t pages, number, before = UINT64_MAX;
    memcpy(&self->free_newest, key, 8);
    if (count < 8 || count % 8) return bad(self, page, "its list of free pages is cut");
    memcpy(&pages, data, 8);
    if (pages > count / 8 - 1) return bad(self, page, "its list of free pages is cut");
    for (uint64_t i = 1; i <= pages; i++) {
        memcpy(&number, data + 8 * i, 8);
        if (number >= before) return bad(self, page, "its list of free pages is out of order");
        before = number;
        const int rc = claim(self, number, 1);
        if (rc < 0) return rc;
    }
    return 0;
}

static int check_overflow(struct check *self, struct walk *walk, uint64_t page, uint64_t bytes,
                          const uint8_t *key)
{
    const uint64_t pages = (PAGE_HEAD + bytes + self->page_bytes - 1) / self->page_bytes;
    struct head head;
    uint32_t said;
    int rc = claim(self, page, pages);
    const uint64_t looked_at = self->in_free ? pages : 1; // contents.h checks the other bytes
    uint8_t *read = rc == 0 ? malloc(looked_at * self->page_bytes) : NULL;
    if (rc == 0 && !read) rc = why_set(self->why, FAULT_MEMORY, "%" PRIu64 " pages", looked_at);
    for (uint64_t i = 0; rc == 0 && i < looked_at; i++)
        rc = read_page(self, page + i, read + i * self->page_bytes);
    if (rc == 0) {
        memcpy(&head, read, sizeof head);
        memcpy(&said, read + 12, sizeof said);
        if (head.page != page || head.flags != OVERFLOW || said != pages)
            rc = bad(self, page, "is not a large entry, as the page that names it says");
    }
    if (rc == 0 && self->in_free) rc = check_free(self, page, key, read + PAGE_HEAD, bytes);
    walk->overflows += pages;
    free(read);
    return rc;
}

static int check_leaf_entry(struct check *self, struct walk *walk, uint64_t page, bool in_main,
                            const struct entry *entry, const uint8_t *key, size_t left)
{
    const uint64_t bytes = entry->low | (uint64_t)entry->high << 16;
    const uint8_t *data = key + entry->key_bytes;
    const bool is_big = entry->flags == BIG_DATA;
    struct tree table;
    uint64_t overflow;
    const bool is_table = in_main && entry->flags == SUB_DATA;
    if (entry->flags != 0 && !is_big && !is_table)
        return bad(self, page, "has an entry of a kind that does not belong there");
    if ((is_big ? sizeof overflow : bytes) > left)
        return bad(self, page, "an entry reaches beyond the page");
    int rc = check_key(self, walk, page, key, entry->key_bytes, false);
    walk->entries++;
    if (rc < 0) return rc;
    if (is_big) {
        memcpy(&overflow, data, sizeof overflow);
        return check_overflow(self, walk, overflow, bytes, key);
    }
    if (self->in_free) return check_free(self, page, key, data, bytes);
    if (!is_table) return 0;
    if (bytes != sizeof table) return bad(self, page, "its table is of another size");
    memcpy(&table, data, sizeof table);
    if (table.flags != 0) return bad(self, page, "its table is of another kind");
    return walk_tree(self, &table, false);
}

// ---- pages --------------------------------------------------------------------------------------

static int walk_page(struct check *self, struct walk *walk, uint64_t page, unsigned depth,
                     bool in_main);

static int walk_entry(struct check *self, struct walk *walk, uint64_t page, unsigned depth,
                      bool in_main, const uint8_t *bytes, const struct head *head, unsigned number)
{
    uint16_t at;
    struct entry entry;
    memcpy(&at, bytes + PAGE_HEAD + 2 * number, sizeof at);
    if (at < head->upper || at > self->page_bytes - ENTRY_HEAD)
        return bad(self, page, "an entry leaves it");
    memcpy(&entry, bytes + at, sizeof entry);
    const uint8_t *key = bytes + at + ENTRY_HEAD;
    const size_t left = self->page_bytes - at - ENTRY_HEAD;
    if (entry.key_bytes > left) return bad(self, page, "an entry leaves it");
    if (head->flags == LEAF)
        return check_leaf_entry(self, walk, page, in_main, &entry, key, left - entry.key_bytes);
    // The first child has all keys below the key of the second; every other child begins with its
    // key.
    int rc = number == 0 ? 0 : check_key(self, walk, page, key, entry.key_bytes, true);
    const uint64_t child = entry.low | (uint64_t)entry.high << 16 | (uint64_t)entry.flags << 32;
    return rc < 0 ? rc : walk_page(self, walk, child, depth + 1, in_main);
}

static int walk_page(struct check *self, struct walk *walk, uint64_t page, unsigned depth,
                     bool in_main)
{
    struct head head;
    const uint16_t kind = depth == walk->tree->depth ? LEAF : BRANCH;
    uint8_t *bytes = malloc(self->page_bytes);
    if (!bytes) return why_set(self->why, FAULT_MEMORY, "a page");
    int rc = claim(self, page, 1);
    if (rc == 0) rc = read_page(self, page, bytes);
    if (rc == 0) {
        memcpy(&head, bytes, sizeof head);
        if (head.page != page || head.flags != kind)
            rc = bad(self, page, "is not of the kind that the page above it names");
        else if (head.lower < PAGE_HEAD || head.lower % 2 || head.upper < head.lower ||
                 head.upper > self->page_bytes)
            rc = bad(self, page, "its free space is impossible");
    }
    const unsigned count = rc == 0 ? (head.lower - PAGE_HEAD) / 2u : 0;
    if (rc == 0 && count < (kind == LEAF ? 1u : 2u)) rc = bad(self, page, "has too few entries");
    if (kind == LEAF) walk->leaves++;
    else walk->branches++;
    for (unsigned i = 0; rc == 0 && i < count; i++)
        rc = walk_entry(self, walk, page, depth, in_main, bytes, &head, i);
    free(bytes);
    return rc;
}

static int walk_tree(struct check *self, const struct tree *tree, bool in_main)
{
    struct walk walk = { .tree = tree };
    if (tree->root == NO_PAGE) {
        const bool empty = tree->depth == 0 && tree->entries == 0 && tree->branches == 0 &&
                           tree->leaves == 0 && tree->overflows == 0;
        return empty ? 0 : bad(self, 0, "a tree has entries but no root");
    }
    if (tree->depth == 0 || tree->depth > DEPTH_MAX)
        return bad(self, tree->root, "a tree has an impossible depth");
    const int rc = walk_page(self, &walk, tree->root, 1, in_main);
    if (rc < 0) return rc;
    if (walk.entries != tree->entries || walk.branches != tree->branches ||
        walk.leaves != tree->leaves || walk.overflows != tree->overflows)
        return bad(self, tree->root, "its tree has other counts than its head says");
    return 0;
}

// ---- the file -----------------------------------------------------------------------------------

// The page size that the meta page at this offset names; 0 if the file ends in that page.
static uint32_t page_bytes_at(const struct check *self, off_t at)
{
    uint8_t bytes[PAGE_HEAD + sizeof(struct meta)];
    struct meta meta;
    if (pread(self->fd, bytes, sizeof bytes, at) != (ssize_t)sizeof bytes) return 0;
    memcpy(&meta, bytes + PAGE_HEAD, sizeof meta);
    return meta.free.pad;
}

static int check_front(const struct check *self, off_t size)
{
    const uint32_t page_bytes = page_bytes_at(self, 0);
    if (page_bytes < 512 || page_bytes > PAGE_MAX || page_bytes & (page_bytes - 1))
        return bad(self, 0, "is cut off, or names an invalid page size");
    if (size < 2 * (off_t)page_bytes) return bad(self, 1, "the file ends in it");
    if (page_bytes_at(self, (off_t)page_bytes) != page_bytes)
        return bad(self, 1, "names another page size than the first");
    return 0;
}

int pages_check_front(int dir_fd, const char *dir, struct why *why)
{
    struct check self = { .dir = dir, .why = why };
    struct stat file;
    self.fd = openat(dir_fd, "data.mdb", O_RDONLY | O_CLOEXEC);
    if (self.fd < 0 && errno == ENOENT) return 0;
    int rc = 0;
    if (self.fd < 0 || fstat(self.fd, &file) < 0)
        rc = why_set(why, fault_from_errno(errno), "%s/data.mdb: %s", dir, strerror(errno));
    else if (file.st_size > 0) rc = check_front(&self, file.st_size);
    if (self.fd >= 0) close(self.fd);
    return rc;
}

// Reads the meta page of the state that the transaction sees: the newer page, or the other one if a
// writer has committed since.
static int read_metas(struct check *self, uint64_t seen)
{
    uint8_t bytes[PAGE_MAX];
    struct meta metas[2];
    struct head head;
    for (uint64_t i = 0; i < 2; i++) {
        const int rc = read_page(self, i, bytes);
        if (rc < 0) return rc;
        memcpy(&head, bytes, sizeof head);
        memcpy(&metas[i], bytes + PAGE_HEAD, sizeof metas[i]);
        if (head.page != i || head.flags != META) return bad(self, i, "is not a meta page");
        if (metas[i].number != 0 && metas[i].number % 2 != i)
            return bad(self, i, "was not written by the transaction that it names");
    }
    const uint64_t a = metas[0].number, b = metas[1].number;
    if (a + b != 0 && a - b != 1 && b - a != 1)
        return bad(self, 0, "the two meta pages are not of neighbouring transactions");
    self->meta = metas[a == b ? 0 : seen % 2];
    return self->meta.number == seen ? 0 : PAGES_OVERTAKEN;
}

static int check_file(struct check *self)
{
    const struct meta *meta = &self->meta;
    if (meta->free.pad != self->page_bytes || meta->free.flags != INTEGER_KEY ||
        meta->main.flags != 0)
        return bad(self, meta->number % 2, "its trees are of another kind");
    struct stat file;
    if (fstat(self->fd, &file) < 0 || meta->last_page >= (uint64_t)file.st_size / self->page_bytes)
        return bad(self, meta->number % 2, "says that the file is longer than it is");
    self->used = calloc(1, meta->last_page / 8 + 1);
    if (!self->used) return why_set(self->why, FAULT_MEMORY, "a bit for each page");
    int rc = walk_tree(self, &meta->main, true);
    self->in_free = true;
    if (rc == 0) rc = walk_tree(self, &meta->free, false);
    // The first transaction freed no page; every later one replaced pages and freed the old ones.
    if (rc == 0 && meta->number > 1 && self->free_newest != meta->number)
        rc = bad(self, meta->number % 2,
                 "the transaction that it names is not the last that freed "
                 "pages");
    free(self->used);
    return rc;
}

int pages_check(MDB_txn *txn, const char *dir, struct why *why)
{
    MDB_env *env = mdb_txn_env(txn);
    MDB_stat stat;
    mdb_filehandle_t fd;
    ensure(mdb_env_stat(env, &stat) == 0 && mdb_env_get_fd(env, &fd) == 0);
    struct check self = { .dir = dir, .why = why, .fd = fd, .page_bytes = stat.ms_psize };
    if (self.page_bytes < 512 || self.page_bytes > PAGE_MAX)
        return bad(&self, 0, "its pages are of an impossible size");
    const int rc = read_metas(&self, mdb_txn_id(txn));
    return rc ? rc : check_file(&self);
}
