#pragma once
// crypto_counts -- what a process signs, verifies, hashes and boxes. Its preload (crypto_counts.c)
// keeps the sums since the start in a shared file, so that they can be read while it runs.
//
//     LD_PRELOAD=build/bench/crypto_counts.so SHOAL_CRYPTO_COUNTS=DIR shoal-trainer ...
//
//     signed     crypto_sign_detached             What common/crypto and libzmq ask of libsodium
//     verified   crypto_sign_verify_detached      and OpenSSL; the programs are the product's own.
//     hashed     SHA256, EVP_Digest*              Bytes are the message's, without what a box
//     CURVE      crypto_box*_afternm, both ways   adds.
//
// Times are processor time of the calling thread (what another process does meanwhile is not in
// them), less what asking for the time costs, which is measured at the start. So a single hash of
// a few bytes is below what can be told apart; the sum over many is right.

#include <stdint.h>

enum crypto_counted { COUNT_SIGNED, COUNT_VERIFIED, COUNT_HASHED, COUNT_CURVE, COUNTED };

struct crypto_count {
    int64_t calls, bytes, ns;
};
struct crypto_counts {
    struct crypto_count of[COUNTED];
}; // The file DIR/crypto-counts.<pid>
#define CRYPTO_COUNTS_FILE "%s/crypto-counts.%d"
