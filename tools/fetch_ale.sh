#!/usr/bin/env bash
# fetch_ale.sh: puts the Arcade Learning Environment into build/ale: include/, lib/libale.a, roms/ and its licence.
#
# It is GPL-2.0-only, so its source is fetched (hash-checked) and never part of this tree, and only menger-atari-host links
# it. Does nothing when this version is there already. Needs zlib's headers, CMake, Ninja and Python's pip or venv module.
# Environment: MENGER_VENV is another virtual environment, MENGER_SYSTEM_PYTHON the interpreter where there is none, JOBS the
# compilers at once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly venv=${MENGER_VENV:-.venv}
readonly target=build/ale work=build/ale.part
readonly advice="Is the network up, is there room (500 MB; df -h .)? Then run the same command again."

# Everything that the result depends on.
stamp=$(cat tools/requirements_ale.txt tools/requirements_ale_fetch.txt tools/ale_speed.sed "${BASH_SOURCE[0]}" | sha256sum | cut -d' ' -f1)
[[ -f $target/stamp && $(<"$target/stamp") == "$stamp" ]] && exit 0

quiet() {  # quiet LOG COMMAND...: shows the end of the output only if the command fails.
  local log=$1
  shift
  "$@" >"$log" 2>&1 || { tail -n 30 "$log" >&2 && return 1; }
}

# The source package only: pip asks its build backend for the version, so that is installed for the moment (and not what the
# package would need besides to build its Python half).
fetch() {
  local python=$PWD/$venv/bin/python
  if [[ ! -x $python ]]; then  # Builds without torch need none.
    quiet "$work/fetch.log" "${MENGER_SYSTEM_PYTHON:-python3}" -m venv "$work/venv" || return 1
    python=$PWD/$work/venv/bin/python
  fi
  local pip=("$python" -m pip --disable-pip-version-check --quiet --retries 3 --timeout 60)
  quiet "$work/fetch.log" "${pip[@]}" install --no-deps --target "$work/python" -r tools/requirements_ale_fetch.txt &&
    PYTHONPATH=$PWD/$work/python quiet "$work/fetch.log" "${pip[@]}" download --no-deps --no-binary ale-py \
      --no-build-isolation --require-hashes -d "$work" -r tools/requirements_ale.txt &&
    mkdir "$work/source" && tar -xzf "$work"/ale_py-*.tar.gz -C "$work/source" --strip-components=1 &&
    sed -i -f tools/ale_speed.sed "$work"/source/src/ale/emucore/{M6502Low,TIA}.cxx &&
    (($(grep -c "const Kept kept" "$work"/source/src/ale/emucore/{M6502Low,TIA}.cxx -h | paste -sd+) == 2))
}

# One pass over the whole program, with room for GCC to inline the read of the bus into the processor's loop: 5% faster.
# Its result is an ordinary object file, so whoever links it needs no such flags.
build() {
  local jobs=${JOBS:-$(nproc)}
  local inlining="--param=large-function-growth=20000 --param=large-function-insns=100000 --param=inline-unit-growth=1000"
  inlining+=" --param=max-inline-insns-auto=300 --param=max-inline-insns-single=2000"
  local flags="-march=x86-64-v3 $inlining"
  quiet "$work/build.log" cmake -G Ninja -S "$work/source" -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_INSTALL_PREFIX="$PWD/$work/installed" -DCMAKE_INSTALL_LIBDIR=lib \
    -DBUILD_CPP_LIB=ON -DBUILD_PYTHON_LIB=OFF -DBUILD_VECTOR_LIB=OFF -DSDL_SUPPORT=OFF -DCMAKE_TOOLCHAIN_FILE= &&
    quiet "$work/build.log" ninja -C "$work/build" -j "$jobs" install &&
    quiet "$work/build.log" g++ -O3 -std=c++17 $flags -flto="$jobs" -flinker-output=nolto-rel -r -nostdlib \
      -Wl,--whole-archive "$work/installed/lib/libale.a" -Wl,--no-whole-archive -o "$work/ale.o"
}

install() {
  mkdir -p "$work/result/lib" "$work/result/roms"
  ar crs "$work/result/lib/libale.a" "$work/ale.o"
  cp -r "$work/installed/include" "$work/result/include"
  cp "$work"/source/src/ale/python/roms/*.bin "$work/result/roms/"
  cp "$work/source/LICENSE.md" "$work/result/"
  echo "$stamp" >"$work/result/stamp"
  rm -rf "$target"
  mv "$work/result" "$target"
  rm -rf "$work"
}

case "${1:-}" in
  "")
    rm -rf "$work"
    mkdir -p "$work"
    tools/step.sh "Fetching the Arcade Learning Environment's source package" "10 s; 12 MB to fetch" "$advice" "$0" fetch
    tools/step.sh "Building the Arcade Learning Environment" "2 minutes" \
      "Are zlib1g-dev, cmake and ninja-build installed (make setup)? The error is above." "$0" build
    install
    ;;
  fetch | build) "$1" ;;
  *)
    echo "usage: tools/fetch_ale.sh" >&2
    exit 2
    ;;
esac
