// SPDX-License-Identifier: Apache-2.0
// Reading a value as a sum of products: from the value towards its inputs.
#include <algorithm>

#include "braintrace/passes/products_impl.h"

namespace braintrace {
namespace {

// Longer chains of sums or products are read in parts: every value in them is asked, and
// looking through all of the chain each time would take the square of its length.
constexpr std::size_t kMaxTerms = 16;
constexpr int kMaxDepth = 16;

class Expander {
 public:
  Expander(const LoweredGraph& g, const ExpandOptions& options)
      : g_(g), options_(options) {}

  SumOfProducts run(ValueId root) {
    root_ = root;
    Labels out;
    for (std::int64_t n : g_.graph().type(root).shape) out.push_back(label(n));
    SumOfProducts p{out, {}, {}};
    p.terms = terms_of(root, out, true);
    p.sizes = sizes_;
    return p;
  }

 private:
  // While it lives, one sum or product further down.
  class Deeper {
   public:
    explicit Deeper(int& depth) : depth_(depth) { ++depth_; }
    ~Deeper() { --depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    int& depth_;
  };

  std::int64_t label(std::int64_t size) {
    sizes_.push_back(size);
    return static_cast<std::int64_t>(sizes_.size()) - 1;
  }

  // Nobody but the node we come from reads v.
  bool is_mine(ValueId v, bool sole) const {
    return v == root_ || (sole && g_.uses(v) == 1);
  }

  // The labels of a view's input.
  static Labels behind_view(const Ints& axes, const Labels& labels) {
    Labels in;
    for (std::int64_t o : axes)
      in.push_back(o < 0 ? -1 : labels[static_cast<std::size_t>(o)]);
    return in;
  }

  std::vector<Term> terms_of(ValueId v, const Labels& labels, bool sole) {
    const Node* n = g_.producer(v);
    if (!n) return {product_of(v, labels, sole)};
    const bool mine = is_mine(v, sole);
    if (const auto axes = view_axes(g_, *n))
      return terms_of(n->inputs[0], behind_view(*axes, labels), mine);
    if (!mine) return {product_of(v, labels, sole)};
    const Lowering& l = g_.lowering(*n);
    if (is_sum(l)) return terms_of_sum(*n, std::get<lowering::Reduce>(l), labels);
    if (is_micro(l, MicroOp::neg))
      return scaled(terms_of(n->inputs[0], labels, true), -1);
    const bool minus = is_micro(l, MicroOp::sub);
    if (!minus && !is_micro(l, MicroOp::add)) return {product_of(v, labels, sole)};
    if (depth_ == kMaxDepth) return {Term{.factors = {{v, labels}}}};
    const Deeper below(depth_);
    std::vector<Term> left = terms_of(n->inputs[0], labels, true);
    const std::vector<Term> right = terms_of(n->inputs[1], labels, true);
    if (left.size() + right.size() > kMaxTerms) return {Term{.factors = {{v, labels}}}};
    for (Term t : scaled(right, minus ? -1 : 1)) left.push_back(std::move(t));
    return left;
  }

  static std::vector<Term> scaled(std::vector<Term> terms, double by) {
    for (Term& t : terms) t.scale *= by;
    return terms;
  }

  std::vector<Term> terms_of_sum(const Node& n, const lowering::Reduce& r,
                                 const Labels& labels) {
    const Shape& shape = g_.graph().type(n.inputs[0]).shape;
    Labels inner, summed;
    auto kept = labels.begin();
    for (std::size_t a = 0; a < shape.size(); ++a) {
      const bool gone = std::find(r.axes.begin(), r.axes.end(),
                                  static_cast<std::int64_t>(a)) != r.axes.end();
      inner.push_back(gone ? label(shape[a]) : *kept++);
      if (gone) summed.push_back(inner.back());
    }
    if (options_.split_operands) whole_ = g_.graph().type(n.inputs[0]).size();
    std::vector<Term> terms = terms_of(n.inputs[0], inner, true);
    for (Term& t : terms) {
      ++t.sums;
      scale_by_missing(t, summed);
    }
    return terms;
  }

  // A sum over an axis that no factor has repeats the product.
  void scale_by_missing(Term& t, const Labels& summed) const {
    for (std::int64_t s : summed)
      if (!occurs(t, s))
        t.scale *= static_cast<double>(sizes_[static_cast<std::size_t>(s)]);
  }

  static bool occurs(const Term& t, std::int64_t wanted) {
    return std::any_of(t.factors.begin(), t.factors.end(), [&](const Factor& f) {
      return std::find(f.labels.begin(), f.labels.end(), wanted) != f.labels.end();
    });
  }

  Term product_of(ValueId v, const Labels& labels, bool sole) {
    Term t;
    multiply(t, v, labels, sole);
    return t;
  }

  void multiply(Term& t, ValueId v, const Labels& labels, bool sole) {
    const Node* n = g_.producer(v);
    const bool mine = n && is_mine(v, sole);
    if (!n) {
      t.factors.push_back({v, labels});
    } else if (const auto axes = view_axes(g_, *n)) {
      multiply(t, n->inputs[0], behind_view(*axes, labels), mine);
    } else if ((mine || is_whole(v)) && is_micro(g_.lowering(*n), MicroOp::mul) &&
               depth_ < kMaxDepth) {
      const Deeper below(depth_);
      multiply(t, n->inputs[0], labels, true);
      multiply(t, n->inputs[1], labels, true);
    } else if (const auto* gemm = plain_gemm(g_, *n); mine && gemm && may_split(v)) {
      multiply_gemm(t, *n, *gemm, labels);
    } else {
      t.factors.push_back({v, labels});
    }
  }

  // As large as the operand it is part of: others may read it, but what it is made of is
  // small or as large.
  bool is_whole(ValueId v) const { return g_.graph().type(v).size() == whole_; }
  bool may_split(ValueId v) const { return options_.split_gemms || v == root_; }

  void multiply_gemm(Term& t, const Node& n, const lowering::Gemm& gemm,
                     const Labels& labels) {
    ++t.gemms;
    const Shape& lhs = g_.graph().type(n.inputs[0]).shape;
    const Shape& rhs = g_.graph().type(n.inputs[1]).shape;
    Labels left(lhs.size(), -1), right(rhs.size(), -1);
    const auto at = [](Labels& l, std::int64_t a) -> std::int64_t& {
      return l[static_cast<std::size_t>(a)];
    };
    auto next = labels.begin();
    for (std::size_t i = 0; i < gemm.lhs_batch.size(); ++i, ++next)
      at(left, gemm.lhs_batch[i]) = at(right, gemm.rhs_batch[i]) = *next;
    for (std::size_t i = 0; i < gemm.lhs_contract.size(); ++i)
      at(left, gemm.lhs_contract[i]) = at(right, gemm.rhs_contract[i]) =
          label(lhs[static_cast<std::size_t>(gemm.lhs_contract[i])]);
    fill_free(left, gemm.lhs_batch, gemm.lhs_contract, next);
    fill_free(right, gemm.rhs_batch, gemm.rhs_contract, next);
    Ints summed;
    for (std::int64_t a : gemm.lhs_contract) summed.push_back(at(left, a));
    multiply_operand(t, n.inputs[0], std::move(left));
    multiply_operand(t, n.inputs[1], std::move(right));
    scale_by_missing(t, summed);
  }

  static void fill_free(Labels& labels, const Ints& batch, const Ints& contract,
                        Labels::const_iterator& next) {
    for (std::size_t a = 0; a < labels.size(); ++a) {
      const auto axis = static_cast<std::int64_t>(a);
      const auto in = [&](const Ints& list) {
        return std::find(list.begin(), list.end(), axis) != list.end();
      };
      if (!in(batch) && !in(contract)) labels[a] = *next++;
    }
  }

  void multiply_operand(Term& t, ValueId v, Labels labels) {
    if (options_.split_operands) {
      whole_ = g_.graph().type(v).size();
      return multiply(t, v, labels, true);
    }
    while (const Node* n = g_.producer(v)) {
      const auto axes = view_axes(g_, *n);
      if (!axes) break;
      labels = behind_view(*axes, labels);
      v = n->inputs[0];
    }
    t.factors.push_back({v, std::move(labels)});
  }

  const LoweredGraph& g_;
  const ExpandOptions& options_;
  ValueId root_;
  std::int64_t whole_ = 0;  // size of an operand that is being split
  Shape sizes_;
  int depth_ = 0;
};

}  // namespace

SumOfProducts expand_products(const LoweredGraph& g, ValueId v,
                              const ExpandOptions& options) {
  return Expander(g, options).run(v);
}

}  // namespace braintrace
