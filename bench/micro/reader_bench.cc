// Reading files of every format through open_files' reader, alone and into batches of 64 that are read ahead. Items are
// records of 64 pixels and a label, as a handwritten digit has them; bytes are those of the files.

#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "core/file.h"
#include "core/rng.h"
#include "datafeed/multi_slot_reader.h"
#include "reader/batch_reader.h"
#include "reader/builtin_formats.h"
#include "reader/double_buffer_reader.h"
#include "reader/multiple_reader.h"
#include "reader/recordio.h"

namespace millrace {
namespace {

constexpr int kRecords = 20000;
constexpr int kPixels = 64;
constexpr const char* kFormats[] = {"recordio", "csv", "multi_slot", "libsvm"};

/// The same records in files of all formats.
class RecordFiles {
 public:
  RecordFiles() {
    std::ofstream csv(Path("csv"));
    std::ofstream slots(Path("multi_slot"));
    std::ofstream svm(Path("libsvm"));
    Result<RecordIOWriter> records = RecordIOWriter::Create(Path("recordio"));
    Rng rng(1);
    std::vector<LoDTensor> record(2);
    for (int i = 0; i < kRecords; ++i) {
      const auto label = static_cast<int64_t>(rng.Below(10));
      float* pixels = record[0].values.Resize<float>({1, kPixels});
      record[1].values.Resize<int64_t>({1, 1})[0] = label;
      slots << kPixels;
      svm << label;
      for (int k = 0; k < kPixels; ++k) {
        pixels[k] = static_cast<float>(rng.Below(17));
        csv << pixels[k] << ',';
        slots << ' ' << pixels[k];
        svm << ' ' << k + 1 << ':' << pixels[k];
      }
      csv << label << '\n';
      slots << " 1 " << label << '\n';
      svm << '\n';
      if (!records.value().Append(record).ok()) std::abort();
    }
    if (!records.value().Finish().ok()) std::abort();
  }
  std::string Path(const std::string& format) const { return folder_.path() + "/records." + format; }
  /// The outputs in the order of the format.
  static std::vector<TensorSpec> Outputs(const std::string& format) {
    const TensorSpec pixels{DType::kFloat32, {-1, kPixels}, 0};
    const TensorSpec label{DType::kInt64, {-1, 1}, 0};
    return format == "libsvm" ? std::vector<TensorSpec>{label, pixels} : std::vector<TensorSpec>{pixels, label};
  }

 private:
  TempDir folder_ = TempDir::Create("reader_bench").value();
};

void ReadAll(benchmark::State& state, bool batches) {
  static const RecordFiles files;
  ReaderRegistry registry;
  if (!RegisterBuiltinFormats(registry).ok() || !registry.Add(MultiSlotFormat()).ok()) std::abort();
  const std::string format = kFormats[state.range(0)];
  state.SetLabel(format);
  const OpenFilesOptions options{.files = {files.Path(format)}, .format = "", .threads = 1, .buffer_size = 256};
  std::unique_ptr<ReaderBase> reader = MultipleReader::Create(options, registry, RecordFiles::Outputs(format)).value();
  if (batches) {
    reader = std::make_unique<DoubleBufferReader>(BatchReader::Create(std::move(reader), 64, false).value());
  }
  std::vector<LoDTensor> item;
  for (auto _ : state) {
    for (;;) {
      const Result<bool> more = reader->ReadNext(&item, {});
      if (!more.ok()) std::abort();
      if (!more.value()) break;
      benchmark::DoNotOptimize(item[0].values.raw_data());
    }
    if (!reader->ReInit().ok()) std::abort();
  }
  state.SetItemsProcessed(state.iterations() * kRecords);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(std::filesystem::file_size(files.Path(format))));
}

void BM_OpenFiles(benchmark::State& state) { ReadAll(state, false); }
BENCHMARK(BM_OpenFiles)->DenseRange(0, 3)->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_BatchesReadAhead(benchmark::State& state) { ReadAll(state, true); }
BENCHMARK(BM_BatchesReadAhead)->DenseRange(0, 3)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace millrace
