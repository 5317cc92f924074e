#include "datafeed/write_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/crc32c.h"
#include "reader/recordio.h"
#include "record_features.pb.h"

namespace millrace {
namespace {

/// A slot of a row: "a=3,4/5".
struct Cell {
  std::string name;
  std::vector<std::string> values;
  bool is_float = false;
  std::vector<uint32_t> lod = {0};
};

std::vector<Cell> CellsOf(const std::string& row) {
  std::vector<Cell> cells;
  std::istringstream words(row);
  for (std::string word; words >> word;) {
    Cell cell;
    const size_t equal = word.find('=');
    cell.name = word.substr(0, equal);
    std::string value;
    for (const char c : word.substr(equal + 1) + "/") {
      cell.is_float = cell.is_float || c == '.' || c == 'n';
      if (c != ',' && c != '/') value += c;
      if (c != ',' && c != '/') continue;
      if (!value.empty()) cell.values.push_back(std::exchange(value, ""));
      if (c == '/') cell.lod.push_back(static_cast<uint32_t>(cell.values.size()));
    }
    cells.push_back(std::move(cell));
  }
  return cells;
}

template <class T>
std::string Bytes(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string WithCrc(const std::string& bytes) {
  const uint32_t crc = Crc32c(0, bytes.data(), bytes.size());
  return bytes + Bytes(((crc >> 15) | (crc << 17)) + 0xa282ead8U);
}

template <class Features>
void SetFeatures(const std::vector<Cell>& cells, Features* features) {
  for (const Cell& cell : cells) {
    auto& feature = (*features)[cell.name];
    for (const std::string& value : cell.values) {
      if (cell.is_float) {
        feature.mutable_float_list()->add_value(std::stof(value));
      } else {
        feature.mutable_int64_list()->add_value(std::stoll(value));
      }
    }
  }
}

std::string TfRecordBytes(const std::vector<Cell>& cells) {
  TfExample example;
  SetFeatures(cells, example.mutable_features()->mutable_feature());
  const std::string message = example.SerializeAsString();
  return WithCrc(Bytes<uint64_t>(message.size())) + WithCrc(message);
}

std::string OfRecordBytes(const std::vector<Cell>& cells) {
  OfRecord record;
  SetFeatures(cells, record.mutable_feature());
  const std::string message = record.SerializeAsString();
  return Bytes<uint64_t>(message.size()) + message;
}

std::string CsvText(const std::vector<Cell>& cells, bool is_header) {
  std::string line;
  for (const Cell& cell : cells) {
    if (&cell != &cells.front()) line += ',';
    if (is_header) line += cell.name;
    for (size_t i = 0; i < cell.values.size() && !is_header; ++i) line += (i > 0 ? " " : "") + cell.values[i];
  }
  return line + "\n";
}

std::string LibsvmLine(const std::vector<Cell>& cells) {
  std::string line = cells.at(0).values.at(0);
  for (size_t i = 0; i < cells.at(1).values.size(); ++i) {
    line += " " + cells[1].values[i] + ":" + cells.at(2).values.at(i);
  }
  return line + "\n";
}

/// What tests/plugin/plugins/words.cc reads.
std::string WordsLine(const std::vector<Cell>& cells) {
  std::string line = CsvText(cells, false);
  std::replace(line.begin(), line.end(), ' ', ';');
  std::replace(line.begin(), line.end(), ',', ' ');
  std::replace(line.begin(), line.end(), ';', ',');
  return line;
}

/// What tests/plugin/plugins/rows.c reads.
std::string RowsBytes(const std::vector<Cell>& cells, bool is_header) {
  std::string bytes = is_header ? Bytes(static_cast<uint8_t>(cells.size())) : "";
  for (const Cell& cell : cells) {
    if (is_header) {
      bytes += Bytes(static_cast<uint8_t>(cell.name.size())) + cell.name;
      continue;
    }
    bytes += Bytes(static_cast<uint8_t>(cell.is_float ? 1 : 0)) + Bytes(static_cast<uint8_t>(cell.values.size()));
    for (const std::string& value : cell.values) {
      bytes += cell.is_float ? Bytes(std::stof(value)) : Bytes<uint64_t>(std::stoull(value));
    }
  }
  for (char& byte : bytes) byte = static_cast<char>(byte ^ kRowsKey);
  return bytes;
}

std::vector<LoDTensor> TensorsOf(const std::vector<Cell>& cells) {
  std::vector<LoDTensor> record(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::vector<std::string>& values = cells[i].values;
    const auto count = static_cast<int64_t>(values.size());
    if (cells[i].is_float) {
      std::transform(values.begin(), values.end(), record[i].values.Resize<float>({1, count}),
                     [](const std::string& value) { return std::stof(value); });
      continue;
    }
    std::transform(values.begin(), values.end(), record[i].values.Resize<int64_t>({count, 1}),
                   [](const std::string& value) { return static_cast<int64_t>(std::stoull(value)); });
    record[i].lod = cells[i].lod;
  }
  return record;
}

}  // namespace

void WriteFormat(const std::string& path, const std::string& format, const std::vector<std::string>& rows) {
  if (format == "recordio") {
    RecordIOWriter writer = RecordIOWriter::Create(path).value();
    for (const std::string& row : rows) EXPECT_TRUE(writer.Append(TensorsOf(CellsOf(row))).ok());
    EXPECT_TRUE(writer.Finish().ok());
    return;
  }
  std::ofstream file(path, std::ios::binary);
  for (const std::string& row : rows) {
    const std::vector<Cell> cells = CellsOf(row);
    if (format == "csv" && &row == &rows.front()) file << CsvText(cells, true);
    if (format == "rows" && &row == &rows.front()) file << "ROWS" << RowsBytes(cells, true);
    file << (format == "csv"        ? CsvText(cells, false)
             : format == "libsvm"   ? LibsvmLine(cells)
             : format == "words"    ? WordsLine(cells)
             : format == "rows"     ? RowsBytes(cells, false)
             : format == "tfrecord" ? TfRecordBytes(cells)
                                    : OfRecordBytes(cells));
  }
}

}  // namespace millrace
