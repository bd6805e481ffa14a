#pragma once
// demo_text -- the text that the demo trains on, from packages of Debian and without a network: the
// King James Bible as `bible -f` of bible-kjv prints it (4.4 MB, a reference such as "Ge1:1" at the
// start of each line, kept) and then the Jargon File of jargon-text (1.7 MB). Both public domain.
//
// Writes what text_tokens.h draws, and baselines.json beside it (baselines.h).
//
// Slim images drop /usr/share/doc, where the Jargon File lies. Without it the Bible alone is used;
// a line says so and how to get the file. The baselines are always those of the text that was used.

#include <stdint.h>

#include "common/base/fault.h"
#include "common/data/ngram.h"

#define DEMO_TEXT_JARGON "/usr/share/doc/jargon-text/jargon.txt.gz"

struct demo_text_result {
    uint64_t bible_bytes, jargon_bytes; // jargon_bytes 0: it was not there
    uint64_t train_bytes, heldout_bytes;
    double nats[NGRAM_ORDERS]; // Per held-out byte
};

// Called with a line of progress, without a line end.
typedef void demo_text_say(void *context, const char *line);

// `jargon_path` NULL means DEMO_TEXT_JARGON; compressed or plain. `say` may be NULL. `seq_len` goes
// into tokenizer_config.json. FAULT_NOT_FOUND, naming the package, without the bible program. Takes
// about 0.2 s.
int demo_text_prepare(const char *dir, const char *jargon_path, uint32_t seq_len,
                      demo_text_say *say, void *context, struct why *why,
                      struct demo_text_result *ret_result);
