// shown_command -- words with a character that a shell would take for its own are printed in quotes.

#include "actors/shoal/local/shown_command.h"
#include "common/base/ensure.h"
#include <errno.h>
#include <stdbool.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void shown_command_word(FILE *out, const char *word)
{
    const bool plain = word[strcspn(word, " \t\"'<>|&;()$`\\*?#~")] == 0;
    fputs(plain ? " " : " '", out);
    for (const char *c = word; *c; c++)
        if (*c == '\'') fputs("'\\''", out);
        else fputc(*c, out);
    if (!plain) fputc('\'', out);
}

void shown_command_print(const struct arguments *args)
{
    fputs("$", stderr);
    for (uint32_t i = 0; i < args->count; i++) shown_command_word(stderr, args->list[i]);
    fputs("\n", stderr);
}

int shown_command_run(const struct arguments *args, struct why *why)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;
    char how[100];
    shown_command_print(args);
    fflush(NULL);
    ensure(posix_spawn_file_actions_init(&actions) == 0);
    ensure(posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO) == 0);
    const int error = posix_spawnp(&pid, args->list[0], &actions, NULL, args->list, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error) return why_set(why, FAULT_UNAVAILABLE, "%s: %s", args->list[0], strerror(error));
    while (waitpid(pid, &status, 0) < 0) ensure(errno == EINTR);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    process_print_end(status, how, sizeof how);
    return why_set(why, FAULT_UNAVAILABLE, "the command above %s", how);
}
