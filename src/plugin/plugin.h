#pragma once

#include "core/status.h"
#include "job/environment.h"
#include "plugin/abi_tag.h"
#include "plugin/plugin_abi.h"
#include "runtime/op_kernel.h"

/// Makes a shared object a plugin: the body registers its contents, once for every program that loads it.
///
///     MILLRACE_PLUGIN(millrace::Registries& registries) {
///       registries.ops.Add("my_op").Doc("…")…;
///       return millrace::Status::Ok();
///     }
///
/// Use it exactly once per shared object. The plugin works only with the compiler, standard library and Millrace
/// version it was built with; otherwise it is rejected before any of its code runs. Its exceptions, here and later in
/// its operators, are reported with its path. It is never unloaded. MILLRACE_VERSION_OF_PLUGIN("1.2") next to it sets
/// the plugin's own version. See docs/plugins.md.
#define MILLRACE_PLUGIN(parameter)                                                                                    \
  extern "C" {                                                                                                        \
  const char millrace_plugin_tag[] = MILLRACE_CPP_PLUGIN_TAG;                                                         \
  __attribute__((visibility("default"))) void millrace_plugin_register(::millrace::Registries&, ::millrace::Status&); \
  }                                                                                                                   \
  static ::millrace::Status MillraceRegister(parameter);                                                              \
  void millrace_plugin_register(::millrace::Registries& registries, ::millrace::Status& result) {                     \
    result = MillraceRegister(registries);                                                                            \
  }                                                                                                                   \
  static ::millrace::Status MillraceRegister(parameter)
