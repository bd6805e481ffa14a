#!/usr/bin/env python3
"""convergence -- how far DisTrO gets on the demo's text, beside AdamW, and what limits it.

    convergence.py BUILD [--quick] [--jobs N] [--only main|limits|demo]

The demo's model and text (config/demo/model.json, `shoal prepare-text`), equal tokens:

    tune     the learning rate of each way, one seed, short runs: a grid that grows at its ends
    main     AdamW, DisTrO with 4 trainers and with 1, three seeds; DisTrO with 4 on more tokens
    limits   what holds DisTrO back: one thing changed at a time, its learning rate tuned again
    demo     config/demo/state.toml's way to learn, and others in the same time, three seeds

Each run is a process of one thread (tests/numeric/convergence.c), as many at once as --jobs says;
a run that was made is kept in BUILD/convergence/runs and not made again by the same program. Writes
table.md, curves.csv and figure.svg into BUILD/convergence (its folder quick with --quick) and
prints the table. Takes about 20 minutes on two quiet cores, --quick one. The losses are the same
bits on every processor; only the time differs.
"""
import argparse
import concurrent.futures
import csv
import datetime
import hashlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

SEQ = 128
TUNE_SEED, SEEDS = 0, (1, 2, 3)
DISTRO = {"optimizer": "distro", "chunk": 64, "topk": 8, "compression-decay": 0.95, "batch": 8}
WAYS = {
    "AdamW": {"optimizer": "adamw", "batch": 8},
    "DisTrO, 1 trainer": {**DISTRO, "trainers": 1},
    "DisTrO, 4 trainers": {**DISTRO, "trainers": 4},
}
GRID = {"AdamW": (2e-3, 4e-3, 8e-3), "DisTrO, 1 trainer": (1e-3, 2e-3, 4e-3),
        "DisTrO, 4 trainers": (1e-3, 2e-3, 4e-3)}
BASE, LONGER = "DisTrO, 4 trainers", 2                  # LONGER times the tokens
# What is changed, and by which factors the rate of BASE is tried.
LIMITS = [
    ("k", "k = 32", {"topk": 32}, (1, 2)),
    ("k", "k = 128", {"topk": 128}, (1, 2)),
    ("k", "k = 512", {"topk": 512}, (1, 2)),
    ("values", "float values, not one bit", {"float-values": True}, (1, 2)),
    ("sign", "no sign: the scaled mean", {"no-sign": True}, (1, 2)),
    ("both", "float values, no sign", {"float-values": True, "no-sign": True}, (1, 2)),
    ("lag", "lag 1 (no look-ahead)", {"lag": 1}, (1, 0.5, 0.25)),
    ("batch", "batch 4 (1 a trainer)", {"batch": 4}, (1, 0.5)),
    ("batch", "batch 16", {"batch": 16}, (1, 2)),
    ("batch", "batch 32", {"batch": 32}, (1, 2)),
    ("trainers", "1 trainer", {"trainers": 1}, (1, 2)),
    ("momentum", "decay 0.8", {"compression-decay": 0.8}, (1,)),
    ("momentum", "decay 0.999, Psyche's", {"compression-decay": 0.999}, (1, 0.5)),
]
DEMO = {"optimizer": "distro", "trainers": 4, "chunk": 32, "topk": 64, "compression-decay": 0.95,
        "batch": 8, "learning-rate": 2e-3}
# And how many times its 600 rounds of 8 in tokens. A round of 16 takes 1.3 times as long as one of
# 8 with four trainers on two cores, so 460 of them as long as 600.
DEMOS = {"600 rounds of 8, rate 2e-3": (DEMO, 1),
         "600 rounds of 8, rate 3e-3": ({**DEMO, "learning-rate": 3e-3}, 1),
         "460 rounds of 16, rate 2e-3": ({**DEMO, "batch": 16}, 460 / 300)}


class Lab:
    """Makes runs, several at once, and keeps what they printed."""

    def __init__(self, build, quick, jobs):
        self.build, self.jobs = pathlib.Path(build), jobs
        self.dir = self.build / "convergence"
        self.text, self.runs = self.dir / "text", self.dir / "runs"
        self.model = self.dir / "model"
        self.out = self.dir / "quick" if quick else self.dir
        self.base, self.tune, self.windows = (24, 12, 32) if quick else (600, 200, 256)
        self.seeds = SEEDS[:1] if quick else SEEDS
        self.quick = quick
        for folder in (self.runs, self.out, self.model):
            folder.mkdir(parents=True, exist_ok=True)
        shutil.copy("config/demo/model.json", self.model / "config.json")
        if not (self.text / "baselines.json").exists():
            subprocess.run([self.build / "bin/shoal", "prepare-text", "--out", self.text],
                           check=True, stdout=subprocess.DEVNULL)
        self.nats = json.loads((self.text / "baselines.json").read_text())["nats"]

    def flags(self, how):
        for key, value in how.items():
            if value is True:
                yield f"--{key}"
            elif value is not False:
                yield f"--{key}={value:g}" if isinstance(value, float) else f"--{key}={value}"

    def make(self, how):
        """The rows of one run: (tokens, train, heldout, windows)."""
        flags = list(self.flags(how))
        name = hashlib.sha256(" ".join(flags).encode()).hexdigest()[:16]
        path = self.runs / f"{name}.csv"
        program = self.build / "numeric/convergence"
        if not path.exists() or path.stat().st_mtime < program.stat().st_mtime:
            done = subprocess.run(
                ["nice", "-n", "10", program, f"--model={self.model}",
                 f"--train={self.text}/train", f"--heldout={self.text}/heldout", "--threads=1",
                 *flags],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                sys.exit(f"convergence {' '.join(flags)}: {done.stderr}")
            path.with_suffix(".new").write_text(f"# {' '.join(flags)}\n{done.stdout}")
            path.with_suffix(".new").rename(path)
            last = done.stdout.splitlines()[-1].split(",")
            print(f"  {last[2]}  {' '.join(flags)}", file=sys.stderr, flush=True)
        lines = path.read_text().splitlines()[1:]
        return [(int(r["tokens"]), float(r["train"]), float(r["heldout"]), int(r["windows"]))
                for r in csv.DictReader(lines)]

    def make_all(self, hows):
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(self.make, hows))

    def sized(self, how, steps, seed):
        """A run over as many tokens as `steps` of 8 sequences, measured at its end."""
        steps = steps * 8 // how["batch"]
        size = {"steps": steps, "seed": seed, "warmup": max(1, steps // 30),
                "heldout-every": steps * how["batch"] * SEQ}
        return {**how, **size, **({"heldout-samples": self.windows} if self.quick else {})}

    def curve(self, how, steps, seed):
        """The same, measured on the way and on all that is held out, as the baselines are."""
        return {**self.sized(how, steps, seed), "heldout-every": max(1, steps // 8) * 8 * SEQ,
                "spread": not self.quick}


def check_product(lab):
    """One trainer of this experiment has the bits of `shoal train`, or it is about nothing."""
    steps, common = 12, [f"--train={lab.text}/train", f"--heldout={lab.text}/heldout"]
    ours = subprocess.run(
        [lab.build / "numeric/convergence", f"--model={lab.model}", *common, "--seed=1",
         "--trainers=1", "--chunk=64", "--topk=8", "--compression-decay=0.95", "--batch=8",
         "--learning-rate=0.002", f"--steps={steps}", "--warmup=3", "--heldout-samples=4"],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    sets = ["optimizer=Distro", "lr_schedule=Linear", f"Linear.total_steps={steps}",
            "Linear.warmup_steps=3", "Linear.warmup_init_lr=0", "Linear.final_lr=0",
            "clip_grad_norm=1", "weight_decay=0", "compression_decay=0.95",
            "compression_chunk=64", "compression_topk=8", "quantize_1bit=true", "products=bf16"]
    theirs = subprocess.run(
        [lab.build / "bin/shoal", "train", "config/demo/state.toml", f"--model={lab.model}",
         "--init-seed=1", "--shuffle-seed=1", f"--data={lab.text}/train", "--batch-size=8",
         "--learning-rate=0.002", f"--steps={steps}", "--no-checkpoint", "--json",
         *(f"--set={key}" for key in sets)],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    digests = ours.stderr.split()[-1], json.loads(theirs.stdout)["digest"]
    if digests[0] != digests[1]:
        sys.exit(f"one trainer here and shoal train differ: {digests[0]} and {digests[1]}")


def best_rate(losses):
    return min(losses, key=losses.get)


def tune(lab):
    """For each way the losses by rate; a best rate at the end of a grid makes the grid longer."""
    wanted = {name: set(GRID[name]) for name in WAYS}
    losses = {name: {} for name in WAYS}
    while wanted:
        jobs = [(name, rate) for name in wanted for rate in sorted(wanted[name])]
        hows = [lab.sized({**WAYS[name], "learning-rate": rate}, lab.tune, TUNE_SEED)
                for name, rate in jobs]
        for (name, rate), rows in zip(jobs, lab.make_all(hows)):
            losses[name][rate] = rows[-1][2]
        wanted = {}
        for name in WAYS:
            best, rates = best_rate(losses[name]), sorted(losses[name])
            if best in (rates[0], rates[-1]) and len(rates) < 6:
                wanted[name] = {best / 2 if best == rates[0] else best * 2}
    return losses


def compare(lab, ways, steps):
    """name -> the curves of all seeds. `ways`: name -> (how, times the tokens)."""
    jobs = [(name, seed) for name in ways for seed in lab.seeds]
    rows = lab.make_all([lab.curve(ways[n][0], round(steps * ways[n][1]), s) for n, s in jobs])
    return {name: [r for (n, _), r in zip(jobs, rows) if n == name] for name in ways}


def limits(lab, rate):
    """[(factor, what, best rate, loss)], the unchanged base first."""
    jobs = [("", "unchanged", {}, (0.5, 1, 2))]
    jobs += [(*job[:3], job[3][:1]) if lab.quick else job for job in LIMITS]
    tries = [(job, rate * scale) for job in jobs for scale in job[3]]
    hows = [lab.sized({**WAYS[BASE], **job[2], "learning-rate": r}, lab.tune, TUNE_SEED)
            for job, r in tries]
    rows = lab.make_all(hows)
    result = []
    for job in jobs:
        loss, at = min((r[-1][2], t[1]) for t, r in zip(tries, rows) if t[0] is job)
        result.append((job[0], job[1], at, loss))
    return result


# ---- what is written

def final(runs):
    """Mean and spread, over the seeds, of the loss on all that is held out."""
    last = [rows[-1][2] for rows in runs]
    return statistics.mean(last), max(last) - min(last)


def on_the_way(rows):
    """Without the last, which is over all that is held out."""
    return [row for row in rows if row[3] == rows[0][3]]


def crossing(rows, nats):
    """Tokens at which the curve of one run falls to `nats`; None if it does not."""
    rows = on_the_way(rows)
    for (t0, _, l0, _), (t1, _, l1, _) in zip(rows, rows[1:]):
        if l1 <= nats < l0:
            return t0 + (t1 - t0) * (l0 - nats) / (l0 - l1)
    return None


def crossing_text(runs, nats):
    found = [crossing(rows, nats) for rows in runs]
    if None in found:
        return f"not reached ({sum(f is not None for f in found)} of {len(found)} seeds)"
    return f"{statistics.mean(found) / 1e3:.0f} k"


def compare_table(lab, title, ways, curves):
    lines = [f"| {title} | rate | tokens | held out, mean | spread | order 2 reached at |",
             "|---|---|---|---|---|---|"]
    for name, runs in curves.items():
        mean, spread = final(runs)
        rate, tokens = ways[name][0]["learning-rate"], runs[0][-1][0]
        lines.append(f"| {name} | {rate:g} | {tokens / 1e3:.0f} k | {mean:.4f} | {spread:.4f} "
                     f"| {crossing_text(runs, lab.nats[2])} |")
    return lines


def tune_table(losses):
    lines = ["| learning rate | " + " | ".join(losses) + " |", "|---|" + "---|" * len(losses)]
    for rate in sorted({r for by_rate in losses.values() for r in by_rate}):
        cells = [("**%.3f**" if rate == best_rate(by) else "%.3f") % by[rate] if rate in by else ""
                 for by in losses.values()]
        lines.append(f"| {rate:g} | " + " | ".join(cells) + " |")
    return lines


def limits_table(found):
    base = found[0][3]
    lines = ["| factor | what is changed | best rate | held out | gained |",
             "|---|---|---|---|---|"]
    for factor, what, rate, loss in found:
        gained = "" if factor == "" else f"{base - loss:+.3f}"
        lines.append(f"| {factor} | {what} | {rate:g} | {loss:.3f} | {gained} |")
    return lines


COLOURS = ["#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#b8860b"]
WIDTH, HEIGHT, LEFT, TOP, PLOT_W, PLOT_H = 960, 870, 70, 50, 640, 400


def text(x, y, words, size=13, anchor="start", colour="#222"):
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{colour}">{words}</text>')


def line(x0, y0, x1, y1, colour="#ccc", dash=""):
    dash = f' stroke-dasharray="{dash}"' if dash else ""
    return (f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" '
            f'stroke="{colour}"{dash}/>')


def draw_axes(lab, most, low, high, x, y):
    out = [text(LEFT, 28, "Held-out loss in nats per byte: mean of the seeds, shaded from the "
                          "lowest to the highest", 15)]
    for i in range(round((high - low) / 0.2) + 1):
        loss = low + 0.2 * i
        out += [line(LEFT, y(loss), LEFT + PLOT_W, y(loss), "#eee"),
                text(LEFT - 8, y(loss) + 4, f"{loss:.1f}", 12, "end")]
    for tokens in range(0, most + 1, 10 ** (len(str(most)) - 1) // 5):
        out += [line(x(tokens), TOP + PLOT_H, x(tokens), TOP + PLOT_H + 5, "#555"),
                text(x(tokens), TOP + PLOT_H + 20, f"{tokens / 1e3:g} k", 12, "middle")]
    out += [line(LEFT, TOP, LEFT, TOP + PLOT_H, "#555"),
            line(LEFT, TOP + PLOT_H, LEFT + PLOT_W, TOP + PLOT_H, "#555"),
            text(LEFT + PLOT_W / 2, TOP + PLOT_H + 40, "tokens trained", 13, "middle")]
    for order, nats in enumerate(lab.nats):
        out += [line(LEFT, y(nats), LEFT + PLOT_W, y(nats), "#555", "6 4"),
                text(LEFT + PLOT_W + 8, y(nats) + 4, f"counting, order {order}: {nats:.3f}", 12)]
    return out


def draw_curves(lab, curves):
    curves = {name: [on_the_way(rows) for rows in runs] for name, runs in curves.items()}
    most = max(rows[-1][0] for runs in curves.values() for rows in runs)
    low, high = min(rows[-1][2] for runs in curves.values() for rows in runs) // 0.2 * 0.2, 3.4
    x = lambda tokens: LEFT + PLOT_W * tokens / most
    y = lambda loss: TOP + PLOT_H * (high - min(loss, high)) / (high - low)
    out = draw_axes(lab, most, low, high, x, y)
    for number, (name, runs) in enumerate(curves.items()):
        colour, legend = COLOURS[number % len(COLOURS)], y(3.1) + 20 * number
        rows = list(zip(*runs))         # By measurement, those of all seeds
        xs = [x(at[0][0]) for at in rows]
        losses = [[row[2] for row in at] for at in rows]
        band = [f"{a:.1f},{y(max(at)):.1f}" for a, at in zip(xs, losses)]
        band += [f"{a:.1f},{y(min(at)):.1f}" for a, at in reversed(list(zip(xs, losses)))]
        path = " ".join(f"{a:.1f},{y(statistics.mean(at)):.1f}" for a, at in zip(xs, losses))
        out += [f'<polygon points="{" ".join(band)}" fill="{colour}" opacity="0.2"/>',
                f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
                line(LEFT + PLOT_W - 260, legend - 4, LEFT + PLOT_W - 235, legend - 4, colour),
                text(LEFT + PLOT_W - 228, legend, name, 13, colour=colour)]
    return out


def draw_limits(found):
    base, top, left, wide = found[0][3], TOP + PLOT_H + 90, 330, 420
    reach = max(0.05, max(abs(base - loss) for _, _, _, loss in found))
    zero = left + wide / 2
    out = [text(LEFT, top - 14, f"What limits it: held-out loss gained by changing one thing "
                                f"(unchanged: {base:.3f}; right is better)", 15)]
    for i, (_, what, _, loss) in enumerate(found[1:]):
        y, end = top + 24 * i, zero + wide / 2 * (base - loss) / reach
        colour = COLOURS[2] if end > zero else COLOURS[1]
        out += [text(left - 60, y + 14, what, 12, "end"),
                f'<rect x="{min(zero, end):.1f}" y="{y + 3}" width="{abs(end - zero):.1f}" '
                f'height="14" fill="{colour}"/>',
                text(end + (6 if end > zero else -6), y + 14, f"{base - loss:+.3f}", 12,
                     "start" if end > zero else "end")]
    return out + [line(zero, top, zero, top + 24 * (len(found) - 1), "#555")]


def machine():
    names = [row.split(":")[1].strip() for row in open("/proc/cpuinfo")
             if row.startswith("model name")] or ["an unnamed processor"]
    return f"{names[0]}, {len(os.sched_getaffinity(0))} processors"


def write(lab, ways, curves, losses, found, demo_ways, demo_curves):
    when = datetime.date.today().isoformat()
    measured = (f"Measured on {lab.windows} windows only: not to be held against the baselines."
                if lab.quick else "At the end the whole held-out text; on the way "
                f"{lab.windows} of its windows, spread evenly.")
    parts = [["# Convergence on the demo's text", "",
              f"Nats per held-out byte; counting gives {lab.nats[0]:.4f} (order 0), "
              f"{lab.nats[1]:.4f} (order 1), {lab.nats[2]:.4f} (order 2). {len(lab.seeds)} "
              "seed(s), of genesis and of the order of the data; spread is highest less lowest. "
              "DisTrO is chunk 64, k 8, one bit, decay 0.95, batch 8 x 128, unless it says "
              f"otherwise. {measured} Made {when} by tests/numeric/convergence.py"
              f"{' --quick' if lab.quick else ''} on {machine()}."]]
    if curves:
        parts.append(compare_table(lab, "way", ways, curves))
    if losses:
        parts.append([f"Learning rates, {lab.tune * 8 * SEQ // 1000} k tokens, seed {TUNE_SEED}, "
                      f"{lab.windows} first windows of what is held out:", ""] + tune_table(losses))
    if found:
        adamw = min(losses["AdamW"].values())
        parts.append([f"One thing changed at a time, {lab.tune * 8 * SEQ // 1000} k tokens, 4 "
                      f"trainers, {lab.windows} first windows, the best of several rates. AdamW on "
                      f"the same: {adamw:.3f}. One seed, {TUNE_SEED}: less than 0.03 says little.",
                      ""] + limits_table(found))
    if demo_curves:
        parts.append(["The demo's own settings (chunk 32, k 64, one bit), 4 trainers:", ""]
                     + compare_table(lab, "settings", demo_ways, demo_curves))
    table = "\n\n".join("\n".join(part) for part in parts) + "\n"
    (lab.out / "table.md").write_text(table)
    with open(lab.out / "curves.csv", "w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["way", "seed", "tokens", "train", "heldout", "windows"])
        for name, runs in {**curves, **demo_curves}.items():
            for seed, run in zip(lab.seeds, runs):
                rows.writerows([name, seed, *row] for row in run)
    drawing = (draw_curves(lab, curves) if curves else []) + (draw_limits(found) if found else [])
    (lab.out / "figure.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif"><rect width="100%" height="100%" fill="white"/>\n'
        + "\n".join(drawing) + "\n</svg>\n")
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--quick", action="store_true", help="tiny runs: does it work at all")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once, one thread each (2)")
    parser.add_argument("--only", choices=("main", "limits", "demo"))
    args = parser.parse_args()
    lab = Lab(args.build, args.quick, args.jobs)
    check_product(lab)
    ways, curves, found, demo_ways, demo_curves = {}, {}, [], {}, {}
    losses = tune(lab) if args.only != "demo" else {}
    rates = {name: best_rate(by_rate) for name, by_rate in losses.items()}
    if args.only in (None, "main"):
        ways = {name: ({**how, "learning-rate": rates[name]}, 1) for name, how in WAYS.items()}
        ways[f"{BASE}, {LONGER} x the tokens"] = (ways[BASE][0], LONGER)
        curves = compare(lab, ways, lab.base)
    if args.only in (None, "limits"):
        found = limits(lab, rates[BASE])
    if args.only in (None, "demo"):
        demo_ways = DEMOS
        demo_curves = compare(lab, demo_ways, lab.base)
    print(write(lab, ways, curves, losses, found, demo_ways, demo_curves))


if __name__ == "__main__":
    main()
