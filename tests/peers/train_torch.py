#!/usr/bin/env python3
"""train_torch -- our training step and PyTorch's, in turns, on one machine in one run.

    train_torch.py BUILD [--threads N] [--turns N] [--model 8m|32m] [--precision float32|bf16|bf16-amx]

The same model, batch, precision and threads: train_bench (tests/bench) against a plain Llama in
PyTorch at its best: with its fused attention and fused AdamW, tcmalloc if it is installed and huge
pages; eager and compiled; for bf16 with its autocast, and with weights and optimizer in bf16 alone,
which is less work and less exact than ours. A step is loss, gradient, clipping and AdamW's update, on
2048 tokens. Each turn lasts about a second and a half; the medians are printed, each with its share of
the peak that train_bench measures in the same run, and the ratio to the fastest of PyTorch's ways.
What PyTorch cannot do here is said and left out.

Our bf16 has the same bits on each processor, so it takes no AMX; who wants that sets bf16-amx. On a
processor with AMX both take it in the row bf16-amx, and neither in the row bf16.
"""
import argparse
import glob
import os
import statistics
import subprocess
import sys
import time

MODELS = {
    "8m": dict(vocab=4096, dim=288, layers=6, heads=6, kv_heads=6, ffn=768, seq=256, batch=8),
    "32m": dict(vocab=8192, dim=512, layers=8, heads=8, kv_heads=4, ffn=1376, seq=512, batch=4),
}
WAYS = {"float32": ("eager", "compiled"),
        "bf16": ("eager", "compiled", "eager-pure", "compiled-pure")}
WAYS["bf16-amx"] = WAYS["bf16"]  # PyTorch takes AMX by itself
WITHOUT_AMX = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
TURN_SECONDS = 1.5
TCMALLOC = sorted(glob.glob("/usr/lib/*/libtcmalloc_minimal.so.4") +
                  glob.glob("/usr/lib/*/libtcmalloc.so.4"))[:1]


# ---- PyTorch, in a process of its own

def torch_model(shape):
    import torch
    from torch import nn
    import torch.nn.functional as F
    head_dim = shape["dim"] // shape["heads"]

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            dim, kv = shape["dim"], shape["kv_heads"] * head_dim
            self.norm_1, self.norm_2 = nn.RMSNorm(dim, 1e-5), nn.RMSNorm(dim, 1e-5)
            self.qkv = nn.Linear(dim, dim + 2 * kv, bias=False)
            self.o = nn.Linear(dim, dim, bias=False)
            self.gate_up = nn.Linear(dim, 2 * shape["ffn"], bias=False)
            self.down = nn.Linear(shape["ffn"], dim, bias=False)

        def forward(self, x, cosine, sine):
            b, t, dim = x.shape
            kv = shape["kv_heads"] * head_dim
            q, k, v = self.qkv(self.norm_1(x)).split((dim, kv, kv), dim=-1)
            q, k, v = (y.view(b, t, -1, head_dim).transpose(1, 2) for y in (q, k, v))
            q, k = rotate(q, cosine, sine), rotate(k, cosine, sine)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                               enable_gqa=shape["kv_heads"] != shape["heads"])
            x = x + self.o(y.transpose(1, 2).reshape(b, t, dim))
            gate, up = self.gate_up(self.norm_2(x)).chunk(2, dim=-1)
            return x + self.down(F.silu(gate) * up)

    def rotate(x, cosine, sine):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cosine - b * sine, b * cosine + a * sine), dim=-1).to(x.dtype)

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(shape["vocab"], shape["dim"])
            self.layers = nn.ModuleList(Layer() for _ in range(shape["layers"]))
            self.norm = nn.RMSNorm(shape["dim"], 1e-5)
            self.head = nn.Linear(shape["dim"], shape["vocab"], bias=False)
            turn = torch.outer(torch.arange(shape["seq"]).float(),
                               10000 ** (-torch.arange(0, head_dim, 2).float() / head_dim))
            self.register_buffer("cosine", turn.cos())
            self.register_buffer("sine", turn.sin())

        def forward(self, tokens):
            x = self.embed(tokens[:, :-1])
            for layer in self.layers:
                x = layer(x, self.cosine, self.sine)
            logits = self.head(self.norm(x)).float()
            return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    return Llama()


def serve_torch(name, precision, threads, way):
    import torch
    pure = way.endswith("-pure")
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    shape = MODELS[name]
    model = torch_model(shape)
    if pure:
        model = model.to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, betas=(0.9, 0.95), eps=1e-8,
                                  weight_decay=0.1, fused=True)
    forward = torch.compile(model) if way.startswith("compiled") else model
    tokens = torch.arange(shape["batch"] * (shape["seq"] + 1)).mul(7919).remainder(shape["vocab"])
    tokens = tokens.view(shape["batch"], -1)

    def step():
        model.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision != "float32" and not pure):
            loss = forward(tokens)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    step(), step()
    print(shape["batch"] * shape["seq"], torch.__version__, flush=True)
    for line in sys.stdin:
        began = time.perf_counter()
        for _ in range(int(line)):
            step()
        print(f"{time.perf_counter() - began:.6f}", flush=True)


# ---- turns

def processor():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else 'a processor without a name'}, {len(names)} of them"


def has_amx():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        return any(line.startswith("flags") and " amx_bf16 " in line + " " for line in lines)


class Runner:
    def __init__(self, label, command, **more):
        self.label, self.rates, self.steps = label, [], 1
        environment = dict(os.environ, **more)
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_NUM_THREADS"):
            environment.pop(name, None)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=environment)

    def begin(self):
        first = self.process.stdout.readline().split()
        if not first:
            reason = self.process.stderr.read().strip().splitlines()
            print(f"  {self.label}: left out: {reason[-1] if reason else 'it ended'}", flush=True)
            return False
        self.tokens, self.version, self.more = float(first[0]), first[1], first[2:]
        self.steps = max(1, round(TURN_SECONDS / self.seconds(2) * 2))
        return True

    def seconds(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def turn(self):
        self.rates.append(self.tokens * self.steps / self.seconds(self.steps))

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def compare(build, name, precision, threads, turns):
    torch = [sys.executable, os.path.abspath(__file__), "--serve", name, precision,
             str(threads)]
    best = {"THP_MEM_ALLOC_ENABLE": "1"}  # PyTorch's own switch for huge pages
    if TCMALLOC:
        best["LD_PRELOAD"] = TCMALLOC[0]
    if precision == "bf16" and has_amx():
        best.update(WITHOUT_AMX)
    runners = [Runner("ours", [f"{build}/bench/train_bench", "--serve", name, precision,
                               str(threads)])]
    runners += [Runner(way, torch + [way], **best) for way in WAYS[precision]]
    runners = [runner for runner in runners if runner.begin()]
    operations, peak = (float(number) for number in runners[0].more)
    peak *= threads  # train_bench says it for one
    for _ in range(turns):
        for runner in runners:
            runner.turn()
    medians = {runner.label: statistics.median(runner.rates) for runner in runners}
    versions = {runner.label: runner.version for runner in runners}
    for runner in runners:
        runner.end()
    note = ", both without AMX" if precision == "bf16" and has_amx() else ""
    print(f"{name:4} {precision:8} {threads} threads{note}  (PyTorch {versions.get('eager', '-')}, our kernels "
          f"{versions['ours']}, peak {peak * 1e-9:.0f} GFLOP/s, medians of {turns} turns)")
    for label, rate in medians.items():
        print(f"    {label:14} {rate:8.0f} tokens/s  {100 * rate * operations / peak:5.1f} % of the peak")
    others = {label: rate for label, rate in medians.items() if label != "ours"}
    if others:
        fastest = max(others, key=others.get)
        print(f"    ours is {medians['ours'] / others[fastest]:.2f} times {fastest}")
    sys.stdout.flush()


def main():
    if len(sys.argv) == 6 and sys.argv[1] == "--serve":
        return serve_torch(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--model", choices=MODELS)
    parser.add_argument("--precision", choices=tuple(WAYS))
    options = parser.parse_args()
    print(f"{processor()}; PyTorch with{'' if TCMALLOC else 'out'} tcmalloc (Debian: libgoogle-perftools4)")
    for name in [options.model] if options.model else MODELS:
        for precision in [options.precision] if options.precision else WAYS:
            if precision == "bf16-amx" and not has_amx():
                print("bf16-amx: left out: this processor has no AMX")
                continue
            compare(options.build, name, precision, options.threads, options.turns)


if __name__ == "__main__":
    main()
