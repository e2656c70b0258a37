// SPDX-License-Identifier: Apache-2.0
// Recipes with branches and loops: as one value of the step, or as the update of a whole
// state.
#include "braintrace/testing/random_model_impl.h"

namespace braintrace::testing {
namespace {

constexpr std::int64_t kLong = 18;  // beyond the default unrolling limit

Value counted(const Value& init, std::int64_t n, const ValuesFn& body) {
  const auto less = [n](const Values& c) {
    return Values{c[0] < static_cast<double>(n)};
  };
  const auto step = [&body](const Values& c) {
    return Values{c[0] + 1, body({c[1]})[0]};
  };
  return while_loop(less, step, {scalar(0, DType::i32), init})[1];
}

Value looped(const Value& init, std::int64_t n, const ValuesFn& body) {
  return scan(body, {init}, {}, {.length = n}).carry[0];
}

// ---- values ---------------------------------------------------------------------------

void branch(ModelPlanner& m) {
  m.mark("cond");
  const Slot a = m.any(), b = m.any();
  m.push(a.width, [=, w = m.weight({a.width, a.width})](const Pool& p) {
    const Value weight = w(p);
    return cond(
        sum(p[b.id]) > 0, [&](const Values& in) { return Values{matmul(in[0], weight)}; },
        [](const Values& in) { return Values{0.5 * in[0]}; }, {p[a.id]})[0];
  });
}

void branch_without_weight(ModelPlanner& m) {
  m.mark("cond_without_weight");
  const Slot a = m.any(), b = m.any();
  m.push(a.width, [=](const Pool& p) {
    return cond(
        sum(p[b.id]) > 0, [](const Values& in) { return Values{tanh(in[0])}; },
        [](const Values& in) { return Values{0.5 * in[0]}; }, {p[a.id]})[0];
  });
}

void branch_with_loop(ModelPlanner& m) {
  m.mark("cond_with_loop");
  const Slot a = m.any(), b = m.any();
  const bool bounded = m.chance(0.5);
  m.push(a.width, [=](const Pool& p) {
    const ValuesFn body = [](const Values& c) { return Values{0.9 * c[0]}; };
    return cond(
        sum(p[b.id]) > 0,
        [&](const Values& in) {
          return Values{bounded ? looped(in[0], kLong, body) : counted(in[0], 3, body)};
        },
        [](const Values& in) { return Values{0.5 * in[0]}; }, {p[a.id]})[0];
  });
}

void short_loop(ModelPlanner& m) {
  m.mark("short_scan");
  const Slot a = m.any(), b = m.any();
  const std::int64_t n = 2 + m.below(2);
  m.push(a.width, [=, w = m.weight({b.width, a.width})](const Pool& p) {
    const Value weight = w(p);
    return looped(p[a.id], n, [&](const Values& c) {
      return Values{tanh(0.9 * c[0] + matmul(p[b.id], weight))};
    });
  });
}

void loop_over_inputs(ModelPlanner& m) {
  m.mark("scan_over_values");
  const Slot a = m.any(), b = m.of_width(a.width);
  const bool reverse = m.chance(0.5);
  m.push(a.width, [=](const Pool& p) {
    const auto body = [](const Values& c) {
      return Values{0.5 * c[0] + c[1], tanh(c[0])};
    };
    const ScanResult r =
        scan(body, {p[a.id]}, {stack({p[a.id], p[b.id]})}, {.reverse = reverse});
    return r.carry[0] + mean(r.ys[0], {.axes = {0}});
  });
}

void loop_over_weight(ModelPlanner& m) {
  m.mark("sliced_weight");
  const Slot a = m.any();
  const bool trained = m.chance(0.5);
  const Shape shape = trained ? Shape{2, a.width, a.width} : Shape{2, a.width};
  m.push(a.width, [=, w = m.parameter(shape)](const Pool& p) {
    const auto body = [=](const Values& c) {
      return Values{trained ? matmul(c[0], c[1]) : tanh(c[0] + c[1])};
    };
    return scan(body, {p[a.id]}, {w->value()}).carry[0];
  });
}

void long_loop(ModelPlanner& m) {
  m.mark("long_scan_on_value");
  const Slot a = m.any(), b = m.of_width(a.width);
  m.push(a.width, [=](const Pool& p) {
    return looped(p[a.id], kLong,
                  [&](const Values& c) { return Values{0.9 * c[0] + 0.1 * p[b.id]}; });
  });
}

// Half of the models with a parameter that is refused go on without it.
void sometimes_freeze(ModelPlanner& m) {
  if (!m.chance(0.5)) return;
  m.mark("refused_is_frozen");
  m.tune([](CompileOptions& o) { o.on_refused = OnRefused::freeze; });
}

// The parameter acts through the loop alone.
void open_loop_behind_parameter(ModelPlanner& m) {
  m.mark("parameter_behind_while");
  sometimes_freeze(m);
  const Slot a = m.any();
  m.push(a.width, [=, w = m.parameter({a.width})](const Pool& p) {
    return counted(p[a.id] * w->value(), 3,
                   [](const Values& c) { return Values{0.9 * c[0]}; });
  });
}

void open_loop(ModelPlanner& m) {
  if (m.chance(0.3)) return open_loop_behind_parameter(m);
  m.mark("while_on_value");
  const Slot a = m.any();
  m.push(a.width, [=](const Pool& p) {
    return counted(p[a.id], 3, [](const Values& c) { return Values{0.9 * c[0]}; });
  });
}

void open_loop_with_weight(ModelPlanner& m) {
  if (!m.chance(0.3)) return branch(m);
  m.mark("weight_in_while");
  sometimes_freeze(m);
  const Slot a = m.any();
  m.push(a.width, [=, w = m.weight({a.width})](const Pool& p) {
    const Value weight = w(p);
    return counted(p[a.id], 3,
                   [&](const Values& c) { return Values{tanh(c[0] * weight)}; });
  });
}

// ---- whole states ---------------------------------------------------------------------

Compute state_branch(ModelPlanner& m, Slot old) {
  m.mark("cond_on_state");
  const Slot in = m.of_width(old.width);
  return [=, w = m.weight({old.width, old.width})](const Pool& p) {
    const Value weight = w(p);
    return cond(
        sum(p[in.id]) > 0,
        [&](const Values& v) { return Values{tanh(matmul(v[1], weight) + v[0])}; },
        [](const Values& v) { return Values{0.9 * v[0]}; }, {p[old.id], p[in.id]})[0];
  };
}

Compute state_loop(ModelPlanner& m, Slot old) {
  m.mark("long_scan");
  const Slot in = m.of_width(old.width);
  const std::int64_t n = kLong + m.below(3);
  const bool recurrent = m.chance(0.3);
  return [=, w = m.weight({old.width, old.width})](const Pool& p) {
    const Value weight = w(p);
    return looped(p[old.id], n, [&](const Values& c) {
      return Values{0.9 * c[0] + 0.1 * tanh(matmul(recurrent ? c[0] : p[in.id], weight))};
    });
  };
}

// The weight's product leaves the loop; no state of the body reads it.
Compute state_loop_with_output(ModelPlanner& m, Slot old) {
  m.mark("long_scan_weight_beside_state");
  return [=, w = m.weight({old.width, old.width})](const Pool& p) {
    const Value weight = w(p);
    const ScanResult r = scan(
        [&](const Values& c) {
          return Values{0.9 * c[0], matmul(c[0], weight)};
        },
        {p[old.id]}, {}, {.length = kLong});
    return r.carry[0];
  };
}

// Loops that cannot be opened.
Compute state_loop_closed(ModelPlanner& m, Slot old) {
  m.mark("long_scan_closed");
  const std::int64_t kind = m.below(3);
  const Shape shape = {old.width, old.width};
  if (m.chance(0.5))
    m.tune([](CompileOptions& o) { o.control_flow.etp_in_control_flow = "exclude"; });
  return [=, w = m.chance(0.6) ? m.prologue(shape) : m.weight(shape)](const Pool& p) {
    const Value weight = w(p);
    const Value init = kind == 0 ? 0.5 * p[old.id] : p[old.id];
    const auto body = [&](const Values& c) {
      const Value y = matmul(c[0], weight);
      const Value next = kind == 1
                             ? cond(
                                   sum(y) > 0, [](const Values& v) { return v; },
                                   [](const Values& v) { return Values{-v[0]}; }, {y})[0]
                             : y;
      return Values{0.9 * c[0] + 0.1 * tanh(next)};
    };
    return scan(body, {init}, {}, {.length = kLong, .reverse = kind == 2}).carry[0];
  };
}

Compute state_loop_without_weight(ModelPlanner& m, Slot old) {
  m.mark("long_scan_without_weight");
  const Slot in = m.of_width(old.width);
  return [=](const Pool& p) {
    return looped(p[old.id], kLong,
                  [&](const Values& c) { return Values{0.9 * c[0] + 0.1 * p[in.id]}; });
  };
}

Compute state_open_loop(ModelPlanner& m, Slot old) {
  m.mark("while_on_state");
  const Slot in = m.of_width(old.width);
  const bool mixes = m.chance(0.3);
  return [=](const Pool& p) {
    return counted(p[old.id] + 0.1 * p[in.id], 3, [mixes](const Values& c) {
      return Values{mixes ? 0.9 * roll(c[0], 1) : 0.9 * c[0]};
    });
  };
}

// The state is another state's value, or its own.
Compute state_alias(ModelPlanner& m, Slot old) {
  m.mark("aliased_state");
  const Slot in = m.chance(0.5) ? old : m.of_width(old.width);
  return [=](const Pool& p) { return p[in.id]; };
}

constexpr ModelRecipe kLoops[] = {branch,
                                  branch_without_weight,
                                  branch_with_loop,
                                  short_loop,
                                  loop_over_inputs,
                                  loop_over_weight,
                                  long_loop,
                                  open_loop,
                                  open_loop_with_weight};
constexpr StateRecipe kStates[] = {state_branch,      state_loop,
                                   state_loop,        state_loop_with_output,
                                   state_loop_closed, state_loop_without_weight,
                                   state_open_loop,   state_alias};

}  // namespace

std::span<const ModelRecipe> loop_recipes() { return kLoops; }
std::span<const StateRecipe> state_recipes() { return kStates; }

}  // namespace braintrace::testing
