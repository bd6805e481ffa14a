#include "common/base/plain_name.h"
#include <string.h>

bool plain_name(const char *text, size_t max)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t count = 0;
    while (count <= max && text[count] && strchr(allowed, text[count])) count++;
    return count >= 1 && count <= max && !text[count];
}
