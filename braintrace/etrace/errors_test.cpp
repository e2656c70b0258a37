// SPDX-License-Identifier: Apache-2.0
// Every error of the compiler: its kind, and that it names what is wrong.
#include <doctest/doctest.h>

#include "braintrace/etrace/perturbation.h"
#include "braintrace/etrace/snap_pattern.h"
#include "braintrace/testing/micro_model.h"

namespace errors_test {

using namespace braintrace;
using namespace braintrace::testing;

namespace {

// "kind: message" of what f throws, "" when it does not.
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const UserError& e) {
    return std::string(to_string(e.kind())) + ": " + e.what();
  } catch (const InternalError& e) {
    return std::string("internal: ") + e.what();
  }
  return "";
}

template <class F>
void check_error(F f, ErrorKind kind, const std::string& text) {
  const std::string found = error_of(f);
  CAPTURE(found);
  CHECK(found.rfind(std::string(to_string(kind)) + ": ", 0) == 0);
  CHECK(found.find(text) != std::string::npos);
}

std::unique_ptr<MicroModel> leaky() {
  auto m = std::make_unique<MicroModel>([](MicroModel& s, Value x) {
    const Value h = s.h();
    s.set("h", 0.9 * h + matmul(x, s.w()));
    return s.h();
  });
  m->hidden("h", {4}).param("w", {4, 4});
  return m;
}

// The loop's weight is a product inside; `length` decides whether it is opened.
std::unique_ptr<MicroModel> looped(std::int64_t length) {
  auto m = std::make_unique<MicroModel>([length](MicroModel& s, Value x) {
    const Value w = s.w(), h = s.h();
    s.set("h", scan([&](const Values& c) { return Values{0.9 * c[0] + matmul(x, w)}; },
                    {h}, {}, {.length = length})
                   .carry[0]);
    return s.h();
  });
  m->hidden("h", {4}).param("w", {4, 4});
  return m;
}

std::unique_ptr<MicroModel> settling(bool with_weight) {
  auto m = std::make_unique<MicroModel>([with_weight](MicroModel& s, Value x) {
    const Value w = s.w(), h = s.h();
    const Value y = matmul(x, w);
    s.set("h", while_loop(
                   [&](const Values& c) { return Values{c[0] < unknown(3, x)}; },
                   [&](const Values& c) {
                     return Values{c[0] + 1, with_weight ? matmul(c[1], w) : 0.9 * c[1]};
                   },
                   {scalar(0, DType::i32), h})[1] +
                   y);
    return s.h();
  });
  m->hidden("h", {4}).param("w", {4, 4});
  return m;
}

template <class F>
CompileOptions with(F change, CompileOptions base = {}) {
  change(base);
  return base;
}

ModuleInfo info_of(MicroModel& m) {
  init_all_states(m, {.dtype = DType::f64});
  return extract_module_info(m, {ones({4}, DType::f64)});
}

}  // namespace

TEST_CASE("sparse_n: at least 1, and only with mixing") {
  const auto m = leaky();
  check_error([&] { m->compile(with([](auto& o) { o.sparse_n = 0; })); },
              ErrorKind::value, "sparse_n must be >= 1, got 0");
  check_error([&] { m->compile(with([](auto& o) { o.sparse_n = 2; })); },
              ErrorKind::not_supported, "needs include_recurrent_mixing");
}

TEST_CASE("a step may compile another model; nothing is shared between compiles") {
  // The reference refuses this, because its compiler keeps global state.
  const auto inner = leaky();
  std::size_t relations = 0;
  MicroModel m([&](MicroModel& s, Value x) {
    relations = inner->compile().hidden_param_op_relations.size();
    s.set("h", 0.9 * s.h() + matmul(x, s.w()));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  CHECK(m.compile().hidden_param_op_relations.size() == 1);
  CHECK(relations == 1);
}

TEST_CASE("a parameter written in the step is refused by name") {
  struct Fast : Module {
    ParamState w{{4}, constant_init(0.1)};
    Fast() { add("w", w); }
    Value update(Value x) override {
      w.write(0, 0.9 * w.value() + x);
      return w.value();
    }
  } model;
  init_all_states(model, {.dtype = DType::f64});
  check_error([&] { compile_etrace_graph(model, {ones({4}, DType::f64)}); },
              ErrorKind::not_supported, "('w',)");
}

TEST_CASE("add_jaxpr_outs takes values of the program only") {
  const auto m = leaky();
  const ModuleInfo info = info_of(*m);
  check_error([&] { info.add_jaxpr_outs({ValueId{1000}}); }, ErrorKind::type,
              "add_jaxpr_outs: %1000");
}

TEST_CASE("every knob of the control-flow policy is checked") {
  const auto m = leaky();
  const auto refused = [&](auto change, const std::string& text) {
    check_error(
        [&] { m->compile(with([&](CompileOptions& o) { change(o.control_flow); })); },
        ErrorKind::value, text);
  };
  refused([](auto& p) { p.cond = "no"; }, "cond must be one of convert, opaque");
  refused([](auto& p) { p.while_hidden = "no"; }, "while_hidden must be one of");
  refused([](auto& p) { p.etp_in_control_flow = "no"; },
          "etp_in_control_flow must be one of local, error, exclude, got 'no'");
  refused([](auto& p) { p.scan_descent = "no"; },
          "scan_descent must be one of auto, off");
  refused([](auto& p) { p.fixpoint_iteration_limit = 0; },
          "fixpoint_iteration_limit must be >= 1, got 0");
}

TEST_CASE("nested control flow ends at any depth, so no sweep can run out") {
  MicroModel m([](MicroModel& s, Value x) {
    Value v = s.h();
    std::function<Values(const Values&, int)> nest = [&](const Values& in, int depth) {
      if (depth == 0) return Values{0.9 * in[0]};
      return Values{cond(
          sum(x) > 0, [&](const Values& a) { return nest(a, depth - 1); },
          [](const Values& a) { return a; }, in)};
    };
    s.set("h", nest({v}, 12)[0] + matmul(x, s.w()));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  const auto options = with([](auto& o) { o.control_flow.fixpoint_iteration_limit = 1; });
  CHECK(jacobian_of(m.compile(options)).at(0) == doctest::Approx(0.9));
}

TEST_CASE("weights in closed control flow are errors where the policy says so") {
  check_error([&] { settling(true)->compile(); }, ErrorKind::not_implemented,
              "weight ('w',) is used inside a while");
  check_error([&] { settling(true)->compile(compat()); }, ErrorKind::not_implemented,
              "weight ('w',) is used inside a while");
  const auto closed = [](CompileOptions& o) { o.control_flow.scan_descent = "off"; };
  check_error([&] { looped(20)->compile(with(closed, compat())); },
              ErrorKind::not_implemented, "weight ('w',) is used inside a scan");
}

TEST_CASE("a state out of a loop is an error under while_hidden = error") {
  const auto m = settling(false);
  // The last op must be the loop for the state to be its very result.
  MicroModel direct([](MicroModel& s, Value x) {
    const Value h = s.h();
    s.set("h", while_loop([&](const Values& c) { return Values{c[0] < unknown(3, x)}; },
                          [](const Values& c) {
                            return Values{c[0] + 1, 0.9 * c[1]};
                          },
                          {scalar(0, DType::i32), h})[1]);
    return s.h() + matmul(x, s.w());
  });
  direct.hidden("h", {4}).param("w", {4, 4});
  const auto strict = with([](auto& o) { o.control_flow.while_hidden = "error"; });
  check_error([&] { direct.compile(strict); }, ErrorKind::not_implemented,
              "hidden state ('h',) is the result of a while");
  CHECK(error_of([&] { m->compile(strict); }).empty());
}

TEST_CASE("a trainable op in a closed loop is an error under etp_in_control_flow") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h(), w = s.w();
    const Array ring = full({4, 4}, 0.1, DType::f64);
    const Value r = scan([&](const Values& c) { return Values{matmul(c[0], ring)}; }, {x},
                         {}, {.length = 20})
                        .carry[0];
    s.set("h", 0.9 * h + matmul(x, w) + r);
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  check_error([&] { m.compile(compat()); }, ErrorKind::not_implemented,
              "a trainable op sits inside a scan");
  CHECK(verdict_of(m.compile(), "w") == Verdict::direct);
}

TEST_CASE("an equation that reads two states is an error in compat only") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h(), k = s.h("k");
    s.set("h", h * k + matmul(x, s.w()));
    s.set("k", 0.5 * k);
    return s.h();
  });
  m.hidden("h", {4}).hidden("k", {4}).param("w", {4, 4});
  check_error([&] { m.compile(compat()); }, ErrorKind::value, "reads 2 hidden states");
  CHECK(error_of([&] { m.compile(); }).empty());
}

TEST_CASE("groups handed over must be those of the program") {
  const auto m = leaky();
  const ModuleInfo info = info_of(*m);
  Diagnostics d;
  const std::vector<HiddenGroup> groups = find_hidden_groups_from_minfo(info, {}, d);
  const auto relate = [&](const std::vector<HiddenGroup>& given) {
    return error_of(
        [&] { find_hidden_param_op_relations_from_minfo(info, given, {}, d); });
  };
  CHECK(relate(groups).empty());
  CHECK(relate({}).find("value: find_hidden_param_op_relations: ('h',) is in no group") ==
        0);
  std::vector<HiddenGroup> moved = groups;
  moved[0].index = 1;
  CHECK(relate(moved).find("internal: ") == 0);
  std::vector<HiddenGroup> foreign = groups;
  foreign[0].members[0].out = ValueId{0};
  CHECK(relate(foreign).find("is no hidden state of this program") != std::string::npos);
  std::vector<HiddenGroup> doubled = groups;
  doubled.push_back(groups[0]);
  doubled[1].index = 1;
  CHECK(relate(doubled).find("('h',) is in two groups") != std::string::npos);
}

TEST_CASE("members of a group have one shape") {
  const auto m = leaky();
  HiddenGroup g = m->compile().hidden_groups[0];
  g.members.push_back(g.members[0]);
  g.members[1].varshape = {3};
  check_error([&] { g.check_consistent_varshape(); }, ErrorKind::not_supported,
              "has shape [3], but ('h',) has [4]");
}

TEST_CASE("an op outside that feeds an opened loop is an error in compat only") {
  MicroModel m([](MicroModel& s, Value x) {
    const Value in = matmul(x, s.w("u"));
    const Value w = s.w(), h = s.h();
    s.set("h",
          scan([&](const Values& c) { return Values{0.9 * c[0] + in + matmul(x, w)}; },
               {h}, {}, {.length = 20})
              .carry[0]);
    return s.h();
  });
  m.hidden("h", {4}).param("u", {4, 4}).param("w", {4, 4});
  check_error([&] { m.compile(compat()); }, ErrorKind::not_implemented,
              "feeds a hidden state that a long scan updates");
  CHECK(verdict_of(m.compile(), "u") == Verdict::dense);
}

TEST_CASE("concat_hidden and split_hidden check their sizes") {
  const auto m = leaky();
  const HiddenGroup g = m->compile().hidden_groups[0];
  check_error([&] { g.concat_hidden(std::vector<Array>{}); }, ErrorKind::value,
              "concat_hidden: group 0 has 1 states, got 0 values");
  check_error(
      [&] {
        g.split_hidden(zeros({4, 3}));
      },
      ErrorKind::value,
      "split_hidden: the last axis of group 0 must have 1 states, got [4,3]");
}

TEST_CASE("perturbations meet the states they were made for") {
  const auto m = leaky();
  const ETraceGraph g = m->compile();
  const HiddenPerturbation& p = *g.hidden_perturb;
  check_error([&] { p.perturb_data_to_hidden_group_data({}, g.hidden_groups); },
              ErrorKind::value, "1 states are perturbed, got 0");
  std::vector<HiddenGroup> other = g.hidden_groups;
  other[0].members[0].path = Path{"elsewhere"};
  check_error([&] { p.perturb_data_to_hidden_group_data(p.init_perturb_data(), other); },
              ErrorKind::value, "('elsewhere',) is not perturbed");
}

TEST_CASE("SnAp patterns need an order, and a size that fits") {
  check_error([&] { close_adjacency({}, {}, 0); }, ErrorKind::value,
              "close_adjacency: n must be >= 1, got 0");
  MicroModel m([](MicroModel& s, Value x) {
    const Value h = s.h();
    s.set("h", tanh(x + matmul(h, s.w())));
    return s.h();
  });
  m.hidden("h", {4}).param("w", {4, 4});
  const auto small = with([](auto& o) {
    o.include_recurrent_mixing = true;
    o.sparse_n = 2;
    o.snap_max_jacobian_elements = 63;
  });
  check_error([&] { m.compile(small); }, ErrorKind::not_supported, "(P=4, K=4, S=1)");
}

TEST_CASE("the full Jacobian of an opened loop is not available") {
  const ETraceGraph g = looped(20)->compile();
  REQUIRE(g.hidden_groups[0].descent);
  check_error([&] { g.hidden_groups[0].full_jacobian({}, {}); },
              ErrorKind::not_implemented, "full_jacobian");
}

TEST_CASE("call_hidden_perturb needs the perturbed program") {
  const auto m = leaky();
  const ETraceGraph g =
      m->compile(with([](auto& o) { o.include_hidden_perturb = false; }));
  check_error([&] { g.call_hidden_perturb({ones({4}, DType::f64)}, {}); },
              ErrorKind::value, "include_hidden_perturb = false");
}

}  // namespace errors_test
