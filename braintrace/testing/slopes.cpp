// SPDX-License-Identifier: Apache-2.0
#include "braintrace/testing/slopes.h"

#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/transforms/vjp.h"

namespace braintrace::testing {

std::vector<double> slopes(const std::function<Value(const Values&)>& f,
                           const std::vector<double>& point) {
  const auto builder = Builder::create();
  Values in;
  std::vector<Array> at;
  for (double x : point) {
    in.push_back(builder->input({DType::f64, {}}));
    at.push_back(scalar(x, DType::f64));
  }
  const Graph gradient = grad(builder->finish(Values{f(in)}));
  std::vector<double> d;
  for (const Array& a : eval_graph(gradient, at)) d.push_back(a.item());
  return d;
}

}  // namespace braintrace::testing
