// SPDX-License-Identifier: Apache-2.0
#pragma once
// The engines under the names of the reference: a preset with any config of its
// factorization.
#include "braintrace/algo/algorithm.h"

namespace braintrace {

using ParamDim = D_RTRL;        // one trace per weight entry
using IODim = pp_prop;          // two factors
using RandomProjection = UORO;  // a rank-one estimate
using HybridDim = Hybrid;       // per relation the smaller of the first two

}  // namespace braintrace
