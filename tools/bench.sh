#!/usr/bin/env bash
# bench.sh [NAME]: builds and runs one benchmark, or all of them one after the other, in a configured build/release. A benchmark
# NAME is the script bench/NAME.sh or bench/NAME.py, or without one the program that bench/NAME.cc makes; the program `menger`
# is built for it too.
set -euo pipefail
shopt -s nullglob
cd "$(dirname "${BASH_SOURCE[0]}")/.."

names() {  # Scripts that are not executable are parts of others.
  local file
  for file in bench/*.sh bench/*.py bench/*.cc; do
    [[ $file == *.cc || -x $file ]] || continue
    file=${file#bench/}
    echo "${file%.*}"
  done | sort -u
}

run() {
  local name=$1 script
  local advice="See the head of bench/$name.* for what it needs."
  if ! names | grep -qxF "$name"; then
    echo "*** no benchmark '$name'; there are: $(names | paste -sd' ')" >&2
    exit 1
  fi
  tools/build.sh build/release "4 minutes the first time" menger menger_torch "bench_$name"
  for script in "bench/$name.sh" "bench/$name.py" "build/release/bench/bench_$name"; do
    if [[ -x $script ]]; then
      tools/step.sh "Benchmark $name" "some minutes" "$advice" "./$script"
      return
    fi
  done
  echo "*** bench/$name.cc made no program build/release/bench/bench_$name: is it named in bench/CMakeLists.txt?" >&2
  exit 1
}

if (($#)); then
  run "$1"
else
  run all  # bench/all.sh runs the others, each within a limit.
fi
