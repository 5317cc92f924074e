#include "mini_data_reader.h"

#include <utility>

#include "batch_dataset.h"
#include "random_shuffle_dataset.h"

namespace mini {
namespace {

using millrace::InvalidConfig;

std::unique_ptr<Dataset<MiniSample>> MakeLoader(const MiniReaderOptions& options) {
  std::unique_ptr<Dataset<MiniSample>> loader =
      std::make_unique<MiniDataset>(options.paths, options.shuffle_after_epoch, options.seed);
  if (options.random_shuffle) {
    loader = std::make_unique<RandomShuffleDataset<MiniSample>>(static_cast<size_t>(options.shuffle_buffer_size),
                                                                options.seed, std::move(loader));
  }
  return std::make_unique<BatchDataset<MiniSample>>(static_cast<size_t>(options.batch_size), std::move(loader));
}

}  // namespace

millrace::Result<MiniReaderOptions> MiniReaderOptions::Create(const millrace::OpView& op,
                                                              const millrace::FrameOptions& frame) {
  MiniReaderOptions options;
  MR_ASSIGN(const std::vector<std::string> parts,
            JoinDirPath({op.String("data_dir"), op.Int("data_part_num"), op.String("part_name_prefix"),
                         op.Int("part_name_suffix_length")}));
  for (auto part = static_cast<size_t>(frame.worker); part < parts.size(); part += static_cast<size_t>(frame.workers)) {
    options.paths.push_back(parts[part]);
  }
  if (options.paths.empty()) {
    return InvalidConfig("each worker reads parts of its own: " + std::to_string(frame.workers) +
                         " workers need as many parts, and data_part_num is " + std::to_string(parts.size()));
  }
  options.batch_size = op.Int("batch_size");
  options.random_shuffle = op.Bool("random_shuffle");
  options.shuffle_after_epoch = op.Bool("shuffle_after_epoch");
  options.seed = op.Int("seed") < 0 ? frame.seed : static_cast<uint64_t>(op.Int("seed"));
  options.shuffle_buffer_size = op.Int("shuffle_buffer_size");
  return options;
}

void MiniParser::Parse(const LoadTargetList<MiniSample>& batch, millrace::Tensor* out) {
  auto* values = out->Resize<double>({static_cast<int64_t>(batch.size()), 2});
  multi_thread_loop_(batch.size(), [&](size_t i) {
    values[2 * i] = (*batch[i])[0];
    values[2 * i + 1] = (*batch[i])[1];
  });
}

MiniDataReader::MiniDataReader(const MiniReaderOptions& options, int parser_threads)
    : DataReader<MiniSample>(MakeLoader(options), std::make_unique<MiniParser>(parser_threads)) {}

}  // namespace mini
