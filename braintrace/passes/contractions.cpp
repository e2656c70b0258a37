// SPDX-License-Identifier: Apache-2.0
// Deciding about and writing products of two operands.
#include <algorithm>

#include "braintrace/ops/ops.h"
#include "braintrace/passes/products_impl.h"

namespace braintrace {
namespace {

bool within(const Labels& inner, const Labels& outer) {
  return std::all_of(inner.begin(), inner.end(),
                     [&](std::int64_t l) { return contains(outer, l); });
}

std::int64_t size_of(const Labels& labels, const Shape& sizes) {
  std::int64_t n = 1;
  for (std::int64_t l : labels) n *= sizes[static_cast<std::size_t>(l)];
  return n;
}

Labels without_units(const Labels& labels) {
  Labels out;
  for (std::int64_t l : labels)
    if (l >= 0) out.push_back(l);
  return out;
}

// Where the smallest operand that fits into another one is, and the smallest it fits.
std::optional<std::pair<std::size_t, std::size_t>> fitting_pair(
    const std::vector<Operand>& operands, const Shape& sizes) {
  std::optional<std::pair<std::size_t, std::size_t>> best;
  const auto cost = [&](std::size_t i) { return size_of(operands[i].labels, sizes); };
  for (std::size_t i = 0; i < operands.size(); ++i)
    for (std::size_t j = 0; j < operands.size(); ++j) {
      if (i == j || !within(operands[i].labels, operands[j].labels)) continue;
      const bool better = !best || cost(i) < cost(best->first) ||
                          (i == best->first && cost(j) < cost(best->second));
      if (better) best = {i, j};
    }
  return best;
}

// Labels of one operand by what becomes of them in a product with the other.
struct Roles {
  Labels batch, free, contract, alone;  // alone: summed before the product
};
Roles roles_of(const Labels& mine, const Labels& other, const Labels& out) {
  Roles r;
  for (std::int64_t l : mine) {
    const bool shared = contains(other, l), kept = contains(out, l);
    (shared ? (kept ? r.batch : r.contract) : (kept ? r.free : r.alone)).push_back(l);
  }
  return r;
}

// Axes of the product lhs * rhs.
Labels product_labels(const Labels& lhs, const Labels& rhs, const Labels& out) {
  Labels result;
  for (std::int64_t l : out)
    if (contains(lhs, l) && contains(rhs, l)) result.push_back(l);
  for (std::int64_t l : roles_of(lhs, rhs, out).free) result.push_back(l);
  for (std::int64_t l : roles_of(rhs, lhs, out).free) result.push_back(l);
  return result;
}

bool ordered_as(const Labels& labels, const Labels& out) {
  Labels wanted;
  for (std::int64_t l : out)
    if (contains(labels, l)) wanted.push_back(l);
  return labels == wanted;
}

std::int64_t place_of(const Labels& labels, std::int64_t l) {
  return std::find(labels.begin(), labels.end(), l) - labels.begin();
}

Ints places_of(const Labels& wanted, const Labels& labels) {
  Ints places;
  for (std::int64_t l : wanted) places.push_back(place_of(labels, l));
  return places;
}

// A value with its labels while it is being written.
struct Labelled {
  Value value;
  Labels labels;
};

// Axes in the order of `out`, size 1 for labels it does not have.
Value aligned(const Labelled& v, const Labels& out) {
  Ints order;
  Shape shape;
  for (std::int64_t l : out) {
    const std::int64_t at = place_of(v.labels, l);
    const bool has = contains(v.labels, l);
    if (has) order.push_back(at);
    shape.push_back(has ? v.value.dim(at) : 1);
  }
  return reshape(order.empty() ? v.value : transpose(v.value, order), shape);
}

Labelled factor_value(const Factor& f, std::span<const Value> env) {
  Shape shape;
  const Value v = env[f.base.index];
  for (std::size_t a = 0; a < f.labels.size(); ++a)
    if (f.labels[a] >= 0) shape.push_back(v.dim(static_cast<std::int64_t>(a)));
  return {reshape(v, shape), without_units(f.labels)};
}

Labelled operand_value(const Operand& o, std::span<const Value> env) {
  Labelled result = factor_value(o.factors[0], env);
  if (!o.signs.empty() && o.signs[0] < 0) result.value = -result.value;
  for (std::size_t i = 1; i < o.factors.size(); ++i) {
    const Value next = aligned(factor_value(o.factors[i], env), result.labels);
    if (o.signs.empty()) {
      result.value = result.value * next;
    } else {
      result.value = o.signs[i] < 0 ? result.value - next : result.value + next;
    }
  }
  return result;
}

Labelled summed_over(const Labelled& v, const Labels& labels) {
  if (labels.empty()) return v;
  Labels rest;
  for (std::int64_t l : v.labels)
    if (!contains(labels, l)) rest.push_back(l);
  return {sum(v.value, {.axes = places_of(labels, v.labels)}), rest};
}

Labelled multiplied(const Labelled& lhs, const Labelled& rhs, const Labels& out) {
  const Labels result = product_labels(lhs.labels, rhs.labels, out);
  const Roles left = roles_of(lhs.labels, rhs.labels, out);
  if (left.contract.empty()) return {aligned(lhs, result) * aligned(rhs, result), result};
  Labels batch;
  for (std::int64_t l : result)
    if (contains(left.batch, l)) batch.push_back(l);
  return {dot_general(lhs.value, rhs.value,
                      {.lhs_contract = places_of(left.contract, lhs.labels),
                       .rhs_contract = places_of(left.contract, rhs.labels),
                       .lhs_batch = places_of(batch, lhs.labels),
                       .rhs_batch = places_of(batch, rhs.labels)}),
          result};
}

Labelled multiplied_in_place(const Labelled& a, const Labelled& b) {
  Labels both = a.labels;
  for (std::int64_t l : b.labels)
    if (!contains(both, l)) both.push_back(l);
  return {aligned(a, both) * aligned(b, both), both};
}

// The product of all operands, in whatever order its axes come.
Labelled product_of(const Contraction& c, const Labels& out, std::span<const Value> env) {
  std::vector<Labelled> sides;
  for (const Operand& o : c.operands) sides.push_back(operand_value(o, env));
  if (sides.size() > 1 && !c.as_product)
    sides = {multiplied_in_place(sides[0], sides[1])};
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const Labels other = sides.size() > 1 ? sides[1 - i].labels : Labels{};
    sides[i] = summed_over(sides[i], roles_of(sides[i].labels, other, out).alone);
  }
  if (sides.size() == 1) return sides[0];
  const bool straight =
      ordered_as(product_labels(sides[0].labels, sides[1].labels, out), out) ||
      !ordered_as(product_labels(sides[1].labels, sides[0].labels, out), out);
  return straight ? multiplied(sides[0], sides[1], out)
                  : multiplied(sides[1], sides[0], out);
}

// The result's axes, stretched where no operand has them.
Value emit_one(const Contraction& c, const SumOfProducts& p, std::span<const Value> env) {
  Value v = aligned(product_of(c, p.out, env), p.out);
  if (c.scale != 1) v = c.scale == -1 ? -v : v * c.scale;
  Shape shape;
  for (std::int64_t l : p.out) shape.push_back(p.sizes[static_cast<std::size_t>(l)]);
  return broadcast_to(v, shape);
}

}  // namespace

std::optional<Contraction> as_contraction(const Term& t, const Shape& sizes) {
  Contraction c{.scale = t.scale, .operands = {}, .sums = t.sums, .gemms = t.gemms};
  for (const Factor& f : t.factors) c.operands.push_back({without_units(f.labels), {f}});
  while (c.operands.size() > 2) {
    const auto pair = fitting_pair(c.operands, sizes);
    if (!pair) return std::nullopt;
    const auto [from, into] = *pair;
    Operand& o = c.operands[into];
    for (const Factor& f : c.operands[from].factors) o.factors.push_back(f);
    c.operands.erase(c.operands.begin() + static_cast<std::ptrdiff_t>(from));
  }
  return c;
}

bool is_enlarging(const Contraction& c, const Shape& sizes) {
  if (c.operands.size() < 2) return false;
  const Labels &l = c.operands[0].labels, &r = c.operands[1].labels;
  Labels both = l;
  for (std::int64_t label : r)
    if (!contains(l, label)) both.push_back(label);
  return size_of(both, sizes) > std::max(size_of(l, sizes), size_of(r, sizes));
}

bool in_order(const Contraction& c, const Labels& out) {
  if (c.operands.size() < 2) return ordered_as(c.operands[0].labels, out);
  const Labels &l = c.operands[0].labels, &r = c.operands[1].labels;
  return ordered_as(product_labels(l, r, out), out) ||
         ordered_as(product_labels(r, l, out), out);
}

Value emit_contractions(const std::vector<Contraction>& terms, const SumOfProducts& p,
                        std::span<const Value> env) {
  Value total = emit_one(terms[0], p, env);
  for (std::size_t i = 1; i < terms.size(); ++i) {
    Contraction term = terms[i];
    const bool minus = term.scale < 0;
    if (minus) term.scale = -term.scale;
    const Value v = emit_one(term, p, env);
    total = minus ? total - v : total + v;
  }
  return total;
}

}  // namespace braintrace
