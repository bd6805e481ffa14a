#include "common/data/byte_tokenizer.h"
#include "common/data/json_file.h"

static int is_printable(unsigned byte)
{
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

uint32_t byte_tokenizer_code_point(uint8_t byte)
{
    uint32_t others = 0;
    if (is_printable(byte)) return byte;
    for (unsigned before = 0; before < byte; before++) others += !is_printable(before);
    return 0x100 + others;
}

// All code points here are below U+0800: one or two bytes of UTF-8.
static void to_utf8(uint32_t code_point, char text[3])
{
    const int wide = code_point >= 0x80;
    text[0] = (char)(wide ? 0xc0 | code_point >> 6 : code_point);
    text[1] = (char)(wide ? 0x80 | (code_point & 0x3f) : 0);
    text[2] = 0;
}

static json_t *vocab(void)
{
    json_t *json = json_object();
    for (unsigned byte = 0; byte < BYTE_VOCAB; byte++) {
        char text[3];
        to_utf8(byte_tokenizer_code_point((uint8_t)byte), text);
        if (json_object_set_new(json, text, json_integer(byte)) < 0) {
            json_decref(json);
            return NULL;
        }
    }
    return json;
}

static json_t *byte_level(void)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                     "trim_offsets", 1, "use_regex", 0);
}

static json_t *tokenizer(void)
{
    json_t *model = json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:o, s:[]}", "type", "BPE",
                              "dropout", "unk_token", "continuing_subword_prefix",
                              "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0, "vocab",
                              vocab(), "merges");
    return json_pack("{s:s, s:n, s:n, s:[], s:n, s:o, s:n, s:o, s:o}", "version", "1.0",
                     "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                     byte_level(), "post_processor", "decoder", byte_level(), "model", model);
}

int byte_tokenizer_write(const char *dir, uint32_t seq_len, struct why *why)
{
    int rc = json_file_write(dir, "tokenizer.json", tokenizer(), SIZE_MAX, why);
    if (rc < 0) return rc;
    return json_file_write(dir, "tokenizer_config.json",
                           json_pack("{s:s, s:I, s:b, s:b}", "tokenizer_class",
                                     "PreTrainedTokenizerFast", "model_max_length",
                                     (json_int_t)seq_len, "clean_up_tokenization_spaces", 0,
                                     "add_prefix_space", 0), SIZE_MAX, why);
}
