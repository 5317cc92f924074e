// The tests of the plugins beside it: a plugin that brings nothing and returns the first difference.
//   inspect plugin build/own_plugins_test.so

#include "model/lowering.h"
#include "plugin/plugin.h"
#include "plugin/test_kit.h"

namespace {

using namespace millrace;

Status TestEsmm(const TestKit& kit) {
  const TestKit::Tensors inputs = {{"click_logit", {{2, 1}, {0, 1.0986123F}}},
                                   {"buy_logit", {{2, 1}, {0, 0}}},
                                   {"bought", {{2, 1}, {1, 0}}},
                                   {"clicked", {{2, 1}, {1, 1}}}};
  LossDesc loss;
  loss.set_class_name("Esmm");
  for (const char* in : {"click_logit", "buy_logit", "bought"}) loss.add_in(in);
  loss.set_label("clicked");
  MR_ASSIGN(const std::vector<OpDesc> ops, kit.LossOps(loss, inputs));
  MR_TRY(kit.ExpectValues(ops, inputs, "prediction.ctcvr", {{2, 1}, {0.25F, 0.375F}}));
  // -log 0.5 - log 0.25, and -log 0.75 - log (1 - 0.375).
  MR_TRY(kit.ExpectValues(ops, inputs, "loss.each", {{2, 1}, {2.0794415F, 0.7576857F}}));
  return kit.ExpectGradients(ops, inputs, {"click_logit", "buy_logit"}, "loss.each");
}

Status TestKeyValueFeed(const TestKit& kit) {
  const std::string desc = R"(name: "KeyValueFeed" batch_size: 2 multi_slot_desc {
      slots { name: "click" type: "float" is_used: true is_dense: true shape: [-1, 1] }
      slots { name: "user" type: "uint64" is_used: true } })";
  MR_ASSIGN(const std::string rows, kit.FeedRows(desc, {"user=7 click=1", "click=0.5 item=3 user=5,9"}));
  const std::string expected = R"({"batch":0,"rows":2,"slots":{"click":{"shape":[2,1],"values":[1,0.5]},)"
                               R"("user":{"shape":[3,1],"lod":[0,1,3],"values":[7,5,9]}}})";
  if (rows != expected) return BadData("KeyValueFeed gave " + rows + "\n  expected          " + expected);
  const Status bad = kit.FeedRows(desc, {"user=7 click=1", "click=yes"}).status();
  const std::string message = "line 2: slot \"click\": expected a number, found \"yes\"";
  return bad.message() == message ? Status::Ok() : BadData("KeyValueFeed said: " + bad.message());
}

}  // namespace

MILLRACE_PLUGIN(Registries&) {
  const std::string folder = PLUGIN_FOLDER;
  MR_ASSIGN(const TestKit kit, TestKit::Create({folder + "/esmm_loss.so", folder + "/key_value_feed.so"}));
  MR_TRY(TestEsmm(kit).Context("Esmm"));
  return TestKeyValueFeed(kit);
}
