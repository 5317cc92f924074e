#include "reader/csv_reader.h"

#include <memory>
#include <string>
#include <utility>

#include "reader/csv_fields.h"
#include "reader/field_value.h"
#include "reader/line_file.h"

namespace millrace {
namespace {

class CsvReader final : public FileReader {
 public:
  CsvReader(std::string file, const std::vector<TensorSpec>& specs) : FileReader(file, specs), lines_(std::move(file)) {
    for (const TensorSpec& spec : specs) columns_ += spec.lod_level > 0 ? 1 : InstanceSize(spec);
  }

 private:
  Result<bool> ReadRecord(std::vector<LoDTensor>* out, const std::stop_token& stop) override {
    std::string_view line;
    for (;;) {
      MR_ASSIGN(const bool more, lines_.Next(&line, stop));
      if (!more) return AtEnd();
      line = CsvLine(line, lines_.number() == 1);
      if (line.empty()) continue;
      if (lines_.number() > 1 || !IsCsvHeader(line)) break;
      header_columns_ = CountCsvColumns(line);
      MR_TRY(CheckHeader(line));
    }
    has_rows_ = true;
    CsvFields fields(line);
    for (size_t i = 0; i < out->size(); ++i) MR_TRY(ReadOutput(fields, shapes()[i], &(*out)[i]));
    if (std::string_view rest; fields.Next(&rest)) {
      return BadData(lines_.Where() + ": more than the " + std::to_string(columns_) + " columns that the outputs take");
    }
    return true;
  }

  /// Fails if the columns of a header are the outputs' names in another order.
  Status CheckHeader(std::string_view line) const {
    CsvFields fields(line);
    std::string_view name;
    while (fields.Next(&name)) {
      name = CsvName(name);
      size_t first = 0;
      for (const TensorSpec& spec : shapes()) {
        const size_t end = first + (spec.lod_level > 0 ? 1 : InstanceSize(spec));
        const bool is_there = fields.count() > first && fields.count() <= end;
        if (spec.name == name && !name.empty() && !is_there) {
          return BadData(lines_.Where() + ": column " + std::to_string(fields.count()) + " is named \"" + spec.name +
                         "\", and the output of this name takes column " + std::to_string(first + 1) +
                         ": columns go to the outputs in their order");
        }
        first = end;
      }
    }
    return Status::Ok();
  }

  /// Returns false; fails if the file contains only a line that is not a matching header: it is truncated or another
  /// format.
  Result<bool> AtEnd() const {
    if (has_rows_ || header_columns_ == 0 || header_columns_ == columns_) return false;
    return BadData(lines_.path() + ":1: no row, and a header of " + std::to_string(header_columns_) +
                   " columns; the outputs take " + std::to_string(columns_));
  }

  Status ReadOutput(CsvFields& fields, const TensorSpec& spec, LoDTensor* tensor) {
    if (spec.lod_level > 0) return ReadList(fields, spec, tensor);
    const size_t size = InstanceSize(spec);
    void* values = ResizeToInstance(spec, size, tensor);
    const bool is_float = spec.dtype == DType::kFloat32;
    for (size_t i = 0; i < size; ++i) {
      if (is_float && fields.NextPlainFloat(static_cast<float*>(values) + i, &guess_)) continue;
      MR_ASSIGN(const std::string_view field, NextField(fields));
      if (!ParseField(field, spec.dtype, values, i)) return NotANumber(fields, field, spec);
      if (spec.is_id) MR_TRY(CheckId(fields, field));
    }
    return Status::Ok();
  }

  Status ReadList(CsvFields& fields, const TensorSpec& spec, LoDTensor* tensor) {
    MR_ASSIGN(const std::string_view field, NextField(fields));
    size_t count = 0;
    for (size_t i = 0; i < field.size(); ++i) count += field[i] != ' ' && (i == 0 || field[i - 1] == ' ') ? 1 : 0;
    void* values = ResizeToInstance(spec, count, tensor);
    std::string_view rest = field;
    for (size_t i = 0; i < count; ++i) {
      rest.remove_prefix(rest.find_first_not_of(' '));
      const std::string_view number = rest.substr(0, rest.find(' '));
      if (!ParseField(number, spec.dtype, values, i)) return NotANumber(fields, number, spec);
      if (spec.is_id) MR_TRY(CheckId(fields, number));
      rest.remove_prefix(number.size());
    }
    return Status::Ok();
  }

  Result<std::string_view> NextField(CsvFields& fields) const {
    std::string_view field;
    if (fields.Next(&field)) return field;
    return BadData(lines_.Where() + ": " + std::to_string(fields.count()) + " columns; the outputs take " +
                   std::to_string(columns_));
  }

  Status CheckId(const CsvFields& fields, std::string_view field) const {
    if (!IsNegative(field)) return Status::Ok();
    return NegativeId(lines_.Where() + ": column " + std::to_string(fields.count()), ShownField(field), kTextIdAdvice);
  }

  Status NotANumber(const CsvFields& fields, std::string_view field, const TensorSpec& spec) const {
    return BadData(
        lines_.Where() + ": column " + std::to_string(fields.count()) + ": expected a number of type " +
        std::string(DTypeName(spec.dtype)) + ", found " + ShownField(field) +
        (lines_.number() > 1 || !IsCsvName(field) ? "" : " (a first line is a header where most columns are names)"));
  }

  Status Rewind() override {
    lines_.Rewind();
    has_rows_ = false;
    return Status::Ok();
  }

  LineFile lines_;
  size_t columns_ = 0;
  size_t header_columns_ = 0;  ///< of a first line that is not a row; 0: none
  bool has_rows_ = false;
  DigitGuess guess_;
};

Result<std::unique_ptr<FileReader>> OpenCsv(const std::string& file, const std::vector<TensorSpec>& specs) {
  MR_TRY(CheckReadable(file));
  MR_TRY(CheckInstanceSpecs(specs).Context("csv file \"" + file + "\""));
  for (size_t i = 0; i < specs.size(); ++i) {
    if (IsFieldType(specs[i].dtype)) continue;
    return InvalidConfig("csv file \"" + file + "\": output " + std::to_string(i) + ": " + specs[i].ToString() +
                         ": text holds float32, float64, int32, int64 and uint8");
  }
  return std::unique_ptr<FileReader>(std::make_unique<CsvReader>(file, specs));
}

}  // namespace

FileFormat CsvFormat() { return {"csv", {".csv"}, "a line of numbers between commas", OpenCsv}; }

}  // namespace millrace
