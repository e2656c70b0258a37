#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the demo: the graphs of three models, two networks that learn online, a
# certificate of their gradients, a memory plan, and pages about all of it in build/demo.
# With an argument: the folder of the pages.
set -euo pipefail
cd "$(dirname "$0")"

tools/setup.sh
cmake --preset release >/dev/null
cmake --build --preset release --target demo braintrace_cli
folder=${1:-build/demo}
braintrace=build/release/bin/braintrace
say() { printf '\n\n%s\n%s\n\n' "$1" "$(printf '%*s' 90 '' | tr ' ' '=')"; }

build/release/bin/demo "$folder"

say "A GRU learns to integrate, online, with D_RTRL"
"$braintrace" train --checkpoint "$folder/gru.safetensors" --report "$folder/gru.html"

say "A spiking network learns to compare what it saw before a delay, with pp_prop"
"$braintrace" train --task delayed_match --checkpoint "$folder/lif.safetensors" \
  --report "$folder/lif.html"

say "How good were the GRU's gradients? Its certificate against back-propagation"
"$braintrace" verify --checkpoint "$folder/gru.safetensors"

say "What each rule would keep for the spiking network: its memory plan"
"$braintrace" plan --task delayed_match --model lif --hidden 64 --batch 32

say "Pages to open in a browser"
for page in gru lif; do echo "  file://$(realpath "$folder/$page.html")"; done
