#include "click_batches.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "clickgen/click_log.h"
#include "core/file.h"
#include "job_files.h"
#include "paths.h"

namespace millrace {

std::string ClickText(int rows) {
  ClickLogOptions options;
  options.train_rows = rows;
  options.vocabulary = 1000;
  const std::string folder = ::testing::TempDir() + "clicks_" + std::to_string(::getpid());
  const auto splits = WriteClickLog(options, folder);
  EXPECT_TRUE(splits.ok()) << splits.status().ToString();
  const std::string text = FileText(folder + "/train/part-00000");
  std::filesystem::remove_all(folder);
  return text;
}

std::string PipedClickText(int rows, const TrainerDesc& job) {
  const std::string text = ClickText(rows);
  const std::string& command = job.data_desc().pipe_command();
  if (command.empty()) return text;
  const TempDir folder = TempDir::Create("piped").value();
  std::ofstream(folder.path() + "/in") << text;
  const std::string run =
      "cd " + SourceDir() + " && " + command + " < " + folder.path() + "/in > " + folder.path() + "/out";
  EXPECT_EQ(std::system(run.c_str()), 0) << run;
  return FileText(folder.path() + "/out");
}

std::vector<std::unique_ptr<SlotBatch>> ParseBatches(const SlotSchema& schema, const std::string& text,
                                                     int batch_size) {
  std::vector<std::unique_ptr<SlotBatch>> batches;
  std::istringstream lines(text);
  std::string line;
  for (int row = 0; std::getline(lines, line); ++row) {
    if (row % batch_size == 0) batches.push_back(std::make_unique<SlotBatch>(schema));
    SlotBatch& batch = *batches.back();
    std::istringstream values(line);
    for (const SlotSpec& slot : schema.used()) {
      SlotColumn& column = batch.column(slot.id);
      if (!slot.is_dense && column.offsets.empty()) column.offsets.push_back(0);
      size_t count = 0;
      values >> count;
      for (size_t i = 0; i < count; ++i) {
        if (slot.type == SlotType::kFloat) values >> column.floats.emplace_back();
        if (slot.type == SlotType::kUint64) values >> column.ids.emplace_back();
      }
      if (!slot.is_dense) column.offsets.push_back(static_cast<uint32_t>(column.ids.size() + column.floats.size()));
    }
    EXPECT_FALSE(values.fail()) << line;
    batch.set_rows(batch.rows() + 1);
  }
  return batches;
}

}  // namespace millrace
