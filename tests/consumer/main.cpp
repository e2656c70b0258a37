// SPDX-License-Identifier: Apache-2.0
// Uses the installed library as a stranger would: eager values, a trace, its text.
#include <cmath>
#include <cstdio>

#include <braintrace/ir/builder.h>
#include <braintrace/ir/print.h>
#include <braintrace/ops/ops.h>
#include <braintrace/ops/registry.h>

namespace bt = braintrace;

int main() {
  const bt::Value y = bt::tanh(bt::array({0.5, -1}, bt::DType::f64)) * 2;
  if (std::abs(y.array().at(0) - 2 * std::tanh(0.5)) > 1e-15) {
    std::puts("consumer: eager value is wrong");
    return 1;
  }
  const auto builder = bt::Builder::create();
  const bt::Value x = builder->input({bt::DType::f32, {2}});
  const bt::Graph program = builder->finish({{bt::tanh(x) + 1}});
  const std::string text = bt::print(program);
  if (!(bt::parse(text) == program)) {
    std::puts("consumer: the text form does not give the program back");
    return 1;
  }
  std::printf("consumer: ok\n%s", text.c_str());
  return 0;
}
