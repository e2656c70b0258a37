// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/array/array.h"
#include "braintrace/array/rng.h"
#include "braintrace/run/fused_sum.h"
#include "braintrace/run/thread_pool.h"
#include "braintrace/run/tile_compile_impl.h"

namespace tile_traces_test {

using namespace braintrace;

namespace {

constexpr std::int64_t kRows = 7, kColumns = 205;  // rows: four at once, then single ones

TileInput rows(DType t) { return {t, {kColumns, 1}}; }
TileInput repeated_row(DType t) { return {t, {0, 1}}; }
TileInput number_per_row(DType t) { return {t, {1, 0}}; }
TileInput halves(DType t) { return {t, {2 * kColumns, 2}}; }

// e, d, df, x, s, sum: the update of a trace in the memory of e, the sum in that of sum.
TileSpec one_state(DType t, bool constant_df) {
  const TileInput df = constant_df ? number_per_row(t) : repeated_row(t);
  return {.loop = {kRows, kColumns},
          .inputs = {rows(t), repeated_row(t), df, number_per_row(t), repeated_row(t),
                     rows(t)},
          .steps = {{MicroOp::mul, t, {1, 0}},
                    {MicroOp::mul, t, {3, 2}},
                    {MicroOp::add, t, {6, 7}},
                    {MicroOp::mul, t, {4, 6}},
                    {MicroOp::add, t, {5, 9}}},
          .outputs = {{8, {kColumns, 1}, 0}, {10, {kColumns, 1}, 5}}};
}

// e, d, df, x, s, q and memory for the sum: like one_state, of a single sample.
TileSpec single_sample(DType t, bool constant_df, bool turned) {
  const TileInput df = constant_df ? number_per_row(t) : repeated_row(t);
  TileSpec spec{.loop = {kRows, kColumns},
                .inputs = {rows(t), repeated_row(t), df, number_per_row(t),
                           repeated_row(t), repeated_row(t), rows(t)},
                .steps = {{MicroOp::mul, t, {1, 0}},
                          {MicroOp::mul, t, {3, 2}},
                          {MicroOp::add, t, {7, 8}},
                          {MicroOp::mul, t, {4, 7}},
                          {MicroOp::mul, t, {5, 3}},
                          {MicroOp::add, t, {10, 11}}},
                .outputs = {{9, {kColumns, 1}, 0}, {12, {kColumns, 1}, 6}}};
  if (turned) std::swap(spec.steps.back().operands[0], spec.steps.back().operands[1]);
  return spec;
}

// e1, e2, d11, d12, d21, d22, df1, df2, x, s1, s2, sum
TileSpec two_states(DType t, bool in_turn, bool constant_df) {
  const TileInput e = in_turn ? halves(t) : rows(t);
  const TileInput df = constant_df ? number_per_row(t) : repeated_row(t), d = rows(t);
  TileSpec spec{.loop = {kRows, kColumns},
                .inputs = {e, e, d, d, d, d, df, df, number_per_row(t), d, d, rows(t)},
                .steps = {},
                .outputs = {}};
  const auto step = [&](MicroOp op, int a, int b) {
    spec.steps.push_back({op, t, {a, b}});
    return static_cast<int>(spec.inputs.size() + spec.steps.size()) - 1;
  };
  const auto block = [&](int d1, int d2) {
    const int a = step(MicroOp::mul, d1, 0), b = step(MicroOp::mul, d2, 1);
    return step(MicroOp::add, a, b);
  };
  const int t1 = block(2, 3), t2 = block(4, 5);
  const int u1 = step(MicroOp::mul, 8, 6), u2 = step(MicroOp::mul, 8, 7);
  const int next1 = step(MicroOp::add, t1, u1), next2 = step(MicroOp::add, t2, u2);
  const int h1 = step(MicroOp::mul, 9, t1), h2 = step(MicroOp::mul, 10, t2);
  const int sum = step(MicroOp::add, 11, step(MicroOp::add, h1, h2));
  spec.outputs = {{next1, e.strides, 0}, {next2, e.strides, 1}, {sum, {kColumns, 1}, 11}};
  return spec;
}

// e1, e2, d11, d12, d21, d22, df1, df2, x, s1, s2, and sum, or of a single sample memory
// for it and q. Bits of `there`: which d are not zero, d11 first.
TileSpec sparse_states(DType t, unsigned there, bool sample) {
  const TileInput v = repeated_row(t);
  TileSpec spec{
      .loop = {kRows, kColumns},
      .inputs = {rows(t), rows(t), v, v, v, v, v, v, number_per_row(t), v, v, rows(t), v},
      .steps = {},
      .outputs = {}};
  const auto step = [&](MicroOp op, int a, int b) {
    spec.steps.push_back({op, t, {a, b}});
    return static_cast<int>(spec.inputs.size() + spec.steps.size()) - 1;
  };
  const auto is_there = [&](int d) { return (there >> (3 - d) & 1U) != 0; };
  const auto state = [&](int d) {
    const int first = is_there(d) ? step(MicroOp::mul, 2 + d, 0) : -1;
    const int second = is_there(d + 1) ? step(MicroOp::mul, 3 + d, 1) : -1;
    return first < 0 ? second : second < 0 ? first : step(MicroOp::add, first, second);
  };
  const int t1 = state(0), t2 = state(2);
  const int u1 = step(MicroOp::mul, 8, 6), u2 = step(MicroOp::mul, 8, 7);
  const int next1 = step(MicroOp::add, t1, u1), next2 = step(MicroOp::add, t2, u2);
  const int h1 = step(MicroOp::mul, 9, t1), h2 = step(MicroOp::mul, 10, t2);
  const int h = step(MicroOp::add, h1, h2);
  const int more = sample ? step(MicroOp::mul, 12, 8) : 11;
  const int sum = step(MicroOp::add, more, h);
  spec.outputs = {
      {next1, {kColumns, 1}, 0}, {next2, {kColumns, 1}, 1}, {sum, {kColumns, 1}, 11}};
  return spec;
}

// e, d, r, df, x, s, c, y, sum
TileSpec driven_state(DType t, bool constant_df, bool turned) {
  const TileInput n = number_per_row(t), v = repeated_row(t);
  const TileInput df = constant_df ? n : v;
  return {.loop = {kRows, kColumns},
          .inputs = {rows(t), v, n, df, n, v, v, n, rows(t)},
          .steps = {{MicroOp::mul, t, {1, 0}},
                    {MicroOp::add, t, {9, 2}},
                    {MicroOp::mul, t, {4, 3}},
                    {MicroOp::add, t, {10, 11}},
                    {MicroOp::mul, t, {5, 10}},
                    {MicroOp::mul, t, {6, 7}},
                    {MicroOp::add, t, {turned ? 14 : 13, turned ? 13 : 14}},
                    {MicroOp::add, t, {8, 15}}},
          .outputs = {{12, {kColumns, 1}, 0}, {16, {kColumns, 1}, 8}}};
}

// Two traces, one after the other in the program: e1, d, df1, x1, s, q1, sum1, e2, df2,
// x2, q2, sum2; their sums are added to when both summands are there.
TileSpec two_joined_traces(DType t) {
  const TileInput n = number_per_row(t), v = repeated_row(t), r = rows(t);
  return {.loop = {kRows, kColumns},
          .inputs = {r, v, v, n, v, v, r, r, v, n, v, r},
          .steps = {{MicroOp::mul, t, {1, 0}},
                    {MicroOp::mul, t, {3, 2}},
                    {MicroOp::add, t, {12, 13}},
                    {MicroOp::mul, t, {1, 7}},
                    {MicroOp::mul, t, {9, 8}},
                    {MicroOp::add, t, {15, 16}},
                    {MicroOp::mul, t, {4, 15}},
                    {MicroOp::mul, t, {9, 10}},
                    {MicroOp::add, t, {18, 19}},
                    {MicroOp::mul, t, {4, 12}},
                    {MicroOp::mul, t, {3, 5}},
                    {MicroOp::add, t, {21, 22}},
                    {MicroOp::add, t, {11, 20}},
                    {MicroOp::add, t, {6, 23}}},
          .outputs = {{14, {kColumns, 1}, 0},
                      {17, {kColumns, 1}, 7},
                      {24, {kColumns, 1}, 11},
                      {25, {kColumns, 1}, 6}}};
}

template <class T>
std::vector<T> drawn(std::size_t n, std::uint64_t seed) {
  std::vector<T> out(n);
  for (std::size_t i = 0; i < n; ++i)
    out[i] = static_cast<T>(2 * uniform_at(rng_key(seed), i) - 1);
  return out;
}

// The element of an operand at a position.
std::size_t place(const Ints& strides, std::int64_t r, std::int64_t c) {
  return static_cast<std::size_t>(r * strides[0] + c * strides[1]);
}

// Runs the chain on memory in which e2 follows e1 by `apart` elements, and checks it
// against the same steps element by element.
template <class T>
void check(const TileSpec& spec, int states, std::size_t apart) {
  const std::size_t room = 4 * kRows * kColumns;
  std::vector<std::vector<T>> memory;
  std::vector<T*> at;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i)
    memory.push_back(drawn<T>(room, i));
  for (auto& m : memory) at.push_back(m.data());
  if (states == 2) at[1] = at[0] + apart;
  std::vector<std::vector<T>> want(spec.outputs.size());
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t c = 0; c < kColumns; ++c) {
      std::vector<T> v;
      for (std::size_t i = 0; i < spec.inputs.size(); ++i)
        v.push_back(at[i][place(spec.inputs[i].strides, r, c)]);
      for (const TileStep& s : spec.steps) {
        const T a = v[static_cast<std::size_t>(s.operands[0])];
        const T b = v[static_cast<std::size_t>(s.operands[1])];
        v.push_back(s.op == MicroOp::mul ? a * b : a + b);
      }
      for (std::size_t o = 0; o < want.size(); ++o)
        want[o].push_back(v[static_cast<std::size_t>(spec.outputs[o].value)]);
    }
  std::vector<const void*> in(at.begin(), at.end());
  std::vector<void*> out;
  for (const TileOutput& o : spec.outputs)
    out.push_back(at[static_cast<std::size_t>(o.in_place)]);
  ThreadPool pool(1);
  TileProgram(spec).run(in, out, pool);
  for (std::size_t o = 0; o < want.size(); ++o) {
    std::size_t k = 0;
    for (std::int64_t r = 0; r < kRows; ++r)
      for (std::int64_t c = 0; c < kColumns; ++c)
        REQUIRE(static_cast<const T*>(out[o])[place(spec.outputs[o].strides, r, c)] ==
                want[o][k++]);
  }
}

}  // namespace

TEST_CASE("the update of a trace and its sum are one action with the bits of many") {
  for (const bool constant_df : {false, true}) {
    CAPTURE(constant_df);
    const TileSpec f32 = one_state(DType::f32, constant_df);
    CHECK(compile_tile(f32).actions.size() == (constant_df ? 2 : 1));
    CHECK(compile_tile(f32).traces.size() == 1);
    CHECK(compile_tile(f32).by_rows == !constant_df);
    check<float>(f32, 1, 0);
    check<double>(one_state(DType::f64, constant_df), 1, 0);
  }
}

TEST_CASE("a trace whose coefficient is a number is updated several rows at once") {
  for (const DType t : {DType::f32, DType::f64}) {
    TileSpec joined = two_joined_traces(t), added = one_state(t, false);
    TileSpec plain = added;  // what is added to the trace is a number
    plain.steps = {{MicroOp::mul, t, {1, 0}},
                   {MicroOp::add, t, {6, 3}},
                   {MicroOp::mul, t, {4, 6}},
                   {MicroOp::add, t, {5, 8}}};
    plain.outputs = {{7, {kColumns, 1}, 0}, {9, {kColumns, 1}, 5}};
    for (TileSpec spec : {added, plain, joined, single_sample(t, false, false)}) {
      spec.inputs[1] = {t, {0, 0}};
      const TileCode code = compile_tile(spec);
      CHECK(code.actions.size() == code.traces.size());
      CHECK(code.traces.size() == (spec.outputs.size() == 4 ? 2 : 1));
      CHECK(code.by_rows);
      if (t == DType::f32)
        check<float>(spec, 1, 0);
      else
        check<double>(spec, 1, 0);
      spec.inputs[2] = {t, {0, 0}};  // as its df may be
      CHECK(compile_tile(spec).by_rows);
      if (t == DType::f32)
        check<float>(spec, 1, 0);
      else
        check<double>(spec, 1, 0);
      spec.inputs[4] = rows(t);  // another signal in every row: one after the other
      CHECK_FALSE(compile_tile(spec).by_rows);
      if (t == DType::f32) check<float>(spec, 1, 0);
    }
  }
}

TEST_CASE("two states of a trace that lie in turn are taken apart for one action") {
  for (const bool constant_df : {false, true}) {
    CAPTURE(constant_df);
    const TileSpec in_turn = two_states(DType::f32, true, constant_df);
    const TileCode code = compile_tile(in_turn);
    CHECK(code.actions.size() == (constant_df ? 5 : 3));
    REQUIRE(code.traces.size() == 1);
    check<float>(in_turn, 2, 1);
    check<float>(in_turn, 2, 2 * kRows * kColumns);  // far apart all the same
  }
}

TEST_CASE("two states of a trace with memory of their own are one action") {
  const TileSpec spec = two_states(DType::f64, false, false);
  REQUIRE(compile_tile(spec).traces.size() == 1);
  CHECK(compile_tile(spec).actions.size() == 1);
  check<double>(spec, 2, kRows * kColumns);
}

TEST_CASE(
    "two states with zeros among their coefficients are updated several rows at once") {
  // Bits: d11, d12, d21, d22.
  for (const unsigned there : {15U, 13U, 11U, 9U, 7U, 14U, 10U, 5U, 6U})
    for (const bool sample : {false, true})
      for (const bool numbers : {false, true})
        for (const DType t : {DType::f32, DType::f64}) {
          CAPTURE(there);
          CAPTURE(sample);
          CAPTURE(numbers);
          TileSpec spec = sparse_states(t, there, sample);
          if (numbers)
            for (const std::size_t d : {2, 5}) spec.inputs[d] = {t, {0, 0}};
          const TileCode code = compile_tile(spec);
          CHECK(code.actions.size() == 1);
          CHECK(code.traces.size() == 1);
          CHECK(code.by_rows);
          t == DType::f32 ? check<float>(spec, 2, kRows * kColumns)
                          : check<double>(spec, 2, kRows * kColumns);
          spec.inputs[7] = {t, {0, 0}};  // the second df is a number that never changes
          CHECK(compile_tile(spec).by_rows);
          t == DType::f32 ? check<float>(spec, 2, kRows * kColumns)
                          : check<double>(spec, 2, kRows * kColumns);
          spec.inputs[9] = rows(t);  // another signal in every row
          CHECK_FALSE(compile_tile(spec).by_rows);
          CHECK(compile_tile(spec).traces.size() == 1);
          if (t == DType::f32) check<float>(spec, 2, kRows * kColumns);
        }
}

TEST_CASE("two states whose coefficients are numbers, or shared, are one action") {
  for (const bool in_turn : {true, false})
    for (const bool mixed : {false, true}) {
      CAPTURE(in_turn);
      CAPTURE(mixed);
      TileSpec spec = two_states(DType::f32, in_turn, false);
      spec.inputs[2] = {DType::f32, {0, 0}};                  // d11 = d21, one number:
      spec.steps[5].operands[0] = spec.steps[2].operands[0];  // d11 e1 is in both states
      if (mixed)  // the second state takes in a number
        spec.steps[9].operands[1] = 8;
      const TileCode code = compile_tile(spec);
      REQUIRE(code.traces.size() == 1);
      CHECK(code.actions.size() == (in_turn ? 3 : 1));
      check<float>(spec, 2, in_turn ? 1 : kRows * kColumns);
    }
}

TEST_CASE("two terms of one state are not taken for terms of two") {
  TileSpec spec = sparse_states(DType::f32, 15U, true);
  spec.steps[1].operands[1] = 0;  // t1 = d11 e1 + d12 e1
  check<float>(spec, 2, kRows * kColumns);
}

TEST_CASE("a coefficient that is another number in every row is no coefficient") {
  TileSpec spec = two_states(DType::f32, true, false);
  spec.inputs[2] = number_per_row(DType::f32);
  CHECK(compile_tile(spec).traces.empty());
  check<float>(spec, 2, 1);
}

TEST_CASE("a state that others drive is one action with the bits of many") {
  for (const bool constant_df : {false, true})
    for (const bool turned : {false, true}) {
      CAPTURE(constant_df);
      CAPTURE(turned);
      const TileSpec spec = driven_state(DType::f32, constant_df, turned);
      CHECK(compile_tile(spec).actions.size() == (constant_df ? 2 : 1));
      CHECK(compile_tile(spec).traces.size() == 1);
      check<float>(spec, 1, 0);
      check<double>(driven_state(DType::f64, constant_df, turned), 1, 0);
    }
}

TEST_CASE("the trace of a single sample is one action with the bits of many") {
  for (const bool constant_df : {false, true})
    for (const bool turned : {false, true}) {
      CAPTURE(constant_df);
      CAPTURE(turned);
      const TileSpec spec = single_sample(DType::f32, constant_df, turned);
      CHECK(compile_tile(spec).actions.size() == (constant_df ? 2 : 1));
      CHECK(compile_tile(spec).traces.size() == 1);
      CHECK(compile_tile(spec).by_rows == !constant_df);
      check<float>(spec, 1, 0);
      check<double>(single_sample(DType::f64, constant_df, turned), 1, 0);
    }
}

TEST_CASE("traces whose sums take in the newest step are one action each") {
  const TileSpec spec = two_joined_traces(DType::f32);
  const TileCode code = compile_tile(spec);
  CHECK(code.actions.size() == 2);
  REQUIRE(code.traces.size() == 2);
  for (const TileTrace& t : code.traces) CHECK((t.kind->form == TraceForm::joined));
  CHECK(code.by_rows);
  check<float>(spec, 1, 0);
  check<double>(two_joined_traces(DType::f64), 1, 0);
}

TEST_CASE("a trace with other coefficients in every row is updated row by row") {
  for (const std::size_t changing : {1, 2, 4}) {  // d, df, s
    CAPTURE(changing);
    TileSpec spec = one_state(DType::f32, false);
    spec.inputs[changing] = rows(DType::f32);
    CHECK(compile_tile(spec).traces.size() == 1);
    CHECK_FALSE(compile_tile(spec).by_rows);
    check<float>(spec, 1, 0);
  }
}

TEST_CASE("d and e of a trace may stand in either order") {
  TileSpec spec = one_state(DType::f32, false);
  std::swap(spec.steps[0].operands[0], spec.steps[0].operands[1]);
  CHECK(compile_tile(spec).by_rows);
  check<float>(spec, 1, 0);
}

TEST_CASE("a trace does not wait for its sum when its d is overwritten meanwhile") {
  for (const DType t : {DType::f32, DType::f64}) {
    TileSpec spec = one_state(t, false);  // then s (d f) into the memory of d
    spec.inputs[1] = rows(t);
    spec.inputs.push_back(rows(t));
    spec.steps = {{MicroOp::mul, t, {1, 0}},  {MicroOp::mul, t, {3, 2}},
                  {MicroOp::add, t, {7, 8}},  {MicroOp::mul, t, {1, 6}},
                  {MicroOp::mul, t, {4, 10}}, {MicroOp::mul, t, {4, 7}},
                  {MicroOp::add, t, {5, 12}}};
    const Ints packed{kColumns, 1};
    spec.outputs = {{9, packed, 0}, {11, packed, 1}, {13, packed, 5}};
    CHECK(compile_tile(spec).traces.empty());
    t == DType::f32 ? check<float>(spec, 1, 0) : check<double>(spec, 1, 0);
  }
}

TEST_CASE("a trace that reads another one runs behind it") {
  const DType t = DType::f32;
  TileSpec spec = one_state(t, false);  // then e'' = d e' + df x into memory of its own
  spec.inputs.push_back(rows(t));
  spec.inputs.push_back(rows(t));
  for (TileStep& s : spec.steps)
    for (int& v : s.operands) v += v > 5 ? 2 : 0;
  spec.steps.insert(spec.steps.end(), {{MicroOp::mul, t, {1, 10}},
                                       {MicroOp::mul, t, {3, 2}},
                                       {MicroOp::add, t, {13, 14}},
                                       {MicroOp::mul, t, {4, 13}},
                                       {MicroOp::add, t, {6, 16}}});
  const Ints packed{kColumns, 1};
  spec.outputs = {{10, packed, 0}, {12, packed, 5}, {15, packed, 7}, {17, packed, 6}};
  CHECK(compile_tile(spec).traces.size() == 2);
  CHECK(compile_tile(spec).by_rows);
  check<float>(spec, 1, 0);
}

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

TEST_CASE("a product somebody else reads is not taken into the update of a trace") {
  TileSpec spec = one_state(DType::f32, false);
  spec.outputs.push_back({6, {kColumns, 1}, -1});
  CHECK(compile_tile(spec).traces.empty());
}

}  // namespace tile_traces_test
