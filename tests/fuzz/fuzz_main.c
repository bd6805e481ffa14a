// fuzz -- runs one target of targets.c: alone, or under libFuzzer (with -DFUZZ_LIBFUZZER).
//
//     fuzz TARGET [FILE|FOLDER...]         replays, says of each what became of it; without files its
//                                          bundle (FUZZ_VERBOSE=1: of a core, the whole conversation)
//     fuzz --unpack TARGET FOLDER          writes the inputs of its bundle as files (bundle.h)
//     fuzz --lines FILE...                 prints the line of a bundle for each file
//     fuzz --list                          the targets and the longest input of each
//     fuzz --dictionary TARGET             libFuzzer's dictionary, from the table of frames
//     fuzz --seeds TARGET FOLDER           writes its seeds
//
// Under libFuzzer the target is named by the environment: FUZZ_TARGET=wire.

#include "common/base/ensure.h"
#include "tests/fuzz/bundle.h"
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifdef FUZZ_LIBFUZZER

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t count, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t count, size_t max);

static const struct fuzz_target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    const char *name = getenv("FUZZ_TARGET");
    target = name ? fuzz_target_named(name) : NULL;
    if (target) return 0;
    fprintf(stderr, "FUZZ_TARGET=%s: no such target; one of tests/fuzz/targets.c\n",
            name ? name : "");
    exit(64);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    target->check(bytes, count);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t count, size_t max, unsigned seed)
{
    return target->mutate ? target->mutate(bytes, count, max, seed)
                          : LLVMFuzzerMutate(bytes, count, max);
}

size_t fuzz_mutate_blindly(uint8_t *bytes, size_t count, size_t max)
{
    return LLVMFuzzerMutate(bytes, count, max);
}

#else

size_t fuzz_mutate_blindly(uint8_t *bytes, size_t count, size_t max)
{
    (void)bytes, (void)max;
    return count;
}

static void replay(void *context, const char *name, const uint8_t *bytes, size_t count)
{
    const struct fuzz_target *target = context;
    printf("%s: %zu bytes: ", name, count);
    fflush(stdout);
    printf("%s\n", target->check(bytes, count) ? "accepted" : "refused");
}

// In a block of its own, just as long: a byte beyond it would be seen. NULL: cannot be read.
static uint8_t *read_file(const char *path, size_t *ret_count)
{
    FILE *file = fopen(path, "rb");
    if (!file) return fprintf(stderr, "%s: cannot be read: skipped\n", path), NULL;
    uint8_t *bytes = malloc(BUNDLE_BYTES_MAX);
    ensure(bytes);
    *ret_count = fread(bytes, 1, BUNDLE_BYTES_MAX, file);
    fclose(file);
    uint8_t *exact = realloc(bytes, *ret_count + !*ret_count);
    ensure(exact);
    return exact;
}

static int replay_file(const struct fuzz_target *target, const char *path)
{
    size_t count;
    uint8_t *bytes = read_file(path, &count);
    if (!bytes) return 1;
    replay((void *)(uintptr_t)target, path, bytes, count);
    free(bytes);
    return 0;
}

static int replay_all(const struct fuzz_target *target, const char *path)
{
    struct stat status;
    struct dirent *entry;
    char name[4096];
    int failed = 0;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) return replay_file(target, path);
    DIR *folder = opendir(path);
    if (!folder) return fprintf(stderr, "%s: cannot be read: skipped\n", path), 1;
    while ((entry = readdir(folder)))
        if (entry->d_name[0] != '.') {
            snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
            failed |= replay_file(target, name);
        }
    closedir(folder);
    return failed;
}

static int list(void)
{
    for (const struct fuzz_target *target = fuzz_targets; target->name; target++)
        printf("%s %zu\n", target->name, target->bytes_max);
    return 0;
}

static void unpack(void *folder, const char *name, const uint8_t *bytes, size_t count)
{
    fuzz_write_seed(folder, name, bytes, count);
}

static int print_line(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t count;
    uint8_t *bytes = read_file(path, &count);
    const bool is_printed = bytes && bundle_write(stdout, slash ? slash + 1 : path, bytes, count);
    if (bytes && !is_printed) fprintf(stderr, "%s: cannot be a line of a bundle\n", path);
    free(bytes);
    return !is_printed;
}

static int with_bundle(const char *target, bundle_visit *visit, void *context)
{
    const char *wrong = bundle_read_of(target, visit, context);
    if (wrong) fprintf(stderr, "tests/fuzz/corpus/%s.hex: %s\n", target, wrong);
    return wrong ? 65 : 0;
}

static const struct fuzz_target *named(const char *name)
{
    const struct fuzz_target *target = fuzz_target_named(name);
    if (target) return target;
    fprintf(stderr, "%s: no such target; --list names them\n", name);
    exit(64);
}

int main(int argc, char **argv)
{
    int failed = 0;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) return list();
    if (argc == 3 && strcmp(argv[1], "--dictionary") == 0) {
        const struct fuzz_target *target = named(argv[2]);
        if (target->print_dictionary) target->print_dictionary();
        return 0;
    }
    if (argc == 4 && strcmp(argv[1], "--seeds") == 0) {
        const struct fuzz_target *target = named(argv[2]);
        if (target->write_seeds) target->write_seeds(argv[3]);
        return 0;
    }
    if (argc == 4 && strcmp(argv[1], "--unpack") == 0)
        return with_bundle(named(argv[2])->name, unpack, argv[3]);
    if (argc > 2 && strcmp(argv[1], "--lines") == 0) {
        for (int i = 2; i < argc; i++) failed |= print_line(argv[i]);
        return failed;
    }
    if (argc < 2) return fprintf(stderr, "usage: fuzz TARGET [FILE|FOLDER...]\n"), 64;
    if (argc == 2) return with_bundle(argv[1], replay, (void *)(uintptr_t)named(argv[1]));
    for (int i = 2; i < argc; i++) failed |= replay_all(named(argv[1]), argv[i]);
    return failed;
}

#endif
