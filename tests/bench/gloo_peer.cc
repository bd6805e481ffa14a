// gloo as torch's process group uses it: a full mesh of TCP pairs, the default algorithm (a ring).
#include "tests/bench/gloo_peer.h"

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <memory>

namespace
{
struct Peer {
    std::shared_ptr<gloo::rendezvous::Context> context;
    uint32_t tag = 0;
};
} // namespace

void *gloo_new(int member, int members, const char *dir)
{
    gloo::transport::tcp::attr at("127.0.0.1");
    gloo::rendezvous::FileStore store(dir);
    auto device = gloo::transport::tcp::CreateDevice(at);
    auto *self = new Peer;
    self->context = std::make_shared<gloo::rendezvous::Context>(member, members);
    self->context->connectFullMesh(store, device);
    return self;
}

void gloo_add(void *arg, float *values, size_t count)
{
    auto *self = static_cast<Peer *>(arg);
    gloo::AllreduceOptions options(self->context);
    void (*sum)(void *, const void *, const void *, size_t) = &gloo::sum<float>;
    options.setOutput(values, count);
    options.setReduceFunction(sum);
    options.setTag(self->tag++);
    gloo::allreduce(options);
}

void gloo_destroy(void *self) { delete static_cast<Peer *>(self); }
