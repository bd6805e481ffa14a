// tokenizer_bench -- how fast one thread encodes a text, and decodes it again.
//
//     tokenizer_bench TOKENIZER TEXT [IDS]     best of 5; writes the ids, 4 bytes each, to IDS
//
// Without arguments it makes a tokenizer of 4,096 tokens from the King James Bible and uses that.
// tests/peers/tokenizer_test.sh runs it beside Hugging Face's `tokenizers` on the same text.

#include "common/ensure.h"
#include "common/text/tokenizer.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { REPETITIONS = 5 };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint8_t *slurp(const char *path, size_t *ret_count)
{
    FILE *file = fopen(path, "rb");
    ensure(file && fseek(file, 0, SEEK_END) == 0);
    const long size = ftell(file);
    uint8_t *bytes = malloc((size_t)size + 1);
    rewind(file);
    ensure(bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
    *ret_count = (size_t)size;
    return bytes;
}

static void measure(const tokenizer_t *tokenizer, const uint8_t *text, size_t count,
                    struct token_list *ids)
{
    struct why why = { 0 };
    struct byte_list back = { 0 };
    double encode = 1e9, decode = 1e9;
    for (int i = 0; i < REPETITIONS; i++) {
        encoder_t *encoder = encoder_new(tokenizer);        // With no word remembered
        ensure(encoder);
        ids->count = back.count = 0;
        const double began = seconds();
        if (tokenizer_encode(encoder, text, count, 0, &why, ids) < 0)
            exit(fault_exit(FAULT_FORMAT, &why));
        const double encoded = seconds();
        ensure(tokenizer_decode(tokenizer, ids->ids, ids->count, false, &why, &back) == 0);
        const double decoded = seconds();
        if (encoded - began < encode) encode = encoded - began;
        if (decoded - encoded < decode) decode = decoded - encoded;
        encoder_destroy(&encoder);
    }
    printf("encode %6.1f MB/s, decode %6.1f MB/s, one thread; %zu bytes, %zu tokens\n",
           (double)count / 1e6 / encode, (double)count / 1e6 / decode, count, ids->count);
    byte_list_free(&back);
}

int main(int argc, char **argv)
{
    struct why why = { 0 };
    tokenizer_t *tokenizer = NULL;
    struct token_list ids = { 0 };
    size_t count;
    if (argc < 3) return fputs("tokenizer_bench TOKENIZER TEXT [IDS]\n", stderr), 64;
    const double began = seconds();
    int rc = tokenizer_load(argv[1], &why, &tokenizer);
    if (rc < 0) return fault_exit(rc, &why);
    printf("loaded in %.3f s\n", seconds() - began);
    uint8_t *text = slurp(argv[2], &count);
    measure(tokenizer, text, count, &ids);
    if (argc > 3) {
        FILE *file = fopen(argv[3], "wb");
        ensure(file && fwrite(ids.ids, sizeof *ids.ids, ids.count, file) == ids.count);
        ensure(fclose(file) == 0);
    }
    token_list_free(&ids);
    free(text);
    tokenizer_destroy(&tokenizer);
    return 0;
}
