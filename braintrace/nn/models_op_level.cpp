// SPDX-License-Identifier: Apache-2.0
// Small models written with dense products: one equation each, the compiler's standard
// cases. `matmul` carries traces; `dot` is a plain product.
#include "braintrace/nn/initializers.h"
#include "braintrace/nn/model_spec_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn::internal {
namespace {

// h' = leak h + x w
struct LeakyLinear : Module {
  double leak;
  ParamState w;
  HiddenState h;
  explicit LeakyLinear(ModelSpec& s)
      : leak(s.number("leak", 0.9)),
        w({s.size("n_in"), s.size("n_rec")}, weights()),
        h({s.size("n_rec")}) {
    add("w", w);
    add("h", h);
  }
  Value update(Value x) override {
    h.set(leak * h.value() + matmul(x, w.value()));
    return h.value();
  }
};

// h' = .6 h + .4 tanh([x, h] w + b);  y = h' o with plain o
struct LeakyRnn : Module {
  ParamState p, o;
  HiddenState h;
  explicit LeakyRnn(ModelSpec& s)
      : p(std::vector<LeafSpec>{
            {"w", {s.size("n_in") + s.size("n_rec"), s.size("n_rec")}, weights()},
            {"b", {s.size("n_rec")}, init::zero()}}),
        o({s.size("n_rec"), s.size("n_out")}, weights()),
        h({s.size("n_rec")}) {
    add("p", p);
    add("o", o);
    add("h", h);
  }
  Value update(Value x) override {
    const Value z = concat({x, h.value()});
    const Value q = matmul(z, p.value("w"), p.value("b"));
    h.set(0.6 * h.value() + 0.4 * tanh(q));
    return dot(h.value(), o.value());
  }
};

// h' = tanh(x win + h w), y = h' or h' wout with plain win, wout
struct TanhRnn : Module {
  ParamState win, w;
  std::unique_ptr<ParamState> wout;
  HiddenState h;
  TanhRnn(ModelSpec& s, bool readout)
      : win({s.size("n_in"), s.size("n_rec")}, weights()),
        w({s.size("n_rec"), s.size("n_rec")}, weights()),
        h({s.size("n_rec")}) {
    add("win", win);
    add("w", w);
    add("h", h);
    if (!readout) return;
    wout =
        std::make_unique<ParamState>(Shape{s.size("n_rec"), s.size("n_out")}, weights());
    add("wout", *wout);
  }
  Value update(Value x) override {
    h.set(tanh(dot(x, win.value()) + matmul(h.value(), w.value())));
    return wout ? dot(h.value(), wout->value()) : h.value();
  }
};

// v' = .9 v + x w - .1 a;  a' = .95 a + v
struct TwoState : Module {
  ParamState w;
  HiddenState v, a;
  explicit TwoState(ModelSpec& s)
      : w({s.size("n_in"), s.size("n_rec")}, weights()),
        v({s.size("n_rec")}),
        a({s.size("n_rec")}) {
    add("w", w);
    add("v", v);
    add("a", a);
  }
  Value update(Value x) override {
    const Value v0 = v.value(), a0 = a.value();
    v.set(0.9 * v0 + matmul(x, w.value()) - 0.1 * a0);
    a.set(0.95 * a0 + v0);
    return v.value();
  }
};

// V' = tanh(x w + .5 V - .2 a);  a' = .3 a + .7 V'^2;  y = V' + 2 a'
struct TwoStateChain : Module {
  ParamState w;
  HiddenState V, a;
  explicit TwoStateChain(ModelSpec& s)
      : w({s.size("n_in"), s.size("n_rec")}, weights()),
        V({s.size("n_rec")}),
        a({s.size("n_rec")}) {
    add("w", w);
    add("V", V);
    add("a", a);
  }
  Value update(Value x) override {
    const Value V0 = V.value(), a0 = a.value();
    V.set(tanh(matmul(x, w.value()) + 0.5 * V0 - 0.2 * a0));
    a.set(0.3 * a0 + 0.7 * square(V.value()));
    return V.value() + 2 * a.value();
  }
};

// h1' = tanh(x win + h1 w1);  h2' = tanh(h1' wmid + h2 w2)
struct StackedTanh : Module {
  ParamState win, w1, wmid, w2;
  HiddenState h1, h2;
  explicit StackedTanh(ModelSpec& s)
      : win({s.size("n_in"), s.size("n_rec")}, weights()),
        w1({s.size("n_rec"), s.size("n_rec")}, weights()),
        wmid({s.size("n_rec"), s.size("n_rec")}, weights()),
        w2({s.size("n_rec"), s.size("n_rec")}, weights()),
        h1({s.size("n_rec")}),
        h2({s.size("n_rec")}) {
    add("win", win);
    add("w1", w1);
    add("wmid", wmid);
    add("w2", w2);
    add("h1", h1);
    add("h2", h2);
  }
  Value update(Value x) override {
    h1.set(tanh(dot(x, win.value()) + matmul(h1.value(), w1.value())));
    h2.set(tanh(dot(h1.value(), wmid.value()) + matmul(h2.value(), w2.value())));
    return h2.value();
  }
};

// h' = tanh(x w + h w), one weight used twice
struct Tied : Module {
  ParamState w;
  HiddenState h;
  explicit Tied(ModelSpec& s)
      : w({s.size("n_rec"), s.size("n_rec")}, weights()), h({s.size("n_rec")}) {
    add("w", w);
    add("h", h);
  }
  Value update(Value x) override {
    const Value from_x = matmul(x, w.value());
    h.set(tanh(from_x + matmul(h.value(), w.value())));
    return h.value();
  }
};

// ha' = tanh(x + ha wa), hb' likewise, y = ha' + hb'
struct TwoIsland : Module {
  ParamState wa, wb;
  HiddenState ha, hb;
  explicit TwoIsland(ModelSpec& s)
      : wa({s.size("n_rec"), s.size("n_rec")}, weights()),
        wb({s.size("n_rec"), s.size("n_rec")}, weights()),
        ha({s.size("n_rec")}),
        hb({s.size("n_rec")}) {
    add("wa", wa);
    add("wb", wb);
    add("ha", ha);
    add("hb", hb);
  }
  Value update(Value x) override {
    ha.set(tanh(x + matmul(ha.value(), wa.value())));
    hb.set(tanh(x + matmul(hb.value(), wb.value())));
    return ha.value() + hb.value();
  }
};

// q = x w;  h1' = tanh(.9 h1 + q);  h2' = tanh(.5 h2 - q);  y = h1' + h2'
struct Branching : Module {
  ParamState w;
  HiddenState h1, h2;
  explicit Branching(ModelSpec& s)
      : w({s.size("n_in"), s.size("n_rec")}, weights()),
        h1({s.size("n_rec")}),
        h2({s.size("n_rec")}) {
    add("w", w);
    add("h1", h1);
    add("h2", h2);
  }
  Value update(Value x) override {
    const Value q = matmul(x, w.value());
    h1.set(tanh(0.9 * h1.value() + q));
    h2.set(tanh(0.5 * h2.value() - q));
    return h1.value() + h2.value();
  }
};

// m = [x, h] w1;  h' = tanh(m + m w2)
struct MixedPath : Module {
  ParamState w1, w2;
  HiddenState h;
  explicit MixedPath(ModelSpec& s)
      : w1({s.size("n_in") + s.size("n_rec"), s.size("n_rec")}, weights()),
        w2({s.size("n_rec"), s.size("n_rec")}, weights()),
        h({s.size("n_rec")}) {
    add("w1", w1);
    add("w2", w2);
    add("h", h);
  }
  Value update(Value x) override {
    const Value m = matmul(concat({x, h.value()}), w1.value());
    h.set(tanh(m + matmul(m, w2.value())));
    return h.value();
  }
};

// q = x (w^2) + tanh(b);  h' = .7 h + tanh(q); the hooks belong to the op
struct WeightFnBias : Module {
  ParamState w, b;
  HiddenState h;
  explicit WeightFnBias(ModelSpec& s)
      : w({s.size("n_in"), s.size("n_rec")}, weights()),
        b({s.size("n_rec")}, init::normal(0, 0.1)),
        h({s.size("n_rec")}) {
    add("w", w);
    add("b", b);
    add("h", h);
  }
  Value update(Value x) override {
    const EtpHooks hooks{.weight = [](const Value& v) { return square(v); },
                         .bias = [](const Value& v) { return tanh(v); }};
    const Value q = matmul(x, w.value(), b.value(), hooks);
    h.set(0.7 * h.value() + tanh(q));
    return h.value();
  }
};

}  // namespace

std::vector<ModelKind> op_level_kinds() {
  return {{"leaky_linear", make<LeakyLinear>}, {"leaky_rnn", make<LeakyRnn>},
          {"tanh_rnn", make<TanhRnn, false>},  {"plain_and_etp", make<TanhRnn, true>},
          {"two_state", make<TwoState>},       {"two_state_chain", make<TwoStateChain>},
          {"stacked_tanh", make<StackedTanh>}, {"tied", make<Tied>},
          {"two_island", make<TwoIsland>},     {"branching", make<Branching>},
          {"mixed_path", make<MixedPath>},     {"weight_fn_bias", make<WeightFnBias>}};
}

}  // namespace braintrace::nn::internal
