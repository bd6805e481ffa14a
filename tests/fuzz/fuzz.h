#pragma once
// fuzz -- every decoder and every core, as a function of untrusted bytes.
//
//     make fuzz TIME=60            each target for a minute under libFuzzer, ASan and UBSan
//     make fuzz TIME=600 T=wire    one of them
//     build/fuzz/fuzz/replay T FILE...  replays files: what a crash left; without files the bundle
//
// targets.c lists them; tests/fuzz/corpus/NAME.hex (bundle.h) holds what each must be tried with,
// always: the unit test fuzz_corpus_test replays all of it. An input's name may say what must
// become of it ("accepted-..", "refused-.."); of any other only that nothing dies of it.
//
// To add a decoder: a function that returns whether the bytes were accepted and dies (ensure) where
// something does not hold, a line in targets.c, and a seed or two in the corpus.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fuzz_target {
    const char *name; // Its corpus and its dictionary are called like it
    size_t bytes_max; // Of an input: libFuzzer's -max_len
    // True if accepted. Dies where it does not hold. Not for two threads at once; run from the root
    // of the source.
    bool (*check)(const uint8_t *bytes, size_t count);
    // Changes bytes in place and returns their new count, at most `max`; NULL: libFuzzer's own way.
    size_t (*mutate)(uint8_t *bytes, size_t count, size_t max, uint32_t seed);
    // Prints lines of libFuzzer's dictionary, and writes seeds into a folder; NULL: has none.
    void (*print_dictionary)(void);
    void (*write_seeds)(const char *folder);
};

extern const struct fuzz_target fuzz_targets[];                // Ended by one without a name
const struct fuzz_target *fuzz_target_named(const char *name); // NULL: there is none

// Of a target's mutate: libFuzzer's own mutation. Without its engine it changes nothing.
size_t fuzz_mutate_blindly(uint8_t *bytes, size_t count, size_t max);

// FUZZ_VERBOSE=1: why bytes are refused, what a core hears and says.
bool fuzz_is_verbose(void);

// Helpers of print_dictionary and write_seeds. A seed that cannot be written ends the process.
void fuzz_print_token(const char *prefix, const char *name, const uint8_t *bytes, size_t count);
void fuzz_write_seed(const char *folder, const char *name, const void *bytes, size_t count);
