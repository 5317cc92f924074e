#include "plugin/plugin.h"

#include "mini_ops.h"

MILLRACE_PLUGIN(millrace::Registries& registries) {
  mini::RegisterMiniReader(registries.ops);
  mini::RegisterMiniDecoder(registries.ops);
  return millrace::Status::Ok();
}
