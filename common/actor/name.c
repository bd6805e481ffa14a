// name -- a name is read by its first and its last dot: the role before the one, the key behind the
// other, the label between them. Whether a name fits a role and a key is decided by making it again.

#include "common/actor/name.h"
#include "common/wire/wire.h"
#include <stdio.h>
#include <string.h>

enum { KEY_LIKE = 8 }; // So many digits of a key are shown where there is no room for more

bool actor_label_is_sound(const char *label)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz",
                      allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    const size_t count = strspn(label, allowed);
    if (count >= KEY_LIKE && strspn(label, "0123456789abcdef") == count) return false;
    return count >= 1 && count <= ACTOR_LABEL_MAX && !label[count] && strchr(letters, label[0]);
}

void actor_name_with(uint8_t role, const char *label, const struct key *key,
                     char ret_name[ACTOR_NAME_MAX + 1])
{
    char hex[KEY_HEX];
    if (role == ACTOR_COORDINATOR) {
        snprintf(ret_name, ACTOR_NAME_MAX + 1, "coordinator");
        return;
    }
    snprintf(ret_name, ACTOR_NAME_MAX + 1, "%s%s%.*s.%.16s", wire_enum_name(&wire_enum_role, role),
             label[0] ? "." : "", ACTOR_LABEL_MAX, label, key_to_hex(key, hex));
}

void actor_name(uint8_t role, const struct key *key, char ret_name[ACTOR_NAME_MAX + 1])
{
    actor_name_with(role, "", key, ret_name);
}

// The last dot and what follows it; "" if there is no dot.
static const char *tail(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot : name + strlen(name);
}

void actor_name_label(const char *name, char ret_label[ACTOR_LABEL_MAX + 1])
{
    const char *from = name + strcspn(name, "."), *end = tail(name);
    const int count = from < end ? (int)(end - from) - 1 : 0;
    snprintf(ret_label, ACTOR_LABEL_MAX + 1, "%.*s", count, from + 1);
}

bool actor_name_fits(const char *name, uint8_t role, const struct key *key)
{
    char label[ACTOR_LABEL_MAX + 1], wanted[ACTOR_NAME_MAX + 1];
    actor_name_label(name, label);
    actor_name_with(role, label, key, wanted);
    return strcmp(name, wanted) == 0 && (!label[0] || actor_label_is_sound(label));
}

// Once for each letter of the broker.
void actor_name_plain(const char *name, char ret_name[ACTOR_NAME_MAX + 1])
{
    const char *end = tail(name);
    size_t head = strcspn(name, "."), rest = strlen(end);
    if (head > ACTOR_NAME_MAX) head = ACTOR_NAME_MAX;
    if (rest > ACTOR_NAME_MAX - head) rest = ACTOR_NAME_MAX - head;
    memcpy(ret_name, name, head);
    memcpy(ret_name + head, end, rest);
    ret_name[head + rest] = 0;
}

bool actor_name_is_same(const char *a, const char *b)
{
    const size_t count = strcspn(a, ".");
    return strcspn(b, ".") == count && memcmp(a, b, count) == 0 && strcmp(tail(a), tail(b)) == 0;
}
