#pragma once
// signed_frame -- the signature at the end of a frame (common/wire/wire.h), made and checked.
//
// The sender that the frame's head names signs all bytes before the signature. Any thread.

#include "common/crypto/identity.h"
#include "common/wire/wire.h"

// Appends our signature to a frame of `count` bytes whose head names us as its sender. Returns the
// frame's new length; 0: it has a signature already, or `max` has no room for one.
size_t signed_frame_sign(const struct identity *identity, uint8_t *frame, size_t count, size_t max);

// True if the frame is signed, by the sender that its head names.
bool signed_frame_verify(const uint8_t *frame, size_t count, const struct wire_head *head);
