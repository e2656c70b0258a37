// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "braintrace/ir/op_def.h"

namespace braintrace {
namespace {

class Hasher {
 public:
  explicit Hasher(ArrayHash arrays) : arrays_(arrays) {}

  void add(std::uint64_t v) {
    state_ ^= v + 0x9e3779b97f4a7c15ull + (state_ << 6) + (state_ >> 2);
    state_ *= 0xff51afd7ed558ccdull;
    state_ ^= state_ >> 33;
  }
  void add(std::string_view s) { add(std::hash<std::string_view>{}(s)); }
  void add(double d) {
    add(std::isnan(d) ? std::uint64_t{0x7ff8000000000000}
                      : std::bit_cast<std::uint64_t>(d));
  }
  void add(const Ints& v) {
    add(std::uint64_t{v.size()});
    for (std::int64_t i : v) add(static_cast<std::uint64_t>(i));
  }
  void add(const Type& t) {
    add(static_cast<std::uint64_t>(t.dtype));
    add(t.shape);
  }
  void add(const Array& a) {
    add(type_of(a));
    const std::int64_t n = a.size();
    const std::int64_t step =
        arrays_ == ArrayHash::sampled ? std::max<std::int64_t>(1, n / kSamples) : 1;
    for (std::int64_t i = 0; i < n; i += step) add(a.at(i));
  }
  void add(const std::vector<ValueId>& ids) {
    add(std::uint64_t{ids.size()});
    for (ValueId v : ids) add(std::uint64_t{v.index});
  }
  void add(const Attr& a) {
    add(std::uint64_t{a.index()});
    std::visit([this](const auto& v) { add_alternative(v); }, a);
  }
  std::uint64_t value() const { return state_; }

 private:
  void add_alternative(bool v) { add(std::uint64_t{v}); }
  void add_alternative(std::int64_t v) { add(static_cast<std::uint64_t>(v)); }
  void add_alternative(double v) { add(v); }
  void add_alternative(const std::string& v) { add(std::string_view(v)); }
  void add_alternative(const Ints& v) { add(v); }
  void add_alternative(DType v) { add(static_cast<std::uint64_t>(v)); }
  void add_alternative(const GraphPtr& v) {
    add(v ? structural_hash(*v, arrays_) : std::uint64_t{0});
  }
  void add_alternative(const Array& v) { add(v); }
  void add_alternative(const IndexList& v) { add(v.hash()); }

  static constexpr std::int64_t kSamples = 64;
  ArrayHash arrays_;
  std::uint64_t state_ = 0;
};

bool same(const Node& a, const Node& b) {
  return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs &&
         a.attrs == b.attrs;
}

}  // namespace

Graph::Graph() = default;
Graph::Graph(GraphParts parts) : p_(std::move(parts)) {}
Graph::Graph(const Graph&) = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(const Graph&) = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

std::vector<Type> Graph::types_of(std::span<const ValueId> ids) const {
  std::vector<Type> out;
  out.reserve(ids.size());
  for (ValueId v : ids) out.push_back(type(v));
  return out;
}

bool operator==(const Graph& a, const Graph& b) {
  return a.p_.types == b.p_.types && a.p_.inputs == b.p_.inputs &&
         a.p_.outputs == b.p_.outputs &&
         std::equal(a.p_.nodes.begin(), a.p_.nodes.end(), b.p_.nodes.begin(),
                    b.p_.nodes.end(), same);
}

std::uint64_t structural_hash(const Attrs& attrs, ArrayHash arrays) {
  Hasher h(arrays);
  for (const auto& [name, value] : attrs.entries()) {
    h.add(std::string_view(name));
    h.add(value);
  }
  return h.value();
}

std::uint64_t structural_hash(const Graph& g, ArrayHash arrays) {
  Hasher h(arrays);
  for (ValueId v : g.inputs()) h.add(g.type(v));
  for (const Node& n : g.nodes()) {
    h.add(n.op->name);
    h.add(n.inputs);
    h.add(n.outputs);
    h.add(structural_hash(n.attrs, arrays));
  }
  h.add(std::vector<ValueId>(g.outputs().begin(), g.outputs().end()));
  return h.value();
}

}  // namespace braintrace
