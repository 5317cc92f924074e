#include "config/changed_fields.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "config/print_config.h"
#include "core/harmless_text.h"
#include "core/shortened.h"
#include "program/field_traits.h"
#include "program/model_defaults.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

constexpr size_t kShown = 80;

std::string Cut(const std::string& text) {
  const std::string shown = Harmless(StartOf(text, kShown));
  return text.size() <= kShown ? shown : shown + " ...";
}

/// Words stay as they were written: without escapes, UTF-8 or not.
TextFormat::Printer PrinterOfWords() {
  TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  printer.SetUseUtf8StringEscaping(true);
  return printer;
}

std::string ShownMessage(const Message& message) {
  std::string text;
  PrinterOfWords().PrintToString(message, &text);
  return Cut(text.empty() ? "{}" : "{ " + text + "}");
}

/// One value of a field that is no message; `index` -1: the field is not repeated.
std::string Value(const Message& message, const FieldDescriptor& field, int index) {
  std::string text;
  PrinterOfWords().PrintFieldValueToString(message, &field, index, &text);
  return text;
}

std::string List(const Message& message, const FieldDescriptor& field) {
  std::string text;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    text += (i == 0 ? "" : ", ") + Value(message, field, i);
  }
  return text;
}

/// The values of the elements' field "name"; nothing when they have none, or not each its own.
std::vector<std::string> Names(const Message& message, const FieldDescriptor& field) {
  const FieldDescriptor* name = field.message_type()->FindFieldByName("name");
  std::vector<std::string> names;
  if (name == nullptr || name->is_repeated() || name->cpp_type() != FieldDescriptor::CPPTYPE_STRING) return names;
  const Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const Message& element = reflection.GetRepeatedMessage(message, &field, i);
    names.push_back(element.GetReflection()->GetString(element, name));
  }
  if (std::set<std::string>(names.begin(), names.end()).size() < names.size()) names.clear();
  return names;
}

class Comparison {
 public:
  explicit Comparison(std::vector<ChangedField>* changes) : changes_(changes) {}

  void Compare(const Message& before, const Message& now, const std::string& path, bool may_change) {
    for (int i = 0; i < before.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *before.GetDescriptor()->field(i);
      const FieldTraits traits = TraitsOf(field);
      const bool may = traits.has_may_change() ? traits.may_change() : may_change;
      const std::string name = (path.empty() ? "" : path + ".") + field.name();
      const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      if (field.is_repeated()) {
        is_message ? CompareElements(before, now, field, name, may) : CompareLists(before, now, field, name, may);
      } else {
        is_message ? CompareMessages(before, now, field, name, may) : CompareValues(before, now, field, name, may);
      }
    }
  }

 private:
  void Add(const std::string& path, std::string before, std::string now, bool may) {
    changes_->push_back({path, std::move(before), std::move(now), may});
  }

  void CompareValues(const Message& before, const Message& now, const FieldDescriptor& field, const std::string& path,
                     bool may) {
    const std::string was = Value(before, field, -1);
    const std::string is = Value(now, field, -1);
    const bool had = before.GetReflection()->HasField(before, &field) || field.has_default_value();
    const bool has = now.GetReflection()->HasField(now, &field) || field.has_default_value();
    if (had == has && (was == is || !has)) return;
    Add(path, had ? Cut(was) : "(none)", has ? Cut(is) : "(none)", may);
  }

  void CompareLists(const Message& before, const Message& now, const FieldDescriptor& field, const std::string& path,
                    bool may) {
    const std::string was = List(before, field);
    const std::string is = List(now, field);
    if (was != is) Add(path, "[" + Cut(was) + "]", "[" + Cut(is) + "]", may);
  }

  void CompareMessages(const Message& before, const Message& now, const FieldDescriptor& field, const std::string& path,
                       bool may) {
    const bool had = before.GetReflection()->HasField(before, &field);
    const bool has = now.GetReflection()->HasField(now, &field);
    const Message& was = before.GetReflection()->GetMessage(before, &field);
    const Message& is = now.GetReflection()->GetMessage(now, &field);
    if (had && has) return Compare(was, is, path, may);
    if (had || has) Add(path, had ? ShownMessage(was) : "(none)", has ? ShownMessage(is) : "(none)", may);
  }

  void CompareElements(const Message& before, const Message& now, const FieldDescriptor& field, const std::string& path,
                       bool may) {
    std::vector<std::string> old_names = Names(before, field);
    std::vector<std::string> names = Names(now, field);
    const int old_size = before.GetReflection()->FieldSize(before, &field);
    const int size = now.GetReflection()->FieldSize(now, &field);
    if (old_names.size() != static_cast<size_t>(old_size) || names.size() != static_cast<size_t>(size)) {
      old_names.clear();
      names.clear();
      for (int i = 0; i < old_size; ++i) old_names.push_back(std::to_string(i));
      for (int i = 0; i < size; ++i) names.push_back(std::to_string(i));
    }
    std::vector<std::string> stayed;
    for (int i = 0; i < old_size; ++i) {
      const std::string& name = old_names[static_cast<size_t>(i)];
      const Message& was = before.GetReflection()->GetRepeatedMessage(before, &field, i);
      const auto found = std::find(names.begin(), names.end(), name);
      const std::string element = name.empty() ? path : path + "[" + name + "]";  // the only one, without a name
      if (found == names.end()) {
        Add(element, ShownMessage(was), "(none)", may);
        continue;
      }
      stayed.push_back(name);
      const auto place = static_cast<int>(found - names.begin());
      Compare(was, now.GetReflection()->GetRepeatedMessage(now, &field, place), element, may);
    }
    std::vector<std::string> order;
    for (int i = 0; i < size; ++i) {
      const std::string& name = names[static_cast<size_t>(i)];
      if (std::find(stayed.begin(), stayed.end(), name) != stayed.end()) {
        order.push_back(name);
        continue;
      }
      Add(path + "[" + name + "]", "(none)", ShownMessage(now.GetReflection()->GetRepeatedMessage(now, &field, i)),
          may);
    }
    if (order != stayed) Add(path, "[" + Cut(Joined(stayed)) + "]", "[" + Cut(Joined(order)) + "]", may);
  }

  static std::string Joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  }

  std::vector<ChangedField>* changes_;
};

template <class Elements>
const typename Elements::value_type& OfName(const Elements& elements, const std::string& name) {
  const auto found = std::find_if(elements.begin(), elements.end(), [&](const auto& e) { return e.name() == name; });
  return found != elements.end() ? *found : Elements::value_type::default_instance();
}

/// An fm layer without a dim has that of the table of its embedding layer.
int DimOfFm(const FmLayer& fm, const ModelDesc& model) {
  const EmbeddingLayer& embedding = OfName(model.layer(), fm.in()).embedding();
  return SlotWidthOf(embedding, OfName(model.table(), embedding.table()));
}

/// What stands for a field that is left out, where that is no value of its own, written out where the other job writes
/// the field out.
void GiveDefaults(const ModelDesc& other, ModelDesc* model) {
  for (TableDesc& table : *model->mutable_table()) {
    const TableDesc& same = OfName(other.table(), table.name());
    if (same.has_accessor() && table.has_accessor()) {
      if (same.has_dim()) table.set_dim(DimOf(table));
      continue;
    }
    if (same.has_init() || table.has_init()) *table.mutable_init() = InitOf(table);
    if (same.has_optimizer() && !table.has_optimizer()) *table.mutable_optimizer() = model->optimizer();
  }
  for (LayerDesc& layer : *model->mutable_layer()) {
    const LayerDesc& same = OfName(other.layer(), layer.name());
    if (layer.has_fc() && same.fc().has_init()) *layer.mutable_fc()->mutable_init() = InitOf(layer.fc());
    if (layer.has_fc() && same.fc().has_bias_init()) *layer.mutable_fc()->mutable_bias_init() = BiasInitOf(layer.fc());
    if (layer.has_fm() && same.fm().has_dim() && !layer.fm().has_dim()) {
      layer.mutable_fm()->set_dim(DimOfFm(layer.fm(), *model));
    }
  }
}

/// The names of a path; a dot within brackets is an element's.
std::vector<std::string> NamesOfPath(const std::string& path) {
  std::vector<std::string> names(1);
  int depth = 0;
  for (const char c : path) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == '.' && depth == 0) {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  return names;
}

std::string LastNames(const std::vector<std::string>& names, size_t count) {
  std::string text;
  for (size_t i = names.size() - std::min(count, names.size()); i < names.size(); ++i) {
    text += (text.empty() ? "" : ".") + names[i];
  }
  return text;
}

}  // namespace

std::vector<ChangedField> ChangedFields(const Message& before, const Message& now, bool may_change) {
  std::vector<ChangedField> changes;
  Comparison(&changes).Compare(before, now, "", may_change);
  return changes;
}

std::vector<ChangedField> ChangedJobFields(const TrainerDesc& before, const TrainerDesc& now) {
  TrainerDesc was = before;
  TrainerDesc is = now;
  ExpandSlotRanges(&was);
  ExpandSlotRanges(&is);
  if (was.has_model() && is.has_model()) {
    GiveDefaults(is.model(), was.mutable_model());
    GiveDefaults(was.model(), is.mutable_model());
  }
  return ChangedFields(was, is, true);
}

std::vector<std::string> ShortPaths(const std::vector<std::string>& paths) {
  std::vector<std::string> shorts;
  for (const std::string& path : paths) {
    const std::vector<std::string> names = NamesOfPath(path);
    size_t count = 1;
    const auto is_taken = [&](const std::string& other) {
      return other != path && LastNames(NamesOfPath(other), count) == LastNames(names, count);
    };
    while (count < names.size() && std::any_of(paths.begin(), paths.end(), is_taken)) ++count;
    shorts.push_back(LastNames(names, count));
  }
  return shorts;
}

}  // namespace millrace
