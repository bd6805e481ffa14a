#!/usr/bin/env python3
"""Multiple-choice accuracy of a Hugging Face folder whose tokens are bytes, scored by transformers
as lm-evaluation-harness scores: sum of log-probabilities, and that per character.

    choices.py MODEL_DIR QUESTIONS_JSONL SHOTS          prints "acc acc_norm", in questions right
"""
import json
import sys

import torch
import transformers


def ask(question: dict) -> str:
    return f"Question: {question['question']}\nAnswer:"


def main() -> None:
    folder, path, shots = sys.argv[1], sys.argv[2], int(sys.argv[3])
    questions = [json.loads(line) for line in open(path, encoding="utf-8") if line.strip()]
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    window = model.config.max_position_embeddings
    before = "".join(f"{ask(q)} {q['choices'][q['answer']]}\n\n" for q in questions[:shots])
    right = normalized = 0
    for question in questions[shots:]:
        sums = []
        for choice in question["choices"]:
            context = list((before + ask(question)).encode())
            whole = context + list(f" {choice}".encode())
            wanted = len(whole) - len(context)
            tokens = torch.tensor(whole[-(window + 1):])
            with torch.no_grad():
                logits = model(tokens[None, :-1]).logits[0].double()
            log_p = torch.log_softmax(logits, -1).gather(1, tokens[1:, None])[:, 0]
            sums.append(log_p[-wanted:].sum().item())
        per_character = [s / len(c) for s, c in zip(sums, question["choices"])]
        right += sums.index(max(sums)) == question["answer"]
        normalized += per_character.index(max(per_character)) == question["answer"]
    print(right, normalized)


main()
