// SPDX-License-Identifier: Apache-2.0
// Deciding about and writing products of two operands.
#include <algorithm>
#include <tuple>

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

// Every factor an operand.
Contraction separate(const Term& t) {
  Contraction c{.scale = t.scale, .operands = {}, .sums = t.sums, .gemms = t.gemms};
  for (const Factor& f : t.factors) c.operands.push_back({without_units(f.labels), {f}});
  return c;
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

// `from` becomes part of `into`, which has all its labels. False: it can not.
bool multiply_into(std::vector<Operand>& operands, std::size_t from, std::size_t into) {
  Operand& whole = operands[into];
  if (!whole.outer.empty()) {
    whole.outer.push_back(operands[from]);
  } else {
    if (!operands[from].outer.empty()) return false;
    for (const Factor& f : operands[from].factors) whole.factors.push_back(f);
  }
  operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(from));
  return true;
}

Labels united(const Labels& a, const Labels& b) {
  Labels both = a;
  for (std::int64_t l : b)
    if (!contains(a, l)) both.push_back(l);
  return both;
}

// The two whose outer product is the smallest become one, in the order of `out`.
void spread_smallest(std::vector<Operand>& operands, const Shape& sizes,
                     const Labels& out) {
  std::size_t a = 0, b = 1;
  const auto size = [&](std::size_t i, std::size_t j) {
    return size_of(united(operands[i].labels, operands[j].labels), sizes);
  };
  for (std::size_t i = 0; i < operands.size(); ++i)
    for (std::size_t j = i + 1; j < operands.size(); ++j)
      if (size(i, j) < size(a, b)) std::tie(a, b) = std::tuple(i, j);
  Operand whole;
  const Labels both = united(operands[a].labels, operands[b].labels);
  for (std::int64_t l : both)
    if (!contains(out, l)) whole.labels.push_back(l);
  for (std::int64_t l : out)
    if (contains(both, l)) whole.labels.push_back(l);
  whole.outer = {operands[a], operands[b]};
  operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(b));
  operands[a] = std::move(whole);
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
  Labels wanted, kept;
  for (std::int64_t l : out)
    if (contains(labels, l)) wanted.push_back(l);
  for (std::int64_t l : labels)
    if (contains(out, l)) kept.push_back(l);
  return kept == wanted;
}

// Of the product lhs * rhs.
OrderKept order_kept(const Labels& lhs, const Labels& rhs, const Labels& out) {
  const Labels labels = product_labels(lhs, rhs, out);
  if (ordered_as(labels, out)) return OrderKept::all;
  return !labels.empty() && labels.back() == out.back() ? OrderKept::rows
                                                        : OrderKept::none;
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
  Labelled result;
  if (o.outer.empty()) {
    result = factor_value(o.factors[0], env);
    if (!o.signs.empty() && o.signs[0] < 0) result.value = -result.value;
  } else {
    result = {aligned(operand_value(o.outer[0], env), o.labels), o.labels};
    for (std::size_t i = 1; i < o.outer.size(); ++i)
      result.value = result.value * aligned(operand_value(o.outer[i], env), o.labels);
  }
  for (std::size_t i = o.outer.empty() ? 1 : 0; i < o.factors.size(); ++i) {
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
  const Labels both = united(a.labels, b.labels);
  return {aligned(a, both) * aligned(b, both), both};
}

// The same along further axes in front.
Labelled repeated(const Labelled& v, const Labels& labels, const Shape& sizes) {
  Labelled result = v;
  Shape shape = v.value.shape();
  for (std::size_t i = labels.size(); i-- > 0;) {
    result.labels.insert(result.labels.begin(), labels[i]);
    shape.insert(shape.begin(), sizes[static_cast<std::size_t>(labels[i])]);
  }
  result.value = broadcast_to(v.value, shape);
  return result;
}

// The product of all operands, in whatever order its axes come.
Labelled product_of(const Contraction& c, const SumOfProducts& p,
                    std::span<const Value> env) {
  const Labels& out = p.out;
  std::vector<Labelled> sides;
  for (const Operand& o : c.operands) sides.push_back(operand_value(o, env));
  if (sides.size() > 1 && !c.as_product)
    sides = {multiplied_in_place(sides[0], sides[1])};
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const Labels other = sides.size() > 1 ? sides[1 - i].labels : Labels{};
    sides[i] = summed_over(sides[i], roles_of(sides[i].labels, other, out).alone);
  }
  if (sides.size() == 1) return sides[0];
  if (!c.repeated.empty())
    for (Labelled& side : sides)
      if (!contains(side.labels, c.repeated[0]))
        side = repeated(side, c.repeated, p.sizes);
  const OrderKept straight = order_kept(sides[0].labels, sides[1].labels, out);
  const OrderKept turned = order_kept(sides[1].labels, sides[0].labels, out);
  return straight >= turned ? multiplied(sides[0], sides[1], out)
                            : multiplied(sides[1], sides[0], out);
}

// The result's axes, stretched where no operand has them.
Value emit_one(const Contraction& c, const SumOfProducts& p, std::span<const Value> env) {
  Value v = aligned(product_of(c, p, env), p.out);
  for (const Factor& f : c.outside) v = v * aligned(factor_value(f, env), p.out);
  if (c.scale != 1) v = c.scale == -1 ? -v : v * c.scale;
  Shape shape;
  for (std::int64_t l : p.out) shape.push_back(p.sizes[static_cast<std::size_t>(l)]);
  return broadcast_to(v, shape);
}

}  // namespace

std::optional<Contraction> as_contraction(const Term& t, const Shape& sizes) {
  Contraction c = separate(t);
  while (c.operands.size() > 2) {
    const auto pair = fitting_pair(c.operands, sizes);
    if (!pair || !multiply_into(c.operands, pair->first, pair->second))
      return std::nullopt;
  }
  return c;
}

std::optional<Contraction> as_spread_contraction(const Term& t, const SumOfProducts& p,
                                                 std::size_t num_operands) {
  Contraction c = separate(t);
  std::erase_if(c.operands, [&](const Operand& o) {
    const bool unmet = within(o.labels, p.out);
    if (unmet) c.outside.push_back(o.factors[0]);
    return unmet;
  });
  if (c.operands.empty()) return std::nullopt;
  while (c.operands.size() > num_operands) {
    if (const auto pair = fitting_pair(c.operands, p.sizes)) {
      if (!multiply_into(c.operands, pair->first, pair->second)) return std::nullopt;
    } else {
      spread_smallest(c.operands, p.sizes, p.out);
    }
  }
  return c;
}

std::int64_t largest_operand(const Contraction& c, const Shape& sizes) {
  std::int64_t largest = 0;
  for (const Operand& o : c.operands)
    largest = std::max(largest, size_of(o.labels, sizes));
  return largest;
}

bool is_enlarging(const Contraction& c, const Shape& sizes) {
  if (c.operands.size() < 2) return false;
  return size_of(united(c.operands[0].labels, c.operands[1].labels), sizes) >
         largest_operand(c, sizes);
}

OrderKept order_kept(const Contraction& c, const Labels& out) {
  if (c.operands.size() < 2) return order_kept(c.operands[0].labels, {}, out);
  const Labels &l = c.operands[0].labels, &r = c.operands[1].labels;
  return std::max(order_kept(l, r, out), order_kept(r, l, out));
}

std::optional<Contraction> as_many_products(const Contraction& c,
                                            const SumOfProducts& p) {
  constexpr std::int64_t kWorthACall = 1 << 14, kRow = 16;  // multiplications, columns
  const auto long_axis = std::find_if(p.out.begin(), p.out.end(), [&](std::int64_t l) {
    return p.sizes[static_cast<std::size_t>(l)] > 1;
  });
  if (c.operands.size() != 2 || long_axis == p.out.end()) return std::nullopt;
  Contraction many = c;
  const std::int64_t first = *long_axis;
  const bool left = contains(c.operands[0].labels, first);
  if (left == contains(c.operands[1].labels, first)) return std::nullopt;
  Operand &with = many.operands[left ? 0 : 1], &without = many.operands[left ? 1 : 0];
  many.repeated = {first};
  const Labels stretched = united(many.repeated, without.labels);
  const bool kept = std::max(order_kept(with.labels, stretched, p.out),
                             order_kept(stretched, with.labels, p.out)) == OrderKept::all;
  const std::int64_t work = size_of(united(with.labels, without.labels), p.sizes) /
                            p.sizes[static_cast<std::size_t>(first)];
  if (!kept || work < kWorthACall ||
      p.sizes[static_cast<std::size_t>(p.out.back())] < kRow)
    return std::nullopt;
  std::erase_if(many.outside, [&](const Factor& f) {
    const bool joins = within(without_units(f.labels), with.labels);
    if (joins) with.factors.push_back(f);
    return joins;
  });
  return many;
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
