#!/usr/bin/env bash
# build.sh FOLDER ABOUT_HOW_LONG TARGET [OPTIONAL_TARGET...]: builds these targets in a configured build folder; an optional
# one that does not exist there (menger_torch without torch) is left out, so that callers need not know.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=$1 expected=$2
shift 2

# Each compiler may take 1.7 GB (files that include torch): no more of them than memory holds.
memory_gib=$(awk '/^MemTotal:/ { print int($2 / 1048576) }' /proc/meminfo)
jobs=$(nproc)
((jobs * 2 > memory_gib)) && jobs=$((memory_gib / 2 > 0 ? memory_gib / 2 : 1))

known=$(ninja -C "$folder" -t targets all)
targets=("$1")
for target in "${@:2}"; do
  if grep -qE "^$target: " <<<"$known"; then targets+=("$target"); fi
done
tools/step.sh "Building ${targets[*]} in $folder" "$expected" \
  "The first error above is the one to look at. Killed compilers mean too little memory: JOBS=1. Full disk: df -h ." \
  ninja -C "$folder" -j "${JOBS:-$jobs}" "${targets[@]}"
