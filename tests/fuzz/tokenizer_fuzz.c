// tokenizer_fuzz -- any bytes are a text that comes back, and a tokenizer or a named refusal.
//
//     tokenizer_fuzz FILE...          replays files, says of each what became of it
//
// As a fuzzer, with clang: -fsanitize=fuzzer,address,undefined -DTOKENIZER_FUZZ_LIBFUZZER, then
//
//     tokenizer_libfuzzer -max_len=4096 corpus tests/fuzz/corpus/tokenizer

#include "tests/fuzz/tokenizer_check.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    tokenizer_check_bytes(bytes, count);
    return 0;
}

#ifndef TOKENIZER_FUZZ_LIBFUZZER

enum { BYTES_MAX = 1 << 20 };

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(BYTES_MAX);
    ensure(bytes);
    if (!file) return fprintf(stderr, "%s: cannot be read: skipped\n", path), 1;
    const size_t count = fread(bytes, 1, BYTES_MAX, file);
    fclose(file);
    bytes = realloc(bytes, count + !count);     // Its own block: a byte beyond it would be seen
    const bool accepted = tokenizer_check_bytes(bytes, count);
    printf("%s: %zu bytes: %s\n", path, count, accepted ? "accepted" : tokenizer_check_why.text);
    free(bytes);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++) failed |= replay(argv[i]);
    return failed;
}

#endif
