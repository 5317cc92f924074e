#include "plugin/plugin_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/builtin_ops.h"
#include "plugin/test_plugins.h"
#include "runtime/op_kernel.h"

namespace millrace {
namespace {

using testing::HasSubstr;

/// The registries of a program, as few as a test needs.
class PluginLoaderTest : public testing::Test {
 protected:
  PluginLoaderTest() {
    feeds_ = DataFeedFactory::Builtin();
    RegisterBuiltinOps(ops_);
  }

  Status Load(const std::string& name) { return LoadPlugin(TestPlugin(name), &registries_); }
  /// The failure of a plugin that is refused, after its path.
  std::string Refusal(const std::string& name) {
    const size_t ops = ops_.all().size();
    const size_t feeds = feeds_.names().size();
    const Status status = Load(name);
    EXPECT_EQ(status.code(), StatusCode::kInvalidConfig) << status.ToString();
    EXPECT_EQ(ops_.all().size(), ops) << "a plugin that was refused left operators behind";
    EXPECT_EQ(feeds_.names().size(), feeds);
    const std::string start = "plugin \"" + TestPlugin(name) + "\": ";
    EXPECT_EQ(status.message().substr(0, start.size()), start);
    return status.message().substr(std::min(start.size(), status.message().size()));
  }

  /// Runs one operator in `scope`; the values of its output.
  const float* RunOp(const OpDesc& op, const std::string& output, Scope& scope) {
    scope.Var(output);
    const FrameOptions options;
    const OpView view(op, *ops_.Find(op.type()));
    KernelContext context(view, scope, options);
    const std::unique_ptr<OpKernel> kernel = view.info().kernels[0].create(context).value();
    EXPECT_TRUE(kernel->Run({}).ok());
    return scope.Find(output)->Get<Tensor>().data<float>();
  }

  Registries registries_;
  OpRegistry& ops_ = registries_.ops;
  DataFeedFactory& feeds_ = registries_.feeds;
  ReaderRegistry& readers_ = registries_.readers;
};

TEST_F(PluginLoaderTest, AddsTheOperatorsOfAPluginWhichRememberIt) {
  ASSERT_TRUE(Load("soft_clip").ok());
  ASSERT_TRUE(ops_.Seal().ok());
  const OpInfo* info = ops_.Find("soft_clip");
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->plugin, TestPlugin("soft_clip"));
  EXPECT_EQ(info->attrs.at(0).name, "limit");
  EXPECT_EQ(ops_.Find("relu")->plugin, "");
}

constexpr char kNothingIsReplaced[] =
    "\n  nothing is replaced: give what is new a name of its own, or leave this plugin out";

TEST_F(PluginLoaderTest, ASecondLoadFindsTheNamesTaken) {
  ASSERT_TRUE(Load("soft_clip").ok());
  EXPECT_EQ(Refusal("soft_clip"), "operator \"soft_clip\" exists already, from plugin \"" + TestPlugin("soft_clip") +
                                      "\"\noperator \"soft_clip_grad\" exists already, from plugin \"" +
                                      TestPlugin("soft_clip") + "\"" + kNothingIsReplaced);
}

TEST_F(PluginLoaderTest, TheOperatorOfAPluginRunsAndItsGradientIsRight) {
  ASSERT_TRUE(Load("soft_clip").ok());
  constexpr int64_t kCount = 5;
  Scope scope;
  const auto fill = [&](const char* name, float first, float step) {
    float* values = scope.Var(name)->GetMutable<Tensor>()->Resize<float>({kCount});
    for (int64_t i = 0; i < kCount; ++i) values[i] = first + step * static_cast<float>(i);
  };
  fill("x", -2, 0.9F);
  fill("out@GRAD", 1, 0.5F);
  const float* x = scope.Find("x")->Get<Tensor>().data<float>();
  const float* out_grad = scope.Find("out@GRAD")->Get<Tensor>().data<float>();

  OpDesc op;
  op.set_type("soft_clip");
  SetInput(op, "X", {"x"});
  SetOutput(op, "Out", {"out"});
  SetAttr(op, "limit", 1.5F);
  const float* out = RunOp(op, "out", scope);
  OpDesc grad = op;
  grad.set_type("soft_clip_grad");
  grad.clear_outputs();
  SetInput(grad, "Out@GRAD", {"out@GRAD"});
  SetOutput(grad, "X@GRAD", {"x@GRAD"});
  const float* x_grad = RunOp(grad, "x@GRAD", scope);
  const auto clip = [](double v) { return 1.5 * std::tanh(v / 1.5); };
  for (int64_t i = 0; i < kCount; ++i) {
    EXPECT_NEAR(out[i], clip(x[i]), 1e-6);
    const double slope = (clip(x[i] + 1e-4) - clip(x[i] - 1e-4)) / 2e-4;
    EXPECT_NEAR(x_grad[i], out_grad[i] * slope, 1e-5);
  }
}

TEST_F(PluginLoaderTest, TakesOverThePartsOfModelsOrRefusesThemTwice) {
  ASSERT_TRUE(Load("own_model").ok());
  EXPECT_EQ(registries_.metrics.Find("SEPARATION")->better, MetricBetter::kHigher);
  EXPECT_NE(registries_.layers.Find("Gate"), nullptr);
  EXPECT_NE(registries_.losses.Find("TwinLoss"), nullptr);
  EXPECT_NE(registries_.initializers.Find("Alternating"), nullptr);
  EXPECT_NE(registries_.tables.Find("HalvedTable"), nullptr);
  EXPECT_EQ(Refusal("own_model"),
            std::string("a table of the class \"HalvedTable\" is registered already") + kNothingIsReplaced);
}

TEST_F(PluginLoaderTest, RefusesNamesThatAreTaken) {
  EXPECT_EQ(Refusal("takes_a_name"),
            "operator \"brand_new\" is registered twice\n"
            "operator \"brand_new\" has no kernel\n"
            "operator \"relu\" has no kernel\n"
            "operator \"relu\" exists already" +
                std::string(kNothingIsReplaced));
}

TEST_F(PluginLoaderTest, APluginThatFailsIsRefusedWithItsWords) {
  EXPECT_EQ(Refusal("fails"), "no device on this machine");
}

TEST_F(PluginLoaderTest, ANameThatATerminalWouldObeyIsRefused) {
  EXPECT_EQ(Refusal("escaping_name"),
            "the name of operator \"clip\\x1b[2J\" has control characters, or bytes that are no UTF-8: "
            "\"clip\\x1b[2J\"");
}

TEST_F(PluginLoaderTest, RefusesAMetricThatWouldBePrintedAsAnother) {
  ASSERT_TRUE(RegisterBuiltinMetrics(registries_.metrics).ok());
  EXPECT_EQ(Refusal("printed_twice"),
            std::string("a metric of the kind \"Auc\" is printed as \"auc\", as \"AUC\" is") + kNothingIsReplaced);
}

TEST_F(PluginLoaderTest, WhatAPluginSaysOfItsVersionIsKept) {
  ASSERT_TRUE(Load("pairs").ok());
  ASSERT_TRUE(Load("soft_clip").ok());
  ASSERT_NE(feeds_.PluginOf("PairFeed"), nullptr);
  EXPECT_EQ(feeds_.PluginOf("PairFeed")->path, TestPlugin("pairs"));
  EXPECT_EQ(feeds_.PluginOf("PairFeed")->version, "1.2");
  EXPECT_EQ(feeds_.PluginOf("MultiSlotDataFeed"), nullptr);
  EXPECT_EQ(ops_.Find("soft_clip")->plugin_version, "") << "which says nothing";
}

TEST_F(PluginLoaderTest, WhatAFileFormatThrowsIsAFailureOfTheFile) {
  ASSERT_TRUE(Load("throwing_reader").ok());
  EXPECT_EQ(readers_.entries().back().value.plugin, TestPlugin("throwing_reader"));
  ASSERT_NE(feeds_.PluginOf("throwing"), nullptr) << "which serves datasets as well";
  EXPECT_EQ(feeds_.PluginOf("throwing")->path, TestPlugin("throwing_reader"));
  const std::string threw = ": plugin \"" + TestPlugin("throwing_reader") + "\" threw ";
  EXPECT_EQ(readers_.Open("open.throwing", "", {}).status().message(),
            "open.throwing" + threw + "std::runtime_error: thrown by an open");
  EXPECT_EQ(readers_.Open("none.throwing", "", {}).status().message(),
            "none.throwing: plugin \"" + TestPlugin("throwing_reader") + "\" made no reader");
  std::vector<LoDTensor> out;
  const auto reader = readers_.Open("read.throwing", "", {}).value();
  EXPECT_EQ(reader->ReadNext(&out, {}).status().message(),
            "read.throwing" + threw + "std::runtime_error: thrown by a read");
  EXPECT_EQ(reader->ReInit().message(), "read.throwing" + threw + "what is no std::exception");
}

TEST_F(PluginLoaderTest, ACopyOfARegistryHasWhatItHad) {
  ASSERT_TRUE(Load("soft_clip").ok());
  Registries copy;
  copy.ops = ops_.Copy();
  EXPECT_EQ(copy.ops.all().size(), ops_.all().size());
  EXPECT_NE(copy.ops.Find("soft_clip"), ops_.Find("soft_clip"));
  EXPECT_EQ(copy.ops.Find("soft_clip")->plugin, TestPlugin("soft_clip"));
  ASSERT_TRUE(LoadPlugin(TestPlugin("throwing_op"), &copy).ok());
  EXPECT_EQ(ops_.Find("throwing"), nullptr);
}

TEST_F(PluginLoaderTest, RefusesAPluginOfAnotherBuildWithBothTagsBeforeItsCodeRuns) {
  EXPECT_EQ(Refusal("wrong_abi"),
            "it was built for another program:\n"
            "  built as      \"millrace plugin, C++: g++ 9.4.0, libstdc++ 9 (20210601), protobuf 3006001, millrace "
            "0.0.9\"\n"
            "  needed here   \"" +
                std::string(CppPluginTag()) +
                "\"\n"
                "  build it again with this Millrace's headers and compiler");
}

TEST_F(PluginLoaderTest, NamesTheSymbolThatIsMissing) {
  EXPECT_EQ(Refusal("missing_symbol"),
            "it cannot be loaded: it needs \"millrace::RegisterOpsOfTomorrow(millrace::OpRegistry&, int)\", which "
            "neither it nor its libraries nor this program has (undefined symbol "
            "_ZN8millrace21RegisterOpsOfTomorrowERNS_10OpRegistryEi)");
}

TEST_F(PluginLoaderTest, ReportsWhatAPluginThrows) {
  EXPECT_EQ(Refusal("throws"), "while it registered it threw std::runtime_error: no licence found");
}

TEST_F(PluginLoaderTest, ReportsWhatTheConstructorsOfAPluginThrow) {
  EXPECT_EQ(Refusal("throws_at_load"), "while it was loaded it threw std::runtime_error: no device found");
}

TEST_F(PluginLoaderTest, RefusesWhatIsNoPlugin) {
  EXPECT_EQ(
      Refusal("no_plugin"),
      "it is no plugin of Millrace: it exports no millrace_plugin_tag, which MILLRACE_PLUGIN and MILLRACE_C_PLUGIN "
      "define");
  EXPECT_EQ(Refusal("no_register"),
            "it exports no millrace_plugin_register, which MILLRACE_PLUGIN in plugin/plugin.h defines");
  const Status missing = Load("not_there");
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr("not_there.so"));
}

}  // namespace
}  // namespace millrace
