// Decoding pictures of 64x64 in colour and some 3 KB: by libjpeg alone, from memory; by our decoder, from files into
// planes; through open_files' reader into batches that are read ahead. What the second and third cost beside the first
// is ours.

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/rng.h"
#include "reader/batch_reader.h"
#include "reader/builtin_formats.h"
#include "reader/double_buffer_reader.h"
#include "reader/jpeg_decoder.h"
#include "reader/multiple_reader.h"

// Behind <cstdio>, whose FILE it takes for granted.
#include <jpeglib.h>

namespace millrace {
namespace {

constexpr int kPictures = 1000;
constexpr int kSide = 64;
constexpr size_t kValues = size_t{3} * kSide * kSide;

/// A picture of slopes and noise, with colours of half the size as cameras and tf.io.encode_jpeg store them.
std::string Picture(Rng& rng) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's type
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = info.image_height = kSide;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 95, TRUE);
  jpeg_start_compress(&info, TRUE);
  const auto slope = static_cast<int>(1 + rng.Below(4));
  std::vector<JSAMPLE> row(size_t{3} * kSide);
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < 3 * kSide; ++x) {
      const int value = slope * x / 3 + y + 50 * (x % 3);
      row[static_cast<size_t>(x)] = static_cast<JSAMPLE>((value + static_cast<int>(rng.Below(20))) % 200);
    }
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string picture(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return picture;
}

class Pictures {
 public:
  Pictures() {
    Rng rng(1);
    for (int i = 0; i < kPictures; ++i) {
      pictures_.push_back(Picture(rng));
      paths_.push_back(folder() + "/" + std::to_string(10000 + i) + ".jpg");
      std::ofstream(paths_.back(), std::ios::binary) << pictures_.back();
    }
  }
  std::string folder() const { return folder_.path(); }
  const std::vector<std::string>& pictures() const { return pictures_; }
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  TempDir folder_ = TempDir::Create("jpeg_bench").value();
  std::vector<std::string> pictures_;
  std::vector<std::string> paths_;
};

const Pictures& AllPictures() {
  static const Pictures pictures;
  return pictures;
}

// As libjpeg's manual shows it, with one decoder for all pictures.
void BM_LibjpegAlone(benchmark::State& state) {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  std::vector<unsigned char> pixels(kValues);
  size_t bytes = 0;
  for (auto _ : state) {
    for (const std::string& picture : AllPictures().pictures()) {
      jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(picture.data()), picture.size());
      jpeg_read_header(&info, TRUE);
      jpeg_start_decompress(&info);
      while (info.output_scanline < info.output_height) {
        JSAMPROW row = pixels.data() + size_t{3} * kSide * info.output_scanline;
        jpeg_read_scanlines(&info, &row, 1);
      }
      jpeg_finish_decompress(&info);
      benchmark::DoNotOptimize(pixels.data());
      bytes += picture.size();
    }
  }
  jpeg_destroy_decompress(&info);
  state.SetItemsProcessed(state.iterations() * kPictures);
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK(BM_LibjpegAlone)->Unit(benchmark::kMillisecond);

void BM_DecodeFiles(benchmark::State& state) {
  JpegDecoder decoder;
  std::vector<uint8_t> planes(kValues);
  for (auto _ : state) {
    for (const std::string& path : AllPictures().paths()) {
      if (!decoder.ReadHeader(path).ok() || !decoder.ReadPlanes(path, 3, planes.data()).ok()) std::abort();
      benchmark::DoNotOptimize(planes.data());
    }
  }
  state.SetItemsProcessed(state.iterations() * kPictures);
}
BENCHMARK(BM_DecodeFiles)->Unit(benchmark::kMillisecond);

void BM_PictureBatchesReadAhead(benchmark::State& state) {
  ReaderRegistry registry;
  if (!RegisterBuiltinFormats(registry).ok()) std::abort();
  const OpenFilesOptions options{
      .files = {"jpeg:" + AllPictures().folder()}, .format = "", .threads = 1, .buffer_size = 256};
  std::unique_ptr<ReaderBase> files =
      MultipleReader::Create(options, registry, {{DType::kUint8, {-1, 3, kSide, kSide}, 0}}).value();
  DoubleBufferReader reader(BatchReader::Create(std::move(files), 64, false).value());
  std::vector<LoDTensor> item;
  for (auto _ : state) {
    while (reader.ReadNext(&item, {}).value()) benchmark::DoNotOptimize(item[0].values.raw_data());
    if (!reader.ReInit().ok()) std::abort();
  }
  state.SetItemsProcessed(state.iterations() * kPictures);
}
// Its threads' processor time counts.
BENCHMARK(BM_PictureBatchesReadAhead)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace millrace
