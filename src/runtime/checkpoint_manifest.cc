#include "runtime/checkpoint_manifest.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cstdint>

#include "batch/consumed_ranges.h"
#include "core/sealed_text.h"
#include "runtime/variable_store.h"

namespace millrace {
namespace {

constexpr int kVersion = 1;
constexpr int kVersionWithChanges = 2;

/// Rejects impossible numbers: resuming from them would overflow counts or look for missing rows.
Status CheckNumbers(const CheckpointManifest& manifest) {
  constexpr int64_t kMost = int64_t{1} << 53;
  std::string problems;
  const auto check = [&problems](const char* what, int64_t value, int64_t most) {
    if (value >= 0 && value <= most) return;
    problems += (problems.empty() ? "" : ", ") + std::string(what) + " " + std::to_string(value);
  };
  check("epoch", manifest.epoch(), INT32_MAX);
  check("step", manifest.step(), kMost);
  check("examples", manifest.examples(), kMost);
  check("input_rows", manifest.input_rows(), kMost);
  check("input_streams", manifest.input_streams(), INT32_MAX);
  check("printed_batches", manifest.printed_batches(), kMost);
  check("evaluated_step", manifest.evaluated_step(), std::max<int64_t>(manifest.step(), 0));
  check("early_stopping.since", manifest.early_stopping().since(), INT32_MAX);
  for (const StoredOperatorState& state : manifest.operator_state()) {
    check("operator_state.frame", state.frame(), INT32_MAX);
  }
  for (const StoredBadLines& lines : manifest.bad_lines()) check("bad_lines.count", lines.count(), kMost);
  for (const StoredReader& reader : manifest.reader()) {
    check("reader.resets", static_cast<int64_t>(reader.resets()),
          manifest.epoch() + std::max<int64_t>(manifest.step(), 0));
    check("reader.items", static_cast<int64_t>(reader.items()), kMost);
  }
  if (!problems.empty()) return BadData("numbers that no run has: " + problems);
  MR_ASSIGN(const ConsumedRanges ledger, ConsumedRanges::FromText(manifest.ledger()));
  const bool in_memory = manifest.input_rows() > 0;
  const auto streams = static_cast<uint32_t>(std::max(1, manifest.input_streams()));
  const auto sources = in_memory ? streams : static_cast<uint32_t>(manifest.input_file_size());
  const uint64_t positions = in_memory ? static_cast<uint64_t>(manifest.input_rows()) : uint64_t{1} << 63;
  if (ledger.IsWithin(sources, positions)) return Status::Ok();
  return BadData("its ledger has rows that its input has not: " + std::to_string(sources) + " sources" +
                 (in_memory ? " of " + std::to_string(positions) + " rows" : ""));
}

}  // namespace

std::string ManifestText(CheckpointManifest manifest) {
  const auto& variables = manifest.variable();
  const bool is_spread = std::any_of(variables.begin(), variables.end(), [](const StoredVariable& variable) {
    return variable.changes_size() > 0 || HasTensorFile(variable);
  });
  // Version 1 readers would treat changes as complete, and expect tensors in one file.
  manifest.set_format_version(is_spread ? kVersionWithChanges : kVersion);
  std::string text;
  google::protobuf::TextFormat::PrintToString(manifest, &text);
  return SealText(std::move(text));
}

Result<CheckpointManifest> ReadManifest(const std::string& path) {
  MR_ASSIGN(const std::string text, ReadSealedText(path));
  CheckpointManifest manifest;
  if (!google::protobuf::TextFormat::ParseFromString(text, &manifest)) {
    return BadData("\"" + path + "\" is not a checkpoint's manifest that this version reads");
  }
  if (manifest.format_version() < kVersion || manifest.format_version() > kVersionWithChanges) {
    return BadData("\"" + path + "\" has format version " + std::to_string(manifest.format_version()) +
                   "; this program reads versions " + std::to_string(kVersion) + " and " +
                   std::to_string(kVersionWithChanges));
  }
  MR_TRY(CheckNumbers(manifest).Context("\"" + path + "\""));
  return manifest;
}

}  // namespace millrace
