#pragma once
// evidence -- what a run's records prove to anyone who has them all and the run's configuration.
// Nobody need believe the coordinator that wrote them:
//
//     every ROUND     its seed, clients, witnesses, auditors and judges follow from the records
//                     before it: draw_round draws again, and the record must say the same
//     every COMMIT    the key that it reveals is that of the lock its round was opened under
//     every FINDING   was said by the auditor that was drawn, and bears its signature
//     every MEMBER    owes as many audits as the findings on record leave, and its life began in
//                     the round that was open
//     every EJECTION  of an equivocation: two claims of one round, both signed by the member that is ejected;
//                     else the judges' findings on record come to that verdict
//
// A draw that used more than the ledger has would be found out here, in every simulated and every
// live run. Not shown: that a vote was cast (commits count votes, which are not kept); that the
// chain is the one that members saw (their signed BEATs say so, see ledger_covers).
//
//     struct evidence *evidence;
//     rc = evidence_open("coordinator-state", &why, &evidence);
//     if (!evidence_hear(evidence, seq, kind, body)) puts(evidence->text);    // Each, from 1 on
//
// Pure but for what evidence_shell.c has: evidence_open, evidence_verify. One thread.

#include "common/base/fault.h"
#include "common/pace/rounds/draw.h"

enum { EVIDENCE_TEXT_MAX = 400 };

// Whether the key's owner signed these bytes.
typedef bool evidence_verify_fn(const struct key *key, const uint8_t *bytes, size_t count,
                                const uint8_t signature[WIRE_SIGNATURE_BYTES]);

struct evidence {
    struct evidence_found {
        uint64_t rounds, keys, audits;    // Drawn again; that fit; auditors and judges among them
        uint64_t findings, equivocations; // Whose signatures verify
        uint64_t ejections;               // All that were justified
    } found;
    char text[EVIDENCE_TEXT_MAX]; // What does not hold, and what would; "": nothing does not

    evidence_verify_fn *verify;
    struct rules rules;
    uint64_t run_seed, step, born_unix_ms; // As the records have them so far
    struct roster roster;
    struct round round;
    struct draw draw;
    _Alignas(8) uint8_t frames[2][4096];
};

// Prepares zeroed memory (about 10 MiB, most of it never touched). Of the rules it goes by those that the
// GENESIS must name, and by `draw`.
void evidence_init(struct evidence *self, const struct rules *rules, evidence_verify_fn *verify);

// Hears the next record, from the GENESIS on; `body` is what wire_unpack made of it. False, and why
// in `text`: it does not hold; then nothing after it can be judged.
bool evidence_hear(struct evidence *self, uint64_t seq, uint16_t kind, const void *body);

// For the ledger in `dir`: the rules are those of the state.toml that the coordinator put beside it
// (rules_of_config), which must be the configuration that the GENESIS names. The faults of config_load_run.
int evidence_open(const char *dir, struct why *why, struct evidence **ret_evidence);
evidence_verify_fn evidence_verify;            // Ed25519
void evidence_close(struct evidence **self_p); // NULL is allowed
