#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/feed_names.h"

namespace millrace {

/// The names that a configuration may use for things that are registered elsewhere. An empty list is not checked.
struct KnownNames {
  std::vector<std::string> trainers;
  std::vector<std::string> device_workers;
  std::vector<std::string> datasets;
  std::vector<std::string> data_feeds;
  std::map<std::string, FormatTraits> formats;  ///< the data feeds that are file formats
  std::vector<std::string> tables;
  std::vector<std::string> metrics;
  std::string plugin_advice;  ///< how a plugin is loaded that brings one of these
};

}  // namespace millrace
