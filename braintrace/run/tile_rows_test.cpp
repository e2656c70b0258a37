// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/run/fused_sum.h"
#include "braintrace/run/tile_compile_impl.h"
#include "braintrace/run/trace_specs_impl.h"

namespace tile_rows_test {

using namespace braintrace;
using namespace braintrace::trace_specs;

TEST_CASE("rows of all samples at once give the bits of one sample after the other") {
  constexpr std::int64_t kSamples = 3;
  const TileSpec one = one_state(DType::f32, false);
  // e, d, df, x, s of every sample; the last add is that of the sum.
  FusedSumSpec spec{.chain = one, .num_lead = 1, .summed = {9}};
  spec.chain.loop = {kSamples, kRows, kColumns};
  spec.chain.inputs.pop_back();
  spec.chain.steps.pop_back();
  spec.chain.outputs.pop_back();
  for (TileStep& s : spec.chain.steps)
    for (int& v : s.operands) v -= v > 5 ? 1 : 0;
  spec.chain.outputs[0].value = 7;
  spec.summed = {8};
  const std::int64_t sizes[] = {kRows * kColumns, kColumns, kColumns, kRows, kColumns};
  std::vector<std::vector<float>> memory;
  for (std::size_t i = 0; i < 5; ++i) {
    TileInput& input = spec.chain.inputs[i];
    input.strides.insert(input.strides.begin(), sizes[i]);
    memory.push_back(drawn<float>(static_cast<std::size_t>(kSamples * sizes[i]), i));
  }
  spec.chain.outputs[0].strides = spec.chain.inputs[0].strides;
  std::vector<std::vector<float>> want = memory;
  std::vector<float> sum(kRows * kColumns), want_sum(kRows * kColumns);
  ThreadPool pool(1);
  for (std::int64_t b = 0; b < kSamples; ++b) {
    std::vector<const void*> in;
    for (std::size_t i = 0; i < 5; ++i) in.push_back(want[i].data() + b * sizes[i]);
    in.push_back(want_sum.data());
    const std::vector<void*> out{want[0].data() + b * sizes[0], want_sum.data()};
    TileProgram(one).run(in, out, pool);
  }
  const std::vector<const void*> in{memory[0].data(), memory[1].data(), memory[2].data(),
                                    memory[3].data(), memory[4].data()};
  const std::vector<void*> out{memory[0].data(), sum.data()};
  FusedSum(spec).run(in, out, pool);
  CHECK((memory[0] == want[0]));
  CHECK((sum == want_sum));
}

TEST_CASE("rows of a long chain lie together, those of a trace do not") {
  const DType t = DType::f32;
  TileSpec chain{.loop = {64, 32},
                 .inputs = {{t, {0, 1}}, {t, {1, 0}}},
                 .steps = {{MicroOp::mul, t, {0, 1}}},
                 .outputs = {{2, {32, 1}}}};
  CHECK(compile_tile(chain).layout.inside_rows);  // one call per row, nothing to spread
  for (int i = 0; i < 8; ++i) chain.steps.push_back({MicroOp::tanh, t, {2 + i}});
  chain.outputs[0].value = 10;
  CHECK_FALSE(compile_tile(chain).layout.inside_rows);
  CHECK(compile_tile(one_state(t, false)).layout.inside_rows);
}

}  // namespace tile_rows_test
