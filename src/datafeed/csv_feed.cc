#include "datafeed/csv_feed.h"

#include <algorithm>
#include <cmath>

#include "core/edit_distance.h"
#include "reader/csv_fields.h"
#include "reader/field_value.h"

namespace millrace {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

size_t ColumnsOf(const SlotSpec& slot) { return slot.is_dense ? static_cast<size_t>(slot.width) : 1; }

std::string Quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

}  // namespace

std::string_view CsvHeader(std::string_view first_line) {
  first_line = CsvLine(first_line, true);
  return IsCsvHeader(first_line) ? first_line : std::string_view();
}

CsvFeed::CsvFeed(const SlotSchema& schema, const MultiSlotOptions& options)
    : TextFeed(schema, options), columns_(static_cast<size_t>(schema.used_count())) {
  TakeOrder();
}

Status CsvFeed::TakeHeader(std::string_view header) {
  if (header == header_) return Status::Ok();
  header_ = header;
  if (!header.empty()) return TakeNames(header);
  TakeOrder();
  return Status::Ok();
}

void CsvFeed::TakeOrder() {
  width_ = 0;
  for (const SlotSpec& slot : schema().all()) {
    if (slot.is_used) columns_[static_cast<size_t>(slot.id)] = {width_, ColumnsOf(slot)};
    width_ += ColumnsOf(slot);
  }
}

Status CsvFeed::TakeNames(std::string_view header) {
  std::vector<std::string_view> names;
  CsvFields fields(header);
  for (std::string_view field; fields.Next(&field);) names.push_back(CsvName(field));
  width_ = names.size();
  std::vector<const SlotSpec*> owners(width_);
  for (const SlotSpec& slot : schema().used()) {
    const auto found = std::find(names.begin(), names.end(), slot.name);
    if (found == names.end()) {
      return BadData("the header has no column " + Quoted(slot.name) + DidYouMean(slot.name, names) +
                     "; slots take the columns of their names");
    }
    if (std::find(found + 1, names.end(), slot.name) != names.end()) {
      return BadData("the header names two columns " + Quoted(slot.name));
    }
    const Columns columns = {static_cast<size_t>(found - names.begin()), ColumnsOf(slot)};
    if (columns.first + columns.count > width_) {
      return BadData("slot " + Quoted(slot.name) + " takes " + std::to_string(columns.count) +
                     " columns, as its shape says, from column " + std::to_string(columns.first + 1) +
                     " on, and the header has " + std::to_string(width_));
    }
    for (size_t i = columns.first; i < columns.first + columns.count; ++i) {
      if (owners[i] != nullptr) {
        return BadData("column " + std::to_string(i + 1) + ", " + Quoted(names[i]) + ", would go to two slots, " +
                       Quoted(owners[i]->name) + " and " + Quoted(slot.name) +
                       ": a dense slot takes as many columns as its shape says, from the one of its name on");
      }
      owners[i] = &slot;
    }
    columns_[static_cast<size_t>(slot.id)] = columns;
  }
  return Status::Ok();
}

LineResult CsvFeed::Read(std::string_view line) {
  line = CsvLine(line, false);
  set_line(line);
  if (std::all_of(line.begin(), line.end(), IsBlank)) {
    ++counted().blank_lines;
    return LineResult::kBlank;
  }
  fields_.clear();
  CsvFields fields(line);
  for (std::string_view field; fields_.size() <= width_ && fields.Next(&field);) fields_.push_back(field);
  if (fields_.size() < width_) {
    Fail(LineErrorKind::kMissingValues, "",
         "expected " + std::to_string(width_) + " columns, found " + std::to_string(fields_.size()), line.size() + 1);
    return LineResult::kBad;
  }
  if (fields_.size() > width_ && !options().ignore_trailing) {
    Fail(LineErrorKind::kTrailing, "",
         "expected the end of the line after column " + std::to_string(width_) + ", found " +
             ShownField(fields_[width_]),
         ColumnOf(fields_[width_]));
    return LineResult::kBad;
  }
  if (fields_.size() > width_) ++counted().trailing_lines;
  for (const SlotSpec& slot : schema().used()) {
    if (ReadSlot(slot, columns_[static_cast<size_t>(slot.id)])) continue;
    LookForHeader();
    return LineResult::kBad;
  }
  return LineResult::kRow;
}

void CsvFeed::LookForHeader() {
  if (!fields_.empty()) fields_[0] = CsvLine(fields_[0], true);
  bool is_alike = true;
  for (const SlotSpec& slot : schema().used()) {
    const auto found = std::find_if(fields_.begin(), fields_.end(),
                                    [&](std::string_view field) { return CsvName(field) == slot.name; });
    if (found == fields_.end()) return;
    const auto place = static_cast<size_t>(found - fields_.begin());
    is_alike = is_alike && place == columns_[static_cast<size_t>(slot.id)].first;
  }
  if (is_alike) return;
  FailForGood(LineErrorKind::kBadValue, "",
              "expected values, found a header of columns in another order than those before, as of files that were "
              "put together: the lines behind it would be misread; keep such files apart, each with its header");
}

bool CsvFeed::ReadSlot(const SlotSpec& slot, const Columns& columns) {
  floats().clear();
  ids().clear();
  const auto values = [&] { return floats().size() + ids().size(); };
  for (size_t i = 0; i < columns.count; ++i) {
    const size_t before = values();
    if (!ReadField(slot, columns.first + i)) return false;
    if (slot.is_dense && values() != before + 1) {
      return BadToken(values() == before ? LineErrorKind::kMissingValues : LineErrorKind::kWrongWidth, slot,
                      "one number in column " + std::to_string(columns.first + i + 1), fields_[columns.first + i]);
    }
  }
  const bool is_put = slot.type == SlotType::kFloat ? Put(slot, floats()) : Put(slot, ids());
  return is_put || At(ColumnOf(fields_[columns.first]));
}

bool CsvFeed::ReadField(const SlotSpec& slot, size_t column) {
  std::string_view rest = fields_[column];
  for (;;) {
    while (!rest.empty() && IsBlank(rest.front())) rest.remove_prefix(1);
    if (rest.empty()) return true;
    size_t size = 0;
    while (size < rest.size() && !IsBlank(rest[size])) ++size;
    const std::string_view token = rest.substr(0, size);
    if (!(slot.type == SlotType::kFloat ? ReadFloat(slot, token) : ReadId(slot, token))) return false;
    rest.remove_prefix(size);
  }
}

}  // namespace millrace
