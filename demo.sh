#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the demo: three models, the graphs the compiler finds in them, pictures of
# these in build/demo, and a checked gradient.
set -euo pipefail
cd "$(dirname "$0")"

tools/setup.sh
cmake --preset release >/dev/null
cmake --build --preset release --target demo braintrace_cli
echo
exec build/release/bin/demo "$@"
