// Folders of checkpoints. Whatever their files hold: the newest is found, or refused for one of the reasons that the
// headers name, and what was found is restored or refused, its ledger and its metrics included.
//
// The first byte says whether seals and checksums are put right (even) or left as they are (odd); the rest is unpacked
// as FuzzFolder says.
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "batch/consumed_ranges.h"
#include "checkpoint/checkpoint_store.h"
#include "core/file.h"
#include "core/sealed_text.h"
#include "data_feed.pb.h"
#include "fuzz/folder.h"
#include "fuzz/stored_program.h"
#include "metrics/metric_set.h"
#include "model.pb.h"
#include "runtime/variable_store.h"

namespace {

using namespace millrace;

constexpr char kStep[] = "step-000000000007";
constexpr char kManifest[] = "step-000000000007/MANIFEST";

/// A log loss and a GAUC, whose totals are a list of rows.
std::unique_ptr<const MetricSet> Metrics() {
  DataFeedDesc desc;
  Demand(google::protobuf::TextFormat::ParseFromString(
             R"(multi_slot_desc { slots { name: "y" type: "uint64" is_used: true is_dense: true shape: -1 shape: 1 }
                                  slots { name: "user" type: "uint64" is_used: true } })",
             &desc),
         "the slots do not parse");
  std::vector<MetricSpec> specs(2);
  specs[0] = {.kind = "LOGLOSS", .prediction = "p", .label = "y", .group = ""};
  specs[1] = {.kind = "GAUC", .prediction = "p", .label = "y", .group = "user", .max_rows = 100};
  MetricRegistry registry;
  Demand(RegisterBuiltinMetrics(registry).ok(), "a metric is registered twice");
  return std::move(MetricSet::Create(specs, SlotSchema::Create(desc).value(), registry, "loss")).value();
}

class Silent : public google::protobuf::io::ErrorCollector {
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

/// Makes the seals and sums of a folder true.
void Repair(const FuzzFolder& folder) {
  const auto seal = [&folder](const char* name, std::string text) { folder.Write(name, SealText(std::move(text))); };
  if (Result<std::string> run = ReadFile(folder.path() + "/RUN"); run.ok()) seal("RUN", std::move(run).value());
  Result<std::string> text = ReadFile(folder.path() + "/" + kManifest);
  if (!text.ok()) return;
  CheckpointManifest manifest;
  google::protobuf::TextFormat::Parser parser;
  Silent silent;
  parser.RecordErrorsTo(&silent);
  if (parser.ParseFromString(*text, &manifest)) {
    folder.PutSums(kStep, manifest.mutable_file());
    google::protobuf::TextFormat::PrintToString(manifest, &*text);
  }
  seal(kManifest, std::move(text).value());
}

void Restore(const FoundCheckpoint& found, const MetricSet& metrics) {
  const auto& variables = found.manifest.variable();
  RestoreStored(found.folder, {variables.begin(), variables.end()});
  const Result<ConsumedRanges> ledger = ConsumedRanges::FromText(found.manifest.ledger());
  DemandOneOf(ledger.status(), StatusCode::kBadData, StatusCode::kBadData);
  if (ledger.ok()) {
    const std::string written = ledger->ToText();
    const Result<ConsumedRanges> again = ConsumedRanges::FromText(written);
    Demand(again.ok() && again->ToText() == written, "the ledger does not read back");
  }
  if (std::optional<MetricTotals> totals = metrics.FromBytes(found.metrics)) {
    std::ostringstream bytes;
    MetricSet::Write(*totals, bytes);
    Demand(bytes.str() == found.metrics, "the totals are not what was read");
    metrics.Compute(*totals);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const FuzzFolder folder;
  static const ProgramDesc program = StoredProgram();
  static const std::unique_ptr<const MetricSet> metrics = Metrics();
  if (size == 0) return 0;
  folder.Unpack({kManifest, "step-000000000007/metrics", "step-000000000007/parameters", "step-000000000007/tables/t",
                 "RUN", "step-000000000003/MANIFEST"},
                {reinterpret_cast<const char*>(data) + 1, size - 1});
  if (data[0] % 2 == 0) Repair(folder);

  const Result<CheckpointStore> store = CheckpointStore::Create(folder.path(), 1, 1);
  Demand(store.ok(), "the store cannot be made", store.status().message());
  std::vector<std::string> refused;
  const Result<std::optional<FoundCheckpoint>> found = store->FindNewest(
      [](const CheckpointManifest& manifest) {
        return CompareVariables(program, {manifest.variable().begin(), manifest.variable().end()}, {});
      },
      &refused);
  DemandOneOf(found.status(), StatusCode::kBadData, StatusCode::kInvalidConfig);
  if (found.ok() && found->has_value()) Restore(**found, *metrics);
  return 0;
}
