#include "plugin/c_open_args.h"

#include <algorithm>
#include <string_view>

#include "core/edit_distance.h"
#include "data_feed.pb.h"

namespace millrace {
namespace {

/// The value of an attribute; null if it has none.
Result<const std::string*> ValueOf(const millrace_attr_info& info, const COpenArgs::Given& given) {
  const std::string* value = nullptr;
  for (const auto& [name, text] : given) {
    if (name != info.name) continue;
    if (value != nullptr) return InvalidConfig("attribute \"" + name + "\" is given twice");
    value = &text;
  }
  if (value == nullptr && info.default_value == nullptr) {
    return InvalidConfig("attribute \"" + std::string(info.name) + "\" is missing" +
                         (info.doc == nullptr ? std::string() : ": " + std::string(info.doc)));
  }
  return value;
}

Status CheckNames(std::span<const millrace_attr_info> infos, const COpenArgs::Given& given) {
  for (const auto& [name, value] : given) {
    std::vector<std::string_view> known;
    for (const millrace_attr_info& info : infos) known.emplace_back(info.name);
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return InvalidConfig("there is no attribute \"" + name + "\"" + DidYouMean(name, known));
  }
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<COpenArgs>> COpenArgs::Create(std::span<const millrace_attr_info> infos, const Given& given,
                                                     std::vector<std::pair<std::string, millrace_column>> columns) {
  MR_TRY(CheckNames(infos, given));
  std::unique_ptr<COpenArgs> made(new COpenArgs);
  made->texts_.reserve(infos.size() + columns.size());  // pointers require stable addresses
  for (const millrace_attr_info& info : infos) {
    MR_ASSIGN(const std::string* const value, ValueOf(info, given));
    made->texts_.push_back(value == nullptr ? info.default_value : *value);
    made->attrs_.push_back({info.name, made->texts_.back().c_str()});
  }
  for (auto& [name, column] : columns) {
    made->texts_.push_back(std::move(name));
    made->columns_.push_back({made->texts_.back().c_str(), column.kind, column.width});
  }
  made->args_ = {
      sizeof(millrace_open_args), nullptr,    made->attrs_.data(), made->attrs_.size(), made->columns_.data(),
      made->columns_.size(),      made.get(), &COpenArgs::Read};
  return made;
}

Result<std::unique_ptr<COpenArgs>> COpenArgs::ForSlots(std::span<const millrace_attr_info> infos,
                                                       const SlotSchema& schema, const DataFeedDesc& desc,
                                                       const std::string& where) {
  Given given;
  for (const PluginAttr& attr : desc.attrs()) given.emplace_back(attr.name(), attr.value());
  std::vector<std::pair<std::string, millrace_column>> columns;
  for (const SlotSpec& slot : schema.used()) {
    columns.push_back(
        {slot.name,
         {nullptr, slot.type == SlotType::kUint64 ? MILLRACE_IDS : MILLRACE_FLOATS, slot.is_dense ? slot.width : -1}});
  }
  return Create(infos, given, std::move(columns)).Context("data_desc.attrs: " + where);
}

void COpenArgs::ReadFrom(std::unique_ptr<ByteSource> bytes, const std::string& file) {
  source_ = std::move(bytes);
  read_failure_ = Status::Ok();
  file_ = file;
  args_.file = file_.c_str();
}

ptrdiff_t COpenArgs::Read(void* host, char* bytes, size_t room) {
  auto& self = *static_cast<COpenArgs*>(host);
  if (!self.read_failure_.ok() || self.source_ == nullptr || bytes == nullptr || room == 0) return -1;
  const Result<size_t> got = self.source_->Read({bytes, room}, self.stop_);
  if (got.ok()) return static_cast<ptrdiff_t>(*got);
  self.read_failure_ = got.status();
  return -1;
}

}  // namespace millrace
