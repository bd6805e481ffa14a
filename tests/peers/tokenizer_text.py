#!/usr/bin/env python3
"""Five megabytes of text on standard output: the demo's English, then Unicode of all kinds.

    tokenizer_text.py DEMO_FOLDER        the folder that `shoal prepare-text --out` made
"""
import pathlib
import random
import sys

BLOCKS = [(0x20, 0x7e), (0xa0, 0x24f), (0x300, 0x36f), (0x370, 0x52f), (0x590, 0x6ff),
          (0x900, 0x97f), (0xe00, 0xe7f), (0x2000, 0x206f), (0x3000, 0x30ff), (0x4e00, 0x9fff),
          (0xac00, 0xd7a3), (0x1d400, 0x1d7ff), (0x1f300, 0x1faff)]
SPACES = [" ", "\n", "\t", "\r\n", "  ", "\n\n", "\u00a0", "\u3000", "\u2028", "\x0b", "\u0085",
          " \n ", "\r", "   \n"]
TAILS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "'\u017f", "'Re", "''s",
         "<|endoftext|>", "<s>", " <s> ", "<s"]
POINTS = [c for c in range(1, 0x110000) if not 0xd800 <= c < 0xe000]

random.seed(5)


def piece() -> str:
    kind = random.random()
    if kind < 0.45:
        first, last = random.choice(BLOCKS)
        return "".join(chr(random.randint(first, last)) for _ in range(random.randint(1, 9)))
    if kind < 0.75:
        return random.choice(SPACES) * random.randint(1, 3)
    if kind < 0.82:
        return random.choice(TAILS)
    if kind < 0.90:
        return str(random.randint(0, 10 ** random.randint(1, 9)))
    if kind < 0.95:
        return "".join(random.choices("!?.,;:-_*/\\\"#$%&()[]{}<>=+~^|`@", k=random.randint(1, 5)))
    return chr(random.choice(POINTS))


def main() -> None:
    tokens = (pathlib.Path(sys.argv[1]) / "train/train.bin").read_bytes()
    english = bytes(tokens[::2]).decode("utf-8", "ignore").encode()
    out = [english[:1_750_000], b"\n", english[-1_750_000:].decode("utf-8", "ignore").encode()]
    size = sum(map(len, out))
    while size < 5_000_000:
        out.append(piece().encode())
        size += len(out[-1])
    sys.stdout.buffer.write(b"".join(out))


main()
