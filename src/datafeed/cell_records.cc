#include "datafeed/cell_records.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>

#include "core/subprocess.h"
#include "data_feed.pb.h"
#include "datafeed/number_forms.h"
#include "features/feature_spec.h"

namespace millrace {
namespace {

constexpr std::string_view kMagic = "MRCELLS1";

template <class T>
void AppendNumber(T number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

template <class T>
void SetNumber(T number, size_t at, std::string* bytes) {
  std::memcpy(bytes->data() + at, &number, sizeof(number));
}

/// False if fewer bytes remain.
template <class T>
bool Take(std::string_view* bytes, T* number) {
  if (bytes->size() < sizeof(*number)) return false;
  std::memcpy(number, bytes->data(), sizeof(*number));
  bytes->remove_prefix(sizeof(*number));
  return true;
}

bool TakeText(std::string_view* bytes, size_t size, std::string_view* text) {
  if (bytes->size() < size) return false;
  *text = bytes->substr(0, size);
  bytes->remove_prefix(size);
  return true;
}

struct FrameHeader {
  char magic[8];
  uint32_t bytes;
  uint32_t records;
};
static_assert(sizeof(FrameHeader) == 16);

FrameHeader HeaderOf(std::string_view bytes) {
  FrameHeader header{};
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

Result<uint64_t> BodySize(std::string_view bytes) {
  const FrameHeader header = HeaderOf(bytes);
  if (std::string_view(header.magic, sizeof(header.magic)) == kMagic) return header.bytes;
  return BadData(
      "these are no rows as millrace.columnar_records writes them: is another version of Millrace installed there?");
}

Result<uint32_t> CountRecords(std::string_view header, std::string_view body) {
  uint32_t records = 0;
  for (; !body.empty(); ++records) {
    uint32_t size = 0;
    std::string_view record;
    if (!Take(&body, &size) || !TakeText(&body, size, &record)) return BadData("a row ends behind its frame");
  }
  if (records == HeaderOf(header).records) return records;
  return BadData("a frame holds " + std::to_string(records) + " rows, not " + std::to_string(HeaderOf(header).records));
}

/// Appends a cell, of a row of `part`.
void AppendCell(const FrameColumn& column, int64_t row, TextRule rule, std::string* scratch, std::string* bytes) {
  if (!column.is_list()) {
    const std::string_view text = column.Text(row, rule, scratch);
    AppendNumber(static_cast<int32_t>(text.size()), bytes);
    bytes->append(text);
    return;
  }
  const size_t count_at = bytes->size();
  AppendNumber(int32_t{0}, bytes);
  int32_t count = 0;
  int64_t begin = 0;
  int64_t end = 0;
  column.List(row, &begin, &end);
  for (int64_t item = begin; item < end; ++item) {
    const std::string_view text = column.items().Text(item, rule, scratch);
    if (text.empty()) continue;
    AppendNumber(static_cast<uint32_t>(text.size()), bytes);
    bytes->append(text);
    ++count;
  }
  SetNumber(count == 0 ? 0 : -1 - count, count_at, bytes);
}

/// One thread.
class CellRows final : public ColumnFeed {
 public:
  CellRows(const SlotSchema& schema, const ColumnSetup& setup, const DataFeedDesc& desc)
      : ColumnFeed(schema, setup, desc), views_(texts().size()), lists_(texts().size()) {}

 private:
  LineResult Read(std::string_view line) override {
    std::string_view rest = line;
    for (size_t i = 0; i < texts().size(); ++i) {
      if (!ReadCell(&rest, i)) {
        Fail(LineErrorKind::kBadValue, "", "the row ends within its column " + std::to_string(i));
        return LineResult::kBad;
      }
    }
    return PutRow(line, lists_);
  }

  bool ReadCell(std::string_view* rest, size_t i) {
    int32_t size = 0;
    texts()[i] = {};
    lists_[i] = {};
    if (!Take(rest, &size)) return false;
    if (size >= 0) {
      if (!TakeText(rest, static_cast<size_t>(size), &texts()[i])) return false;
      texts()[i] = Taken(texts()[i]);
      return true;
    }
    std::vector<std::string_view>& views = views_[i];
    views.clear();
    for (int64_t item = -1 - int64_t{size}; item > 0; --item) {
      uint32_t bytes = 0;
      std::string_view text;
      if (!Take(rest, &bytes) || !TakeText(rest, bytes, &text)) return false;
      if (text = Taken(text); !text.empty()) views.push_back(text);
    }
    lists_[i] = views;
    return true;
  }

  std::vector<std::vector<std::string_view>> views_;
  std::vector<FeatureRow::List> lists_;
};

constexpr const char* kStart =
    "import os, sys\n"
    "sys.path[:] = [path for path in sys.path if path]\n"  // remove the working directory
    "try:\n"
    "  from millrace import _millrace\n"
    "  from millrace.columnar_records import main\n"
    "except ImportError as error:\n"
    "  print('files of %s are read by the Python package millrace, which %s lacks (%s): install it there, with "
    "pyarrow, or '\n"
    "        'let MILLRACE_PYTHON name a Python that has both' % (sys.argv[1], sys.executable, error), "
    "file=sys.stderr)\n"
    "  sys.exit(78)\n"  // kExitInvalidConfig
    "code = main(sys.argv[1], sys.argv[2], sys.argv[3:])\n"
    "sys.stdout.flush()\n"
    "sys.stderr.flush()\n"
    "os._exit(code)\n";  // threads of pyarrow abort now and then where the interpreter ends by itself

std::string& PythonOfProcess() {
  static auto* const program = new std::string;
  return *program;
}

/// Without Python's warnings, which are not failures.
std::vector<std::string> Start(std::string_view format, const char* what) {
  static_assert(kExitInvalidConfig == 78, "kStart says so, and columnar_records.py has all codes");
  return {PythonProgram(), "-W", "ignore", "-c", kStart, std::string(format), what};
}

}  // namespace

std::string PythonProgram() {
  if (!PythonOfProcess().empty()) return PythonOfProcess();
  if (const char* const given = std::getenv("MILLRACE_PYTHON"); given != nullptr && *given != '\0') return given;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path beside = program.parent_path() / "python3";
  return !error && ::access(beside.c_str(), X_OK) == 0 ? beside.string() : "python3";
}

const Framing kCellFraming = {"rows of columns", sizeof(FrameHeader), "the header of rows", "rows",
                              BodySize,          CountRecords};

Status AppendCellRecords(const DataFrame& frame, std::span<const std::string> columns, TextRule rule,
                         std::string* bytes) {
  constexpr size_t kFrameBytes = size_t{256} << 10;
  MR_ASSIGN(const std::vector<size_t> places, frame.FindColumns(columns));
  std::string scratch;
  size_t frame_at = 0;
  uint32_t records = 0;
  const auto end_frame = [&] {
    if (records == 0) return;
    SetNumber(static_cast<uint32_t>(bytes->size() - frame_at - sizeof(FrameHeader)), frame_at + kMagic.size(), bytes);
    SetNumber(records, frame_at + kMagic.size() + sizeof(uint32_t), bytes);
    records = 0;
  };
  for (const std::shared_ptr<const FramePart>& part : frame.parts()) {
    for (int64_t row = 0; row < part->array->length; ++row) {
      if (records == 0) {
        frame_at = bytes->size();
        bytes->append(kMagic).append(2 * sizeof(uint32_t), '\0');
      }
      const size_t record_at = bytes->size();
      AppendNumber(uint32_t{0}, bytes);
      for (const size_t place : places) {
        AppendCell(part->columns[place], part->array->offset + row, rule, &scratch, bytes);
      }
      const size_t size = bytes->size() - record_at - sizeof(uint32_t);
      if (size > std::numeric_limits<int32_t>::max()) {
        return BadData(frame.name() + ": row " + std::to_string(row) + " has " + std::to_string(size) +
                       " bytes, more than 2^31");
      }
      SetNumber(static_cast<uint32_t>(size), record_at, bytes);
      ++records;
      if (bytes->size() - frame_at >= kFrameBytes) end_frame();
    }
  }
  end_frame();
  return Status::Ok();
}

Result<std::unique_ptr<DataFeed>> CellFeed::Create(const SlotSchema& schema, const DataFeedDesc& desc,
                                                   const ColumnSetup& setup) {
  return std::unique_ptr<DataFeed>(std::make_unique<CellRows>(schema, setup, desc));
}

std::vector<std::string> CellCommand(std::string_view format, const DataFeedDesc& desc,
                                     std::span<const std::string> columns) {
  const FeatureStates& trained = desc.feature_states();
  const std::vector<std::string> words = WordColumns(desc);
  std::vector<std::string> argv = Start(format, "cells");
  argv.push_back(std::to_string(static_cast<int>(TextRuleOf(desc))));
  argv.push_back(trained.file());
  for (const std::string& column : columns) {
    argv.push_back(column);
    const auto known = std::find(trained.column().begin(), trained.column().end(), column) - trained.column().begin();
    const bool is_word = std::binary_search(words.begin(), words.end(), column);
    argv.push_back(is_word && known < trained.type_size() ? trained.type(static_cast<int>(known)) : "");
  }
  return argv;
}

std::vector<std::string> CellNamesCommand(std::string_view format) { return Start(format, "names"); }

void SetPythonOfCells(std::string program) { PythonOfProcess() = std::move(program); }

}  // namespace millrace
