#include "plugin/c_row_values.h"

#include <limits>
#include <new>

namespace millrace {
namespace {

/// Rows use 32-bit counts.
constexpr size_t kMostValues = std::numeric_limits<int32_t>::max();

std::string Values(size_t count) { return count == 1 ? "1 value" : std::to_string(count) + " values"; }

}  // namespace

CRowValues::CRowValues(std::span<const millrace_column> columns)
    : descriptions_(columns),
      columns_(columns.size()),
      sink_{sizeof(millrace_sink), this, &CRowValues::TakeIds, &CRowValues::TakeFloats} {}

void CRowValues::Clear() {
  for (Column& column : columns_) {
    column.ids.clear();
    column.floats.clear();
  }
  misfit_.clear();
}

std::string CRowValues::NoMemory() const {
  return no_memory_for_ == 0 ? "" : "no memory for " + Values(no_memory_for_) + " of a row";
}

bool CRowValues::Check() {
  for (size_t i = 0; i < columns_.size() && misfit_.empty(); ++i) {
    const size_t count = descriptions_[i].kind == MILLRACE_IDS ? columns_[i].ids.size() : columns_[i].floats.size();
    const int32_t width = descriptions_[i].width;
    if (width < 0 || count == static_cast<size_t>(width)) continue;
    Misfit(i, "expected " + Values(static_cast<size_t>(width)) + ", found " + std::to_string(count));
  }
  return misfit_.empty();
}

bool CRowValues::Takes(size_t column, millrace_kind kind) {
  if (!misfit_.empty() || no_memory_for_ > 0) return false;
  if (column >= columns_.size()) {
    Misfit(column, "there are " + std::to_string(columns_.size()) + " columns, and values came for number " +
                       std::to_string(column) + " (from 0)");
    return false;
  }
  if (descriptions_[column].kind == kind) return true;
  Misfit(column, kind == MILLRACE_IDS ? "expected floats, found ids" : "expected ids, found floats");
  return false;
}

void CRowValues::Misfit(size_t column, std::string text) {
  column_ = column;
  misfit_ = std::move(text);
}

template <class T>
void CRowValues::Append(size_t column, const T* values, size_t count, std::vector<T>* to) {
  if (count == 0) return;
  if (values == nullptr) return Misfit(column, Values(count) + " at no address (null)");
  if (count > kMostValues - to->size()) {
    return Misfit(column, Values(count) + ", more than a row may have (" + std::to_string(kMostValues) + ")");
  }
  // Exceptions must not pass through the plugin, which may be C.
  try {
    to->insert(to->end(), values, values + count);
  } catch (const std::bad_alloc&) {
    no_memory_for_ = to->size() + count;
    column_ = column;
    *to = {};  // frees memory for others
  }
}

void CRowValues::TakeIds(void* host, size_t column, const uint64_t* values, size_t count) {
  auto& row = *static_cast<CRowValues*>(host);
  if (row.Takes(column, MILLRACE_IDS)) row.Append(column, values, count, &row.columns_[column].ids);
}

void CRowValues::TakeFloats(void* host, size_t column, const float* values, size_t count) {
  auto& row = *static_cast<CRowValues*>(host);
  if (row.Takes(column, MILLRACE_FLOATS)) row.Append(column, values, count, &row.columns_[column].floats);
}

}  // namespace millrace
