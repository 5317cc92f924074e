#include "app/compare_jobs.h"

#include <google/protobuf/text_format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/command_line.h"
#include "config/changed_fields.h"
#include "core/json_writer.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

/// nullopt: not a job of this build.
using Jobs = std::vector<std::optional<TrainerDesc>>;

/// A field in which jobs differ, with its value in each job.
struct DifferingField {
  std::string path;
  std::vector<std::string> values;
};

/// The job without slots and statistics that follow from its features.
void KeepWritten(TrainerDesc* job) {
  if (!job->has_data_desc()) return;
  DataFeedDesc& data = *job->mutable_data_desc();
  data.clear_feature_states();
  if (data.feature_size() == 0) return;
  data.mutable_multi_slot_desc()->clear_slots();
  if (!data.multi_slot_desc().has_uid_slot()) data.clear_multi_slot_desc();
}

Result<Jobs> ReadJobs(const std::string& line, simdjson::dom::parser* parser) {
  Jobs jobs;
  simdjson::dom::array texts;
  const simdjson::error_code error = parser->parse(line).get_array().get(texts);
  if (error != simdjson::SUCCESS) return BadData(std::string("expected a list: ") + simdjson::error_message(error));
  for (const simdjson::dom::element text : texts) {
    std::string_view job;
    if (text.get_string().get(job) != simdjson::SUCCESS) return BadData("expected a list of strings");
    if (!google::protobuf::TextFormat::ParseFromString(std::string(job), &jobs.emplace_back().emplace())) {
      jobs.back().reset();
    } else {
      KeepWritten(&*jobs.back());
    }
  }
  return jobs;
}

/// Compares each job with the first one. Where results go always differs.
std::vector<DifferingField> DifferingFields(const Jobs& jobs) {
  std::vector<DifferingField> fields;
  const auto first = std::find_if(jobs.begin(), jobs.end(), [](const auto& job) { return job.has_value(); });
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!jobs[i].has_value()) continue;
    for (const ChangedField& change : ChangedJobFields(**first, *jobs[i])) {
      if (change.path == "output.dir") continue;
      auto field = std::find_if(fields.begin(), fields.end(),
                                [&](const DifferingField& known) { return known.path == change.path; });
      if (field == fields.end()) {
        field = fields.insert(fields.end(), {change.path, std::vector<std::string>(jobs.size(), change.before)});
      }
      field->values[i] = change.now;
    }
  }
  return fields;
}

std::string ComparisonAsJson(const Jobs& jobs) {
  JsonWriter json;
  json.BeginObject().Key("seeds").BeginList();
  for (const auto& job : jobs) job.has_value() ? json.Number(job->seed()) : json.Null();
  json.EndList().Key("fields").BeginList();
  const std::vector<DifferingField> fields = DifferingFields(jobs);
  std::vector<std::string> paths;
  for (const DifferingField& field : fields) paths.push_back(field.path);
  const std::vector<std::string> heads = ShortPaths(paths);
  for (size_t i = 0; i < fields.size(); ++i) {
    json.BeginObject().Key("path").Text(paths[i]).Key("head").Text(heads[i]).Key("values").BeginList();
    for (const std::string& value : fields[i].values) json.Text(value);
    json.EndList().EndObject();
  }
  json.EndList().EndObject();
  return json.text();
}

}  // namespace

Status CompareJobs() {
  simdjson::dom::parser parser;
  std::string line;
  while (std::getline(std::cin, line)) {
    MR_ASSIGN(const Jobs jobs, ReadJobs(line, &parser));
    const std::string text = ComparisonAsJson(jobs) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return FlushStandardOutput();
}

}  // namespace millrace
