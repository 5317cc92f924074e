#include "plugin/plugin_loader.h"

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/exception_text.h"
#include "core/harmless_text.h"
#include "core/lower_case.h"
#include "datafeed/reader_rows.h"
#include "plugin/c_plugin.h"
#include "plugin/exported_text.h"
#include "plugin/fault_report.h"

namespace millrace {
namespace {

constexpr char kTagSymbol[] = "millrace_plugin_tag";
constexpr char kVersionSymbol[] = "millrace_plugin_version";
constexpr char kRegisterSymbol[] = "millrace_plugin_register";
constexpr char kCSymbol[] = "millrace_plugin_c";

using RegisterFn = void (*)(Registries&, Status&);

/// The two kinds of plugins.
enum class Tier : uint8_t { kC, kCpp };

/// Rejects files that are not plugins or are for another program.
Result<Tier> CheckTag(const std::string& path) {
  const Result<std::string> tag = ReadExportedText(path, kTagSymbol);
  if (!tag.ok()) {
    if (tag.status().message().find(kTagSymbol) == std::string::npos) return tag.status();
    return InvalidConfig("it is no plugin of Millrace: it exports no " + std::string(kTagSymbol) +
                         ", which MILLRACE_PLUGIN and MILLRACE_C_PLUGIN define");
  }
  if (*tag == CppPluginTag()) return Tier::kCpp;
  if (*tag == MILLRACE_C_PLUGIN_TAG) return Tier::kC;
  const bool is_c = tag->starts_with("millrace plugin, C: ");
  return InvalidConfig("it was built for another program:\n  built as      \"" + *tag + "\"\n  needed here   \"" +
                       (is_c ? MILLRACE_C_PLUGIN_TAG : std::string(CppPluginTag())) +
                       "\"\n  build it again with this Millrace's headers" + (is_c ? "" : " and compiler"));
}

/// The text of dlerror(), with the C++ name of a missing symbol.
Status CannotLoad(const char* text) {
  const std::string_view error = text == nullptr ? "no reason given" : text;
  constexpr std::string_view kUndefined = "undefined symbol: ";
  const size_t at = error.find(kUndefined);
  if (at == std::string_view::npos) return InvalidConfig("it cannot be loaded: " + std::string(error));
  std::string symbol(error.substr(at + kUndefined.size()));
  symbol.resize(std::min(symbol.find_first_of(" ,\t"), symbol.size()));  // "…, version X"
  return InvalidConfig("it cannot be loaded: it needs \"" + Demangled(symbol.c_str()) +
                       "\", which neither it nor its libraries nor this program has (undefined symbol " + symbol + ")");
}

/// Makes our symbols visible to plugins if we are a shared object, as in Python's module, because such an object is
/// opened with local visibility.
void ShowOwnSymbols() {
  Dl_info own;
  if (dladdr(reinterpret_cast<const void*>(&CppPluginTag), &own) == 0 || own.dli_sname == nullptr) return;
  void* seen = dlopen(nullptr, RTLD_NOW);
  if (seen == nullptr || dlsym(seen, own.dli_sname) != nullptr) return;
  dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

/// Opens the shared object, whose constructors run and can throw.
Result<void*> Open(const std::string& path) {
  // A name without a slash would be searched in the system's folders.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  ExpectEndFrom(path, file);
  // dlopen is declared noexcept, but runs constructors that can throw; calling it through a pointer hides the
  // declaration.
  using OpenFn = void* (*)(const char*, int);
  const volatile OpenFn open = &dlopen;
  try {
    void* handle = open(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return CannotLoad(dlerror());
    return handle;
  } catch (...) {
    return InvalidConfig("while it was loaded it threw " + DescribeException());
  }
}

/// The address of a symbol required by the plugin's tag.
Result<void*> FindSymbol(void* handle, const char* symbol, const char* macro) {
  void* address = dlsym(handle, symbol);
  if (address != nullptr) return address;
  return InvalidConfig("it exports no " + std::string(symbol) + ", which " + macro + " defines");
}

/// Lets the plugin register its contents.
Status Register(void* handle, Tier tier, const std::string& path, Registries& registries) {
  if (tier == Tier::kC) {
    MR_ASSIGN(const void* const plugin, FindSymbol(handle, kCSymbol, "MILLRACE_C_PLUGIN in plugin/plugin_abi.h"));
    return RegisterCPlugin(*static_cast<const millrace_c_plugin*>(plugin), path, registries);
  }
  MR_ASSIGN(void* const function, FindSymbol(handle, kRegisterSymbol, "MILLRACE_PLUGIN in plugin/plugin.h"));
  Status status;
  reinterpret_cast<RegisterFn>(function)(registries, status);
  return status;
}

/// The plugin's own version; empty if it has none.
Result<std::string> VersionOf(const std::string& path) {
  constexpr size_t kLongest = 64;
  Result<std::string> version = ReadExportedText(path, kVersionSymbol);
  if (version.status().code() == StatusCode::kNotFound) return std::string();
  if (version.ok() && (version->size() > kLongest || Harmless(*version) != *version)) {
    return InvalidConfig("its version is a short text without control characters, not \"" +
                         version->substr(0, kLongest) + "\"");
  }
  return version;
}

/// Checks for names and docs that are unsafe to print.
class TextCheck {
 public:
  void Take(const std::string& what, std::string_view text) {
    if (!status_.ok() || Harmless(text, "\n\t") == text) return;
    status_ =
        InvalidConfig(what + " has control characters, or bytes that are no UTF-8: \"" + std::string(text) + "\"");
  }
  /// A name used in jobs and printed on a line.
  void TakeName(const std::string& kind, const std::string& name) {
    if (!status_.ok() || (!name.empty() && Harmless(name) == name)) return;
    status_ = InvalidConfig(name.empty() ? "a " + kind + " \"\" has no name"
                                         : "the name of a " + kind +
                                               " has control characters, or bytes that are no "
                                               "UTF-8: \"" +
                                               name + "\"");
  }
  const Status& status() const { return status_; }

 private:
  Status status_;
};

/// Calls `f` with each element of a tuple.
template <class Tuple, class F>
void ForEach(Tuple tuple, const F& f) {
  std::apply([&f](auto&... elements) { (f(elements), ...); }, tuple);
}

/// Adopts all of `from`, one registry of the tuple after the other.
template <size_t kAt = 0, class Tuple>
Status AdoptEach(Tuple from, Tuple into) {
  if constexpr (kAt < std::tuple_size_v<Tuple>) {
    MR_TRY(std::get<kAt>(into).Adopt(std::move(std::get<kAt>(from))));
    return AdoptEach<kAt + 1>(from, into);
  }
  return Status::Ok();
}

/// Names and docs are printed without escaping.
Status CheckTexts(Registries& from) {
  TextCheck check;
  for (const OpInfo* op : from.ops.all()) {
    const std::string of = " of operator \"" + op->type + "\"";
    check.Take("the name" + of, op->type);
    check.Take("the doc" + of, op->doc);
    check.Take("the effect" + of, op->effect);
    for (const std::vector<ArgInfo>* args : {&op->inputs, &op->outputs}) {
      for (const ArgInfo& arg : *args) check.Take("\"" + arg.name + "\"" + of, arg.name + arg.doc);
    }
    for (const AttrInfo& attr : op->attrs) {
      check.Take("attribute \"" + attr.name + "\"" + of, attr.name + attr.doc + ShowAttr(attr.default_value));
    }
    for (const KernelInfo& kernel : op->kernels) {
      check.Take("the device of a kernel" + of, kernel.where.device);
      for (const ArgTypes& arg : kernel.where.types) check.Take("an argument of a kernel" + of, arg.argument);
    }
  }
  for (const auto& feed : from.feeds.entries()) {
    check.Take("the name of data feed \"" + feed.name + "\"", feed.name + feed.doc);
  }
  for (const auto& format : from.readers.entries()) {
    std::string texts = format.doc;
    for (const std::string& suffix : format.value.suffixes) texts += suffix;
    check.Take("file format \"" + format.name + "\"", texts);
  }
  ForEach(from.registries(), [&check](const auto& registry) {
    for (const auto& entry : registry.entries()) {
      check.TakeName(registry.kind(), entry.name);
      check.Take(registry.kind() + " \"" + entry.name + "\"", entry.doc);
    }
  });
  return check.status();
}

/// Metrics are printed in lower case, so names that differ only in case would be ambiguous.
Status CheckPrintedNames(const MetricRegistry& metrics) {
  std::map<std::string, std::string> printed;
  for (const auto& entry : metrics.entries()) {
    const auto [other, is_new] = printed.emplace(LowerCase(entry.name), entry.name);
    if (is_new) continue;
    return AlreadyExists("a " + metrics.kind() + " \"" + entry.name + "\" is printed as \"" + other->first +
                         "\", as \"" + other->second + "\" is");
  }
  return Status::Ok();
}

/// Adopts everything that the plugin registered, or nothing.
Status Adopt(Registries from, Tier tier, const std::string& path, Registries* into) {
  using Code = DataFeedFactory::Code;
  MR_TRY(CheckTexts(from));
  MR_ASSIGN(const std::string version, VersionOf(path));
  NamedParts all = *into;
  const auto adopt = [&]() -> Status {
    MR_TRY(all.feeds.Adopt(from.feeds, path, version, tier == Tier::kC ? Code::kOwn : Code::kPlugins));
    MR_TRY(all.readers.Adopt(from.readers, path));
    MR_TRY(AddFeedsOfFormats(all.readers, path, version, &all.feeds));
    MR_TRY(AdoptEach(from.registries(), all.registries()));
    MR_TRY(CheckPrintedNames(all.metrics));
    return into->ops.Adopt(std::move(from.ops), path, version);
  };
  if (const Status status = adopt(); !status.ok()) {
    return InvalidConfig(status.message() +
                         "\n  nothing is replaced: give what is new a name of its own, or leave this plugin out");
  }
  static_cast<NamedParts&>(*into) = std::move(all);
  return Status::Ok();
}

Status Load(const std::string& path, Registries* into) {
  MR_ASSIGN(const Tier tier, CheckTag(path));
  if (tier == Tier::kCpp) ShowOwnSymbols();
  MR_ASSIGN(void* const handle, Open(path));
  Registries registered;
  try {
    Status status = Register(handle, tier, path, registered);
    // In any case kInvalidConfig, because the job names the plugin.
    if (!status.ok()) return InvalidConfig(status.message());
  } catch (...) {
    return InvalidConfig("while it registered it threw " + DescribeException());
  }
  return Adopt(std::move(registered), tier, path, into);
}

}  // namespace

std::string_view CppPluginTag() { return MILLRACE_CPP_PLUGIN_TAG; }

Status LoadPlugin(const std::string& path, Registries* into) {
  return Harmless(Load(path, into)).Context("plugin \"" + path + "\"");
}

}  // namespace millrace
