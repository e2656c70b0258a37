#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the package with pip into a fresh environment and imports it. Needs a network.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
/usr/bin/python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet .
cd "$work"
"$work/venv/bin/python" -c '
import braintrace_cpp as bt
learner = bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, bt.zeros(3))
print("braintrace_cpp", bt.__version__, learner(bt.ones(3)).shape)'
