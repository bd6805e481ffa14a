#!/usr/bin/env python3
"""Multiple-choice questions by lm-evaluation-harness (PyPI: lm_eval) and by `shoal eval`.

    harness.py BUILD_DIR MODEL_DIR TEXT WORK_DIR         prints TAP lines

Cuts 80 questions with 2 to 5 choices out of TEXT, has both score them with the same model and
compares the log-probability of each choice, acc and acc_norm. Each task is a folder that the
harness is given as include_path, and a file for `shoal eval --choices FILE --template raw`.
"""
import json
import os
import pathlib
import random
import subprocess
import sys

build, model, text_path, work = sys.argv[1], sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["HF_HOME"] = str(work / "hf")
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import lm_eval
from lm_eval.tasks import TaskManager

QUESTIONS, SHOWN, BOUND = 80, 4, 1e-3
# Of contexts without a delimiter. White space there is scored with the choice. Without an end a
# choice might become a part of the context's last token, and both refuse it.
ENDS = [":", " ", "\n", " \n\t", "\u2003"]
text = pathlib.Path(text_path).read_bytes().decode()
chance = random.Random(16)


def piece(at: int, least: int, most: int) -> str:
    return text[at:at + chance.randint(least, most)].strip() or "a"


def question(least: int, most: int) -> dict:
    """What follows in the text is right; the others are from elsewhere."""
    at, count = chance.randrange(len(text) - 4000), chance.randint(2, 5)
    asked, answer = piece(at, least, most), chance.randrange(count)
    places = [chance.randrange(len(text) - 4000) for _ in range(count)]
    places[answer] = at + len(asked)
    return {"question": asked, "choices": [piece(p, 1, 80) for p in places], "answer": answer}


def with_end(asked: dict) -> dict:
    return {**asked, "question": asked["question"] + chance.choice(ENDS)}


# Name, delimiter before a choice, questions shown before each, what is asked. Of the long ones the
# model's window holds only the end.
short, shown = [question(1, 200) for _ in range(QUESTIONS)], [question(1, 60) for _ in range(SHOWN)]
TASKS = [
    ("a space before each choice", " ", 0, short),
    ("no delimiter", "", 0, [with_end(q) for q in short]),
    ("longer than the window", " ", 0, [question(1500, 3000) for _ in range(8)]),
    (f"{SHOWN} shots", " ", SHOWN, short[:20]),
]


def write(path: pathlib.Path, questions: list) -> str:
    path.write_text("".join(json.dumps(q) + "\n" for q in questions), encoding="utf-8")
    return str(path)


def theirs(folder: pathlib.Path, delimiter: str, shots: int, questions: list) -> tuple:
    """The log-probabilities of each question; how many were right by acc and by acc_norm."""
    task = {"task": folder.name, "dataset_path": "json", "output_type": "multiple_choice",
            "dataset_kwargs": {"data_files": {"test": write(folder / "asked.json", questions),
                                              "shown": write(folder / "shown.json", shown)}},
            "test_split": "test", "fewshot_split": "shown", "fewshot_config": {"sampler": "first_n"},
            "doc_to_text": "question", "doc_to_choice": "choices", "doc_to_target": "answer",
            "target_delimiter": delimiter, "num_fewshot": shots,
            "metric_list": [{"metric": m, "aggregation": "mean", "higher_is_better": True}
                            for m in ("acc", "acc_norm")]}
    (folder / "task.yaml").write_text(json.dumps(task))     # Each JSON text is a YAML text
    said = lm_eval.simple_evaluate(
        model="hf", model_args={"pretrained": model, "dtype": "float32", "device": "cpu"},
        tasks=[folder.name], batch_size=1, bootstrap_iters=0, log_samples=True,
        task_manager=TaskManager(include_path=str(folder), include_defaults=False))
    samples = sorted(said["samples"][folder.name], key=lambda sample: sample["doc_id"])
    return ([[float(p) for p, _ in sample["filtered_resps"]] for sample in samples],
            [round(sum(sample[m] for sample in samples)) for m in ("acc", "acc_norm")])


def ours(folder: pathlib.Path, delimiter: str, shots: int, questions: list) -> tuple:
    def raw(name: str, some: list) -> str:
        return write(folder / name, [{**q, "choices": [delimiter + c for c in q["choices"]]} for q in some])
    out = folder / "scores"
    done = subprocess.run([f"{build}/bin/shoal", "eval", "--model", model, "--template", "raw", "--json",
                           "--choices", raw("ours.json", questions), "--scores", out,
                           "--shots", str(shots), "--shots-file", raw("ours_shown.json", shown)],
                          check=True, stdout=subprocess.PIPE)
    report = json.loads(done.stdout)
    return ([json.loads(line)["log_probabilities"] for line in out.read_text().splitlines()],
            [round(report[m] * report["questions"]) for m in ("acc", "acc_norm")])


def main() -> None:
    failed = False
    for number, (name, *how) in enumerate(TASKS, 1):
        folder = work / f"task_{number}"
        folder.mkdir()
        (a, right), (b, counted) = theirs(folder, *how), ours(folder, *how)
        same = [len(x) for x in a] == [len(x) for x in b] and len(a) == len(how[-1])
        apart = max(abs(p - q) for x, y in zip(a, b) for p, q in zip(x, y)) if same else float("inf")
        least = min(p for x in a for p in x)
        good = apart < BOUND and least < -10 and right == counted
        failed |= not good
        print(f"{'ok' if good else 'not ok'} {number} - {name}: {len(a)} questions, {sum(map(len, a))} choices "
              f"down to {least:.1f} nats differ by at most {apart:.2g}; right by acc {right[0]}, ours "
              f"{counted[0]}, by acc_norm {right[1]}, ours {counted[1]}", flush=True)
    sys.exit(failed)


main()
