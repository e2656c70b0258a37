#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Seeded faults in the learning rules, one at a time in a copy of the tree: the tests named
# beside each must turn red. Slow; not part of test.sh.
#   tools/mutants.sh [PRESET]             builds a copy of HEAD from nothing
#   tools/mutants.sh --in-place [PRESET]  this tree is a copy, with or without a build
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
copied=1
if [[ ${1:-} == --in-place ]]; then copied=0 && shift; fi
preset=${1:-release}
if [[ $copied == 1 ]]; then
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' EXIT
  git -C "$root" archive HEAD | tar x -C "$copy"
  root=$copy
fi
cd "$root"
log=$(mktemp -d)
[[ -f build/$preset/CMakeCache.txt ]] || cmake --preset "$preset" >/dev/null
survived=0 stale=0

build() { cmake --build "build/$preset" --target "$1" >"$log/build" 2>&1; }

# mutant NAME FILE FROM TO PROGRAM CASES: FROM is one line or part of it.
mutant() {
  cp "$2" "$log/saved"
  FROM="$3" TO="$4" perl -0pi -e 's/\Q$ENV{FROM}\E/$ENV{TO}/' "$2"
  if cmp -s "$log/saved" "$2"; then
    echo "stale    $1: nothing to replace in $2" && stale=$((stale + 1)) && return
  fi
  if ! build "$5"; then
    tail "$log/build" && echo "stale    $1: does not compile" && stale=$((stale + 1))
  elif "build/$preset/bin/$5" -tc="$6" >"$log/test" 2>&1; then
    echo "survived $1" && survived=$((survived + 1))
  else
    echo "killed   $1: $(grep -c 'ERROR:' "$log/test") checks of $6"
  fi
  cp "$log/saved" "$2"
}

# Without a fault all of them pass: a test that is red anyway kills nothing.
cases="*wrong signal*,*cut by path*,*bias*,*old states*,*moves two groups*"
for program in test_testing test_train; do
  build $program || { tail "$log/build"; exit 2; }
  "build/$preset/bin/$program" -tc="$cases" >"$log/test" 2>&1 ||
    { echo "red without a fault" && tail -20 "$log/test" && exit 2; }
done

algo=braintrace/algo
mutant "D transposed" $algo/relation_writer.cpp "squeeze(slice_axis(d, -2, a, 1), -2);" \
  "squeeze(slice_axis(d, -1, a, 1), -1);" test_testing "*wrong signal*"
mutant "df of the wrong group" $algo/relation_writer.cpp "      tail_(tail)," \
  "      tail_(0 * tail)," test_train "*moves two groups*"
mutant "df of the wrong relation" $algo/step_terms.cpp \
  "const RelationWriter& r = context_.relations()[relation];" \
  "const RelationWriter& r = context_.relations()[0];" test_testing "*cut by path*"
mutant "trace not carried" $algo/per_param_rule.cpp "Value next = carried(t, e, slot, eps[i]);" \
  "Value next = zeros_like(carried(t, e, slot, eps[i]));" test_testing "*bias*"
mutant "total adjoint for the direct one" $algo/rule_program.cpp \
  "s = (*direct_)(t.values(), s);" "s = GroupSignals(s);" test_testing "*wrong signal*"
mutant "filtered trace not carried" $algo/per_param_rule.cpp \
  "stored(loaded(eps[num_slots_ + i], e) * kappa_ + loaded(out[i], e));" \
  "stored(loaded(out[i], e));" test_testing "*bias*"
mutant "credit lost at the entry of a window" $algo/window_credit.cpp \
  "if (!w.fresh) add_to(grads, part.entry(t, c.lambda, c.filtered, eps));" "" \
  test_testing "*bias*"
mutant "old states not credited" $algo/old_states.cpp "if (p.has_loss && from_old" \
  "if (!p.has_loss && from_old" test_testing "*old states*"

rm -rf "$log"
echo "$survived survived, $stale stale"
[[ $survived == 0 && $stale == 0 ]]
