#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the build, the tests and the demo need (Debian 12). The one list of packages.
set -euo pipefail

packages=(
  build-essential cmake ninja-build ccache mold git
  libfmt-dev librandom123-dev libhwy-dev nlohmann-json3-dev libcli11-dev
  libxxhash-dev zlib1g-dev libhdf5-dev
  doctest-dev libbenchmark-dev
  python3 python3-dev python3-numpy pybind11-dev python3-pytest python3-markdown mypy
  graphviz libgraphviz-dev clang-format codespell
  chromium chromium-driver fonts-dejavu-core
)

missing=()
for p in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${Status}' "$p" 2>/dev/null || true)
  [[ $status == "install ok installed" ]] || missing+=("$p")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi

echo "setup: installing ${missing[*]}"
as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: not root and no sudo; please install: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -q --no-install-recommends "${missing[@]}"
echo "setup: done"
