// last_heard -- the text begins with one of two phrases; the time follows if it is known.

#include "common/actor/last_heard.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char CONNECTED[] = "connected", NOT_CONNECTED[] = "not connected";
static const char HEARD[] = ", last heard ";

void last_heard_print(const struct last_heard *self, char *out, size_t max)
{
    const char *phrase = self->connected ? CONNECTED : NOT_CONNECTED;
    if (self->ms_ago == NEVER_HEARD) snprintf(out, max, "%s", phrase);
    else snprintf(out, max, "%s%s%" PRIu64 " ms ago", phrase, HEARD, self->ms_ago);
}

bool last_heard_parse(const char *text, struct last_heard *ret_self)
{
    struct last_heard self = { .ms_ago = NEVER_HEARD };
    self.connected = strncmp(text, CONNECTED, strlen(CONNECTED)) == 0;
    const char *phrase = self.connected ? CONNECTED : NOT_CONNECTED;
    if (strncmp(text, phrase, strlen(phrase)) != 0) return false;
    text += strlen(phrase);
    if (text[0]) {
        char *end;
        if (strncmp(text, HEARD, strlen(HEARD)) != 0) return false;
        text += strlen(HEARD);
        if (!isdigit((unsigned char)text[0])) return false;
        self.ms_ago = strtoull(text, &end, 10);
        if (strcmp(end, " ms ago") != 0) return false;
    }
    *ret_self = self;
    return true;
}

bool last_heard_is_alive(const struct last_heard *self)
{
    return self->connected && self->ms_ago <= LAST_HEARD_MAX_MS;
}
