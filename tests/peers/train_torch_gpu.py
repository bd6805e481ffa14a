"""A step of the two models of tests/gpu/train_bench.cu in PyTorch, on the same GPU, for the ratio.

    train_torch_gpu.py [--seconds 300]

The same Llama in plain PyTorch with scaled_dot_product_attention (fused where PyTorch has it), fused
AdamW and clip, three ways: eager and compiled with float32 weights under bf16 autocast, and compiled
with bf16 weights (which lose what is smaller than their rounding; shown because it is the fastest).
Ways that no longer fit into --seconds are left out, with a word.
"""

import argparse
import time

PEAK = 989e12
CASES = [
    dict(name="124M", vocab=50304, dim=768, layers=12, heads=12, kv=12, ffn=2048, seq=1024, batch=64, tied=True),
    dict(name="1.1B", vocab=32000, dim=2048, layers=22, heads=32, kv=4, ffn=5632, seq=2048, batch=8, tied=False),
]
WARM, STEPS = 4, 12


def build(torch, case):
    nn, F = torch.nn, torch.nn.functional
    dim, heads, kv, size = case["dim"], case["heads"], case["kv"], case["dim"] // case["heads"]

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.RMSNorm(dim, 1e-5), nn.RMSNorm(dim, 1e-5)
            self.qkv = nn.Linear(dim, (heads + 2 * kv) * size, bias=False)
            self.o = nn.Linear(heads * size, dim, bias=False)
            self.gate_up = nn.Linear(dim, 2 * case["ffn"], bias=False)
            self.down = nn.Linear(case["ffn"], dim, bias=False)

        def forward(self, x, cos, sin):
            b, t, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).split([heads * size, kv * size, kv * size], -1)
            q = q.view(b, t, heads, size).transpose(1, 2)
            k = k.view(b, t, kv, size).transpose(1, 2)
            v = v.view(b, t, kv, size).transpose(1, 2)
            q, k = turn(q, cos, sin), turn(k, cos, sin)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads != kv)
            x = x + self.o(y.transpose(1, 2).reshape(b, t, heads * size))
            gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
            return x + self.down(F.silu(gate) * up)

    def turn(x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(case["vocab"], dim)
            self.layers = nn.ModuleList(Layer() for _ in range(case["layers"]))
            self.norm = nn.RMSNorm(dim, 1e-5)
            self.head = nn.Linear(dim, case["vocab"], bias=False)
            if case["tied"]:
                self.head.weight = self.table.weight
            angle = torch.arange(case["seq"])[:, None] * 10000 ** (-torch.arange(0, size, 2) / size)
            self.register_buffer("cos", angle.cos(), persistent=False)
            self.register_buffer("sin", angle.sin(), persistent=False)
            for p in self.parameters():
                if p.dim() > 1:
                    nn.init.normal_(p, std=0.02)

        def forward(self, tokens):
            x = self.table(tokens[:, :-1])
            for layer in self.layers:
                x = layer(x, self.cos, self.sin)
            logits = self.head(self.norm(x))
            return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    return Llama()


def measure(torch, case, compiled, bf16_weights):
    torch.manual_seed(1)
    model = build(torch, case).cuda()
    if bf16_weights:
        model = model.bfloat16()
    step_model = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    tokens = torch.randint(case["vocab"], (case["batch"], case["seq"] + 1), device="cuda")
    times = []
    for i in range(WARM + STEPS):
        torch.cuda.synchronize()
        begin = time.monotonic()
        with torch.autocast("cuda", torch.bfloat16, enabled=not bf16_weights):
            loss = step_model(tokens)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        if i >= WARM:
            times.append(time.monotonic() - begin)
    weights = sum(p.numel() for p in model.parameters())
    if not case["tied"]:
        weights -= case["vocab"] * case["dim"]
    work = 6 * weights + 6 * case["layers"] * case["seq"] * case["dim"]
    seconds = sorted(times)[len(times) // 2]
    rate = case["batch"] * case["seq"] / seconds
    return rate, rate * work / PEAK * 100, seconds * 1e3, loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=300)
    args = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("PyTorch: skipped, it is not installed")
        return
    if not torch.cuda.is_available():
        print(f"PyTorch: skipped, {torch.__version__} sees no GPU")
        return
    torch.backends.cuda.matmul.allow_tf32 = True
    began = time.monotonic()
    for compiled, bf16_weights in ((True, False), (True, True), (False, False)):
        for case in CASES:
            way = ("compiled" if compiled else "eager") + (", bf16 weights" if bf16_weights else ", autocast")
            what = f"torch {torch.__version__} {case['name']} {way}"
            if time.monotonic() - began > args.seconds:
                print(f"{what}: left out, {args.seconds:.0f} s are over")
                continue
            try:
                rate, mfu, ms, loss = measure(torch, case, compiled, bf16_weights)
                print(f"{what}: {rate:8.0f} tokens/s, MFU {mfu:4.1f} %, {ms:.1f} ms a step, loss {loss:.3f}", flush=True)
            except Exception as error:  # Out of memory, or a compiler that is not there: the others go on
                print(f"{what}: not measured, {type(error).__name__}: {str(error).splitlines()[0][:200]}", flush=True)
            torch._dynamo.reset()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
