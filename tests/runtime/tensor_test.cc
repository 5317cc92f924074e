#include "runtime/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "far_device.h"
#include "runtime/scope.h"
#include "runtime/transfer.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

uintptr_t Address(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }

/// What an exception of type E says that `call` throws.
template <class E, class Call>
std::string Thrown(Call call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::vector<float> FloatsOf(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
}

TEST(TensorTest, KeepsItsMemoryAndGrowsByHalf) {
  Tensor tensor;
  EXPECT_TRUE(tensor.empty());
  float* const first = tensor.Resize<float>({100});
  EXPECT_EQ(Address(first) % 64, 0U);
  EXPECT_EQ(tensor.Resize<float>({3}), first);
  EXPECT_EQ(static_cast<void*>(tensor.Resize<int64_t>({50})), first);
  tensor.Resize<float>({120});
  float* const grown = tensor.Resize<float>({130});
  EXPECT_EQ(tensor.Resize<float>({150}), grown);
}

TEST(TensorTest, AsksForHugePagesFromFourMebibytes) {
  Tensor tensor;
  EXPECT_EQ(Address(tensor.Resize<float>({1 << 20})) % (2 << 20), 0U);
  const Allocator::Block small = Cpu().memory().Allocate((4 << 20) - 64);
  EXPECT_EQ(small.bytes, size_t{4 << 20} - 64);
  Cpu().memory().Free(small);
  const Allocator::Block large = Cpu().memory().Allocate((4 << 20) + 1);
  EXPECT_EQ(large.bytes, size_t{6 << 20});
  Cpu().memory().Free(large);
}

TEST(TensorTest, SaysWhatThereIsNoMemoryForAndKeepsWhatItHas) {
  FarDevice far;
  far.set_most_bytes(1 << 20);
  Tensor tensor(far);
  tensor.ResizeRaw(DType::kFloat32, {2, 3});
  const void* const before = tensor.raw_data();
  const std::string said = Thrown<NoMemory>([&] { tensor.ResizeRaw(DType::kFloat64, {1 << 20}); });
  EXPECT_EQ(said, "no memory for a tensor of float64 [1048576]");
  EXPECT_EQ(tensor.raw_data(), before);
  EXPECT_EQ(tensor.dims(), Dims({2, 3}));
  EXPECT_EQ(far.live_blocks(), 1);
}

TEST(TensorTest, GivesItsMemoryBackToTheDeviceThatItCameFrom) {
  const FarDevice far;
  {
    Tensor one(far);
    one.ResizeRaw(DType::kFloat32, {4});
    Tensor other(std::move(one));
    other.ResizeRaw(DType::kFloat32, {5000});
    Tensor host;
    host.Resize<float>({4});
    EXPECT_EQ(far.live_blocks(), 1);
    other = std::move(host);
    EXPECT_EQ(far.live_blocks(), 0);
    EXPECT_TRUE(other.is_on_host());
  }
  EXPECT_EQ(far.live_blocks(), 0);
}

TEST(TensorTest, RefusesTheHostWhatLiesOnADevice) {
  const FarDevice far;
  Tensor tensor(far);
  tensor.ResizeRaw(DType::kFloat32, {4});
  EXPECT_FALSE(tensor.is_on_host());
  const std::string refusal = "a tensor in the memory of device \"far\" was taken for one in that of \"cpu\"";
  EXPECT_EQ(Thrown<std::invalid_argument>([&] { tensor.data<float>(); }), refusal);
  EXPECT_EQ(Thrown<std::invalid_argument>([&] { tensor.mutable_data<float>(); }), refusal);
  EXPECT_EQ(Thrown<std::invalid_argument>([&] { tensor.Resize<float>({4}); }), refusal);
  Tensor view;
  EXPECT_EQ(Thrown<std::invalid_argument>([&] { view.ViewOf(tensor, {2, 2}); }), refusal);
  EXPECT_DEATH(static_cast<void>(*static_cast<const volatile float*>(tensor.raw_data())), "");
}

TEST(TransferTest, CopiesTypeSizesOffsetsAndValuesBothWays) {
  const FarDevice far;
  const std::vector<uint32_t> offsets = {0, 1, 3};
  Tensor from;
  float* const values = from.Resize<float>({3, 2});
  std::iota(values, values + 6, 1.0F);
  from.set_lod(offsets);
  Tensor there(far);
  ASSERT_TRUE(CopyFromHost(from, &there).ok());
  EXPECT_EQ(there.dims(), from.dims());
  EXPECT_THAT(there.lod(), ElementsAre(0, 1, 3));
  Tensor back;
  ASSERT_TRUE(CopyToHost(there, &back).ok());
  EXPECT_EQ(back.dims(), from.dims());
  EXPECT_THAT(back.lod(), ElementsAre(0, 1, 3));
  EXPECT_EQ(FloatsOf(back), FloatsOf(from));
  EXPECT_EQ(far.copies_from_host(), 1);
  EXPECT_EQ(far.copies_to_host(), 1);
}

TEST(TransferTest, LeavesATensorWithoutAValueAlone) {
  const FarDevice far;
  Tensor there(far);
  ASSERT_TRUE(CopyFromHost(Tensor(), &there).ok());
  EXPECT_TRUE(there.empty());
  Tensor none;
  none.View(DType::kInt64, {0, 1}, nullptr);
  ASSERT_TRUE(CopyFromHost(none, &there).ok());
  EXPECT_EQ(there.dims(), Dims({0, 1}));
  HostView view;
  EXPECT_TRUE(view.Of(Tensor(far)).value()->empty());
}

TEST(TransferTest, CopiesInTheStreamsTurn) {
  const FarDevice far;
  const std::unique_ptr<Stream> stream = far.MakeStream();
  Tensor from;
  *from.Resize<float>({1}) = 1;
  Tensor there(far);
  ASSERT_TRUE(CopyFromHost(from, &there, stream.get()).ok());
  *from.mutable_data<float>() = 2;
  ASSERT_TRUE(stream->Synchronize().ok());
  HostView view;
  EXPECT_THAT(FloatsOf(*view.Of(there).value()), ElementsAre(2));
}

TEST(HostViewTest, ShowsTheTensorItselfWhereTheHostReadsIt) {
  const FarDevice far;
  Tensor here;
  here.Resize<float>({2})[0] = 1;
  HostView view;
  EXPECT_EQ(view.Of(here).value(), &here);
  Tensor there(far);
  ASSERT_TRUE(CopyFromHost(here, &there).ok());
  const Tensor* const shown = view.Of(there).value();
  EXPECT_EQ(*shown->data<float>(), 1);
  EXPECT_EQ(far.copies_to_host_memory(), 1);
  EXPECT_EQ(view.Of(there).value()->raw_data(), shown->raw_data());
}

TEST(ScopeTest, MakesWhatLiesOnADeviceThere) {
  const FarDevice far;
  Scope root(far);
  Scope child(&root);
  EXPECT_EQ(&child.Var("x")->GetMutable<Tensor>()->device(), &far);
  EXPECT_EQ(&child.Var("rows")->GetMutable<SelectedRows>()->values.device(), &far);
  *child.Var("number")->GetMutable<int>() = 3;
  EXPECT_EQ(&Scope().Var("x")->GetMutable<Tensor>()->device(), &Cpu());
}

}  // namespace
}  // namespace millrace
