// SPDX-License-Identifier: Apache-2.0
// Products that are only added.
#include "braintrace/run/plan_groups_impl.h"

namespace braintrace::plan {

bool is_product(const Lowering& l) {
  return std::holds_alternative<lowering::Gemm>(l) ||
         std::holds_alternative<lowering::SparseOuter>(l);
}

namespace {

// Which nodes add products that nobody else reads, so that each can be added where the
// one before it lies: two products, or any number of them to an input that becomes an
// output.
class ProductSums {
 public:
  ProductSums(const Graph& g, std::span<const Lowering> lowered)
      : g_(g),
        reads_(g.num_values(), 0),
        kind_(g.num_values(), Kind::other),
        producer_(g.num_values(), -1),
        found_(g.nodes().size(), false) {
    for (ValueId v : g.inputs()) kind_[v.index] = Kind::input;
    for (ValueId v : g.outputs()) ++reads_[v.index];
    for (const Node& n : g.nodes())
      for (ValueId v : n.inputs) ++reads_[v.index];
    for (std::size_t i = 0; i < g.nodes().size(); ++i) look_at(i, lowered[i]);
    for (ValueId v : g.outputs())
      if (kind_[v.index] == Kind::moved && reads_[v.index] == 1) take(v);
  }
  std::vector<bool> found() && { return std::move(found_); }

 private:
  enum class Kind : std::uint8_t {
    other,
    input,
    product,
    sum,    // of two products
    moved,  // an input to which products are added
  };
  Kind joined(ValueId v, const Type& type) const {
    const Kind kind = kind_[v.index];
    const bool fits = g_.type(v) == type && (kind == Kind::input || reads_[v.index] == 1);
    return fits ? kind : Kind::other;
  }
  static Kind of(Kind a, Kind b) {
    const auto adds = [](Kind k) { return k == Kind::product || k == Kind::sum; };
    const auto begins = [](Kind k) { return k == Kind::input || k == Kind::moved; };
    if (a == Kind::product && b == Kind::product) return Kind::sum;
    return (begins(a) && adds(b)) || (adds(a) && begins(b)) ? Kind::moved : Kind::other;
  }

  void look_at(std::size_t i, const Lowering& l) {
    const Node& n = g_.nodes()[i];
    for (ValueId v : n.outputs) producer_[v.index] = static_cast<std::int64_t>(i);
    if (n.outputs.size() != 1 || !is_float(g_.type(n.outputs[0]).dtype)) return;
    const ValueId out = n.outputs[0];
    if (is_product(l)) kind_[out.index] = Kind::product;
    const auto* e = std::get_if<lowering::Elementwise>(&l);
    if (!e || e->op != MicroOp::add) return;
    const Type& type = g_.type(out);
    kind_[out.index] = of(joined(n.inputs[0], type), joined(n.inputs[1], type));
    found_[i] = kind_[out.index] == Kind::sum;
  }
  void take(ValueId moved) {
    const auto i = static_cast<std::size_t>(producer_[moved.index]);
    found_[i] = true;
    for (ValueId v : g_.nodes()[i].inputs)
      if (kind_[v.index] == Kind::moved) take(v);
  }

  const Graph& g_;
  std::vector<int> reads_;              // by value
  std::vector<Kind> kind_;              // by value
  std::vector<std::int64_t> producer_;  // by value: node, or -1
  std::vector<bool> found_;             // by node
};

}  // namespace

std::vector<bool> additions_of_products(const Graph& g,
                                        std::span<const Lowering> lowered) {
  return ProductSums(g, lowered).found();
}

}  // namespace braintrace::plan
