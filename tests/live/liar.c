// liar -- makes a data provider serve wrong samples. Loaded with LD_PRELOAD: it changes one byte of
// every proved answer, each time at another place.

#include <dlfcn.h>
#include <stdint.h>
#include <zmq.h>

int zmq_msg_init_data(zmq_msg_t *message, void *bytes, size_t count, zmq_free_fn *release,
                      void *hint)
{
    static __typeof__(&zmq_msg_init_data) real;
    static uint64_t turns;
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "zmq_msg_init_data");
    turns = turns * 6364136223846793005u + 1442695040888963407u;
    if (count > 0) ((uint8_t *)bytes)[(turns >> 16) % count] ^= (uint8_t)(1 + (turns >> 8) % 255);
    return real(message, bytes, count, release, hint);
}
