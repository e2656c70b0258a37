// SPDX-License-Identifier: Apache-2.0
// Check 9 of the op harness: the case with axes of size 0 and 1, with inputs that
// broadcast, and on 0 lanes and 1 lane; each with its derivatives.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "braintrace/testing/check_op_impl.h"
#include "braintrace/transforms/vmap.h"

namespace braintrace::testing::internal {
namespace {

// The leading part of an array.
Array corner(const Array& a, const Shape& shape) {
  const auto rank = static_cast<std::size_t>(a.rank());
  return a.sliced(Ints(rank, 0), shape, Ints(rank, 1)).contiguous();
}

// Every axis of size `from` cut to size `to`.
std::vector<Array> cut_sizes(const std::vector<Array>& inputs, std::int64_t from,
                             std::int64_t to) {
  std::vector<Array> cut;
  for (const Array& a : inputs) {
    Shape shape = a.shape();
    std::replace(shape.begin(), shape.end(), from, to);
    cut.push_back(corner(a, shape));
  }
  return cut;
}

// The largest number of none is infinite, their mean is NaN: no differences to take.
bool all_finite(const std::vector<Array>& arrays) {
  for (const Array& a : arrays)
    for (double v : a.to_doubles())
      if (!std::isfinite(v)) return false;
  return true;
}

// The failures of `run` named after the variant; a refusal is one.
template <class F>
void in_variant(const Checked& k, const std::string& what, F run) {
  try {
    run();
  } catch (const CheckFailure& e) {
    throw CheckFailure(what + ": " + e.what());
  } catch (const UserError& e) {
    fail(k, what + " runs, but a derivative or a batch of it is refused: " + e.what());
  }
}

// The outputs of the case on other inputs, with every check of values, derivatives,
// lanes and positions; nullopt when the op refuses them.
std::optional<std::vector<Array>> check_variant(const Checked& k,
                                                const std::vector<Array>& inputs,
                                                const std::string& what) {
  OpCase c = k.c;
  c.inputs = inputs;
  std::optional<Graph> graph;
  try {
    graph = trace(c.build, types_of(inputs));
  } catch (const UserError&) {
    return std::nullopt;
  }
  if (!holds(*graph, k.op)) return std::nullopt;
  if (!check_planned(k, *graph, inputs, what)) return std::nullopt;
  Checked sub{c, k.op, *graph, eval_graph(*graph, inputs)};
  in_variant(sub, what, [&] {
    check_values(sub);
    if (all_finite(sub.outputs)) check_calculus(sub);
    if (c.check_batch) check_batch(sub);
    if (c.check_positions) check_positions(sub);
    check_etp(sub);
    check_plan(sub);
  });
  return sub.outputs;
}

void check_cuts(Checked& k) {
  std::set<std::int64_t> sizes;
  for (const Array& a : k.c.inputs) sizes.insert(a.shape().begin(), a.shape().end());
  for (std::int64_t from : sizes)
    for (std::int64_t to : {0, 1}) {
      if (from <= to) continue;
      const auto what = fmt::format("axes of size {} cut to {}", from, to);
      if (check_variant(k, cut_sizes(k.c.inputs, from, to), what))
        met(k, to == 0 ? "empty" : "one");
    }
}

// No lanes give nothing, one lane what the program gives.
void check_few_lanes(Checked& k, std::int64_t lanes) {
  OpCase c = k.c;
  const auto with_lanes = [&](const Array& a) {
    Shape shape = a.shape();
    shape.insert(shape.begin(), 1);
    const Array one = a.reshaped(shape);
    shape[0] = lanes;
    return corner(one, shape);
  };
  for (Array& a : c.inputs) a = with_lanes(a);
  const auto what = fmt::format("{} lanes", lanes);
  in_variant(k, what, [&] {
    const Graph g = vmap(k.graph, lanes);
    verify(g);
    Checked sub{c, k.op, g, eval_graph(g, c.inputs)};
    for (std::size_t o = 0; o < k.outputs.size(); ++o)
      check_close(label(k, fmt::format("{}, output {}", what, o)), sub.outputs[o],
                  with_lanes(k.outputs[o]), value_tolerance(k.outputs[o].dtype()));
    check_planned(sub, g, c.inputs, what);
    check_calculus(sub);
  });
  met(k, lanes == 0 ? "empty" : "one");
}

// An element-by-element op must broadcast, and give what stretched inputs give.
void check_broadcast_of(Checked& k, std::size_t i, const Array& small,
                        const std::string& what) {
  std::vector<Array> inputs = k.c.inputs, full = inputs;
  inputs[i] = small;
  const auto out = check_variant(k, inputs, what);
  if (out) met(k, "broadcast");
  if (!has(k.op->traits, Trait::elementwise) || k.c.inputs.size() < 2) return;
  if (!out) fail(k, what + " is refused: element-by-element ops broadcast");
  Shape all;
  for (const Array& a : inputs) all = broadcast_shapes(all, a.shape()).value_or(all);
  full[i] = small.broadcast_to(broadcast_shapes(small.shape(), all).value());
  const std::vector<Array> want = run_eagerly(k.c, full);
  for (std::size_t o = 0; o < want.size(); ++o)
    if (!((*out)[o] == want[o]))
      fail(k, fmt::format("{}, output {}: got {}, want {}", what, o, to_string((*out)[o]),
                          to_string(want[o])));
}

void check_broadcast(Checked& k) {
  if (k.c.inputs.size() < 2) return excuse(k, "broadcast", "one input");
  for (std::size_t i = 0; i < k.c.inputs.size(); ++i) {
    const Array& a = k.c.inputs[i];
    for (std::size_t d = 0; d < a.shape().size(); ++d) {
      if (a.shape()[d] < 2) continue;
      Shape shape = a.shape();
      shape[d] = 1;
      check_broadcast_of(k, i, corner(a, shape),
                         fmt::format("input {} as {}", i, to_string(shape)));
    }
    if (a.rank() == 0 || a.shape()[0] == 0) continue;
    Shape row = a.shape();
    row[0] = 1;
    const Shape less(row.begin() + 1, row.end());
    check_broadcast_of(k, i, corner(a, row).reshaped(less),
                       fmt::format("input {} as {}", i, to_string(less)));
  }
  excuse(k, "broadcast", "its inputs have fixed shapes");
}

}  // namespace

void check_sizes(Checked& k) {
  excuse(k, "empty", "no inputs");
  excuse(k, "one", "no inputs");
  if (k.c.inputs.empty()) return excuse(k, "broadcast", "no inputs");
  check_cuts(k);
  if (k.c.check_batch)
    for (std::int64_t lanes : {0, 1}) check_few_lanes(k, lanes);
  check_broadcast(k);
}

}  // namespace braintrace::testing::internal
