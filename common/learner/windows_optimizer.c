// The words of the wire are the names in the table of optimizers.
#include "common/learner/windows_optimizer.h"
#include "common/base/ensure.h"

// Both parts of CONFIG have these words.
#define SETTINGS_OF(config)                                                                        \
    ((struct optimizer_settings){ .weight_decay = (config)->weight_decay,                          \
                                  .beta1 = (config)->beta1,                                        \
                                  .beta2 = (config)->beta2,                                        \
                                  .eps = (config)->eps,                                            \
                                  .momentum = (config)->momentum,                                  \
                                  .nesterov = (config)->nesterov })

static const struct optimizer_kind *kind_of(uint8_t descent)
{
    const struct optimizer_kind *kind =
        optimizer_named(wire_enum_name(&wire_enum_descent, descent));
    ensure(kind);
    return kind;
}

const struct optimizer_kind *windows_optimizer(const struct wire_windows_config *config,
                                               struct optimizer_settings *ret_settings)
{
    *ret_settings = SETTINGS_OF(config);
    return kind_of(config->optimizer);
}

const struct optimizer_kind *leases_optimizer(const struct wire_leases_config *config,
                                              struct optimizer_settings *ret_settings)
{
    *ret_settings = SETTINGS_OF(config);
    return kind_of(config->optimizer);
}

uint32_t windows_optimizer_floats(const struct wire_windows_config *config)
{
    if (config->optimizer != DESCENT_SGD) return 3;
    return config->momentum > 0 ? 2 : 1;
}
