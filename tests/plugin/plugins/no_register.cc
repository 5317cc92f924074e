#include "plugin/plugin.h"

extern "C" {
extern const char millrace_plugin_tag[];
const char millrace_plugin_tag[] = MILLRACE_CPP_PLUGIN_TAG;
}
