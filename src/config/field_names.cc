#include "config/field_names.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/edit_distance.h"
#include "core/name_list.h"
#include "data_feed.pb.h"
#include "model.pb.h"

namespace millrace {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int kFewFields = 12;

/// Words of other trainers that look like no field of ours, and what says the same here.
struct OtherWord {
  std::string_view word;
  std::string_view ours;
};
constexpr OtherWord kOtherWords[] = {
    {"learning_rate", "the rate is lr of model.optimizer's rule: model { optimizer { adagrad { lr: 0.1 } } }"},
    {"num_epochs", "epochs says it"},
    {"num_threads", "thread_num says it"},
    {"num_workers", "thread_num says it"},
    {"threads", "thread_num says it"},
    {"workers", "thread_num says it"},
};

/// What the columns of a feature may be called in its steps, which have none of their own.
constexpr std::string_view kColumnWords[] = {"in",    "of",     "from", "column", "columns",
                                             "input", "inputs", "slot", "slots"};

bool IsStepOfFeature(const Descriptor& type) {
  const Descriptor& feature = *FeatureDesc::descriptor();
  for (int i = 0; i < feature.field_count(); ++i) {
    const FieldDescriptor& field = *feature.field(i);
    if (field.message_type() == &type) return true;
  }
  return false;
}

/// Whether a field lies at hand: of those that exclude each other only one may be set.
bool MayStandIn(const Message* message, const FieldDescriptor& field) {
  if (message == nullptr || field.containing_oneof() == nullptr) return true;
  const FieldDescriptor* set = message->GetReflection()->GetOneofFieldDescriptor(*message, field.containing_oneof());
  return set == nullptr || set == &field;
}

const Message* ChildOf(const Message* message, const FieldDescriptor& field) {
  if (message == nullptr || field.is_repeated() || !message->GetReflection()->HasField(*message, &field))
    return nullptr;
  return &message->GetReflection()->GetMessage(*message, &field);
}

/// The shortest path below `root` to a field with this name; empty when there is none. Rules of accessors, whose
/// settings are words of other trainers, are no place for them.
std::string FindElsewhere(const Message& root, const std::string& name) {
  struct Place {
    const Descriptor* type;
    const Message* message;  ///< null: none of the kind is set
    std::string path;
  };
  std::deque<Place> queue = {{root.GetDescriptor(), &root, ""}};
  std::set<const Descriptor*> seen = {root.GetDescriptor()};
  while (!queue.empty()) {
    const auto [type, message, path] = queue.front();
    queue.pop_front();
    if (type->FindFieldByName(name) != nullptr) return JoinPath(path, name);
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor* field = type->field(i);
      if (field->message_type() == SparseCommonSGDRuleParameter::descriptor()) continue;
      if (field->message_type() == nullptr || !MayStandIn(message, *field)) continue;
      if (!seen.insert(field->message_type()).second) continue;
      queue.push_back({field->message_type(), ChildOf(message, *field), JoinPath(path, field->name())});
    }
  }
  return "";
}

/// Where the field belongs when it is one of a message's fields that exclude each other, as rules of an optimizer do;
/// empty when none of them has it.
std::string FindInChoice(const Message& message, const std::string& name) {
  const Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.oneof_decl_count(); ++i) {
    const auto& choice = *type.oneof_decl(i);
    std::vector<std::string> places;
    for (int k = 0; k < choice.field_count(); ++k) {
      const FieldDescriptor& field = *choice.field(k);
      if (field.message_type() == nullptr || field.message_type()->FindFieldByName(name) == nullptr) continue;
      places.push_back(field.name());
    }
    if (places.empty()) continue;
    const FieldDescriptor* set = message.GetReflection()->GetOneofFieldDescriptor(message, &choice);
    const bool is_of_set = set != nullptr && std::find(places.begin(), places.end(), set->name()) != places.end();
    if (is_of_set || places.size() == 1) {
      const std::string& place = is_of_set ? set->name() : places[0];
      const bool is_other = set != nullptr && !is_of_set;
      return "it belongs into " + place + " { ... }" + (is_other ? ", and " + set->name() + " is set" : "");
    }
    std::string all;
    for (size_t k = 0; k < places.size(); ++k) {
      all += (k == 0 ? "" : k + 1 == places.size() ? " or " : ", ") + places[k];
    }
    return "it belongs into one of its rules, " + all + (set != nullptr ? ", and " + set->name() + " is set" : "");
  }
  return "";
}

}  // namespace

const FieldDescriptor* FindField(const Descriptor& type, std::string_view name) {
  if (const FieldDescriptor* field = type.FindFieldByName(std::string(name))) return field;
  const std::string& message = type.name();
  if (message == "DataFeedDesc" && name == "batch") return type.FindFieldByName("batch_size");
  if (message == "Slot" && name == "use") return type.FindFieldByName("is_used");
  if (message == "Slot" && name == "dense") return type.FindFieldByName("is_dense");
  return nullptr;
}

UnknownField ExplainUnknownField(const Message& of, std::string_view name, const Message& root) {
  const Descriptor& type = *of.GetDescriptor();
  std::string message = type.name() + " has no field \"" + std::string(name) + "\"";
  if (const std::string place = FindInChoice(of, std::string(name)); !place.empty()) {
    return {message + "; " + place, nullptr};
  }
  if (IsStepOfFeature(type) &&
      std::find(std::begin(kColumnWords), std::end(kColumnWords), name) != std::end(kColumnWords)) {
    return {message + "; a feature names its columns beside its steps: from: [\"a\", \"b\"], or other features by of",
            nullptr};
  }
  std::vector<std::string_view> fields;
  for (int i = 0; i < type.field_count(); ++i) fields.push_back(type.field(i)->name());
  const std::string elsewhere = FindElsewhere(root, std::string(name));
  const std::string_view nearest = NearestName(name, fields);
  // A true name at another place says more than a name that only looks alike.
  if (!elsewhere.empty() && (nearest.empty() || EditDistance(name, nearest) > 1)) {
    const size_t dot = elsewhere.rfind('.');
    if (dot == std::string::npos) return {message + "; it is a field of " + root.GetDescriptor()->name(), nullptr};
    return {message + "; it belongs into " + elsewhere.substr(0, dot) + " { ... }", nullptr};
  }
  if (!nearest.empty()) {
    return {message + "; did you mean \"" + std::string(nearest) + "\"?", type.FindFieldByName(std::string(nearest))};
  }
  if (type.field_count() > kFewFields) {
    const auto* const other = std::find_if(std::begin(kOtherWords), std::end(kOtherWords),
                                           [name](const OtherWord& known) { return known.word == name; });
    const bool is_known = other != std::end(kOtherWords);
    return {message + "; " + std::string(is_known ? other->ours : "docs/config.md has those that it has"), nullptr};
  }
  return {message + "; it has " + JoinNames(fields), nullptr};
}

std::string TypeInWords(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64: return "a whole number";
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64: return "a whole number from 0 on";
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT: return "a number";
    case FieldDescriptor::CPPTYPE_BOOL: return "true or false";
    case FieldDescriptor::CPPTYPE_STRING: return "a string";
    case FieldDescriptor::CPPTYPE_ENUM: return "a name of " + field.enum_type()->name();
    case FieldDescriptor::CPPTYPE_MESSAGE: return "a message: " + field.name() + " { ... }";
  }
  return "a value";
}

std::string JoinPath(std::string_view parent, std::string_view field, int index) {
  std::string path(parent);
  if (!path.empty()) path += '.';
  path += field;
  if (index >= 0) path += "[" + std::to_string(index) + "]";
  return path;
}

}  // namespace millrace
