// SPDX-License-Identifier: Apache-2.0
// Replays one recorded case.
#include "braintrace/testing/parity.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "braintrace/ir/evaluate.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/ops/ops.h"
#include "braintrace/testing/bptt.h"
#include "braintrace/testing/golden_graph.h"
#include "braintrace/testing/parity_impl.h"
#include "braintrace/train/sequence.h"

namespace braintrace::testing {

using namespace internal;

Array internal::in_dtype(const Array& a, DType dtype) {
  return is_float(a.dtype()) ? a.astype(dtype) : a;
}

Value internal::loss_of(const GoldenCase& c, const Value& y, const Array& target) {
  if (c.loss == "mse") return mean(square(y - Value(target.astype(y.dtype()))));
  if (c.loss == "softmax_xent") {
    const Value picked = one_hot(target.astype(DType::i32), y.dim(-1), y.dtype());
    return mean(-sum(log_softmax(y) * picked, {.axes = {-1}}));
  }
  throw UserError("unknown loss '" + c.loss + "'; known: mse, softmax_xent");
}

void internal::load(const GoldenCase& c, Module& m, DType dtype) {
  StateDict values;
  for (const StateDict* part : {&c.weights, &c.initial_states})
    for (const auto& [path, a] : *part) values[path] = in_dtype(a, dtype);
  std::set<std::string> keys;
  for (const NamedState& s : collect_states(m))
    if (dynamic_cast<const RngState*>(s.state)) keys.insert(to_slashes(s.path));
  for (const auto& [path, unused] : state_dict(m))
    BT_REQUIRE(values.contains(path) || keys.contains(path),
               fmt::format("the model has the state '{}', the file has not", path));
  load_state_dict(m, values);
}

void Comparison::operator()(const std::string& field, const Array& got,
                            const Array& want) const {
  result.fields.push_back(compare(field, got, want, tolerance));
}

namespace {

// What a run of one sample or one batch gives.
struct Run {
  std::vector<Array> outputs;     // [step]
  std::vector<Array> losses;      // [step], not masked
  std::vector<StateDict> states;  // [step]
  StateDict grads;
};

Array step_of(const Array& xs, std::int64_t t) { return steps_of(xs)[t][0]; }

bool wants_gradient(const GoldenCase& c) { return !c.expected.bptt_grad_sum.empty(); }

Run run_case(const GoldenCase& c, const std::string& model_text, bool gradient,
             DType dtype) {
  const std::unique_ptr<Module> m = nn::build_model(model_text);
  const auto batch = c.mode == GoldenMode::batch ? c.batch : std::nullopt;
  init_all_states(*m, {.batch_size = batch, .dtype = dtype});
  load(c, *m, dtype);
  const auto masked = [&](std::size_t t, const Values& y) {
    return c.mask[t] * loss_of(c, y[0], step_of(c.targets, static_cast<std::int64_t>(t)));
  };
  const auto sequence = steps_of(in_dtype(c.inputs, dtype));
  const BpttResult r = gradient ? bptt(*m, sequence, masked) : forward(*m, sequence);
  Run run{.states = r.states, .grads = r.grads};
  for (std::size_t t = 0; t < r.outputs.size(); ++t) {
    run.outputs.push_back(r.outputs[t][0]);
    const Array target = step_of(c.targets, static_cast<std::int64_t>(t));
    run.losses.push_back(loss_of(c, r.outputs[t][0], target).array());
  }
  return run;
}

// ---- lanes ----------------------------------------------------------------------------

Array pick(const Array& a, std::int64_t axis, std::int64_t lane) {
  BT_REQUIRE(a.rank() > axis && lane < a.shape()[static_cast<std::size_t>(axis)],
             fmt::format("an array of shape {} has no lane {} on axis {}",
                         to_string(a.shape()), lane, axis));
  return take(a, scalar(static_cast<double>(lane), DType::i32), axis).array();
}

GoldenCase lane_of(const GoldenCase& c, std::int64_t lane) {
  GoldenCase one = c;
  one.mode = GoldenMode::none;
  one.batch = {};
  one.inputs = pick(c.inputs, 1, lane);
  one.targets = pick(c.targets, 1, lane);
  for (auto& [path, a] : one.initial_states) a = pick(a, 0, lane);
  return one;
}

Array average(const std::vector<Array>& parts) {
  return mean(stacked(parts), {.axes = {0}}).array();
}

// Lanes share weights and know nothing of each other; the loss is their mean.
Run merge(const std::vector<Run>& lanes) {
  const auto collect = [&](const auto& get) {
    std::vector<Array> parts;
    for (const Run& r : lanes) parts.push_back(get(r));
    return parts;
  };
  Run out;
  for (std::size_t t = 0; t < lanes[0].outputs.size(); ++t) {
    out.outputs.push_back(stacked(collect([&](const Run& r) { return r.outputs[t]; })));
    out.losses.push_back(average(collect([&](const Run& r) { return r.losses[t]; })));
    out.states.emplace_back();
    for (const auto& [path, unused] : lanes[0].states[t])
      out.states.back()[path] =
          stacked(collect([&](const Run& r) { return r.states[t].at(path); }));
  }
  for (const auto& [path, unused] : lanes[0].grads)
    out.grads[path] = average(collect([&](const Run& r) { return r.grads.at(path); }));
  return out;
}

Run run_any_mode(const GoldenCase& c, const std::string& model_text, bool gradient,
                 DType dtype) {
  if (c.mode != GoldenMode::vmap) return run_case(c, model_text, gradient, dtype);
  std::vector<Run> lanes;
  for (std::int64_t lane = 0; lane < *c.batch; ++lane)
    lanes.push_back(run_case(lane_of(c, lane), model_text, gradient, dtype));
  return merge(lanes);
}

// ---- comparison -----------------------------------------------------------------------

Tolerance tolerance_of(const GoldenCase& c, DType dtype) {
  // A GIF's standardised readout amplifies rounding of the recorded float32 run.
  const bool loose =
      dtype == DType::f32 || c.kind == "gif_net" ||
      amplifies_rounding(recorded_rule(nlohmann::json::parse(c.text)).algorithm);
  return loose ? Tolerance{2e-4, 2e-5} : Tolerance{};
}

void compare_objective(const GoldenCase& c, const Run& run, const Comparison& check) {
  if (!c.expected.objective) return;
  double sum = 0;
  for (std::size_t t = 0; t < run.losses.size(); ++t)
    sum += c.mask[t] * run.losses[t].at(0);
  check("bptt_objective", scalar(sum, DType::f64),
        scalar(*c.expected.objective, DType::f64));
}

void compare_states(const GoldenCase& c, const Run& run, const Comparison& check) {
  const std::int64_t window = c.chunk_size.value_or(1);
  for (const auto& [path, want] : c.expected.final_hidden) {
    const auto it = run.states.back().find(path);
    BT_REQUIRE(it != run.states.back().end(),
               fmt::format("the step does not touch the state '{}'", path));
    check("final_hidden " + path, it->second, want);
  }
  for (const auto& [path, want] : c.expected.hidden_per_step) {
    std::vector<Array> rows;
    for (std::int64_t t = window - 1; t < c.steps; t += window)
      rows.push_back(run.states[static_cast<std::size_t>(t)].at(path));
    check("hidden_per_step " + path, stacked(rows), want);
  }
}

void compare_gradients(const StateDict& got, const StateDict& want,
                       const std::string& field, const Comparison& check) {
  for (const auto& [path, w] : want) {
    const auto it = got.find(path);
    BT_REQUIRE(it != got.end(), fmt::format("the step does not touch '{}'", path));
    check(field + " " + path, it->second, w);
  }
}

// A loop of unknown length has no reverse mode, so its file holds no BPTT gradient. Its
// hand-unrolled twin has one, and D_RTRL is exact on this model.
void compare_while_twin(const GoldenCase& c, const Comparison& check, DType dtype) {
  nlohmann::json text = nlohmann::json::parse(c.text);
  text["model"]["kind"] = "while_settle_unrolled";
  const Run twin = run_any_mode(c, text.dump(), true, dtype);
  check("outputs of the unrolled twin", stacked(twin.outputs), c.expected.outputs);
  if (c.algorithm == "D_RTRL")
    compare_gradients(twin.grads, c.expected.grad_sum, "bptt of the unrolled twin",
                      check);
}

void compare_graph(const GoldenCase& c, ParityResult& r) {
  const std::string difference = graph_difference(c.text);
  if (!difference.empty()) r.failure = "graph: " + difference;
}

void check_parsed(const GoldenCase& c, const ParityOptions& options, ParityResult& r) {
  const Comparison check{r, tolerance_of(c, options.dtype)};
  const Run run = run_any_mode(c, c.text, wants_gradient(c), options.dtype);
  check("outputs", stacked(run.outputs), c.expected.outputs);
  check("losses", stacked(run.losses), c.expected.losses);
  compare_objective(c, run, check);
  compare_states(c, run, check);
  compare_spikes(c, run.states, options.dtype);
  compare_gradients(run.grads, c.expected.bptt_grad_sum, "bptt_grad_sum", check);
  if (c.kind == "while_settle") compare_while_twin(c, check, options.dtype);
  compare_graph(c, r);
  if (options.rule) compare_rule(c, check, options.dtype);
}

}  // namespace

FieldError compare(const std::string& field, const Array& got, const Array& want,
                   Tolerance tolerance) {
  BT_REQUIRE(got.shape() == want.shape(),
             fmt::format("{}: has shape {}, recorded is {}", field,
                         to_string(got.shape()), to_string(want.shape())));
  constexpr double smallest = 1e-12;
  double largest = 0, difference = 0;
  const std::vector<double> a = got.to_doubles(), b = want.to_doubles();
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(b[i]));
    const double d = a[i] == b[i] ? 0 : std::abs(a[i] - b[i]);
    difference = std::isnan(d) ? INFINITY : std::max(difference, d);
  }
  const double allowed = tolerance.relative * largest + tolerance.absolute;
  return {field, difference / std::max(largest, smallest), difference / allowed};
}

const FieldError* ParityResult::worst() const {
  const auto less = [](const FieldError& a, const FieldError& b) {
    return a.share < b.share;
  };
  const auto it = std::max_element(fields.begin(), fields.end(), less);
  return it == fields.end() ? nullptr : &*it;
}

bool ParityResult::passed() const {
  return failure.empty() && !fields.empty() && worst()->share <= 1;
}

ParityResult check_case(const std::string& name, const std::string& text,
                        const ParityOptions& options) {
  ParityResult r{.name = name};
  try {
    check_parsed(parse_golden(name, text), options, r);
  } catch (const std::exception& e) {
    r.failure += (r.failure.empty() ? "" : "; ") + std::string(e.what());
  }
  return r;
}

std::string describe(const ParityResult& r, bool verbose) {
  const char* verdict = r.passed() ? "ok  " : "FAIL";
  const FieldError* worst = r.worst();
  std::string line = fmt::format("{} {}", verdict, r.name);
  if (!r.failure.empty())
    line += "  " + r.failure;
  else if (worst)
    line += fmt::format("  {:.1e} {}", worst->error, worst->field);
  else
    line += "  nothing to compare";
  if (!verbose) return line;
  for (const FieldError& f : r.fields)
    line += fmt::format("\n       {:.1e}  ({:.0f} % of allowed)  {}", f.error,
                        100 * f.share, f.field);
  return line;
}

}  // namespace braintrace::testing
