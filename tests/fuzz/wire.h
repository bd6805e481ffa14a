#pragma once
// wire -- frames and records from anywhere, against the table, against msgpack-c, and signed.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// True if the bytes are a valid frame or a valid record (wire_check.h says what must then hold).
// Beside that: what we pass over as one value of msgpack, msgpack-c takes for one of the same
// length; and a frame whose signature verifies no longer does once a byte under it is changed.
bool wire_fuzz_check(const uint8_t *bytes, size_t count);

// Mutates a frame field by field within its table, and signs it again with a key of ours; else
// libFuzzer's own way.
size_t wire_fuzz_mutate(uint8_t *bytes, size_t count, size_t max, uint32_t seed);
void wire_fuzz_print_dictionary(void);
void wire_fuzz_write_seeds(const char *folder);
