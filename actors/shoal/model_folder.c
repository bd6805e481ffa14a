#include "actors/shoal/model_folder.h"
#include "common/crypto/merkle.h"
#include "common/text/tokenizer_json.h"
#include "common/ensure.h"
#include "common/learn/genesis.h"
#include "common/learn/model_config.h"
#include "common/vector/checkpoint.h"
#include "common/vector/dirfile.h"
#include "common/vector/safetensors.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TOKENIZER_BYTES_MAX = 64 << 20 };

// ---- reading ------------------------------------------------------------------------------------

int model_folder_read_shape(const char *path, struct why *why, struct model_shape *ret_shape)
{
    char text[MODEL_CONFIG_BYTES_MAX + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
    size_t used = 0;
    ssize_t count = 1;
    while (used < sizeof text && (count = read(fd, text + used, sizeof text - used)) > 0)
        used += (size_t)count;
    int error = errno;
    close(fd);
    if (count < 0) return why_set(why, FAULT_IO, "%s: %s", path, strerror(error));
    if (used == sizeof text)
        return why_set(why, FAULT_LIMIT, "%s: more than %d bytes", path, MODEL_CONFIG_BYTES_MAX);
    int rc = model_shape_from_config_json(text, used, why, ret_shape);
    return rc < 0 ? why_wrap(why, rc, "%s", path) : 0;
}

static int fill_layout(struct model_folder *self, struct why *why)
{
    uint32_t count = model_tensor_count(&self->shape);
    self->tensors = calloc(count, sizeof *self->tensors);
    ensure(self->tensors);
    layout_init(&self->layout, self->tensors, count);
    for (uint32_t i = 0; i < count; i++) {
        struct model_tensor tensor = model_tensor_at(&self->shape, i);
        int rc = tensor.cols
                     ? layout_add_matrix(&self->layout, tensor.name, tensor.rows, tensor.cols,
                                         LAYOUT_F32, why)
                     : layout_add_vector(&self->layout, tensor.name, tensor.rows, LAYOUT_F32, why);
        if (rc < 0) return rc;
    }
    return 0;
}

// Layout and room for the parameters of self->shape.
static int prepare(struct model_folder *self, struct why *why)
{
    self->floats = model_parameter_count(&self->shape);
    self->params = aligned_alloc(64, (self->floats * sizeof(float) + 63) / 64 * 64);
    if (!self->params)
        return why_set(why, FAULT_MEMORY, "%llu parameters", (unsigned long long)self->floats);
    return fill_layout(self, why);
}

int model_folder_load(const char *dir, struct why *why, struct model_folder *ret_model)
{
    char path[PATH_MAX];
    struct model_folder self = { 0 };
    snprintf(path, sizeof path, "%s/config.json", dir);
    int rc = model_folder_read_shape(path, why, &self.shape);
    if (rc == 0) rc = prepare(&self, why);
    if (rc == 0) rc = hf_folder_load(dir, &self.layout, self.params, why);
    if (rc < 0) {
        model_folder_free(&self);
        return rc;
    }
    self.digest = digest_of(self.params, self.floats);
    *ret_model = self;
    return 0;
}

void model_folder_free(struct model_folder *self)
{
    free(self->params);
    free(self->tensors);
    *self = (struct model_folder){ 0 };
}

// ---- making -------------------------------------------------------------------------------------

static int write_file(int dir, const char *name, const void *bytes, size_t count, struct why *why)
{
    struct dirfile file;
    struct hash hash;
    uint64_t written;
    int rc = dirfile_begin(&file, dir, name, why);
    if (rc < 0) return rc;
    rc = dirfile_add(&file, bytes, count, why);
    if (rc == 0) return dirfile_end(&file, why, &hash, &written);
    dirfile_abandon(&file);
    return rc;
}

static int copy_tokenizer(const char *from, int to, struct why *why)
{
    static const char *const names[] = { "tokenizer.json", "tokenizer_config.json",
                                         "special_tokens_map.json", "generation_config.json" };
    int dir = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    size_t copied = 0;
    if (dir < 0)
        return why_set(why, fault_from_errno(errno), "--tokenizer-dir %s: %s", from,
                       strerror(errno));
    for (size_t i = 0; i < sizeof names / sizeof *names && rc == 0; i++) {
        char *bytes;
        size_t count;
        rc = dirfile_slurp(dir, names[i], true, TOKENIZER_BYTES_MAX, why, &bytes, &count);
        if (rc == FAULT_NOT_FOUND) {
            rc = 0;
            continue;
        }
        if (rc < 0) break;
        rc = write_file(to, names[i], bytes, count, why);
        free(bytes);
        copied++;
    }
    close(dir);
    if (rc == 0 && copied == 0)
        return why_set(why, FAULT_NOT_FOUND,
                       "--tokenizer-dir %s has no tokenizer.json, nor any other of its files",
                       from);
    return rc;
}

static int write_tokenizer(const char *path, int dir, const struct model_genesis *genesis,
                           struct why *why)
{
    if (genesis->tokenizer_dir) return copy_tokenizer(genesis->tokenizer_dir, dir, why);
    return genesis->shape.vocab == TOKENIZER_BYTES_VOCAB
               ? tokenizer_install("bytes", path, genesis->shape.seq_len_max, why)
               : 0;
}

static int fill(const char *path, int dir, const struct model_genesis *genesis, struct why *why,
                struct hash *ret_digest)
{
    struct model_folder model = { .shape = genesis->shape };
    struct hash hash;
    uint64_t bytes;
    char *config = model_shape_to_config_json(&genesis->shape);
    ensure(config);
    int rc = prepare(&model, why);
    if (rc == 0) {
        genesis_fill(&genesis->shape, genesis->seed, model.params);
        *ret_digest = digest_of(model.params, model.floats);
        rc = write_file(dir, CHECKPOINT_CONFIG, config, strlen(config), why);
    }
    if (rc == 0)
        rc = safetensors_write_at(dir, CHECKPOINT_PARAMS, &model.layout, model.params, NULL, 0, why,
                                  &hash, &bytes);
    if (rc == 0) rc = write_tokenizer(path, dir, genesis, why);
    if (rc == 0) rc = dirfile_sync_dir(dir, path, why);
    free(config);
    model_folder_free(&model);
    return rc;
}

// In a folder of another name, which is renamed when all of it is durable.
static int make_beside(const char *temporary, const char *path, const struct model_genesis *genesis,
                       struct why *why, struct hash *ret_digest)
{
    struct hash digest;
    char copy[PATH_MAX];
    if (mkdir(temporary, 0755) != 0)
        return why_set(why, fault_from_errno(errno), "%s: %s", temporary, strerror(errno));
    int dir = open(temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = dir < 0 ? why_set(why, fault_from_errno(errno), "%s: %s", temporary, strerror(errno))
                     : fill(temporary, dir, genesis, why, &digest);
    if (dir >= 0) close(dir);
    snprintf(copy, sizeof copy, "%s", path);
    int parent = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (rc == 0 && renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) != 0)
        rc = why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
    if (rc == 0 && parent >= 0) rc = dirfile_sync_dir(parent, path, why);
    if (rc < 0) dirfile_remove(AT_FDCWD, temporary, NULL);
    if (parent >= 0) close(parent);
    if (rc == 0) *ret_digest = digest;
    return rc;
}

int model_folder_create(const char *dir, const struct model_genesis *genesis, struct why *why,
                        struct hash *ret_digest)
{
    char path[PATH_MAX], temporary[PATH_MAX + 32];
    int rc = model_shape_check(&genesis->shape, why);
    if (rc < 0) return rc;
    size_t length = strlen(dir);
    while (length > 1 && dir[length - 1] == '/') length--;
    if (length == 0 || length >= sizeof path)
        return why_set(why, FAULT_USAGE, "the folder's name has %zu bytes, allowed 1..%zu", length,
                       sizeof path - 1);
    snprintf(path, sizeof path, "%.*s", (int)length, dir);
    if (access(path, F_OK) == 0)
        return why_set(why, FAULT_DENIED,
                       "%s exists; nothing is overwritten: remove it or give another name", path);
    snprintf(temporary, sizeof temporary, "%s.tmp-%d", path, (int)getpid());
    return make_beside(temporary, path, genesis, why, ret_digest);
}
