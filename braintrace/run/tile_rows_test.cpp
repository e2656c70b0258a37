// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/run/fused_sum.h"
#include "braintrace/run/tile_compile_impl.h"
#include "braintrace/run/trace_specs_impl.h"
#include "braintrace/testing/every_target.h"

namespace tile_rows_test {

using namespace braintrace;
using namespace braintrace::trace_specs;

namespace {

// The chain of one sample, whose last input is the sum so far, over all samples.
FusedSumSpec of_samples(const TileSpec& one, std::int64_t samples,
                        std::vector<std::int64_t>& sizes) {
  FusedSumSpec spec{.chain = one, .num_lead = 1, .summed = {}};
  const int sum = static_cast<int>(one.inputs.size()) - 1;
  const auto moved_up = [&](int v) { return v > sum ? v - 1 : v; };
  const auto h = one.steps.back().operands;
  spec.summed = {moved_up(h[0] == sum ? h[1] : h[0])};
  spec.chain.loop.insert(spec.chain.loop.begin(), samples);
  spec.chain.inputs.pop_back();
  spec.chain.steps.pop_back();
  spec.chain.outputs.pop_back();
  for (TileStep& s : spec.chain.steps)
    for (int& v : s.operands) v = moved_up(v);
  for (TileInput& i : spec.chain.inputs) {
    sizes.push_back((i.strides[0] > 0 ? kRows : 1) * (i.strides[1] > 0 ? kColumns : 1));
    i.strides.insert(i.strides.begin(), sizes.back());
  }
  for (TileOutput& o : spec.chain.outputs) {
    o.value = moved_up(o.value);
    o.strides.insert(o.strides.begin(), kRows * kColumns);
  }
  return spec;
}

template <class T>
void check_samples(const TileSpec& one, std::int64_t samples, bool in_place = true) {
  CAPTURE(samples);
  std::vector<std::int64_t> sizes;
  FusedSumSpec spec = of_samples(one, samples, sizes);
  if (!in_place) spec.chain.outputs[0].in_place = -1;
  std::vector<std::vector<T>> memory;
  for (const std::int64_t size : sizes)
    memory.push_back(drawn<T>(static_cast<std::size_t>(samples * size), memory.size()));
  std::vector<std::vector<T>> want = memory;
  std::vector<T> sum(kRows * kColumns), want_sum(kRows * kColumns);
  ThreadPool pool(1);
  for (std::int64_t b = 0; b < samples; ++b) {
    std::vector<const void*> in;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      in.push_back(want[i].data() + b * sizes[i]);
    in.push_back(want_sum.data());
    const std::vector<void*> out{want[0].data() + b * sizes[0], want_sum.data()};
    TileProgram(one).run(in, out, pool);
  }
  const std::vector<const void*> in = [&] {
    std::vector<const void*> at;
    for (const auto& m : memory) at.push_back(m.data());
    return at;
  }();
  std::vector<T> elsewhere(in_place ? 0 : memory[0].size());
  std::vector<T>& next = in_place ? memory[0] : elsewhere;
  FusedSum(spec).run(in, std::vector<void*>{next.data(), sum.data()}, pool);
  CHECK((next == want[0]));
  CHECK((sum == want_sum));
}

}  // namespace

TEST_CASE("rows of samples whose next trace lies elsewhere have the same bits") {
  for (const std::int64_t samples : {1, 4, 5})
    for (const bool constant_df : {false, true}) {
      check_samples<float>(one_state(DType::f32, constant_df), samples, false);
      check_samples<double>(driven_state(DType::f64, constant_df, false), samples, false);
    }
}

TEST_CASE("traces that no cache holds, which are fetched early, have the same bits") {
  constexpr std::int64_t kSamples = 2301;
  static_assert(kSamples * kRows * kColumns * sizeof(float) > 13'000'000);
  check_samples<float>(one_state(DType::f32, false), kSamples);
}

TEST_CASE("rows of all samples at once give the bits of one sample after the other") {
  testing::on_every_target([](const std::string& target) {
    INFO(target);
    for (const std::int64_t samples : {1, 2, 3, 6})
      for (const bool constant_df : {false, true}) {
        check_samples<float>(one_state(DType::f32, constant_df), samples);
        check_samples<double>(one_state(DType::f64, constant_df), samples);
        check_samples<float>(driven_state(DType::f32, constant_df, false), samples);
        check_samples<double>(driven_state(DType::f64, constant_df, true), samples);
      }
  });
}

namespace {

// A sensitivity moved at `positions` of a loop, of one or several samples: e, d, df, x
// and, with a signal, s, of which d and s are one number per position; x the same for all
// positions of a sample, or not.
struct Moved {
  DType dtype;
  std::int64_t samples, positions, rows, columns;
  bool met, same_x;

  FusedSumSpec spec() const {
    const Ints e = {positions * rows * columns, rows * columns, columns, 1};
    const Ints number = {positions, 1, 0, 0};
    const Ints x = {same_x ? rows : positions * rows, same_x ? 0 : rows, 1, 0};
    FusedSumSpec spec{.chain = {.loop = {samples, positions, rows, columns},
                                .inputs = {{dtype, e},
                                           {dtype, number},
                                           {dtype, {positions * columns, columns, 0, 1}},
                                           {dtype, x},
                                           {dtype, number}},
                                .steps = {{MicroOp::mul, dtype, {0, 1}},
                                          {MicroOp::mul, dtype, {2, 3}},
                                          {MicroOp::add, dtype, {6, 5}}},
                                .outputs = {{7, e, 0}}},
                      .num_lead = 2};
    if (met) {
      spec.chain.steps.push_back({MicroOp::mul, dtype, {4, 5}});
      spec.summed = {8};
    }
    return spec;
  }
};

template <class T>
void check_moved(const Moved& m) {
  CAPTURE(m.samples);
  CAPTURE(m.positions);
  CAPTURE(m.columns);
  CAPTURE(m.met);
  CAPTURE(m.same_x);
  const FusedSumSpec spec = m.spec();
  const std::int64_t all = m.samples * m.positions;
  std::vector<std::vector<T>> memory;
  for (const std::int64_t n :
       {all * m.rows * m.columns, all, all * m.columns, all * m.rows, all})
    memory.push_back(drawn<T>(static_cast<std::size_t>(n), memory.size()));
  std::vector<T> want = memory[0];
  std::vector<T> sum(static_cast<std::size_t>(m.rows * m.columns), T(-1));
  std::vector<T> want_sum(m.met ? sum.size() : 0, T(0));
  for (std::int64_t p = 0; p < all; ++p)
    for (std::int64_t r = 0; r < m.rows; ++r)
      for (std::int64_t c = 0; c < m.columns; ++c) {
        const auto at = [&](std::size_t i) {
          const Ints& s = spec.chain.inputs[i].strides;
          return memory[i][static_cast<std::size_t>(
              p / m.positions * s[0] + p % m.positions * s[1] + r * s[2] + c * s[3])];
        };
        const T past = at(0) * at(1), fresh = at(2) * at(3);
        want[static_cast<std::size_t>((p * m.rows + r) * m.columns + c)] = fresh + past;
        if (m.met) want_sum[static_cast<std::size_t>(r * m.columns + c)] += at(4) * past;
      }
  const std::vector<const void*> in{memory[0].data(), memory[1].data(), memory[2].data(),
                                    memory[3].data(), memory[4].data()};
  std::vector<void*> out{memory[0].data()};
  if (m.met) out.push_back(sum.data());
  ThreadPool pool(1);
  if (m.met) {
    FusedSum(spec).run(in, out, pool);
  } else if (const auto loop = FusedSum::in_loop(spec.chain)) {
    loop->run(in, out, pool);
  } else {
    TileProgram(spec.chain).run(in, out, pool);
  }
  CHECK((memory[0] == want));
  if (m.met) CHECK((sum == want_sum));
}

}  // namespace

namespace {

// Two traces whose samples add to a sum each: e1, d, df1, x1, s, q1, e2, df2, x2, q2.
FusedSumSpec two_traces(std::int64_t samples, std::int64_t rows, std::int64_t columns) {
  const DType t = DType::f32;
  const TileInput e{t, {rows * columns, columns, 1}}, v{t, {columns, 0, 1}};
  const TileInput x{t, {rows, 1, 0}};
  return {.chain = {.loop = {samples, rows, columns},
                    .inputs = {e, v, v, x, v, v, e, v, x, v},
                    .steps = {{MicroOp::mul, t, {1, 0}},
                              {MicroOp::mul, t, {3, 2}},
                              {MicroOp::add, t, {10, 11}},
                              {MicroOp::mul, t, {1, 6}},
                              {MicroOp::mul, t, {8, 7}},
                              {MicroOp::add, t, {13, 14}},
                              {MicroOp::mul, t, {4, 13}},
                              {MicroOp::mul, t, {8, 9}},
                              {MicroOp::add, t, {16, 17}},
                              {MicroOp::mul, t, {4, 10}},
                              {MicroOp::mul, t, {3, 5}},
                              {MicroOp::add, t, {19, 20}}},
                    .outputs = {{12, e.strides, 0}, {15, e.strides, 6}}},
          .num_lead = 1,
          .summed = {18, 21}};
}

}  // namespace

TEST_CASE("traces that threads divide among themselves have the bits of one by one") {
  constexpr std::int64_t kSamples = 5, kTall = 150;
  for (const std::int64_t columns : {32, 65, 205}) {
    CAPTURE(columns);
    const FusedSumSpec spec = two_traces(kSamples, kTall, columns);
    std::vector<std::vector<float>> given;
    for (std::size_t i = 0; i < spec.chain.inputs.size(); ++i)
      given.push_back(
          drawn<float>(static_cast<std::size_t>(kSamples * kTall * columns), i));
    const auto size = static_cast<std::size_t>(kTall * columns);
    std::vector<float> sums[2] = {std::vector<float>(size), std::vector<float>(size)};
    auto want = given;
    const std::size_t trace[2][4] = {{6, 7, 8, 9}, {0, 2, 3, 5}};  // e, df, x, q
    for (std::int64_t b = 0; b < kSamples; ++b)
      for (std::int64_t i = 0; i < kTall * columns; ++i)
        for (const int k : {0, 1}) {
          const auto at = [&](std::size_t input) -> float& {
            const Ints& by = spec.chain.inputs[input].strides;
            return want[input][static_cast<std::size_t>(b * by[0] + i / columns * by[1] +
                                                        i % columns * by[2])];
          };
          float& e = at(trace[k][0]);
          const float past = at(1) * e, fresh = at(trace[k][2]) * at(trace[k][1]);
          const float more = at(trace[k][2]) * at(trace[k][3]);
          e = past + fresh;
          sums[k][static_cast<std::size_t>(i)] += at(4) * past + more;
        }
    for (const int threads : {1, 2, 3}) {
      auto memory = given;
      std::vector<float> sum[2] = {std::vector<float>(size, -1.0F),
                                   std::vector<float>(size, -1.0F)};
      const std::vector<const void*> in = [&] {
        std::vector<const void*> all;
        for (const auto& m : memory) all.push_back(m.data());
        return all;
      }();
      ThreadPool pool(threads);
      FusedSum(spec).run(in,
                         std::vector<void*>{memory[0].data(), memory[6].data(),
                                            sum[0].data(), sum[1].data()},
                         pool);
      for (const int k : {0, 1}) CHECK((sum[k] == sums[k]));
      CHECK((memory == want));
    }
  }
}

TEST_CASE("rows of several kept axes are all moved") {
  // As two_traces with one sample after the other, but rows are two axes of the loop.
  for (const std::int64_t first : {1, 3, 40}) {
    CAPTURE(first);
    constexpr std::int64_t kSamples = 3, kSecond = 9, kWide = 70;
    const std::int64_t rows = first * kSecond, size = rows * kWide;
    const FusedSumSpec flat = two_traces(kSamples, rows, kWide);
    FusedSumSpec spec = flat;
    spec.chain.loop = {kSamples, first, kSecond, kWide};
    const auto split = [&](Ints& s) { s.insert(s.begin() + 1, s[1] * kSecond); };
    for (TileInput& i : spec.chain.inputs) split(i.strides);
    for (TileOutput& o : spec.chain.outputs) split(o.strides);
    std::vector<std::vector<float>> given;
    for (std::size_t i = 0; i < 10; ++i)
      given.push_back(drawn<float>(static_cast<std::size_t>(kSamples * size), i));
    const auto run = [&](const FusedSumSpec& s, int threads) {
      std::vector<std::vector<float>> all = given;
      all.resize(12, std::vector<float>(static_cast<std::size_t>(size), -1.0F));
      std::vector<const void*> in;
      for (std::size_t i = 0; i < 10; ++i) in.push_back(all[i].data());
      ThreadPool pool(threads);
      FusedSum(s).run(in,
                      std::vector<void*>{all[0].data(), all[6].data(), all[10].data(),
                                         all[11].data()},
                      pool);
      return all;
    };
    const auto want = run(flat, 1);
    for (const int threads : {1, 2}) CHECK((run(spec, threads) == want));
  }
}

TEST_CASE("traces of a step are apart unless one reads what another one writes") {
  TileSpec spec = two_joined_traces(DType::f32);
  CHECK(compile_tile(spec).by_rows);
  CHECK(compile_tile(spec).traces_apart);
  spec.steps.back().operands[0] = 24;  // on top of the other one's sum
  CHECK(compile_tile(spec).by_rows);
  CHECK_FALSE(compile_tile(spec).traces_apart);
}

TEST_CASE("what a step moves without a signal knows the loops around its rows") {
  const TileSpec many = Moved{DType::f32, 4, 32, 42, 32, false, true}.spec().chain;
  CHECK(FusedSum::in_loop(many).has_value());
  TileSpec other = many;  // another coefficient in every row
  other.inputs[1].strides = {1344, 42, 1, 0};
  CHECK_FALSE(FusedSum::in_loop(other).has_value());
}

TEST_CASE("narrow rows at many positions have the bits of element by element") {
  testing::on_every_target([](const std::string& target) {
    INFO(target);
    for (const std::int64_t samples : {1, 3})
      for (const std::int64_t positions : {1, 2, 4, 5, 8, 11})
        for (const std::int64_t columns : {9, 16, 32, 45, 64, 65, 130})
          for (const bool met : {false, true})
            for (const bool same_x : {false, true}) {
              check_moved<float>(
                  {DType::f32, samples, positions, 41, columns, met, same_x});
              check_moved<double>(
                  {DType::f64, samples, positions, 6, columns, met, same_x});
            }
  });
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
