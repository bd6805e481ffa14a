// demo_setup -- prepares the demo's folder, in this order: read the shape of the model, empty the
// folder (only if a demo made it), get and tokenize the text, make the genesis model, then write
// data.toml and state.toml. So a configuration without a model leaves an earlier demo as it is. The
// two files come last: state.toml has the digests of the dataset that was just tokenized and of the
// model that was just made. Both are templates of config/demo in which only these keys are set: the
// folder of the samples, the digests of dataset and model, the folder of the model (toml_edit).

#include "actors/shoal/local/demo_setup.h"
#include "actors/shoal/model/model_folder.h"
#include "actors/shoal/local/run_files.h"
#include "common/base/dirfile.h"
#include "common/base/durable_file.h"
#include "common/base/folder.h"
#include "common/data/manifest.h"
#include <inttypes.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARKER ".shoal-demo"
enum { CONFIG_BYTES_MAX = 1 << 20, DIR_BYTES_MAX = 160 };

int demo_find_config(const char *given, char ret_dir[PATH_MAX], struct why *why)
{
    static const char *const beside[] = { "../../config/demo", "../share/shoal/config/demo",
                                          "../share/shoal/demo", "../etc/shoal/demo",
                                          "../../etc/shoal/demo" };
    char own[PATH_MAX] = "", path[2 * PATH_MAX];
    if (given) {
        if (realpath(given, ret_dir)) return 0;
        return why_set(why, fault_from_errno(errno), "--config-path %s: %s", given,
                       strerror(errno));
    }
    if (access("config/demo/model.json", R_OK) == 0 && realpath("config/demo", ret_dir)) return 0;
    if (readlink("/proc/self/exe", own, sizeof own - 1) > 0 && strrchr(own, '/'))
        *strrchr(own, '/') = 0;
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        snprintf(path, sizeof path, "%s/%s/model.json", own, beside[i]);
        if (access(path, R_OK) != 0) continue;
        *strrchr(path, '/') = 0;
        if (realpath(path, ret_dir)) return 0;
    }
    return why_set(why, FAULT_NOT_FOUND,
                   "config/demo is neither here nor beside %s; give --config-path", own);
}

// ---- the folder ---------------------------------------------------------------------------------

// The marker stays: if the emptying is interrupted, the next demo may go on with it.
static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status, (void)type;
    const bool is_marker = at->level == 1 && strcmp(path + at->base, MARKER) == 0;
    return at->level == 0 || is_marker ? 0 : remove(path);
}

static int empty_folder(const char *dir, struct why *why)
{
    if (nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0) return 0;
    return why_set(why, fault_from_errno(errno), "%s: cannot be emptied: %s", dir, strerror(errno));
}

// FAULT_DENIED if anything is in it.
static int check_is_empty(const char *path, struct why *why)
{
    DIR *dir = opendir(path);
    const struct dirent *entry = NULL;
    if (!dir) return why_set(why, fault_from_errno(errno), "%s: %s", path, strerror(errno));
    errno = 0;
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) break;
    const int error = errno;
    closedir(dir);
    if (entry)
        return why_set(why, FAULT_DENIED, "%s is not empty and no demo made it; give another --dir",
                       path);
    return error ? why_set(why, fault_from_errno(error), "%s: %s", path, strerror(error)) : 0;
}

// Empties an earlier demo's folder. A folder without the marker is used only if it is empty.
static int open_folder(struct demo_setup *self, const char *dir, struct why *why)
{
    char marker[PATH_MAX + 32];
    int rc = folder_resolve(dir, DIR_BYTES_MAX, self->dir, why);
    if (rc < 0) return rc;
    if (strpbrk(self->dir, "\"\\"))
        return why_set(why, FAULT_USAGE,
                       "--dir %s: no quotes or backslashes: the demo writes it into a TOML file",
                       self->dir);
    snprintf(marker, sizeof marker, "%s/" MARKER, self->dir);
    rc = access(marker, F_OK) == 0 ? empty_folder(self->dir, why) : check_is_empty(self->dir, why);
    if (rc < 0) return rc;
    const int fd = open(marker, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return why_set(why, fault_from_errno(errno), "%s: %s", marker, strerror(errno));
    close(fd);
    return 0;
}

// ---- the configuration --------------------------------------------------------------------------

static int read_template(const struct demo_setup *self, const char *name, struct why *why,
                         char **ret_text)
{
    size_t count;
    int dir = open(self->config_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return why_set(why, fault_from_errno(errno), "%s: %s", self->config_dir, strerror(errno));
    int rc = dirfile_slurp(dir, name, true, CONFIG_BYTES_MAX, why, ret_text, &count);
    close(dir);
    return rc < 0 ? why_wrap(why, rc, "%s", self->config_dir) : 0;
}

// The beginning of the text, so many samples long, as a dataset of its own.
static int write_pass(const struct demo_setup *self, uint64_t samples, struct why *why)
{
    char from[PATH_MAX + 32], to[PATH_MAX + 32], *bytes = NULL;
    const size_t wanted = (samples * self->shape.seq_len_max + 1) * 2; // Two bytes a token
    snprintf(from, sizeof from, "%s/text/train/train.bin", self->dir);
    snprintf(to, sizeof to, "%s/text/pass", self->dir);
    int rc = folder_make(to, 0755, why);
    if (rc < 0) return rc;
    FILE *file = fopen(from, "re");
    if (file) bytes = malloc(wanted);
    const bool is_read = bytes && fread(bytes, 1, wanted, file) == wanted;
    if (!is_read) rc = why_set(why, FAULT_NOT_FOUND, "%s: has not %zu bytes", from, wanted);
    if (file) fclose(file);
    if (rc == 0) rc = durable_file_write(to, "train.bin", bytes, wanted, why);
    struct manifest manifest = { 0 };
    if (rc == 0) rc = manifest_build(to, 2, why, &manifest);
    if (rc == 0) rc = manifest_write(&manifest, to, why);
    manifest_free(&manifest);
    free(bytes);
    return rc;
}

static int write_data(struct demo_setup *self, const struct demo_place *place, struct why *why)
{
    const char *dir = place->pass_samples ? "\"text/pass\"" : "\"text/train\"";
    char *text = NULL;
    int rc = place->pass_samples ? write_pass(self, place->pass_samples, why) : 0;
    if (rc == 0) rc = read_template(self, "data.toml", why, &text);
    if (rc == 0) rc = run_files_set(&text, "", "dir", dir, why);
    if (rc == 0) rc = durable_file_write(self->dir, "data.toml", text, strlen(text), why);
    free(text);
    return rc;
}

// Makes the folder of the saves, and names it in the text.
static int set_saves(const struct demo_setup *self, char **text, struct why *why)
{
    char path[PATH_MAX + 16], value[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/saves", self->dir);
    snprintf(value, sizeof value, "\"%s\"", path);
    const int rc = folder_make(path, 0755, why);
    return rc < 0 ? rc : run_files_set(text, "checkpoint", "shared_dir", value, why);
}

static int write_state(struct demo_setup *self, const struct demo_place *place, struct why *why)
{
    char hex[HASH_HEX], model[HASH_HEX + 2], data[HASH_HEX + 2], *text = NULL;
    char path[PATH_MAX + 32];
    struct hash dataset;
    snprintf(model, sizeof model, "\"%s\"", hash_to_hex(&self->genesis, hex));
    snprintf(path, sizeof path, "%s/data.toml", self->dir);
    int rc = run_files_dataset(path, why, &dataset);
    if (rc == 0) rc = read_template(self, place->settings, why, &text);
    if (rc < 0) return rc;
    snprintf(data, sizeof data, "\"%s\"", hash_to_hex(&dataset, hex));
    rc = run_files_set(&text, "model", "digest", model, why);
    if (rc == 0) rc = run_files_set(&text, "data", "dataset_digest", data, why);
    if (rc == 0) rc = run_files_set(&text, "model.LLM.checkpoint.Hub", "repo_id", "\"model\"", why);
    if (rc == 0 && place->saves) rc = set_saves(self, &text, why);
    if (rc == 0) rc = durable_file_write(self->dir, "state.toml", text, strlen(text), why);
    free(text);
    return rc;
}

static int load_state(struct demo_setup *self, struct why *why)
{
    static struct config_faults faults;
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/state.toml", self->dir);
    int rc = config_load_run(path, &self->config, &faults);
    config_faults_print(&faults, stderr);
    return rc < 0 ? why_set(why, rc, "%s is refused (see above)", path) : 0;
}

// ---- all of it ----------------------------------------------------------------------------------

static int make_model(struct demo_setup *self, uint64_t seed, struct why *why)
{
    char path[PATH_MAX + 32], tokenizer[PATH_MAX + 32];
    snprintf(tokenizer, sizeof tokenizer, "%s/text", self->dir);
    snprintf(path, sizeof path, "%s/model", self->dir);
    struct model_genesis genesis = { .shape = self->shape,
                                     .seed = seed,
                                     .tokenizer_dir = tokenizer };
    return model_folder_create(path, &genesis, why, &self->genesis);
}

int demo_set_up(struct demo_setup *self, const struct demo_place *place, demo_text_say *say,
                void *context, struct why *why)
{
    char path[PATH_MAX + 32], line[200];
    int rc = demo_find_config(place->config_dir, self->config_dir, why);
    snprintf(path, sizeof path, "%s/model.json", self->config_dir);
    if (rc == 0) rc = model_folder_read_shape(path, why, &self->shape);
    if (rc == 0) rc = open_folder(self, place->dir, why);
    snprintf(path, sizeof path, "%s/text", self->dir);
    if (rc == 0)
        rc = demo_text_prepare(path, NULL, self->shape.seq_len_max, say, context, why, &self->text);
    if (rc < 0) return rc;
    snprintf(line, sizeof line,
             "text: %.2f MB to train on, %.2f MB held out; guessed by counting: order 0 %.3f, "
             "order 1 %.3f, order 2 %.3f nats per byte",
             (double)self->text.train_bytes / 1e6, (double)self->text.heldout_bytes / 1e6,
             self->text.nats[0], self->text.nats[1], self->text.nats[2]);
    say(context, line);
    rc = make_model(self, place->seed, why);
    if (rc == 0) rc = write_data(self, place, why);
    if (rc == 0) rc = write_state(self, place, why);
    if (rc == 0) rc = load_state(self, why);
    if (rc < 0) return rc;
    snprintf(line, sizeof line,
             "model: a Llama of %.2f M parameters, %u layers, from seed %" PRIu64,
             (double)model_parameter_count(&self->shape) / 1e6, self->shape.layers, place->seed);
    say(context, line);
    return 0;
}
