// Folders of saved models, ours and Paddle's. Whatever their files hold: a predictor is ready, or the folder is refused
// for one of the reasons that Predictor::Load names.
//
// The first byte says whether the seal and the checksums are put right (even) or left as they are (odd); the rest is
// unpacked as FuzzFolder says.
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cstdint>
#include <string>

#include "core/file.h"
#include "core/sealed_text.h"
#include "fuzz/folder.h"
#include "inference_model.pb.h"
#include "ops/builtin_ops.h"
#include "program/op_registry.h"
#include "serving/predictor.h"

namespace {

using namespace millrace;

class Silent : public google::protobuf::io::ErrorCollector {
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

void Repair(const FuzzFolder& folder) {
  Result<std::string> text = ReadFile(folder.path() + "/MODEL");
  if (!text.ok()) return;
  InferenceModel model;
  google::protobuf::TextFormat::Parser parser;
  Silent silent;
  parser.RecordErrorsTo(&silent);
  if (parser.ParseFromString(*text, &model)) {
    folder.PutSums(".", model.mutable_file());
    google::protobuf::TextFormat::PrintToString(model, &*text);
  }
  folder.Write("MODEL", SealText(std::move(text).value()));
}

OpRegistry Operators() {
  OpRegistry registry;
  RegisterBuiltinOps(registry);
  Demand(registry.Seal().ok(), "the registry does not seal");
  return registry;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const FuzzFolder folder;
  static const OpRegistry registry = Operators();
  if (size == 0) return 0;
  folder.Unpack({"MODEL", "program_offline", "program_online", "program_tables", "parameters", "tables/deep",
                 "model.pdmodel", "model.pdiparams", "data_feed.prototxt"},
                {reinterpret_cast<const char*>(data) + 1, size - 1});
  if (data[0] % 2 == 0) Repair(folder);
  PredictorOptions options;
  if (data[0] % 4 >= 2) options.feed = "online";
  const auto predictor = Predictor::Load(folder.path(), registry, options);
  if (predictor.ok()) return 0;
  const StatusCode code = predictor.status().code();
  Demand(code == StatusCode::kNotFound || code == StatusCode::kBadData || code == StatusCode::kInvalidConfig,
         "another failure", predictor.status().message());
  return 0;
}
