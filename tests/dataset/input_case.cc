#include "dataset/input_case.h"

#include <glog/logging.h>

#include <cstdint>
#include <fstream>
#include <sstream>

namespace millrace::testing {
namespace {

std::string Unescape(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      result += text[i];
      continue;
    }
    switch (const char code = text.at(++i)) {
      case 'n': result += '\n'; break;
      case 't': result += '\t'; break;
      case 'r': result += '\r'; break;
      case '\\':
      case '"': result += code; break;
      case 'x':
        result += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
        i += 2;
        break;
      default: LOG(FATAL) << "unknown escape \\" << code << " in " << text;
    }
  }
  return result;
}

/// Takes the first word off a text; a quoted one may hold spaces.
std::string TakeWord(std::string* text) {
  std::string word;
  if (text->starts_with('"')) {
    const size_t end = text->find("\" ", 1) != std::string::npos ? text->find("\" ", 1) : text->size() - 1;
    word = text->substr(1, end - 1);
    text->erase(0, std::min(end + 2, text->size()));
    return Unescape(word);
  }
  const size_t space = std::min(text->find(' '), text->size());
  word = text->substr(0, space);
  text->erase(0, std::min(space + 1, text->size()));
  return word;
}

template <class T>
void PutBytes(T value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// The bytes of "c1 i7 c2 f0.5 f1 x00".
std::string Binary(std::string text) {
  std::string bytes;
  while (!text.empty()) {
    const std::string word = TakeWord(&text);
    if (word.empty()) continue;
    const std::string value = word.substr(1);
    switch (word[0]) {
      case 'c': PutBytes(static_cast<uint16_t>(std::stoul(value)), &bytes); break;
      case 'i': PutBytes(static_cast<uint64_t>(std::stoull(value)), &bytes); break;
      case 'f': PutBytes(std::stof(value), &bytes); break;
      case 'x': PutBytes(static_cast<uint8_t>(std::stoul(value, nullptr, 16)), &bytes); break;
      default: LOG(FATAL) << "unknown value " << word;
    }
  }
  return bytes;
}

void Apply(const std::string& key, std::string rest, InputCase* test) {
  if (key == "slots") {
    test->slots = rest;
  } else if (key == "binary") {
    const std::string name = TakeWord(&rest);
    test->files.push_back({"file", name, Binary(rest)});
  } else if (key == "class") {
    test->class_name = rest;
  } else if (key == "file" || key == "gz" || key == "zst" || key == "folder") {
    const std::string name = TakeWord(&rest);
    test->files.push_back({key, name, Unescape(rest)});
  } else if (key == "cut" || key == "flip" || key == "pack" || key == "csv" || key == "tfrecord" || key == "ofrecord" ||
             key == "recordio") {
    const std::string name = TakeWord(&rest);
    test->files.push_back({key, name, rest});
  } else if (key == "list") {
    test->has_list = true;
    while (!rest.empty()) test->list.push_back(TakeWord(&rest));
  } else if (key == "pipe") {
    test->has_pipe = true;
    test->pipe = rest;
  } else if (key == "desc") {
    test->desc += rest + "\n";
  } else if (key == "dataset") {
    test->dataset += rest + "\n";
  } else if (key == "threads") {
    test->threads = std::stoi(rest);
  } else if (key == "workers") {
    test->workers = std::stoi(rest);
  } else if (key == "ordered") {
    test->ordered = true;
  } else if (key == "batch") {
    test->batches.push_back(rest);
  } else if (key == "rows") {
    test->rows = std::stoll(rest);
  } else if (key == "error") {
    test->error = Unescape(rest);
  } else if (key == "count") {
    const std::string name = TakeWord(&rest);
    test->counts[name] = std::stoll(rest);
  } else if (key == "files" || key == "lines" || key == "bad_lines" || key == "bytes") {
    test->numbers[key] = std::stoll(rest);
  } else if (key == "absent") {
    test->absent.push_back(rest);
  } else if (key == "content") {
    const std::string name = TakeWord(&rest);
    test->contents.push_back({key, name, Unescape(rest)});
  } else {
    LOG(FATAL) << test->where << ": unknown word " << key;
  }
}

}  // namespace

std::vector<InputCase> ReadInputCases(const std::string& path) {
  std::ifstream file(path);
  CHECK(file) << "cannot read " << path;
  std::vector<InputCase> cases;
  int number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty() || text.front() == '#') continue;
    const std::string key = TakeWord(&text);
    if (key == "case") {
      InputCase test;
      test.name = text;
      test.where = path + ":" + std::to_string(number);
      cases.push_back(std::move(test));
      continue;
    }
    CHECK(!cases.empty()) << path << ":" << number << ": a file begins with a case";
    Apply(key, text, &cases.back());
  }
  return cases;
}

}  // namespace millrace::testing
