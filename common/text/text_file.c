// text_file -- a file is read in pieces of 64 KiB, and each piece goes through the decoder that the
// end of the name chooses. A compressed file may be several, end to end, as `cat a.gz b.gz` makes
// them: the decoder begins anew while there is input.

#include "common/text/text_file.h"
#include "common/base/ensure.h"
#include "common/data/token_dir.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { PIECE = 1 << 16 };

struct text_file {
    const char *path;
    int fd;
    uint64_t bytes, consumed; // consumed: of `bytes`, read into `piece`
    uint8_t *piece;
    size_t at, count; // Not decoded yet: piece[at .. count)
    enum { PLAIN, GZIP, ZSTD } kind;
    z_stream gzip;
    ZSTD_DStream *zstd;
    bool is_within; // Of a compressed stream: its end has not come yet
};

static size_t without(const char *path, size_t count, const char *end)
{
    const size_t tail = strlen(end);
    return count > tail && strncasecmp(path + count - tail, end, tail) == 0 ? count - tail : count;
}

size_t text_file_name(const char *path)
{
    const size_t count = strlen(path), gzip = without(path, count, ".gz");
    return gzip < count ? gzip : without(path, count, ".zst");
}

// ---- open

static int open_decoder(text_file_t *self, struct why *why)
{
    const size_t count = strlen(self->path);
    bool done = true;
    self->kind = without(self->path, count, ".gz") < count    ? GZIP
                 : without(self->path, count, ".zst") < count ? ZSTD
                                                              : PLAIN;
    if (self->kind == GZIP) done = inflateInit2(&self->gzip, 16 + MAX_WBITS) == Z_OK; // 16: gzip
    if (self->kind == ZSTD) done = (self->zstd = ZSTD_createDStream()) != NULL;
    return done ? 0 : why_set(why, FAULT_MEMORY, "a decoder for %s", self->path);
}

int text_file_open(const char *path, uint64_t bytes, struct why *why, text_file_t **ret_self)
{
    uint64_t now;
    text_file_t *self = calloc(1, sizeof *self);
    ensure(self);
    *self = (text_file_t){ .path = path, .fd = -1, .bytes = bytes, .piece = malloc(PIECE) };
    ensure(self->piece);
    int rc = token_dir_open(path, why, &self->fd, &now);
    if (rc == 0) rc = open_decoder(self, why);
    if (rc < 0) text_file_close(&self);
    else *ret_self = self;
    return rc;
}

void text_file_close(text_file_t **self_p)
{
    text_file_t *self = *self_p;
    if (!self) return;
    if (self->fd >= 0) close(self->fd);
    if (self->kind == GZIP) inflateEnd(&self->gzip);
    ZSTD_freeDStream(self->zstd);
    free(self->piece);
    free(self);
    *self_p = NULL;
}

uint64_t text_file_consumed(const text_file_t *self) { return self->consumed; }

// ---- read

static int read_piece(text_file_t *self, uint8_t *out, size_t max, struct why *why, size_t *ret)
{
    const uint64_t left = self->bytes - self->consumed;
    const size_t step = left < max ? (size_t)left : max;
    int rc = token_dir_read(self->fd, self->path, self->consumed, step, out, why);
    if (rc < 0) return rc;
    self->consumed += step;
    *ret = step;
    return 0;
}

static int damaged(const text_file_t *self, const char *reason, struct why *why)
{
    return why_set(why, FAULT_CORRUPT,
                   "%s: its compressed data is damaged before byte %" PRIu64 ": %s", self->path,
                   self->consumed - (self->count - self->at), reason);
}

// Each of the two decodes what it can from the piece into `out`; *ret_count may be 0.
static int decode_gzip(text_file_t *self, uint8_t *out, size_t max, struct why *why,
                       size_t *ret_count)
{
    z_stream *stream = &self->gzip;
    if (!self->is_within) inflateReset(stream);
    stream->next_in = self->piece + self->at;
    stream->avail_in = (unsigned)(self->count - self->at);
    stream->next_out = out;
    stream->avail_out = max < UINT32_MAX ? (unsigned)max : UINT32_MAX;
    const int rc = inflate(stream, Z_NO_FLUSH);
    *ret_count = (size_t)(stream->next_out - out);
    self->at = self->count - stream->avail_in;
    self->is_within = rc != Z_STREAM_END;
    if (rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR) return 0;
    return rc == Z_MEM_ERROR ? why_set(why, FAULT_MEMORY, "%s", self->path)
                             : damaged(self, stream->msg ? stream->msg : "no gzip", why);
}

static int decode_zstd(text_file_t *self, uint8_t *out, size_t max, struct why *why,
                       size_t *ret_count)
{
    ZSTD_inBuffer in = { self->piece, self->count, self->at };
    ZSTD_outBuffer to = { out, max, 0 };
    const size_t left = ZSTD_decompressStream(self->zstd, &to, &in);
    *ret_count = to.pos;
    self->at = in.pos;
    if (ZSTD_isError(left)) return damaged(self, ZSTD_getErrorName(left), why);
    self->is_within = left != 0;
    return 0;
}

// The decoder is asked before more input is read: it may hold output that did not fit before.
int text_file_read(text_file_t *self, uint8_t *out, size_t max, struct why *why, size_t *ret_count)
{
    if (self->kind == PLAIN) return read_piece(self, out, max, why, ret_count);
    for (;;) {
        size_t got = 0;
        int rc = 0;
        if (self->is_within || self->at < self->count)
            rc = (self->kind == GZIP ? decode_gzip : decode_zstd)(self, out, max, why, &got);
        if (rc < 0 || got > 0) {
            *ret_count = got;
            return rc;
        }
        if (self->at < self->count) continue;
        if (self->consumed == self->bytes) break;
        self->at = 0;
        rc = read_piece(self, self->piece, PIECE, why, &self->count);
        if (rc < 0) return rc;
    }
    *ret_count = 0;
    return self->is_within ? damaged(self, "it ends too early", why) : 0;
}
