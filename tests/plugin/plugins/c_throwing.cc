// Functions of the C tier must not throw; these do.

#include <stdexcept>

#include "plugin/plugin_abi.h"

namespace {

int state = 0;

void* Open(const millrace_open_args* args, millrace_error*) {
  if (args->attrs[0].value[0] == 'o') throw std::runtime_error("thrown by open");
  return &state;
}
int Parse(void*, const char*, size_t, const millrace_sink*, millrace_error*) {
  throw std::runtime_error("thrown by parse");
}
int Next(void*, const millrace_sink*, millrace_error*) { throw std::runtime_error("thrown by next"); }
void Close(void*) { throw std::runtime_error("thrown by close"); }

const millrace_attr_info kAttrs[] = {{"where", "parse", "open or parse"}};
const millrace_parser kParser = {sizeof(millrace_parser), "ThrowingFeed", "Throws.", kAttrs, 1, Open, Parse, Close};
const millrace_parser* const kParsers[] = {&kParser};
const millrace_loader kLoader = {sizeof(millrace_loader), "throwing", "", "Throws.", kAttrs, 1, Open, Next, Close};
const millrace_loader* const kLoaders[] = {&kLoader};

}  // namespace

MILLRACE_C_PLUGIN(kParsers, 1, kLoaders, 1);
