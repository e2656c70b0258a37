// SPDX-License-Identifier: Apache-2.0
// Check 6 of the op harness: no output position may react to an input position that the
// op's position map does not connect to it.
#include <cmath>

#include <fmt/format.h>

#include "braintrace/testing/check_op_impl.h"

namespace braintrace::testing::internal {
namespace {

constexpr std::int64_t kMaxElements =
    256;  // larger inputs are probed at this many places

void check_form(const Checked& k, const Use& u, const PositionMap& map) {
  if (map.flow.size() != u.in.size())
    fail(k, fmt::format("position map has {} inputs instead of {}", map.flow.size(),
                        u.in.size()));
  for (std::size_t i = 0; i < u.in.size(); ++i) {
    if (map.flow[i].size() != u.out.size())
      fail(k, fmt::format("position map of input {} has {} outputs instead of {}", i,
                          map.flow[i].size(), u.out.size()));
    for (std::size_t o = 0; o < u.out.size(); ++o) {
      const InputFlow& f = map.flow[i][o];
      if (!f.reaches || !f.known) continue;
      if (static_cast<std::int64_t>(f.axes.size()) != u.out[o].rank())
        fail(k, fmt::format("position map of input {} has {} axes for output {}", i,
                            f.axes.size(), o));
      for (const AxisFlow& a : f.axes)
        if (a.in_axis < -1 || a.in_axis >= u.in[i].rank() ||
            (a.in_axis == -1 && a.flow != Flow::fresh && a.flow != Flow::mixed))
          fail(k, fmt::format("position map of input {} names axis {}", i, a.in_axis));
    }
  }
}

bool axis_allows(const AxisFlow& a, const Ints& in, std::int64_t out) {
  const std::int64_t p = a.in_axis < 0 ? 0 : in[static_cast<std::size_t>(a.in_axis)];
  if (a.flow == Flow::same) return out == p;
  if (a.flow == Flow::shifted) return out == p * a.step + a.offset;
  return true;
}

bool allows(const InputFlow& f, const Ints& in, const Ints& out) {
  if (!f.reaches) return false;
  if (!f.known) return true;
  for (std::size_t a = 0; a < f.axes.size(); ++a)
    if (!axis_allows(f.axes[a], in, out[a])) return false;
  return true;
}

// Row-major positions where the arrays differ. NaN equals NaN.
std::vector<std::int64_t> changes(const Array& a, const Array& b) {
  std::vector<std::int64_t> where;
  const std::vector<double> x = a.to_doubles(), y = b.to_doubles();
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] != y[i] && !(x[i] != x[i] && y[i] != y[i]))
      where.push_back(static_cast<std::int64_t>(i));
  return where;
}

Array perturbed(const Array& a, std::int64_t at, double delta) {
  Array b = a.contiguous();
  visit_dtype(b.dtype(), [&]<class T>(T) {
    T& x = b.mutable_data<T>()[at];
    if constexpr (std::is_same_v<T, bool>) {
      x = !x;
    } else {
      x = static_cast<T>(x + static_cast<T>(delta));
    }
  });
  return b;
}

void check_changes(const Checked& k, const Use& u, const InputFlow& f, std::size_t i,
                   std::int64_t at, std::size_t o, const Array& after) {
  const Ints in = unravel(at, u.in[i].shape());
  Ints first;
  for (std::int64_t q : changes(u.out[o], after)) {
    const Ints out = unravel(q, u.out[o].shape());
    if (!allows(f, in, out))
      fail(k,
           fmt::format("position map: input {} at {} changes output {} at {} from {} "
                       "to {}, which the map excludes",
                       i, to_string(in), o, to_string(out), u.out[o].at(q), after.at(q)));
    if (first.empty()) first = out;
    for (std::size_t a = 0; a < f.axes.size(); ++a)
      if (f.axes[a].flow == Flow::permuted && out[a] != first[a])
        fail(k, fmt::format("position map: axis {} of output {} is called permuted, but "
                            "input {} at {} changes positions {} and {}",
                            a, o, i, to_string(in), first[a], out[a]));
  }
}

void probe(const Checked& k, const Use& u, const PositionMap& map, std::size_t i,
           std::int64_t at, double delta) {
  std::vector<Array> in = u.in, out;
  in[i] = perturbed(u.in[i], at, delta);
  try {
    out = eval_op(*u.node->op, in, u.node->attrs);
  } catch (const UserError&) {
    return;  // an index left its range
  }
  for (std::size_t o = 0; o < out.size(); ++o)
    check_changes(k, u, map.flow[i][o], i, at, o, out[o]);
}

// The map says nothing about the input, so no probe could contradict it; and a loop may
// not end on numbers it was not made for.
bool is_unknown(const PositionMap& map, std::size_t i) {
  for (const InputFlow& f : map.flow[i])
    if (f.known || !f.reaches) return false;
  return true;
}

// Indices and keys choose, they do not flow: an op may leave them out of its map.
bool is_choice(const Use& u, const PositionMap& map, std::size_t i) {
  if (u.in[i].dtype() != DType::i32) return false;
  for (const InputFlow& f : map.flow[i])
    if (f.reaches) return false;
  return true;
}

void check_use(const Checked& k, const Use& u) {
  std::vector<Type> in, out;
  for (const Array& a : u.in) in.push_back(type_of(a));
  for (const Array& a : u.out) out.push_back(type_of(a));
  const PositionMap map = positions_of(*u.node->op, {in, out, u.node->attrs});
  check_form(k, u, map);
  for (std::size_t i = 0; i < u.in.size(); ++i) {
    if (is_unknown(map, i) || is_choice(u, map, i)) continue;
    const std::int64_t n = u.in[i].size();
    const std::int64_t stride = n / kMaxElements + 1;
    for (std::int64_t at = 0; at < n; at += stride)
      for (double delta : {1e-3, 1.0, -1.0, kNan})
        if (is_float(u.in[i].dtype()) || std::isfinite(delta))
          probe(k, u, map, i, at, delta);
  }
}

}  // namespace

void check_positions(Checked& k) {
  for (const Use& u : uses(k)) check_use(k, u);
}

}  // namespace braintrace::testing::internal
