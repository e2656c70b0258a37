// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models that fit a task: a name and sizes become a text for build_model.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braintrace::nn {

struct ModelSizes {
  std::int64_t n_in = 1, n_rec = 32, n_out = 1;
  std::int64_t layers = 1;  // of gru, rnn, lstm, mgu
};

// gru, rnn, lstm, mgu: that many recurrent layers and a linear readout. lif, alif: a
// recurrent spiking net with a leaky readout and a threshold at which it fires from the
// start. Any kind of the registry that takes n_in, n_rec and n_out. UserError: several
// layers of a net that has one.
std::string sized_model(std::string_view name, const ModelSizes& sizes);
// The short names; kinds of the registry come on top.
std::vector<std::string> sized_model_names();

}  // namespace braintrace::nn
