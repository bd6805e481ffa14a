// tokenizer_path -- a tokenizer by its path: load reads it, install puts its files into a folder. A
// path is a file, a folder that has tokenizer.json, or the word "bytes".

#include "common/base/durable_file.h"
#include "common/data/token_dir.h"
#include "common/text/tokenizer_json.h"
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

// The whole of a file; the caller frees it.
static int slurp(const char *path, struct why *why, char **ret_text, size_t *ret_count)
{
    int fd;
    uint64_t bytes;
    int rc = token_dir_open(path, why, &fd, &bytes);
    if (rc < 0) return rc;
    char *text = bytes <= TOKENIZER_FILE_MAX ? malloc((size_t)bytes + 1) : NULL;
    if (bytes > TOKENIZER_FILE_MAX)
        rc = why_set(why, FAULT_LIMIT, "%s has %" PRIu64 " bytes, allowed are %d; refused", path,
                     bytes, TOKENIZER_FILE_MAX);
    else if (!text) rc = why_set(why, FAULT_MEMORY, "%s", path);
    if (rc == 0) rc = token_dir_read(fd, path, 0, (size_t)bytes, text, why);
    close(fd);
    if (rc < 0) {
        free(text);
        return rc;
    }
    *ret_text = text;
    *ret_count = (size_t)bytes;
    return 0;
}

int tokenizer_load(const char *path, struct why *why, tokenizer_t **ret_self)
{
    char *text = NULL;
    size_t count = 0;
    if (strcmp(path, "bytes") == 0) return tokenizer_new_bytes(why, ret_self);
    char *file = is_folder(path) ? token_dir_path(path, "tokenizer.json") : strdup(path);
    int rc = file ? slurp(file, why, &text, &count) : why_set(why, FAULT_MEMORY, "a path");
    if (rc == 0) rc = tokenizer_read(file, text, count, why, ret_self);
    free(text);
    free(file);
    return rc;
}

static int copy_file(const char *from, const char *dir, const char *name, struct why *why)
{
    char *text;
    size_t count;
    int rc = slurp(from, why, &text, &count);
    if (rc < 0) return rc;
    rc = durable_file_write(dir, name, text, count, why);
    free(text);
    return rc;
}

// A file beside tokenizer.json; FAULT_NOT_FOUND if there is none.
static int copy_beside(const char *folder, const char *dir, const char *name, struct why *why)
{
    char *from = token_dir_path(folder, name);
    if (!from) return why_set(why, FAULT_MEMORY, "a path");
    int rc = access(from, F_OK) == 0 ? copy_file(from, dir, name, why) : FAULT_NOT_FOUND;
    free(from);
    return rc;
}

static int write_bytes(const char *dir, const struct tokenizer_config *config, struct why *why)
{
    tokenizer_t *tokenizer;
    int rc = tokenizer_new_bytes(why, &tokenizer);
    if (rc < 0) return rc;
    rc = tokenizer_write(tokenizer, dir, config, why);
    tokenizer_destroy(&tokenizer);
    return rc;
}

int tokenizer_install(const char *path, const char *dir, uint32_t seq_len, struct why *why)
{
    const struct tokenizer_config config = { .seq_len = seq_len };
    char folder[PATH_MAX];
    tokenizer_t *tokenizer;
    if (strcmp(path, "bytes") == 0) return write_bytes(dir, &config, why);
    snprintf(folder, sizeof folder, "%s", path);
    const char *beside = is_folder(path) ? folder : dirname(folder);
    char *file = is_folder(path) ? token_dir_path(path, "tokenizer.json") : strdup(path);
    int rc =
        file ? copy_file(file, dir, "tokenizer.json", why) : why_set(why, FAULT_MEMORY, "a path");
    free(file);
    if (rc < 0) return rc;
    rc = copy_beside(beside, dir, "special_tokens_map.json", why);
    if (rc < 0 && rc != FAULT_NOT_FOUND) return rc;
    rc = copy_beside(beside, dir, "tokenizer_config.json", why);
    if (rc != FAULT_NOT_FOUND) return rc;
    rc = tokenizer_load(path, why, &tokenizer);
    if (rc < 0) return rc;
    rc = tokenizer_write_config(tokenizer, dir, &config, why);
    tokenizer_destroy(&tokenizer);
    return rc;
}
