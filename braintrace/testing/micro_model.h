// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small models for the compiler's tests: states by name and the step as a function.
#include <functional>
#include <map>
#include <memory>

#include "braintrace/etrace/report.h"
#include "braintrace/ops/ops.h"

namespace braintrace::testing {

class MicroModel : public Module {
 public:
  using Step = std::function<Value(MicroModel&, Value)>;
  explicit MicroModel(Step step) : step_(std::move(step)) {}

  MicroModel& hidden(const std::string& name, Shape size) {
    hidden_[name] = std::make_unique<HiddenState>(std::move(size), constant_init(0.5));
    add(name, *hidden_[name]);
    return *this;
  }
  MicroModel& group(const std::string& name, Shape size, std::int64_t states) {
    hidden_[name] =
        std::make_unique<HiddenGroupState>(std::move(size), states, constant_init(0.5));
    add(name, *hidden_[name]);
    return *this;
  }
  MicroModel& param(const std::string& name, Shape size) {
    params_[name] = std::make_unique<ParamState>(std::move(size), constant_init(0.1));
    add(name, *params_[name]);
    return *this;
  }
  MicroModel& dynamic(const std::string& name, Shape size) {
    others_[name] = std::make_unique<ShortTermState>(std::move(size));
    add(name, *others_[name]);
    return *this;
  }

  Value h(const std::string& name = "h") { return hidden_.at(name)->value(); }
  HiddenGroupState& g(const std::string& name = "h") {
    return static_cast<HiddenGroupState&>(*hidden_.at(name));
  }
  void set(const std::string& name, const Value& v) { hidden_.at(name)->set(v); }
  Value w(const std::string& name = "w") { return params_.at(name)->value(); }
  ShortTermState& other(const std::string& name) { return *others_.at(name); }

  Value update(Value x) override { return step_(*this, x); }

  ETraceGraph compile(const CompileOptions& options = {}, Shape input = {4}) {
    init_all_states(*this, {.dtype = DType::f64});
    return compile_etrace_graph(*this, {ones(input, DType::f64)}, options);
  }

 private:
  Step step_;
  std::map<std::string, std::unique_ptr<HiddenState>> hidden_;
  std::map<std::string, std::unique_ptr<ParamState>> params_;
  std::map<std::string, std::unique_ptr<ShortTermState>> others_;
};

// The number n, but for the compiler a number that the input decides: loops that count
// to it have no known length.
inline Value unknown(int n, const Value& x) {
  return n + astype(0.0 * sum(x), DType::i32);
}

// D of one group at the stored states, with all inputs 1.
inline Array jacobian_of(const ETraceGraph& g, std::size_t group = 0, Shape input = {4}) {
  const auto call = g.module_info.jaxpr_call({ones(input, DType::f64)});
  const HiddenGroup& hg = g.hidden_groups[group];
  std::vector<Array> hidden, constants;
  for (ValueId v : hg.hidden_invars()) hidden.push_back(call.temps.at(v));
  for (ValueId v : hg.transition_constants) constants.push_back(call.temps.at(v));
  return hg.diagonal_jacobian(hidden, constants);
}

inline std::vector<std::string> kinds_of(const ETraceGraph& g) {
  std::vector<std::string> out;
  for (const CompilationRecord& r : g.diagnostics) out.emplace_back(to_string(r.kind));
  return out;
}

inline Verdict verdict_of(const ETraceGraph& g, const std::string& path) {
  for (const ParameterVerdict& v : g.verdicts)
    if (v.path == path_from_slashes(path)) return v.verdict;
  throw std::runtime_error("no verdict for " + path);
}

}  // namespace braintrace::testing
