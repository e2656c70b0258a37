#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the release preset and runs every test. The last lines show the counts.
set -euo pipefail
cd "$(dirname "$0")"

tools/setup.sh

start=$SECONDS
echo "== configure and build (release)"
cmake --preset release
cmake --build --preset release
built=$SECONDS

echo "== test"
status=0
ctest --test-dir build/release --parallel 2 --output-on-failure --no-tests=error || status=$?
echo "== build took $((built - start)) s, tests took $((SECONDS - built)) s"
if [[ $status -eq 0 ]]; then echo "== all tests passed"; else echo "== TESTS FAILED"; fi
exit "$status"
