// Reading takes config.json first, so that a wrong shape is refused before memory is taken. Writing
// goes into a temporary folder beside the new one, which is renamed when everything in it is
// durable: a crash leaves no half model under the final name.
#include "actors/shoal/model/model_folder.h"
#include "common/base/dirfile.h"
#include "common/base/ensure.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/hf_folder.h"
#include "common/crypto/merkle.h"
#include "common/learner/first_state.h"
#include "common/model/genesis.h"
#include "common/model/model_config.h"
#include "common/model/model_tensors.h"
#include "common/text/tokenizer_json.h"
#include <inttypes.h>
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

static int read_small(const char *path, struct why *why, char **ret_text, size_t *ret_count)
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
    text[used] = 0;
    *ret_text = malloc(used + 1); // It may have a zero byte in the middle
    ensure(*ret_text);
    memcpy(*ret_text, text, used + 1);
    *ret_count = used;
    return 0;
}

int model_folder_read_config(const char *path, struct why *why, struct model_shape *ret_shape,
                             char **ret_text)
{
    char *text;
    size_t count;
    int rc = read_small(path, why, &text, &count);
    if (rc < 0) return rc;
    rc = model_shape_from_config_json(text, count, why, ret_shape);
    if (rc == 0) *ret_text = text;
    else free(text);
    return rc < 0 ? why_wrap(why, rc, "%s", path) : 0;
}

int model_folder_read_shape(const char *path, struct why *why, struct model_shape *ret_shape)
{
    char *text;
    int rc = model_folder_read_config(path, why, ret_shape, &text);
    if (rc == 0) free(text);
    return rc;
}

static int fill_layout(struct model_folder *self, struct why *why)
{
    self->tensors = calloc(model_tensor_count(&self->shape), sizeof *self->tensors);
    ensure(self->tensors);
    return model_tensors_layout(&self->shape, self->tensors, why, &self->layout);
}

static int prepare(struct model_folder *self, struct why *why)
{
    self->floats = model_parameter_count(&self->shape);
    return fill_layout(self, why);
}

static int take_params(struct model_folder *self, struct why *why)
{
    self->params = aligned_alloc(64, (self->floats * sizeof(float) + 63) / 64 * 64);
    if (!self->params) return why_set(why, FAULT_MEMORY, "%" PRIu64 " parameters", self->floats);
    return 0;
}

int model_folder_prepare(const char *dir, struct why *why, struct model_folder *ret_model)
{
    char path[PATH_MAX];
    struct model_folder self = { 0 };
    snprintf(path, sizeof path, "%s/config.json", dir);
    int rc = model_folder_read_config(path, why, &self.shape, &self.config);
    if (rc == FAULT_NOT_FOUND && pieces_is_save(dir))
        rc = why_set(
            why, FAULT_USAGE,
            "%s is a save in pieces; first: shoal checkpoint export --save %s --model MODEL "
            "--out OUT",
            dir, dir);
    if (rc == 0) rc = prepare(&self, why);
    if (rc < 0) model_folder_free(&self);
    else *ret_model = self;
    return rc;
}

int model_folder_load(const char *dir, struct why *why, struct model_folder *ret_model)
{
    struct model_folder self;
    int rc = model_folder_prepare(dir, why, &self);
    if (rc < 0) return rc;
    rc = take_params(&self, why);
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
    free(self->config);
    *self = (struct model_folder){ 0 };
}

// ---- writing ------------------------------------------------------------------------------------

// What a new folder gets.
struct contents {
    const char *config;
    const struct layout *layout;
    struct safetensors_source source; // Of the parameters
    uint64_t max_shard_bytes;
    const char *beside;    // Copy the tokenizer files from there; NULL: none
    bool beside_needed;    // ... of which there must be one
    uint32_t byte_seq_len; // Write the byte tokenizer, for texts of this length; 0: none
};

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

static int copy_beside(const char *from, int to, bool needed, struct why *why)
{
    int dir = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    size_t copied = 0;
    if (dir < 0)
        return why_set(why, fault_from_errno(errno), "the tokenizer's folder %s: %s", from,
                       strerror(errno));
    for (size_t i = 0; hf_folder_beside[i] && rc == 0; i++) {
        char *bytes;
        size_t count;
        rc =
            dirfile_slurp(dir, hf_folder_beside[i], true, TOKENIZER_BYTES_MAX, why, &bytes, &count);
        if (rc == FAULT_NOT_FOUND) {
            rc = 0;
            continue;
        }
        if (rc < 0) break;
        rc = write_file(to, hf_folder_beside[i], bytes, count, why);
        free(bytes);
        copied++;
    }
    close(dir);
    if (rc == 0 && needed && copied == 0)
        return why_set(why, FAULT_NOT_FOUND,
                       "the tokenizer's folder %s has no tokenizer.json, nor any other of its "
                       "files",
                       from);
    return rc;
}

static int fill(const char *path, int dir, const struct contents *contents, struct why *why,
                size_t *ret_files)
{
    int rc = write_file(dir, CHECKPOINT_CONFIG, contents->config, strlen(contents->config), why);
    if (rc == 0)
        rc = hf_folder_write_weights(dir, contents->layout, &contents->source, NULL, 0,
                                     contents->max_shard_bytes, why, ret_files);
    if (rc == 0 && contents->beside)
        rc = copy_beside(contents->beside, dir, contents->beside_needed, why);
    if (rc == 0 && contents->byte_seq_len)
        rc = tokenizer_install("bytes", path, contents->byte_seq_len, why);
    if (rc == 0) rc = dirfile_sync_dir(dir, path, why);
    return rc;
}

// NFS and CephFS know no RENAME_NOREPLACE. There an empty folder takes the name first: mkdir fails if somebody else has
// it, and a folder that is renamed replaces an empty one only.
static int rename_new(const char *from, const char *path)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, path, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL) return -1;
    if (mkdir(path, 0755) != 0) return -1;
    if (rename(from, path) == 0) return 0;
    const int error = errno;
    rmdir(path);
    errno = error;
    return -1;
}

// Writes into a folder of another name and renames it when all of it is durable.
static int write_folder(const char *path, const struct contents *contents, struct why *why,
                        size_t *ret_files)
{
    char temporary[PATH_MAX + 32], copy[PATH_MAX];
    snprintf(temporary, sizeof temporary, "%s.tmp-%d", path, (int)getpid());
    if (mkdir(temporary, 0755) != 0)
        return why_set(why, fault_from_errno(errno), "%s: %s", temporary, strerror(errno));
    int dir = open(temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = dir < 0 ? why_set(why, fault_from_errno(errno), "%s: %s", temporary, strerror(errno))
                     : fill(temporary, dir, contents, why, ret_files);
    if (dir >= 0) close(dir);
    snprintf(copy, sizeof copy, "%s", path);
    int parent = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (rc == 0 && rename_new(temporary, path) != 0)
        rc = why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
    if (rc == 0 && parent >= 0) rc = dirfile_sync_dir(parent, path, why);
    if (rc < 0) dirfile_remove(AT_FDCWD, temporary, NULL);
    if (parent >= 0) close(parent);
    return rc;
}

// The path without slashes at its end. FAULT_DENIED if something has that name.
static int new_path(const char *dir, struct why *why, char path[PATH_MAX])
{
    size_t length = strlen(dir);
    while (length > 1 && dir[length - 1] == '/') length--;
    if (length == 0 || length >= PATH_MAX)
        return why_set(why, FAULT_USAGE, "the folder's name has %zu bytes, allowed 1..%d", length,
                       PATH_MAX - 1);
    snprintf(path, PATH_MAX, "%.*s", (int)length, dir);
    if (access(path, F_OK) == 0)
        return why_set(why, FAULT_DENIED,
                       "%s exists; nothing is overwritten: remove it or give another name", path);
    return 0;
}

int model_folder_create(const char *dir, const struct model_genesis *genesis, struct why *why,
                        struct hash *ret_digest)
{
    const struct model_shape *shape = &genesis->shape;
    char path[PATH_MAX];
    size_t files;
    int rc = model_shape_check(shape, why);
    if (rc == 0) rc = new_path(dir, why, path);
    if (rc < 0) return rc;
    struct model_folder model = { .shape = *shape };
    model.config = genesis->config ? model_config_with_dtype(genesis->config, "float32")
                                   : model_shape_to_config_json(shape);
    ensure(model.config);
    rc = prepare(&model, why);
    if (rc == 0) rc = take_params(&model, why);
    if (rc == 0) {
        const bool bytes = !genesis->tokenizer_dir && shape->vocab == TOKENIZER_BYTES_VOCAB;
        genesis_fill(shape, genesis->seed, model.params);
        model.digest = digest_of(model.params, model.floats);
        const struct contents contents = { .config = model.config,
                                           .layout = &model.layout,
                                           .source = safetensors_from_memory(model.params),
                                           .max_shard_bytes = UINT64_MAX,
                                           .beside = genesis->tokenizer_dir,
                                           .beside_needed = true,
                                           .byte_seq_len = bytes ? shape->seq_len_max : 0 };
        rc = write_folder(path, &contents, why, &files);
    }
    if (rc == 0) *ret_digest = model.digest;
    model_folder_free(&model);
    return rc;
}

int model_folder_export(const char *dir, const struct model_folder *model,
                        const struct model_export *how, struct why *why, size_t *ret_files)
{
    static const char *const names[LAYOUT_DTYPES] = {
        [LAYOUT_F32] = "float32",
        [LAYOUT_BF16] = "bfloat16",
        [LAYOUT_F16] = "float16",
    };
    char path[PATH_MAX];
    int rc = new_path(dir, why, path);
    if (rc < 0) return rc;
    struct layout layout;
    struct layout_tensor *tensors = calloc(model->layout.count, sizeof *tensors);
    char *config = model_config_with_dtype(model->config, names[how->dtype]);
    ensure(tensors && config);
    layout_init(&layout, tensors, model->layout.count);
    layout_copy_as(&layout, &model->layout, how->dtype);
    const struct contents contents = { .config = config,
                                       .layout = &layout,
                                       .source = how->source.read
                                                     ? how->source
                                                     : safetensors_from_memory(model->params),
                                       .beside = how->from,
                                       .max_shard_bytes = how->max_shard_bytes };
    rc = write_folder(path, &contents, why, ret_files);
    free(tensors);
    free(config);
    return rc;
}
