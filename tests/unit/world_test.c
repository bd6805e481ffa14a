// world_test -- state that any number of workers saves is loaded by any other number: the four
// tags, uneven and empty parts, long chains of worlds, and what is refused.

#include "common/base/dirfile.h"
#include "common/checkpoint/piece_file.h"
#include "common/checkpoint/world.h"
#include "tests/unit/pieces_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 1009, WORLDS_MAX = 11 };

// ---- a worker's state, one item of each tag -----------------------------------------------------

struct worker {
    double timer; // Drop
    struct world_value rows;
    char settings[16];
    uint64_t seen; // Custom: of all workers together it is a sum
};

static unsigned merges;

// The first worker gets the sum of what all have seen, the others have seen nothing.
static int add_up(void *arg, const struct world_value *all, uint32_t count, uint32_t worker,
                  uint32_t workers, struct why *reason, struct world_value *ret_value)
{
    (void)arg, (void)reason;
    assert_true(worker < workers);
    uint64_t *sum = calloc(1, sizeof *sum);
    assert_non_null(sum);
    for (uint32_t w = 0; w < count; w++) {
        assert_int_equal(all[w].elements, 1);
        assert_int_equal(*(uint64_t *)all[w].bytes % 1000, w); // In the order of the workers
        if (worker == 0) *sum += *(uint64_t *)all[w].bytes;
    }
    merges++;
    *ret_value = (struct world_value){ 1, sum };
    return 0;
}

static int refuse_to_add(void *arg, const struct world_value *all, uint32_t count, uint32_t worker,
                         uint32_t workers, struct why *reason, struct world_value *ret_value)
{
    (void)arg, (void)all, (void)count, (void)worker, (void)workers, (void)ret_value;
    return why_set(reason, FAULT_UNSUPPORTED, "they do not add up");
}

enum { TIMER, BUFFER, SETTINGS, SEEN, ITEMS };

static void list_items(struct worker *self, struct world_item items[ITEMS])
{
    items[TIMER] = world_item("timer", TAG_DROP, sizeof(double), 1, &self->timer);
    items[BUFFER] =
        world_item("buffer", TAG_RESHARD, sizeof(uint32_t), self->rows.elements, self->rows.bytes);
    items[SETTINGS] =
        world_item("settings", TAG_REPLICATE, 1, sizeof self->settings, self->settings);
    items[SEEN] = world_item("seen", TAG_CUSTOM, sizeof(uint64_t), 1, &self->seen);
    items[SEEN].merge = add_up;
}

// Each worker of a world has `rows[w]` rows; row r has the value r.
static void make_world(struct worker *world, uint32_t workers, const uint64_t *rows)
{
    uint32_t next = 0;
    for (uint32_t w = 0; w < workers; w++) {
        world[w] = (struct worker){ .timer = w + 0.5, .seen = 1000 * (w + 1) + w };
        memcpy(world[w].settings, "the same at all", sizeof world[w].settings);
        uint32_t *bytes = malloc(rows[w] * sizeof *bytes + 1);
        assert_non_null(bytes);
        for (uint64_t i = 0; i < rows[w]; i++) bytes[i] = next++;
        world[w].rows = (struct world_value){ rows[w], bytes };
    }
}

static void save_world(struct worker *world, uint32_t workers, uint64_t step)
{
    for (uint32_t i = 0; i < workers; i++) {
        const uint32_t w = (i + 1) % workers; // In any order
        struct world_item items[ITEMS];
        uint32_t missing;
        const struct pieces_save save = save_of(step, 1, w, workers);
        list_items(&world[w], items);
        assert_int_equal(world_save(&save, items, ITEMS, &why, &missing), 0);
        assert_int_equal(missing, i + 1 == workers ? workers : 0);
    }
}

static void free_world(struct worker *world, uint32_t workers)
{
    for (uint32_t w = 0; w < workers; w++) free(world[w].rows.bytes);
}

// Loads one item, and frees what the load gave for the others.
static void load_worker(struct worker *self, uint64_t step, uint32_t worker, uint32_t workers,
                        struct world_item items[ITEMS])
{
    const struct pieces_save now = save_of(step, 1, worker, workers);
    list_items(self, items);
    assert_int_equal(world_load(&now, items, ITEMS, &why), 0);
    if (!items[TIMER].is_fresh) {
        self->timer = *(double *)items[TIMER].bytes;
        free(items[TIMER].bytes);
    }
    self->rows = (struct world_value){ items[BUFFER].elements, items[BUFFER].bytes };
    assert_int_equal(items[SETTINGS].elements, sizeof self->settings);
    memcpy(self->settings, items[SETTINGS].bytes, sizeof self->settings);
    self->seen = *(uint64_t *)items[SEEN].bytes;
    free(items[SETTINGS].bytes);
    free(items[SEEN].bytes);
}

static uint32_t check_rows(const struct worker *self, uint32_t from)
{
    const uint32_t *rows = self->rows.bytes;
    for (uint64_t i = 0; i < self->rows.elements; i++) assert_int_equal(rows[i], from + i);
    return from + (uint32_t)self->rows.elements;
}

static unsigned count_files(const char *folder, const char *begins)
{
    char path[300];
    unsigned count = 0;
    snprintf(path, sizeof path, "%s/%s", root, folder);
    DIR *list = opendir(path);
    assert_non_null(list);
    for (const struct dirent *entry; (entry = readdir(list));)
        count += entry->d_name[0] != '.' && strncmp(entry->d_name, begins, strlen(begins)) == 0;
    closedir(list);
    return count;
}

// ---- the tags -----------------------------------------------------------------------------------

static void the_same_world_gets_its_own_back(void **state)
{
    (void)state;
    const uint64_t rows[] = { 5, 0, 1004 };
    struct worker saved[3], loaded[3] = { 0 };
    struct world_item items[ITEMS];
    make_world(saved, 3, rows);
    save_world(saved, 3, 1);
    merges = 0;
    uint32_t next = 0;
    for (uint32_t w = 0; w < 3; w++) {
        load_worker(&loaded[w], 1, w, 3, items);
        assert_false(items[TIMER].is_fresh);
        assert_true(loaded[w].timer == w + 0.5);
        assert_int_equal(loaded[w].rows.elements, rows[w]);
        next = check_rows(&loaded[w], next);
        assert_string_equal(loaded[w].settings, "the same at all");
        assert_int_equal(loaded[w].seen, saved[w].seen);
    }
    assert_int_equal(next, ROWS);
    assert_int_equal(merges, 0);
    assert_int_equal(count_files("step-00000001", "settings"), 1); // Stored once
    assert_int_equal(count_files("step-00000001", "buffer"), 2); // A part without rows has no file
    assert_int_equal(count_files("step-00000001", "NOTE"), 0);
    free_world(saved, 3);
    free_world(loaded, 3);
}

static void another_world_follows_the_tags(void **state)
{
    (void)state;
    const uint64_t rows[] = { 5, 0, 1004 };
    const uint32_t worlds[] = { 4, 5, 2, 1 };
    struct worker saved[3], loaded[5];
    struct world_item items[ITEMS];
    make_world(saved, 3, rows);
    save_world(saved, 3, 1);
    const uint64_t all = saved[0].seen + saved[1].seen + saved[2].seen;
    for (unsigned i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        uint32_t next = 0;
        merges = 0;
        for (uint32_t w = 0; w < worlds[i]; w++) {
            loaded[w] = (struct worker){ .timer = -1 };
            load_worker(&loaded[w], 1, w, worlds[i], items);
            assert_true(items[TIMER].is_fresh);
            assert_true(loaded[w].timer == -1); // Its declared beginning
            next = check_rows(&loaded[w], next);
            assert_string_equal(loaded[w].settings, "the same at all");
            assert_int_equal(loaded[w].seen, w == 0 ? all : 0);
        }
        assert_int_equal(next, ROWS);
        assert_int_equal(merges, worlds[i]);
        free_world(loaded, worlds[i]);
    }
    free_world(saved, 3);
}

// As many workers with other intervals are another world.
static void a_cut_is_its_intervals(void **state)
{
    (void)state;
    const uint64_t rows[] = { 9, 1000 }, begins[] = { 0, 500, ROWS }, own[] = { 0, 9, ROWS },
                   bad[] = { 0, 500, ROWS - 1 };
    struct worker saved[2];
    struct world_item items[ITEMS];
    make_world(saved, 2, rows);
    save_world(saved, 2, 3);
    const struct {
        const uint64_t *begins;
        bool same;
    } cuts[] = { { begins, false }, { own, true } };
    for (unsigned i = 0; i < 2; i++) {
        struct worker loaded = { 0 };
        const struct pieces_save now = save_of(3, 1, 1, 2);
        list_items(&loaded, items);
        items[BUFFER].begins = cuts[i].begins;
        assert_int_equal(world_load(&now, items, ITEMS, &why), 0);
        assert_int_equal(items[TIMER].is_fresh, !cuts[i].same);
        assert_int_equal(items[BUFFER].elements, ROWS - cuts[i].begins[1]);
        assert_int_equal(*(uint32_t *)items[BUFFER].bytes, cuts[i].begins[1]);
        for (int k = 0; k < ITEMS; k++)
            if (!items[k].is_fresh) free(items[k].bytes);
    }
    struct worker loaded = { 0 };
    list_items(&loaded, items);
    items[BUFFER].begins = bad;
    const struct pieces_save now = save_of(3, 1, 1, 2);
    assert_int_equal(world_load(&now, items, ITEMS, &why), FAULT_RANGE);
    assert_non_null(strstr(why.text, "'buffer' does not go from 0 to its 1009 elements"));
    free_world(saved, 2);
}

// 1,009 rows go through seven worlds, each of which saves what it has loaded.
static void a_chain_of_worlds_keeps_every_row(void **state)
{
    (void)state;
    const uint32_t worlds[] = { 3, 7, 2, 11, 5, 1, 4 };
    uint64_t rows[WORLDS_MAX] = { 400, 9, 600 };
    struct worker world[WORLDS_MAX], next[WORLDS_MAX];
    struct world_item items[ITEMS];
    make_world(world, 3, rows);
    for (unsigned i = 0; i + 1 < sizeof worlds / sizeof *worlds; i++) {
        uint32_t at = 0;
        for (uint32_t w = 0; w < worlds[i]; w++)
            world[w].seen = 1000 * (w + 1) + w, memcpy(world[w].settings, "the same at all", 16);
        save_world(world, worlds[i], 10 + i);
        for (uint32_t w = 0; w < worlds[i + 1]; w++) {
            next[w] = (struct worker){ 0 };
            load_worker(&next[w], 10 + i, w, worlds[i + 1], items);
            at = check_rows(&next[w], at);
        }
        assert_int_equal(at, ROWS);
        free_world(world, worlds[i]);
        memcpy(world, next, sizeof world);
    }
    free_world(world, 4);
}

// The texts of a save and the hashes of the pieces that have some of [at.begin, at.end).
static uint64_t bytes_beside(uint64_t step, struct interval at)
{
    char path[400];
    struct stat text;
    uint64_t bytes = 0;
    pieces_t *pieces = NULL;
    snprintf(path, sizeof path, "%s/step-%08" PRIu64 "/shoal.json", root, step);
    assert_int_equal(stat(path, &text), 0);
    bytes += (uint64_t)text.st_size;
    DIR *list = opendir(root);
    assert_non_null(list);
    for (const struct dirent *entry; (entry = readdir(list));) {
        if (strncmp(entry->d_name, "meta-", 5) != 0) continue;
        snprintf(path, sizeof path, "%s/%.60s", root, entry->d_name);
        assert_int_equal(stat(path, &text), 0);
        bytes += (uint64_t)text.st_size;
    }
    closedir(list);
    assert_int_equal(pieces_open(root, step, "a", &why, &pieces), 0);
    const struct pieces_item *item = pieces_find(pieces, "rows");
    for (uint32_t w = 0; w < pieces_meta(pieces)->workers; w++) {
        const struct interval has = { item->begins[w], item->begins[w + 1] };
        if (!interval_empty(interval_meet(has, at))) bytes += interval_length(has) * HASH_BYTES;
    }
    pieces_close(&pieces);
    return bytes;
}

enum { ROW = PIECE_LEAF_BYTES };

static void save_rows(uint64_t step, uint32_t worker, uint32_t workers, struct interval at,
                      uint8_t *rows)
{
    uint32_t missing;
    const struct pieces_save save = save_of(step, 1, worker, workers);
    const struct world_item item =
        world_item("rows", TAG_RESHARD, ROW, interval_length(at), rows + at.begin * ROW);
    assert_int_equal(world_save(&save, &item, 1, &why, &missing), 0);
}

// The same chain with rows of 64 KiB, a leaf each: a worker reads its rows, the texts and the hashes, and not a byte
// more.
static void a_chain_of_worlds_reads_what_it_owns(void **state)
{
    (void)state;
    static const uint32_t worlds[] = { 3, 7, 2, 11, 5, 1, 4 };
    enum { WORLDS = sizeof worlds / sizeof *worlds };
    uint8_t *rows = calloc(ROWS, ROW);
    assert_non_null(rows);
    for (uint64_t r = 0; r < ROWS; r++)
        rows[r * ROW] = (uint8_t)r, rows[(r + 1) * ROW - 1] = (uint8_t)(r >> 8);
    for (uint32_t w = 0; w < worlds[0]; w++) {
        const struct interval uneven[] = { { 0, 400 }, { 400, 409 }, { 409, ROWS } };
        save_rows(1, w, worlds[0], uneven[w], rows);
    }
    for (uint32_t i = 1; i < WORLDS; i++) {
        for (uint32_t w = 0; w < worlds[i]; w++) {
            const struct pieces_save now = save_of(i, 1, w, worlds[i]);
            const struct interval at = interval_share(ROWS, w, worlds[i]);
            struct world_item item = world_item("rows", TAG_RESHARD, ROW, 0, NULL);
            const uint64_t before = bytes_read();
            assert_int_equal(world_load(&now, &item, 1, &why), 0);
            const uint64_t did = bytes_read() - before;
            const uint64_t wants = interval_length(at) * ROW + bytes_beside(i, at);
            assert_in_range(did, wants, wants + COUNT_BYTES);
            assert_int_equal(item.elements, interval_length(at));
            assert_memory_equal(item.bytes, rows + at.begin * ROW, interval_length(at) * ROW);
            save_rows(i + 1, w, worlds[i], at, rows);
            free(item.bytes);
        }
        assert_int_equal(clean(i + 1, 1, 1, UINT64_MAX), 0); // They take room
    }
    free(rows);
}

// Elements of 1 to 16 bytes, whatever their bytes are.
static void any_element_is_kept(void **state)
{
    (void)state;
    enum { OLD = 2, NEW = 3, ELEMENTS = 5, SIZE_MAX_HERE = 16 };
    static const uint64_t begins[] = { 0, 1, 1, OLD * ELEMENTS };
    uint8_t bytes[OLD * ELEMENTS * SIZE_MAX_HERE];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37); // 0 and 255 are among them
    for (uint32_t size = 1; size <= SIZE_MAX_HERE; size++) {
        uint32_t missing;
        for (uint32_t w = 0; w < OLD; w++) {
            const struct pieces_save save = save_of(size, 1, w, OLD);
            const struct world_item items[] = {
                world_item("own", TAG_RESHARD, size, ELEMENTS, bytes + w * ELEMENTS * size),
                world_item("all", TAG_REPLICATE, size, ELEMENTS, bytes)
            };
            assert_int_equal(world_save(&save, items, 2, &why, &missing), 0);
        }
        for (uint32_t w = 0; w < NEW; w++) {
            const struct pieces_save now = save_of(size, 1, w, NEW);
            struct world_item items[] = { world_item("own", TAG_RESHARD, size, 0, NULL),
                                          world_item("all", TAG_REPLICATE, size, 0, NULL) };
            items[0].begins = begins;
            assert_int_equal(world_load(&now, items, 2, &why), 0);
            assert_int_equal(items[0].elements, begins[w + 1] - begins[w]);
            assert_memory_equal(items[0].bytes, bytes + begins[w] * size, items[0].elements * size);
            assert_int_equal(items[1].elements, ELEMENTS);
            assert_memory_equal(items[1].bytes, bytes, ELEMENTS * size);
            for (int i = 0; i < 2; i++) free(items[i].bytes);
        }
    }
}

static void an_empty_buffer_is_saved_and_loaded(void **state)
{
    (void)state;
    const uint64_t rows[] = { 0, 0 };
    struct worker saved[2], loaded = { 0 };
    struct world_item items[ITEMS];
    make_world(saved, 2, rows);
    save_world(saved, 2, 1);
    load_worker(&loaded, 1, 2, 3, items);
    assert_int_equal(loaded.rows.elements, 0);
    free(loaded.rows.bytes);
    free_world(saved, 2);
}

// ---- what is refused ----------------------------------------------------------------------------

static void refuse_save(struct world_item *item, int fault, const char *words)
{
    uint32_t missing;
    const struct pieces_save save = save_of(1, 1, 0, 1);
    assert_int_equal(world_save(&save, item, 1, &why, &missing), fault);
    if (!strstr(why.text, words)) print_message("%s\n", why.text);
    assert_non_null(strstr(why.text, words));
    assert_int_equal(count_files(".", "step"), 0); // Nothing was written
}

static void a_bad_item_is_refused_by_name(void **state)
{
    (void)state;
    long value = 1;
    struct world_item item = world_item("position", TAG_UNSET, sizeof value, 1, &value);
    refuse_save(&item, FAULT_RANGE, "'position' has no tag; each has one of drop, reshard");
    item.tag = TAG_DROP;
    item.name = "../up";
    refuse_save(&item, FAULT_RANGE, "a-z, 0-9 and -");
    item.name = "position";
    item.element_bytes = 0;
    refuse_save(&item, FAULT_RANGE, "1 to 1048576 bytes");
    struct world_item twice[] = { world_item("a", TAG_DROP, 8, 1, &value),
                                  world_item("a", TAG_DROP, 8, 1, &value) };
    uint32_t missing;
    const struct pieces_save save = save_of(1, 1, 0, 1);
    assert_int_equal(world_save(&save, twice, 2, &why, &missing), FAULT_RANGE);
    assert_non_null(strstr(why.text, "'a' is there twice"));
}

// Saves two workers whose items differ as the caller says.
static void refuse_pair(struct world_item *first, struct world_item *second, size_t second_count,
                        const char *words)
{
    static uint64_t step = 100;
    uint32_t missing;
    struct pieces_save save = save_of(++step, 1, 0, 2);
    assert_int_equal(world_save(&save, first, 1, &why, &missing), 0);
    assert_int_equal(missing, 1);
    save.worker = 1;
    assert_int_equal(world_save(&save, second, second_count, &why, &missing), FAULT_FOREIGN);
    if (!strstr(why.text, words)) print_message("%s\n", why.text);
    assert_non_null(strstr(why.text, words));
}

static void workers_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    uint32_t one = 1, two = 2;
    struct world_item a = world_item("a", TAG_REPLICATE, 4, 1, &one);
    struct world_item b = world_item("b", TAG_REPLICATE, 4, 1, &one);
    struct world_item other = world_item("a", TAG_REPLICATE, 4, 1, &two);
    struct world_item drop = world_item("a", TAG_DROP, 4, 1, &one);
    struct world_item wide = world_item("a", TAG_REPLICATE, 2, 2, &one);
    struct world_item both[] = { a, b };
    refuse_pair(&a, &b, 1, "'a' of worker 0 is not item 0 of worker 1");
    refuse_pair(&a, &other, 1, "'a' is replicated, but workers 0 and 1 have different values");
    refuse_pair(&a, &drop, 1, "is replicate with 4 bytes an element at worker 0, and drop with 4");
    refuse_pair(&a, &wide, 1, "with 2 at worker 1");
    refuse_pair(&a, both, 2, "worker 0 has 1 state items and worker 1 has 2");
}

static void what_was_not_saved_so_is_not_loaded(void **state)
{
    (void)state;
    const uint64_t rows[] = { 4, 5 };
    struct worker saved[2], loaded = { 0 };
    struct world_item items[ITEMS];
    struct pieces_save now = save_of(1, 1, 0, 1);
    make_world(saved, 2, rows);
    save_world(saved, 2, 1);
    list_items(&loaded, items);
    items[BUFFER].name = "other";
    assert_int_equal(world_load(&now, items, ITEMS, &why), FAULT_NOT_FOUND);
    assert_non_null(strstr(why.text, "'other' was not saved"));
    list_items(&loaded, items);
    items[BUFFER].tag = TAG_DROP;
    assert_int_equal(world_load(&now, items, ITEMS, &why), FAULT_UNSUPPORTED);
    assert_non_null(strstr(why.text, "'buffer' was saved as reshard with 4"));
    list_items(&loaded, items);
    items[SEEN].merge = refuse_to_add;
    assert_int_equal(world_load(&now, items, ITEMS, &why), FAULT_UNSUPPORTED);
    assert_non_null(strstr(why.text, "the function of state item 'seen' failed"));
    assert_non_null(strstr(why.text, "they do not add up"));
    assert_ptr_equal(items[SETTINGS].bytes, loaded.settings); // No item is changed
    now.run = "b";
    list_items(&loaded, items);
    assert_int_equal(world_load(&now, items, ITEMS, &why), FAULT_FOREIGN);
    assert_non_null(strstr(why.text, "of run 'a', wanted is 'b'"));
    now = save_of(2, 1, 0, 1);
    assert_int_equal(world_load(&now, items, ITEMS, &why), FAULT_NOT_FOUND);
    free_world(saved, 2);
}

TESTS(TEST_WITH(the_same_world_gets_its_own_back, set_up, tear_down),
      TEST_WITH(another_world_follows_the_tags, set_up, tear_down),
      TEST_WITH(a_cut_is_its_intervals, set_up, tear_down),
      TEST_WITH(a_chain_of_worlds_keeps_every_row, set_up, tear_down),
      TEST_WITH(a_chain_of_worlds_reads_what_it_owns, set_up, tear_down),
      TEST_WITH(any_element_is_kept, set_up, tear_down),
      TEST_WITH(an_empty_buffer_is_saved_and_loaded, set_up, tear_down),
      TEST_WITH(a_bad_item_is_refused_by_name, set_up, tear_down),
      TEST_WITH(workers_that_do_not_fit_are_refused, set_up, tear_down),
      TEST_WITH(what_was_not_saved_so_is_not_loaded, set_up, tear_down))
