// idle_bench -- the memory of a broker and a coordinator before any member has joined: at most 30
// MB each, so that both fit beside anything else on the smallest machine.
//
//     idle_bench [BINDIR]         where the programs lie; default build/bin. Run in the tree's root

#include "common/base/ensure.h"
#include "common/crypto/identity.h"
#include "common/net/curve.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void copy(const char *from, const char *dir, const char *name)
{
    char path[512], bytes[65536];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int in = open(from, O_RDONLY), out = open(path, O_CREAT | O_WRONLY, 0644);
    ssize_t count = in < 0 ? -1 : read(in, bytes, sizeof bytes);
    ensure(out >= 0 && count > 0 && write(out, bytes, (size_t)count) == count);
    close(in), close(out);
}

// Starts a program; its stderr comes back, for the line that says it is ready.
static pid_t start(const char *const argv[], int *ret_err)
{
    int ends[2];
    ensure(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], 2);
        close(ends[0]), close(ends[1]);
        execv(
            argv[0],
            (char *const *)(uintptr_t)argv); // execv changes nothing; its type is older than const
        _exit(69);
    }
    close(ends[1]);
    *ret_err = ends[0];
    return child;
}

static bool wait_for(int err, const char *word)
{
    char text[65536];
    size_t used = 0;
    for (ssize_t count;
         used < sizeof text - 1 && (count = read(err, text + used, sizeof text - 1 - used)) > 0;) {
        used += (size_t)count;
        text[used] = 0;
        if (strstr(text, word)) return true;
    }
    fprintf(stderr, "idle_bench: \"%s\" was never said: %.400s\n", word, used ? text : "(nothing)");
    return false;
}

static void report(const char *name, pid_t pid)
{
    char path[64], line[256];
    long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "VmRSS: %ld", &kib);
    if (file) fclose(file);
    printf("  %-12s %5.1f MB resident   %.2f of the limit of 30 MB\n", name, (double)kib / 1e3,
           (double)kib / 30e3);
}

int main(int argc, char **argv)
{
    const char *bin = argc > 1 ? argv[1] : "build/bin";
    char dir[] = "/tmp/idle-bench.XXXXXX", model[64], state[64], key[64], ledger[64], port[16],
         hex[KEY_HEX], command[128];
    char broker_path[256], coordinator_path[256];
    struct why why = { 0 };
    ensure(mkdtemp(dir));
    snprintf(model, sizeof model, "%s/model", dir);
    snprintf(state, sizeof state, "%s/state.toml", dir);
    snprintf(key, sizeof key, "%s/key", dir);
    snprintf(ledger, sizeof ledger, "%s/ledger", dir);
    snprintf(port, sizeof port, "%d", 20000 + getpid() % 10000);
    snprintf(broker_path, sizeof broker_path, "%s/shoal-broker", bin);
    snprintf(coordinator_path, sizeof coordinator_path, "%s/shoal-coordinator", bin);
    ensure(mkdir(model, 0755) == 0 && identity_create(key, &why) == 0);
    struct identity *identity; // One for both: it is memory that is measured
    ensure(identity_load(key, NULL, &why, &identity) == 0);
    const struct key server = curve_server_key(identity);
    key_to_hex(&server, hex);
    identity_destroy(&identity);
    copy("config/demo/state.toml", dir, "state.toml");
    copy("config/demo/model.json", model, "config.json");
    int broker_err, coordinator_err;
    pid_t broker = start((const char *[]){ broker_path, "-i", key, "-s", port, NULL }, &broker_err);
    bool ok = wait_for(broker_err, "broker.ready");
    pid_t coordinator =
        start((const char *[]){ coordinator_path, "-i", key, "--state", state, "-s", port,
                                "--server-key", hex, "--state-dir", ledger, NULL },
              &coordinator_err);
    ok = ok && wait_for(coordinator_err, "broker.welcome");
    puts("idle, no member has joined");
    if (ok) report("broker", broker), report("coordinator", coordinator);
    kill(coordinator, SIGTERM), kill(broker, SIGTERM);
    waitpid(coordinator, NULL, 0), waitpid(broker, NULL, 0);
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    ensure(system(command) == 0);
    return ok ? 0 : 1;
}
