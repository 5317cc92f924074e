#include "serving/paddle_model.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/contained_file.h"
#include "core/file.h"
#include "core/folder_entries.h"
#include "program/program_files.h"
#include "program/var_meta.h"
#include "runtime/variable_files.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr char kProgramEnd[] = ".pdmodel";
constexpr char kParametersEnd[] = ".pdiparams";
constexpr char kDataFeedEnd[] = ".data_feed.prototxt";

PaddleModelFiles FilesOf(const std::string& prefix) {
  return {prefix + kProgramEnd, prefix + kParametersEnd, prefix + kDataFeedEnd};
}

// Format before Paddle 2: __model__, with one file for all parameters or one for each.
PaddleModelFiles OldFilesOf(const std::string& folder) {
  const std::string combined = folder + "/__params__";
  return {folder + "/__model__", MayBeThere(combined) ? combined : "", folder + "/data_feed.prototxt"};
}

/// Rejects special files and files outside the folder; the description of lines is optional.
Result<PaddleModelFiles> Contained(PaddleModelFiles files) {
  const auto check = [](const std::string& file) {
    const fs::path path(file);
    const std::string folder = path.parent_path().string();
    return FileInFolder(folder.empty() ? "." : folder, path.filename().string()).status();
  };
  MR_TRY(check(files.program));
  if (!files.parameters.empty()) {
    // Reading reports missing files: a model without parameters has none.
    const Status parameters = check(files.parameters);
    if (parameters.code() != StatusCode::kNotFound) MR_TRY(parameters);
  }
  if (const Status lines = check(files.data_feed); lines.code() == StatusCode::kNotFound) {
    files.data_feed.clear();
  } else {
    MR_TRY(lines);
  }
  return files;
}

std::vector<std::string> ProgramsIn(const std::string& folder) {
  std::vector<std::string> stems;
  const Result<std::vector<std::string>> names = NamesIn(folder);
  if (!names.ok()) return {};
  for (const fs::path path : *names) {
    if (path.extension() == kProgramEnd) stems.push_back(path.stem().string());
  }
  std::sort(stems.begin(), stems.end());
  return stems;
}

/// Removes attributes by which our lookups differ from Paddle's; predictions with a dense table do not need them.
void DropOwnAttributes(ProgramDesc& program) {
  constexpr std::array<std::string_view, 3> kOwn = {"slot_salt", "out_of_range", "update_padding"};
  for (OpDesc& op : *program.mutable_blocks(0)->mutable_ops()) {
    auto* attrs = op.mutable_attrs();
    attrs->erase(std::remove_if(attrs->begin(), attrs->end(),
                                [&](const OpDesc::Attr& attr) {
                                  return std::find(kOwn.begin(), kOwn.end(), attr.name()) != kOwn.end();
                                }),
                 attrs->end());
  }
}

}  // namespace

Result<PaddleModelFiles> FindPaddleModel(const std::string& folder_or_prefix) {
  std::error_code unknown;
  if (!fs::is_directory(folder_or_prefix, unknown)) {
    PaddleModelFiles files = FilesOf(folder_or_prefix);
    if (MayBeThere(files.program)) return Contained(std::move(files));
    return NotFound("there is neither a folder \"" + folder_or_prefix + "\" nor a file \"" + files.program + "\"");
  }
  const std::vector<std::string> stems = ProgramsIn(folder_or_prefix);
  if (stems.empty() && MayBeThere(folder_or_prefix + "/__model__")) {
    return Contained(OldFilesOf(folder_or_prefix));
  }
  if (stems.empty()) return NotFound("\"" + folder_or_prefix + "\" holds no model of Paddle (*.pdmodel or __model__)");
  const bool has_model = std::find(stems.begin(), stems.end(), "model") != stems.end();
  if (stems.size() == 1 || has_model) {
    return Contained(FilesOf(folder_or_prefix + "/" + (has_model ? "model" : stems[0])));
  }
  std::string names;
  for (const std::string& stem : stems) names += (names.empty() ? "" : ", ") + folder_or_prefix + "/" + stem;
  return InvalidConfig("\"" + folder_or_prefix + "\" holds several models; name one by its prefix: " + names);
}

Result<ProgramDesc> ReadPaddleProgram(const PaddleModelFiles& files, FeedFetch* lists) {
  MR_ASSIGN(ProgramDesc program, ReadProgram(files.program));
  Result<FeedFetch> taken = TakeFeedFetch(program);
  if (!taken.ok()) return std::move(taken).Context(files.program).status();
  if (taken->fetches.empty()) {
    return InvalidConfig(files.program + ": the program has no fetch operator, so nothing says what it predicts");
  }
  *lists = std::move(taken).value();
  return program;
}

Status LoadPaddleParameters(const PaddleModelFiles& files, const ProgramDesc& program, Scope& root,
                            const std::stop_token& stop) {
  if (PersistableTensors(program).empty()) return Status::Ok();
  if (!files.parameters.empty()) return LoadCombined(program, files.parameters, root, stop);
  const std::string folder = fs::path(files.program).parent_path().string();
  for (const std::string& name : PersistableTensors(program)) {
    // Missing files are reported below, all at once.
    const Status inside = FileInFolder(folder, name).status();
    if (inside.code() != StatusCode::kNotFound) MR_TRY(inside);
  }
  return LoadVariables(program, folder, root, stop);
}

Result<DataFeedDesc> FeedLines(const ProgramDesc& program, const std::vector<std::string>& feeds) {
  DataFeedDesc desc;
  for (const std::string& name : feeds) {
    const VarDesc* var = FindVar(program, name);
    if (var == nullptr) return InvalidConfig("the program feeds \"" + name + "\", but does not declare it");
    MR_ASSIGN(const VarMeta meta, ToMeta(*var));
    const bool is_float = meta.dtype == DType::kFloat32;
    if (!is_float && meta.dtype != DType::kInt64) {
      return InvalidConfig("the program feeds \"" + name + "\" with " + std::string(DTypeName(meta.dtype)) +
                           "; slots hold float32 and int64");
    }
    Slot* slot = desc.mutable_multi_slot_desc()->add_slots();
    slot->set_name(name);
    slot->set_type(is_float ? "float" : "uint64");
    slot->set_is_used(true);
    if (meta.lod_level > 0) continue;
    slot->set_is_dense(true);
    for (const int64_t size : meta.dims.sizes()) slot->add_shape(static_cast<int32_t>(size));
  }
  return desc;
}

Status WritePaddleModel(const FeedList& feed, const std::vector<std::string>& fetches, const Scope& root,
                        const std::string& folder, const std::string& name, const LongWork& work) {
  const PaddleModelFiles files = FilesOf(folder + "/" + name);
  ProgramDesc program = feed.program;
  program.mutable_version()->set_version(0);
  DropOwnAttributes(program);
  AddFeedFetch({feed.vars, fetches}, program);
  MR_TRY(WriteFileAtomically(files.program, program.SerializeAsString()));
  MR_TRY(SaveCombined(program, files.parameters, root, work));
  std::string text;
  google::protobuf::TextFormat::PrintToString(feed.data_desc, &text);
  return WriteFileAtomically(files.data_feed, text);
}

}  // namespace millrace
