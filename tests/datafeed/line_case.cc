#include "datafeed/line_case.h"

#include <glog/logging.h>

#include <fstream>
#include <sstream>

#include "datafeed/batch_text.h"

namespace millrace::testing {
namespace {

void SetOption(const std::string& option, DataFeedDesc* desc) {
  const size_t equals = option.find('=');
  const std::string key = option.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : option.substr(equals + 1);
  if (key == "parse_ins_id") {
    desc->set_parse_ins_id(true);
  } else if (key == "parse_content") {
    desc->set_parse_content(true);
  } else if (key == "empty_slot") {
    CHECK(value == "ALLOW") << option;
    desc->set_empty_slot(DataFeedDesc::ALLOW);
  } else if (key == "trailing_values") {
    CHECK(value == "IGNORE") << option;
    desc->set_trailing_values(DataFeedDesc::IGNORE);
  } else if (key == "non_finite") {
    CHECK(value == "REJECT") << option;
    desc->set_non_finite(DataFeedDesc::REJECT_NON_FINITE);
  } else if (key == "zeros") {
    DataFeedDesc::Zeros zeros = DataFeedDesc::KEEP;
    CHECK(DataFeedDesc::Zeros_Parse(value, &zeros)) << option;
    desc->set_zeros(zeros);
  } else {
    LOG(FATAL) << "unknown option " << option;
  }
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace

std::string Unescape(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      result += text[i];
      continue;
    }
    const char code = text.at(++i);
    if (code == 'x') {
      result += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      constexpr std::string_view codes = "trvf\\";
      const size_t at = codes.find(code);
      CHECK(at != std::string_view::npos) << "unknown escape in " << text;
      result += "\t\r\v\f\\"[at];
    }
  }
  return result;
}

std::vector<LineCase> ReadLineCases(const std::string& path) {
  std::ifstream file(path);
  CHECK(file) << "cannot read " << path;
  std::vector<LineCase> cases;
  int number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty() || text.front() == '#') continue;
    const size_t space = std::min(text.find(' '), text.size());
    const std::string key = text.substr(0, space);
    const std::string rest = space < text.size() ? text.substr(space + 1) : "";
    if (key == "case") {
      cases.push_back({.name = rest, .desc = {}, .classes = {"Q", "M"}, .steps = {}, .counters = {}});
      continue;
    }
    CHECK(!cases.empty()) << path << ":" << number << ": a file begins with a case";
    LineCase& current = cases.back();
    if (key == "slots") {
      *current.desc.mutable_multi_slot_desc() = DescOf(rest).multi_slot_desc();
    } else if (key == "class") {
      current.classes = Words(rest);
    } else if (key == "options") {
      for (const std::string& option : Words(rest)) SetOption(option, &current.desc);
    } else if (key == "line") {
      current.steps.push_back({.line = Unescape(rest), .expected = "", .line_number = number});
    } else if (key == "row" || key == "blank" || key == "error") {
      CHECK(!current.steps.empty() && current.steps.back().expected.empty()) << path << ":" << number << ": no line";
      current.steps.back().expected = text;
    } else if (key == "count") {
      current.counters[rest.substr(0, rest.find(' '))] = std::stoll(rest.substr(rest.find(' ')));
    } else {
      LOG(FATAL) << path << ":" << number << ": unknown word " << key;
    }
  }
  return cases;
}

}  // namespace millrace::testing
