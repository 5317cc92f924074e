#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "datafeed/arrow_c_data.h"
#include "features/value_text.h"

namespace millrace {

/// A column of some rows in memory, of any type of Arrow that has texts: numbers, truth values, texts, dates, times,
/// decimals, what a dictionary says, and lists of these. Texts are those that CSV would have: of floats the shortest
/// that is read back as the same number, of times ISO 8601; true and false are 1 and 0. Constant; any thread. What it
/// refers to must outlive it.
class FrameColumn {
 public:
  /// `zoned_unit`: the unit of texts that are times followed by an offset from UTC, also in lists or a dictionary. It
  /// ends with "Z" if models from before the rule have them as instants. Empty: other texts.
  FrameColumn(const ArrowSchema& schema, const ArrowArray& array, const std::string& zoned_unit = "");

  /// Null for a type that has no texts; then type_name() says which.
  explicit operator bool() const { return kind_ != Kind::kNone; }
  /// "float64", "a struct".
  const std::string& type_name() const { return type_name_; }
  /// Whether a row has several values.
  bool is_list() const { return kind_ == Kind::kList; }

  /// The text of a row from 0, empty where it is null. kNumberPadding bytes behind it may be read. It lies in the
  /// column, or in `scratch`.
  std::string_view Text(int64_t row, TextRule rule, std::string* scratch) const;
  /// Of times: "s", "ms", "us" or "ns"; empty for other columns.
  std::string_view unit() const { return unit_; }
  /// The values of a row of lists: places in items(), none where it is null.
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
    kTextView,  ///< views, which hold short texts
    kDays,
    kTime,
    kDecimal,
    kDictionary,
    kList,
  };

  /// The text as it lies in the column.
  std::string_view Written(int64_t row, TextRule rule, std::string* scratch) const;
  /// What the clock shows in a time with an offset, or its instant, as models have it that were trained before offsets
  /// were.
  std::string_view FaceOf(std::string_view text, std::string* scratch) const;
  bool TakeType(std::string_view format);
  bool IsNull(int64_t at) const { return validity_ != nullptr && ((validity_[at >> 3] >> (at & 7)) & 1) == 0; }
  template <class T>
  T At(int64_t at) const {
    return static_cast<const T*>(values_)[at];
  }
  int64_t SignedAt(int64_t at) const;
  uint64_t UnsignedAt(int64_t at) const;
  /// Where the bytes of value `at` begin, of texts and lists.
  int64_t OffsetAt(int64_t at) const { return width_ == 4 ? At<int32_t>(at) : At<int64_t>(at); }
  std::string_view TextAt(int64_t at, std::string* scratch) const;
  std::string_view ViewAt(int64_t at, std::string* scratch) const;
  std::string_view TimeAt(int64_t at, std::string* scratch) const;
  std::string_view DecimalAt(int64_t at, std::string* scratch) const;

  Kind kind_ = Kind::kNone;
  Kind index_ = Kind::kSigned;  ///< of a dictionary
  bool has_zone_ = false;
  bool has_offsets_ = false;  ///< texts that are times with an offset behind them
  bool is_instant_ = false;   ///< of such texts: models before the rule have them in UTC
  std::string unit_;
  int width_ = 0;           ///< bytes of a number, or of an offset
  int scale_ = 0;           ///< of decimals: digits behind the point
  int64_t per_second_ = 1;  ///< of times
  int64_t list_size_ = -1;  ///< of lists of one length; -1: there are offsets
  int64_t offset_ = 0;
  int64_t end_ = 0;  ///< offset and length
  const uint8_t* validity_ = nullptr;
  const void* values_ = nullptr;  ///< numbers, offsets or views
  const char* bytes_ = nullptr;
  const void* const* buffers_ = nullptr;      ///< of views
  const int64_t* buffer_sizes_ = nullptr;     ///< likewise
  std::unique_ptr<const FrameColumn> inner_;  ///< what lists hold, or the words of a dictionary
  std::string type_name_;
};

}  // namespace millrace
