// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every layer, cell, neuron and synapse, and what a model is written with.
#include "braintrace/nn/activation.h"
#include "braintrace/nn/activation_layers.h"
#include "braintrace/nn/batch_norm.h"
#include "braintrace/nn/cell_options.h"
#include "braintrace/nn/cfn.h"
#include "braintrace/nn/coefficient.h"
#include "braintrace/nn/connections.h"
#include "braintrace/nn/conv.h"
#include "braintrace/nn/dropout.h"
#include "braintrace/nn/embedding.h"
#include "braintrace/nn/exp_euler.h"
#include "braintrace/nn/exp_if.h"
#include "braintrace/nn/flatten.h"
#include "braintrace/nn/gif.h"
#include "braintrace/nn/grouped_linear.h"
#include "braintrace/nn/gru.h"
#include "braintrace/nn/hh.h"
#include "braintrace/nn/initializers.h"
#include "braintrace/nn/izhikevich.h"
#include "braintrace/nn/lif.h"
#include "braintrace/nn/linear.h"
#include "braintrace/nn/lora.h"
#include "braintrace/nn/lru.h"
#include "braintrace/nn/lstm.h"
#include "braintrace/nn/mgu.h"
#include "braintrace/nn/mini_gru.h"
#include "braintrace/nn/mini_lstm.h"
#include "braintrace/nn/minimal_rnn.h"
#include "braintrace/nn/neuron.h"
#include "braintrace/nn/norm.h"
#include "braintrace/nn/pooling.h"
#include "braintrace/nn/projection.h"
#include "braintrace/nn/qua_if.h"
#include "braintrace/nn/readout.h"
#include "braintrace/nn/scaled_linear.h"
#include "braintrace/nn/sequential.h"
#include "braintrace/nn/signed_linear.h"
#include "braintrace/nn/sparse_linear.h"
#include "braintrace/nn/surrogate.h"
#include "braintrace/nn/synapse.h"
#include "braintrace/nn/synapse_output.h"
#include "braintrace/nn/synaptic_lif.h"
#include "braintrace/nn/urlstm.h"
#include "braintrace/nn/vanilla_rnn.h"
#include "braintrace/ops/ops.h"

namespace braintrace::nn {

using braintrace::HiddenGroupState;
using braintrace::HiddenState;
using braintrace::HiddenTreeState;
using braintrace::Module;
using braintrace::ParamState;
using braintrace::RngState;
using braintrace::ShortTermState;

}  // namespace braintrace::nn
