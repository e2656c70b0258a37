// SPDX-License-Identifier: Apache-2.0
#include "braintrace/etrace/snap_pattern.h"

#include <doctest/doctest.h>

#include "braintrace/testing/micro_model.h"

namespace snap_pattern_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

// p reads p - 1 on a ring of n
std::vector<bool> ring(std::int64_t n) {
  std::vector<bool> a(static_cast<std::size_t>(n * n), false);
  for (std::int64_t p = 0; p < n; ++p)
    a[static_cast<std::size_t>(p * n + (p + n - 1) % n)] = true;
  return a;
}

SparseStructure ring_structure(std::int64_t n) {
  Ints rows, cols;
  for (std::int64_t q = 0; q < n; ++q) {
    rows.push_back(q);
    cols.push_back((q + 1) % n);
  }
  return coo_structure(n, n, rows, cols);
}

const SnapPattern& pattern_of(const ETraceGraph& g) { return *g.hidden_groups[0].snap; }

CompileOptions snap_options(std::int64_t n, CompileOptions base = {}) {
  base.include_recurrent_mixing = true;
  base.sparse_n = n;
  return base;
}

}  // namespace

TEST_CASE("closing a ring over n steps reaches n positions") {
  for (std::int64_t n = 1; n <= 7; ++n) {
    const SnapPattern s = snap_pattern({.axes = {ring(7)}}, {7}, n);
    CHECK(s.num_neighbour() == n);
    CHECK(s.neighbours[0][0] == 0);
    CHECK(s.is_degenerate() == (n == 1));
    CHECK(s.is_saturated() == (n == 7));
  }
  CHECK_THROWS_WITH_AS(snap_pattern({.axes = {ring(7)}}, {7}, 0),
                       "close_adjacency: n must be >= 1, got 0", UserError);
}

TEST_CASE(
    "neighbours are the positions influenced: own one first, the others ascending") {
  const SnapPattern s = snap_pattern({.axes = {ring(5)}}, {5}, 3);
  CHECK(s.neighbours[4] == std::vector<std::int64_t>{4, 0, 1});
  CHECK(s.neighbours[1] == std::vector<std::int64_t>{1, 2, 3});
}

TEST_CASE("short rows are padded with the own position, marked invalid") {
  // 0 is read by 1 and 2; nobody reads 1 or 2
  const std::vector<bool> fan = {false, false, false, true, false,
                                 false, true,  false, false};
  const SnapPattern s = snap_pattern({.axes = {fan}}, {3}, 2);
  CHECK(s.neighbours[0] == std::vector<std::int64_t>{0, 1, 2});
  CHECK(s.neighbours[2] == std::vector<std::int64_t>{2, 2, 2});
  CHECK(s.valid[2] == std::vector<bool>{true, false, false});
  CHECK(!s.is_saturated());
}

TEST_CASE("axes multiply: a batch axis stays apart") {
  const std::vector<bool> own = {true, false, false, true};
  const SnapPattern s = snap_pattern({.axes = {own, ring(3)}}, {2, 3}, 2);
  CHECK(s.num_neighbour() == 2);
  CHECK(s.neighbours[5] == std::vector<std::int64_t>{5, 3});
}

TEST_CASE("a sparse recurrent op gives its own pattern, in both modes") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    s.set("h", tanh(x + sparse_matmul(h, s.w(), ring_structure(7))));
    return s.h();
  });
  m.hidden("h", {7}).param("w", {7});
  for (const CompileOptions& base : {CompileOptions{}, compat()}) {
    const ETraceGraph g = m.compile(snap_options(2, base), {7});
    CHECK(pattern_of(g).num_neighbour() == 2);
    CHECK(pattern_of(g).neighbours[3] == std::vector<std::int64_t>{3, 4});
  }
}

TEST_CASE(
    "[x, h] W stays inside a sample by default and spreads over the batch in compat") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    s.set("h", tanh(matmul(concat({x, h}), s.w())));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {7, 4});
  init_all_states(m, {.batch_size = 2, .dtype = DType::f64});
  const std::vector<Array> x = {ones({2, 3}, DType::f64)};
  const ETraceGraph sound = compile_etrace_graph(m, x, snap_options(2));
  CHECK(pattern_of(sound).num_neighbour() == 4);
  CHECK(pattern_of(sound).neighbours[5] == std::vector<std::int64_t>{5, 4, 6, 7});
  const ETraceGraph reference = compile_etrace_graph(m, x, snap_options(2, compat()));
  CHECK(pattern_of(reference).num_neighbour() == 8);
  CHECK(reference.explain({.kind = DiagnosticKind::snap_pattern_conservative}).size() ==
        1);
}

TEST_CASE("an operand stretched over the batch spreads over it in compat alone") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value kept = sigmoid(element_wise(s.w("a"))) * s.h();
    s.set("h", kept + matmul(x, s.w()));
    return s.h();
  });
  m.hidden("h", {4}).param("a", {4}).param("w", {3, 4});
  init_all_states(m, {.batch_size = 2, .dtype = DType::f64});
  const std::vector<Array> x = {ones({2, 3}, DType::f64)};
  CHECK(pattern_of(compile_etrace_graph(m, x, snap_options(2))).is_degenerate());
  const ETraceGraph g = compile_etrace_graph(m, x, snap_options(2, compat()));
  CHECK(pattern_of(g).num_neighbour() == 8);
  // Without a batch nothing is stretched.
  CHECK(pattern_of(m.compile(snap_options(2, compat()), {3})).is_degenerate());
}

TEST_CASE("a state without a past has no pattern on record") {
  MicroModel m([](MicroModel& s, Value x) {
    s.set("h", tanh(matmul(x, s.w())));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  const ETraceGraph g = m.compile(snap_options(2, compat()));
  CHECK(kinds_of(g) == std::vector<std::string>{"relation_included"});
}

TEST_CASE("a widened Jacobian above the ceiling is refused with its sizes") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    s.set("h", tanh(x + matmul(h, s.w())));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  CompileOptions o = snap_options(2);
  o.snap_max_jacobian_elements = 63;
  CHECK_THROWS_WITH_AS(m.compile(o), doctest::Contains("64 elements (P=4, K=4, S=1)"),
                       UserError);
}

TEST_CASE("columns that no row reads together share a colour") {
  std::vector<bool> both = ring(6);
  for (std::size_t i = 0; i < 6; ++i) both[i * 7] = true;  // own and left neighbour
  const ColumnColours c = column_colours({.axes = {both}}, {6});
  CHECK(c.count == 2);
  CHECK(c.of == std::vector<std::int64_t>{0, 1, 0, 1, 0, 1});
  const std::vector<bool> all(9, true);
  CHECK(column_colours({.axes = {all}}, {3}).count == 3);
}

TEST_CASE("samples that do not mix share the colours of their positions") {
  const std::vector<bool> own = {true, false, false, true}, all(9, true);
  const ColumnColours c = column_colours({.axes = {own, all}}, {2, 3});
  CHECK(c.count == 3);
  CHECK(c.of == std::vector<std::int64_t>{0, 1, 2, 0, 1, 2});
  CHECK(may_read({.axes = {own, all}}, {2, 3}, 4, 3));
  CHECK(!may_read({.axes = {own, all}}, {2, 3}, 4, 1));
}

namespace {

// A recurrent product h -> h that keeps the shape, and how many positions one may reach.
struct RecurrentProduct {
  const char* name;
  Shape h, w;
  std::function<Value(const Value& h, const Value& w)> apply;
  std::int64_t reach;
};

const ConvGeometry kSame1d = {.pad_low = {1}, .pad_high = {1}};

const std::vector<RecurrentProduct> kProducts = {
    {"conv",
     {1, 4, 2},
     {3, 2, 2},
     [](auto& h, auto& w) { return conv(h, w, kSame1d); },
     8},
    {"conv_general",
     {1, 4, 2},
     {3, 2, 2},
     [](auto& h, auto& w) { return conv_general(h, w, kSame1d); },
     8},
    {"einsum",
     {1, 2, 3},
     {2, 3, 3},
     [](auto& h, auto& w) { return einsum("bgi,gij->bgj", h, w); },
     3},
    {"grouped_matmul",
     {2, 3},
     {2, 3, 3},
     [](auto& h, auto& w) { return grouped_matmul(h, w); },
     3},
    {"lora_matmul",
     {3},
     {3, 3},
     [](auto& h, auto& w) { return lora_matmul(h, w, transpose(w)); },
     3},
    {"dot_general", {2, 3}, {3, 3}, [](auto& h, auto& w) { return dot(h, w); }, 3},
};

// Entry (p, q): does position p of the next state change with position q of this one?
std::vector<bool> true_dependence(const RecurrentProduct& m) {
  const Array w = ones(m.w, DType::f64);
  const auto step = [&](const Array& h) { return m.apply(h, w).array().to_doubles(); };
  const std::int64_t n = num_elements(m.h);
  std::vector<bool> out(static_cast<std::size_t>(n * n), false);
  const Array h = ones(m.h, DType::f64);
  const std::vector<double> base = step(h);
  for (std::int64_t q = 0; q < n; ++q) {
    Array moved = ones(m.h, DType::f64);
    moved.mutable_data<double>()[q] = 2;
    const std::vector<double> y = step(moved);
    for (std::int64_t p = 0; p < n; ++p)
      out[static_cast<std::size_t>(p * n + q)] =
          y[static_cast<std::size_t>(p)] != base[static_cast<std::size_t>(p)];
  }
  return out;
}

}  // namespace

TEST_CASE("every product has a pattern that misses nothing, axis by axis") {
  for (const RecurrentProduct& mixing : kProducts) {
    CAPTURE(mixing.name);
    MicroModel m([&](MicroModel& s, Value x) {
      const Value h = s.h();
      s.set("h", tanh(x + mixing.apply(h, s.w())));
      return s.h();
    });
    m.hidden("h", mixing.h).param("w", mixing.w);
    const ETraceGraph g = m.compile(snap_options(2), mixing.h);
    CHECK(pattern_of(g).num_neighbour() == mixing.reach);
    const AxisAdjacency& may = pattern_of(g).adjacency;
    const std::vector<bool> does = true_dependence(mixing);
    const std::int64_t n = num_elements(mixing.h);
    std::int64_t live = 0;
    for (std::int64_t p = 0; p < n; ++p)
      for (std::int64_t q = 0; q < n; ++q) {
        if (!does[static_cast<std::size_t>(p * n + q)]) continue;
        ++live;
        CHECK(may_read(may, mixing.h, p, q));
      }
    CHECK(live >= n);
  }
}

}  // namespace snap_pattern_test
