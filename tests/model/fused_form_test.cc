// A model in the form that is trained (ModelForm::kFused) against what fusion makes of the same in Paddle's operators:
// the operators must be equal one by one, so that what is learned is.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "job_files.h"
#include "program/block_builder.h"
#include "runtime/executable.h"

namespace millrace {
namespace {

CompiledModel Compile(const ModelDesc& model, ModelForm form) {
  std::vector<ConfigMistake> mistakes;
  Result<CompiledModel> compiled =
      CompileModel(model, ClickSlots(), BuiltinOps(), ModelParts::Builtin(), form, &mistakes);
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  return std::move(compiled).value();
}

/// Without roles, which nothing that is run looks at, and with the parts of a sum numbered as they come.
std::vector<std::string> Shown(const OpList& ops) {
  std::map<std::string, std::string> parts;
  const auto renumber = [&parts](auto* bindings) {
    for (OpDesc::Var& binding : *bindings) {
      for (std::string& name : *binding.mutable_arguments()) {
        if (name.find("@RENAME") != std::string::npos) {
          name = parts.emplace(name, "part " + std::to_string(parts.size())).first->second;
        }
      }
    }
  };
  std::vector<std::string> shown;
  for (OpDesc op : ops) {
    auto* attrs = op.mutable_attrs();
    attrs->erase(
        std::remove_if(attrs->begin(), attrs->end(), [](const auto& attr) { return attr.name() == "op_role"; }),
        attrs->end());
    renumber(op.mutable_outputs());
    renumber(op.mutable_inputs());
    shown.push_back(op.ShortDebugString());
  }
  return shown;
}

std::vector<std::string> Fused(const ProgramDesc& program, std::vector<std::string> fetches, bool forward_only) {
  CompileOptions options;
  options.fetches = std::move(fetches);
  options.forward_only = forward_only;
  const auto executable = Executable::Compile(program, BuiltinOps(), options);
  EXPECT_TRUE(executable.ok()) << executable.status().ToString();
  return executable.ok() ? Shown((*executable)->ops()) : std::vector<std::string>();
}

int Pools(const ProgramDesc& program) {
  const auto& ops = program.blocks(0).ops();
  const auto is_pool = [](const OpDesc& op) { return op.type() == "fused_slots_pool"; };
  return static_cast<int>(std::count_if(ops.begin(), ops.end(), is_pool));
}

void ExpectSame(const ModelDesc& desc, int pools) {
  const CompiledModel paddle = Compile(desc, ModelForm::kPaddle);
  const CompiledModel fused = Compile(desc, ModelForm::kFused);
  EXPECT_EQ(Pools(paddle.main), 0);
  EXPECT_EQ(Pools(fused.main), pools);
  EXPECT_EQ(Fused(fused.main, {fused.loss, fused.prediction}, false),
            Fused(paddle.main, {paddle.loss, paddle.prediction}, false));
  EXPECT_EQ(Fused(fused.test, {fused.prediction}, true), Fused(paddle.test, {paddle.prediction}, true));
  EXPECT_EQ(fused.startup.DebugString(), paddle.startup.DebugString());
  EXPECT_EQ(fused.feeds, paddle.feeds);
  EXPECT_EQ(fused.prediction, paddle.prediction);

  const CompiledModel forward = Compile(desc, ModelForm::kPaddleForward);
  EXPECT_EQ(forward.test.DebugString(), paddle.test.DebugString());
  EXPECT_EQ(forward.main.blocks_size(), 0);
}

class FusedFormOfConfigs : public ::testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(FusedFormOfConfigs, IsWhatFusionMakes) { ExpectSame(ReadJob(GetParam().first).model(), GetParam().second); }

INSTANTIATE_TEST_SUITE_P(Configs, FusedFormOfConfigs,
                         ::testing::Values(std::pair("lr", 1), std::pair("fm", 2), std::pair("deepfm", 2),
                                           std::pair("dcn", 1), std::pair("wide_deep", 2)),
                         [](const auto& job) { return std::string(job.param.first); });

struct FusedFormCase {
  const char* name;
  const char* layers;  ///< the last is "y"
  int pools;           ///< layers that are one operator from the start
};

class FusedForm : public ::testing::TestWithParam<FusedFormCase> {};

constexpr const char* kFormTables =
    "table { name: 't' dim: 4 } table { name: 'own' dim: 4 key: SLOT_AND_ID } "
    "table { name: 'rows' dim: 2 vocabulary: 1001 padding_idx: 0 out_of_range: MODULO } ";

TEST_P(FusedForm, IsWhatFusionMakes) {
  ModelDesc desc;
  const std::string text = std::string(kFormTables) + GetParam().layers +
                           " loss { kind: SIGMOID_CROSS_ENTROPY in: 'y' label: 'label' } optimizer { adagrad {} }";
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &desc)) << text;
  ExpectSame(desc, GetParam().pools);
}

const FusedFormCase kFusedForms[] = {
    {"TwoLayersOfATable",
     "layer { name: 'a' embedding { slots: 'C1..C3' table: 't' } } "
     "layer { name: 'b' embedding { slots: 'C2..C5' table: 't' pool: SQRT } } "
     "layer { name: 'y' fc { in: ['a', 'dense', 'b'] units: 1 } }",
     2},
    {"JoinedWithADenseSlot",
     "layer { name: 'a' embedding { slots: 'C1..C3' table: 'own' } } "
     "layer { name: 'b' embedding { slots: 'C4' table: 't' } } "
     "layer { name: 'c' embedding { slots: 'C5..C6' table: 't' } } "
     "layer { name: 'y' fc { in: ['a', 'b', 'dense', 'c'] units: [4, 1] act: RELU } }",
     2},
    {"OfAMatrix",
     "layer { name: 'a' embedding { slots: 'C1..C3' table: 'rows' pool: AVERAGE } } "
     "layer { name: 'y' fc { in: 'a' units: 1 } }",
     1},
    {"ReadTwice",
     "layer { name: 'a' embedding { slots: 'C1..C3' table: 't' } } "
     "layer { name: 'f' fm { in: 'a' } } layer { name: 'd' fc { in: 'a' units: 1 } } "
     "layer { name: 'y' add { in: ['f', 'd'] } }",
     1},
    {"ThatNothingReads",
     "layer { name: 'a' embedding { slots: 'C1..C3' table: 't' } } layer { name: 'y' fc { in: 'dense' units: 1 } }", 1},
    {"OfTheLargest",
     "layer { name: 'a' embedding { slots: 'C1..C3' table: 't' pool: MAX } } "
     "layer { name: 'y' fc { in: 'a' units: 1 } }",
     0},
    {"OfOneSlot",
     "layer { name: 'a' embedding { slots: 'C1' table: 't' } } layer { name: 'y' fc { in: 'a' units: 1 } }", 0},
    // Variables within "a" could be called as those of the other layer are.
    {"WithTheNameOfAnother",
     "layer { name: 'a' embedding { slots: 'C1..C2' table: 't' } } "
     "layer { name: 'a.b' embedding { slots: 'C3..C4' table: 't' } } "
     "layer { name: 'y' fc { in: ['a', 'a.b'] units: 1 } }",
     0},
    {"WithTheNameOfALongerOne",
     "layer { name: 'a' embedding { slots: 'C1..C2' table: 't' } } "
     "layer { name: 'ab' embedding { slots: 'C3..C4' table: 't' } } "
     "layer { name: 'y' fc { in: ['a', 'ab'] units: 1 } }",
     2},
};

INSTANTIATE_TEST_SUITE_P(Models, FusedForm, ::testing::ValuesIn(kFusedForms),
                         [](const auto& model) { return std::string(model.param.name); });

// An operator weighs a few kilobytes and microseconds, and a model may have a hundred thousand slots.
TEST(FusedFormTest, HasAVariableForEachSlotAndNoOperator) {
  const auto compile = [](const char* slots) {
    ModelDesc desc = ReadJob("wide_deep").model();
    for (LayerDesc& layer : *desc.mutable_layer()) {
      if (layer.has_embedding()) layer.mutable_embedding()->set_slots(0, slots);
    }
    return Compile(desc, ModelForm::kFused);
  };
  const CompiledModel few = compile("C1..C2");
  const CompiledModel many = compile("C1..C26");
  EXPECT_EQ(many.main.blocks(0).ops_size(), few.main.blocks(0).ops_size());
  EXPECT_EQ(many.main.blocks(0).vars_size(), few.main.blocks(0).vars_size() + 24);
  EXPECT_EQ(many.test.blocks(0).ops_size(), few.test.blocks(0).ops_size());
}

}  // namespace
}  // namespace millrace
