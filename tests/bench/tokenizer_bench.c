// tokenizer_bench -- how fast one thread encodes a text, and decodes it again; best of three.
//
//     tokenizer_bench                          on the demo's text, with a tokenizer made from it
//     tokenizer_bench TOKENIZER TEXT [IDS]     writes the ids, 4 bytes each, to IDS
//
// The yardstick is Hugging Face's `tokenizers` on the same text: tests/peers/tokenizer_test.sh.

#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/text/bpe_train.h"
#include "common/text/demo_text.h"
#include "common/text/text_tokens.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { REPETITIONS = 3, VOCAB = 8192, TEXT_MAX = 64 << 20 };

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
        encoder_t *encoder = encoder_new(tokenizer); // With no word remembered
        ensure(encoder);
        ids->count = back.count = 0;
        const double began = clock_s();
        if (tokenizer_encode(encoder, text, count, 0, &why, ids) < 0)
            exit(fault_exit(FAULT_FORMAT, &why));
        const double encoded = clock_s();
        ensure(tokenizer_decode(tokenizer, ids->ids, ids->count, false, &why, &back) == 0);
        const double decoded = clock_s();
        if (encoded - began < encode) encode = encoded - began;
        if (decoded - encoded < decode) decode = decoded - encoded;
        encoder_destroy(&encoder);
    }
    printf("encode %6.1f MB/s, decode %6.1f MB/s, one thread; %zu bytes, %zu tokens\n",
           (double)count / 1e6 / encode, (double)count / 1e6 / decode, count, ids->count);
    byte_list_free(&back);
}

// The demo's text, and a tokenizer made from it.
static int make_both(struct why *why, uint8_t **ret_text, size_t *ret_count, tokenizer_t **ret)
{
    char dir[] = P_tmpdir "/shoal-bench-XXXXXX", path[PATH_MAX];
    const struct bpe_train_options options = { .pretokenizer = { .count = 1,
                                                                 .chain = { PRETOKENIZE_CL100K } },
                                               .vocab_size = VOCAB,
                                               .workers = 1 };
    struct demo_text_result made;
    struct bpe_train_result result;
    bpe_train_t *train = NULL;
    ensure(mkdtemp(dir));
    int rc = demo_text_prepare(dir, NULL, 128, NULL, NULL, why, &made);
    snprintf(path, sizeof path, "%s/train/train.bin", dir);
    if (rc == 0) rc = text_tokens_load(path, TEXT_MAX, why, ret_text, ret_count);
    snprintf(path, sizeof path, "rm -rf %s", dir);
    ensure(system(path) == 0);
    const double began = clock_s();
    if (rc == 0) rc = bpe_train_new(&options, why, &train);
    if (rc == 0) bpe_train_add(train, 0, *ret_text, *ret_count, 0);
    if (rc == 0) rc = bpe_train_finish(train, NULL, NULL, why, ret, &result);
    if (rc == 0) printf("trained %d tokens in %.2f s, one thread\n", VOCAB, clock_s() - began);
    bpe_train_destroy(&train);
    return rc;
}

int main(int argc, char **argv)
{
    struct why why = { 0 };
    tokenizer_t *tokenizer = NULL;
    struct token_list ids = { 0 };
    uint8_t *text = NULL;
    size_t count = 0;
    if (argc == 2) return fputs("tokenizer_bench [TOKENIZER TEXT [IDS]]\n", stderr), 64;
    const double began = clock_s();
    int rc = argc == 1 ? make_both(&why, &text, &count, &tokenizer)
                       : tokenizer_load(argv[1], &why, &tokenizer);
    if (rc < 0) return fault_exit(rc, &why);
    if (argc > 2) {
        printf("loaded in %.3f s\n", clock_s() - began);
        text = slurp(argv[2], &count);
    }
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
