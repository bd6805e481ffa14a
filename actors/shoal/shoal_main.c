// shoal -- finds the command by its name and calls it; for an unknown name it suggests the nearest.

#include "actors/shoal/shoal.h"
#include "common/actor/command.h"
#include "common/base/nearest.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *does;
} commands[] = {
    { "demo", shoal_demo, "four trainers learn English here; two kills, same bits" },
    { "init", shoal_init, "a run in a new folder, from your text: everything it needs" },
    { "up", shoal_up, "start that run, and print the ticket for others" },
    { "join", shoal_join, "take part in a run with its ticket" },
    { "doctor", shoal_doctor, "will the actors of this machine find what they need?" },
    { "testnet", shoal_testnet, "start: a whole run of child processes on this machine" },
    { "status", shoal_status, "where a run stands, live or from a ledger" },
    { "pause", shoal_pause, "the run rests at the end of the round" },
    { "resume", shoal_resume, "the run goes on" },
    { "checkpoint", shoal_checkpoint,
      "have one written; show, verify, export: of a save in pieces" },
    { "restore", shoal_restore, "go back to a checkpoint or save: all later steps are lost" },
    { "validate-config", shoal_validate_config,
      "every fault of a state.toml and data.toml at once" },
    { "explain", shoal_explain, "what a setting means, or the whole annotated file" },
    { "new-identity", shoal_new_identity, "make a secret key" },
    { "show-identity", shoal_show_identity, "its public key and the names it goes by" },
    { "invite", shoal_invite, "a ticket for somebody else: broker, its key, run, invitation" },
    { "init-model", shoal_init_model, "a model to begin a run with, from a seed" },
    { "prepare-text", shoal_prepare_text, "text to tokens, a part held out, and baselines" },
    { "train-tokenizer", shoal_train_tokenizer, "a tokenizer.json from text" },
    { "tokenize", shoal_tokenize, "text, JSONL or folders to token files, by a tokenizer.json" },
    { "manifest", shoal_manifest, "hashes of token files, by which samples are checked" },
    { "train", shoal_train, "one trainer alone: find a learning rate, make a small model" },
    { "plot", shoal_plot, "a picture of a training: loss, learning rate, tokens/s" },
    { "eval", shoal_eval, "loss of a model on held-out tokens" },
    { "sample", shoal_sample, "text from a model" },
    { "export", shoal_export, "a model for other tools: bf16, f16 or f32, one file or several" },
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int help(FILE *out)
{
    fprintf(out, "Many strangers, one model.\n\n"
                 "  shoal demo                                                 see it work\n"
                 "  shoal status --ticket shoal-demo/run/ticket                where it stands\n\n"
                 "Commands:\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-16s %s\n", commands[i].name, commands[i].does);
    fprintf(out,
            "\n`shoal COMMAND --help` tells more. Actors are programs of their own (shoal-broker,\n"
            "shoal-coordinator, shoal-trainer ...); zmq-monitor shows what they say.\n");
    return EX_OK;
}

static int unknown(const char *name)
{
    struct nearest near = { .wanted = name };
    for (int i = 0; i < COMMANDS; i++)
        nearest_offer(&near, commands[i].name, strlen(commands[i].name));
    if (near.best[0])
        fprintf(stderr, "shoal: no command \"%.60s\"; did you mean %s?\n", name, near.best);
    else fprintf(stderr, "shoal: no command \"%.60s\"; `shoal --help` lists them\n", name);
    return EX_USAGE;
}

// A text of which a part could not be written is no success: a ticket in a file on a full disk, say.
static int check_output(int code)
{
    struct why why = { 0 };
    const bool flushed = fflush(stdout) == 0;
    if (code != EX_OK || (flushed && !ferror(stdout))) return code;
    why_set(&why, FAULT_IO, "standard output: %s",
            flushed ? "not all of it could be written" : strerror(errno));
    return fault_exit(FAULT_IO, &why);
}

int main(int argc, char **argv)
{
    static char name[64];
    if (argc < 2) return help(stderr), EX_USAGE;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0)
        return check_output(help(stdout));
    if (strcmp(argv[1], "--version") == 0) return puts("shoal " SHOAL_VERSION), check_output(EX_OK);
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) != 0) continue;
        snprintf(name, sizeof name, "shoal %s", commands[i].name);
        argv[1] = name;
        return check_output(commands[i].run(argc - 1, argv + 1));
    }
    return unknown(argv[1]);
}
