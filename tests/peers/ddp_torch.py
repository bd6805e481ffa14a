#!/usr/bin/env python3
"""ddp_torch -- trainers that sum their gradients, one trainer alone, and PyTorch's DDP, in turns.

    ddp_torch.py BUILD [--members N] [--batch N] [--model 8m|32m] [--precision float32|bf16]
                       [--turns N] [--seconds S] [--mbit N] [--servers N]

The same model, batch, precision, AdamW and clip:
    alone     one trainer with a thread for each processor (shoal train, eight lanes)
    group     N trainers of one thread, as in a window of the strategy allreduce (tests/bench/ddp_bench)
    group at M Mbit/s, with --mbit M: the same, when each trainer sends at most so much
    S servers, with --servers S: the same trainers, and S parameter servers that hold the moments
    DDP ...   N processes of PyTorch of one thread, DistributedDataParallel over gloo: its gradients in
              the buckets, a static graph, fused AdamW, tcmalloc if it is there; eager with buckets of
              two sizes, and compiled
Each turn lasts about S seconds. Printed are the medians of tokens a second, by the clock and by the
processor time of all processes, which neighbours on the machine do not change; and the ratios, as
medians of those of each turn. Ours end in one digest, which is compared. Without PyTorch that part is
left out, with a word.
"""
import argparse
import glob
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from train_torch import MODELS, torch_model  # noqa: E402

VARIANTS = (("eager", 25), ("eager", 5), ("compiled", 25))  # MB of a bucket
TCMALLOC = glob.glob("/usr/lib/*/libtcmalloc*.so.4")


# ---- PyTorch, a process for each rank

def rank_serve(name, precision, batch, kind, bucket, rank, world, meeting):
    import torch
    import torch.distributed
    from torch.nn.parallel import DistributedDataParallel
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank,
                                         world_size=world)
    shape = MODELS[name]
    compiled = kind == "compiled"
    # A compiled DDP takes no static graph.
    model = DistributedDataParallel(torch_model(shape), gradient_as_bucket_view=True,
                                    static_graph=not compiled, bucket_cap_mb=bucket)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, betas=(0.9, 0.95), eps=1e-8,
                                  weight_decay=0.1, fused=True)
    forward = torch.compile(model) if compiled else model
    tokens = torch.arange(batch // world * (shape["seq"] + 1)).add(rank).mul(7919)
    tokens = tokens.remainder(shape["vocab"]).view(batch // world, -1)

    def step():
        model.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = forward(tokens)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    step(), step(), step()
    print(torch.__version__, flush=True)
    for line in sys.stdin:
        used = time.process_time()
        for _ in range(int(line)):
            step()
        print(f"{time.process_time() - used:.6f}", flush=True)
    torch.distributed.destroy_process_group()


# ---- turns

class Processes:
    """One or several processes that take a step together."""

    def __init__(self, commands, environment=None):
        self.all = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True, env=environment)
                    for command in commands]

    def first_line(self):
        lines = [process.stdout.readline().strip() for process in self.all]
        if all(lines):
            return lines[0], None
        reasons = [process.communicate()[1].strip().splitlines() for process in self.all]
        return None, next((reason[-1] for reason in reasons if reason), "it ended")

    def turn(self, steps):
        """Seconds by the clock, and processor seconds of all."""
        began = time.perf_counter()
        for process in self.all:
            process.stdin.write(f"{steps}\n")
            process.stdin.flush()
        answers = [process.stdout.readline().split() for process in self.all]
        return time.perf_counter() - began, sum(float(answer[-1]) for answer in answers)

    def end(self):
        for process in self.all:
            process.stdin.close()
        rest = [process.stdout.read() for process in self.all]
        for process in self.all:
            process.wait()
        return rest[0].strip()


class Runner:
    def __init__(self, label, processes, tokens):
        self.label, self.processes, self.tokens = label, processes, tokens
        self.rates, self.by_processor, self.steps = [], [], 1

    def begin(self, seconds):
        self.first, reason = self.processes.first_line()
        if reason:
            print(f"  {self.label}: left out: {reason}", flush=True)
            return False
        self.processes.turn(1)
        self.steps = max(2, round(seconds / self.processes.turn(2)[0] * 2))
        return True

    def turn(self):
        wall, processor = self.processes.turn(self.steps)
        self.rates.append(self.tokens * self.steps / wall)
        self.by_processor.append(self.tokens * self.steps / processor)


def ours(options, *words):
    return Processes([[f"{options.build}/bench/ddp_bench", options.model, options.precision,
                       str(options.batch), *words]])


def torch_ddp(options, kind, bucket, folder):
    environment = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
    if TCMALLOC:
        environment["LD_PRELOAD"] = TCMALLOC[0]
    meeting = os.path.join(folder, f"{kind}-{bucket}")
    return Processes([[sys.executable, os.path.abspath(__file__), "--rank", options.model,
                       options.precision, str(options.batch), kind, str(bucket), str(rank),
                       str(options.members), meeting] for rank in range(options.members)],
                     environment)


def ratio(over, under, what):
    return statistics.median(a / b for a, b in zip(getattr(over, what), getattr(under, what)))


def report(runners, options):
    by_label = {runner.label: runner for runner in runners}
    group = by_label["group"]
    for runner in runners:
        print(f"  {runner.label:22} {statistics.median(runner.rates):8.0f} tokens/s"
              f"  ({min(runner.rates):.0f} to {max(runner.rates):.0f})"
              f"  {statistics.median(runner.by_processor):8.0f} a processor second", end="")
        if runner is not group:
            print(f"   group is {ratio(group, runner, 'rates'):.2f} times that,"
                  f" {ratio(group, runner, 'by_processor'):.2f} by processor time", end="")
        print(flush=True)
    print(f"  medians of {options.turns} turns; load of the machine {os.getloadavg()[0]:.1f}")


def compare(options, folder):
    tokens = options.batch * MODELS[options.model]["seq"]
    runners = [Runner("alone", ours(options, "alone", str(os.cpu_count())), tokens),
               Runner("group", ours(options, "group", str(options.members)), tokens)]
    if options.mbit:
        runners.append(Runner(f"group at {options.mbit} Mbit/s",
                              ours(options, "group", str(options.members), str(options.mbit)),
                              tokens))
    if options.servers:
        runners.append(Runner(f"{options.servers} servers",
                              ours(options, "servers", str(options.members), str(options.servers)),
                              tokens))
    for kind, bucket in VARIANTS:
        runners.append(Runner(f"DDP {kind} {bucket} MB",
                              torch_ddp(options, kind, bucket, folder), tokens))
    runners = [runner for runner in runners if runner.begin(options.seconds)]
    for _ in range(options.turns):
        for runner in runners:
            runner.turn()
    versions = [runner.first for runner in runners if runner.label.startswith("DDP")]
    print(f"{options.model} {options.precision}, batch {options.batch} of {MODELS[options.model]['seq']}"
          f" tokens, {options.members} trainers of one thread, PyTorch"
          f" {versions[0] if versions else 'absent'}"
          f"{'' if not versions else ' with tcmalloc' if TCMALLOC else ', no tcmalloc'}", flush=True)
    report(runners, options)
    same_steps(runners)


def same_steps(runners):
    """Ours in one state, once all have taken as many steps."""
    runners = [runner for runner in runners
               if runner.label.split()[-1] in ("alone", "group", "servers")]
    taken = [3 + len(runner.rates) * runner.steps for runner in runners]
    most = max(taken)
    for runner, steps in zip(runners, taken):
        if most > steps:
            runner.processes.turn(most - steps)
    ends = [runner.processes.end() for runner in runners]
    same = all(end == ends[0] for end in ends)
    print(f"  {', '.join(runner.label for runner in runners)} end in {'the same ' + ends[0] if same else 'DIFFERENT digests'} after "
          f"{most} steps")
    if not same:
        sys.exit(1)


def processor_name():
    with open("/proc/cpuinfo") as lines:
        names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else 'a processor without a name'}, {os.cpu_count()} processors"


def main():
    if len(sys.argv) == 10 and sys.argv[1] == "--rank":
        name, precision, batch, kind, bucket, rank, world, meeting = sys.argv[2:]
        return rank_serve(name, precision, int(batch), kind, int(bucket), int(rank), int(world),
                          meeting)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--members", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--model", choices=MODELS, default="8m")
    parser.add_argument("--precision", choices=("float32", "bf16"), default="float32")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--mbit", type=int)
    parser.add_argument("--servers", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=4)
    options = parser.parse_args()
    print(processor_name())
    with tempfile.TemporaryDirectory() as folder:
        compare(options, folder)


if __name__ == "__main__":
    main()
