// SPDX-License-Identifier: Apache-2.0
#include "braintrace/passes/cse.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "braintrace/passes/rewrite.h"

namespace braintrace {
namespace {

struct Known {
  Attrs attrs;
  std::vector<Value> out;
};
using Key = std::tuple<const OpDef*, std::vector<ValueId>, std::uint64_t>;

Key key_of(const Site& s) {
  std::vector<ValueId> ids;
  for (const Value& v : s.in) ids.push_back(v.id());
  if (has(s.op.traits, Trait::commutative)) std::sort(ids.begin(), ids.end());
  return {&s.op, std::move(ids), structural_hash(s.attrs, ArrayHash::sampled)};
}

}  // namespace

Graph cse(const Graph& g) {
  std::map<Key, std::vector<Known>> seen;
  RewriteRules rules{.sub_graph = cse};
  rules.node = [&](Builder&, const Site& s) -> Rewrite {
    for (const Known& k : seen[key_of(s)])
      if (k.attrs == s.attrs) return k.out;
    return std::nullopt;
  };
  rules.copied = [&](const Site& s) {
    seen[key_of(s)].push_back({s.attrs, {s.out.begin(), s.out.end()}});
  };
  return rewrite(g, rules);
}

}  // namespace braintrace
