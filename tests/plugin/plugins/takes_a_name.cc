#include "ops/kernel.h"
#include "plugin/plugin.h"

MILLRACE_PLUGIN(millrace::Registries& registries) {
  for (const char* type : {"relu", "brand_new", "brand_new"}) {
    registries.ops.Add(type).Doc("Out = X.").Input("X", "any").Output("Out", "X").InferShape(millrace::SameAsX);
  }
  return millrace::Status::Ok();
}
