// model_fuzz -- any bytes as config.json, index or weights give a model or a named refusal.
//
//     model_fuzz FILE...          replays files, says of each what became of it
//
// The first byte says what the others are: 'c' a config.json, 'i' a model.safetensors.index.json
// beside one.safetensors (tensor "a") and two.safetensors ("b"), 'w' a model.safetensors.
// As a fuzzer, with clang: -fsanitize=fuzzer,address,undefined -DMODEL_FUZZ_LIBFUZZER, then
//
//     model_libfuzzer -dict=tests/fuzz/model.dict -max_len=4096 corpus tests/fuzz/corpus/model

#include "tests/fuzz/model_check.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static char folder[] = "/tmp/shoal-model-fuzz-XXXXXX";
static int dir = -1;

static void put(const char *name, const void *bytes, size_t count)
{
    const int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ensure(fd >= 0 && write(fd, bytes, count) == (ssize_t)count);
    close(fd);
}

static void put_shard(const char *name, char tensor)
{
    char file[100];
    const int length = snprintf(file + 8, sizeof file - 8, "{\"%c\":{\"dtype\":\"F16\","
                                "\"shape\":[2],\"data_offsets\":[0,4]}}1234", tensor);
    const uint64_t header = (uint64_t)length - 4;
    memcpy(file, &header, sizeof header);
    put(name, file, 8 + (size_t)length);
}

static void clean(void)
{
    dirfile_remove(AT_FDCWD, folder, NULL);
}

static void prepare(void)
{
    ensure(mkdtemp(folder));
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ensure(dir >= 0);
    put_shard("one.safetensors", 'a');
    put_shard("two.safetensors", 'b');
    atexit(clean);
}

static bool accepted(const uint8_t *bytes, size_t count)
{
    const char *rest = (const char *)bytes + 1;
    if (dir < 0) prepare();
    if (count == 0) return false;
    if (bytes[0] == 'c') return model_check_config(rest, count - 1);
    const char *name = bytes[0] == 'i' ? "model.safetensors.index.json" : "model.safetensors";
    put(name, rest, count - 1);
    return model_check_weights(dir, name);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    accepted(bytes, count);
    return 0;
}

#ifndef MODEL_FUZZ_LIBFUZZER

static int replay(const char *path)
{
    static uint8_t room[1 << 20];
    FILE *file = fopen(path, "rb");
    if (!file) return fprintf(stderr, "%s: cannot be read: skipped\n", path), 1;
    const size_t count = fread(room, 1, sizeof room, file);
    fclose(file);
    uint8_t *exact = malloc(count + !count);        // Its own block: a byte beyond it would be seen
    ensure(exact);
    memcpy(exact, room, count);
    printf("%s: %zu bytes: %s\n", path, count, accepted(exact, count) ? "accepted" : "refused");
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++) failed |= replay(argv[i]);
    return failed;
}

#endif
