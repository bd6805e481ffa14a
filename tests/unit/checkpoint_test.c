// checkpoint_test -- a checkpoint is whole, damaged or forged: it is read back, or refused and
// named; old ones go.

#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/checkpoint_root.h"
#include "common/checkpoint/hf_folder.h"
#include "tests/unit/checkpoint_fixture.h"
#include "tests/test.h"

#include <math.h>
#include <sys/stat.h>

// ---- Whole ----

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void everything_comes_back(void **unused)
{
    (void)unused;
    char tokenizer[256], path[300];
    make_folder(tokenizer);
    snprintf(path, sizeof path, "%s/tokenizer.json", tokenizer);
    write_text(path, "{\"vocab\": 1}");
    snprintf(path, sizeof path, "%s/secrets.txt", tokenizer);
    write_text(path, "not to be copied");
    fill_params(120);
    const struct checkpoint_info info = info_of(120);
    const struct checkpoint_file extra = { "ledger.bin", "\0\1\2", 3 };
    struct checkpoint_parts parts = parts_of(1);
    parts.tokenizer_dir = tokenizer;
    parts.files = &extra;
    parts.file_count = 1;
    assert_rc(checkpoint_write(root, &info, &parts, &layout, params, &why), 0);
    assert_string_equal(why.text, "");
    remove_folder(tokenizer);

    checkpoint_t *checkpoint;
    assert_rc(checkpoint_open_newest(root, "run-1", &why, &checkpoint), 0);
    const struct checkpoint_info *back = checkpoint_info(checkpoint);
    const struct hash layout_sum = layout_hash(&layout);
    assert_string_equal(back->run, "run-1");
    assert_true(back->born_unix_ms == 1690000000123);
    assert_true(back->epoch == 3 && back->step == 120 && back->created_unix_s == 1700000000 &&
                back->protocol == 1);
    assert_true(back->pass == 2 && back->pass_length == 1000 && back->cursor == 640 &&
                back->done_count == 2);
    assert_memory_equal(back->done, done, sizeof done);
    assert_true(hash_equal(&back->digest, &info.digest) && hash_equal(&back->layout, &layout_sum));

    float loaded[N], some[40];
    assert_rc(checkpoint_load_params(checkpoint, &layout, loaded, &why), 0);
    assert_memory_equal(loaded, params, sizeof loaded);
    const struct interval want = { ROWS * COLS - 20, ROWS * COLS + 20 };
    assert_rc(checkpoint_load_interval(checkpoint, &layout, want, some, &why), 0);
    assert_memory_equal(some, params + want.begin, sizeof some);
    char *text;
    size_t count;
    assert_rc(checkpoint_load_file(checkpoint, "config.json", &why, &text, &count), 0);
    assert_string_equal(text, config);
    free(text);
    assert_rc(checkpoint_load_file(checkpoint, "tokenizer.json", &why, &text, &count), 0);
    assert_string_equal(text, "{\"vocab\": 1}");
    free(text);
    assert_rc(checkpoint_load_file(checkpoint, "ledger.bin", &why, &text, &count), 0);
    assert_int_equal(count, 3);
    assert_memory_equal(text, "\0\1\2", 4);
    free(text);
    assert_rc(checkpoint_load_file(checkpoint, "../../passwd", &why, &text, &count),
              FAULT_NOT_FOUND);
    checkpoint_close(&checkpoint);
    assert_int_equal(access(file_path("step-00000120", "secrets.txt"), F_OK), -1);
}

// Returns the text of the manifest of step 5, to be freed.
static char *manifest_text(void)
{
    char *text;
    size_t count;
    assert_rc(dirfile_slurp(AT_FDCWD, file_path("step-00000005", "shoal.json"), false, 1 << 20,
                            &why, &text, &count),
              0);
    return text;
}

static void what_failed_comes_back(void **unused)
{
    (void)unused;
    static const struct interval failed[] = { { 512, 513 }, { 520, 544 } };
    fill_params(5);
    struct checkpoint_info info = info_of(5);
    const struct checkpoint_parts parts = parts_of(1);
    checkpoint_t *checkpoint;
    info.failed = failed, info.failed_count = 2; // Between the two that are done, one touches each
    assert_rc(checkpoint_write(root, &info, &parts, &layout, params, &why), 0);
    assert_rc(checkpoint_open_newest(root, "run-1", &why, &checkpoint), 0);
    const struct checkpoint_info *back = checkpoint_info(checkpoint);
    assert_int_equal(back->done_count, 2);
    assert_memory_equal(back->done, done, sizeof done);
    assert_int_equal(back->failed_count, 2);
    assert_memory_equal(back->failed, failed, sizeof failed);
    checkpoint_close(&checkpoint);

    assert_rc(write_step(5, 1), 0); // None: no such key, as before there was one
    char *text = manifest_text();
    assert_null(strstr(text, "failed"));
    free(text);
    assert_rc(checkpoint_open_newest(root, "run-1", &why, &checkpoint), 0);
    assert_int_equal(checkpoint_info(checkpoint)->failed_count, 0);
    checkpoint_close(&checkpoint);
}

// Both lists as long as they may be, of numbers as long as they may be.
static void the_longest_manifest_comes_back(void **unused)
{
    (void)unused;
    static struct interval odd[CHECKPOINT_DONE_MAX], even[CHECKPOINT_DONE_MAX];
    static struct checkpoint_manifest back;
    struct checkpoint_manifest *manifest = calloc(1, sizeof *manifest);
    const uint64_t first = CHECKPOINT_NUMBER_MAX - 2 * CHECKPOINT_DONE_MAX;
    char *text;
    size_t count;
    assert_non_null(manifest);
    for (uint64_t i = 0; i < CHECKPOINT_DONE_MAX; i++) {
        even[i] = (struct interval){ first + 2 * i, first + 2 * i + 1 };
        odd[i] = (struct interval){ first + 2 * i + 1, first + 2 * i + 2 };
    }
    fill_params(5);
    manifest->info = info_of(5);
    manifest->info.layout = layout_hash(&layout);
    manifest->info.pass_length = manifest->info.cursor = CHECKPOINT_NUMBER_MAX;
    manifest->info.done = even, manifest->info.failed = odd;
    manifest->info.done_count = manifest->info.failed_count = CHECKPOINT_DONE_MAX;
    assert_rc(checkpoint_manifest_pack(manifest, &why, &text, &count), 0);
    assert_true(count < CHECKPOINT_MANIFEST_BYTES_MAX);
    assert_rc(checkpoint_manifest_unpack("shoal.json", text, count, &why, &back), 0);
    assert_int_equal(back.info.done_count, CHECKPOINT_DONE_MAX);
    assert_memory_equal(back.info.done, even, sizeof even);
    assert_int_equal(back.info.failed_count, CHECKPOINT_DONE_MAX);
    assert_memory_equal(back.info.failed, odd, sizeof odd);
    checkpoint_manifest_clear(&back);
    free(manifest);
    free(text);
}

static void state_comes_back_by_interval_and_only_as_registered(void **unused)
{
    (void)unused;
    assert_rc(write_step(7, 1), 0);
    checkpoint_t *checkpoint;
    assert_rc(checkpoint_open(root, 7, "run-1", &why, &checkpoint), 0);
    for (uint32_t worker = 0; worker < 3; worker++) {
        const struct interval share = interval_share(N, worker, 3);
        float part[N];
        assert_rc(checkpoint_load_state(checkpoint, &items[0], share, part, &why), 0);
        assert_memory_equal(part, moment + share.begin, interval_length(share) * sizeof *part);
    }
    uint8_t bytes[5];
    assert_rc(checkpoint_load_state(checkpoint, &items[1], (struct interval){ 0, 5 }, bytes, &why),
              0);
    assert_memory_equal(bytes, settings, 5);
    assert_rc(checkpoint_load_state(checkpoint, &items[2], (struct interval){ 0, 1 }, bytes, &why),
              FAULT_NOT_FOUND);
    assert_why("'residual' was not saved");
    struct tags_item other = items[1];
    other.tag = TAG_CUSTOM;
    assert_rc(checkpoint_load_state(checkpoint, &other, (struct interval){ 0, 5 }, bytes, &why),
              FAULT_FOREIGN);
    assert_why("saved as replicate, 5 elements of 1 bytes, and is now custom");
    strcpy(other.name, "new");
    assert_rc(checkpoint_load_state(checkpoint, &other, (struct interval){ 0, 5 }, bytes, &why),
              FAULT_NOT_FOUND);
    checkpoint_close(&checkpoint);
}

// ---- What is not written ----

static void not_written(const struct checkpoint_info *info, const struct checkpoint_parts *parts,
                        int fault, const char *word)
{
    assert_rc(checkpoint_write(root, info, parts, &layout, params, &why), fault);
    assert_why(word);
    assert_int_equal(count_names(""), 0);
}

static void wrong_facts_are_not_written(void **unused)
{
    (void)unused;
    const struct checkpoint_parts parts = parts_of(1);
    const struct interval untidy[] = { { 5, 9 }, { 8, 12 } };
    const char *const runs[] = { "", ".", "..", "../x", "a/b", ".hidden", "-x", "a b", "\xc3\xbc" };
    struct checkpoint_info info;
    fill_params(1);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        info = info_of(1);
        strcpy(info.run, runs[i]);
        not_written(&info, &parts, FAULT_RANGE, "a run's id is");
    }
    info = info_of(1);
    memset(info.run, 'x', sizeof info.run);
    not_written(&info, &parts, FAULT_RANGE, "a run's id is 1 to 63");
    info = info_of(CHECKPOINT_STEP_MAX + 1);
    not_written(&info, &parts, FAULT_RANGE, "step is 100000000, allowed is 0 to 99999999");
    info = info_of(1);
    info.cursor = 1001;
    not_written(&info, &parts, FAULT_RANGE, "cursor is 1001, allowed is 0 to 1000");
    info = info_of(1);
    info.pass_length = info.cursor = 639;
    not_written(&info, &parts, FAULT_RANGE, "the last interval in 'done' is 640");
    info = info_of(1);
    info.done = untidy;
    not_written(&info, &parts, FAULT_RANGE, "the intervals in 'done' are");
    info = info_of(1);
    info.failed = untidy, info.failed_count = 2;
    not_written(&info, &parts, FAULT_RANGE, "the intervals in 'failed' are");
    info.failed = (struct interval[]){ { 530, 531 }, { 639, 641 } };
    not_written(&info, &parts, FAULT_RANGE,
                "the last interval in 'failed' is 641, allowed is 0 to 640");
    info.failed = (struct interval[]){ { 530, 531 }, { 543, 545 } };
    not_written(&info, &parts, FAULT_RANGE, "sample 544 is in 'done' and in 'failed'");
    info.failed = (struct interval[]){ { 0, 1 }, { 530, 531 } };
    not_written(&info, &parts, FAULT_RANGE, "sample 0 is in 'done' and in 'failed'");
    info.failed_count = CHECKPOINT_DONE_MAX + 1;
    not_written(&info, &parts, FAULT_RANGE, "the number of intervals in 'failed' is 65537");
    info = info_of(1);
    info.epoch = UINT64_MAX;
    not_written(&info, &parts, FAULT_RANGE, "epoch is 18446744073709551615");
    info = info_of(1);
    params[5] += 1;
    not_written(&info, &parts, FAULT_DIGEST, "the given state has digest");
    fill_params(1);
    info = info_of(1);
    tensors[1].dtype = LAYOUT_BF16;
    not_written(&info, &parts, FAULT_RANGE, "'model.norm.weight' is to be written as BF16");
    tensors[1].dtype = LAYOUT_F32;
}

static void hostile_names_are_not_written(void **unused)
{
    (void)unused;
    static const char *const names[] = {
        "",
        ".",
        "..",
        "../up",
        "a/b",
        "/etc/passwd",
        ".hidden",
        "-rf",
        "a b",
        "a\nb",
        "a\\b",
        "\xff",
        "config.json",
        "model.safetensors",
        "shoal.json",
        "state-moment.bin",
        "x/../../y",
        "a%2fb/",
    };
    fill_params(1);
    const struct checkpoint_info info = info_of(1);
    struct checkpoint_parts parts = parts_of(1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct checkpoint_file extra = { names[i], "x", 1 };
        parts.files = &extra;
        parts.file_count = 1;
        not_written(&info, &parts, FAULT_RANGE, "its name must be 1 to 120 of A-Z a-z 0-9 . _ -");
    }
    char long_name[DIRFILE_NAME_MAX + 2];
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = 0;
    const struct checkpoint_file extra = { long_name, "x", 1 };
    parts.files = &extra;
    not_written(&info, &parts, FAULT_RANGE, "its name must be");
    struct checkpoint_parts lost = parts_of(1);
    lost.tokenizer_dir = "/no/such/folder";
    not_written(&info, &lost, FAULT_NOT_FOUND, "the tokenizer's folder /no/such/folder");
}

// ---- Damage ----

static void any_flipped_byte_is_refused_by_name(void **unused)
{
    (void)unused;
    static const char *const files[] = {
        "config.json", "model.safetensors", "state-moment.bin", "state-settings.bin", "shoal.json",
    };
    unsigned flips = 0;
    assert_rc(write_step(5, 1), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const int fd = open(file_path("step-00000005", files[i]), O_RDWR | O_CLOEXEC);
        const off_t size = lseek(fd, 0, SEEK_END);
        const off_t stride = size > 3000 ? 7 : 1; // Every byte of the manifest
        for (off_t at = 0; at < size; at += stride, flips++) {
            uint8_t byte;
            checkpoint_t *checkpoint = NULL;
            assert_int_equal(pread(fd, &byte, 1, at), 1);
            const uint8_t flipped = byte ^ (uint8_t)(1 << at % 8);
            assert_int_equal(pwrite(fd, &flipped, 1, at), 1);
            assert_true(checkpoint_open_newest(root, "run-1", &why, &checkpoint) < 0);
            assert_null(checkpoint);
            assert_why("step-00000005");
            if (i < 4) assert_why(files[i]);
            assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        }
        close(fd);
    }
    assert_int_equal(newest_is_whole(), 5);
    print_message("             %u flips, all refused\n", flips);
}

static void cut_longer_and_missing_files_are_refused_by_name(void **unused)
{
    (void)unused;
    static const char *const files[] = { "config.json", "model.safetensors", "state-moment.bin" };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_rc(write_step(5, 1), 0);
        const char *path = file_path("step-00000005", files[i]);
        struct stat stat_before;
        assert_int_equal(stat(path, &stat_before), 0);
        assert_int_equal(truncate(path, stat_before.st_size - 1), 0);
        assert_newest_refused(FAULT_CORRUPT, files[i]);
        assert_int_equal(truncate(path, stat_before.st_size + 1), 0);
        assert_newest_refused(FAULT_CORRUPT, files[i]);
        assert_int_equal(unlink(path), 0);
        assert_newest_refused(FAULT_CORRUPT, files[i]);
        assert_int_equal(symlink("/etc/passwd", path), 0);
        assert_newest_refused(FAULT_IO, files[i]);
    }
    assert_rc(write_step(5, 1), 0);
    assert_int_equal(truncate(file_path("step-00000005", "shoal.json"), 0), 0);
    assert_newest_refused(FAULT_FORMAT, "shoal.json");
    assert_int_equal(unlink(file_path("step-00000005", "shoal.json")), 0);
    assert_newest_refused(FAULT_CORRUPT, "incomplete: shoal.json");
}

// A damaged newest checkpoint is an error; an older one is read only on request.
static void falling_back_is_an_explicit_choice(void **unused)
{
    (void)unused;
    for (uint64_t step = 1; step <= 3; step++) assert_rc(write_step(step, 3), 0);
    assert_int_equal(truncate(file_path("step-00000003", "model.safetensors"), 100), 0);
    assert_newest_refused(FAULT_CORRUPT, "step-00000003: model.safetensors has 100 bytes");
    struct checkpoint_seen list[CHECKPOINT_LIST_MAX];
    size_t count;
    assert_rc(checkpoint_list(root, "run-1", &why, list, &count), 0);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(list[i].step, 3 - i);
        assert_int_equal(list[i].fault, i ? 0 : FAULT_CORRUPT);
        assert_int_equal(list[i].born_unix_ms, i ? 1690000000123 : 0);
    }
    checkpoint_t *checkpoint;
    assert_rc(checkpoint_open(root, list[1].step, "run-1", &why, &checkpoint), 0);
    assert_int_equal(checkpoint_info(checkpoint)->step, 2);
    checkpoint_close(&checkpoint);
    assert_rc(write_step(3, 3), 0); // The run gets there again and replaces the damaged one
    assert_int_equal(newest_is_whole(), 3);
    assert_int_equal(count_names(""), 3);
}

static void what_is_not_ours_is_refused(void **unused)
{
    (void)unused;
    checkpoint_t *checkpoint = NULL;
    assert_newest_refused(FAULT_NOT_FOUND, "there is none");
    assert_rc(checkpoint_open(root, 4, "run-1", &why, &checkpoint), FAULT_NOT_FOUND);
    assert_rc(checkpoint_open(root, UINT64_MAX, "run-1", &why, &checkpoint), FAULT_RANGE);
    assert_rc(checkpoint_open_newest("/no/such/root", "run-1", &why, &checkpoint), FAULT_NOT_FOUND);
    assert_rc(write_step(4, 1), 0);
    assert_rc(checkpoint_open_newest(root, "run-2", &why, &checkpoint), FAULT_FOREIGN);
    assert_why("of run 'run-1', wanted is 'run-2'");
    char from[300], to[300];
    snprintf(from, sizeof from, "%s/step-00000004", root);
    snprintf(to, sizeof to, "%s/step-00000009", root);
    assert_int_equal(rename(from, to), 0);
    assert_newest_refused(FAULT_CORRUPT, "shoal.json says step 4: it was renamed");
    assert_int_equal(rename(to, from), 0);
    assert_int_equal(symlink("step-00000004", to), 0);
    assert_newest_refused(FAULT_NOT_FOUND, "step-00000009"); // ENOTDIR: a link is no directory
    assert_int_equal(unlink(to), 0);
    struct layout_tensor room[2];
    struct layout other;
    float loaded[N];
    layout_init(&other, room, 2);
    layout_copy_as(&other, &layout, LAYOUT_F32);
    room[0].name[0] = 'M';
    assert_rc(checkpoint_open_newest(root, "run-1", &why, &checkpoint), 0);
    assert_rc(checkpoint_load_params(checkpoint, &other, loaded, &why), FAULT_FOREIGN);
    assert_why("the model's is");
    checkpoint_close(&checkpoint);
}

// Rewrites the manifest of step 5 as a forger could: consistent with itself.
static void forge(void (*change)(struct checkpoint_manifest *))
{
    static struct checkpoint_manifest manifest;
    char *text = manifest_text();
    size_t count;
    assert_rc(checkpoint_manifest_unpack("shoal.json", text, strlen(text), &why, &manifest), 0);
    free(text);
    struct checkpoint_manifest forged = manifest;
    change(&forged);
    assert_rc(checkpoint_manifest_pack(&forged, &why, &text, &count), 0);
    write_text(file_path("step-00000005", "shoal.json"), text);
    free(text);
    checkpoint_manifest_clear(&manifest);
}

static void climb(struct checkpoint_manifest *m) { strcpy(m->files[0].name, "../../etc/passwd"); }
static void twice(struct checkpoint_manifest *m) { strcpy(m->files[1].name, m->files[0].name); }
static void no_params(struct checkpoint_manifest *m) { m->files[1] = m->files[--m->file_count]; }
static void without_state(struct checkpoint_manifest *m) { m->file_count = 2; }
static void another_digest(struct checkpoint_manifest *m) { m->info.params.bytes[0] ^= 1; }
static void no_own_digest(struct checkpoint_manifest *m) { m->info.digest = m->info.params; }
static void cursor_outside(struct checkpoint_manifest *m) { m->info.cursor = 1001; }
static void trained_and_failed(struct checkpoint_manifest *m)
{
    m->info.failed = m->info.done, m->info.failed_count = 1;
}
static void huge_item(struct checkpoint_manifest *m) { m->items[0].elements = (uint64_t)1 << 47; }
static void same_item(struct checkpoint_manifest *m) { strcpy(m->items[1].name, m->items[0].name); }

static void forged_manifests_lead_nowhere(void **unused)
{
    (void)unused;
    static const struct {
        void (*change)(struct checkpoint_manifest *);
        int fault;
        const char *word;
    } forged[] = {
        { climb, FAULT_RANGE, "the name of file 0" },
        { twice, FAULT_RANGE, "the name of file 1" },
        { no_params, FAULT_CORRUPT, "does not list model.safetensors" },
        { without_state, FAULT_CORRUPT, "does not list state-moment.bin" },
        { cursor_outside, FAULT_RANGE, "cursor is 1001" },
        { trained_and_failed, FAULT_RANGE, "sample 0 is in 'done' and in 'failed'" },
        { huge_item, FAULT_CORRUPT,
          "does not list state-moment.bin with the 562949953421312 "
          "bytes" },
        { same_item, FAULT_RANGE, "registered already" },
    };
    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
        assert_rc(write_step(5, 1), 0);
        forge(forged[i].change);
        assert_newest_refused(forged[i].fault, forged[i].word);
    }
    assert_rc(write_step(5, 1), 0); // Only the parameters themselves give this one away
    forge(another_digest);
    checkpoint_t *checkpoint;
    float loaded[N];
    assert_rc(checkpoint_open_newest(root, "run-1", &why, &checkpoint), 0);
    assert_rc(checkpoint_load_params(checkpoint, &layout, loaded, &why), FAULT_DIGEST);
    checkpoint_close(&checkpoint);
}

// An earlier program's manifest names the parameters' digest only, whatever else was saved.
static void an_earlier_manifest_is_read(void **unused)
{
    (void)unused;
    fill_params(5);
    const struct checkpoint_info info = info_of(5);
    const struct hash alone = digest_of(params, N);
    checkpoint_t *checkpoint;
    assert_rc(write_step(5, 1), 0);
    assert_rc(checkpoint_open_newest(root, "run-1", &why, &checkpoint), 0);
    assert_true(hash_equal(&checkpoint_info(checkpoint)->digest, &info.digest));
    assert_true(hash_equal(&checkpoint_info(checkpoint)->params, &alone));
    assert_false(hash_equal(&info.digest, &alone));
    checkpoint_close(&checkpoint);
    forge(no_own_digest);
    assert_int_equal(newest_is_whole(), 5);
}

// ---- Keeping and cleaning ----

static void the_newest_stay(void **unused)
{
    (void)unused;
    for (uint64_t step = 10; step <= 50; step += 10) {
        assert_rc(write_step(step, 2), 0);
        assert_string_equal(why.text, "");
        assert_int_equal(newest_is_whole(), step);
        assert_int_equal(count_names(""), step == 10 ? 1 : 2);
    }
    assert_int_equal(count_names("step-00000040"), 1);
    assert_rc(write_step(50, 2), 0); // The same step again
    assert_int_equal(newest_is_whole(), 50);
    assert_int_equal(count_names(""), 2);
    assert_rc(write_step(20, 1), 0); // A lower step, after falling back: it stays
    assert_int_equal(count_names(""), 1);
    assert_int_equal(newest_is_whole(), 20);
}

static void the_one_to_spare_stays(void **unused)
{
    (void)unused;
    for (uint64_t step = 10; step <= 50; step += 10) {
        fill_params(step);
        const struct checkpoint_info info = info_of(step);
        struct checkpoint_parts parts = parts_of(2);
        parts.spare = 20;
        assert_rc(checkpoint_write(root, &info, &parts, &layout, params, &why), 0);
    }
    assert_int_equal(count_names("step-00000020"), 1);
    assert_int_equal(count_names(""), 3);
    assert_rc(write_step(60, 2), 0); // No longer: it goes
    assert_int_equal(count_names(""), 2);
    assert_int_equal(count_names("step-00000020"), 0);
}

static void make_in_root(const char *name, const char *file)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", root, name);
    assert_int_equal(mkdir(path, 0755), 0);
    if (file) write_text(file_path(name, file), "left over");
}

static void leftovers_of_the_dead_are_removed(void **unused)
{
    (void)unused;
    static const char *const strangers[] = {
        "step-00000001.tmp", "step-00000001.tmp-",  "step-00000001.tmp-7x",
        "step-1.tmp-7",      "Step-00000001.tmp-7",
    };
    assert_rc(write_step(8, 1), 0);
    make_in_root("step-00000009.tmp-4711", "model.safetensors");
    make_in_root("step-00000008.tmp-1", NULL);
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
        make_in_root(strangers[i], "x");
    assert_rc(checkpoint_clean(root, &why), 0);
    assert_int_equal(count_names("tmp-4711") + count_names("tmp-1"), 0);
    assert_int_equal(count_names(""), 1 + sizeof strangers / sizeof *strangers);
    assert_int_equal(newest_is_whole(), 8);
    make_in_root("step-00000009.tmp-4712", "model.safetensors");
    assert_rc(write_step(9, 1), 0); // Writing cleans as well
    assert_int_equal(count_names("tmp-4712"), 0);
    assert_rc(checkpoint_clean("/no/such/root", &why), FAULT_NOT_FOUND);
}

static void a_root_has_one_writer(void **unused)
{
    (void)unused;
    assert_rc(write_step(1, 2), 0);
    make_in_root("step-00000002.tmp-4711", "model.safetensors");
    const int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_rc(checkpoint_root_lock(fd, root, &why), 0);
    assert_rc(write_step(2, 2), FAULT_BUSY);
    assert_why("one writer");
    assert_rc(checkpoint_clean(root, &why), FAULT_BUSY);
    assert_int_equal(count_names("tmp-4711"), 1);
    assert_int_equal(newest_is_whole(), 1); // Readers do not wait
    close(fd);
    assert_rc(write_step(2, 2), 0);
}

// ---- Models of other tools ----

static void a_hugging_face_folder_is_loaded(void **unused)
{
    (void)unused;
    assert_rc(write_step(1, 1), 0);
    float loaded[N];
    char folder[300], path[320];
    snprintf(folder, sizeof folder, "%s/step-00000001", root);
    assert_int_equal(unlink(file_path("step-00000001", "shoal.json")), 0);
    assert_rc(hf_folder_load(folder, &layout, loaded, &why), 0);
    assert_memory_equal(loaded, params, sizeof loaded);
    snprintf(path, sizeof path, "%s/blob", folder); // As in their cache: a link to a blob
    assert_int_equal(rename(file_path("step-00000001", "model.safetensors"), path), 0);
    assert_int_equal(symlink("blob", file_path("step-00000001", "model.safetensors")), 0);
    memset(loaded, 0, sizeof loaded);
    assert_rc(hf_folder_load(folder, &layout, loaded, &why), 0);
    assert_memory_equal(loaded, params, sizeof loaded);
    assert_int_equal(unlink(file_path("step-00000001", "model.safetensors")), 0);
    write_text(file_path("step-00000001", "model.safetensors.index.json"),
               "{\"weight_map\": {\"model.embed_tokens.weight\": \"blob\", \"model.norm.weight\": "
               "\"blob\"}}");
    memset(loaded, 0, sizeof loaded);
    assert_rc(hf_folder_load(folder, &layout, loaded, &why), 0);
    assert_memory_equal(loaded, params, sizeof loaded);
    assert_int_equal(unlink(path), 0);
    assert_rc(hf_folder_load(folder, &layout, loaded, &why), FAULT_NOT_FOUND);
    assert_why("model.safetensors.index.json: blob");
    assert_rc(hf_folder_load("/no/such/folder", &layout, loaded, &why), FAULT_NOT_FOUND);
}

static void numbers_that_are_not_finite_are_refused(void **unused)
{
    (void)unused;
    float loaded[N];
    char folder[300];
    checkpoint_t *checkpoint;
    fill_params(1);
    struct checkpoint_info info = info_of(1);
    const struct checkpoint_parts parts = parts_of(1);
    params[ROWS * COLS + 1] = NAN;
    assert_rc(checkpoint_digest(&parts, &layout, params, &why, &info.digest), 0);
    assert_rc(checkpoint_write(root, &info, &parts, &layout, params, &why), 0);
    assert_rc(checkpoint_open_newest(root, "run-1", &why, &checkpoint), 0);
    assert_rc(checkpoint_load_params(checkpoint, &layout, loaded, &why), FAULT_NAN);
    assert_why("step-00000001: tensor 'model.norm.weight': number 1 is NaN");
    checkpoint_close(&checkpoint);
    snprintf(folder, sizeof folder, "%s/step-00000001", root);
    assert_rc(hf_folder_load(folder, &layout, loaded, &why), FAULT_NAN);
    assert_why("step-00000001: tensor 'model.norm.weight': number 1 is NaN");
}

TESTS(CHECKPOINT_TEST(everything_comes_back), CHECKPOINT_TEST(what_failed_comes_back),
      CHECKPOINT_TEST(the_longest_manifest_comes_back),
      CHECKPOINT_TEST(state_comes_back_by_interval_and_only_as_registered),
      CHECKPOINT_TEST(wrong_facts_are_not_written), CHECKPOINT_TEST(hostile_names_are_not_written),
      CHECKPOINT_TEST(any_flipped_byte_is_refused_by_name),
      CHECKPOINT_TEST(cut_longer_and_missing_files_are_refused_by_name),
      CHECKPOINT_TEST(falling_back_is_an_explicit_choice),
      CHECKPOINT_TEST(what_is_not_ours_is_refused), CHECKPOINT_TEST(forged_manifests_lead_nowhere),
      CHECKPOINT_TEST(an_earlier_manifest_is_read), CHECKPOINT_TEST(the_newest_stay),
      CHECKPOINT_TEST(the_one_to_spare_stays), CHECKPOINT_TEST(leftovers_of_the_dead_are_removed),
      CHECKPOINT_TEST(a_root_has_one_writer), CHECKPOINT_TEST(a_hugging_face_folder_is_loaded),
      CHECKPOINT_TEST(numbers_that_are_not_finite_are_refused))
