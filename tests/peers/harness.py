#!/usr/bin/env python3
"""Multiple-choice tasks as lm-evaluation-harness (PyPI: lm-eval) asks and scores them.

    harness.py MODEL_DIR WORK_DIR

Makes documents in the shape of HellaSwag, PIQA and MMLU, has the harness's own task files ask them,
and writes what it asked, word for word, into WORK_DIR/TASK-SHOTS.jsonl, for `shoal eval --choices
FILE --template raw`. Prints a line for each: "FILE questions right right_normalized", - for what
the task does not measure.
"""
import json
import os
import pathlib
import random
import sys

os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"

import lm_eval
from lm_eval.models.huggingface import HFLM

QUESTIONS, SHOWN = 80, 5
WORDS = ("ice fire água water 12 zebra king of é light x the 3.5 [step] mélange don't über run\u2003far "
         "北京 slowly, and then went away").split(" ")
folder, work = sys.argv[1], pathlib.Path(sys.argv[2])
chance = random.Random(11)


def text(least: int, most: int) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randint(least, most)))


def hellaswag() -> dict:
    return {"activity_label": text(1, 2), "ctx_a": text(2, 12) + ".", "ctx_b": text(1, 4),
            "endings": [text(1, 8) for _ in range(4)], "label": str(chance.randrange(4))}


def piqa() -> dict:
    return {"goal": text(2, 8), "sol1": text(1, 9), "sol2": text(1, 9), "label": chance.randrange(2)}


def mmlu() -> dict:
    return {"question": text(3, 12) + "? ", "choices": [text(1, 4) for _ in range(4)],
            "answer": chance.randrange(4)}


def write(path: pathlib.Path, documents: list) -> str:
    path.write_text("".join(json.dumps(d) + "\n" for d in documents), encoding="utf-8")
    return str(path)


# The task, its documents, the splits asked and shown, what is changed. White space at the end of a
# context belongs to the continuation: no task file has it, so one is made to.
TASKS = [
    ("hellaswag", hellaswag, "validation", "train", {}),
    ("piqa", piqa, "validation", "train", {}),
    ("piqa", piqa, "validation", "train", {"doc_to_text": "{{goal}} \n ", "target_delimiter": ""}),
    ("mmlu_anatomy", mmlu, "test", "dev", {}),
]


def main() -> None:
    model = HFLM(pretrained=folder, device="cpu", dtype="float32", batch_size=1)
    for number, (name, make, asked, shown, changes) in enumerate(TASKS):
        files = {asked: write(work / "asked.json", [make() for _ in range(QUESTIONS)]),
                 shown: write(work / "shown.json", [make() for _ in range(SHOWN)])}
        for shots in (0, 2):
            task = {"task": name, "dataset_path": "json", "dataset_name": None,
                    "dataset_kwargs": {"data_files": files}, **changes}
            result = lm_eval.simple_evaluate(model=model, tasks=[task], num_fewshot=shots,
                                             bootstrap_iters=0)
            samples = result["samples"][name]
            out = work / f"{name}-{number}-{shots}.jsonl"
            write(out, [{"question": s["arguments"][0][0], "choices": [a[1] for a in s["arguments"]],
                         "answer": int(s["target"])} for s in samples])
            normalized = sum(s["acc_norm"] for s in samples) if "acc_norm" in samples[0] else "-"
            print(out, len(samples), *(n if n == "-" else int(n) for n in
                                       (sum(s["acc"] for s in samples), normalized)), flush=True)


main()
