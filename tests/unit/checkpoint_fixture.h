#pragma once
// checkpoint_fixture -- a folder for checkpoints per test, and a small model whose parameters
// follow from its step, so that a reader can tell a wrong one.

#include "common/checkpoint/checkpoint.h"
#include "common/crypto/merkle.h"
#include "tests/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 24, COLS = 32, N = ROWS * COLS + COLS };

static const char config[] = "{\"model_type\": \"llama\"}\n";
static char root[256];
static struct why why;
static struct layout_tensor tensors[2];
static struct layout layout;
static struct tags_item items[4];
static struct tags state;
static float params[N], moment[N];
static const uint8_t settings[5] = "abcd";
static const struct interval done[] = { { 0, 512 }, { 544, 640 } };

// ---- A root per test ----

// In $TMPDIR if it is set, else in memory where there is some: what is tested is the order of
// deeds, and a disk takes its time to fsync.
static inline void make_folder(char path[256])
{
    const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : P_tmpdir,
               *wish = getenv("TMPDIR");
    snprintf(path, 256, "%s/checkpoint-test-XXXXXX", wish ? wish : memory);
    assert_non_null(mkdtemp(path));
}

static inline int set_up(void **unused)
{
    (void)unused;
    make_folder(root);
    layout_init(&layout, tensors, 2);
    assert_int_equal(
        layout_add_matrix(&layout, "model.embed_tokens.weight", ROWS, COLS, LAYOUT_F32, &why), 0);
    assert_int_equal(layout_add_vector(&layout, "model.norm.weight", COLS, LAYOUT_F32, &why), 0);
    tags_init(&state, items, 4);
    assert_int_equal(tags_add(&state, "moment", TAG_RESHARD, N, 4, &why), 0);
    assert_int_equal(tags_add(&state, "settings", TAG_REPLICATE, 5, 1, &why), 0);
    assert_int_equal(tags_add(&state, "residual", TAG_DROP, N, 4, &why), 0);
    return 0;
}

static inline int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status, (void)type, (void)at;
    return remove(path);
}

static inline void remove_folder(const char *path)
{
    assert_int_equal(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static inline int tear_down(void **unused)
{
    (void)unused;
    remove_folder(root);
    return 0;
}

// How many names in the root contain `part`.
static inline unsigned count_names(const char *part)
{
    DIR *dir = opendir(root);
    unsigned count = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.' && strstr(entry->d_name, part) != NULL;
    closedir(dir);
    return count;
}

static const void *const values[] = { moment, settings, NULL };

static inline struct checkpoint_parts parts_of(unsigned keep)
{
    return (struct checkpoint_parts){
        .config_json = config, .state = &state, .values = values, .keep = keep
    };
}

// The parameters of a step follow from its number, so a reader can tell a wrong model.
static inline void fill_params(uint64_t step)
{
    for (uint64_t i = 0; i < N; i++) {
        params[i] = (float)(step * 1000 + i) * 0.1f;
        moment[i] = -params[i];
    }
}

// Of a checkpoint of this step that has the present parameters.
static inline struct checkpoint_info info_of(uint64_t step)
{
    struct hash digest;
    const struct checkpoint_parts parts = parts_of(1);
    assert_int_equal(checkpoint_digest(&parts, &layout, params, NULL, &digest), 0);
    return (struct checkpoint_info){
        .run = "run-1",
        .born_unix_ms = 1690000000123,
        .epoch = 3,
        .step = step,
        .digest = digest,
        .created_unix_s = 1700000000,
        .protocol = 1,
        .pass = 2,
        .pass_length = 1000,
        .cursor = 640,
        .done = done,
        .done_count = 2,
    };
}

static inline int write_step(uint64_t step, unsigned keep)
{
    fill_params(step);
    const struct checkpoint_info info = info_of(step);
    const struct checkpoint_parts parts = parts_of(keep);
    return checkpoint_write(root, &info, &parts, &layout, params, &why);
}

static inline void assert_why(const char *word)
{
    if (!strstr(why.text, word)) fail_msg("'%s' is not in: %s", word, why.text);
}

static inline void assert_rc(int rc, int wanted)
{
    if (rc != wanted) fail_msg("%s, not %s: %s", fault_name(rc), fault_name(wanted), why.text);
}

// The newest opens, is whole, and holds the model of its step. Returns the step.
static inline uint64_t newest_is_whole(void)
{
    checkpoint_t *checkpoint;
    static float loaded[N];
    assert_rc(checkpoint_open_newest(root, "run-1", &why, &checkpoint), 0);
    const uint64_t step = checkpoint_info(checkpoint)->step;
    assert_rc(checkpoint_load_params(checkpoint, &layout, loaded, &why), 0);
    fill_params(step);
    assert_memory_equal(loaded, params, sizeof loaded);
    checkpoint_close(&checkpoint);
    return step;
}

static inline void assert_newest_refused(int fault, const char *word)
{
    checkpoint_t *checkpoint = NULL;
    assert_rc(checkpoint_open_newest(root, "run-1", &why, &checkpoint), fault);
    assert_null(checkpoint);
    assert_why(word);
}

static inline char *file_path(const char *step, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s/%s", root, step, name);
    return path;
}

#define CHECKPOINT_TEST(f) TEST_WITH(f, set_up, tear_down)
