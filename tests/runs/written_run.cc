#include "runs/written_run.h"

#include <filesystem>
#include <fstream>

#include "core/json_writer.h"

namespace millrace {

std::string WrittenRuns::Write(const std::string& run, const std::string& file, const std::string& text) const {
  std::filesystem::create_directories(folder(run));
  std::ofstream(folder(run) + "/" + file) << text;
  return folder(run);
}

std::string WrittenRuns::WriteRun(const std::string& run, const std::string& job, double first_auc,
                                  double last_auc) const {
  JsonWriter json;
  json.BeginObject().Key("examples").Number(640).Key("seconds").Number(2.0).Key("examples_per_second").Number(320.0);
  json.Key("batches").Number(20).Key("interrupted").Bool(false).Key("stopped_early").Bool(false);
  json.Key("metrics").BeginObject().Key("auc").Number(0.9).EndObject();
  json.Key("eval").BeginObject().Key("step").Number(20).Key("auc").Number(last_auc).EndObject();
  json.Key("better").BeginObject().Key("higher").BeginList().Text("auc").EndList();
  json.Key("lower").BeginList().Text("loss").EndList().EndObject();
  json.Key("job").Text(job).EndObject();
  Write(run, "run.json", json.text());
  const auto evaluation = [](int step, double auc) {
    JsonWriter line;
    line.BeginObject().Key("step").Number(step).Key("epoch").Number(0).Key("examples").Number(32 * step);
    line.Key("eval_loss").Number(1 - auc).Key("eval_auc").Number(auc).EndObject();
    return line.text() + "\n";
  };
  return Write(run, "metrics.jsonl",
               "{\"step\":5,\"epoch\":0,\"examples\":160,\"loss\":0.7,\"auc\":null,\"pair\":[1,2]}\n" +
                   evaluation(10, first_auc) + evaluation(20, last_auc));
}

}  // namespace millrace
