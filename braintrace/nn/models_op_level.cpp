// SPDX-License-Identifier: Apache-2.0
// Small models written with ops: one equation each, the compiler's standard cases.
// `matmul` and its kin carry traces; `dot` is a plain product.
#include "braintrace/nn/conv.h"
#include "braintrace/nn/embedding.h"
#include "braintrace/nn/initializers.h"
#include "braintrace/nn/linear.h"
#include "braintrace/nn/model_spec_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn::internal {
namespace {

Initializer weights() { return init::lecun_normal(); }

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
    h.set(tanh(matmul(x, w.value()) + matmul(h.value(), w.value())));
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

// h' = sigmoid(a) h + x w
struct ElemwiseDecay : Module {
  ParamState a, w;
  HiddenState h;
  explicit ElemwiseDecay(ModelSpec& s)
      : a({s.size("n_rec")}, init::normal()),
        w({s.size("n_in"), s.size("n_rec")}, weights()),
        h({s.size("n_rec")}) {
    add("a", a);
    add("w", w);
    add("h", h);
  }
  Value update(Value x) override {
    const Value kept = sigmoid(element_wise(a.value())) * h.value();
    h.set(kept + matmul(x, w.value()));
    return h.value();
  }
};

// h' = tanh(.8 h + x + b^2)
struct ElemwiseFn : Module {
  ParamState b;
  HiddenState h;
  explicit ElemwiseFn(ModelSpec& s)
      : b({s.size("n_rec")}, init::normal()), h({s.size("n_rec")}) {
    add("b", b);
    add("h", h);
  }
  Value update(Value x) override {
    const Value b2 = element_wise(b.value(), [](const Value& v) { return square(v); });
    h.set(tanh(0.8 * h.value() + x + b2));
    return h.value();
  }
};

// einsum needs a batch letter; without a batch, one of length 1 comes and goes.
Value batched_einsum(std::string_view equation, const Value& x, const Value& w,
                     std::int64_t sample_rank) {
  if (x.rank() != sample_rank) return einsum(equation, x, w);
  return squeeze(einsum(equation, expand_dims(x, 0), w), 0);
}

// h' = leak h + tanh([x, h] w) with one block of w per head
struct EinsumRnn : Module {
  double leak;
  ParamState w;
  HiddenState h;
  explicit EinsumRnn(ModelSpec& s)
      : leak(s.number("leak", 0.5)),
        w({s.size("heads"), s.size("n_in") + s.size("n_rec"), s.size("n_rec")},
          weights()),
        h({s.size("heads"), s.size("n_rec")}) {
    s.ignore({"batched"});
    add("w", w);
    add("h", h);
  }
  Value update(Value x) override {
    const Value z = concat({x, h.value()});
    h.set(leak * h.value() + tanh(batched_einsum("bhd,hde->bhe", z, w.value(), 2)));
    return h.value();
  }
};

// h' = leak h + tanh(x w), the product written as an einsum
struct EinsumDense : Module {
  double leak;
  ParamState w;
  HiddenState h;
  explicit EinsumDense(ModelSpec& s)
      : leak(s.number("leak", 0.8)),
        w({s.size("n_in"), s.size("n_rec")}, weights()),
        h({s.size("n_rec")}) {
    s.ignore({"batched"});
    add("w", w);
    add("h", h);
  }
  Value update(Value x) override {
    h.set(leak * h.value() + tanh(batched_einsum("bi,io->bo", x, w.value(), 1)));
    return h.value();
  }
};

// h' = leak h + tanh([x, h] w + b), group by group
struct GroupedRnn : Module {
  double leak;
  ParamState w, b;
  HiddenState h;
  explicit GroupedRnn(ModelSpec& s)
      : leak(s.number("leak", 0.5)),
        w({s.size("groups"), s.size("n_in") + s.size("n_rec"), s.size("n_rec")},
          weights()),
        b({s.size("groups"), s.size("n_rec")}, init::zero()),
        h({s.size("groups"), s.size("n_rec")}) {
    add("w", w);
    add("b", b);
    add("h", h);
  }
  Value update(Value x) override {
    const Value z = concat({x, h.value()});
    h.set(leak * h.value() + tanh(grouped_matmul(z, w.value(), b.value())));
    return h.value();
  }
};

// h' = tanh(alpha [x, h] B A + b)
struct LoraRnn : Module {
  double alpha;
  ParamState B, A, b;
  HiddenState h;
  explicit LoraRnn(ModelSpec& s)
      : alpha(s.number("alpha", 0.5)),
        B({s.size("n_in") + s.size("n_rec"), s.size("rank", 2)}, weights()),
        A({s.size("rank", 2), s.size("n_rec")}, weights()),
        b({s.size("n_rec")}, init::zero()),
        h({s.size("n_rec")}) {
    add("B", B);
    add("A", A);
    add("b", b);
    add("h", h);
  }
  Value update(Value x) override {
    const Value z = concat({x, h.value()});
    h.set(tanh(lora_matmul(z, B.value(), A.value(), alpha, b.value())));
    return h.value();
  }
};

// h' = tanh(x win + h S(w) [- .1 a]);  second_state: a' = .95 a + h
struct SparseRing : Module {
  SparseStructure structure;
  ParamState win, w;
  HiddenState h;
  std::unique_ptr<HiddenState> a;
  explicit SparseRing(ModelSpec& s)
      : structure(dense_structure(s.constant("csr_dense_mask"))),
        win({s.size("n_in"), s.size("n_rec")}, weights()),
        w({static_cast<std::int64_t>(structure.rows.size())}, init::normal(0, 0.5)),
        h({s.size("n_rec")}) {
    s.ignore({"offsets"});
    const std::int64_t n = s.size("n_rec");
    BT_REQUIRE(structure.in == n && structure.out == n,
               s.where() + ": csr_dense_mask must be [n_rec, n_rec]");
    add("win", win);
    add("w", w);
    add("h", h);
    if (!s.flag("second_state", false)) return;
    a = std::make_unique<HiddenState>(Shape{n});
    add("a", *a);
  }
  Value update(Value x) override {
    const Value h0 = h.value();
    Value q = dot(x, win.value()) + sparse_matmul(h0, w.value(), structure);
    if (a) q = q - 0.1 * a->value();
    h.set(tanh(q));
    if (a) a->set(0.95 * a->value() + h0);
    return h.value();
  }
};

// h' = tanh(leak h + E[i]);  y = out(h')
struct EmbedLeaky : Module {
  double leak;
  Embedding emb;
  Linear out;
  HiddenState h;
  explicit EmbedLeaky(ModelSpec& s)
      : leak(s.number("leak", 0.8)),
        emb(s.size("n_vocab"), s.size("n_rec")),
        out(s.size("n_rec"), s.size("n_out")),
        h({s.size("n_rec")}) {
    add("emb", emb);
    add("out", out);
    add("h", h);
  }
  Value update(Value i) override {
    h.set(tanh(leak * h.value() + emb(i)));
    return out(h.value());
  }
};

Shape image(ModelSpec& s, const char* channels) {
  Shape out(static_cast<std::size_t>(s.size("dims")), s.size("size"));
  out.push_back(s.size(channels));
  return out;
}

std::unique_ptr<Module> same_conv(ModelSpec& s, const char* name, const char* c_in) {
  const bool bias = s.has_weight(std::string(name) + "/weight/bias", false);
  const ConvOptions options{.kernel_size = s.size("kernel_size", 3),
                            .b_init = bias ? init::zero() : Initializer{}};
  const std::int64_t c_h = s.size("c_h"), dims = s.size("dims");
  const Shape in = image(s, c_in);
  if (dims == 1) return std::make_unique<Conv1d>(in, c_h, options);
  if (dims == 2) return std::make_unique<Conv2d>(in, c_h, options);
  if (dims == 3) return std::make_unique<Conv3d>(in, c_h, options);
  throw UserError(s.where() + ": 'dims' must be 1, 2 or 3");
}

// h' = leak h + ci(x), or leak h + tanh(ci(x) + ch(h)) when recurrent
struct ConvLeaky : Module {
  double leak;
  std::unique_ptr<Module> ci, ch;
  HiddenState h;
  ConvLeaky(ModelSpec& s, bool recurrent)
      : leak(s.number("leak", recurrent ? 0.5 : 0.8)),
        ci(same_conv(s, "ci", "c_in")),
        h(image(s, "c_h")) {
    add("ci", *ci);
    add("h", h);
    if (!recurrent) return;
    ch = same_conv(s, "ch", "c_h");
    add("ch", *ch);
  }
  Value update(Value x) override {
    const Value q = (*ci)(x);
    h.set(leak * h.value() + (ch ? tanh(q + (*ch)(h.value())) : q));
    return h.value();
  }
};

template <class M, auto... Fixed>
std::unique_ptr<Module> make(ModelSpec& s) {
  return std::make_unique<M>(s, Fixed...);
}

}  // namespace

std::vector<ModelKind> op_level_kinds() {
  return {
      {"leaky_linear", make<LeakyLinear>},     {"tanh_rnn", make<TanhRnn, false>},
      {"plain_and_etp", make<TanhRnn, true>},  {"two_state", make<TwoState>},
      {"stacked_tanh", make<StackedTanh>},     {"tied", make<Tied>},
      {"two_island", make<TwoIsland>},         {"branching", make<Branching>},
      {"mixed_path", make<MixedPath>},         {"weight_fn_bias", make<WeightFnBias>},
      {"elemwise_decay", make<ElemwiseDecay>}, {"elemwise_fn", make<ElemwiseFn>},
      {"einsum_rnn", make<EinsumRnn>},         {"einsum_dense", make<EinsumDense>},
      {"grouped_rnn", make<GroupedRnn>},       {"lora_rnn", make<LoraRnn>},
      {"sparse_ring", make<SparseRing>},       {"embed_leaky", make<EmbedLeaky>},
      {"conv_rec", make<ConvLeaky, true>},     {"conv_in_leaky", make<ConvLeaky, false>}};
}

}  // namespace braintrace::nn::internal
