#include "reader/array_queue.h"

#include <chrono>
#include <utility>

namespace millrace {
namespace {

constexpr std::chrono::milliseconds kLook{100};

bool FitsShape(const Dims& dims, const Dims& wanted) {
  if (dims.rank() != wanted.rank()) return false;
  for (int axis = 0; axis < dims.rank(); ++axis) {
    if (wanted[axis] >= 0 && wanted[axis] != dims[axis]) return false;
  }
  return true;
}

}  // namespace

Status PyArrayFeedQueue::Check(const HeldArrays& arrays) const {
  if (arrays.size() != shapes_.size()) {
    return InvalidConfig("the queue takes " + std::to_string(shapes_.size()) + " arrays at a time, not " +
                         std::to_string(arrays.size()));
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].dtype == shapes_[i].dtype && FitsShape(arrays[i].dims, shapes_[i].dims)) continue;
    return InvalidConfig("array " + std::to_string(i) + " is " +
                         TensorSpec{arrays[i].dtype, arrays[i].dims, 0}.ToString() + ", but the queue takes " +
                         shapes_[i].ToString());
  }
  return Status::Ok();
}

Status PyArrayFeedQueue::Push(HeldArrays arrays, const std::stop_token& stop) {
  MR_TRY(Check(arrays));
  return channel()->Push(std::move(arrays), stop);
}

// Uses one channel throughout: a thread waiting at a closed channel must not continue with the one that Reopen created.
Status PyArrayFeedQueue::PushUnless(const std::function<bool()>& stops, HeldArrays arrays) {
  if (!arrays.empty()) MR_TRY(Check(arrays));
  const std::shared_ptr<Channel<HeldArrays>> channel = this->channel();
  for (;;) {
    channel->AwaitRoom(kLook);
    if (channel->TryPush(arrays)) return Status::Ok();
    if (channel->closed()) return channel->Push(std::move(arrays), {});
    if (stops()) return Cancelled("stopped while waiting for room in a queue");
  }
}

Result<std::optional<HeldArrays>> PyArrayFeedQueue::PopUnless(const std::function<bool()>& stops) {
  const std::shared_ptr<Channel<HeldArrays>> channel = this->channel();
  for (;;) {
    channel->AwaitItem(kLook);
    std::optional<HeldArrays> arrays = channel->TryPop();
    if (arrays) return arrays;
    if (channel->closed()) return channel->Pop({});
    if (stops()) return Cancelled("stopped while waiting for arrays of a queue");
  }
}

size_t PyArrayFeedQueue::size() const {
  // Pushed and popped counts are read one after the other; concurrent pops make their difference invalid.
  const std::shared_ptr<Channel<HeldArrays>> channel = this->channel();
  size_t size = channel->size();
  while (size > capacity_) size = channel->size();
  return size;
}

void PyArrayFeedQueue::Reopen() {
  std::shared_ptr<Channel<HeldArrays>> made = std::make_shared<Channel<HeldArrays>>(capacity_);
  const std::lock_guard lock(mutex_);
  if (!channel_->closed()) return;
  channel_.swap(made);
  ++openings_;
}

uint64_t PyArrayFeedQueue::openings() const {
  const std::lock_guard lock(mutex_);
  return openings_;
}

Status PyArrayFeedQueueHolder::InitOnce(size_t capacity, std::vector<TensorSpec> shapes) {
  if (feeder_ != nullptr) return AlreadyExists("init_once was called before: the holder has its queue");
  if (capacity < 1) return InvalidConfig("a queue's capacity must be at least 1; 0");
  if (capacity > kMostCapacity) {
    return InvalidConfig("a queue's capacity must be at most " + std::to_string(kMostCapacity) + "; " +
                         std::to_string(capacity));
  }
  if (shapes.empty()) return InvalidConfig("a queue needs the shape of at least one array");
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string where = "array " + std::to_string(i) + " of the queue: ";
    if (shapes[i].dims.too_many()) return InvalidConfig(where + "a tensor has at most 8 axes");
    for (const int64_t size : shapes[i].dims.sizes()) {
      if (size < -1) return InvalidConfig(where + "a size is -1 (any) or not negative; " + std::to_string(size));
    }
  }
  // Only the holder can call the constructor.
  feeder_ = std::shared_ptr<PyArrayFeedQueue>(new PyArrayFeedQueue(capacity, std::move(shapes)));
  return Status::Ok();
}

}  // namespace millrace
