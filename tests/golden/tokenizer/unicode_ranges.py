# Prints common/text/unicode_ranges.def as Hugging Face's `tokenizers` from PyPI sees Unicode: the
# letters, numbers and white space of its regular expressions; its Digits must see the same numbers.
#
#     python3 unicode_ranges.py > ../../../common/text/unicode_ranges.def
import tokenizers
from tokenizers import Regex
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
digits = {c for piece, (first, end) in Digits(individual_digits=True).pre_tokenize_str(text)
          if end - first == 1 for c in [ord(piece)] if c in numbers}
assert digits == numbers
rows = [(first, last, name) for name, points in
        [("LETTER", letters), ("NUMBER", numbers), ("SPACE", spaces)] for first, last in ranges(points)]
print("// RANGE(first, last, class): made by tests/golden/tokenizer/unicode_ranges.py with")
print(f"// tokenizers {tokenizers.__version__}; everything else is OTHER.")
for first, last, name in sorted(rows):
    print(f"RANGE(0x{first:04x}, 0x{last:04x}, {name})")
