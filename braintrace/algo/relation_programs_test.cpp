// SPDX-License-Identifier: Apache-2.0
// The programs of a per-parameter rule against recorded D_RTRL runs: at every step the
// new trace meets the learning signal of that step.
#include "braintrace/algo/relation_programs.h"

#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "braintrace/array/array_json.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/ops/calculus.h"
#include "braintrace/testing/close.h"
#include "braintrace/testing/golden_case.h"
#include "braintrace/testing/tolerance.h"
#include "braintrace/train/losses.h"

using namespace braintrace;
using namespace braintrace::testing;
using nlohmann::json;

namespace {

Array row(const Array& a, std::int64_t t) {
  Ints start(a.shape().size(), 0), step(a.shape().size(), 1);
  Shape size = a.shape();
  start[0] = t;
  size[0] = 1;
  const Shape shape(size.begin() + 1, size.end());
  return a.sliced(start, size, step).reshaped(shape);
}

Array as_float(const Array& a) { return is_float(a.dtype()) ? a.astype(DType::f64) : a; }

// D_RTRL, single-step: runs one recorded case and returns the gradient of every step.
class Replay {
 public:
  Replay(const GoldenCase& c, const ETraceGraph& g)
      : case_(c),
        relations_(relation_programs(g, PrologueRule::drop)),
        jacobians_(transition_jacobians(g)),
        info_(g.module_info.add_jaxpr_outs(values_read(relations_, jacobians_))),
        groups_(g.hidden_groups),
        perturbed_(add_hidden_perturbation_from_minfo(info_)) {
    for (const RelationPrograms& r : relations_)
      for (const Type& t : r.traces) traces_.push_back(zeros(t.shape, t.dtype));
  }

  StateDict step(std::int64_t t) {
    const Array x = as_float(row(case_.inputs, t));
    const Array target = as_float(row(case_.targets, t));
    const ModuleInfo::CallResult call = info_.jaxpr_call({x});
    std::map<ValueId, Array> values = call.temps;
    const std::vector<Array> states = read_states(info_.step);
    for (std::size_t i = 0; i < states.size(); ++i)
      values[info_.program().inputs()[info_.step.num_args + i]] = states[i];
    values[info_.program().inputs()[0]] = x;
    const std::vector<Array> signals = learning_signals(x, target, case_.mask[t]);
    const StateDict grads = roll_and_solve(values, signals);
    for (const StepState& s : info_.step.states)
      if (is_hidden(s.kind)) s.state->store(0, call.etrace_vals.at(s.path));
    return grads;
  }

 private:
  static std::vector<Array> run(const BoundProgram& p,
                                const std::map<ValueId, Array>& values,
                                const std::vector<Array>& more) {
    std::vector<Array> in;
    for (ValueId v : p.reads) in.push_back(values.at(v));
    in.insert(in.end(), more.begin(), more.end());
    return eval_graph(p.graph, in);
  }

  // dL/dp of the perturbed step, concatenated per group.
  std::vector<Array> learning_signals(const Array& x, const Array& target, double mask) {
    const auto builder = Builder::create();
    std::vector<Array> in = {x};
    for (const Array& a : read_states(info_.step)) in.push_back(a);
    const std::size_t first = in.size();
    for (const Array& a : perturbed_.init_perturb_data()) in.push_back(a);
    std::vector<Value> values;
    for (const Array& a : in) values.push_back(builder->input(type_of(a)));
    const Value y = inline_graph(perturbed_.program, values)[0];
    const Value loss =
        case_.loss == "mse" ? mse(y, target) : softmax_cross_entropy(y, target);
    const Graph step_loss = builder->finish(std::vector{loss * mask});
    std::vector<bool> active(in.size(), false);
    for (std::size_t i = first; i < in.size(); ++i) active[i] = true;
    const std::vector<Value> point(in.begin(), in.end());
    const VjpResult r = vjp_values(step_loss, active, point,
                                   std::vector<Tangent>{Value(scalar(1, DType::f64))});
    std::vector<Array> data;
    for (std::size_t i = first; i < in.size(); ++i)
      data.push_back(materialize(r.cotangents[i], type_of(in[i])).array());
    return perturbed_.perturb_data_to_hidden_group_data(data, groups_);
  }

  StateDict roll_and_solve(const std::map<ValueId, Array>& values,
                           const std::vector<Array>& signals) {
    StateDict grads;
    std::size_t at = 0;
    for (const RelationPrograms& r : relations_) {
      const auto group = static_cast<std::size_t>(r.group);
      const std::size_t slots = r.traces.size();
      std::vector<Array> eps(traces_.begin() + static_cast<std::ptrdiff_t>(at),
                             traces_.begin() + static_cast<std::ptrdiff_t>(at + slots));
      std::vector<Array> in = {run(jacobians_[group], values, {})[0],
                               run(r.df, values, {})[0]};
      in.insert(in.end(), eps.begin(), eps.end());
      eps = run(r.roll, values, in);
      std::copy(eps.begin(), eps.end(),
                traces_.begin() + static_cast<std::ptrdiff_t>(at));
      at += slots;
      eps.insert(eps.begin(), signals[group]);
      const std::vector<Array> g = run(r.solve, values, eps);
      for (std::size_t i = 0; i < g.size(); ++i) {
        const auto [it, fresh] = grads.emplace(r.leaves[i], g[i]);
        if (!fresh) it->second = (Value(it->second) + Value(g[i])).array();
      }
    }
    return grads;
  }

  const GoldenCase& case_;
  std::vector<RelationPrograms> relations_;
  std::vector<BoundProgram> jacobians_;
  ModuleInfo info_;
  std::vector<HiddenGroup> groups_;
  HiddenPerturbation perturbed_;
  std::vector<Array> traces_;
};

double golden_error(const Array& got, const Array& want) {
  double worst = 0, scale = 0;
  for (std::int64_t i = 0; i < want.size(); ++i) {
    scale = std::max(scale, std::abs(want.at(i)));
    worst = std::max(worst, std::abs(got.at(i) - want.at(i)));
  }
  return worst /
         (scale * tol::golden * 20 + 2e-5);  // the spiking tolerance, once for all
}

}  // namespace

TEST_CASE("rolled traces meet the signal as in recorded D_RTRL runs") {
  std::size_t seen = 0, live = 0;
  for (const auto& entry : std::filesystem::directory_iterator(BT_TESTS_DIR "/goldens")) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const json j = json::parse(text);
    if (!j.contains("expected") || j["algorithm"]["class"] != "D_RTRL") continue;
    if (j["algorithm"]["vjp_method"] != "single-step" || j["mode"] == "vmap") continue;
    if (j["model"]["kind"] == "while_settle") continue;  // reverse mode stops at a while
    INFO(entry.path().filename().string());
    try {
      const GoldenCase c = parse_golden(entry.path().filename().string(), text);
      const auto model = nn::build_model(c.text);
      init_all_states(*model, {.batch_size = c.mode == GoldenMode::batch
                                                 ? c.batch
                                                 : std::optional<std::int64_t>{},
                               .dtype = DType::f64});
      load_state_dict(*model, c.weights);
      load_state_dict(*model, c.initial_states);
      const ETraceGraph g =
          compile_etrace_graph(*model, {as_float(row(c.inputs, 0))}, compat());
      const bool descended =
          std::any_of(g.hidden_groups.begin(), g.hidden_groups.end(),
                      [](const HiddenGroup& group) { return group.descent != nullptr; });
      if (descended) continue;
      Replay replay(c, g);
      ++seen;
      for (std::int64_t t = 0; t < c.steps; ++t) {
        for (const auto& [leaf, grad] : replay.step(t)) {
          const Array want =
              row(array_from_json(leaf, j["expected"]["grad_per_step"][leaf]), t);
          INFO(leaf << " at step " << t);
          CHECK(golden_error(grad.reshaped(want.shape()), want) <= 1);
          for (double v : want.to_doubles()) live += v != 0;
        }
      }
    } catch (const std::exception& e) {
      FAIL_CHECK(e.what());
    }
  }
  CHECK(seen >= 50);
  CHECK(live > 1000);  // silent networks prove nothing
}
