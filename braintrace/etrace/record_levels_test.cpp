// SPDX-License-Identifier: Apache-2.0
// Every kind of record with its level, on the smallest model that leads to it.
#include <set>

#include <doctest/doctest.h>

#include "braintrace/etrace/control_flow.h"
#include "braintrace/etrace/scan_descent.h"
#include "braintrace/testing/micro_model.h"

namespace record_levels_test {

using namespace braintrace;
using namespace braintrace::testing;
using Kind = DiagnosticKind;
using Level = DiagnosticLevel;

namespace {

constexpr std::int64_t kLong = 20;

using Options = CompileOptions;

Options compat_with(const std::function<void(Options&)>& change) {
  Options o = compat();
  change(o);
  return o;
}

Options with(const std::function<void(Options&)>& change) {
  Options o;
  change(o);
  return o;
}

// Everything on record, also when the compile ends in an error.
std::vector<CompilationRecord> records_of(MicroModel& m, const Options& o) {
  init_all_states(m, {.dtype = DType::f64});
  const std::vector<Array> x = {ones({4}, DType::f64)};
  try {
    return compile_etrace_graph(m, x, o).diagnostics;
  } catch (const UserError&) {
    Diagnostics d;
    try {
      ModuleInfo info = extract_module_info(m, x, o, d);
      const ScanDescent descent = apply_scan_descent(info, o, d);
      std::vector<HiddenGroup> groups = find_hidden_groups_from_minfo(info, o, d);
      append_groups(groups, descent);
      const auto relations =
          find_hidden_param_op_relations_from_minfo(info, groups, o, d);
      parameter_verdicts(info, groups, relations, o, d);
    } catch (const UserError&) {
      return d.records();
    }
    FAIL("the compile failed where no pass does");
    return {};
  }
}

// ---- steps

using Body = std::function<Value(MicroModel&, const Value&)>;  // (states, x) -> new h

MicroModel::Step step(const Body& next) {
  return [next](MicroModel& s, const Value& x) {
    s.set("h", next(s, x));
    return s.h();
  };
}

Value leaky(MicroModel& s, const Value& x) { return 0.9 * s.h() + matmul(x, s.w()); }

Value looped(MicroModel& s, const Value& x, const ScanOptions& options) {
  const Value w = s.w(), h = s.h();
  return scan([&](const Values& c) { return Values{0.9 * c[0] + matmul(x, w)}; }, {h}, {},
              options)
      .carry[0];
}

Value until_three(const Value& x, const Value& start,
                  const std::function<Value(const Value&)>& f) {
  return while_loop([&](const Values& c) { return Values{c[0] < unknown(3, x)}; },
                    [&](const Values& c) {
                      return Values{c[0] + 1, f(c[1])};
                    },
                    {scalar(0, DType::i32), start})[1];
}

Value branch(MicroModel& s, const Value& x, const std::function<Value(Value)>& taken) {
  const Value h = s.h();
  return cond(
      sum(x) > 0, [&](const Values& v) { return Values{taken(v[0])}; },
      [](const Values& v) { return v; }, {h})[0];
}

struct Row {
  Kind kind;
  Level level;
  Body next;
  Options options = {};
};

const Options kSnap = with([](Options& o) {
  o.include_recurrent_mixing = true;
  o.sparse_n = 2;
});

// The table of the reference: kind, level, when.

Value slice_by_slice(MicroModel& s, const Value& x) {
  const Value w = s.w(), h = s.h();
  return scan([&](const Values& v) { return Values{0.9 * v[0] + x * v[1]}; }, {h}, {w})
      .carry[0];
}

Value in_while(MicroModel& s, const Value& x) {
  const Value w = s.w();
  return until_three(x, s.h(), [&](const Value& c) { return matmul(c, w); });
}

Value out_of_while(MicroModel& s, const Value& x) {
  return until_three(x, s.h(), [](const Value& c) { return 0.9 * c; });
}

Value long_loop(MicroModel& s, const Value& x) { return looped(s, x, {.length = kLong}); }

Value made_with_data(MicroModel& s, const Value& x) {
  const Value w = sum(x) * s.w(), h = s.h();
  return scan([&](const Values& c) { return Values{0.9 * c[0] + matmul(x, w)}; }, {h}, {},
              {.length = kLong})
      .carry[0];
}

void no_descent(Options& o) { o.control_flow.scan_descent = "off"; }

void with_error(Options& o) { o.control_flow.etp_in_control_flow = "error"; }

void with_exclude(Options& o) { o.control_flow.etp_in_control_flow = "exclude"; }

// Relations and what keeps weights out of them.
std::vector<Row> relation_rows() {
  return {
      {Kind::relation_included, Level::info, leaky, compat()},
      {Kind::relation_excluded_no_paramstate, Level::warning,
       [](MicroModel& s, const Value& x) {
         return 0.9 * s.h() + matmul(x, ones({4, 4}, DType::f64));
       },
       compat()},
      {Kind::trainable_invar_not_paramstate, Level::info,
       [](MicroModel& s, const Value& x) {
         return 0.9 * s.h() + matmul(x, ones({4, 4}, DType::f64));
       },
       compat()},
      {Kind::relation_excluded_non_temporal, Level::warning,
       [](MicroModel& s, const Value& x) {
         s.other("t").set(sum(matmul(x, s.w())));
         return 0.9 * s.h();
       },
       compat()},
      {Kind::relation_excluded_shape_mismatch, Level::warning,
       [](MicroModel& s, const Value& x) {
         return 0.9 * s.h() + slice_axis(matmul(x, s.w("v")), 0, 0, 4);
       },
       compat()},
      {Kind::relation_excluded_weight_to_weight, Level::warning,
       [](MicroModel& s, const Value& x) {
         return 0.9 * s.h() + matmul(tanh(matmul(x, s.w())), s.w("u"));
       },
       compat()},
      {Kind::relation_partial_path, Level::warning,
       [](MicroModel& s, const Value& x) {
         const Value y = matmul(x, s.w());
         return 0.9 * s.h() + y + matmul(tanh(y), s.w("u"));
       },
       compat()},
  };
}

// Branches and loops that are rewritten, opened or left.
std::vector<Row> loop_rows() {
  return {
      {Kind::cond_if_converted, Level::info,
       [](MicroModel& s, const Value& x) {
         const Value w = s.w();
         return branch(s, x, [&](const Value& h) { return tanh(matmul(h, w)); });
       },
       compat()},
      {Kind::cond_conversion_skipped, Level::warning,
       [](MicroModel& s, const Value& x) {
         return branch(s, x,
                       [&](const Value& h) {
                         return until_three(x, h, [](const Value& c) { return 0.9 * c; });
                       }) +
                matmul(x, s.w());
       },
       compat()},
      {Kind::scan_unrolled, Level::info,
       [](MicroModel& s, const Value& x) { return looped(s, x, {.length = 3}); },
       compat()},
      {Kind::scan_unroll_skipped, Level::info, long_loop, compat()},
      {Kind::scan_unroll_skipped, Level::warning, long_loop, compat_with(no_descent)},
      {Kind::relation_excluded_sliced_weight, Level::warning, slice_by_slice, compat()},
      {Kind::scan_descent_applied, Level::info, long_loop, compat()},
      {Kind::scan_descent_skipped, Level::warning,
       [](MicroModel& s, const Value& x) {
         return looped(s, x, {.length = kLong, .reverse = true});
       },
       compat()},
      {Kind::scan_descent_no_relations, Level::warning,
       [](MicroModel& s, const Value& x) {
         const Value w = s.w("b"), h = s.h();
         return scan([&](const Values& c) { return Values{0.9 * c[0] + x * w}; }, {h}, {},
                     {.length = kLong})
             .carry[0];
       },
       compat()},
  };
}

// Weights and states that loops hide, patterns, groups and states.
std::vector<Row> obstacle_rows() {
  return {
      {Kind::weight_in_while, Level::error, in_while, compat()},
      {Kind::weight_in_control_flow, Level::error, long_loop, compat_with(no_descent)},
      {Kind::control_flow_opaque_fwd, Level::info, out_of_while, compat()},
      {Kind::control_flow_opaque_fwd, Level::warning, out_of_while, compat()},
      {Kind::control_flow_recurrent_mixing, Level::warning,
       [](MicroModel& s, const Value& x) {
         return until_three(x, s.h(), [](const Value& c) {
           return dot(c, full({4, 4}, 0.1, DType::f64));
         });
       },
       compat()},
      {Kind::primitive_inside_control_flow, Level::error, made_with_data,
       compat_with([](Options& o) {
         no_descent(o);
         with_error(o);
       })},
      {Kind::primitive_inside_control_flow, Level::warning, made_with_data,
       compat_with([](Options& o) {
         no_descent(o);
         with_exclude(o);
       })},
      {Kind::snap_pattern_conservative, Level::warning,
       [](MicroModel& s, const Value& x) {
         return matmul(concat({x, s.h()}), s.w("v2"));
       },
       compat(kSnap)},
      {Kind::snap_pattern_degenerate, Level::info, leaky, compat(kSnap)},
      {Kind::hidden_group_merged, Level::info,
       [](MicroModel& s, const Value& x) {
         const Value k = s.h("k");
         s.set("k", 0.5 * k + x);
         return leaky(s, x) + k;
       },
       compat()},
      {Kind::state_mismatch, Level::warning, leaky, compat()},
      {Kind::control_flow_opaque_fwd, Level::info, out_of_while,
       compat_with([](Options& o) { o.opaque_records = OpaqueRecords::once; })},
  };
}

std::vector<Row> reference_rows() {
  std::vector<Row> rows = relation_rows();
  for (const auto& more : {loop_rows(), obstacle_rows()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

// Ours: verdicts, what is dropped where, and warnings instead of errors.
std::vector<Row> own_rows() {
  return {
      {Kind::parameter_local, Level::info,
       [](MicroModel& s, const Value& x) { return 0.9 * s.h() + x * s.w("b"); }},
      {Kind::parameter_refused, Level::error,
       [](MicroModel& s, const Value& x) {
         return 0.9 * s.h() +
                until_three(x, x * s.w("b"), [](const Value& c) { return 0.5 * c; });
       }},
      {Kind::relation_dense, Level::info,
       [](MicroModel& s, const Value& x) {
         return 0.9 * s.h() + matmul(tanh(matmul(x, s.w())), s.w("u"));
       }},
      {Kind::history_cut, Level::info,
       [](MicroModel& s, const Value& x) {
         return 0.5 * s.h() + 0.1 * sum(s.h()) + matmul(x, s.w());
       }},
      {Kind::weight_in_control_flow, Level::warning,
       [](MicroModel& s, const Value& x) {
         return looped(s, x, {.length = kLong, .reverse = true});
       }},
      {Kind::weight_in_while, Level::warning,
       [](MicroModel& s, const Value& x) {
         const Value w = s.w();
         return until_three(x, s.h(), [&](const Value& c) { return matmul(c, w); });
       },
       with([](Options& o) { o.on_refused = OnRefused::freeze; })},
  };
}

// Kept for their names; docs/compiler.md says why programs here never lead to them.
const std::set<Kind> kNever = {
    Kind::primitive_inside_nested_jit, Kind::multi_output_primitive_detected,
    Kind::pytree_weight_leaf_ambiguous, Kind::transition_tail_bounded};

std::vector<CompilationRecord> records_of(const Row& row) {
  MicroModel m(step(row.next));
  m.hidden("h", {4}).hidden("k", {4}).dynamic("t", {});
  m.param("w", {4, 4}).param("u", {4, 4}).param("v", {4, 6}).param("v2", {8, 4});
  m.param("b", {4});
  return records_of(m, row.options);
}

void check_row(const Row& row) {
  CAPTURE(to_string(row.kind));
  CAPTURE(to_string(row.level));
  std::size_t seen = 0;
  for (const CompilationRecord& r : records_of(row))
    seen += r.kind == row.kind && r.level == row.level;
  CHECK(seen >= 1);
}

}  // namespace

TEST_CASE("every kind of record occurs at its level") {
  std::set<Kind> seen = kNever;
  for (const std::vector<Row>& rows : {reference_rows(), own_rows()})
    for (const Row& row : rows) {
      seen.insert(row.kind);
      check_row(row);
    }
  for (Kind k : all_diagnostic_kinds()) {
    CAPTURE(to_string(k));
    CHECK(seen.contains(k));
  }
}

TEST_CASE("a kind has no other level than those of the table") {
  std::map<Kind, std::set<Level>> allowed;
  for (const std::vector<Row>& rows : {reference_rows(), own_rows()})
    for (const Row& row : rows) allowed[row.kind].insert(row.level);
  for (const std::vector<Row>& rows : {reference_rows(), own_rows()})
    for (const Row& row : rows) {
      for (const CompilationRecord& r : records_of(row)) {
        CAPTURE(to_string(r));
        CHECK(allowed[r.kind].contains(r.level));
      }
    }
}

}  // namespace record_levels_test
