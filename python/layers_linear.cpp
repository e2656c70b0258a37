// SPDX-License-Identifier: Apache-2.0
// Dense, sparse and low-rank layers, embeddings, plain connections and readouts.
#include "layers.h"
#include <fmt/format.h>

#include "braintrace/nn/connections.h"
#include "braintrace/nn/embedding.h"
#include "braintrace/nn/grouped_linear.h"
#include "braintrace/nn/linear.h"
#include "braintrace/nn/lora.h"
#include "braintrace/nn/readout.h"
#include "braintrace/nn/scaled_linear.h"
#include "braintrace/nn/signed_linear.h"
#include "braintrace/nn/sparse_linear.h"

namespace braintrace::python {
namespace {

using namespace nn;
using Made = std::shared_ptr<Module>;

struct Ends {
  std::int64_t in, out;
};
Ends read_ends(Reader& r) {
  const std::int64_t in = r.integer("in_size");
  return {in, r.integer("out_size")};
}

Made make_linear(Reader& r) {
  const Shape in = r.shape("in_size");
  const Shape out = r.shape("out_size");
  LinearOptions o;
  r.take("w_init", o.w_init);
  r.take_or_none("b_init", o.b_init);
  r.take("w_mask", o.w_mask);
  r.done();
  return r.own<Linear>(in, out, o);
}

Made make_signed(Reader& r) {
  const auto [in, out] = read_ends(r);
  SignedWLinearOptions o;
  r.take("w_init", o.w_init);
  r.take("w_sign", o.w_sign);
  r.done();
  return r.own<SignedWLinear>(in, out, o);
}

Made make_scaled(Reader& r) {
  const auto [in, out] = read_ends(r);
  ScaledWSLinearOptions o;
  r.take("w_init", o.w_init);
  r.take_or_none("b_init", o.b_init);
  r.take("w_mask", o.w_mask);
  r.take("ws_gain", o.ws_gain);
  r.take("eps", o.eps);
  r.done();
  return r.own<ScaledWSLinear>(in, out, o);
}

Made make_grouped(Reader& r) {
  const std::int64_t groups = r.integer("num_groups");
  const std::int64_t in = r.integer("in_features");
  const std::int64_t out = r.integer("out_features");
  GroupedLinearOptions o;
  r.take("w_init", o.w_init);
  r.take_or_none("b_init", o.b_init);
  r.done();
  return r.own<GroupedLinear>(groups, in, out, o);
}

Made make_sparse(Reader& r) {
  const py::object structure = r.object("structure");
  SparseLinearOptions o;
  r.take("w_init", o.w_init);
  r.take_or_none("b_init", o.b_init);
  r.done();
  if (!py::isinstance<SparseStructure>(structure))
    throw UserError(ErrorKind::type,
                    fmt::format("SparseLinear: structure must be one of bt.coo_structure "
                                "and its kind, got {}",
                                py::repr(structure).cast<std::string>()));
  return r.own<SparseLinear>(structure.cast<SparseStructure>(), o);
}

Made make_lora(Reader& r) {
  const std::int64_t in = r.integer("in_features");
  const std::int64_t rank = r.integer("lora_rank");
  const std::int64_t out = r.integer("out_features");
  LoRAOptions o;
  r.take("base_module", o.base_module);
  r.take("kernel_init", o.kernel_init);
  r.done();
  return r.own<LoRA>(in, rank, out, o);
}

Made make_embedding(Reader& r) {
  const std::int64_t n = r.integer("num_embeddings");
  const Shape size = r.shape("embedding_size");
  EmbeddingOptions o;
  r.take("embedding_init", o.embedding_init);
  r.take("padding_idx", o.padding_idx);
  r.take("max_norm", o.max_norm);
  r.take("norm_type", o.norm_type);
  r.take("scale_grad_by_freq", o.scale_grad_by_freq);
  r.take("freeze", o.freeze);
  r.done();
  return r.own<Embedding>(n, size, o);
}

Made make_all_to_all(Reader& r) {
  const auto [in, out] = read_ends(r);
  AllToAllOptions o;
  r.take("w_init", o.w_init);
  r.take_or_none("b_init", o.b_init);
  r.take("scalar_weight", o.scalar_weight);
  r.take("include_self", o.include_self);
  r.done();
  return r.own<AllToAll>(in, out, o);
}

Made make_one_to_one(Reader& r) {
  const std::int64_t size = r.integer("in_size");
  OneToOneOptions o;
  r.take("w_init", o.w_init);
  r.take_or_none("b_init", o.b_init);
  r.done();
  return r.own<OneToOne>(size, o);
}

Made make_rate_readout(Reader& r) {
  const auto [in, out] = read_ends(r);
  LeakyRateReadoutOptions o;
  r.take("tau", o.tau);
  r.take("w_init", o.w_init);
  r.take("r_init", o.r_init);
  r.take("dt", o.dt);
  r.done();
  return r.own<LeakyRateReadout>(in, out, o);
}

Made make_spike_readout(Reader& r) {
  const auto [in, out] = read_ends(r);
  LeakySpikeReadoutOptions o;
  r.take("tau", o.tau);
  r.take("V_th", o.V_th);
  r.take("w_init", o.w_init);
  r.take("V_init", o.V_init);
  r.take("spk_fun", o.spk_fun);
  r.take("spk_reset", o.spk_reset);
  r.take("dt", o.dt);
  r.done();
  return r.own<LeakySpikeReadout>(in, out, o);
}

}  // namespace

std::span<const LayerSpec> linear_layers() {
  static const LayerSpec table[] = {
      {"Linear", "Module", make_linear, typeid(Linear),
       "y = x W + b, trained online. Linear((5, 3), (5, 4)): the same weight at each of "
       "5.",
       "Linear(2, 3)", "2", "(3,)"},
      {"SignedWLinear", "Module", make_signed, typeid(SignedWLinear),
       "y = x (|W| * sign): weights keep their sign.", "SignedWLinear(2, 3)", "2",
       "(3,)"},
      {"ScaledWSLinear", "Module", make_scaled, typeid(ScaledWSLinear),
       "A dense layer with standardised weights.", "ScaledWSLinear(2, 3)", "2", "(3,)"},
      {"GroupedLinear", "Module", make_grouped, typeid(GroupedLinear),
       "Independent dense layers side by side.", "GroupedLinear(2, 3, 4)", "(2, 3)",
       "(2, 4)"},
      {"SparseLinear", "Module", make_sparse, typeid(SparseLinear),
       "A layer with fixed sparse connectivity (bt.coo_structure, ...).",
       "SparseLinear(bt.coo_structure(2, 3, [0, 1], [2, 0]))", "2", "(3,)"},
      {"LoRA", "Module", make_lora, typeid(LoRA),
       "y = x A B / r (+ base_module(x)): a low-rank layer.", "LoRA(2, 1, 3)", "2",
       "(3,)"},
      {"Embedding", "Module", make_embedding, typeid(Embedding),
       "Vectors looked up by integer.", "Embedding(5, 3)", "4", "(4, 3)"},
      {"AllToAll", "Module", make_all_to_all, typeid(AllToAll),
       "A plain dense connection: no trace.", "AllToAll(2, 3)", "2", "(3,)"},
      {"OneToOne", "Module", make_one_to_one, typeid(OneToOne),
       "y = x * w + b: no trace.", "OneToOne(2)", "2", "(2,)"},
      {"LeakyRateReadout", "Module", make_rate_readout, typeid(LeakyRateReadout),
       "r' = exp(-dt / tau) r + x W.", "LeakyRateReadout(2, 3)", "2", "(3,)"},
      {"LeakySpikeReadout", "Module", make_spike_readout, typeid(LeakySpikeReadout),
       "A leaky readout that spikes.", "LeakySpikeReadout(2, 3)", "2", "(3,)"},
  };
  return table;
}

}  // namespace braintrace::python
