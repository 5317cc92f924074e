#include <algorithm>
#include <limits>

#include "core/decompress.h"
#include "core/exception_text.h"
#include "plugin/c_open_args.h"
#include "plugin/c_plugin.h"
#include "plugin/c_row_values.h"

namespace millrace {
namespace {

/// Number of values per record in all axes except the first, and including it if it is fixed.
Result<int64_t> WidthOf(const TensorSpec& spec) {
  const bool is_known = spec.dtype == DType::kInt64 || spec.dtype == DType::kInt32 || spec.dtype == DType::kFloat32 ||
                        spec.dtype == DType::kFloat64;
  if (!is_known) return InvalidConfig("loaders give int64, int32, float32 and float64, not " + spec.ToString());
  int64_t width = 1;
  for (int axis = 0; axis < spec.dims.rank(); ++axis) {
    if (axis == 0 && spec.dims[axis] < 0) continue;
    if (spec.dims[axis] < 0) return InvalidConfig("loaders give records of fixed sizes, not " + spec.ToString());
    width *= spec.dims[axis];
    if (width > std::numeric_limits<int32_t>::max()) {
      return InvalidConfig("a record has at most " + std::to_string(std::numeric_limits<int32_t>::max()) +
                           " values, not " + spec.ToString());
    }
  }
  return width;
}

/// The first id that an int32 output cannot hold; null if there is none. A negative number has its 64 bits.
const uint64_t* BeyondInt32(std::span<const uint64_t> ids) {
  const auto at = std::find_if(ids.begin(), ids.end(), [](uint64_t id) {
    const auto number = static_cast<int64_t>(id);
    return number != static_cast<int32_t>(number);
  });
  return at == ids.end() ? nullptr : &*at;
}

template <class To, class From>
void Put(std::span<const From> values, const Dims& dims, Tensor* tensor) {
  To* to = tensor->Resize<To>(dims);
  for (const From value : values) *to++ = static_cast<To>(value);
}

/// A loader reading a file. One thread at a time.
class CLoader {
 public:
  CLoader(const millrace_loader& loader, std::string where, std::unique_ptr<COpenArgs> args)
      : loader_(loader), where_(std::move(where)), args_(std::move(args)), row_(args_->columns()) {}
  ~CLoader() { Close(); }
  CLoader(const CLoader&) = delete;
  CLoader& operator=(const CLoader&) = delete;

  bool is_open() const { return state_ != nullptr; }
  /// Sets the file, which the next Next opens.
  void ReadFrom(std::unique_ptr<ByteSource> bytes, const std::string& file) { args_->ReadFrom(std::move(bytes), file); }
  /// Reads a record into row(); false at the end. Failures have no position.
  Result<bool> Next(const std::stop_token& stop) {
    is_of_record_ = false;
    args_->ReadUntil(stop);
    if (state_ == nullptr) MR_TRY(Open());
    row_.Clear();
    int result = MILLRACE_FAILED;
    try {
      result = loader_.next(state_, &row_.sink(), error_.get());
    } catch (...) {
      return BadData(where_ + " threw " + DescribeException());
    }
    MR_TRY(args_->read_failure());
    is_of_record_ = true;
    if (const std::string text = row_.NoMemory(); !text.empty()) return Unavailable(where_ + ": " + text);
    if (result == MILLRACE_NONE && !error_.overran()) return false;
    if (result == MILLRACE_ROW && !error_.overran()) return true;
    return BadData(error_.text(where_, " failed and gives no reason"));
  }
  void Close() {
    try {
      if (state_ != nullptr) loader_.close(state_);
    } catch (...) {
      // All records were read, so an exception here does no harm.
    }
    state_ = nullptr;
  }

  CRowValues& row() { return row_; }
  const CRowValues& row() const { return row_; }
  std::span<const millrace_column> columns() const { return args_->columns(); }
  /// Whether reading bytes failed; such failures contain their position.
  bool is_of_bytes() const { return !args_->read_failure().ok(); }
  /// Whether the current record caused the failure.
  bool is_of_record() const { return is_of_record_; }

 private:
  Status Open() {
    try {
      state_ = loader_.open(&args_->args(), error_.get());
    } catch (...) {
      return BadData(where_ + " threw " + DescribeException());
    }
    MR_TRY(args_->read_failure());
    if (state_ != nullptr && !error_.overran()) return Status::Ok();
    Close();
    return BadData(where_ + " cannot open it: " + error_.text(where_, " gives no reason"));
  }

  const millrace_loader loader_;
  const std::string where_;
  const std::unique_ptr<COpenArgs> args_;
  void* state_ = nullptr;
  CRowValues row_;
  CError error_;
  bool is_of_record_ = false;
};

class CLoaderReader final : public FileReader {
 public:
  CLoaderReader(const millrace_loader& loader, std::string where, std::string file, std::vector<TensorSpec> shapes,
                std::unique_ptr<COpenArgs> args)
      : FileReader(std::move(file), std::move(shapes)), loader_(loader, std::move(where), std::move(args)) {}

 private:
  Result<bool> ReadRecord(std::vector<LoDTensor>* out, const std::stop_token& stop) override {
    if (stop.stop_requested()) return Cancelled("stopped while reading " + file());
    if (!loader_.is_open()) {
      MR_ASSIGN(std::unique_ptr<ByteSource> bytes, OpenFile(file()));
      loader_.ReadFrom(Decompress(std::move(bytes), file()), file());
    }
    Result<bool> more = loader_.Next(stop);
    CRowValues& row = loader_.row();
    if (!more.ok()) {
      if (loader_.is_of_bytes()) return more;
      if (!row.NoMemory().empty()) return Misfit(row.column(), std::move(more).status());
      return std::move(more).Context(loader_.is_of_record() ? Where() : file());
    }
    if (!*more) return false;
    if (!row.Check()) return Misfit(row.column(), BadData(row.misfit()));
    for (size_t i = 0; i < out->size(); ++i) {
      if (Status put = PutColumn(i, &(*out)[i]); !put.ok()) return Misfit(i, std::move(put));
    }
    return true;
  }
  Status Rewind() override {
    loader_.Close();
    return Status::Ok();
  }

  Status Misfit(size_t output, Status failure) const {
    return std::move(failure).Context(Where() + ": output " + std::to_string(output));
  }

  Status PutColumn(size_t column, LoDTensor* out) {
    const TensorSpec& spec = shapes()[column];
    const bool is_ids = loader_.columns()[column].kind == MILLRACE_IDS;
    const size_t count = is_ids ? loader_.row().ids(column).size() : loader_.row().floats(column).size();
    Dims dims = spec.dims;
    out->lod.clear();
    if (spec.dims.rank() > 0 && spec.dims[0] < 0) {
      const auto width = static_cast<size_t>(spec.dims.Product(1, spec.dims.rank()));
      if (width == 0 || count % width != 0) {
        return BadData("expected a multiple of " + std::to_string(width) + " values, found " + std::to_string(count));
      }
      dims.set(0, static_cast<int64_t>(count / width));
      if (spec.lod_level > 0) out->lod = {0, static_cast<uint32_t>(count / width)};
    }
    if (spec.dtype == DType::kInt64) Put<int64_t>(loader_.row().ids(column), dims, &out->values);
    if (spec.dtype == DType::kInt32) {
      if (const uint64_t* const beyond = BeyondInt32(loader_.row().ids(column)); beyond != nullptr) {
        return BadData(std::to_string(*beyond) + " does not fit int32; declare the output int64");
      }
      Put<int32_t>(loader_.row().ids(column), dims, &out->values);
    }
    if (spec.dtype == DType::kFloat32) Put<float>(loader_.row().floats(column), dims, &out->values);
    if (spec.dtype == DType::kFloat64) Put<double>(loader_.row().floats(column), dims, &out->values);
    return Status::Ok();
  }

  CLoader loader_;
};

/// The rows of a file, for a dataset.
class CLoaderRows final : public RowFile {
 public:
  CLoaderRows(const millrace_loader& loader, std::string where, const SlotSchema& schema,
              std::unique_ptr<COpenArgs> args, std::unique_ptr<ByteSource> bytes, const std::string& file)
      : schema_(schema), loader_(loader, std::move(where), std::move(args)) {
    loader_.ReadFrom(std::move(bytes), file);
  }

  Result<Got> Next(const std::stop_token& stop) override {
    Result<bool> more = loader_.Next(stop);
    CRowValues& row = loader_.row();
    if (!more.ok() && !row.NoMemory().empty()) {
      return std::move(more).Context("slot \"" + SlotName(row.column()) + "\"").status();
    }
    if (!more.ok()) return std::move(more).status();
    if (!*more) return Got::kEnd;
    if (row.Check()) return Got::kRow;
    error_ = LineError();
    error_.kind = LineErrorKind::kRefused;
    error_.slot = SlotName(row.column());
    error_.message = row.misfit();
    return Got::kBad;
  }
  std::span<const uint64_t> ids(SlotId slot) const override { return loader_.row().ids(slot); }
  std::span<const float> floats(SlotId slot) const override { return loader_.row().floats(slot); }
  const LineError& error() const override { return error_; }

 private:
  std::string SlotName(size_t column) const {
    return column < schema_.used().size() ? schema_.used()[column].name : "";
  }

  const SlotSchema& schema_;
  CLoader loader_;
  LineError error_;
};

std::string WhereOf(const millrace_loader& loader, const std::string& path) {
  return "loader \"" + std::string(loader.name) + "\" of plugin \"" + path + "\"";
}

}  // namespace

Result<std::unique_ptr<FileReader>> MakeCLoaderReader(const millrace_loader& loader, const std::string& path,
                                                      const std::string& file, const std::vector<TensorSpec>& shapes) {
  const std::string where = WhereOf(loader, path);
  std::vector<std::pair<std::string, millrace_column>> columns;
  for (size_t i = 0; i < shapes.size(); ++i) {
    Result<int64_t> width = WidthOf(shapes[i]);
    if (!width.ok()) return std::move(width).Context(where + ": output " + std::to_string(i)).status();
    const bool is_ids = shapes[i].dtype == DType::kInt64 || shapes[i].dtype == DType::kInt32;
    const bool is_fixed = shapes[i].lod_level == 0 || shapes[i].dims.rank() == 0 || shapes[i].dims[0] >= 0;
    columns.push_back(
        {std::to_string(i),
         {nullptr, is_ids ? MILLRACE_IDS : MILLRACE_FLOATS, is_fixed ? static_cast<int32_t>(*width) : -1}});
  }
  Result<std::unique_ptr<COpenArgs>> args =
      COpenArgs::Create({loader.attrs, loader.attr_count}, {}, std::move(columns));
  if (!args.ok()) return std::move(args).Context(where).status();
  return std::unique_ptr<FileReader>(std::make_unique<CLoaderReader>(loader, where, file, shapes, std::move(*args)));
}

RowFileMaker MakeCLoaderRowFiles(const millrace_loader& loader, const std::string& path) {
  return [loader, where = WhereOf(loader, path)](const SlotSchema& schema,
                                                 const DataFeedDesc& desc) -> Result<RowFileOpener> {
    const auto make_args = [loader, where, &schema, &desc] {
      return COpenArgs::ForSlots({loader.attrs, loader.attr_count}, schema, desc, where);
    };
    MR_TRY(make_args().status());
    return RowFileOpener(
        [loader, where, &schema, make_args](std::unique_ptr<ByteSource> bytes,
                                            const std::string& file) -> Result<std::unique_ptr<RowFile>> {
          MR_ASSIGN(std::unique_ptr<COpenArgs> args, make_args());
          return std::unique_ptr<RowFile>(
              std::make_unique<CLoaderRows>(loader, where, schema, std::move(args), std::move(bytes), file));
        });
  };
}

}  // namespace millrace
