// SPDX-License-Identifier: Apache-2.0
#pragma once
// Static parameters of a node: a sorted list name -> variant, so that equality, hashing,
// printing, parsing and saving are written once for all ops.
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "braintrace/array/array.h"
#include "braintrace/array/index_list.h"

namespace braintrace {

class Graph;
using GraphPtr = std::shared_ptr<const Graph>;

using Attr = std::variant<bool, std::int64_t, double, std::string, Ints, DType, GraphPtr,
                          Array, IndexList>;
// Same order as the alternatives of Attr.
// `indices`: lists as long as a network; written like ints.
enum class AttrKind { boolean, integer, real, text, ints, dtype, graph, array, indices };

std::string_view to_string(AttrKind kind);
inline AttrKind kind_of(const Attr& a) { return static_cast<AttrKind>(a.index()); }

class Attrs {
 public:
  using Entry = std::pair<std::string, Attr>;

  Attrs() = default;
  Attrs(std::initializer_list<Entry> entries);
  // Copies are made everywhere: one definition, not one in every file that makes them.
  Attrs(const Attrs&);
  Attrs(Attrs&&) noexcept;
  Attrs& operator=(const Attrs&);
  Attrs& operator=(Attrs&&) noexcept;
  ~Attrs();

  const Attr* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  void set(std::string name, Attr value);

  // UserError "missing attribute ..." / "attribute ... must be ..." when absent or of
  // another kind.
  bool flag(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const Ints& ints(std::string_view name) const;
  DType dtype(std::string_view name) const;
  const GraphPtr& graph(std::string_view name) const;
  const Array& array(std::string_view name) const;
  const IndexList& indices(std::string_view name) const;

  const std::vector<Entry>& entries() const;
  bool empty() const { return entries_ == nullptr; }

  // Sub-graphs compare by structure, doubles and arrays by bits (all NaNs equal).
  friend bool operator==(const Attrs& a, const Attrs& b);

 private:
  template <class T>
  const T& get(std::string_view name) const;
  // Sorted by name; null: none. Copies share them until one is set: every pass copies
  // nearly all nodes as they are.
  std::shared_ptr<std::vector<Entry>> entries_;
};

bool same_attr(const Attr& a, const Attr& b);

}  // namespace braintrace
