# Writes the golden files beside it with Hugging Face's package: tokenizers 0.23.3, python3 make.py.
#
#   gpt2.json      ByteLevel with add_prefix_space; added tokens of all kinds; merges as "a b"
#   llama3.json    Split by Llama 3's pattern, ignore_merges, a template
#   smollm.json    Digits; four bytes that are no tokens, unk_token, fuse_unk
#   neox.json      GPT-NeoX's and OLMo's parts: NFC, ByteLevel, added tokens of spaces
#   qwen2.json     Qwen2.5's: NFC in a Sequence, Split by Llama 3's pattern with single digits
#   cases.json     texts with the ids that each of them gives, and the words, in bytes, that the
#                  pre-tokenizer alone cuts the whole text into
#
# All are trained on the file LICENSE of this repository.
import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.normalizers import NFC
from tokenizers.normalizers import Sequence as Normalizers
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split
from tokenizers.processors import ByteLevel as ByteLevelProcessor
from tokenizers.processors import Sequence as Processors
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer

here = pathlib.Path(__file__).parent
text = (here / "../../../LICENSE").read_bytes().decode()
llama3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")

def train(pre_tokenizer, special):
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = ByteLevelDecoder()
    tokenizer.train_from_iterator([text], BpeTrainer(
        vocab_size=600, special_tokens=special, initial_alphabet=ByteLevel.alphabet(),
        show_progress=False))
    return tokenizer

def changed(tokenizer, change):
    whole = json.loads(tokenizer.to_str())
    change(whole)
    return whole

def write(name, whole):
    (here / name).write_text(json.dumps(whole, ensure_ascii=False, separators=(",", ":")) + "\n")
    return Tokenizer.from_file(str(here / name))

def make_gpt2():
    tokenizer = train(ByteLevel(add_prefix_space=True), ["<|endoftext|>"])
    tokenizer.post_processor = ByteLevelProcessor(trim_offsets=True)
    tokenizer.add_tokens([
        AddedToken("<left>", lstrip=True, normalized=False),
        AddedToken("<right>", rstrip=True, normalized=False),
        AddedToken("<both>", lstrip=True, rstrip=True, special=True, normalized=False),
        AddedToken(" x", normalized=False), AddedToken("abc", normalized=False),
        AddedToken("bcd", normalized=True), AddedToken("abcde", normalized=True),
        AddedToken("caf\u00e9\U0001f600", normalized=True),
        AddedToken("abcabc", normalized=False), AddedToken("\v", rstrip=True, normalized=False),
        AddedToken("\f", lstrip=True, rstrip=True, normalized=False)])
    def merges_as_text(whole):
        whole["model"]["merges"] = [" ".join(merge) for merge in whole["model"]["merges"]]
    return write("gpt2.json", changed(tokenizer, merges_as_text))

def make_llama3():
    tokenizer = train(Sequence([Split(Regex(llama3), "isolated"),
                                ByteLevel(add_prefix_space=False, use_regex=False)]), [])
    tokenizer.add_special_tokens(["<|begin|>", "<|end|>"])
    tokenizer.post_processor = Processors([
        ByteLevelProcessor(trim_offsets=False),
        TemplateProcessing(single="<|begin|> $A <|end|>", pair="<|begin|> $A $B",
                           special_tokens=[("<|begin|>", 600), ("<|end|>", 601)])])
    def ignore_merges(whole):
        whole["model"]["ignore_merges"] = True
        merges = whole["model"]["merges"]       # No merge makes " the": only ignore_merges finds it
        whole["model"]["merges"] = [m for m in merges if "\u0120the" not in ("".join(m), *m)]
    return write("llama3.json", changed(tokenizer, ignore_merges))

def make_smollm():
    tokenizer = train(Sequence([Digits(individual_digits=True),
                                ByteLevel(add_prefix_space=False)]), ["<unk>"])
    def lose_bytes(whole):
        model = whole["model"]
        model["unk_token"], model["fuse_unk"] = "<unk>", True
        for character in "\u0100\u0101qz":              # The bytes 0x00, 0x01, q, z
            del model["vocab"][character]
        model["merges"] = [m for m in model["merges"] if not set("qz") & set("".join(m))]
        model["vocab"] = {t: i for t, i in model["vocab"].items() if not set("qz") & set(t)}
    return write("smollm.json", changed(tokenizer, lose_bytes))

def make_neox():
    tokenizer = train(ByteLevel(add_prefix_space=True), ["<|endoftext|>", "<|padding|>"])
    tokenizer.normalizer = NFC()
    tokenizer.post_processor = ByteLevelProcessor(trim_offsets=True)
    tokenizer.add_tokens([AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)])
    tokenizer.add_tokens([AddedToken("caf\u00e9", normalized=True),
                          AddedToken("e\u0301t", normalized=False)])
    return write("neox.json", changed(tokenizer, lambda whole: None))

def make_qwen2():
    tokenizer = train(Sequence([Split(Regex(llama3.replace("{1,3}", "")), "isolated"),
                                ByteLevel(add_prefix_space=False, use_regex=False)]), [])
    tokenizer.normalizer = Normalizers([NFC()])
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.post_processor = ByteLevelProcessor(add_prefix_space=False, trim_offsets=False,
                                                  use_regex=False)
    return write("qwen2.json", changed(tokenizer, lambda whole: None))

texts = [
    "", " ", "  ", "\n", "\n\n", "\t", "a", " a", "a ", "Licensed under the Apache License, Version 2.0",
    "I'm you're he'll SHE'LL we'd I'D they've it's 's 'S '\u017f don't '", "a'sb 'tis 'RE'Ve''ll",
    "1 12 123 1234 12345 3.14159 1,000,000 2\u00b2 \u0661\u0662\u0663\u0664 \u2160\u2161 \u00bd",
    "tabs\tand\t\ttabs \t mixed\n\nlines\r\nCR\rLF \n \n end  ", "trailing   ", "   leading", "a   b",
    "!? ... --- (see) \"quoted\" #hash @at /* code */ if(x==1){return;}\n\n\n}", "!\n!\r\n\n x",
    "na\u00efve caf\u00e9 Stra\u00dfe \u0415\u0436 \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "e\u0301 n\u0303 \u0301x a\u0308\u0323 \u0e01\u0e33\u0e25\u0e31\u0e07 \u0939\u093f\u0928\u094d\u0926\u0940",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u3053\u3093\u306b\u3061\u306f \uc548\ub155 \u3000\u3000wide",
    "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2764\ufe0f\U00010348",
    "\u00a0nbsp\u00a0 \u2028line\u2029 \u0085next\u000b\u000c \u200bzero \u180emvs \ufeffbom",
    "\U00010d40\U00010d41 \ua7cb\u1c89 \U000323af", "\u0001\u007f\u0080 control \u0000 nul",
    "<|endoftext|>", "a<|endoftext|> b<|endoftext|><|endoftext|>", "<|begin|>x<|end|> <|begin|", "<unk>",
    "a <left> b  \n<left>\u3000<left>x", "a <right> b<right>  \n <right>x", "x \t<both>\n\n<both> y",
    "<right>   xy<left>", "<right>  <left> <both>  x", "abcde abc abcd bcde bcd abbcdabcd", " x xx  x",
    "caf\u00e9\U0001f600 caf\u00e9 \U0001f600", "quiz qqzz zebra q", "liability warranties contributors",
    "abcabcd abcab abcabcabc", " the the theorem", "a'\u017fb'\u017f", "a\v \f\v b", "\v\f\v\v\f x", "a \f b\f\v c",
    "cafe\u0301 caf\u00e9 cafe\u0301t e\u0301te\u0301 <|endoftext|>e\u0301<|endoftext|>\u0301", "e\u0301",
    "a\u0301\u0323 a\u0323\u0301 \u1ea5\u0323 q\u0307\u0323 \u1e0b\u0323 \u0344 \u212b \u2126 \u0958 \ufb2c \uf900\ufa10",
    "\u1112\u1161\u11ab\u1100\u1173\u11af \uac00\u11a8 \uac01\u11a8 \u1100\uac00 \u0dd9\u0dcf\u0dca",
    "\U00011935\U00011930 \U000105d2\u0307 \U0001e2ae\u0301\u0323 \U0001d15f\U0001d165 =\u0338 \u2add\u0338",
    "x\u0897\u0323 x\u1aca\u0323 \U00011de0\U00016ff4 1\U00011de5a \U00016121\U0001611e",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", text[:3000],
]
cases = []
for name, tokenizer in [("gpt2.json", make_gpt2()), ("llama3.json", make_llama3()),
                        ("smollm.json", make_smollm()),
                        ("neox.json", make_neox()), ("qwen2.json", make_qwen2())]:
    for case in texts:
        ids = tokenizer.encode(case, add_special_tokens=False).ids
        words = [len(word) for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(case)]
        cases.append({"tokenizer": name, "text": case, "ids": ids, "words": words})
lines = ",\n".join(json.dumps(case) for case in cases)
(here / "cases.json").write_text("[\n" + lines + "\n]\n")
