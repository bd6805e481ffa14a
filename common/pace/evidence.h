#pragma once
// evidence -- what a run's records prove to anyone who has them all and the run's configuration.
// Nobody need believe the coordinator that wrote them:
//
//     the GENESIS     is that of the configuration
//     every MEMBER    has a place and a key of its own, and its life began under the number that was the
//                     newest
//     what the pace records follows from the records before it (common/pace/rounds/rounds_evidence.h)
//
// Not shown: that the chain is the one that members saw (their signed BEATs say so, see ledger_covers).
//
//     struct evidence *evidence;
//     rc = evidence_open("coordinator-state", &why, &evidence);
//     if (!evidence_hear(evidence, seq, kind, body)) puts(evidence->text);    // Each, from 1 on
//
// Pure but for what evidence_shell.c has: evidence_open, evidence_verify. One thread.

#include "common/base/fault.h"
#include "common/pace/pace.h"

enum { EVIDENCE_TEXT_MAX = 400 };

// Whether the key's owner signed these bytes.
typedef bool evidence_verify_fn(const struct key *key, const uint8_t *bytes, size_t count,
                                const uint8_t signature[WIRE_SIGNATURE_BYTES]);

struct evidence {
    uint64_t counts[PACE_COUNTS_MAX]; // What was borne out, as pace->evidence_counts names them
    char text[EVIDENCE_TEXT_MAX];     // What does not hold, and what would; "": nothing does not

    evidence_verify_fn *verify;
    struct rules rules;
    const struct pace *pace;
    uint64_t run_seed, step, number, born_unix_ms; // As the records have them so far
    struct roster roster;
    _Alignas(8) uint8_t frames[2][4096];
    _Alignas(16) uint8_t pace_state[PACE_EVIDENCE_BYTES];
};

// Prepares zeroed memory (about 13 MiB, most of it never touched).
void evidence_init(struct evidence *self, const struct rules *rules, evidence_verify_fn *verify);

// Hears the next record, from the GENESIS on; `body` is what wire_unpack made of it. False, and why
// in `text`: it does not hold; then nothing after it can be judged.
bool evidence_hear(struct evidence *self, uint64_t seq, uint16_t kind, const void *body);

// For the ledger in `dir`: the rules are those of the state.toml that the coordinator put beside it
// (rules_of_config), which must be the configuration that the GENESIS names. The faults of config_load_run.
int evidence_open(const char *dir, struct why *why, struct evidence **ret_evidence);
evidence_verify_fn evidence_verify;            // Ed25519
void evidence_close(struct evidence **self_p); // NULL is allowed

// ---- for paces ----------------------------------------------------------------------------------

// Says what does not hold. Returns false.
bool evidence_bad(struct evidence *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// The body of a frame of this kind and run that the key's owner signed, until the next in this place
// (0 or 1); NULL: it is no such frame.
const void *evidence_signed(struct evidence *self, unsigned place, const struct wire_bytes *frame,
                            uint16_t kind, const struct key *key);
