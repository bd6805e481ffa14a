#pragma once
// npy -- where the tokens lie in a NumPy array file. Pure: looks at the first bytes, does no I/O.
//
//   "\x93NUMPY" major minor  length (2 bytes in version 1, 4 in 2 and 3, little-endian)
//   {'descr': '<u2', 'fortran_order': False, 'shape': (1000,), }  padding  "\n"  elements ...
//
// Accepted: versions 1.0, 2.0, 3.0; descr '<u2' or '<u4'; fortran_order False; one dimension;
// a file exactly as long as its shape says; elements that begin at a multiple of their size (the
// format demands a multiple of 16, and NumPy writes multiples of 64). Anything else is refused by
// name. The header is a Python literal that may come from a stranger: a strict parser reads it, and
// NPY_HEADER_MAX bounds it. The format is defined by NEP 1 and the documentation of
// numpy.lib.format.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fault.h"

enum { NPY_HEADER_MAX = 16384 }; // Bytes before the first element; NumPy allows 10000

struct npy {
    uint64_t offset; // Of the first element, in bytes
    uint64_t tokens;
    uint32_t token_bytes; // 2 or 4
};

// True when a file of this name is a NumPy array (it ends in .npy).
bool npy_is_name(const char *name);

// `bytes`: the first `count` bytes of the file (all of it, or at least NPY_HEADER_MAX);
// `file_bytes`: its whole length; `name` is for the text in *why. FAULT_FORMAT or
// FAULT_UNSUPPORTED.
int npy_parse(const uint8_t *bytes, size_t count, uint64_t file_bytes, const char *name,
              struct why *why, struct npy *ret_npy);
