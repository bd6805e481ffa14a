#pragma once
// saved -- `shoal checkpoint show DIR` and `shoal checkpoint verify DIR`, as commands: argv[0]
// names them.

int saved_show(int argc, char **argv);
int saved_verify(int argc, char **argv);
