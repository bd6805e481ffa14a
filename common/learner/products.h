#pragma once
// products -- the type of matrix products has three names: the value of compute.products in a state.toml, that of
// CONFIG's field, and gemm.h's precision. Here is which belongs to which. Pure; any thread.

#include "common/config/run_config.h"
#include "common/kernel/gemm.h"
#include "common/wire/wire.h"

// The value of CONFIG's field. `value` is a CONFIG_PRODUCTS_ constant, which the reader of the file has checked
// (ensured).
enum products products_of_config(uint64_t value);

// `products` has come from a frame that was checked (ensured).
enum gemm_precision products_precision(enum products products);
