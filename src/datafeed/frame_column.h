#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "datafeed/arrow_c_data.h"
#include "features/value_text.h"

namespace millrace {

/// A column of rows in memory, of any Arrow type with a text form: numbers, booleans, strings, dates, times, decimals,
/// dictionaries, and lists of these. Strings are those of a CSV file: for floats the shortest that reads back
/// unchanged, for times ISO 8601, for booleans 1 and 0. Immutable; any thread. What it refers to must outlive it.
class FrameColumn {
 public:
  /// `zoned_unit`: the unit if strings are times with an offset from UTC, also in lists or a dictionary. It ends with
  /// "Z" for models trained before offsets were supported, which use instants. Empty: other strings.
  FrameColumn(const ArrowSchema& schema, const ArrowArray& array, const std::string& zoned_unit = "");

  /// False for a type without a text form; type_name() names it.
  explicit operator bool() const { return kind_ != Kind::kNone; }
  /// "float64", "a struct".
  const std::string& type_name() const { return type_name_; }
  /// Whether a row has several values.
  bool is_list() const { return kind_ == Kind::kList; }

  /// The string of a row, from 0; empty if null. kNumberPadding bytes after it are readable. It lies in the column or
  /// in `scratch`.
  std::string_view Text(int64_t row, TextRule rule, std::string* scratch) const;
  /// Unit of times: "s", "ms", "us" or "ns"; empty for other columns.
  std::string_view unit() const { return unit_; }
  /// The values of a list row: a range in items(), empty if null.
  void List(int64_t row, int64_t* begin, int64_t* end) const;
  const FrameColumn& items() const { return *inner_; }

 private:
  enum class Kind : uint8_t {
    kNone,
    kNull,
    kBool,
    kSigned,
    kUnsigned,
    kFloat16,
    kFloat32,
    kFloat64,
    kText,      ///< offsets, bytes
    kTextView,  ///< views, which contain short strings
    kDays,
    kTime,
    kDecimal,
    kDictionary,
    kList,
  };

  /// The string as stored in the column.
  std::string_view Written(int64_t row, TextRule rule, std::string* scratch) const;
  /// The local time of a time with an offset; the instant for models trained before offsets were supported.
  std::string_view FaceOf(std::string_view text, std::string* scratch) const;
  bool TakeType(std::string_view format);
  bool IsNull(int64_t at) const { return validity_ != nullptr && ((validity_[at >> 3] >> (at & 7)) & 1) == 0; }
  template <class T>
  T At(int64_t at) const {
    return static_cast<const T*>(values_)[at];
  }
  int64_t SignedAt(int64_t at) const;
  uint64_t UnsignedAt(int64_t at) const;
  /// Byte offset of value `at` in strings and lists.
  int64_t OffsetAt(int64_t at) const { return width_ == 4 ? At<int32_t>(at) : At<int64_t>(at); }
  std::string_view TextAt(int64_t at, std::string* scratch) const;
  std::string_view ViewAt(int64_t at, std::string* scratch) const;
  std::string_view TimeAt(int64_t at, std::string* scratch) const;
  std::string_view DecimalAt(int64_t at, std::string* scratch) const;

  Kind kind_ = Kind::kNone;
  Kind index_ = Kind::kSigned;  ///< of a dictionary
  bool has_zone_ = false;
  bool has_offsets_ = false;  ///< strings are times with an offset
  bool is_instant_ = false;   ///< for such strings: the model uses UTC
  std::string unit_;
  int width_ = 0;           ///< bytes of a number or an offset
  int scale_ = 0;           ///< decimals: digits after the point
  int64_t per_second_ = 1;  ///< for times
  int64_t list_size_ = -1;  ///< length of fixed-size lists; -1: offsets give it
  int64_t offset_ = 0;
  int64_t end_ = 0;  ///< offset and length
  const uint8_t* validity_ = nullptr;
  const void* values_ = nullptr;  ///< numbers, offsets or views
  const char* bytes_ = nullptr;
  const void* const* buffers_ = nullptr;      ///< for views
  const int64_t* buffer_sizes_ = nullptr;     ///< sizes of buffers_
  std::unique_ptr<const FrameColumn> inner_;  ///< items of lists, or words of a dictionary
  std::string type_name_;
};

}  // namespace millrace
