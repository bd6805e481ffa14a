// netns -- makes and enters network namespaces with unshare and setns.

#include "tests/live/netns.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int netns_hold(pid_t *ret_holder)
{
    int ready[2];
    char path[64], byte;
    *ret_holder = 0;
    if (pipe2(ready, O_CLOEXEC) != 0) return -1;
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWNET) != 0 || write(ready[1], "y", 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(ready[1]);
    const bool made = pid > 0 && read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    if (pid > 0) *ret_holder = pid;
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
    return made ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

bool netns_run(int netns, const char *line)
{
    char text[256], *args[16], *rest = NULL;
    int count = 0, status;
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok_r(text, " ", &rest); word && count < 15;
         word = strtok_r(NULL, " ", &rest))
        args[count++] = word;
    args[count] = NULL;
    const pid_t pid = fork();
    if (pid == 0) {
        if (netns >= 0 && setns(netns, CLONE_NEWNET) != 0) _exit(125);
        execvp(args[0], args);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}
