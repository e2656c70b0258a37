// SPDX-License-Identifier: Apache-2.0
#pragma once
// Spiking Heidelberg Digits and Spiking Speech Commands (HDF5). An optional component:
// without the HDF5 library, reading is a UserError (not_supported).
#include <cstdint>
#include <string>
#include <vector>

#include "braintrace/array/array.h"

namespace braintrace {

struct SpikeTrain {
  std::vector<double> times;        // s
  std::vector<std::int32_t> units;  // 0 .. 699
  std::int32_t label = 0;
};

bool has_hdf5();
// Datasets spikes/times, spikes/units and labels. UserError when one is missing, lengths
// differ, or a unit is negative. At most `limit` samples from `first`.
std::vector<SpikeTrain> read_spike_trains(const std::string& path, std::int64_t first = 0,
                                          std::int64_t limit = -1);

struct BinOptions {
  std::int64_t steps = 100, units = 700;
  double step = 0.01;  // s
};
// Spikes per step and unit: f32 [steps, units]. Later spikes are left out.
Array bin_spikes(const SpikeTrain& train, const BinOptions& options = {});

}  // namespace braintrace
