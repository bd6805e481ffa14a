// storage -- the ledger against SIGKILL, power cuts and flipped bits, and blobs against flipped
// bits.
//
//     storage KILLS IMAGES FLIPS [SEED]   300 5000 500: the short form; 10000 1000000 10000: the long
//
// byte_flips_test covers datasets, checkpoints and data that comes by HTTP; make storage runs both.
//
// Says five lines of TAP and the figures. Exit 1 if anything that was confirmed was lost.

#include "common/base/clock.h"
#include "tests/storage/storm.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void say(int number, const char *what, const struct tally *tally, double took_s)
{
    printf("%s %d - %s: %" PRIu64 ", lost %" PRIu64 "\n", tally->lost ? "not ok" : "ok", number,
           what, tally->trials, tally->lost);
    printf("# with more than was confirmed %" PRIu64 ", refused %" PRIu64 ", cut before the first "
           "commit %" PRIu64 ", rolled back %" PRIu64 " of which detected %" PRIu64 ", %.0f/s\n",
           tally->unacknowledged, tally->refused, tally->unborn, tally->rollbacks, tally->detected,
           (double)tally->trials / took_s);
}

int main(int argc, char **argv)
{
    struct tally killed = { 0 }, cut = { 0 }, torn = { 0 }, ledgers = { 0 }, blobs = { 0 };
    if (argc < 4 || argc > 5)
        return fputs("usage: storage KILLS IMAGES FLIPS [SEED]\n", stderr), 64;
    const uint64_t kills = strtoull(argv[1], NULL, 10), images = strtoull(argv[2], NULL, 10);
    const uint64_t flips = strtoull(argv[3], NULL, 10);
    const uint64_t seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("1..5\n# seed %" PRIu64 "\n", seed);
    double began = clock_s();
    storm_kills(kills, seed, &killed);
    say(1, "writers killed", &killed, clock_s() - began);
    began = clock_s();
    storm_cuts(images, seed, &cut, &torn);
    say(2, "power cuts, sectors whole", &cut, clock_s() - began);
    say(3, "power cuts, the meta page torn inside its sector", &torn, clock_s() - began);
    began = clock_s();
    storm_flip_ledgers(flips, seed, &ledgers);
    say(4, "flipped bits of ledgers", &ledgers, clock_s() - began);
    began = clock_s();
    storm_flip_blobs(flips, seed, &blobs);
    say(5, "flipped bits of blobs", &blobs, clock_s() - began);
    bool tried = killed.trials == kills && cut.trials == images && ledgers.trials == flips &&
                 blobs.trials == flips;
    return killed.lost || cut.lost || torn.lost || ledgers.lost || blobs.lost || !tried;
}
