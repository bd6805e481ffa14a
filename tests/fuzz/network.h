#pragma once
// network -- untrusted bytes from peers and servers beside frames. Each function returns whether
// they were accepted.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A result's payload: the first byte chooses the form (which tensors, how many coefficients, one
// bit or not), the rest is filled up with zeros or cut to the size that this form has.
bool payload_fuzz_check(const uint8_t *bytes, size_t count);
void payload_fuzz_write_seeds(const char *folder);

// A Merkle proof: leaf count, first leaf, how many; then which are said to be first, and of how
// many; then the path.
bool merkle_fuzz_check(const uint8_t *bytes, size_t count);

// The packed body of a COMMIT or a VOTE, as receivers judge it: 'c', 'v'.
bool claims_fuzz_check(const uint8_t *bytes, size_t count);
void claims_fuzz_write_seeds(const char *folder);

// Lines of an HTTP answer's header, to a request for 10 of 100 bytes.
bool http_fuzz_check(const uint8_t *bytes, size_t count);
void http_fuzz_print_dictionary(void);

// Answers of peers while a blob ('b') or a model ('m') is fetched: four bytes each.
bool bulk_fuzz_check(const uint8_t *bytes, size_t count);
void bulk_fuzz_write_seeds(const char *folder);

// A ticket as a line; 's': the bytes of one, with its sum put right. And a broker's list.
bool ticket_fuzz_check(const uint8_t *bytes, size_t count);
void ticket_fuzz_write_seeds(const char *folder);
bool allowlist_fuzz_check(const uint8_t *bytes, size_t count);

// An invitation and its signer, as a broker hears it in a HELLO; 'r': the broker's record of
// invitations.
bool invitation_fuzz_check(const uint8_t *bytes, size_t count);
void invitation_fuzz_write_seeds(const char *folder);
// What a broker's file of revoked tickets and keys says.
bool revoked_fuzz_check(const uint8_t *bytes, size_t count);
void revoked_fuzz_write_seeds(const char *folder);

// A request of the library about a connection: parts, each behind its length.
bool zap_fuzz_check(const uint8_t *bytes, size_t count);
void zap_fuzz_write_seeds(const char *folder);

// The handshake of a link of a group, edited; and messages on its connections: events (link.c).
bool handshake_fuzz_check(const uint8_t *bytes, size_t count);
void handshake_fuzz_write_seeds(const char *folder);
bool link_fuzz_check(const uint8_t *bytes, size_t count);
void link_fuzz_write_seeds(const char *folder);

// Questions of trainers to a server that is not in step, its answers, and its life (pushes.c).
bool pushes_fuzz_check(const uint8_t *bytes, size_t count);
void pushes_fuzz_write_seeds(const char *folder);

// A provider's description of a dataset; and samples that it proves, or does not: edits of a true
// proof, or a proof as it is.
bool dataset_fuzz_check(const uint8_t *bytes, size_t count);
void dataset_fuzz_write_seeds(const char *folder);
bool samples_fuzz_check(const uint8_t *bytes, size_t count);
void samples_fuzz_write_seeds(const char *folder);

// Questions to a server of blobs, leaves and samples: events (events.h).
bool questions_fuzz_check(const uint8_t *bytes, size_t count);
void questions_fuzz_write_seeds(const char *folder);
