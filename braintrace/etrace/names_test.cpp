// SPDX-License-Identifier: Apache-2.0
// Every public name of the reference's compiler, with the values it stands for.
#include <doctest/doctest.h>

#include "braintrace/etrace/scan_descent.h"
#include "braintrace/nn/nn.h"
#include "braintrace/testing/micro_model.h"

namespace names_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

// zz is read first, aa is declared first: retrieved and compiled order differ.
std::unique_ptr<MicroModel> two_states() {
  auto m = std::make_unique<MicroModel>([](MicroModel& s, Value x) {
    const Value z = s.h("zz"), a = s.h("aa"), w = s.w();
    s.set("aa", 0.5 * a + matmul(x, 3.0 * w));
    s.set("zz", 0.9 * z + s.h("aa"));
    s.other("t").set(s.other("t").value() + 1.0);
    return s.h("zz");
  });
  m->hidden("aa", {4}).hidden("zz", {4}).param("w", {4, 4}).dynamic("t", {});
  return m;
}

ModuleInfo info_of(MicroModel& m) {
  init_all_states(m, {.dtype = DType::f64});
  return extract_module_info(m, {ones({4}, DType::f64)});
}

}  // namespace

TEST_CASE("module info: states, retrieved and compiled") {
  const auto m = two_states();
  const ModuleInfo info = info_of(*m);
  std::vector<Path> retrieved, compiled;
  for (const NamedState& s : info.retrieved_model_states()) retrieved.push_back(s.path);
  for (const State* s : info.compiled_model_states())
    compiled.push_back(info.state_id_to_path().at(s));
  CHECK(retrieved == std::vector<Path>{Path{"aa"}, Path{"t"}, Path{"w"}, Path{"zz"}});
  CHECK(compiled == std::vector<Path>{Path{"zz"}, Path{"aa"}, Path{"w"}, Path{"t"}});
  CHECK(&info.stateful_model() == &info.step);
  CHECK(&info.closed_jaxpr() == &info.jaxpr());
  CHECK(info.control_flow == ControlFlowPolicy{});
  CHECK(info.num_var_out == 1);
  CHECK(info.num_var_state == 4);
}

TEST_CASE("module info: values of states at step entry and exit") {
  const auto m = two_states();
  const ModuleInfo info = info_of(*m);
  const auto inputs = info.jaxpr().inputs(), outputs = info.jaxpr().outputs();
  // [argument | zz aa w t] -> [output | zz aa w t]
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(info.state_tree_invars()[k] == std::vector{inputs[1 + k]});
    CHECK(info.state_tree_outvars()[k] == std::vector{outputs[1 + k]});
  }
  CHECK(info.hidden_path_to_invar() ==
        std::map<Path, ValueId>{{Path{"zz"}, inputs[1]}, {Path{"aa"}, inputs[2]}});
  CHECK(info.hidden_path_to_outvar() ==
        std::map<Path, ValueId>{{Path{"zz"}, outputs[1]}, {Path{"aa"}, outputs[2]}});
  for (const auto& [path, v] : info.hidden_path_to_invar())
    CHECK(info.invar_to_hidden_path().at(v) == path);
  for (const auto& [path, v] : info.hidden_path_to_outvar())
    CHECK(info.outvar_to_hidden_path().at(v) == path);
  CHECK(info.hidden_outvar_to_invar() ==
        std::vector<std::pair<ValueId, ValueId>>{{outputs[1], inputs[1]},
                                                 {outputs[2], inputs[2]}});
  CHECK(info.weight_invars() == std::vector{inputs[3]});
  const ModuleInfo::StateOutvars split = info.split_state_outvars();
  CHECK(split.hidden == std::vector{outputs[1], outputs[2]});
  CHECK(split.weight == std::vector{outputs[3]});
  CHECK(split.other == std::vector{outputs[4]});
}

TEST_CASE("module info: the leaves of a parameter, bias before weight") {
  nn::Linear layer(3, 2);
  init_all_states(layer);
  const ModuleInfo info = extract_module_info(layer, {ones({3})});
  const auto inputs = info.jaxpr().inputs();
  const Path p{"weight"};
  CHECK(info.weight_path_to_invars().at(p) == std::vector{inputs[1], inputs[2]});
  CHECK(info.jaxpr().type(inputs[1]).shape == Shape{2});
  CHECK(info.jaxpr().type(inputs[2]).shape == Shape{3, 2});
  CHECK(info.invar_to_weight_path() ==
        std::map<ValueId, Path>{{inputs[1], p}, {inputs[2], p}});
}

TEST_CASE("group: its transition under the reference's names") {
  const auto m = two_states();
  const ETraceGraph g = m->compile();
  const HiddenGroup& group = g.group_of(Path{"aa"});
  CHECK(&group.transition_jaxpr() == &group.transition_program);
  CHECK(group.transition_jaxpr_constvars() == group.transition_constants);
  CHECK(group.transition_jaxpr().inputs().size() ==
        group.transition_jaxpr_constvars().size() + 2);
  CHECK(group.transition_jaxpr().outputs().size() == 2);
  CHECK(g.hid_path_to_group.at(Path{"zz"}) == group.index);
}

TEST_CASE("relation: what is known of every trainable input") {
  const auto m = two_states();
  const ETraceGraph g = m->compile();
  REQUIRE(g.hidden_param_op_relations.size() == 1);
  const HiddenParamOpRelation& r = g.hidden_param_op_relations[0];
  const Node& op = g.module_info.jaxpr().nodes()[r.node];
  CHECK(r.x_var() == op.inputs[0]);
  CHECK(r.y_var() == op.outputs[0]);
  CHECK(r.trainable_vars() ==
        HiddenParamOpRelation::ByKey<ValueId>{{"weight", op.inputs[1]}});
  CHECK(r.trainable_paths() == HiddenParamOpRelation::ByKey<Path>{{"weight", Path{"w"}}});
  CHECK(r.trainable_leaf_indices() ==
        HiddenParamOpRelation::ByKey<std::size_t>{{"weight", 0}});
  CHECK(r.trainable_param_states()[0].second ==
        g.module_info.step.find(Path{"w"})->state);
  CHECK(r.trainable_processing_chains() ==
        HiddenParamOpRelation::ByKey<std::vector<std::string>>{{"weight", {"mul"}}});
  CHECK(&r.y_to_hidden_group_jaxprs() == &r.tails);
  CHECK(r.y_to_hidden_group_jaxprs()[0].outputs().size() == 2);
  CHECK(r.hidden_groups(g.hidden_groups)[0]->index == 0);
  CHECK(r.weight_path() == r.path());
}

TEST_CASE("relation: keys in the op's order, leaves in the parameter's") {
  nn::ValinaRNNCell cell(3, 4);
  init_all_states(cell);
  const ETraceGraph g = compile_etrace_graph(cell, {ones({3})});
  REQUIRE(g.hidden_param_op_relations.size() == 1);
  CHECK(g.hidden_param_op_relations[0].trainable_leaf_indices() ==
        HiddenParamOpRelation::ByKey<std::size_t>{{"weight", 1}, {"bias", 0}});
}

TEST_CASE("relation: the static parameters of its op, in a loop too") {
  nn::Conv2d conv({6, 6, 1}, 2, {.kernel_size = 3});
  MicroModel m([&](MicroModel& s, Value x) {
    s.set("h", 0.9 * s.h() + conv(x));
    return s.h();
  });
  m.hidden("h", {6, 6, 2});
  init_all_states(conv, {.dtype = DType::f64});
  const ETraceGraph g = m.compile({}, {6, 6, 1});
  REQUIRE(g.hidden_param_op_relations.size() == 1);
  const HiddenParamOpRelation& r = g.hidden_param_op_relations[0];
  CHECK(&r.eqn_params(g.module_info) == &g.module_info.jaxpr().nodes()[r.node].attrs);
  CHECK(!r.eqn_params(g.module_info).empty());
  const auto other = two_states();
  CHECK_THROWS_WITH_AS(r.eqn_params(info_of(*other)),
                       doctest::Contains("etp_conv is no op of this program"), UserError);
}

TEST_CASE("an opened loop: its record under the reference's names") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value w = s.w(), h = s.h();
    s.set("h", scan([&](const Values& c) { return Values{0.9 * c[0] + matmul(x, w)}; },
                    {h}, {}, {.length = 20})
                   .carry[0]);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile();
  const ScanDescentInfo& d = *g.hidden_groups.at(0).descent;
  CHECK(d.length == 20);
  CHECK(d.num_carry == 1);
  CHECK(d.num_consts + d.num_carry == d.body_jaxpr().inputs().size());
  CHECK(g.module_info.descended_nodes.contains(d.scan_eqn_id()));
  const HiddenParamOpRelation& r = g.hidden_param_op_relations.at(0);
  CHECK(g.module_info.jaxpr().type(d.stacked_var_map().at(r.y)).shape == Shape{20, 4});
  CHECK(&r.eqn_params(g.module_info) == &d.body_jaxpr().nodes()[r.node].attrs);
}

TEST_CASE("perturbation: its inputs and program") {
  const auto m = two_states();
  const ETraceGraph g = m->compile();
  const HiddenPerturbation& p = *g.hidden_perturb;
  const auto inputs = p.perturb_jaxpr().inputs();
  const auto outer = g.module_info.jaxpr().inputs().size();
  CHECK(p.perturb_vars() == std::vector{inputs[outer], inputs[outer + 1]});
  CHECK(p.perturb_hidden_paths == std::vector<Path>{Path{"zz"}, Path{"aa"}});
  CHECK(p.perturb_hidden_states[0]->varshape() == Shape{4});
  std::vector<Array> in = {ones({4}, DType::f64)};
  for (const Array& a : read_states(g.module_info.step)) in.push_back(a);
  std::vector<Array> data = p.init_perturb_data();
  data[1] = full({4}, 0.25, DType::f64);  // aa, which zz reads
  const std::vector<Array> moved = p.eval_jaxpr(in, data),
                           base = p.eval(in, p.init_perturb_data());
  CHECK(moved[0].at(0) - base[0].at(0) == doctest::Approx(0.25));
}

TEST_CASE("parts of the pipeline can be asked for alone and agree with the whole") {
  const auto m = two_states();
  const ETraceGraph whole = m->compile();
  const std::vector<Array> x = {ones({4}, DType::f64)};
  const auto groups = find_hidden_groups_from_module(*m, x);
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].transition_jaxpr() == whole.hidden_groups[0].transition_jaxpr());
  const auto relations = find_hidden_param_op_relations_from_module(*m, x);
  REQUIRE(relations.size() == 1);
  CHECK(relations[0].tails[0] == whole.hidden_param_op_relations[0].tails[0]);
  CHECK(add_hidden_perturbation_in_module(*m, x).perturb_hidden_paths ==
        whole.hidden_perturb->perturb_hidden_paths);
  std::vector<std::string> fields;
  for (const auto& [name, text] : whole.dict()) fields.push_back(name);
  CHECK(fields == std::vector<std::string>{
                      "module_info", "hidden_groups", "hid_path_to_group",
                      "hidden_param_op_relations", "hidden_perturb", "diagnostics"});
}

}  // namespace names_test
