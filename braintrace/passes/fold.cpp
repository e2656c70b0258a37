// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/fold.h"

#include "braintrace/ir/evaluate.h"
#include "braintrace/ops/ops.h"
#include "braintrace/ops/simplify.h"
#include "braintrace/passes/rewrite.h"

namespace braintrace {
namespace {

bool may_fold(const Site& s, std::span<const Type> in, const FoldOptions& options) {
  if (has(s.op.traits, Trait::constant) || has(s.op.traits, Trait::region)) return false;
  for (const Attrs::Entry& e : s.attrs.entries())
    if (kind_of(e.second) == AttrKind::graph) return false;
  std::int64_t consumed = 0, produced = 0;
  for (const Type& t : in) consumed += t.size();
  for (const Type& t : infer_types(s.op, in, s.attrs)) produced += t.size();
  return produced <= options.max_elements && (in.empty() || produced <= consumed);
}

std::optional<std::vector<Array>> run_now(const Site& s, const std::vector<Array>& in) {
  try {
    return eval_op(s.op, in, s.attrs);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

Rewrite folded(Builder& b, const Site& s, const FoldOptions& options) {
  std::vector<Array> in;
  std::vector<Type> types;
  for (const Value& v : s.in) {
    const std::optional<Array> a = literal(v);
    if (!a) return std::nullopt;
    in.push_back(*a);
    types.push_back(type_of(*a));
  }
  if (!may_fold(s, types, options)) return std::nullopt;
  const auto results = run_now(s, in);
  if (!results) return std::nullopt;
  std::vector<Value> out;
  for (const Array& a : *results) out.push_back(b.constant(a));
  return out;
}

// Element by element, on values that are one number each: the op runs once.
Rewrite folded_number(Builder& b, const Site& s) {
  if (!has(s.op.traits, Trait::elementwise) || has(s.op.traits, Trait::region) ||
      s.in.empty())
    return std::nullopt;
  std::vector<Array> numbers;
  for (const Value& v : s.in) {
    const auto x = v.shape() == s.in[0].shape() ? splat_value(v) : std::nullopt;
    if (!x) return std::nullopt;
    numbers.push_back(full({}, *x, v.dtype()));
  }
  const auto out = run_now(s, numbers);
  if (!out || out->size() != 1) return std::nullopt;
  return {{broadcast_to(b.constant(out->front()), s.in[0].shape())}};
}

}  // namespace

Graph fold(const Graph& g, const FoldOptions& options) {
  RewriteRules rules;
  rules.sub_graph = [&](const Graph& sub) { return fold(sub, options); };
  rules.node = [&](Builder& b, const Site& s) {
    Rewrite r = folded(b, s, options);
    return r ? r : folded_number(b, s);
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
