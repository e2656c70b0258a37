// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/factor_sums.h"

#include <algorithm>

#include "braintrace/ops/ops.h"
#include "braintrace/passes/lowered_impl.h"
#include "braintrace/passes/rewrite.h"

namespace braintrace {
namespace {

// A product with one factor that others share, and their factors that differ.
struct Summand {
  const Node* product = nullptr;  // null: `rest` are summands of one make
  std::size_t side = 0;           // of the factors that differ
  std::vector<ValueId> rest;
};

// Values made in the same way, up to products with a common factor: made once of the sum
// of the factors that differ.
class SameMake {
 public:
  explicit SameMake(const LoweredGraph& lowered)
      : lowered_(lowered), g_(lowered.graph()) {}

  bool are(ValueId u, ValueId v) const {
    const Node* n = maker(u);
    const Node* m = maker(v);
    if (!n || !m || u == v || n->op != m->op || n->attrs != m->attrs ||
        n->inputs.size() != m->inputs.size() || g_.type(u) != g_.type(v))
      return false;
    if (n->inputs.size() == 1)
      return has(n->op->traits, Trait::linear) && are(n->inputs[0], m->inputs[0]);
    return side(*n, *m).has_value();
  }

  Value sum(Builder& b, const std::vector<ValueId>& values,
            std::span<const Value> env) const {
    if (values.size() == 1) return env[values[0].index];
    const Node& n = *maker(values[0]);
    const std::size_t differs = n.inputs.size() == 1 ? 0 : *side(n, *maker(values[1]));
    std::vector<ValueId> rest;
    for (ValueId v : values) rest.push_back(maker(v)->inputs[differs]);
    std::vector<Value> in;
    for (ValueId v : n.inputs) in.push_back(env[v.index]);
    in[differs] = are(rest[0], rest[1]) ? sum(b, rest, env) : plain_sum(rest, env);
    return b.record(*n.op, in, n.attrs)[0];
  }

  static Value plain_sum(const std::vector<ValueId>& values, std::span<const Value> env) {
    Value out = env[values[0].index];
    for (std::size_t i = 1; i < values.size(); ++i) out = out + env[values[i].index];
    return out;
  }

 private:
  const Node* maker(ValueId v) const {
    const Node* n = lowered_.producer(v);
    return n && n->outputs.size() == 1 && lowered_.uses(v) == 1 ? n : nullptr;
  }
  // Which factors of two products differ.
  std::optional<std::size_t> side(const Node& n, const Node& m) const {
    if (!is_product(lowered_, n)) return std::nullopt;
    for (const std::size_t s : {1U, 0U}) {
      const Type& type = g_.type(n.inputs[s]);
      if (n.inputs[1 - s] != m.inputs[1 - s] || g_.type(m.inputs[s]) != type) continue;
      if (2 * type.size() <= g_.type(n.outputs[0]).size() ||
          are(n.inputs[s], m.inputs[s]))
        return s;
    }
    return std::nullopt;
  }

  const LoweredGraph& lowered_;
  const Graph& g_;
};

class SumFactors {
 public:
  explicit SumFactors(const LoweredGraph& lowered)
      : lowered_(lowered), g_(lowered.graph()), make_(lowered) {
    inner_.resize(g_.num_values(), false);
    for (const Node& n : g_.nodes())
      if (adds(n))
        for (ValueId v : n.inputs) inner_[v.index] = is_inner(v, g_.type(n.outputs[0]));
  }

  // The terms of the sum that ends with this node, empty when none have a factor in
  // common.
  std::vector<Summand> terms(const Node& n) const {
    if (!adds(n) || inner_[n.outputs[0].index]) return {};
    std::vector<Summand> out;
    bool found = false;
    for (ValueId v : summands(n)) found |= !put(out, v);
    return found ? out : std::vector<Summand>{};
  }

 private:
  bool adds(const Node& n) const {
    return is_micro(lowered_.lowering(n), MicroOp::add) &&
           is_float(g_.type(n.outputs[0]).dtype);
  }
  // A sum that only another sum of the same type reads.
  bool is_inner(ValueId v, const Type& type) const {
    const Node* n = lowered_.producer(v);
    return n && adds(*n) && lowered_.uses(v) == 1 && g_.type(v) == type;
  }

  std::vector<ValueId> summands(const Node& root) const {
    std::vector<ValueId> out, left(root.inputs.rbegin(), root.inputs.rend());
    while (!left.empty()) {
      const ValueId v = left.back();
      left.pop_back();
      if (!inner_[v.index]) {
        out.push_back(v);
        continue;
      }
      const Node& n = *lowered_.producer(v);
      left.insert(left.end(), n.inputs.rbegin(), n.inputs.rend());
    }
    return out;
  }

  // A product of two factors that this sum alone reads, else null.
  const Node* product(ValueId v) const {
    const Node* n = lowered_.producer(v);
    return n && lowered_.uses(v) == 1 && is_product(lowered_, *n) ? n : nullptr;
  }

  // False: the summand joined a term that was there.
  bool put(std::vector<Summand>& terms, ValueId v) const {
    const Node* p = product(v);
    for (Summand& t : terms) {
      if (p && t.product && joins(t, *p)) return false;
      if (t.product || !make_.are(t.rest[0], v)) continue;
      t.rest.push_back(v);
      return false;
    }
    // Where the factors that differ are large, it takes products among them to gain.
    const bool by_itself = p && !is_of_large_factors(*p);
    terms.push_back(by_itself ? Summand{p, 2, {}} : Summand{nullptr, 0, {v}});
    return true;
  }
  bool is_of_large_factors(const Node& p) const {
    const std::int64_t size = g_.type(p.outputs[0]).size();
    return 2 * g_.type(p.inputs[0]).size() > size &&
           2 * g_.type(p.inputs[1]).size() > size;
  }

  bool joins(Summand& t, const Node& p) const {
    const Node& first = *t.product;
    if (first.op != p.op || first.attrs != p.attrs) return false;
    for (const std::size_t side : {1U, 0U}) {
      if (t.side != 2 && t.side != side) continue;
      const Type& type = g_.type(p.inputs[side]);
      if (first.inputs[1 - side] != p.inputs[1 - side] ||
          g_.type(first.inputs[side]) != type ||
          2 * type.size() > g_.type(p.outputs[0]).size())
        continue;
      if (t.side == 2) t.rest.push_back(first.inputs[side]);
      t.side = side;
      t.rest.push_back(p.inputs[side]);
      return true;
    }
    return false;
  }

  const LoweredGraph& lowered_;
  const Graph& g_;
  SameMake make_;
  std::vector<bool> inner_;
};

Value of_summand(Builder& b, const Summand& t, const SameMake& make,
                 std::span<const Value> env) {
  if (!t.product) return make.sum(b, t.rest, env);
  if (t.rest.empty()) return env[t.product->outputs[0].index];
  const Value other = env[t.product->inputs[1 - t.side].index];
  const Value own = SameMake::plain_sum(t.rest, env);
  const std::vector<Value> factors =
      t.side == 1 ? std::vector{other, own} : std::vector{own, other};
  return b.record(*t.product->op, factors, t.product->attrs)[0];
}

}  // namespace

Graph factor_sums(const Graph& g) {
  const LoweredGraph lowered(g);
  const SumFactors factors(lowered);
  const SameMake make(lowered);
  RewriteRules rules;
  rules.old_node = [&](Builder& b, std::size_t i, std::span<const Value> env) -> Rewrite {
    const std::vector<Summand> terms = factors.terms(g.nodes()[i]);
    if (terms.empty()) return std::nullopt;
    Value out = of_summand(b, terms[0], make, env);
    for (std::size_t k = 1; k < terms.size(); ++k)
      out = out + of_summand(b, terms[k], make, env);
    return {{out}};
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
