// SPDX-License-Identifier: Apache-2.0
#include "braintrace/algo/window_impl.h"
#include "braintrace/ops/batch.h"
#include "braintrace/ops/calculus.h"

namespace braintrace {

std::vector<Timed> WindowValues::all_steps(const Graph& g,
                                           const std::vector<Timed>& in) const {
  Values values;
  std::vector<BatchAxis> axes;
  for (const Timed& t : in) {
    values.push_back(t.value);
    axes.push_back(t.stacked ? BatchAxis{0} : BatchAxis{});
  }
  const BatchResult r = batch_graph(g, values, axes);
  std::vector<Timed> out;
  for (std::size_t i = 0; i < r.values.size(); ++i)
    out.push_back(
        {r.axes[i] ? batch_in_front(r.values[i], r.axes[i], steps) : r.values[i],
         r.axes[i].has_value()});
  return out;
}

Value WindowValues::summed(const Timed& t) const {
  return t.stacked ? sum(t.value, {.axes = {0}}) : t.value * static_cast<double>(steps);
}

Value WindowValues::stacked(const Timed& t) const {
  return t.stacked ? t.value : batch_in_front(t.value, {}, steps);
}

Value WindowValues::first(const Timed& t) const {
  return t.stacked ? squeeze(slice_axis(t.value, 0, 0, 1), 0) : t.value;
}

Timed WindowValues::step_numbers() const {
  Array n = zeros({steps}, DType::f64);
  for (std::int64_t i = 0; i < steps; ++i)
    n.mutable_data<double>()[i] = static_cast<double>(i);
  return {Value(n.astype(rule.scalar_dtype())) + trace_steps, true};
}

Timed WindowValues::call_numbers() const {
  return {step_numbers().value - trace_steps + calls, true};
}

std::vector<Timed> WindowValues::for_all_steps(const std::vector<Timed>& more,
                                               const Emit& emit) const {
  const auto b = Builder::create();
  std::vector<Timed> in;
  StepValues values;
  const auto declare = [&](const Timed& t) {
    Type type = t.value.type();
    if (t.stacked) type.shape.erase(type.shape.begin());
    in.push_back(t);
    return b->input(type);
  };
  for (const auto& [id, t] : reads) values.emplace(id, declare(t));
  StepTerms terms(rule.context(), std::move(values));
  terms.calls = declare(call_numbers());
  terms.trace_steps = declare(step_numbers());
  for (std::size_t i = 0; i < extra.size(); ++i)
    terms.inputs.emplace(inputs[i].name, declare({extra[i], true}));
  Values given;
  for (const Timed& t : more) given.push_back(declare(t));
  const std::vector<Value> outputs = emit(terms, given);
  return all_steps(b->finish(outputs), in);
}

StepTerms WindowValues::first_terms() const {
  StepValues values;
  for (const auto& [id, t] : reads) values.emplace(id, first(t));
  StepTerms terms(rule.context(), std::move(values));
  terms.calls = calls;
  terms.trace_steps = trace_steps;
  return terms;
}

}  // namespace braintrace
