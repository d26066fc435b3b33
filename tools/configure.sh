#!/usr/bin/env bash
# configure.sh [tests] [benchmarks] [atari] [mujoco]: configures build/release with at least these, or does nothing if it has them already.
# What an earlier call turned on stays on, so `make train` after `make test` does not throw the tests away.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly cache=build/release/CMakeCache.txt
readonly torch=${TORCH:-ON}

cached() { [[ -f $cache ]] && grep -qE "^$1:[A-Z]+=$2\$" "$cache"; }

options=()
want() {  # want OPTION VALUE: adds the option unless the cache has it.
  cached "$1" "$2" || options+=("-D$1=$2")
}

[[ $torch == OFF ]] && want MENGER_TORCH OFF || want MENGER_TORCH ON
for what in tests benchmarks atari mujoco; do
  if [[ " $* " == *" $what "* ]]; then
    want "MENGER_${what^^}" ON
  elif [[ ! -f $cache ]]; then
    options+=("-DMENGER_${what^^}=OFF")
  fi
done

# All of it compiles in half the time in groups, but after a change more than that: who changes it sets MENGER_GROUPS=OFF, which
# also finds sources that lack an include.
[[ -f $cache ]] || options+=("-DMENGER_GROUPS=${MENGER_GROUPS:-ON}")

# build.ninja is written last, so a configuration that was cut short is done again.
if ((${#options[@]})) || [[ ! -f build/release/build.ninja ]]; then
  tools/step.sh "Configuring build/release" "5 s" \
    "The last lines above name what is missing; \`make setup\` installs it, and if a setting is stale, rm -r build/release." \
    cmake --preset release "${options[@]}"
fi
