#include "reader/row_reader.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace millrace {
namespace {

class RowReader : public FileReader {
 public:
  RowReader(std::string file, int first, int rows, RowScript script)
      : FileReader(std::move(file), RowShapes()), first_(first), rows_(rows), script_(script) {}

 private:
  Result<bool> ReadRecord(std::vector<LoDTensor>* out, const std::stop_token& stop) override {
    if (next_ == rows_) return false;
    if (script_.fails_at == next_) return BadData(Where() + ": broken");
    if (script_.waits_at == next_) {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any().wait(lock, stop, [] { return false; });
      return Cancelled("stopped");
    }
    const auto value = static_cast<float>(first_ + next_);
    float* values = (*out)[0].values.Resize<float>({1, script_.misfits_at == next_ ? 3 : 2});
    values[0] = value;
    values[1] = -value;
    const int count = next_ % script_.values_of_last + 1;
    int64_t* ids = (*out)[1].values.Resize<int64_t>({count, 1});
    for (int i = 0; i < count; ++i) ids[i] = 10 * (first_ + next_) + i;
    (*out)[1].lod = {0, static_cast<uint32_t>(count)};
    ++next_;
    return true;
  }
  Status Rewind() override {
    next_ = 0;
    return Status::Ok();
  }

  int first_;
  int rows_;
  RowScript script_;
  int next_ = 0;
};

}  // namespace

std::vector<TensorSpec> RowShapes() { return {{DType::kFloat32, {-1, 2}, 0}, {DType::kInt64, {-1, 1}, 1}}; }

std::unique_ptr<FileReader> MakeRowReader(std::string file, int first, int rows, RowScript script) {
  return std::make_unique<RowReader>(std::move(file), first, rows, script);
}

std::string FirstValues(const std::vector<LoDTensor>& item) {
  std::string text;
  for (int64_t row = 0; row < item[0].values.dims()[0]; ++row) {
    if (row > 0) text += ' ';
    text += std::to_string(static_cast<int>(item[0].values.data<float>()[2 * row]));
  }
  return text;
}

std::vector<std::string> ReadToEnd(ReaderBase& reader) {
  std::vector<std::string> items;
  std::vector<LoDTensor> item;
  for (;;) {
    const Result<bool> more = reader.ReadNext(&item, {});
    if (!more.ok()) items.push_back(more.status().ToString());
    if (!more.ok() || !*more) return items;
    items.push_back(FirstValues(item));
  }
}

std::vector<std::string> Numbers(int first, int end) {
  std::vector<std::string> numbers;
  for (int i = first; i < end; ++i) numbers.push_back(std::to_string(i));
  return numbers;
}

}  // namespace millrace
