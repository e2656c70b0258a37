// SPDX-License-Identifier: Apache-2.0
#include "braintrace/ir/attrs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "braintrace/ir/graph.h"

namespace braintrace {
namespace {

constexpr std::array<std::string_view, 9> kKindNames = {
    "boolean", "integer", "real", "text", "ints", "dtype", "graph", "array", "indices"};

auto lower_bound(auto& entries, std::string_view name) {
  return std::lower_bound(entries.begin(), entries.end(), name,
                          [](const auto& e, std::string_view n) { return e.first < n; });
}

}  // namespace

std::string_view to_string(AttrKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

Attrs::Attrs(const Attrs&) = default;
Attrs::Attrs(Attrs&&) noexcept = default;
Attrs& Attrs::operator=(const Attrs&) = default;
Attrs& Attrs::operator=(Attrs&&) noexcept = default;
Attrs::~Attrs() = default;

Attrs::Attrs(std::initializer_list<Entry> entries) {
  for (const Entry& e : entries) set(e.first, e.second);
}

const std::vector<Attrs::Entry>& Attrs::entries() const {
  static const std::vector<Entry> none;
  return entries_ ? *entries_ : none;
}

const Attr* Attrs::find(std::string_view name) const {
  const auto it = lower_bound(entries(), name);
  return it != entries().end() && it->first == name ? &it->second : nullptr;
}

void Attrs::set(std::string name, Attr value) {
  if (entries_.use_count() != 1)
    entries_ = std::make_shared<std::vector<Entry>>(entries());
  const auto it = lower_bound(*entries_, name);
  if (it != entries_->end() && it->first == name) {
    it->second = std::move(value);
  } else {
    entries_->insert(it, {std::move(name), std::move(value)});
  }
}

template <class T>
const T& Attrs::get(std::string_view name) const {
  const Attr* a = find(name);
  BT_REQUIRE(a, fmt::format("missing attribute '{}'", name));
  const T* value = std::get_if<T>(a);
  BT_REQUIRE_KIND(value, ErrorKind::type,
                  fmt::format("attribute '{}' must be {}, got {}", name,
                              to_string(kind_of(Attr(T{}))), to_string(kind_of(*a))));
  return *value;
}

bool Attrs::flag(std::string_view name) const { return get<bool>(name); }
std::int64_t Attrs::integer(std::string_view name) const {
  return get<std::int64_t>(name);
}
double Attrs::real(std::string_view name) const { return get<double>(name); }
const std::string& Attrs::text(std::string_view name) const {
  return get<std::string>(name);
}
const Ints& Attrs::ints(std::string_view name) const { return get<Ints>(name); }
DType Attrs::dtype(std::string_view name) const { return get<DType>(name); }
const GraphPtr& Attrs::graph(std::string_view name) const { return get<GraphPtr>(name); }
const Array& Attrs::array(std::string_view name) const { return get<Array>(name); }
const IndexList& Attrs::indices(std::string_view name) const {
  return get<IndexList>(name);
}

bool same_attr(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  if (const auto* g = std::get_if<GraphPtr>(&a)) {
    const auto& h = std::get<GraphPtr>(b);
    return *g == h || (*g && h && **g == *h);
  }
  if (const auto* x = std::get_if<double>(&a)) {
    const double y = std::get<double>(b);
    if (std::isnan(*x)) return std::isnan(y);
    return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(y);
  }
  return a == b;
}

bool operator==(const Attrs& a, const Attrs& b) {
  return a.entries_ == b.entries_ ||
         std::equal(a.entries().begin(), a.entries().end(), b.entries().begin(),
                    b.entries().end(), [](const auto& x, const auto& y) {
                      return x.first == y.first && same_attr(x.second, y.second);
                    });
}

}  // namespace braintrace
