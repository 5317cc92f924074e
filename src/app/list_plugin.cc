#include "app/list_plugin.h"

#include <tuple>

#include "trainer/default_environment.h"

namespace millrace {

Result<std::string> ListPlugin(const std::string& path) {
  MR_ASSIGN(Environment before, MakeDefaultEnvironment());
  Environment after = CopyOf(before);
  MR_TRY(AddPlugin(path, &after));
  std::string text;
  const auto add = [&text](const std::string& kind, const std::string& name, const std::string& doc) {
    text += kind + " \"" + name + "\": " + doc + "\n";
  };
  for (const OpInfo* op : after.ops.all()) {
    if (before.ops.Find(op->type) == nullptr) add("operator", op->type, op->doc);
  }
  for (const auto& feed : after.feeds.entries()) {
    if (!feed.value.plugin.path.empty()) add(after.feeds.kind(), feed.name, feed.doc);
  }
  for (const auto& format : after.readers.entries()) {
    if (!format.value.plugin.empty()) add(after.readers.kind(), format.name, format.doc);
  }
  const auto list = [&add](const auto& old, const auto& now) {
    for (const auto& entry : now.entries()) {
      if (old.Find(entry.name) == nullptr) add(now.kind(), entry.name, entry.doc);
    }
  };
  const auto olds = before.registries();
  const auto nows = after.registries();
  [&]<size_t... kAt>(std::index_sequence<kAt...>) { (list(std::get<kAt>(olds), std::get<kAt>(nows)), ...); }
  (std::make_index_sequence<std::tuple_size_v<decltype(olds)>>());
  return text.empty() ? "brings nothing\n" : text;
}

}  // namespace millrace
