/* A plugin that ends the program when it is loaded. */

#include <stdlib.h>

#include "plugin/plugin_abi.h"

static __attribute__((constructor)) void EndsTheProgram(void) { exit(0); }

MILLRACE_C_PLUGIN(0, 0, 0, 0);
