# Prints common/text/unicode_ranges.def as Hugging Face's `tokenizers` from PyPI sees Unicode: the
# letters, numbers and white space of its regular expressions; the numbers that only its Digits
# takes; what its normalizer NFC does to a character.
#
#     python3 unicode_ranges.py > ../../../common/text/unicode_ranges.def
import tokenizers
from tokenizers import Regex
from tokenizers.normalizers import NFC, NFD
from tokenizers.pre_tokenizers import Digits, Split

code_points = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]
text = "".join(map(chr, code_points))

def members(pieces):
    return {code_points[i] for _, (first, end) in pieces for i in range(first, end)}

def ranges(points):
    found = []
    for c in sorted(points):
        if found and found[-1][1] + 1 == c:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found

def matched(pattern):
    return members(Split(Regex(pattern), "removed", invert=True).pre_tokenize_str(text))

letters, numbers, spaces = matched(r"\p{L}+"), matched(r"\p{N}+"), matched(r"\s+")
# Each code point between two letters: those that stand alone are digits.
digits = {ord(piece) for piece, (first, end) in
          Digits(individual_digits=True).pre_tokenize_str("a" + "a".join(text) + "a")
          if end - first == 1 and first % 2 == 1}
assert numbers <= digits and not digits & (letters | spaces)

# A mark moves in front of one that has a higher combining class: U+0345 has the highest, U+0334 the
# lowest. Two characters become one where the one falls apart into the two.
nfc, nfd = NFC().normalize_str, NFD().normalize_str
changes, joins = set(), set()
for c in map(chr, code_points):
    if any(nfc(s) != s for s in (c, "x\u0345" + c, "x" + c + "\u0334")):
        changes.add(ord(c))
    parts = nfd(c)
    if parts != c and nfc(parts) == c:
        first = nfc(parts[:-1])
        assert len(first) == 1
        changes.add(ord(parts[-1]))
        joins |= {ord(first), ord(c)}           # Another mark may come between the two
joins -= changes
rows = [(first, last, name) for name, points in
        [("LETTER", letters), ("NUMBER", numbers), ("SPACE", spaces), ("NEW_NUMBER", digits - numbers),
         ("NFC_CHANGES", changes), ("NFC_JOINS", joins)] for first, last in ranges(points)]
print("// RANGE(first, last, flag): made by tests/golden/tokenizer/unicode_ranges.py with")
print(f"// tokenizers {tokenizers.__version__}. What has no class is OTHER.")
for first, last, name in sorted(rows):
    print(f"RANGE(0x{first:04x}, 0x{last:04x}, {name})")
