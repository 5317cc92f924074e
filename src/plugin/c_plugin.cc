#include "plugin/c_plugin.h"

#include <algorithm>
#include <cstring>

namespace millrace {
namespace {

/// Sanity limit: a larger count is an error, and using it would crash.
constexpr size_t kMostParts = 1000;

/// The fields of a structure that both this program and the plugin have; the rest is zero.
template <class T>
T Shared(const T& structure) {
  T copy{};
  std::memcpy(&copy, &structure, std::min(structure.size, sizeof(T)));
  return copy;
}

Status Incomplete(const std::string& what, const std::string& lacks) {
  return InvalidConfig(what + " has no " + lacks);
}

/// Checks an array given by the plugin.
Status CheckCount(const std::string& what, const std::string& of, size_t count, const void* array) {
  if (count > kMostParts) {
    return InvalidConfig(what + " counts " + std::to_string(count) + " " + of + "; at most " +
                         std::to_string(kMostParts) + " are believed");
  }
  if (count > 0 && array == nullptr) return Incomplete(what, of + " where it counts " + std::to_string(count));
  return Status::Ok();
}

/// `kind` is "parser" or "loader"; `work` is its parse or next.
template <class T, class Work>
Status CheckComplete(const std::string& kind, const T& part, Work work) {
  if (part.name == nullptr || *part.name == '\0') return Incomplete("a " + kind, "name");
  const std::string what = kind + " \"" + part.name + "\"";
  if (part.doc == nullptr || *part.doc == '\0') return Incomplete(what, "doc");
  if (part.open == nullptr || work == nullptr || part.close == nullptr) return Incomplete(what, "functions");
  MR_TRY(CheckCount(what, "attributes", part.attr_count, part.attrs));
  for (size_t i = 0; i < part.attr_count; ++i) {
    const char* const name = part.attrs[i].name;
    if (name == nullptr || *name == '\0') return Incomplete(what, "name for attribute " + std::to_string(i));
    for (size_t other = 0; other < i; ++other) {
      if (std::strcmp(part.attrs[other].name, name) != 0) continue;
      return InvalidConfig(what + " has two attributes \"" + name + "\"");
    }
  }
  return Status::Ok();
}

std::vector<std::string> Suffixes(const char* text) {
  std::vector<std::string> suffixes;
  std::string rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    suffixes.push_back(rest.substr(0, comma));
    rest.erase(0, comma + 1);
  }
  return suffixes;
}

}  // namespace

Status RegisterCPlugin(const millrace_c_plugin& plugin, const std::string& path, Registries& registries) {
  const millrace_c_plugin known = Shared(plugin);
  MR_TRY(CheckCount("it", "parsers", known.parser_count, known.parsers));
  MR_TRY(CheckCount("it", "loaders", known.loader_count, known.loaders));
  for (size_t i = 0; i < known.parser_count; ++i) {
    if (known.parsers[i] == nullptr) return Incomplete("it", "parser " + std::to_string(i));
    const millrace_parser parser = Shared(*known.parsers[i]);
    MR_TRY(CheckComplete("parser", parser, parser.parse));
    const auto make = [parser, path](const SlotSchema& schema, const DataFeedDesc& desc) {
      return MakeCParserFeed(parser, path, schema, desc);
    };
    MR_TRY(registries.feeds.Add(parser.name, parser.doc, {make}));
  }
  for (size_t i = 0; i < known.loader_count; ++i) {
    if (known.loaders[i] == nullptr) return Incomplete("it", "loader " + std::to_string(i));
    const millrace_loader loader = Shared(*known.loaders[i]);
    MR_TRY(CheckComplete("loader", loader, loader.next));
    FileFormat format;
    format.tag = loader.name;
    format.suffixes = Suffixes(loader.suffixes);
    format.doc = loader.doc;
    format.open = [loader, path](const std::string& file, const std::vector<TensorSpec>& shapes) {
      return MakeCLoaderReader(loader, path, file, shapes);
    };
    MR_TRY(registries.readers.Add(std::move(format)));
    // If a parser has the same name, datasets use the parser.
    if (registries.feeds.Find(loader.name) != nullptr) continue;
    MR_TRY(registries.feeds.AddRowFiles(loader.name, loader.doc, MakeCLoaderRowFiles(loader, path)));
  }
  if (known.parser_count + known.loader_count > 0) return Status::Ok();
  return InvalidConfig("it has no parser and no loader");
}

}  // namespace millrace
