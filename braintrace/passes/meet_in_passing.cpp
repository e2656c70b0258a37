// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/meet_in_passing.h"

#include <algorithm>
#include <iterator>

#include "braintrace/ops/ops.h"
#include "braintrace/passes/lowered_impl.h"
#include "braintrace/passes/rewrite.h"

namespace braintrace {
namespace {

struct MetValue {
  ValueId large, vector;
  std::int64_t num_lead;  // axes of `large` that the vector has, the first ones
};

Ints long_sizes(const Shape& shape) {
  Ints out;
  for (std::int64_t n : shape)
    if (n != 1) out.push_back(n);
  return out;
}

// The axes are the first ones, in order, but for axes of size 1.
bool are_leading(const Ints& axes, const Shape& shape) {
  Ints some, all;
  const auto is_long = [&](std::int64_t a) {
    return shape[static_cast<std::size_t>(a)] != 1;
  };
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(some), is_long);
  const Ints every = iota_ints(std::ssize(shape));
  std::copy_if(every.begin(), every.end(), std::back_inserter(all), is_long);
  return some.size() <= all.size() && std::equal(some.begin(), some.end(), all.begin());
}

class PassedValues {
 public:
  PassedValues(const LoweredGraph& lowered, const MeetInPassingOptions& options)
      : lowered_(lowered), g_(lowered.graph()), options_(options) {
    elementwise_reads_.resize(g_.num_values(), 0);
    for (const Node& n : g_.nodes())
      if (is_elementwise(n))
        for (ValueId v : n.inputs) ++elementwise_reads_[v.index];
  }

  std::optional<MetValue> find(const Node& n) const {
    const lowering::Gemm* gemm = plain_gemm(lowered_, n);
    if (!gemm || !gemm->lhs_batch.empty()) return std::nullopt;
    const Ints* contract[] = {&gemm->lhs_contract, &gemm->rhs_contract};
    for (const std::size_t side : {0U, 1U}) {
      const ValueId vector = n.inputs[1 - side], large = behind_reshapes(n.inputs[side]);
      const Shape& met = g_.type(vector).shape;
      const Ints rows = long_sizes(g_.type(large).shape), lead = long_sizes(met);
      if (contract[1 - side]->size() == met.size() &&
          are_leading(*contract[1 - side], met) &&
          are_leading(*contract[side], g_.type(n.inputs[side]).shape) &&
          rows == g_.type(large).shape && is_passed(large) &&
          is_worth_it(g_.type(large), rows.size() - lead.size()))
        return MetValue{large, vector, std::ssize(lead)};
    }
    return std::nullopt;
  }

 private:
  bool is_elementwise(const Node& n) const {
    return std::holds_alternative<lowering::Elementwise>(lowered_.lowering(n));
  }
  // One elementwise node makes it, another one reads it.
  bool is_passed(ValueId v) const {
    const Node* p = lowered_.producer(v);
    return p && is_elementwise(*p) && elementwise_reads_[v.index] > 0;
  }
  ValueId behind_reshapes(ValueId v) const {
    for (const Node* p = lowered_.producer(v);
         p && std::holds_alternative<lowering::Reshape>(lowered_.lowering(*p));
         p = lowered_.producer(v))
      v = p->inputs[0];
    return v;
  }
  bool is_worth_it(const Type& large, std::size_t num_left) const {
    const Shape left(large.shape.end() - static_cast<std::ptrdiff_t>(num_left),
                     large.shape.end());
    return is_float(large.dtype) && num_left > 1 && large.size() >= options_.min_size &&
           left.back() >= options_.min_row && num_elements(left) >= options_.min_left;
  }

  const LoweredGraph& lowered_;
  const Graph& g_;
  const MeetInPassingOptions& options_;
  std::vector<int> elementwise_reads_;  // by value
};

Value sum_with(const Value& large, const Value& vector, std::int64_t num_lead) {
  Shape stretched = large.shape();
  std::fill(stretched.begin() + num_lead, stretched.end(), 1);
  return sum(reshape(vector, stretched) * large, {.axes = iota_ints(num_lead)});
}

}  // namespace

Graph meet_in_passing(const Graph& g, const MeetInPassingOptions& options) {
  const LoweredGraph lowered(g);
  const PassedValues passed(lowered, options);
  RewriteRules rules{
      .sub_graph = [&](const Graph& body) { return meet_in_passing(body, options); }};
  rules.old_node = [&](Builder&, std::size_t i, std::span<const Value> env) -> Rewrite {
    const auto found = passed.find(g.nodes()[i]);
    if (!found) return std::nullopt;
    const Value met =
        sum_with(env[found->large.index], env[found->vector.index], found->num_lead);
    return {{reshape(met, g.type(g.nodes()[i].outputs[0]).shape)}};
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
