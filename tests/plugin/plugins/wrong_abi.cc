// Built, by its tag, with another compiler against another Millrace. Nothing of it may run, and what it lacks must not
// be what is complained about.

#include <cstdlib>

extern "C" {

extern const char millrace_plugin_tag[];
const char millrace_plugin_tag[] =
    "millrace plugin, C++: g++ 9.4.0, libstdc++ 9 (20210601), protobuf 3006001, millrace 0.0.9";
void symbol_that_nobody_has();
void millrace_plugin_register() { symbol_that_nobody_has(); }
}

namespace {

__attribute__((constructor)) void RunsWhenLoaded() { std::abort(); }

}  // namespace
