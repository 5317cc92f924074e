#include "config/text_lexer.h"

#include <algorithm>
#include <string>

#include "core/utf8.h"

namespace millrace {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsOctal(char c) { return c >= '0' && c <= '7'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

bool All(std::string_view text, bool (*predicate)(char)) {
  for (const char c : text) {
    if (!predicate(c)) return false;
  }
  return true;
}

/// Tells whether `text` is digits with an optional point, exponent and 'f'.
bool IsDecimalFloat(std::string_view text) {
  size_t i = 0;
  size_t digits = 0;
  while (i < text.size() && IsDigit(text[i])) ++i, ++digits;
  if (i < text.size() && text[i] == '.') {
    ++i;
    while (i < text.size() && IsDigit(text[i])) ++i, ++digits;
  }
  if (digits == 0) return false;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    const size_t exponent = i;
    while (i < text.size() && IsDigit(text[i])) ++i;
    if (i == exponent) return false;
  }
  if (i < text.size() && (text[i] == 'f' || text[i] == 'F')) ++i;
  return i == text.size();
}

class Lexer {
 public:
  Lexer(int source, size_t begin, Diagnostics* diagnostics)
      : source_(source), text_(diagnostics->text(source)), at_(begin), diagnostics_(diagnostics) {}

  std::vector<Token> Run() {
    if (at_ == 0 && text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    const bool utf16 = text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF");
    if (utf16) {
      Error(0, 2, "the text is UTF-16; save it as UTF-8");
      at_ = text_.size();
    }
    while (at_ < text_.size()) Next();
    Emit(Token::Kind::kEnd, text_.size(), text_.size());
    return std::move(tokens_);
  }

 private:
  char Peek(size_t offset = 0) const { return at_ + offset < text_.size() ? text_[at_ + offset] : '\0'; }

  void Error(size_t begin, size_t end, std::string message) {
    diagnostics_->Error(diagnostics_->Span(source_, begin, end), std::move(message));
  }

  void Emit(Token::Kind kind, size_t begin, size_t end) {
    tokens_.push_back({kind, begin, end, new_line_});
    new_line_ = false;
  }

  void Next() {
    const char c = Peek();
    if (c == '\n') new_line_ = true;
    if (IsSpace(c)) {
      ++at_;
    } else if (c == '#') {
      SkipComment();
    } else if (c == '/' && (Peek(1) == '/' || Peek(1) == '*')) {
      Error(at_, at_ + 2, "a comment starts with #");
      SkipComment();
    } else if (IsLetter(c)) {
      const size_t begin = at_;
      while (IsLetter(Peek()) || IsDigit(Peek())) ++at_;
      Emit(Token::Kind::kIdentifier, begin, at_);
    } else if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) {
      Number();
    } else if (c == '"' || c == '\'') {
      String();
    } else if (static_cast<unsigned char>(c) >= 0x80 || static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      Strange();
    } else {
      Emit(Token::Kind::kSymbol, at_, at_ + 1);
      ++at_;
    }
  }

  void SkipComment() {
    while (at_ < text_.size() && text_[at_] != '\n') {
      const size_t length = Utf8Length(text_, at_);
      if (length == 0) NotUtf8();
      at_ += length == 0 ? 1 : length;
    }
  }

  /// Reports a byte that is not UTF-8, once a line.
  void NotUtf8() {
    const SourceSpan span = diagnostics_->Span(source_, at_, at_ + 1);
    if (span.line == bad_utf8_line_) return;
    bad_utf8_line_ = span.line;
    constexpr char kDigits[] = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(text_[at_]);
    diagnostics_->Error(span, std::string("the byte 0x") + kDigits[byte >> 4] + kDigits[byte & 15] +
                                  " is not UTF-8; save the text as UTF-8");
  }

  /// Everything up to what can no longer belong to a number, so that "64k" and "1.2.3" are one mistake.
  void Number() {
    const size_t begin = at_;
    const bool hex = Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X');
    while (IsLetter(Peek()) || IsDigit(Peek()) || Peek() == '.' ||
           (!hex && (Peek() == '+' || Peek() == '-') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E'))) {
      ++at_;
    }
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (hex && word.size() > 2 && All(word.substr(2), IsHex)) return Emit(Token::Kind::kInteger, begin, at_);
    const bool leading_zero = word.size() > 1 && word[0] == '0' && IsDigit(word[1]);
    if (All(word, IsDigit) && (!leading_zero || All(word, IsOctal))) return Emit(Token::Kind::kInteger, begin, at_);
    if (!leading_zero && IsDecimalFloat(word)) return Emit(Token::Kind::kFloat, begin, at_);
    std::string message = "\"" + std::string(word) + "\" is not a number";
    if (leading_zero && All(word, IsDigit)) message += ": a leading 0 makes it octal; leave out the zero";
    Error(begin, at_, std::move(message));
    Emit(Token::Kind::kBad, begin, at_);
  }

  void String() {
    const size_t begin = at_;
    const char quote = text_[at_++];
    bool good = true;
    while (true) {
      if (at_ >= text_.size() || text_[at_] == '\n') {
        Error(begin, at_, std::string("the string has no closing ") + (quote == '"' ? "quote (\")" : "quote (')"));
        return Emit(Token::Kind::kBad, begin, at_);
      }
      const char c = text_[at_];
      if (c == quote) break;
      if (c == '\\') {
        good = Escape() && good;
        continue;
      }
      const size_t length = Utf8Length(text_, at_);
      if (length == 0) {
        NotUtf8();
        good = false;
      } else if (c == '\0') {
        Error(at_, at_ + 1, "the string holds a NUL byte; write \\000");
        good = false;
      }
      at_ += length == 0 ? 1 : length;
    }
    ++at_;
    Emit(good ? Token::Kind::kString : Token::Kind::kBad, begin, at_);
  }

  bool Escape() {
    const size_t begin = at_++;
    const char c = Peek();
    if (c != '\0' && std::string_view("abfnrtv\\?'\"").find(c) != std::string_view::npos) return ++at_, true;
    if (IsOctal(c)) return ++at_, true;
    const size_t digits = c == 'x' ? 1 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    size_t found = 0;
    while (found < digits && IsHex(Peek(1 + found))) ++found;
    const std::string_view head = text_.substr(std::min(at_ + 1, text_.size()), 3);
    // Two digits are read after \x; beyond three zeros or 001 there is no character.
    if (digits > 0 && found == digits && (c != 'U' || head == "000" || head == "001")) {
      at_ += 1 + digits;
      return true;
    }
    if (at_ < text_.size() && c != '\n' && static_cast<unsigned char>(c) < 0x80) ++at_;
    Error(begin, at_,
          "\"" + std::string(text_.substr(begin, at_ - begin)) + "\" is no escape; write \\\\ for a backslash");
    return false;
  }

  /// Bytes that no word starts with: control characters, curly quotes, other letters. A run is one mistake.
  void Strange() {
    const size_t begin = at_;
    if (static_cast<unsigned char>(Peek()) < 0x80) {
      Error(at_, at_ + 1, "a control character (byte " + std::to_string(static_cast<int>(Peek())) + ") stands here");
      ++at_;
      return;
    }
    bool good = true;
    bool quote = false;
    while (static_cast<unsigned char>(Peek()) >= 0x80) {
      const size_t length = Utf8Length(text_, at_);
      if (length == 0) {
        NotUtf8();
        good = false;
      }
      const std::string_view character = text_.substr(at_, length);
      quote = quote || character == "“" || character == "”" || character == "‘" || character == "’";
      at_ += length == 0 ? 1 : length;
    }
    const std::string word(text_.substr(begin, at_ - begin));
    if (good && quote) {
      Error(begin, at_, "a typographic quote; strings stand in plain quotes: \"...\"");
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (good) {
      Error(begin, at_, "\"" + word + "\" stands outside of a string");
    }
    Emit(Token::Kind::kBad, begin, at_);
  }

  const int source_;
  const std::string_view text_;
  size_t at_;
  Diagnostics* const diagnostics_;
  std::vector<Token> tokens_;
  bool new_line_ = true;
  int bad_utf8_line_ = 0;
};

}  // namespace

std::vector<Token> LexText(int source, size_t begin, Diagnostics* diagnostics) {
  return Lexer(source, begin, diagnostics).Run();
}

}  // namespace millrace
