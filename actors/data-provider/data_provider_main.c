// shoal-data-provider -- serves a folder of tokenised samples to the trainers of a run. It reads
// data.toml, opens the folder, describes the dataset by its manifest, and then runs as a member;
// the bulk server calls `answer` for each request of samples.

#include "actors/data-provider/data_provider.h"
#include "common/base/log.h"
#include "common/data/source.h"
#include "common/member/member_shell.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct served {
    struct member_options options;
    const char *data_config;
    struct data_config config;
    struct wire_data_source source;
    provider_t *provider;
    uint8_t *description;
    size_t description_bytes;
};

static void init(void *state) { data_provider_init(state); }

static int answer(void *arg, uint64_t position, uint32_t count, uint8_t **ret_bytes,
                  size_t *ret_count, struct why *why)
{
    struct served *self = arg;
    struct proof proof = { 0 };
    int rc = token_files_prove(provider_files(self->provider), position, count, &proof, why);
    if (rc < 0) free(proof.bytes);
    else *ret_bytes = proof.bytes, *ret_count = proof.count;
    return rc;
}

// Makes the description by which trainers check the samples.
static int describe(struct served *self, struct why *why)
{
    const token_files_t *files = provider_files(self->provider);
    return dataset_describe(token_files_samples(files), token_files_manifest(files), why,
                            &self->description, &self->description_bytes);
}

static int open_source(struct served *self, struct why *why)
{
    const struct samples_config samples = { .seq_len = (uint32_t)self->config.seq_len };
    int rc = source_of_data_config(&self->config, why, &self->source);
    const struct hash any = { 0 };
    return rc < 0 ? rc : source_open_folder(&self->source, &samples, &any, why, &self->provider);
}

static const struct flag flags[] = {
    FLAG("data-config", 'd', "FILE", TO_TEXT(struct served, data_config),
         "The data.toml: folder, token size, sequence length, shuffle seed (env DATA_CONFIG)",
         .env = "DATA_CONFIG", .needed = true),
    FLAGS_OF(member_flags, struct served, options),
    { 0 },
};

static const struct command_line line = {
    .flags = flags,
    .about = "Serves tokenised samples, checked against their manifest.\n\n"
             "  shoal prepare-text --out data             makes the files that data.toml names\n"
             "  shoal-data-provider -i secret.key --ticket ticket -d data.toml\n",
};

int main(int argc, char **argv)
{
    static const struct actor actor = { sizeof(struct data_provider), data_provider_step };
    static struct served self = { .options = { MEMBER_DEFAULTS } };
    static struct config_faults faults;
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    if (rc < 0) return fault_exit(rc, &why);
    command_log(&self.options.command, "data-provider");
    rc = config_load_data(self.data_config, &self.config, &faults);
    config_faults_log(&faults);
    if (rc < 0) return fault_exit_code(rc);
    rc = open_source(&self, &why);
    if (rc == 0) rc = describe(&self, &why);
    if (rc < 0) return log_exit(rc, &why);
    struct member_process process = { .actor = &actor,
                                      .init = init,
                                      .answer = answer,
                                      .answer_arg = &self,
                                      .description = self.description,
                                      .description_bytes = self.description_bytes,
                                      .seq_len = provider_seq_len(self.provider),
                                      .samples = provider_count(self.provider),
                                      .data = *provider_digest(self.provider),
                                      .positions = dataset_positions(
                                          token_files_samples(provider_files(self.provider))) };
    int code = member_run(&self.options, &process);
    provider_close(&self.provider);
    free(self.description);
    return code;
}
