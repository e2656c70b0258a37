// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/product_bound.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "braintrace/array/array.h"
#include "braintrace/ir/op_def.h"
#include "braintrace/passes/optimize_for_run.h"
#include "braintrace/run/gemm.h"
#include "braintrace/run/thread_pool.h"

namespace braintrace {
namespace {

using Key = std::tuple<DType, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

std::int64_t size_of_axes(const Shape& shape, const Ints& axes) {
  std::int64_t n = 1;
  for (std::int64_t a : axes) n *= shape[static_cast<std::size_t>(a)];
  return n;
}

void collect(const Graph& g, double times, std::map<Key, double>& out) {
  for (const Node& n : g.nodes()) {
    if (!n.op->lower) continue;
    std::vector<Type> in, result;
    for (ValueId v : n.inputs) in.push_back(g.type(v));
    for (ValueId v : n.outputs) result.push_back(g.type(v));
    const Lowering low = n.op->lower({in, result, n.attrs});
    if (const auto* scan = std::get_if<lowering::Scan>(&low))
      collect(*scan->body, times * static_cast<double>(scan->length), out);
    const auto* product = std::get_if<lowering::Gemm>(&low);
    if (!product) continue;
    const Type &a = g.type(n.inputs[0]), &b = g.type(n.inputs[1]);
    const std::int64_t batch = size_of_axes(a.shape, product->lhs_batch),
                       k = size_of_axes(a.shape, product->lhs_contract);
    const std::int64_t work = batch * k;
    if (work == 0) continue;
    out[{a.dtype, num_elements(a.shape) / work, num_elements(b.shape) / work, k,
         batch}] += times;
  }
}

double seconds_of(const ProductShape& p, ThreadPool& pool) {
  GemmSpec s{.dtype = p.dtype, .m = p.m, .n = p.n, .k = p.k, .batch = p.batch};
  s.a = {.row = p.k, .col = 1, .batch = p.m * p.k};
  s.b = {.row = p.n, .col = 1, .batch = p.k * p.n};
  s.c = {.row = p.n, .col = 1, .batch = p.m * p.n};
  Array a = ones({p.batch, p.m, p.k}, p.dtype), b = ones({p.batch, p.k, p.n}, p.dtype),
        c = zeros({p.batch, p.m, p.n}, p.dtype);
  double best = 1e30;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i) {
    const auto start = std::chrono::steady_clock::now();
    gemm(s, a.raw(), b.raw(), c.mutable_raw(), pool);
    const auto end = std::chrono::steady_clock::now();
    best = std::min(best, std::chrono::duration<double>(end - start).count());
    if (i > 3 && std::chrono::duration<double>(end - begin).count() > 0.1) break;
  }
  return best;
}

}  // namespace

std::vector<ProductShape> products_of(const Graph& g) {
  std::map<Key, double> found;
  collect(optimize_for_run(g), 1, found);
  std::vector<ProductShape> out;
  for (const auto& [key, times] : found)
    out.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key),
                   std::get<4>(key), times});
  return out;
}

double seconds_of_products(const std::vector<ProductShape>& products, int threads) {
  ThreadPool pool(threads > 0 ? threads : default_threads());
  double total = 0;
  for (const ProductShape& p : products) total += seconds_of(p, pool) * p.times;
  return total;
}

}  // namespace braintrace
