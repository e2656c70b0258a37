// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values for a whole model, where a part of them would be a mistake.
#include "braintrace/model/module.h"

namespace braintrace {

// As load_state_dict, and UserError naming them when states of the model are missing.
void load_full_state_dict(Module& m, const StateDict& values);

}  // namespace braintrace
