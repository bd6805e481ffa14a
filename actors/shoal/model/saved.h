#pragma once
// saved -- `shoal checkpoint show DIR` and `shoal checkpoint verify DIR`, as commands: argv[0]
// names them.

#include "common/checkpoint/pieces.h"

// Opens the save in this folder, <root>/step-00000120. FAULT_USAGE: no such name.
int saved_open(const char *folder, struct why *why, pieces_t **ret_pieces);

int saved_show(int argc, char **argv);
int saved_verify(int argc, char **argv);
