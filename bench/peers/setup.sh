#!/usr/bin/env bash
# setup.sh PEER...  makes .peers/PEER, the virtual environment of a peer, from PEER_requirements.txt beside this file;
# does nothing where it is there already.
#
# PEER is gymnasium, envpool, ale, sb3, sbx, cleanrl, puffer, atari_training, sample_factory, rllib, replay_buffers, torchrl, reverb,
# ray, plots (no peer: what draws those of docs/), or all: gymnasium, envpool, ale, sb3 and cleanrl. puffer is built from patched
# source and may take 10 minutes. torch comes first and alone: a range such as
# "torch>=2.8" would replace it by whatever is newest.
# Environment: MENGER_SYSTEM_PYTHON is the interpreter to make them with (3.11 or 3.12; EnvPool 1.2.5 needs 3.11).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly python=${MENGER_SYSTEM_PYTHON:-python3}
readonly names="gymnasium envpool ale sb3 sbx cleanrl puffer atari_training sample_factory rllib replay_buffers torchrl reverb ray plots"

fail() {
  printf '*** %s\n' "$1" >&2
  exit 1
}

install() {  # install PEER ARGUMENT...: pip install into its environment.
  local peer=$1
  shift
  ".peers/$peer/bin/python" -m pip install --disable-pip-version-check --progress-bar off --quiet --retries 3 "$@"
}

setup() {
  local peer=$1 file="bench/peers/$1_requirements.txt" stamp=".peers/$1/.installed" hash torch
  [[ -f $file ]] || fail "there is no peer '$peer'; there are: $names"
  hash=$(sha256sum <"$file")
  [[ -f $stamp && $(<"$stamp") == "$hash" ]] && return
  echo "Setting up $peer in .peers/$peer (about a minute; puffer up to ten)"
  "$python" -m venv --clear ".peers/$peer" ||
    fail "no virtual environment could be made with $python; on Debian install python3-venv"
  torch=$(grep '^torch==' "$file" || true)
  if [[ -n $torch ]]; then install "$peer" "$torch"; fi
  install "$peer" -r "$file" || fail "pip could not install $file: see above; then run the same command again"
  if [[ -x bench/peers/${peer}_build.sh ]]; then "bench/peers/${peer}_build.sh" ".peers/$peer/bin/python"; fi
  echo "$hash" >"$stamp"
}

(($#)) || fail "usage: bench/peers/setup.sh PEER...; there are: $names, and all (see above)"
for peer in "$@"; do
  if [[ $peer == all ]]; then
    for each in gymnasium envpool ale sb3 cleanrl; do setup "$each"; done
  else
    setup "$peer"
  fi
done
