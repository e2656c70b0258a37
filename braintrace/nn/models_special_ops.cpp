// SPDX-License-Identifier: Apache-2.0
// Small models written with the other trainable ops: element-wise, einsum, grouped,
// low-rank, sparse, embedding, convolution.
#include "braintrace/nn/conv.h"
#include "braintrace/nn/embedding.h"
#include "braintrace/nn/initializers.h"
#include "braintrace/nn/linear.h"
#include "braintrace/nn/model_spec_impl.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn::internal {
namespace {

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

// h' = .4 h + .6 tanh(x win + h S(w))
struct LeakySparseRing : Module {
  SparseStructure structure;
  ParamState win, w;
  HiddenState h;
  explicit LeakySparseRing(ModelSpec& s)
      : structure(dense_structure(s.constant("csr_dense_mask"))),
        win({s.size("n_in"), s.size("n_rec")}, weights()),
        w({static_cast<std::int64_t>(structure.rows.size())}, init::normal(0, 0.5)),
        h({s.size("n_rec")}) {
    const std::int64_t n = s.size("n_rec");
    BT_REQUIRE(structure.in == n && structure.out == n,
               s.where() + ": csr_dense_mask must be [n_rec, n_rec]");
    add("win", win);
    add("w", w);
    add("h", h);
  }
  Value update(Value x) override {
    const Value q = dot(x, win.value()) + sparse_matmul(h.value(), w.value(), structure);
    h.set(0.4 * h.value() + 0.6 * tanh(q));
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

}  // namespace

std::vector<ModelKind> special_op_kinds() {
  return {{"elemwise_decay", make<ElemwiseDecay>},
          {"elemwise_fn", make<ElemwiseFn>},
          {"einsum_rnn", make<EinsumRnn>},
          {"einsum_dense", make<EinsumDense>},
          {"grouped_rnn", make<GroupedRnn>},
          {"lora_rnn", make<LoraRnn>},
          {"sparse_ring", make<SparseRing>},
          {"leaky_sparse_ring", make<LeakySparseRing>},
          {"embed_leaky", make<EmbedLeaky>},
          {"conv_rec", make<ConvLeaky, true>},
          {"conv_in_leaky", make<ConvLeaky, false>}};
}

}  // namespace braintrace::nn::internal
