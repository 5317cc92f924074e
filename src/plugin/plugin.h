#pragma once

#include "core/status.h"
#include "job/environment.h"
#include "plugin/abi_tag.h"
#include "plugin/plugin_abi.h"
#include "runtime/op_kernel.h"

/// Makes a shared object a plugin: the body registers what it brings, once for every program that loads it.
///
///     MILLRACE_PLUGIN(millrace::Registries& registries) {
///       registries.ops.Add("my_op").Doc("…")…;
///       return millrace::Status::Ok();
///     }
///
/// Exactly once in a shared object. It is for the compiler, standard library and Millrace that it was built with: where
/// one of them differs, it is refused before any of its code runs. What it throws is caught and reported by its path,
/// here and later in its operators. It is never unloaded. MILLRACE_VERSION_OF_PLUGIN("1.2") beside it says which
/// version of the plugin this is. docs/plugins.md has the whole.
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
