#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Seeded faults in the learning rules, one at a time in a copy of the tree: the tests named
# beside each must turn red. Slow; not part of test.sh.   tools/mutants.sh [PRESET]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
preset=${1:-release}
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git -C "$root" archive HEAD | tar x -C "$copy"
cd "$copy"
cmake --preset "$preset" >/dev/null
survived=0

# mutant NAME FILE FROM TO PROGRAM CASES: FROM is one line or part of it.
mutant() {
  cp "$2" saved
  FROM="$3" TO="$4" perl -0pi -e 's/\Q$ENV{FROM}\E/$ENV{TO}/' "$2"
  if cmp -s saved "$2"; then
    echo "stale    $1: nothing to replace in $2" && survived=$((survived + 1)) && return
  fi
  cmake --build "build/$preset" --target "$5" >build.log 2>&1 || { tail build.log; exit 2; }
  if "build/$preset/bin/$5" -tc="$6" >test.log 2>&1; then
    echo "survived $1" && survived=$((survived + 1))
  else
    echo "killed   $1"
  fi
  mv saved "$2"
}

algo=braintrace/algo
mutant "D transposed" $algo/relation_writer.cpp "squeeze(slice_axis(d, -2, a, 1), -2);" \
  "squeeze(slice_axis(d, -1, a, 1), -1);" test_testing "*wrong signal*"
mutant "df of the wrong relation" $algo/step_terms.cpp \
  "const RelationWriter& r = context_.relations()[relation];" \
  "const RelationWriter& r = context_.relations()[0];" test_testing "*cut by path*"
mutant "trace not carried" $algo/per_param_rule.cpp "Value next = carried(t, e, slot, eps[i]);" \
  "Value next = zeros_like(carried(t, e, slot, eps[i]));" test_testing "*bias*"
mutant "total adjoint for the direct one" $algo/rule_program.cpp \
  "s = (*direct_)(t.values(), s);" "s = GroupSignals(s);" test_testing "*wrong signal*"

echo "$survived survived"
[[ $survived == 0 ]]
