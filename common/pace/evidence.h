#pragma once
// evidence -- verifies the records of a run: with all records and the run's configuration, anyone
// can check the coordinator that wrote them.
//
//     GENESIS               it follows from the configuration
//     each MEMBER           it has an index and a key of its own, and its `joined_number` is the
//                           newest number at that record
//     records of the pace   they follow from the records before them
//                           (common/pace/rounds/rounds_evidence.h)
//
// It does not verify that members saw this chain: their signed BEATs do (see ledger_covers).
//
//     struct evidence *evidence;
//     rc = evidence_open("coordinator-state", &why, &evidence);
//     if (!evidence_hear(evidence, seq, kind, body)) puts(evidence->text);    // Each, from 1 on
//
// Pure, except for evidence_open and evidence_verify (evidence_shell.c). One thread.

#include "common/base/fault.h"
#include "common/pace/pace.h"

enum { EVIDENCE_TEXT_MAX = 400 };

// Returns whether the key's owner signed these bytes.
typedef bool evidence_verify_fn(const struct key *key, const uint8_t *bytes, size_t count,
                                const uint8_t signature[WIRE_SIGNATURE_BYTES]);

struct evidence {
    uint64_t counts[PACE_COUNTS_MAX]; // What was verified, as pace->evidence_counts names it
    char text[EVIDENCE_TEXT_MAX];     // What is wrong, and what would be right; "": nothing yet

    evidence_verify_fn *verify;
    struct rules rules;
    const struct pace *pace;
    uint64_t run_seed, step, number, born_unix_ms; // After the records so far
    struct roster roster;                          // The same
    _Alignas(8) uint8_t frames[2][4096];           // Bodies that evidence_signed returns
    _Alignas(16) uint8_t pace_state[PACE_EVIDENCE_BYTES];
};

// Prepares zeroed memory (about 13 MiB, most of it never touched).
void evidence_init(struct evidence *self, const struct rules *rules, evidence_verify_fn *verify);

// Verifies the next record, from the GENESIS on; `body` is what wire_unpack made of it. False: it
// does not follow from the records before it, and `text` says why. Then later records cannot be
// verified.
bool evidence_hear(struct evidence *self, uint64_t seq, uint16_t kind, const void *body);

// Prepares the verification of the ledger in `dir`. The rules follow from the state.toml that the
// coordinator put there (rules_of_config); the GENESIS must name this configuration. 0, or a fault
// of config_load_run. The caller closes *ret_evidence.
int evidence_open(const char *dir, struct why *why, struct evidence **ret_evidence);
evidence_verify_fn evidence_verify;            // Ed25519
void evidence_close(struct evidence **self_p); // NULL is allowed

// ---- for paces ----------------------------------------------------------------------------------

// Writes to `text` what is wrong. Returns false.
bool evidence_refuse(struct evidence *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// The body of `frame`, if it is a frame of this kind and run that the key's owner signed; else
// NULL. The body is valid until the next call with this `place` (0 or 1).
const void *evidence_signed(struct evidence *self, unsigned place, const struct wire_bytes *frame,
                            uint16_t kind, const struct key *key);
