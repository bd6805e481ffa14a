// Descriptions of a dataset and proofs of its samples, from a provider: proof.c from inside. A
// description is believed only if its hashes fit, so this makes them fit and reaches the code
// behind them, too.

#include "common/data/proof.c"
#include "common/base/ensure.h"
#include "common/data/manifest.h"
#include "common/data/token_files.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/network.h"
#include "tests/fuzz/scratch.h"

#include <stdio.h>

// ---- the description ----------------------------------------------------------------------------

// Where its samples lie: inside their files, and in the blocks that are named.
static void check_places(struct dataset *self)
{
    const uint64_t last = self->samples.count - 1;
    const uint64_t positions[] = { 0, last, last / 2, last + 1, UINT64_MAX };
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        const struct sample_place place = samples_locate(&self->samples, positions[i]);
        ensure(place.file < self->manifest.file_count);
        const uint64_t bytes = self->manifest.files[place.file].bytes;
        const size_t count = samples_bytes(&self->samples);
        ensure(place.offset <= bytes && count <= bytes - place.offset);
        const struct sample_blocks blocks = samples_blocks(&self->samples, &place, bytes);
        ensure(blocks.first < blocks.end && blocks.end <= manifest_block_count(bytes));
        ensure(blocks.skip + count <= blocks.bytes);
        ensure(blocks.first * MANIFEST_BLOCK_BYTES + blocks.skip == place.offset);
    }
}

// Its samples are believed on no word but a proof.
static void check_unproved(struct dataset *self, const uint8_t *bytes, size_t count)
{
    struct why why = { 0 };
    uint32_t *tokens = malloc(samples_tokens(&self->samples) * sizeof *tokens);
    ensure(tokens);
    ensure(dataset_check(self, 0, 1, bytes, count, tokens, &why) < 0 && why.text[0]);
    free(tokens);
}

bool dataset_fuzz_check(const uint8_t *bytes, size_t count)
{
    static const struct hash another;
    struct why why = { 0 };
    struct dataset dataset = { 0 }, again;
    struct cursor in = { bytes, bytes + count };
    uint8_t *said = NULL;
    size_t said_count = 0;
    const int rc = parse(&in, &dataset, &why);
    if (rc < 0) {
        ensure(why.text[0]);
        dataset_free(&dataset);
        ensure(dataset_parse(bytes, count, &another, &another, &why, &again) < 0);
        return false;
    }
    const struct hash data = manifest_digest(&dataset.manifest);
    const struct hash order = dataset_order_of(&dataset.samples);
    ensure(dataset_describe(&dataset.samples, &dataset.manifest, &why, &said, &said_count) == 0);
    ensure(said_count == count && memcmp(said, bytes, count) == 0); // It says one thing only
    ensure(dataset_parse(bytes, count, &data, &another, &why, &again) == FAULT_DIGEST);
    ensure(dataset_parse(bytes, count, &another, &order, &why, &again) == FAULT_DIGEST);
    ensure(dataset_parse(bytes, count, &data, &order, &why, &again) == 0);
    check_places(&again);
    check_unproved(&again, bytes, count);
    dataset_free(&again);
    dataset_free(&dataset);
    free(said);
    return true;
}

// ---- samples ------------------------------------------------------------------------------------

enum {
    SETS = 2,
    SEQ = 900,
    TOKENS_A = 20000,
    TOKENS_B = 2500,
    ROWS_MAX = 3,
    EDIT_BYTES = 4,
    PROOF_MAX = 1 << 16
};

struct set {
    token_files_t *files;
    struct dataset dataset;
};

// Two files, in order and shuffled.
static struct set *set_of(unsigned number)
{
    static struct set sets[SETS];
    static uint16_t tokens[TOKENS_A];
    struct set *set = &sets[number % SETS];
    struct samples_config config = {
        .token_bytes = 2, .seq_len = SEQ, .shuffled = number % SETS, .seed = { 7 }
    };
    char name[8] = { 'd', (char)('0' + number % SETS), 0 };
    char path[512], file[16];
    struct manifest manifest;
    uint8_t *bytes;
    size_t count;
    if (set->files) return set;
    for (uint32_t i = 0; i < TOKENS_A; i++) tokens[i] = (uint16_t)(i * 40503u >> 3);
    snprintf(path, sizeof path, "%s", scratch_path(name));
    scratch_make_folder(name);
    snprintf(file, sizeof file, "%s/a.bin", name);
    scratch_put(file, tokens, sizeof tokens);
    snprintf(file, sizeof file, "%s/b.bin", name);
    scratch_put(file, tokens + 100, TOKENS_B * sizeof *tokens);
    ensure(manifest_build(path, 2, NULL, &manifest) == 0);
    ensure(manifest_write(&manifest, path, NULL) == 0);
    ensure(token_files_open(path, &config, NULL, &set->files) == 0);
    const struct samples *samples = token_files_samples(set->files);
    const struct hash order = dataset_order_of(samples);
    ensure(dataset_describe(samples, &manifest, NULL, &bytes, &count) == 0);
    ensure(dataset_parse(bytes, count, &manifest.digest, &order, NULL, &set->dataset) == 0);
    manifest_free(&manifest);
    free(bytes);
    return set;
}

// Edits of four bytes each: what, where (of 65536ths of all), with what.
static size_t edit(uint8_t *proof, size_t count, const uint8_t *edits, size_t edit_count)
{
    for (; edit_count >= EDIT_BYTES && count > 0; edits += EDIT_BYTES, edit_count -= EDIT_BYTES) {
        const size_t at = (size_t)(edits[1] | (unsigned)edits[2] << 8) * count >> 16;
        const size_t length = edits[3] < count - at ? edits[3] : count - at;
        switch (edits[0] % 4) {
        case 0: proof[at] ^= edits[3]; break;
        case 1: // Lost
            memmove(proof + at, proof + at + length, count - at - length);
            count -= length;
            break;
        case 2: // Twice
            if (count + length > PROOF_MAX) break;
            memmove(proof + at + length, proof + at, count - at);
            count += length;
            break;
        case 3: proof[at] = edits[3]; break;
        }
    }
    return count;
}

// `set`, where it is said to be, where it is from, how many, then edits of the true proof. Whatever
// is believed is the dataset's.
bool samples_fuzz_check(const uint8_t *bytes, size_t count)
{
    static uint32_t tokens[ROWS_MAX * (SEQ + 1)], truth[ROWS_MAX * (SEQ + 1)];
    struct why why = { 0 };
    struct proof proof = { 0 };
    if (count < 4) return false;
    struct set *set = set_of(bytes[0]);
    const uint64_t said = bytes[1], from = bytes[2];
    const uint32_t rows = 1 + bytes[3] % ROWS_MAX;
    const bool raw = bytes[3] & 0x80; // The bytes themselves are the proof
    uint8_t *room = malloc(PROOF_MAX);
    ensure(room && token_files_prove(set->files, from, rows, &proof, &why) == 0);
    ensure(proof.count <= PROOF_MAX);
    memcpy(room, raw ? bytes + 4 : proof.bytes, raw ? count - 4 : proof.count);
    const size_t length = raw ? count - 4 : edit(room, proof.count, bytes + 4, count - 4);
    uint8_t *exact = malloc(length + !length); // A byte beyond it would be seen
    ensure(exact);
    memcpy(exact, room, length);
    const int rc = dataset_check(&set->dataset, said, rows, exact, length, tokens, &why);
    ensure(rc == 0 || (why.text[0] && (rc == FAULT_FORMAT || rc == FAULT_DIGEST)));
    const bool is_true =
        said == from && length == proof.count && memcmp(exact, proof.bytes, length) == 0;
    ensure(!is_true || rc == 0);
    if (rc == 0) {
        ensure(token_files_read(set->files, said, rows, truth, NULL) == 0);
        ensure(memcmp(tokens, truth, rows * (SEQ + 1) * sizeof *tokens) == 0);
    }
    free(exact);
    free(room);
    free(proof.bytes);
    return rc == 0;
}

// ---- what to begin with -------------------------------------------------------------------------

void dataset_fuzz_write_seeds(const char *folder)
{
    uint8_t *bytes;
    size_t count;
    char name[16];
    for (unsigned i = 0; i < SETS; i++) {
        const struct set *set = set_of(i);
        ensure(dataset_describe(token_files_samples(set->files), token_files_manifest(set->files),
                                NULL, &bytes, &count) == 0);
        snprintf(name, sizeof name, "seed-%u", i);
        fuzz_write_seed(folder, name, bytes, count);
        free(bytes);
    }
}

void samples_fuzz_write_seeds(const char *folder)
{
    static const uint8_t seeds[][8] = { { 0, 3, 3, 0 },
                                        { 1, 3, 3, 2 },
                                        { 0, 3, 4, 0 },
                                        { 0, 20, 20, 1, 0, 0, 0, 1 },
                                        { 0, 20, 20, 1, 1, 0, 9, 4 },
                                        { 1, 9, 9, 0, 2, 0, 0, 4 } };
    char name[16];
    for (unsigned i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        snprintf(name, sizeof name, "seed-%u", i);
        fuzz_write_seed(folder, name, seeds[i], i < 3 ? 4 : 8);
    }
}
