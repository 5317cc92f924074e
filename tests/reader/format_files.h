#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/file.h"
#include "reader/reader_registry.h"

namespace millrace {

/// The built-in formats, that of datafeed too.
const ReaderRegistry& BuiltinFormats();

/// A folder with files that a test writes, and what readers make of them.
class FormatFiles : public testing::Test {
 protected:
  /// Writes a file, with the folders that its name has, and returns its path.
  std::string Write(const std::string& name, const std::string& bytes) const;
  /// Records as text, "1.5 2 | 7 8", up to the end, read twice; the last one is the failure, without the folder's name.
  std::vector<std::string> Records(const std::string& path, const std::vector<TensorSpec>& shapes) const;
  /// A message without the folder's name in it.
  std::string Shortened(std::string text) const;
  const std::string& folder() const { return folder_.path(); }

 private:
  std::vector<std::string> RecordsOf(FileReader& reader) const;

  TempDir folder_ = TempDir::Create("formats").value();
};

/// "1.5 2 | 7 8": the values of an item, the tensors apart.
std::string ItemText(const std::vector<LoDTensor>& item);

}  // namespace millrace
