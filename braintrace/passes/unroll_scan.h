// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes loops of known, small length out as straight-line code.
//   Needs: a verified graph.
//   Keeps: inputs, outputs, values, derivatives.
//   Skips: loops longer than max_length, of length 0, or of unknown length.
#include "braintrace/ir/op_def.h"

namespace braintrace {

Graph unroll_scan(const Graph& g, const UnrollOptions& options = {});

}  // namespace braintrace
