#include "config/print_config.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "batch/slot_schema.h"
#include "config/paddle_fields.h"
#include "core/utf8.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

constexpr size_t kLongestLine = 100;

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t length = Utf8Length(text, i);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (length > 1 || (length == 1 && static_cast<unsigned char>(c) >= 0x20 && c != 0x7F)) {
      out += text.substr(i, length);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'\\', static_cast<char>('0' + (byte >> 6)), static_cast<char>('0' + ((byte >> 3) & 7)),
              static_cast<char>('0' + (byte & 7))};
    }
    i += std::max<size_t>(length, 1);
  }
  return out + "\"";
}

/// Writes messages: small ones on one line, lists of scalars in brackets, defaults as comments.
class Writer {
 public:
  void Fields(const Message& message, const std::string& indent) {
    const Reflection* reflection = message.GetReflection();
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = message.GetDescriptor()->field(i);
      if (!field->is_repeated() && !reflection->HasField(message, field)) {
        if (ShowsDefault(*field)) out_ += indent + "# " + Default(*field) + "\n";
        continue;
      }
      const int size = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
      if (size == 0) continue;
      if (field->message_type() == nullptr) {
        out_ += indent + field->name() + ": " + Values(message, *field, size) + "\n";
        continue;
      }
      for (int k = 0; k < size; ++k) {
        const Message& child = field->is_repeated() ? reflection->GetRepeatedMessage(message, field, k)
                                                    : reflection->GetMessage(message, field);
        Child(field->name(), child, indent);
      }
    }
  }

  std::string Take() { return std::move(out_); }

 private:
  static bool ShowsDefault(const FieldDescriptor& field) {
    return field.has_default_value() && !IsInert(field) && field.containing_oneof() == nullptr;
  }

  std::string Default(const FieldDescriptor& field) const {
    std::string text = field.name() + ": ";
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING: return text + "\"" + field.default_value_string() + "\"";
      case FieldDescriptor::CPPTYPE_ENUM: return text + field.default_value_enum()->name();
      case FieldDescriptor::CPPTYPE_BOOL: return text + (field.default_value_bool() ? "true" : "false");
      default: break;
    }
    // The defaults of a fresh message print in the same way as values that were set.
    const Message* prototype =
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(field.containing_type());
    return text + Value(*prototype, field, -1);
  }

  std::string Value(const Message& message, const FieldDescriptor& field, int index) const {
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      const Reflection* reflection = message.GetReflection();
      return Quoted(index < 0 ? reflection->GetString(message, &field)
                              : reflection->GetRepeatedString(message, &field, index));
    }
    std::string value;
    printer_.PrintFieldValueToString(message, &field, index, &value);
    return value;
  }

  std::string Values(const Message& message, const FieldDescriptor& field, int size) const {
    if (!field.is_repeated()) return Value(message, field, -1);
    std::string values;
    for (int i = 0; i < size; ++i) values += (i > 0 ? ", " : "") + Value(message, field, i);
    return "[" + values + "]";
  }

  void Child(const std::string& name, const Message& child, const std::string& indent) {
    const std::string fields = OnOneLine(child);
    const std::string line = indent + name + (fields.empty() ? " {}" : " { " + fields + " }");
    const std::string defaults = Defaults(child);
    const std::string comment = defaults.empty() ? "" : "  # " + defaults;
    if (line.size() <= kLongestLine && line.size() + comment.size() <= kLongestLine + 20) {
      out_ += line + comment + "\n";
      return;
    }
    out_ += indent + name + " {\n";
    Fields(child, indent + "  ");
    out_ += indent + "}\n";
  }

  /// The fields of a message without messages in it, or a text that is longer than any line.
  std::string OnOneLine(const Message& message) const {
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    std::string line;
    for (const FieldDescriptor* field : fields) {
      if (field->message_type() != nullptr && (field->is_repeated() || fields.size() > 2)) {
        return std::string(kLongestLine, ' ');
      }
      if (!line.empty()) line += " ";
      if (field->message_type() != nullptr) {
        const std::string inner = OnOneLine(message.GetReflection()->GetMessage(message, field));
        line += field->name() + (inner.empty() ? " {}" : " { " + inner + " }");
        continue;
      }
      const int size = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) : 1;
      line += field->name() + ": " + Values(message, *field, size);
    }
    return line;
  }

  /// The defaults of a message that stands on one line, and of the one in it.
  std::string Defaults(const Message& message) const {
    std::string defaults;
    const auto append = [&](const std::string& text) {
      if (!text.empty()) defaults += (defaults.empty() ? "" : ", ") + text;
    };
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = message.GetDescriptor()->field(i);
      if (field->is_repeated()) continue;
      const bool has = message.GetReflection()->HasField(message, field);
      if (!has && ShowsDefault(*field)) append(Default(*field));
      if (has && field->message_type() != nullptr)
        append(Defaults(message.GetReflection()->GetMessage(message, field)));
    }
    return defaults;
  }

  TextFormat::Printer printer_;
  std::string out_;
};

template <class Names>
void ExpandNames(Names* names) {
  Names expanded;
  for (const std::string& name : *names) {
    const Result<std::vector<std::string>> range = ExpandSlotRange(name);
    if (!range.ok()) {
      *expanded.Add() = name;
      continue;
    }
    for (const std::string& one : *range) *expanded.Add() = one;
  }
  names->Swap(&expanded);
}

}  // namespace

void ExpandSlotRanges(TrainerDesc* desc) {
  if (desc->has_data_desc() && desc->data_desc().has_multi_slot_desc()) {
    auto* slots = desc->mutable_data_desc()->mutable_multi_slot_desc()->mutable_slots();
    google::protobuf::RepeatedPtrField<Slot> expanded;
    for (const Slot& slot : *slots) {
      const Result<std::vector<std::string>> names = ExpandSlotRange(slot.name());
      if (!slot.has_name() || !names.ok()) {
        *expanded.Add() = slot;
        continue;
      }
      for (const std::string& name : *names) {
        Slot* one = expanded.Add();
        *one = slot;
        one->set_name(name);
      }
    }
    slots->Swap(&expanded);
  }
  if (!desc->has_model()) return;
  for (LayerDesc& layer : *desc->mutable_model()->mutable_layer()) {
    if (layer.has_embedding()) ExpandNames(layer.mutable_embedding()->mutable_slots());
  }
}

std::string PrintConfig(const TrainerDesc& desc) {
  TrainerDesc expanded = desc;
  ExpandSlotRanges(&expanded);
  Writer writer;
  writer.Fields(expanded, "");
  return writer.Take();
}

}  // namespace millrace
