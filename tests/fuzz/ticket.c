// Who may come in: tickets by paste, a broker's list by file.

#include "broker/admission.h"
#include "common/actor/ticket.h"
#include "common/ensure.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/network.h"
#include "tests/fuzz/scratch.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { SUM_BYTES = 4 };

// The line that these bytes make, with the sum that they should have.
static char *seal_ticket(const uint8_t *bytes, size_t count)
{
    uint8_t sealed[TICKET_TEXT_MAX + SUM_BYTES];
    if (count > TICKET_TEXT_MAX) count = TICKET_TEXT_MAX;
    memcpy(sealed, bytes, count);
    const struct hash sum = hash_of(sealed, count);
    memcpy(sealed + count, sum.bytes, SUM_BYTES);
    const size_t max = sodium_base64_encoded_len(sizeof sealed,
                                                 sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    char *text = malloc(max + 6);
    ensure(text);
    memcpy(text, "shoal:", 6);
    sodium_bin2base64(text + 6, max, sealed, count + SUM_BYTES,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return text;
}

// What is read is printed, and read again.
bool ticket_fuzz_check(const uint8_t *bytes, size_t count)
{
    struct why why = { 0 };
    struct ticket ticket, again;
    char text[TICKET_TEXT_MAX];
    if (count == 0) return false;
    char *line = bytes[0] == 's' ? seal_ticket(bytes + 1, count - 1)
                                 : strndup((const char *)bytes + 1, count - 1);
    ensure(line);
    const bool accepted = ticket_parse(line, &why, &ticket) == 0;
    ensure(accepted || why.text[0]);
    free(line);
    if (!accepted) return false;
    ensure(ticket_parse(ticket_print(&ticket, text), &why, &again) == 0);
    ensure(key_equal(&ticket.server, &again.server) && strcmp(ticket.run, again.run) == 0);
    ensure(strcmp(ticket.address, again.address) == 0);
    ensure(ticket.has_invitation == again.has_invitation);
    return true;
}

void ticket_fuzz_write_seeds(const char *folder)
{
    uint8_t seed[1 + TICKET_TEXT_MAX] = { 's', 1 };
    size_t used = 2 + KEY_BYTES;
    memset(seed + 2, 7, KEY_BYTES);
    seed[used++] = 9, memcpy(seed + used, "host:5550", 9), used += 9;
    seed[used++] = 4, memcpy(seed + used, "demo", 4), used += 4;
    seed[used++] = 0;
    fuzz_write_seed(folder, "seed-plain", seed, used);
    seed[used - 1] = INVITATION_BYTES;
    seed[used] = 1;
    fuzz_write_seed(folder, "seed-invited", seed, used + INVITATION_BYTES);
}

// Refused whole, or a table of those who are in it.
bool allowlist_fuzz_check(const uint8_t *bytes, size_t count)
{
    static const struct key server = { { 1 } };
    struct why why = { 0 };
    struct admission *admission = NULL;
    scratch_put("allowlist", bytes, count);
    const struct admission_options options = { .policy = ADMIT_ALLOWLIST, .server = &server,
                                               .list_path = scratch_path("allowlist") };
    const bool accepted = admission_new(&options, &why, &admission) == 0;
    ensure(accepted || why.text[0]);
    if (accepted) {
        const struct curve_key nobody = { { 0 } };
        ensure(!admission_lets_in(admission, &nobody, false));
        ensure(admission_reload(admission, &why) == 0);
    }
    admission_destroy(&admission);
    return accepted;
}
