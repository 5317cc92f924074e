#include "config/overrides.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "config/field_names.h"
#include "config/text_file.h"
#include "config/text_parser.h"
#include "core/edit_distance.h"
#include "core/numbers.h"

namespace millrace {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

/// What the origins of assignments begin with.
constexpr std::string_view kOrigin = "--set #";

/// Part of the assignment's text.
struct Piece {
  size_t begin = 0;
  size_t end = 0;
};

/// "slots[click]" of a path.
struct Step {
  Piece name;
  std::optional<Piece> element;
};

/// Returns what stands for an element's name: its "name", "scheme" or "kind".
std::string ElementName(const Message& element) {
  for (const char* key : {"name", "scheme", "kind"}) {
    const FieldDescriptor* field = element.GetDescriptor()->FindFieldByName(key);
    if (field == nullptr) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      return element.GetReflection()->GetString(element, field);
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM)
      return element.GetReflection()->GetEnum(element, field)->name();
  }
  return "";
}

class Override {
 public:
  Override(int source, Message* root, Diagnostics* diagnostics, FieldPositions* positions)
      : source_(source),
        text_(diagnostics->text(source)),
        root_(root),
        diagnostics_(diagnostics),
        positions_(positions) {}

  void Apply() {
    std::vector<Step> steps;
    if (!ReadSteps(&steps)) return;
    Message* message = root_;
    std::string path;
    for (size_t i = 0; i + 1 < steps.size(); ++i) {
      message = Descend(message, steps[i], &path);
      if (message == nullptr) return;
    }
    Assign(message, steps.back(), path);
  }

 private:
  std::string_view View(Piece piece) const { return text_.substr(piece.begin, piece.end - piece.begin); }
  std::string Text(Piece piece) const { return std::string(View(piece)); }
  void Error(Piece piece, std::string message) {
    diagnostics_->Error(diagnostics_->Span(source_, piece.begin, piece.end), std::move(message));
  }
  static bool IsNameCharacter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  char At(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  void SkipSpace(size_t* at) const {
    while (At(*at) == ' ' || At(*at) == '\t') ++*at;
  }

  /// Splits "a.b[c].d+=" into steps, and finds the operator and the value.
  bool ReadSteps(std::vector<Step>* steps) {
    size_t at = 0;
    while (true) {
      SkipSpace(&at);
      Step step;
      step.name.begin = at;
      while (IsNameCharacter(At(at))) ++at;
      step.name.end = at;
      if (step.name.begin == at) {
        Error({at, at + 1}, "expected the name of a field, as in data_desc.batch_size=64");
        return false;
      }
      if (At(at) == '[') {
        const size_t close = text_.find(']', at);
        if (close == std::string_view::npos) return Error({at, at + 1}, "\"[\" is never closed"), false;
        step.element = Piece{at + 1, close};
        at = close + 1;
      }
      steps->push_back(step);
      SkipSpace(&at);
      if (At(at) != '.') break;
      ++at;
    }
    if (At(at) == '+' && At(at + 1) == '=') {
      append_ = true;
      ++at;
    }
    if (At(at) != '=') {
      Error({at, at + 1}, "expected \"=\" and a value, as in data_desc.batch_size=64");
      return false;
    }
    ++at;
    SkipSpace(&at);
    size_t end = text_.size();
    while (end > at && (text_[end - 1] == ' ' || text_[end - 1] == '\t')) --end;
    value_ = {at, end};
    if (at < end) return true;
    Error({at, at + 1}, "a value is missing after \"=\"; an empty string is \"\"");
    return false;
  }

  const FieldDescriptor* Find(const Message& message, const Step& step) {
    const FieldDescriptor* field = FindField(*message.GetDescriptor(), View(step.name));
    if (field == nullptr) Error(step.name, ExplainUnknownField(message, View(step.name), *root_).message);
    return field;
  }

  /// The message that a step within a path leads to, or null after an error.
  Message* Descend(Message* parent, const Step& step, std::string* path) {
    const FieldDescriptor* field = Find(*parent, step);
    if (field == nullptr) return nullptr;
    const Reflection* reflection = parent->GetReflection();
    if (field->message_type() == nullptr) {
      Error(step.name, field->name() + " takes " + TypeInWords(*field) + "; it has no fields");
      return nullptr;
    }
    if (field->is_repeated()) {
      const std::optional<int> index = Index(*parent, *field, step);
      if (!index) return nullptr;
      *path = JoinPath(*path, field->name(), *index);
      return reflection->MutableRepeatedMessage(parent, field, *index);
    }
    if (step.element) return Error(*step.element, field->name() + " is no list"), nullptr;
    if (!CheckOneof(*parent, *field, step)) return nullptr;
    *path = JoinPath(*path, field->name());
    if (!positions_->Has(*path)) positions_->Set(*path, diagnostics_->Span(source_, step.name.begin, step.name.end));
    return reflection->MutableMessage(parent, field);
  }

  /// A path may not change the kind of a thing on its way: adagrad.lr where the file says adam is a mistake.
  bool CheckOneof(const Message& parent, const FieldDescriptor& field, const Step& step) {
    if (field.containing_oneof() == nullptr) return true;
    const FieldDescriptor* set = parent.GetReflection()->GetOneofFieldDescriptor(parent, field.containing_oneof());
    if (set == nullptr || set == &field) return true;
    const std::string whole(text_.substr(0, step.name.begin == 0 ? 0 : step.name.begin - 1));
    Error(step.name, "this " + parent.GetDescriptor()->name() + " is \"" + set->name() + "\", not \"" + field.name() +
                         "\"; to change it, set the whole: " + whole + "={" + field.name() + " { ... }}");
    return false;
  }

  /// The element that a step chooses by number or by name.
  std::optional<int> Index(const Message& parent, const FieldDescriptor& field, const Step& step) {
    const Reflection* reflection = parent.GetReflection();
    const int size = reflection->FieldSize(parent, &field);
    std::vector<std::string> names;
    for (int i = 0; i < size && field.message_type() != nullptr; ++i) {
      names.push_back(ElementName(reflection->GetRepeatedMessage(parent, &field, i)));
    }
    if (!step.element && size == 1 && field.message_type() != nullptr) return 0;  // there is no other to be meant
    const std::string name = step.element ? Text(*step.element) : "";
    if (name.empty()) {
      const std::string example = !names.empty() && !names[0].empty() ? names[0] : "0";
      Error(step.element.value_or(step.name),
            field.name() + " is a list: choose an element, as in " + field.name() + "[" + example + "]");
      return std::nullopt;
    }
    int index = 0;
    if (ReadWhole(name, &index)) {
      if (index >= 0 && index < size) return index;
      const std::string range = size == 0 ? "is empty" : "has the elements 0 to " + std::to_string(size - 1);
      Error(*step.element, field.name() + " " + range + "; " + field.name() + "+=... adds one");
      return std::nullopt;
    }
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<int>(found - names.begin());
    std::string message = field.name() + " has no element \"" + name + "\"";
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    const std::string hint = DidYouMean(name, candidates);
    message += hint;
    names.erase(std::remove(names.begin(), names.end(), ""), names.end());
    if (hint.empty() && !names.empty() && names.size() <= 12) {
      message += "; it has ";
      for (size_t i = 0; i < names.size(); ++i) message += (i > 0 ? ", " : "") + names[i];
    } else if (hint.empty() && size > 0) {
      message += "; elements are chosen by name, or by number from 0 to " + std::to_string(size - 1);
    }
    if (hint.empty()) message += "; " + field.name() + "+=... adds one";
    Error(*step.element, message);
    return std::nullopt;
  }

  /// Says that an assignment before this one set the same field.
  void WarnOfAnother(const std::string& path, const Step& step) {
    if (!positions_->Has(path)) return;
    const int before = positions_->Find(path).source;
    if (before < 0 || !diagnostics_->origin(before).starts_with(kOrigin)) return;
    diagnostics_->Warning(diagnostics_->Span(source_, step.name.begin, step.name.end),
                          path + " is set by " + diagnostics_->origin(before) + " as well; the last one counts");
  }

  void Assign(Message* parent, const Step& step, const std::string& parent_path) {
    const FieldDescriptor* field = Find(*parent, step);
    if (field == nullptr) return;
    const Reflection* reflection = parent->GetReflection();
    std::string path = JoinPath(parent_path, field->name());
    if (!append_ && !step.element) WarnOfAnother(path, step);
    if (!field->is_repeated()) {
      if (append_) return Error(step.name, field->name() + " is no list; write " + field->name() + "=...");
      if (step.element) return Error(*step.element, field->name() + " is no list");
      if (field->message_type() == nullptr && !CheckOneof(*parent, *field, step)) return;
      if (field->containing_oneof() != nullptr) reflection->ClearOneof(parent, field->containing_oneof());
      reflection->ClearField(parent, field);
      positions_->Erase(path);
      return Read(parent, *field, parent_path);
    }
    if (append_ && step.element) return Error(*step.element, "+= adds to the list; leave out the number");
    if (append_) return Read(parent, *field, parent_path);
    if (!step.element) {
      reflection->ClearField(parent, field);
      positions_->Erase(path);
      return Read(parent, *field, parent_path);
    }
    // The new element is read behind the others and then changes places with the one that it replaces.
    const std::optional<int> index = Index(*parent, *field, step);
    if (!index) return;
    const int last = reflection->FieldSize(*parent, field);
    const int errors = diagnostics_->errors();
    Read(parent, *field, parent_path);
    if (diagnostics_->errors() > errors) return;
    if (reflection->FieldSize(*parent, field) != last + 1)
      return Error(value_, "one element is replaced by one element");
    reflection->SwapElements(parent, field, *index, last);
    reflection->RemoveLast(parent, field);
    positions_->Move(JoinPath(parent_path, field->name(), last), JoinPath(parent_path, field->name(), *index));
  }

  void Read(Message* parent, const FieldDescriptor& field, const std::string& parent_path) {
    const std::string_view value = View(value_);
    if (field.message_type() != nullptr && value[0] == '@') return ReadFile(parent, field, parent_path);
    const bool is_text = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    if (is_text && value[0] != '"' && value[0] != '\'') {
      const bool is_list = field.is_repeated() && value[0] == '[' && value.back() == ']';
      if (!is_list) return ReadWords(parent, field, parent_path, value_);
      if (value.find_first_of("\"'") == std::string_view::npos) {
        return ReadList(parent, field, parent_path);
      }
    }
    ParseFieldValue(source_, value_.begin, parent_path, parent, &field, diagnostics_, positions_);
  }

  /// Sets a string that stands without quotes.
  void ReadWords(Message* parent, const FieldDescriptor& field, const std::string& parent_path, Piece words) {
    const Reflection* reflection = parent->GetReflection();
    const int index = field.is_repeated() ? reflection->FieldSize(*parent, &field) : -1;
    positions_->Set(JoinPath(parent_path, field.name(), index), diagnostics_->Span(source_, words.begin, words.end));
    if (field.is_repeated()) {
      reflection->AddString(parent, &field, Text(words));
    } else {
      reflection->SetString(parent, &field, Text(words));
    }
  }

  /// Splits "[a, b]" at its commas.
  void ReadList(Message* parent, const FieldDescriptor& field, const std::string& parent_path) {
    Piece inner = {value_.begin + 1, value_.end - 1};
    SkipSpace(&inner.begin);
    if (inner.begin >= inner.end) return;
    for (size_t begin = inner.begin; begin <= inner.end;) {
      const size_t end = std::min(text_.find(',', begin), inner.end);
      Piece words = {begin, end};
      while (words.begin < words.end && text_[words.begin] == ' ') ++words.begin;
      while (words.end > words.begin && text_[words.end - 1] == ' ') --words.end;
      if (words.begin == words.end) return Error({begin, begin + 1}, "an element of the list is empty");
      ReadWords(parent, field, parent_path, words);
      begin = end + 1;
    }
  }

  void ReadFile(Message* parent, const FieldDescriptor& field, const std::string& parent_path) {
    const std::string file(View(value_).substr(1));
    Result<std::string> text = ReadTextFile(file);
    if (!text.ok()) return Error(value_, text.status().message());
    const Reflection* reflection = parent->GetReflection();
    const int index = field.is_repeated() ? reflection->FieldSize(*parent, &field) : -1;
    const std::string path = JoinPath(parent_path, field.name(), index);
    positions_->Set(path, diagnostics_->Span(source_, value_.begin, value_.end));
    Message* child =
        field.is_repeated() ? reflection->AddMessage(parent, &field) : reflection->MutableMessage(parent, &field);
    ParseText(diagnostics_->AddSource(file, std::move(*text)), path, child, diagnostics_, positions_);
  }

  const int source_;
  const std::string_view text_;
  Message* const root_;
  Diagnostics* const diagnostics_;
  FieldPositions* const positions_;
  bool append_ = false;
  Piece value_;
};

}  // namespace

void ApplyOverride(std::string_view assignment, int number, Message* message, Diagnostics* diagnostics,
                   FieldPositions* positions) {
  const int source = diagnostics->AddSource(std::string(kOrigin) + std::to_string(number), std::string(assignment));
  const std::unique_ptr<Message> changed(message->New());
  changed->CopyFrom(*message);
  FieldPositions changed_positions = *positions;
  const int errors = diagnostics->errors();
  Override(source, changed.get(), diagnostics, &changed_positions).Apply();
  if (diagnostics->errors() > errors) return;
  message->GetReflection()->Swap(message, changed.get());
  *positions = std::move(changed_positions);
}

}  // namespace millrace
