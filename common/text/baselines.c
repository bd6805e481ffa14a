// baselines -- loads both parts, counts the one, scores the other.

#include "common/text/baselines.h"
#include "common/base/json_file.h"
#include "common/data/token_dir.h"
#include "common/text/text_tokens.h"
#include <stdlib.h>

enum { JSON_BYTES_MAX = 4096 };

static int load_part(const char *dir, const char *file, struct why *why, uint8_t **ret_bytes,
                     size_t *ret_count)
{
    char *path = token_dir_path(dir, file);
    if (!path) return why_set(why, FAULT_MEMORY, "a path in %s", dir);
    const int rc = text_tokens_load(path, BASELINES_TEXT_MAX, why, ret_bytes, ret_count);
    free(path);
    return rc;
}

int baselines_make(const char *dir, struct why *why, double ret_nats[NGRAM_ORDERS])
{
    ngram_t *ngram = NULL;
    uint8_t *train = NULL, *heldout = NULL;
    size_t train_count = 0, heldout_count = 0;
    int rc = load_part(dir, "train/train.bin", why, &train, &train_count);
    if (rc == 0) rc = load_part(dir, "heldout/heldout.bin", why, &heldout, &heldout_count);
    if (rc == 0) rc = ngram_new(why, &ngram);
    if (rc == 0) rc = ngram_fit(ngram, train, train_count, why);
    if (rc == 0) ngram_score(ngram, heldout, heldout_count, ret_nats);
    ngram_destroy(&ngram);
    free(train);
    free(heldout);
    if (rc < 0) return rc;
    json_t *json = json_pack("{s:s, s:I, s:I, s:[f, f, f]}", "unit", "nats per byte", "train_bytes",
                             (json_int_t)train_count, "heldout_bytes", (json_int_t)heldout_count,
                             "nats", ret_nats[0], ret_nats[1], ret_nats[2]);
    return json_file_write(dir, "baselines.json", json, JSON_BYTES_MAX, why);
}
