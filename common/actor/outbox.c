// Each function packs its body into the outbox's memory at once, so the caller may reuse its own. A
// body that does not fit, or that its kind does not allow, is our fault (ensure).

#include "common/actor/msg.h"
#include "common/base/ensure.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void outbox_clear(struct outbox *out)
{
    out->count = 0;
    out->used = 0;
}

static struct effect *add(struct outbox *out, enum port port, uint16_t kind, const void *body)
{
    ensure(out->count < out->count_max);
    uint8_t *bytes = out->bytes + out->used;
    size_t count = wire_pack_body(kind, body, bytes, out->bytes_max - out->used);
    ensure(count > 0);
    out->used += count;
    struct effect *effect = &out->effects[out->count++];
    *effect =
        (struct effect){ .port = port, .kind = kind, .body = bytes, .bytes = (uint32_t)count };
    return effect;
}

void outbox_mail(struct outbox *out, const char *to, uint16_t kind, const void *body)
{
    struct effect *effect = add(out, PORT_MAIL, kind, body);
    snprintf(effect->to, sizeof effect->to, "%s", to);
}

void outbox_news(struct outbox *out, uint16_t kind, const void *body)
{
    add(out, PORT_NEWS, kind, body);
}

void outbox_store(struct outbox *out, uint16_t kind, const void *record)
{
    add(out, PORT_DISK, kind, record);
}

void outbox_wake(struct outbox *out, uint64_t at_ms)
{
    add(out, PORT_CLOCK, FRAME_WAKE, &(struct wire_wake){ .at_ms = at_ms });
}

void outbox_job(struct outbox *out, enum port port, uint16_t kind, const void *body)
{
    add(out, port, kind, body);
}

void outbox_quit(struct outbox *out, uint8_t exit_code, const char *format, ...)
{
    struct wire_quit quit = { .code = exit_code };
    va_list args;
    va_start(args, format);
    vsnprintf(quit.text, sizeof quit.text, format, args);
    va_end(args);
    add(out, PORT_SHELL, FRAME_QUIT, &quit);
}

void outbox_note(struct outbox *out, const char *format, ...)
{
    struct wire_note note = { 0 };
    va_list args;
    va_start(args, format);
    vsnprintf(note.text, sizeof note.text, format, args);
    va_end(args);
    add(out, PORT_LOG, FRAME_NOTE, &note);
}
