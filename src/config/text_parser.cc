#include "config/text_parser.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "config/field_names.h"
#include "config/scalar_value.h"
#include "config/text_lexer.h"

namespace millrace {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

/// A message whose brace is open.
struct OpenMessage {
  const Descriptor* type;
  Token brace;
  int indent;  ///< column of the first word on the brace's line
};

/// Reads one text; see ParseText. After a mistake it repairs what it can and goes on behind the value.
class Parser {
  using Kind = Token::Kind;

 public:
  Parser(int source, size_t begin, Diagnostics* diagnostics, FieldPositions* positions)
      : source_(source),
        text_(diagnostics->text(source)),
        tokens_(LexText(source, begin, diagnostics)),
        diagnostics_(diagnostics),
        positions_(positions) {
    int depth = 0;
    for (const Token& token : tokens_) depth += IsOpener(token) ? 1 : IsCloser(token) ? -1 : 0;
    closers_miss_ = depth > 0;
  }

  bool ParseRoot(Message* message, const std::string& path) {
    root_ = message;
    open_.push_back({message->GetDescriptor(), {}, 0});
    while (Peek().kind != Kind::kEnd) {
      ParseFields(message, path);
      if (Peek().kind == Kind::kEnd) break;
      Broken(Peek(), "\"" + Text(Peek()) + "\" closes nothing");
      ++at_;
    }
    ReportUnknown();
    return intact_;
  }

  void ParseValueOnly(Message* parent, const FieldDescriptor& field, const std::string& path) {
    root_ = parent;
    open_.push_back({parent->GetDescriptor(), {}, 0});
    ParseValue(parent, field, path, Peek());
    if (Peek().kind != Kind::kEnd) Error(Peek(), "\"" + Text(Peek()) + "\" stands after the value");
    ReportUnknown();
  }

 private:
  const Token& Peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  std::string Text(const Token& token) const { return std::string(View(token)); }
  std::string_view View(const Token& token) const { return text_.substr(token.begin, token.end - token.begin); }
  bool Is(const Token& token, char symbol) const { return token.kind == Kind::kSymbol && text_[token.begin] == symbol; }
  bool Take(char symbol) {
    if (!Is(Peek(), symbol)) return false;
    ++at_;
    return true;
  }
  bool IsOpener(const Token& token) const { return Is(token, '{') || Is(token, '<'); }
  bool IsCloser(const Token& token) const { return Is(token, '}') || Is(token, '>'); }
  /// "name:" or "name {": what a field starts with, and no value ever does.
  bool StartsField(size_t ahead) const {
    return Peek(ahead).kind == Kind::kIdentifier && (Is(Peek(ahead + 1), ':') || IsOpener(Peek(ahead + 1)));
  }
  std::string InQuotes(const Token& token) const {
    if (token.kind == Kind::kEnd) return "the end of the text";
    return token.kind == Kind::kString ? Text(token) : "\"" + Text(token) + "\"";
  }

  SourceSpan Span(size_t begin, size_t end) const { return diagnostics_->Span(source_, begin, end); }
  SourceSpan Span(const Token& token) const { return Span(token.begin, token.end); }
  void Error(const Token& token, std::string message) { diagnostics_->Error(Span(token), std::move(message)); }
  /// As Error, for braces that do not match.
  void Broken(const Token& token, std::string message) {
    intact_ = false;
    Error(token, std::move(message));
  }

  int Indent(const Token& token) const {
    size_t first = at_;
    while (first > 0 && tokens_[first].begin > token.begin) --first;
    while (first > 0 && !tokens_[first].first_on_line) --first;
    return Span(tokens_[first]).column;
  }

  /// Reads fields up to the closer (not taken), the end, or a field that shows that the closer was forgotten.
  void ParseFields(Message* message, const std::string& path) {
    while (Peek().kind != Kind::kEnd && !IsCloser(Peek())) {
      if (Take(',') || Take(';')) {
        // Separators may follow a field; ones that follow nothing are harmless but no text format.
        if (at_ < 2 || separator_ == at_ - 1 || IsOpener(tokens_[at_ - 2])) {
          Error(tokens_[at_ - 1], "\"" + Text(tokens_[at_ - 1]) + "\" follows no value");
        }
        separator_ = at_;
        continue;
      }
      const Token name = Peek();
      if (name.kind != Kind::kIdentifier) {
        if (name.kind != Kind::kBad) {
          std::string message_text = "expected the name of a field, not " + InQuotes(name);
          if (Is(name, '[')) message_text += "; extensions and Any are not used here";
          Error(name, std::move(message_text));
        }
        ++at_;
        SkipToField();
        continue;
      }
      const FieldDescriptor* field = FindField(*message->GetDescriptor(), View(name));
      if (field == nullptr && ClosesForgottenBrace(name)) return;
      ++at_;
      if (field == nullptr) {
        unknown_.emplace_back(message, name);
        field = ExplainUnknownField(*message, View(name), *root_).meant;
        // What was surely meant is read as if it stood there, so that a slip hides no mistake and causes none.
        if (field == nullptr || !MayBeSet(*message, *field)) {
          SkipValue();
          continue;
        }
      }
      ParseField(message, *field, path, name);
    }
  }

  /// Where a name belongs is known once all is read: the rule of an optimizer may stand behind its rate.
  void ReportUnknown() {
    for (const auto& [message, name] : unknown_) Error(name, ExplainUnknownField(*message, View(name), *root_).message);
  }

  /// A field that this message does not have but one around it has, and that is indented no deeper than this message's
  /// start: the brace was not closed.
  bool ClosesForgottenBrace(const Token& name) {
    if (open_.size() < 2 || !name.first_on_line || Span(name).column > open_.back().indent) return false;
    const auto has = [&](const OpenMessage& open) { return FindField(*open.type, View(name)) != nullptr; };
    if (std::none_of(open_.begin(), open_.end() - 1, has)) return false;
    Error(open_.back().brace, "\"" + Text(open_.back().brace) + "\" is not closed before \"" + Text(name) +
                                  "\" on line " + std::to_string(Span(name).line));
    return forgotten_ = true;
  }

  static bool MayBeSet(const Message& message, const FieldDescriptor& field) {
    if (field.is_repeated()) return true;
    const Reflection* reflection = message.GetReflection();
    if (field.containing_oneof() != nullptr) return !reflection->HasOneof(message, field.containing_oneof());
    return !reflection->HasField(message, &field);
  }

  /// A closer that stands under the start of a message further out, in a text where closers miss: the innermost message
  /// was not closed. In texts whose braces match, indentation says nothing.
  void ClosesOuterBrace() {
    const int column = Span(Peek()).column;
    if (!closers_miss_ || !IsCloser(Peek()) || !Peek().first_on_line || column >= open_.back().indent) return;
    const auto starts_here = [&](const OpenMessage& open) { return open.indent == column; };
    if (std::none_of(open_.begin() + 1, open_.end() - 1, starts_here)) return;
    Error(open_.back().brace, "\"" + Text(open_.back().brace) + "\" is not closed before the \"" + Text(Peek()) +
                                  "\" on line " + std::to_string(Span(Peek()).line));
    forgotten_ = true;
  }

  void ParseField(Message* message, const FieldDescriptor& field, const std::string& path, const Token& name) {
    const bool is_message = field.message_type() != nullptr;
    if (Is(Peek(), '=')) {
      Error(Peek(), "expected \":\" after " + field.name() + ", not \"=\"");
      ++at_;
    } else if (!Take(':') && !is_message && !IsOpener(Peek())) {
      Error(Peek().kind == Kind::kEnd || Peek().first_on_line ? name : Peek(),
            "expected \":\" and a value after " + field.name());
      if (StartsField(0) || IsCloser(Peek()) || Peek().kind == Kind::kEnd) return;
    }
    if (!CheckNotSet(*message, field, path, name)) return SkipValueAfterColon();
    ParseValue(message, field, path, name);
  }

  /// Reports a singular field, or a second member of a oneof, that is set already.
  bool CheckNotSet(const Message& message, const FieldDescriptor& field, const std::string& path, const Token& name) {
    if (field.is_repeated()) return true;
    const Reflection* reflection = message.GetReflection();
    const auto line_of = [&](const FieldDescriptor& set) {
      return " on line " + std::to_string(positions_->Find(JoinPath(path, set.name())).line);
    };
    if (reflection->HasField(message, &field)) {
      Error(name, field.name() + " is set twice; it stands" + line_of(field) + " already");
      return false;
    }
    if (field.containing_oneof() == nullptr) return true;
    const FieldDescriptor* other = reflection->GetOneofFieldDescriptor(message, field.containing_oneof());
    if (other == nullptr) return true;
    Error(name, field.name() + " and " + other->name() + line_of(*other) + " exclude each other: one " +
                    message.GetDescriptor()->name() + " has one of them");
    return false;
  }

  void ParseValue(Message* message, const FieldDescriptor& field, const std::string& path, const Token& name) {
    if (!Is(Peek(), '[')) return ParseElement(message, field, path, name);
    const Token bracket = Peek();
    if (!field.is_repeated()) {
      Error(bracket, field.name() + " takes one value, not a list");
      return SkipValueAfterColon();
    }
    ++at_;
    if (Take(']')) return;
    while (true) {
      if (Is(Peek(), ']')) {
        Error(Peek(), "expected one more value after \",\"");
        ++at_;
        return;
      }
      const size_t before = at_;
      ParseElement(message, field, path, name);
      if (Take(']')) return;
      if (Take(',')) continue;
      if (Peek().kind == Kind::kEnd || StartsField(0) || IsCloser(Peek())) {
        Error(bracket, "\"[\" is never closed");
        return;
      }
      if (Peek().kind != Kind::kBad) {
        Error(Peek(), "expected \",\" or \"]\" in the list of " + field.name() + ", not " + InQuotes(Peek()));
      }
      if (at_ == before || IsValueStart()) {
        if (at_ == before) ++at_;
        continue;
      }
      SkipToListEnd();
      return;
    }
  }

  bool IsValueStart() const {
    const Kind kind = Peek().kind;
    return kind != Kind::kSymbol || Is(Peek(), '-') || IsOpener(Peek());
  }

  void SkipToListEnd() {
    while (Peek().kind != Kind::kEnd && !StartsField(0) && !IsCloser(Peek())) {
      if (Take(']')) return;
      ++at_;
    }
  }

  void ParseElement(Message* message, const FieldDescriptor& field, const std::string& path, const Token& name) {
    const Reflection* reflection = message->GetReflection();
    const int index = field.is_repeated() ? reflection->FieldSize(*message, &field) : -1;
    const std::string field_path = JoinPath(path, field.name(), index);
    if (field.message_type() == nullptr) return ParseScalar(message, field, field_path, name);
    if (!IsOpener(Peek())) {
      if (Peek().kind == Kind::kBad) {
        ++at_;
      } else if (Peek().kind == Kind::kEnd || Peek().first_on_line || IsCloser(Peek())) {
        Error(name, field.name() + " takes " + TypeInWords(field));
      } else {
        Error(Peek(), field.name() + " takes " + TypeInWords(field) + ", not " + InQuotes(Peek()));
        SkipValueAfterColon();
      }
      return;
    }
    positions_->Set(field_path, Span(name));
    Message* child =
        field.is_repeated() ? reflection->AddMessage(message, &field) : reflection->MutableMessage(message, &field);
    const Token brace = Peek();
    open_.push_back({field.message_type(), brace, Indent(brace)});
    ++at_;
    ParseFields(child, field_path);
    if (!forgotten_) ClosesOuterBrace();
    open_.pop_back();
    if (std::exchange(forgotten_, false)) return;
    const char closer = Is(brace, '{') ? '}' : '>';
    if (Is(Peek(), closer)) {
      positions_->Set(JoinPath(field_path, "}"), Span(Peek()));
      ++at_;
      return;
    }
    if (Peek().kind == Kind::kEnd) return Broken(brace, "\"" + Text(brace) + "\" is never closed");
    Broken(Peek(), std::string("expected \"") + closer + "\" for the \"" + Text(brace) + "\" on line " +
                       std::to_string(Span(brace).line) + ", not \"" + Text(Peek()) + "\"");
    ++at_;
  }

  void ParseScalar(Message* message, const FieldDescriptor& field, const std::string& path, const Token& name) {
    const Token first = Peek();
    ScalarText value;
    value.negative = Take('-');
    const Token token = Peek();
    if (StartsField(0) || token.kind == Kind::kEnd || IsCloser(token) || Is(token, ',') || Is(token, ';') ||
        Is(token, ']')) {
      const bool here = !token.first_on_line && token.kind != Kind::kEnd;
      return Error(here ? token : name, field.name() + " has no value; it takes " + TypeInWords(field));
    }
    ++at_;
    switch (token.kind) {
      case Kind::kBad: return;  // reported by the lexer
      case Kind::kIdentifier: value.kind = ScalarText::Kind::kIdentifier; break;
      case Kind::kInteger: value.kind = ScalarText::Kind::kInteger; break;
      case Kind::kFloat: value.kind = ScalarText::Kind::kFloat; break;
      case Kind::kString: value.kind = ScalarText::Kind::kString; break;
      case Kind::kSymbol:
      case Kind::kEnd:
        --at_;
        Error(token, field.name() + " takes " + TypeInWords(field) + ", not " + InQuotes(token));
        return SkipValueAfterColon();
    }
    size_t end = token.end;
    if (token.kind == Kind::kString) {
      google::protobuf::io::Tokenizer::ParseStringAppend(Text(token), &value.string_value);
      // Strings that stand side by side are one.
      for (; Peek().kind == Kind::kString; ++at_) {
        google::protobuf::io::Tokenizer::ParseStringAppend(Text(Peek()), &value.string_value);
        end = Peek().end;
      }
      if (value.negative) return Error(first, "\"-\" stands before a string");
    }
    value.text = text_.substr(token.begin, end - token.begin);
    positions_->Set(path, Span(first.begin, end));
    const std::string error = SetScalar(value, field, message);
    if (!error.empty()) diagnostics_->Error(Span(first.begin, end), error);
  }

  /// Leaves out what follows the name of a field that is not known.
  void SkipValue() {
    if (!Take(':')) Take('=');
    SkipValueAfterColon();
  }

  void SkipValueAfterColon() {
    if (StartsField(0) || Peek().kind == Kind::kEnd || IsCloser(Peek())) return;
    if (IsOpener(Peek()) || Is(Peek(), '[')) return SkipBlock();
    Take('-');
    const bool is_string = Peek().kind == Kind::kString;
    ++at_;
    while (is_string && Peek().kind == Kind::kString) ++at_;
    SkipToField();
  }

  /// Leaves out everything from an opener to its closer.
  void SkipBlock() {
    const Token opener = Peek();
    int depth = 0;
    do {
      if (Peek().kind == Kind::kEnd) return Broken(opener, "\"" + Text(opener) + "\" is never closed");
      if (IsOpener(Peek()) || Is(Peek(), '[')) ++depth;
      if (IsCloser(Peek()) || Is(Peek(), ']')) --depth;
      ++at_;
    } while (depth > 0);
  }

  void SkipToField() {
    while (Peek().kind != Kind::kEnd && !IsCloser(Peek()) && Peek().kind != Kind::kIdentifier && !Is(Peek(), ',') &&
           !Is(Peek(), ';') && !Is(Peek(), ']')) {
      if (IsOpener(Peek()) || Is(Peek(), '[')) {
        SkipBlock();
      } else {
        ++at_;
      }
    }
  }

  const int source_;
  const std::string_view text_;
  const std::vector<Token> tokens_;
  Diagnostics* const diagnostics_;
  FieldPositions* const positions_;
  const Message* root_ = nullptr;
  std::vector<std::pair<const Message*, Token>> unknown_;  ///< names that are no fields of their messages
  std::vector<OpenMessage> open_;
  size_t at_ = 0;
  size_t separator_ = 0;
  bool intact_ = true;
  bool closers_miss_ = false;  ///< there are fewer closers than openers
  bool forgotten_ = false;     ///< the innermost message ended without its closer
};

}  // namespace

bool ParseText(int source, const std::string& path, Message* message, Diagnostics* diagnostics,
               FieldPositions* positions) {
  message->Clear();
  return Parser(source, 0, diagnostics, positions).ParseRoot(message, path);
}

void ParseFieldValue(int source, size_t begin, const std::string& path, Message* parent, const FieldDescriptor* field,
                     Diagnostics* diagnostics, FieldPositions* positions) {
  Parser(source, begin, diagnostics, positions).ParseValueOnly(parent, *field, path);
}

}  // namespace millrace
