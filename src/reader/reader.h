#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "reader/lod_tensor.h"

namespace millrace {

/// Delivers items in sequence: examples or batches, one tensor per output.
///
/// To add a reader, derive from FileReader or DecoratedReader and override only Produce (ReadRecord) and Restart
/// (Rewind); this class handles look-ahead for HasNext, the end and failures. One thread at a time. Owns its input and
/// its threads; the destructor stops and joins them within a second.
class ReaderBase {
 public:
  virtual ~ReaderBase() = default;
  ReaderBase(const ReaderBase&) = delete;
  ReaderBase& operator=(const ReaderBase&) = delete;

  /// Puts the next item into `out` and returns true; at the end empties `out` and returns false until ReInit. Reuses
  /// the buffers of tensors in `out`. Blocks on slow files. Fails with kCancelled soon after a stop request, kBadData
  /// or kIo for the input; a failure persists until ReInit.
  Result<bool> ReadNext(std::vector<LoDTensor>* out, const std::stop_token& stop);
  /// Whether ReadNext would deliver an item; reads it ahead. Fails with the failure of that ReadNext.
  Result<bool> HasNext(const std::stop_token& stop);
  /// Restarts at the first item (of the next pass, if passes differ). Fails like StartPass.
  Status ReInit() { return StartPass(pass_ + 1); }
  /// Restarts with the pass of this number; a new reader is in pass 0. Randomness depends only on the pass number, not
  /// on how far earlier passes were read. Fails if the input cannot be read again: kInvalidConfig for a pipe, otherwise
  /// with the input's failure; the reader then fails until the next restart.
  Status StartPass(uint64_t pass);

  /// Announces that the caller takes `items` items before using any, so a reader can wait for that many at once. Holds
  /// until changed; initially 1.
  void Expect(size_t items) { expected_ = items; }

  /// Marks an output whose values are looked up in a table: sets TensorSpec::is_id for its files. Call it before
  /// reading starts or restarts.
  void MarkIds(size_t output);

  /// The outputs of every item, in order. Types and shapes are constant.
  const std::vector<TensorSpec>& shapes() const { return shapes_; }

 protected:
  /// `source` has the same outputs and delivers the items; null for a reader that creates them.
  explicit ReaderBase(std::vector<TensorSpec> shapes, ReaderBase* source = nullptr)
      : shapes_(std::move(shapes)), source_(source) {}
  /// The value of Expect.
  size_t expected() const { return expected_; }
  /// Number of the current pass; within Restart, of the new one.
  uint64_t pass() const { return pass_; }

 private:
  /// Like ReadNext; after the end or a failure it is not called before Restart.
  virtual Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) = 0;
  virtual Status Restart() = 0;

  enum class State : uint8_t { kReading, kAhead, kEnded, kFailed };
  /// Calls Produce and records the end or a failure.
  Result<bool> Advance(std::vector<LoDTensor>* out, const std::stop_token& stop);

  std::vector<TensorSpec> shapes_;
  ReaderBase* const source_;
  std::vector<LoDTensor> ahead_;  ///< the item read by HasNext, in state kAhead
  State state_ = State::kReading;
  Status failure_;
  uint64_t pass_ = 0;
  size_t expected_ = 1;
};

/// Reads one file and delivers one example per record. Checks each against shapes(): a mismatch fails with kBadData,
/// naming file, record (from 1), output and both shapes.
class FileReader : public ReaderBase {
 public:
  const std::string& file() const { return file_; }

 protected:
  FileReader(std::string file, std::vector<TensorSpec> shapes)
      : ReaderBase(std::move(shapes)), file_(std::move(file)) {}
  /// "part-3.pgm: record 17", the current record.
  std::string Where() const { return file_ + ": record " + std::to_string(records_ + 1); }

 private:
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) final;
  Status Restart() final;

  /// Reads the next record into `out`, which has one tensor of any content per shape; false at the end. Failures name
  /// the file.
  virtual Result<bool> ReadRecord(std::vector<LoDTensor>* out, const std::stop_token& stop) = 0;
  /// Returns to the first record.
  virtual Status Rewind() = 0;

  std::string file_;
  uint64_t records_ = 0;  ///< delivered since the first record
};

/// Owns another reader and transforms its items.
class DecoratedReader : public ReaderBase {
 protected:
  /// Keeps the shapes. Both constructors throw std::invalid_argument for a null `reader`.
  explicit DecoratedReader(std::unique_ptr<ReaderBase> reader)
      : ReaderBase(Given(reader).shapes(), reader.get()), reader_(std::move(reader)) {}
  DecoratedReader(std::unique_ptr<ReaderBase> reader, std::vector<TensorSpec> shapes)
      : ReaderBase(std::move(shapes), &Given(reader)), reader_(std::move(reader)) {}

  ReaderBase& reader() { return *reader_; }

 private:
  static ReaderBase& Given(const std::unique_ptr<ReaderBase>& reader) {
    if (reader == nullptr) throw std::invalid_argument("a decorated reader was given no reader to take items from");
    return *reader;
  }

  std::unique_ptr<ReaderBase> reader_;
};

}  // namespace millrace
