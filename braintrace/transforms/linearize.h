// SPDX-License-Identifier: Apache-2.0
#pragma once
// The derivative of a program as a program of its own: linearize() gives the primal
// program with residuals, and the linear program from tangents to tangents.
#include "braintrace/ops/calculus.h"
