// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a task is learned with when nothing is said: a model, a rule and a length with
// which `braintrace train --task X` ends clearly better than any constant.
#include "run_request.h"

namespace braintrace::cli {

// Fills in what the caller of `app` did not give. The model with its size, learning rate
// and rule go together: with a --model of one's own only the length is the task's.
void suit_task(RunRequest& r, const CLI::App& app);

}  // namespace braintrace::cli
