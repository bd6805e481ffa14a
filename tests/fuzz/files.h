#pragma once
// files -- any bytes as a file from a disk or a server: they are read whole, or refused by name.
// Each function returns whether the bytes were accepted.
//
// Where bytes are sealed with a hash of their own, the first byte says whether the seal is put
// right before they are read ('s'): so that what lies behind it is reached, too.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool model_fuzz_check(const uint8_t *bytes, size_t count);

// manifest.json of a dataset.
bool manifest_fuzz_check(const uint8_t *bytes, size_t count);
void manifest_fuzz_write_seeds(const char *folder);

// The head of a .npy file; the first 8 bytes are the length of the whole file.
bool npy_fuzz_check(const uint8_t *bytes, size_t count);
void npy_fuzz_write_seeds(const char *folder);

// A folder of token files: vocabulary, sequence length, flags, then what is in a.bin (or a.npy).
bool tokens_fuzz_check(const uint8_t *bytes, size_t count);
void tokens_fuzz_write_seeds(const char *folder);

// shoal.json of a checkpoint, sealed.
bool checkpoint_fuzz_check(const uint8_t *bytes, size_t count);
void checkpoint_fuzz_write_seeds(const char *folder);

// The texts of a save of pieces: 'n' a note, 'c' a cut, 'm' a manifest; a capital: sealed anew.
bool pieces_fuzz_check(const uint8_t *bytes, size_t count);
void pieces_fuzz_write_seeds(const char *folder);

// A whole save of pieces: a template with edits.
bool saves_fuzz_check(const uint8_t *bytes, size_t count);
void saves_fuzz_write_seeds(const char *folder);

// The text with the sha256 that it should have, which the caller frees; NULL if it is no JSON object.
char *files_seal_json(const char *text, size_t count);

// 'r' a ledger's record, 's' a snapshot; 'R', 'S': with its chain put right. Then as stored_unpack
// reads it.
bool ledger_fuzz_check(const uint8_t *bytes, size_t count);
void ledger_fuzz_write_seeds(const char *folder);

// Records of groups and tasks, and the part of a snapshot that has them (tasks.c).
bool tasks_fuzz_check(const uint8_t *bytes, size_t count);
void tasks_fuzz_write_seeds(const char *folder);

// The file that LMDB keeps of a ledger: a template with edits.
bool pages_fuzz_check(const uint8_t *bytes, size_t count);
void pages_fuzz_write_seeds(const char *folder);

// Short texts of a command line or a small file. And texts to be tokenised: 'j' lines of JSON.
bool texts_fuzz_check(const uint8_t *bytes, size_t count);
void texts_fuzz_write_seeds(const char *folder);
bool corpus_fuzz_check(const uint8_t *bytes, size_t count);
void corpus_fuzz_write_seeds(const char *folder);

// A member's journal: two slots; the first byte says how many of them are sealed.
bool journal_fuzz_check(const uint8_t *bytes, size_t count);
void journal_fuzz_write_seeds(const char *folder);

// 's' a state.toml, 'd' a data.toml.
bool config_fuzz_check(const uint8_t *bytes, size_t count);
void config_fuzz_write_seeds(const char *folder);

// JSON, within its bounds.
bool json_fuzz_check(const uint8_t *bytes, size_t count);

// Multiple-choice questions, a line each.
bool choices_fuzz_check(const uint8_t *bytes, size_t count);

// Dictionaries: words of all our JSON files, every key of the settings, those of a .npy file.
void files_fuzz_print_json_words(void);
void config_fuzz_print_dictionary(void);
void npy_fuzz_print_dictionary(void);
