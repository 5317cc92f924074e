#pragma once

#include <string>

#include "core/status.h"
#include "plugin/plugin.h"
#include "plugin/plugin_abi.h"

namespace millrace {

/// Registers the parsers (as data feeds) and loaders (as file formats and as data feeds) of a plugin of the C tier.
/// `path` is for messages. Fails with kInvalidConfig for an incomplete structure or an invalid name, kAlreadyExists if
/// a name is taken.
Status RegisterCPlugin(const millrace_c_plugin& plugin, const std::string& path, Registries& registries);

/// The data feed of a parser. Fails with kInvalidConfig for unsupported settings or attributes, or if the parser cannot
/// be opened or throws.
Result<std::unique_ptr<DataFeed>> MakeCParserFeed(const millrace_parser& parser, const std::string& path,
                                                  const SlotSchema& schema, const DataFeedDesc& desc);

/// The reader of one file for a loader. Fails with kInvalidConfig for unsupported outputs or a missing attribute.
Result<std::unique_ptr<FileReader>> MakeCLoaderReader(const millrace_loader& loader, const std::string& path,
                                                      const std::string& file, const std::vector<TensorSpec>& shapes);

/// The data feed class of a loader.
RowFileMaker MakeCLoaderRowFiles(const millrace_loader& loader, const std::string& path);

}  // namespace millrace
