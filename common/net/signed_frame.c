#include "common/net/signed_frame.h"
#include <string.h>

size_t signed_frame_sign(const struct identity *identity, uint8_t *frame, size_t count, size_t max)
{
    struct signature signature;
    identity_sign(identity, frame, wire_signed_bytes(frame, count), &signature);
    return wire_put_signature(frame, count, signature.bytes, max);
}

bool signed_frame_verify(const uint8_t *frame, size_t count, const struct wire_head *head)
{
    struct signature signature;
    const uint8_t *bytes = wire_signature(frame, count);
    if (!bytes) return false;
    memcpy(signature.bytes, bytes, sizeof signature.bytes);
    return signature_verify(&head->sender, frame, wire_signed_bytes(frame, count), &signature);
}
