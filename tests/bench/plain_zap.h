#pragma once
// plain_zap -- see plain_zap.c. For cost_bench and nothing else.

#include <stdbool.h>

#define PLAIN_ZAP_NOTICE "NO CURVE" // How each program of build/bench/plain begins its log

extern bool plain_zap_is_on; // Always, but in the benchmark, which defines it itself
