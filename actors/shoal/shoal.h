#pragma once
// shoal -- the front command: one word, then what it takes.
//
//     shoal demo                                  shoal status --run-id demo
//
// Each command parses its own line (argv[0] is "shoal NAME"), says on stderr what went wrong,
// prints data on stdout and returns an exit code of sysexits.h; it is 74 if not all of that data could
// be written. Readers print JSON with --json: one object with a "schema" field.

#include "common/base/fault.h"
#include "common/base/hash.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define SHOAL_BROKER "127.0.0.1:5550" // Where a broker of this machine is, unless told otherwise

int shoal_checkpoint(int argc, char **argv);
int shoal_restore(int argc, char **argv);
int shoal_demo(int argc, char **argv);
int shoal_doctor(int argc, char **argv);
int shoal_eval(int argc, char **argv);
int shoal_explain(int argc, char **argv);
int shoal_export(int argc, char **argv);
int shoal_init(int argc, char **argv);
int shoal_init_model(int argc, char **argv);
int shoal_invite(int argc, char **argv);
int shoal_join(int argc, char **argv);
int shoal_manifest(int argc, char **argv);
int shoal_new_identity(int argc, char **argv);
int shoal_pause(int argc, char **argv);
int shoal_plot(int argc, char **argv);
int shoal_prepare_text(int argc, char **argv);
int shoal_resume(int argc, char **argv);
int shoal_sample(int argc, char **argv);
int shoal_show_identity(int argc, char **argv);
int shoal_status(int argc, char **argv);
int shoal_testnet(int argc, char **argv);
int shoal_tokenize(int argc, char **argv);
int shoal_train(int argc, char **argv);
int shoal_train_tokenizer(int argc, char **argv);
int shoal_up(int argc, char **argv);
int shoal_validate_config(int argc, char **argv);

// Prints the object on one line and frees it. NULL (no memory) is FAULT_MEMORY, a full pipe
// FAULT_IO.
int shoal_print_json(json_t *object, struct why *why);

// JSON has no number for one that is not finite: null.
json_t *shoal_number(double value);

json_t *shoal_hash(const struct hash *hash); // 64 hexadecimal digits; null for none

// A path, a name or a sentence for JSON, which is UTF-8. If `text` is not, a "?" stands for each byte beyond ASCII. The
// caller owns it; NULL: no memory.
json_t *shoal_text(const char *text);

// The same for pictures: `text`, or words that say that it is not UTF-8.
const char *shoal_shown(const char *text);

// However they are spelt. What does not exist is no file.
bool shoal_is_same_file(const char *a, const char *b);

uint32_t shoal_threads(void); // As many as there are processors, at most POOL_THREADS_MAX
