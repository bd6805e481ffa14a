#!/usr/bin/env python3
"""Our ids and Hugging Face's `tokenizers` on 10,000 documents and on every code point.

    tokenizer_documents.py BUILD_DIR WORK_DIR TEXT

Prints TAP lines. The tokenizers are built as Qwen2.5, GPT-NeoX, OLMo, SmolLM and Llama 3 build
theirs, on the vocabulary that TEXT gives. Documents are pieces of TEXT with marks put in; each code
point stands alone, between a letter and a mark, between digits and among marks. All of them go
through `shoal tokenize`.
"""
import json
import os
import pathlib
import random
import subprocess
import sys

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.normalizers import NFC
from tokenizers.normalizers import Sequence as Normalizers
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split
from tokenizers.trainers import BpeTrainer

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
DOCUMENTS, END = 10_000, "<|endoftext|>"
POINTS_OF = ("Qwen2.5", "GPT-NeoX", "OLMo", "SmolLM")
MARKS = [chr(c) for c in (0x301, 0x323, 0x308, 0x338, 0x345, 0x334, 0x344, 0x5bc, 0x93c, 0x11a8, 0x1161)]

build, work, text_path = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
text = pathlib.Path(text_path).read_bytes().decode()
chance = random.Random(9)
number, failed = 0, False


def split(pattern: str):
    return Sequence([Split(Regex(pattern), "isolated"),
                     ByteLevel(add_prefix_space=False, use_regex=False)])


def spaces(normalized: bool) -> list:
    return [AddedToken(" " * n, normalized=normalized) for n in range(24, 1, -1)]


# Name, normalizer, pre-tokenizer, added tokens.
KINDS = [
    ("Qwen2.5", NFC(), split(QWEN2), [AddedToken("<|im_start|>", special=True, normalized=False)]),
    ("GPT-NeoX", NFC(), ByteLevel(add_prefix_space=False), spaces(True)),
    ("OLMo", Normalizers([NFC()]), ByteLevel(add_prefix_space=False),
     spaces(False) + [AddedToken("|||EMAIL_ADDRESS|||", normalized=False)]),
    ("SmolLM", None, Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]), []),
    ("Llama 3, an empty normalizer", Normalizers([]), split(QWEN2.replace(r"\p{N}|", r"\p{N}{1,3}|", 1)), []),
]


def make(normalizer, pre_tokenizer, added: list, file: pathlib.Path) -> Tokenizer:
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, ByteLevelDecoder()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator([text[:1_000_000]], BpeTrainer(
        vocab_size=4096, special_tokens=[END], initial_alphabet=ByteLevel.alphabet(),
        show_progress=False))
    tokenizer.add_tokens(added)
    tokenizer.save(str(file))
    return Tokenizer.from_file(str(file))


def document() -> str:
    at, pieces = chance.randrange(len(text)), []
    for _ in range(chance.randint(1, 30)):
        step = chance.randint(1, 20)
        pieces += [text[at:at + step], *chance.choices(MARKS, k=chance.choice((0, 0, 0, 1, 2, 3)))]
        at += step
    return "".join(pieces)


def code_points() -> list:
    points = [chr(c) for c in range(0x110000) if not 0xd800 <= c < 0xe000]
    each = [f"{c} a{c}\u0301 1{c}2 e\u0345{c}\u0334 \u1ea5{c}\u0323\n" if c < "\U00033480" else f"a{c}\u0301 "
            for c in points]                    # Beyond, next to nothing is assigned
    return ["".join(each[at:at + 256]) for at in range(0, len(each), 256)]


def our_ids(tokenizer: pathlib.Path, documents: list) -> list:
    lines, out = work / "documents.jsonl", work / "tokens"
    lines.write_text("".join(json.dumps({"text": d}, ensure_ascii=False) + "\n" for d in documents))
    subprocess.run(["rm", "-rf", out], check=True)
    subprocess.run([build / "bin/shoal", "tokenize", "--tokenizer", tokenizer, "--separator", END,
                    "--heldout-every", "0", "--token-size", "4", "-o", out, lines],
                   check=True, stdout=subprocess.DEVNULL)
    return list(memoryview((out / "train/train.bin").read_bytes()).cast("I"))


def compare(what: str, file: pathlib.Path, theirs: Tokenizer, documents: list) -> None:
    global number, failed
    ours, end, at, wrong = our_ids(file, documents), theirs.token_to_id(END), 0, ""
    for encoding, one in zip(theirs.encode_batch_fast(documents, add_special_tokens=False), documents):
        wanted = encoding.ids + [end]
        if not wrong and ours[at:at + len(wanted)] != wanted:
            wrong = ascii(one)[:200]
        at += len(wanted)
    number += 1
    good = not wrong and at == len(ours)
    failed |= not good
    print(f"{'ok' if good else 'not ok'} {number} - {what}: {len(ours)} ids are the same", flush=True)
    if wrong:
        print("# the first that differs:", wrong)


def main() -> None:
    documents, points = [document() for _ in range(DOCUMENTS)], code_points()
    for name, *parts in KINDS:
        file = work / "tokenizer.json"
        theirs = make(*parts, file)
        compare(f"{name}, {len(documents)} documents", file, theirs, documents)
        if name in POINTS_OF:
            compare(f"{name}, every code point", file, theirs, points)
    sys.exit(failed)


main()
