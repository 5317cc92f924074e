#pragma once

#include <memory>

#include "data_reader.h"
#include "mini_dataset.h"
#include "multi_thread_loop.h"
#include "part_files.h"
#include "runtime/op_kernel.h"

namespace mini {

/// What the attributes of the operator MiniReader say.
struct MiniReaderOptions {
  /// Of an operator with MiniReader's attributes; a worker reads its share of the parts, every workers-th.
  static millrace::Result<MiniReaderOptions> Create(const millrace::OpView& op, const millrace::FrameOptions& frame);

  std::vector<std::string> paths;
  int64_t batch_size = 0;
  bool random_shuffle = false;
  bool shuffle_after_epoch = false;
  uint64_t seed = 0;
  int64_t shuffle_buffer_size = 0;
};

/// Puts the two numbers of every sample into a row of a [batch_size, 2] tensor.
class MiniParser final : public Parser<MiniSample> {
 public:
  explicit MiniParser(int threads) : multi_thread_loop_(threads) {}
  void Parse(const LoadTargetList<MiniSample>& batch, millrace::Tensor* out) override;

 private:
  MultiThreadLoop multi_thread_loop_;
};

/// The reader of MiniReader: the template that other readers follow.
class MiniDataReader final : public DataReader<MiniSample> {
 public:
  MiniDataReader(const MiniReaderOptions& options, int parser_threads);
};

}  // namespace mini
