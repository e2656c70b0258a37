// SPDX-License-Identifier: Apache-2.0
// Recurrent cells.
#include "layers.h"

#include "braintrace/nn/cfn.h"
#include "braintrace/nn/gru.h"
#include "braintrace/nn/lru.h"
#include "braintrace/nn/lstm.h"
#include "braintrace/nn/mgu.h"
#include "braintrace/nn/mini_gru.h"
#include "braintrace/nn/mini_lstm.h"
#include "braintrace/nn/minimal_rnn.h"
#include "braintrace/nn/urlstm.h"
#include "braintrace/nn/vanilla_rnn.h"

namespace braintrace::python {
namespace {

using namespace nn;
using Made = std::shared_ptr<Module>;

// Cells with weight, bias and state initialisers, and (where it has one) an activation.
template <class Cell, class Options>
Made make_cell(Reader& r) {
  const std::int64_t in = r.integer("in_size");
  const std::int64_t out = r.integer("out_size");
  Options o;
  r.take("state_init", o.state_init);
  r.take("w_init", o.w_init);
  if constexpr (requires { o.b_init; }) r.take_or_none("b_init", o.b_init);
  if constexpr (requires { o.activation; }) r.take("activation", o.activation);
  if constexpr (requires { o.phi; }) r.take("phi", o.phi);
  r.done();
  return r.own<Cell>(in, out, o);
}

Made make_lru(Reader& r) {
  const std::int64_t in = r.integer("d_model");
  const std::int64_t out = r.integer("d_hidden");
  LRUCellOptions o;
  r.take("r_min", o.r_min);
  r.take("r_max", o.r_max);
  r.take("max_phase", o.max_phase);
  r.done();
  return r.own<LRUCell>(in, out, o);
}

}  // namespace

std::span<const LayerSpec> recurrent_layers() {
  static const LayerSpec table[] = {
      {"VanillaRNNCell", "Module", make_cell<VanillaRNNCell, VanillaRNNCellOptions>,
       typeid(VanillaRNNCell), "h' = act(W [x, h] + b).", "VanillaRNNCell(2, 3)", "2",
       "(3,)"},
      {"GRUCell", "Module", make_cell<GRUCell, GatedCellOptions>, typeid(GRUCell),
       "The gated recurrent unit.", "GRUCell(2, 3)", "2", "(3,)"},
      {"CFNCell", "Module", make_cell<CFNCell, GatedCellOptions>, typeid(CFNCell),
       "The chaos-free network cell.", "CFNCell(2, 3)", "2", "(3,)"},
      {"MGUCell", "Module", make_cell<MGUCell, GatedCellOptions>, typeid(MGUCell),
       "The minimal gated unit.", "MGUCell(2, 3)", "2", "(3,)"},
      {"LSTMCell", "Module", make_cell<LSTMCell, LSTMCellOptions>, typeid(LSTMCell),
       "The long short-term memory cell.", "LSTMCell(2, 3)", "2", "(3,)"},
      {"URLSTMCell", "Module", make_cell<URLSTMCell, URLSTMCellOptions>,
       typeid(URLSTMCell), "The LSTM cell with uniform refine gates.", "URLSTMCell(2, 3)",
       "2", "(3,)"},
      {"MinimalRNNCell", "Module", make_cell<MinimalRNNCell, MinimalRNNCellOptions>,
       typeid(MinimalRNNCell), "The minimal recurrent network cell.",
       "MinimalRNNCell(2, 3)", "2", "(3,)"},
      {"MiniGRU", "Module", make_cell<MiniGRU, MinimalCellOptions>, typeid(MiniGRU),
       "The GRU without reset gate and activation.", "MiniGRU(2, 3)", "2", "(3,)"},
      {"MiniLSTM", "Module", make_cell<MiniLSTM, MinimalCellOptions>, typeid(MiniLSTM),
       "The LSTM with one state and no activation.", "MiniLSTM(2, 3)", "2", "(3,)"},
      {"LRUCell", "Module", make_lru, typeid(LRUCell),
       "The linear recurrent unit: a complex diagonal recurrence.", "LRUCell(2, 3)", "2",
       "(2,)"},
  };
  return table;
}

}  // namespace braintrace::python
