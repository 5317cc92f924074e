#pragma once

#include <string>

#include "core/status.h"
#include "plugin/plugin.h"
#include "plugin/plugin_abi.h"

namespace millrace {

/// Registers the parsers (as data feeds) and loaders (as file formats and as data feeds) of a plugin of the C tier.
/// kInvalidConfig for structures that lack what they must have and names that are taken. `path` is for messages.
Status RegisterCPlugin(const millrace_c_plugin& plugin, const std::string& path, Registries& registries);

/// The data feed that a parser is.
Result<std::unique_ptr<DataFeed>> MakeCParserFeed(const millrace_parser& parser, const std::string& path,
                                                  const SlotSchema& schema, const DataFeedDesc& desc);

/// The reader of one file that a loader is.
Result<std::unique_ptr<FileReader>> MakeCLoaderReader(const millrace_loader& loader, const std::string& path,
                                                      const std::string& file, const std::vector<TensorSpec>& shapes);

/// The class of data feed that a loader is.
RowFileMaker MakeCLoaderRowFiles(const millrace_loader& loader, const std::string& path);

}  // namespace millrace
