/* Built against a contract that is not written yet. */

extern const char millrace_plugin_tag[];
const char millrace_plugin_tag[] = "millrace plugin, C: 2";
