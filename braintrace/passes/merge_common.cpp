// SPDX-License-Identifier: Apache-2.0
// a b + a c = a (b + c), up to the names of the labels that are summed over.
#include <algorithm>
#include <map>

#include "braintrace/passes/products_impl.h"

namespace braintrace {
namespace {

bool is_single(const Operand& o) { return o.factors.size() == 1 && o.signs.empty(); }

// The names of b's summed labels that make it a, if the two are the same value read the
// same way.
std::optional<std::map<std::int64_t, std::int64_t>> renaming(const Operand& a,
                                                             const Operand& b,
                                                             const Labels& out) {
  if (!is_single(a) || !is_single(b) || a.factors[0].base != b.factors[0].base)
    return std::nullopt;
  const Labels &to = a.factors[0].labels, &from = b.factors[0].labels;
  std::map<std::int64_t, std::int64_t> names;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const bool fixed =
        to[i] < 0 || from[i] < 0 || contains(out, to[i]) || contains(out, from[i]);
    if (fixed && to[i] != from[i]) return std::nullopt;
    names[from[i]] = to[i];
  }
  return names;
}

void rename(Labels& labels, const std::map<std::int64_t, std::int64_t>& names) {
  for (std::int64_t& l : labels)
    if (const auto it = names.find(l); it != names.end()) l = it->second;
}

bool same_set(Labels a, Labels b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

bool may_sum(const Operand& o) { return o.factors.size() == 1 || !o.signs.empty(); }

// Adds `more`, scaled by -1 or 1 relative to `into`.
void add_operand(Operand& into, const Operand& more, double sign) {
  if (into.signs.empty()) into.signs = {1};
  into.factors.push_back(more.factors[0]);
  into.signs.push_back(sign);
}

// Puts b into a. Summed labels of b that the common operand does not have would keep
// their names, so the label sets must agree.
bool merge_into(Contraction& a, const Contraction& b, const Labels& out) {
  if (a.operands.size() != 2 || b.operands.size() != 2) return false;
  if (a.gemms == 0 || b.gemms == 0 || std::abs(a.scale) != std::abs(b.scale))
    return false;
  for (const std::size_t i : {0, 1})
    for (const std::size_t j : {0, 1}) {
      const auto names = renaming(a.operands[i], b.operands[j], out);
      Operand other = b.operands[1 - j];
      if (!names || !is_single(other) || !may_sum(a.operands[1 - i])) continue;
      rename(other.labels, *names);
      rename(other.factors[0].labels, *names);
      if (!same_set(a.operands[1 - i].labels, other.labels)) continue;
      add_operand(a.operands[1 - i], other, a.scale == b.scale ? 1 : -1);
      return true;
    }
  return false;
}

}  // namespace

bool merge_common(std::vector<Contraction>& terms, const Labels& out) {
  bool found = false;
  for (std::size_t i = 0; i < terms.size(); ++i)
    for (std::size_t j = i + 1; j < terms.size();) {
      if (!merge_into(terms[i], terms[j], out)) {
        ++j;
        continue;
      }
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(j));
      found = true;
    }
  return found;
}

}  // namespace braintrace
