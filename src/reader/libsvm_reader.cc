#include "reader/libsvm_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "reader/field_value.h"
#include "reader/libsvm_line.h"
#include "reader/line_file.h"

namespace millrace {
namespace {

class LibsvmReader final : public FileReader {
 public:
  LibsvmReader(std::string file, const std::vector<TensorSpec>& specs)
      : FileReader(file, specs), lines_(std::move(file)), is_sparse_(specs.size() == 3) {}

 private:
  Result<bool> ReadRecord(std::vector<LoDTensor>* out, const std::stop_token& stop) override {
    LibsvmLine line({});
    std::string_view label;
    while (label.empty()) {
      std::string_view text;
      MR_ASSIGN(const bool more, lines_.Next(&text, stop));
      if (!more) return false;
      line = LibsvmLine(text);
      label = line.Next();
    }
    if (!ParseField(label, shapes()[0].dtype, ResizeToInstance(shapes()[0], 1, &(*out)[0]), 0)) {
      return Bad("expected a label of type " + std::string(DTypeName(shapes()[0].dtype)), label);
    }
    if (shapes()[0].is_id && IsNegative(label)) {
      return NegativeId(lines_.Where() + ": the label", ShownField(label), kTextIdAdvice);
    }
    MR_TRY(is_sparse_ ? ReadPairs(line, &(*out)[1], &(*out)[2]) : ReadDense(line, &(*out)[1]));
    return true;
  }

  /// Reads the index of an INDEX:VALUE token; `last` is the previous one and is updated. Leaves the value in `token`.
  Status TakeIndex(std::string_view* token, int64_t* last) const {
    const size_t colon = token->find(':');
    int64_t index = 0;
    if (colon == std::string_view::npos || !ParseField(token->substr(0, colon), DType::kInt64, &index, 0)) {
      return Bad("expected INDEX:VALUE", *token);
    }
    if (index <= *last) return Bad("expected an index above " + std::to_string(*last), *token);
    *last = index;
    token->remove_prefix(colon + 1);
    return Status::Ok();
  }

  Status ReadPairs(LibsvmLine& line, LoDTensor* indices, LoDTensor* values) {
    const std::string_view rest = line.rest();
    const auto count = static_cast<size_t>(std::count(rest.begin(), rest.end(), ':'));
    auto* index = static_cast<int64_t*>(ResizeToInstance(shapes()[1], count, indices));
    void* value = ResizeToInstance(shapes()[2], count, values);
    const bool is_float = shapes()[2].dtype == DType::kFloat32;
    int64_t last = 0;
    for (size_t i = 0; i < count; ++i) {
      if (is_float) {
        // A pair contains a colon, so there are at most `count` pairs.
        auto* const floats = static_cast<float*>(value);
        line.TakePlainPairs(INT64_MAX, &last, &guess_, [&](int64_t at, float number) {
          index[i] = at;
          floats[i++] = number;
        });
        if (i == count) break;
      }
      const std::string_view token = line.Next();
      std::string_view number = token;
      MR_TRY(TakeIndex(&number, &last));
      if (!ParseField(number, shapes()[2].dtype, value, i)) return Bad("expected a value after the index", token);
      index[i] = last;
    }
    const std::string_view more = line.Next();
    return more.empty() ? Status::Ok() : Bad("expected INDEX:VALUE", more);
  }

  Status ReadDense(LibsvmLine& line, LoDTensor* tensor) {
    const TensorSpec& spec = shapes()[1];
    const size_t size = InstanceSize(spec);
    auto* const values = static_cast<float*>(ResizeToInstance(spec, size, tensor));
    std::memset(values, 0, size * sizeof(float));
    int64_t last = 0;
    for (;;) {
      line.TakePlainPairs(static_cast<int64_t>(size), &last, &guess_,
                          [values](int64_t index, float value) { values[index - 1] = value; });
      const std::string_view token = line.Next();
      if (token.empty()) return Status::Ok();
      std::string_view number = token;
      MR_TRY(TakeIndex(&number, &last));
      if (static_cast<uint64_t>(last) > size) {
        return Bad("expected an index up to " + std::to_string(size), token);
      }
      if (!ParseField(number, spec.dtype, values, static_cast<size_t>(last) - 1)) {
        return Bad("expected a value after the index", token);
      }
    }
  }

  Status Bad(const std::string& expectation, std::string_view token) const {
    return BadData(lines_.Where() + ": " + expectation + ", found " + ShownField(token));
  }

  Status Rewind() override {
    lines_.Rewind();
    return Status::Ok();
  }

  LineFile lines_;
  const bool is_sparse_;
  DigitGuess guess_;
};

Result<std::unique_ptr<FileReader>> OpenLibsvm(const std::string& file, const std::vector<TensorSpec>& specs) {
  MR_TRY(CheckReadable(file));
  MR_TRY(CheckInstanceSpecs(specs).Context("libsvm file \"" + file + "\""));
  const bool has_label =
      !specs.empty() && IsFieldType(specs[0].dtype) && specs[0].lod_level == 0 && InstanceSize(specs[0]) == 1;
  const bool is_dense = specs.size() == 2 && specs[1].dtype == DType::kFloat32 && specs[1].lod_level == 0;
  const bool is_sparse = specs.size() == 3 && specs[1].dtype == DType::kInt64 && specs[1].lod_level == 1 &&
                         IsFieldType(specs[2].dtype) && specs[2].lod_level == 1;
  if (has_label && (is_dense || is_sparse)) {
    return std::unique_ptr<FileReader>(std::make_unique<LibsvmReader>(file, specs));
  }
  return InvalidConfig("libsvm file \"" + file +
                       "\": the outputs are a label of one value and either dense float32 values, or int64 indices and "
                       "their values, both of lod_level 1");
}

}  // namespace

FileFormat LibsvmFormat() {
  return {"libsvm", {".libsvm", ".svm"}, "a line LABEL INDEX:VALUE ..., indices from 1", OpenLibsvm};
}

}  // namespace millrace
