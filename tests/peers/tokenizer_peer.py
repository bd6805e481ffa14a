#!/usr/bin/env python3
"""Our tokenizers and Hugging Face's `tokenizers` on the same text: the same ids, and how fast.

    tokenizer_peer.py BUILD_DIR WORK_DIR TEXT

Prints TAP lines. Both train on TEXT; both encode it with the tokenizer of either. The speeds, one
thread each and best of three, are shown and not judged: they are the machine's too.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split
from tokenizers.trainers import BpeTrainer

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
VOCAB = 8192
SPECIAL = ["<|endoftext|>", "<s>"]
# Name, flags of shoal train-tokenizer, and their pre-tokenizer.
KINDS = [
    ("gpt2", ["--pattern", "gpt2"], lambda: ByteLevel(add_prefix_space=False)),
    ("gpt2 with add_prefix_space", ["--pattern", "gpt2", "--add-prefix-space"],
     lambda: ByteLevel(add_prefix_space=True)),
    ("llama3", ["--pattern", "llama3"], lambda: Sequence(
        [Split(Regex(LLAMA3), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)])),
    ("smollm", ["--pattern", "smollm"], lambda: Sequence(
        [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])),
]

build, work, text_path = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
text = pathlib.Path(text_path).read_bytes().decode()
number = 0
failed = False


def say(good: bool, what: str) -> None:
    global number, failed
    number += 1
    failed |= not good
    print(f"{'ok' if good else 'not ok'} {number} - {what}", flush=True)


def train_ours(flags: list, folder: pathlib.Path) -> None:
    subprocess.run([build / "bin/shoal", "train-tokenizer", "-o", folder, "--vocab-size", str(VOCAB),
                    "--min-frequency", "0", "--special", SPECIAL[1], *flags, text_path],
                   check=True, stdout=subprocess.DEVNULL)


def train_theirs(pre_tokenizer, file: pathlib.Path) -> None:
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, ByteLevelDecoder()
    tokenizer.train_from_iterator([text], BpeTrainer(
        vocab_size=VOCAB, special_tokens=SPECIAL, initial_alphabet=ByteLevel.alphabet(),
        show_progress=False))
    # Hugging Face takes them out of the text; so must we.
    tokenizer.add_tokens([AddedToken("LORD", lstrip=True, normalized=False),
                          AddedToken("Internet", rstrip=True, normalized=True)])
    tokenizer.save(str(file))


def our_ids(tokenizer: pathlib.Path) -> tuple:
    ids = work / "ids"
    out = subprocess.run([build / "bench/tokenizer_bench", tokenizer, text_path, ids], check=True,
                         capture_output=True, text=True).stdout
    speed = float(out.split("encode")[1].split("MB/s")[0])
    data = ids.read_bytes()
    return list(memoryview(data).cast("I")), speed


def their_ids(tokenizer: pathlib.Path) -> tuple:
    loaded = Tokenizer.from_file(str(tokenizer))
    pieces = [text[at:at + 4000] for at in range(0, len(text), 4000)]
    best = 0.0
    for _ in range(3):          # Many texts and no offsets: the fastest of its ways
        began = time.perf_counter()
        loaded.encode_batch_fast(pieces)
        best = max(best, len(text.encode()) / 1e6 / (time.perf_counter() - began))
    return loaded.encode(text).ids, best


def compare(what: str, tokenizer: pathlib.Path) -> None:
    ours, our_speed = our_ids(tokenizer)
    theirs, their_speed = their_ids(tokenizer)
    say(ours == theirs, f"{what}: {len(ours)} ids of {len(text.encode())} bytes are the same")
    print(f"# {what}: one thread encodes {our_speed:.1f} MB/s, tokenizers {tokenizers.__version__} "
          f"{their_speed:.1f} MB/s", flush=True)


def main() -> None:
    for name, flags, pre_tokenizer in KINDS:
        folder, file = work / "ours", work / "theirs.json"
        train_ours(flags, folder)
        train_theirs(pre_tokenizer(), file)
        ours = json.loads((folder / "tokenizer.json").read_text())["model"]
        theirs = json.loads(file.read_text())["model"]
        say(ours["vocab"] == theirs["vocab"] and ours["merges"] == theirs["merges"],
            f"{name}: both train the same {len(ours['vocab'])} tokens")
        compare(f"{name}, ours", folder / "tokenizer.json")
        compare(f"{name}, theirs", file)
    sys.exit(failed)


main()
