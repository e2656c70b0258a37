// SPDX-License-Identifier: Apache-2.0
// Models with a branch, a loop of known length or a loop of unknown length in the step.
#include "braintrace/nn/initializers.h"
#include "braintrace/nn/model_spec_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn::internal {
namespace {

// d = x w_a where sum(x) > 0, else x w_b;  h' = leak h + tanh(d)
struct CondGate : Module {
  double leak;
  ParamState w_a, w_b;
  HiddenState h;
  explicit CondGate(ModelSpec& s)
      : leak(s.number("leak", 0.9)),
        w_a({s.size("n_in"), s.size("n_rec")}, weights()),
        w_b({s.size("n_in"), s.size("n_rec")}, weights()),
        h({s.size("n_rec")}) {
    add("w_a", w_a);
    add("w_b", w_b);
    add("h", h);
  }
  Value update(Value x) override {
    const auto product = [](const Values& in) -> Values {
      return {matmul(in[0], in[1])};
    };
    const auto other = [](const Values& in) -> Values { return {matmul(in[0], in[2])}; };
    const Value d = cond(sum(x) > 0, product, other, {x, w_a.value(), w_b.value()})[0];
    h.set(leak * h.value() + tanh(d));
    return h.value();
  }
};

// `loops` times h = decay h + tanh(x w); y = h', or the last of the stacked outputs
struct ScanLeaky : Module {
  std::int64_t loops;
  double decay;
  bool from_stack;
  ParamState w;
  HiddenState h;
  explicit ScanLeaky(ModelSpec& s)
      : loops(s.size("loops")),
        decay(s.number("decay", 0.9)),
        from_stack(returns_stack(s)),
        w({s.size("n_in"), s.size("n_rec")}, weights()),
        h({s.size("n_rec")}) {
    add("w", w);
    add("h", h);
  }
  static bool returns_stack(ModelSpec& s) {
    const std::string ret = s.text("ret", "state");
    BT_REQUIRE(ret == "ys" || ret == "state" || ret == "carry" || ret == "h",
               s.where() + ": 'ret' must be 'state' or 'ys', got '" + ret + "'");
    return ret == "ys";
  }
  Value update(Value x) override {
    const Value weight = w.value();
    const auto body = [&](const Values& carry) -> Values {
      const Value next = decay * carry[0] + tanh(matmul(x, weight));
      return {next, next};
    };
    const ScanResult r = scan(body, {h.value()}, {}, {.length = loops});
    h.set(r.carry[0]);
    if (!from_stack) return h.value();
    return squeeze(slice_axis(r.ys[0], 0, loops - 1, 1), 0);
  }
};

// `loops` times h = tanh(x w + h w)
struct ScanBody : Module {
  std::int64_t loops;
  ParamState w;
  HiddenState h;
  explicit ScanBody(ModelSpec& s)
      : loops(s.size("loops", 3)),
        w({s.size("n_rec"), s.size("n_rec")}, weights()),
        h({s.size("n_rec")}) {
    s.ignore({"n_in"});
    add("w", w);
    add("h", h);
  }
  Value update(Value x) override {
    const Value weight = w.value();
    const auto body = [&](const Values& carry) -> Values {
      const Value from_x = matmul(x, weight);
      return {tanh(from_x + matmul(carry[0], weight))};
    };
    h.set(scan(body, {h.value()}, {}, {.length = loops}).carry[0]);
    return h.value();
  }
};

// pre = x win + decay h; k times h = h + .5 tanh(pre - h), by a while loop
struct WhileSettle : Module {
  std::int64_t k;
  double decay;
  bool unrolled;
  ParamState win;
  HiddenState h;
  WhileSettle(ModelSpec& s, bool by_hand)
      : k(s.size("k", 3)),
        decay(s.number("decay", 0.8)),
        unrolled(by_hand),
        win({s.size("n_in"), s.size("n_rec")}, weights()),
        h({s.size("n_rec")}) {
    add("win", win);
    add("h", h);
  }
  Value update(Value x) override {
    const Value pre = matmul(x, win.value()) + decay * h.value();
    const auto settle = [&](const Value& v) { return v + 0.5 * tanh(pre - v); };
    Value v = h.value();
    if (unrolled) {
      for (std::int64_t i = 0; i < k; ++i) v = settle(v);
    } else {
      const auto more = [&](const Values& c) -> Values {
        return {c[0] < static_cast<int>(k)};
      };
      const auto body = [&](const Values& c) -> Values {
        return {c[0] + 1, settle(c[1])};
      };
      v = while_loop(more, body, {scalar(0, DType::i32), v})[1];
    }
    h.set(v);
    return v;
  }
};

// h' = tanh([x, h] w)
struct NestedJit : Module {
  ParamState w;
  HiddenState h;
  explicit NestedJit(ModelSpec& s)
      : w({s.size("n_in") + s.size("n_rec"), s.size("n_rec")}, weights()),
        h({s.size("n_rec")}) {
    add("w", w);
    add("h", h);
  }
  Value update(Value x) override {
    h.set(tanh(matmul(concat({x, h.value()}), w.value())));
    return h.value();
  }
};

}  // namespace

std::vector<ModelKind> control_flow_kinds() {
  return {{"cond_gate", make<CondGate>},
          {"scan_leaky", make<ScanLeaky>},
          {"scan_body", make<ScanBody>},
          {"while_settle", make<WhileSettle, false>},
          {"while_settle_unrolled", make<WhileSettle, true>},
          {"nested_jit", make<NestedJit>}};
}

}  // namespace braintrace::nn::internal
