#include "program/passes/section_fusion.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "program/passes/fusion.h"

namespace millrace {
namespace {

void AddArguments(const google::protobuf::RepeatedPtrField<OpDesc::Var>& bindings, std::set<std::string>* names) {
  for (const OpDesc::Var& binding : bindings) names->insert(binding.arguments().begin(), binding.arguments().end());
}

}  // namespace

SectionFusion::SectionFusion(const OpList& ops, const std::vector<SectionPart>& parts)
    : parts_(parts), lists_(parts.size()) {
  auto op = ops.shared().begin();
  for (size_t i = 0; i < parts.size(); ++i) {
    for (int k = 0; k < parts[i].ops; ++k) lists_[i].Add(*op++);
  }
}

Status SectionFusion::Run(VarMetas& vars, const OpRegistry& registry, const std::vector<std::string>& fetches) {
  std::set<int> sections;
  for (const SectionPart& part : parts_) sections.insert(part.section);
  for (const int section : sections) MR_TRY(FuseSection(section, vars, registry, fetches));
  return Status::Ok();
}

OpList SectionFusion::Take(std::vector<OpRange>* ranges) && {
  OpList ops;
  for (const OpList& list : lists_) {
    ranges->push_back({ops.size(), ops.size() + list.size()});
    for (const OpList::Shared& op : list.shared()) ops.Add(op);
  }
  return ops;
}

Status SectionFusion::FuseSection(int section, VarMetas& vars, const OpRegistry& registry,
                                  const std::vector<std::string>& fetches) {
  std::set<std::string> kept(fetches.begin(), fetches.end());
  OpList ops;
  std::map<std::string, size_t> writer;  // the last part that writes a variable
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].section != section) {
      for (const OpDesc& op : lists_[i]) {
        AddArguments(op.inputs(), &kept);
        AddArguments(op.outputs(), &kept);
      }
      continue;
    }
    for (const OpList::Shared& op : std::exchange(lists_[i], {}).shared()) {
      std::set<std::string> written;
      AddArguments(op->outputs(), &written);
      for (const std::string& name : written) writer[name] = i;
      ops.Add(op);
    }
  }
  MR_TRY(ApplyFusionPasses(ops, vars, registry, {kept.begin(), kept.end()}));
  const auto first =
      std::find_if(parts_.begin(), parts_.end(), [&](const auto& part) { return part.section == section; });
  auto part = static_cast<size_t>(first - parts_.begin());
  for (const OpList::Shared& op : ops.shared()) {
    std::set<std::string> written;
    AddArguments(op->outputs(), &written);
    for (const std::string& name : written) {
      if (const auto it = writer.find(name); it != writer.end()) part = std::max(part, it->second);
    }
    lists_[part].Add(op);
  }
  return Status::Ok();
}

}  // namespace millrace
