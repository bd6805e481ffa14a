// Any bytes as config.json, index or weights give a model or a named refusal.
//
// The first byte says what the others are: 'c' a config.json, 'i' a model.safetensors.index.json
// beside one.safetensors (tensor "a") and two.safetensors ("b"), 'w' a model.safetensors.

#include "tests/fuzz/files.h"
#include "tests/fuzz/model_check.h"
#include "tests/fuzz/scratch.h"

#include <stdint.h>
#include <stdio.h>

static void put_shard(const char *name, char tensor)
{
    char file[100];
    const int length = snprintf(file + 8, sizeof file - 8,
                                "{\"%c\":{\"dtype\":\"F16\","
                                "\"shape\":[2],\"data_offsets\":[0,4]}}1234",
                                tensor);
    const uint64_t header = (uint64_t)length - 4;
    memcpy(file, &header, sizeof header);
    scratch_put(name, file, 8 + (size_t)length);
}

bool model_fuzz_check(const uint8_t *bytes, size_t count)
{
    const char *rest = (const char *)bytes + 1;
    static bool ready;
    if (count == 0) return false;
    if (!ready) put_shard("one.safetensors", 'a'), put_shard("two.safetensors", 'b');
    ready = true;
    if (bytes[0] == 'c') return model_check_config(rest, count - 1);
    const char *name = bytes[0] == 'i' ? "model.safetensors.index.json" : "model.safetensors";
    scratch_put(name, rest, count - 1);
    return model_check_weights(scratch_fd(), name);
}
