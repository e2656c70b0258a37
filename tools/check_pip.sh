#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the package with pip into a fresh environment, learns a step with it and makes a
# mistake. Needs a network.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
/usr/bin/python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet .
cd "$work"
"$work/venv/bin/python" -c '
import pickle
import braintrace_cpp as bt
learner = bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, bt.zeros(3))
loss = learner.trace_loss(lambda x: bt.sum(learner(x) ** 2), bt.ones(3))
value, grads = learner.step_grad(bt.ones(3), loss=loss)
assert value > 0 and grads["Wh/weight/bias"].shape == (4,)
assert pickle.loads(pickle.dumps(bt.Adam(lr=0.5))).learning_rate == 0.5
try:
    bt.zeros("a")
    raise SystemExit("bt.zeros took a text")
except bt.UserTypeError as error:
    assert str(error).startswith("zeros: takes (shape: "), error
print("braintrace_cpp", bt.__version__, "with numpy", bt.ones(1).numpy().__class__.__module__, "works")'
