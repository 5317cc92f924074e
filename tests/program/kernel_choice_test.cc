#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/op_registry.h"
#include "runtime/op_kernel.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

/// A kernel that tells which one it is by failing.
template <int kNumber>
class Numbered {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext&) { return Internal(std::to_string(kNumber)); }
};

OpBuilder AddSame(OpRegistry& registry) {
  return registry.Add("same")
      .Doc("Out = X.")
      .Input("X", "")
      .OptionalInput("Y", "")
      .Output("Out", "")
      .InferShape(SameAsX);
}

/// The number of the kernel for X and Out of these types, or why there is none.
std::string Chosen(const OpRegistry& registry, DType x, DType out, std::string_view device = kCpu) {
  OpDesc op;
  op.set_type("same");
  SetInput(op, "X", {"x"});
  SetOutput(op, "Out", {"out"});
  VarMetas vars;
  vars["x"].dtype = x;
  vars["out"].dtype = out;
  const OpView view(op, *registry.Find("same"));
  const Result<const KernelInfo*> chosen = ChooseKernel(view, vars, device);
  if (!chosen.ok()) return chosen.status().message();
  Scope scope;
  const FrameOptions options;
  KernelContext context(view, scope, options);
  return (*chosen)->create(context).status().message();
}

KernelFor On(const std::string& device, std::vector<ArgTypes> types) { return {device, std::move(types)}; }

const std::vector<DType> kFloats = {DType::kFloat32, DType::kFloat64};
const std::vector<DType> kWhole = {DType::kInt64};

TEST(KernelChoice, IsByDeviceAndTypes) {
  OpRegistry registry;
  AddSame(registry)
      .Kernel<Numbered<1>>({.types = {{"X", kFloats}}})
      .Kernel<Numbered<2>>({.types = {{"X", kWhole}, {"Out", kWhole}}})
      .Kernel<Numbered<3>>({.types = {{"X", kWhole}, {"Out", kFloats}}})
      .Kernel<Numbered<4>>(On("gpu", {}));
  ASSERT_TRUE(registry.Seal().ok()) << registry.Seal().message();
  EXPECT_EQ(Chosen(registry, DType::kFloat32, DType::kInt8), "1");
  EXPECT_EQ(Chosen(registry, DType::kFloat64, DType::kFloat64), "1");
  EXPECT_EQ(Chosen(registry, DType::kInt64, DType::kInt64), "2");
  EXPECT_EQ(Chosen(registry, DType::kInt64, DType::kFloat32), "3");
  EXPECT_EQ(Chosen(registry, DType::kInt8, DType::kInt8, "gpu"), "4");
}

TEST(KernelChoice, SaysWhatThereIsNoKernelFor) {
  OpRegistry registry;
  AddSame(registry)
      .Kernel<Numbered<1>>({.types = {{"X", kFloats}, {"Out", kWhole}}})
      .Kernel<Numbered<2>>(On("gpu", {}));
  const std::string known = "; there are kernels for device \"cpu\", X float32 or float64, Out int64; device \"gpu\"";
  EXPECT_EQ(Chosen(registry, DType::kInt8, DType::kInt64),
            "there is no kernel for device \"cpu\", X int8, Out int64" + known);
  EXPECT_EQ(Chosen(registry, DType::kInt8, DType::kInt64, "far"), "there is no kernel for device \"far\"" + known);
}

// The predicate of an optional argument is for programs that bind it.
TEST(KernelChoice, AnArgumentThatIsNotBoundHasNoType) {
  OpRegistry registry;
  AddSame(registry).Kernel<Numbered<1>>({.types = {{"Y", kFloats}}});
  EXPECT_THAT(Chosen(registry, DType::kFloat32, DType::kFloat32), HasSubstr("there is no kernel for device \"cpu\";"));
}

TEST(KernelChoice, TwoKernelsForOneProgramAreRefused) {
  OpRegistry registry;
  AddSame(registry)
      .Kernel<Numbered<1>>({.types = {{"X", kFloats}}})
      .Kernel<Numbered<2>>({.types = {{"Out", kWhole}}})
      .Kernel<Numbered<3>>({.types = {{"Z", kWhole}}})
      .Kernel<Numbered<4>>({.types = {{"X", {}}}});
  EXPECT_EQ(registry.Seal().message(),
            "operator \"same\" has two kernels for one program: device \"cpu\", X float32 or float64; and device "
            "\"cpu\", Out int64\n"
            "operator \"same\" has a kernel for types of \"Z\", which is no argument of it\n"
            "operator \"same\" has a kernel for no type of \"X\"");
}

TEST(KernelChoice, ADeviceAddsItsKernelsToOperatorsThatAreThere) {
  OpRegistry registry;
  AddSame(registry).Kernel<Numbered<1>>();
  const KernelFactory create = Numbered<2>::Create;
  EXPECT_TRUE(registry.AddKernel("same", {On("gpu", {}), create}).ok());
  EXPECT_EQ(Chosen(registry, DType::kInt8, DType::kInt8, "gpu"), "2");
  EXPECT_EQ(registry.AddKernel("same", {On("gpu", {{"X", kWhole}}), create}).message(),
            "operator \"same\" has two kernels for one program: device \"gpu\"; and device \"gpu\", X int64");
  EXPECT_EQ(registry.Find("same")->kernels.size(), 2U);
  EXPECT_EQ(registry.AddKernel("other", {On("gpu", {}), create}).message(),
            "there is no operator \"other\" to add a kernel to");
}

}  // namespace
}  // namespace millrace
