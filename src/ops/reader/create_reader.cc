#include <algorithm>
#include <utility>

#include "core/hash.h"
#include "ops/kernel.h"
#include "ops/reader/reader_variable.h"
#include "reader/batch_reader.h"
#include "reader/double_buffer_reader.h"
#include "reader/multi_pass_reader.h"
#include "reader/multiple_reader.h"
#include "reader/random_reader.h"
#include "reader/recordio.h"
#include "reader/shuffle_reader.h"

namespace millrace {
namespace {

Result<size_t> AtLeast1(const OpView& op, std::string_view attribute) {
  const int64_t size = op.Int(attribute);
  if (size > 0) return static_cast<size_t>(size);
  return InvalidConfig(op.type() + ": attribute \"" + std::string(attribute) + "\" is " + std::to_string(size) +
                       "; it is at least 1");
}

/// Tells an operator from others: its type, inputs, outputs and what it reads of its attributes. Others (op_callstack,
/// the line in Python) differ between two runs of one script.
std::string CreationBy(const OpView& op) {
  OpDesc desc = op.desc();
  auto& attrs = *desc.mutable_attrs();
  attrs.erase(std::remove_if(attrs.begin(), attrs.end(),
                             [&op](const OpDesc::Attr& attr) { return op.info().FindAttr(attr.name()) == nullptr; }),
              attrs.end());
  return desc.SerializeAsString();
}

/// Makes the reader of Out at the first run. `Maker` has Status Bind(KernelContext&) and
/// Result<std::unique_ptr<ReaderBase>> Make().
template <class Maker>
class CreateReaderKernel : public BoundKernel<CreateReaderKernel<Maker>> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(out_, OutputReader(context, "Out"));
    creation_ = CreationBy(context.op());
    return maker_.Bind(context);
  }
  Status Run(const RunContext&) override {
    if (out_->made()) return out_->CheckMadeBy(creation_);
    MR_ASSIGN(std::unique_ptr<ReaderBase> reader, maker_.Make());
    out_->Hold(std::move(reader), creation_);
    return Status::Ok();
  }

 private:
  ReaderHolder* out_ = nullptr;
  std::string creation_;  ///< the operator, by which a second run of it is told from another one
  Maker maker_;
};

class FilesMaker {
 public:
  Status Bind(KernelContext& context) {
    registry_ = context.options().readers;
    options_.files = context.op().Strings("file_names");
    options_.format = context.op().String("format");
    options_.threads = static_cast<int>(context.op().Int("thread_num"));
    MR_ASSIGN(options_.buffer_size, AtLeast1(context.op(), "buffer_size"));
    MR_ASSIGN(specs_, ReadTensorSpecs(context));
    if (registry_ == nullptr) return InvalidConfig("this program cannot open files: it was given no file formats");
    return Status::Ok();
  }
  Result<std::unique_ptr<ReaderBase>> Make() {
    MR_ASSIGN(std::unique_ptr<ReaderBase> reader, MultipleReader::Create(options_, *registry_, specs_));
    return reader;
  }

 private:
  const ReaderRegistry* registry_ = nullptr;
  OpenFilesOptions options_;
  std::vector<TensorSpec> specs_;
};

class RecordIOFileMaker {
 public:
  Status Bind(KernelContext& context) {
    file_ = context.op().String("filename");
    MR_ASSIGN(specs_, ReadTensorSpecs(context));
    return Status::Ok();
  }
  Result<std::unique_ptr<ReaderBase>> Make() {
    MR_ASSIGN(std::unique_ptr<ReaderBase> reader, RecordIOFormat().open(file_, specs_));
    return reader;
  }

 private:
  std::string file_;
  std::vector<TensorSpec> specs_;
};

class RandomDataMaker {
 public:
  Status Bind(KernelContext& context) {
    low_ = context.op().Float("low");
    high_ = context.op().Float("high");
    seed_ = Mix64(context.options().seed, HashName(context.OutputName("Out")));
    MR_ASSIGN(specs_, ReadTensorSpecs(context));
    return Status::Ok();
  }
  Result<std::unique_ptr<ReaderBase>> Make() {
    MR_ASSIGN(std::unique_ptr<ReaderBase> reader, RandomReader::Create(low_, high_, seed_, specs_));
    return reader;
  }

 private:
  float low_ = 0;
  float high_ = 0;
  uint64_t seed_ = 0;
  std::vector<TensorSpec> specs_;
};

/// What makers of decorators share: the reader that they take away.
class UnderlyingReader {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(holder_, InputReader(context, "UnderlyingReader"));
    name_ = context.InputName("UnderlyingReader");
    taker_ = context.OutputName("Out");
    if (name_ != taker_) return Status::Ok();
    return InvalidConfig(context.op().type() + ": Out and UnderlyingReader are both \"" + name_ +
                         "\"; give the new reader a variable of its own");
  }
  Result<std::unique_ptr<ReaderBase>> Take() {
    return holder_->Take(taker_).Context("UnderlyingReader \"" + name_ + "\"");
  }

 private:
  ReaderHolder* holder_ = nullptr;
  std::string name_;
  std::string taker_;
};

class ShuffleMaker {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(buffer_size_, AtLeast1(context.op(), "buffer_size"));
    const int64_t seed = context.op().Int("seed");
    seed_ =
        seed != 0 ? static_cast<uint64_t>(seed) : Mix64(context.options().seed, HashName(context.OutputName("Out")));
    return underlying_.Bind(context);
  }
  Result<std::unique_ptr<ReaderBase>> Make() {
    MR_ASSIGN(std::unique_ptr<ReaderBase> reader, underlying_.Take());
    return std::unique_ptr<ReaderBase>(std::make_unique<ShuffleReader>(std::move(reader), buffer_size_, seed_));
  }

 private:
  UnderlyingReader underlying_;
  size_t buffer_size_ = 1;
  uint64_t seed_ = 0;
};

class BatchMaker {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(batch_size_, AtLeast1(context.op(), "batch_size"));
    drop_last_ = context.op().Bool("discard_leftover");
    return underlying_.Bind(context);
  }
  Result<std::unique_ptr<ReaderBase>> Make() {
    MR_ASSIGN(std::unique_ptr<ReaderBase> reader, underlying_.Take());
    MR_ASSIGN(std::unique_ptr<ReaderBase> batches,
              BatchReader::Create(std::move(reader), static_cast<int64_t>(batch_size_), drop_last_));
    return batches;
  }

 private:
  UnderlyingReader underlying_;
  size_t batch_size_ = 1;
  bool drop_last_ = false;
};

class DoubleBufferMaker {
 public:
  Status Bind(KernelContext& context) { return underlying_.Bind(context); }
  Result<std::unique_ptr<ReaderBase>> Make() {
    MR_ASSIGN(std::unique_ptr<ReaderBase> reader, underlying_.Take());
    return std::unique_ptr<ReaderBase>(std::make_unique<DoubleBufferReader>(std::move(reader)));
  }

 private:
  UnderlyingReader underlying_;
};

class MultiPassMaker {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(pass_num_, AtLeast1(context.op(), "pass_num"));
    return underlying_.Bind(context);
  }
  Result<std::unique_ptr<ReaderBase>> Make() {
    MR_ASSIGN(std::unique_ptr<ReaderBase> reader, underlying_.Take());
    return std::unique_ptr<ReaderBase>(
        std::make_unique<MultiPassReader>(std::move(reader), static_cast<int64_t>(pass_num_)));
  }

 private:
  UnderlyingReader underlying_;
  size_t pass_num_ = 1;
};

/// The attributes that say what a reader delivers.
OpBuilder& WithShapes(OpBuilder& op) {
  const std::vector<int64_t> none;
  return op.Attr("shape_concat", none, "the sizes of all outputs, end to end; -1: any")
      .Attr("ranks", none, "how many of them each output has")
      .Attr("lod_levels", none, "of each output: 0, or 1 for lists of values")
      .Attr("dtypes", none, "of each output; none: as Out declares them, or float32")
      .Attr("names", std::vector<std::string>(), "of the outputs, for formats whose records have names");
}

OpBuilder& Decorator(OpBuilder& op) {
  return op.Input("UnderlyingReader", "becomes a part of Out, and is not read itself from then on")
      .Output("Out", "a reader")
      .InferShape(KeepOutputs);
}

}  // namespace

void RegisterCreateReader(OpRegistry& registry) {
  OpBuilder files = registry.Add("open_files");
  WithShapes(files)
      .Doc("Makes a reader of many files, each read by one of thread_num threads into one buffer. Runs once.")
      .Output("Out", "a reader")
      .Effect("reads files")
      .Attr("file_names", std::vector<std::string>(), "the files: FORMAT:PATH, or a name that says its format")
      .Attr("format", std::string(), "of all files; none: each name says")
      .Attr("thread_num", int64_t{1}, "threads; with one, examples come in the order of the files")
      .Attr("buffer_size", int64_t{100}, "examples that are read ahead at most")
      .InferShape(KeepOutputs)
      .Kernel<CreateReaderKernel<FilesMaker>>();
  OpBuilder recordio = registry.Add("create_recordio_file_reader");
  WithShapes(recordio)
      .Doc("Makes a reader of one RecordIO file. Runs once.")
      .Output("Out", "a reader")
      .Attr("filename", std::string(), "the file")
      .Effect("reads a file")
      .InferShape(KeepOutputs)
      .Kernel<CreateReaderKernel<RecordIOFileMaker>>();
  OpBuilder random = registry.Add("create_random_data_generator");
  WithShapes(random)
      .Doc("Makes a reader that draws float32 values from [low, high), by the job's seed, without end. Runs once.")
      .Output("Out", "a reader")
      .Attr("low", 0.0F, "the smallest value")
      .Attr("high", 1.0F, "above the largest value")
      .InferShape(KeepOutputs)
      .Kernel<CreateReaderKernel<RandomDataMaker>>();
  OpBuilder shuffle = registry.Add("create_shuffle_reader");
  Decorator(shuffle)
      .Doc("Makes a reader that permutes each buffer_size items of another one. Runs once.")
      .Required<int64_t>("buffer_size", "items that are held in memory")
      .Attr("seed", int64_t{0}, "of the permutations; 0: from the job's seed")
      .Kernel<CreateReaderKernel<ShuffleMaker>>();
  OpBuilder batch = registry.Add("create_batch_reader");
  Decorator(batch)
      .Doc("Makes a reader that joins batch_size items of another one along axis 0. Runs once.")
      .Required<int64_t>("batch_size", "items")
      .Attr("discard_leftover", false, "leave out items at the end that fill no batch")
      .Kernel<CreateReaderKernel<BatchMaker>>();
  OpBuilder multi_pass = registry.Add("create_multi_pass_reader");
  Decorator(multi_pass)
      .Doc("Makes a reader that delivers what another one has pass_num times. Runs once.")
      .Required<int64_t>("pass_num", "passes")
      .Kernel<CreateReaderKernel<MultiPassMaker>>();
  OpBuilder double_buffer = registry.Add("create_double_buffer_reader");
  Decorator(double_buffer)
      .Doc("Makes a reader that reads another one ahead in a thread of its own. Runs once.")
      .Attr("place", std::string(), "as Paddle writes it; changes nothing here")
      .Kernel<CreateReaderKernel<DoubleBufferMaker>>();
}

}  // namespace millrace
