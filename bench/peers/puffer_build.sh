#!/usr/bin/env bash
# puffer_build.sh PYTHON  builds PufferLib 3.0.0 with its CartPole alone into PYTHON's environment. setup.sh calls it.
#
# A plain pip install fails: setup.py downloads web builds of raylib and Box2D that no CPU run needs, and asks for CUDA as
# soon as an nvcc is on the path. So: let pip fetch the source (it fails at setup.py and is told to keep what it unpacked),
# take those out, build. PYTHON's environment already holds what puffer_requirements.txt lists.
set -euo pipefail

readonly python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
readonly folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

TMPDIR=$folder timeout 120 "$python" -m pip download --quiet --no-clean --no-deps --no-binary :all: --no-build-isolation \
  --dest "$folder" pufferlib==3.0.0 >"$folder/download.log" 2>&1 || true
shopt -s nullglob
sources=("$folder"/pip-*/pufferlib*/setup.py)
if ((${#sources[@]} == 0)); then
  tail -5 "$folder/download.log" >&2
  echo "*** pip left no source of pufferlib 3.0.0" >&2
  exit 1
fi
cd "$(dirname "${sources[0]}")"
sed -i \
  -e 's/^\( *\)download_\(raylib\|box2d\)(\(.*\))$/\1pass/' \
  -e "s/pufferlib\/ocean\/\*\*\/binding.c/pufferlib\/ocean\/cartpole\/binding.c/" \
  -e 's/if shutil.which("nvcc"):/if False:/' setup.py
MAX_JOBS=2 "$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation .
