// shoal-data-provider -- serves a folder of tokenised samples to the trainers of a run.

#include "actors/data-provider/data_provider.h"
#include "actors/member/member_shell.h"
#include "common/config/data_config.h"
#include "common/config/run_config.h"
#include "common/data/provider.h"
#include <stdio.h>
#include <string.h>

struct served {
    struct member_options options;      // First: argp's children know nothing of the rest
    const char *data_config;
    struct data_config config;
    char dir[512];
    provider_t *provider;
};

static void init(void *state) { data_provider_init(state); }

static int read_samples(void *arg, uint64_t position, uint32_t count, uint32_t *tokens,
                        struct why *why)
{
    return provider_read(arg, position, count, tokens, why);
}

static int open_source(struct served *self, struct why *why)
{
    int rc = config_resolve(&self->config.origin, self->config.dir, self->dir, sizeof self->dir);
    struct samples_config samples = { .token_bytes = config_token_bytes(self->config.token_size),
                                      .seq_len = (uint32_t)self->config.seq_len, .shuffled = true };
    memcpy(samples.seed, self->config.shuffle_seed, sizeof samples.seed);
    return rc < 0 ? rc : provider_open_local(self->dir, &samples, why, &self->provider);
}

static const struct argp_option options[] = {
    { "data-config", 'd', "FILE", 0,
      "The data.toml: folder, token size, sequence length, shuffle seed "
      "(env DATA_CONFIG)",
      0 },
    { 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct served *self = state->input;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = &self->options;
        self->data_config = command_env("DATA_CONFIG");
    } else if (key == 'd') self->data_config = arg;
    else if (key == ARGP_KEY_END && !self->data_config)
        argp_error(state, "--data-config FILE is needed");
    else return ARGP_ERR_UNKNOWN;
    return 0;
}

int main(int argc, char **argv)
{
    static const struct actor actor = { "data-provider", sizeof(struct data_provider),
                                        data_provider_step };
    static const struct argp_child children[] = { { &member_argp, 0, NULL, 1 }, { 0 } };
    static const struct argp argp = {
        options,
        parse,
        NULL,
        "Serves tokenised samples, checked against their manifest.\n\n"
        "  shoal-data-provider -i secret.key --ticket ticket -d "
        "config/demo/data.toml\n"
        "  shoal prepare-text --out data             makes the files\n",
        children,
        NULL,
        NULL
    };
    static struct served self;
    static struct config_faults faults;
    struct why why = { 0 };
    argp_parse(&argp, argc, argv, 0, NULL, &self);
    int rc = config_load_data(self.data_config, &self.config, &faults);
    config_faults_print(&faults, stderr);
    if (rc < 0) return fault_exit_code(rc);
    rc = open_source(&self, &why);
    if (rc < 0) return fault_exit(rc, &why);
    struct member_process process = { .actor = &actor,
                                      .init = init,
                                      .read = read_samples,
                                      .read_arg = self.provider,
                                      .seq_len = provider_seq_len(self.provider),
                                      .samples = provider_count(self.provider) };
    const struct hash *digest = provider_digest(self.provider);
    if (digest) process.data = *digest;
    int code = member_run(&self.options, &process);
    provider_close(&self.provider);
    return code;
}
