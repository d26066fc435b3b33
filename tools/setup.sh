#!/usr/bin/env bash
# setup.sh packages GROUP...  installs the missing Debian packages of these groups of tools/packages.txt
# setup.sh python build|test|mujoco|environments|plot|atari_peers  makes .venv with the pinned wheels that a build needs, or
# that besides
#
# Prints nothing and takes a few hundredths of a second when nothing is missing.
# Environment: TORCH=OFF installs no torch, TORCH=CUDA torch with all its CUDA packages (for --device cuda);
# SKIP_PACKAGES=1 leaves the system's packages alone (another distribution, a prepared image);
# MENGER_PACKAGES is another package list, MENGER_VENV another folder for the virtual environment, MENGER_SYSTEM_PYTHON the
# interpreter to make it with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly package_list=${MENGER_PACKAGES:-tools/packages.txt}
readonly venv=${MENGER_VENV:-.venv}
readonly torch=${TORCH:-ON}

fail() {
  printf '*** %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '    %s\n' "$line" >&2; done
  exit 1
}

packages_of() {  # The packages of the given groups, one a line.
  local group
  for group in "$@"; do awk -v group="$group" '$1 == group { print $2 }' "$package_list"; done
}

missing_of() {  # Those of the given packages that are not installed, one a line.
  local installed package
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    grep -qxF "$package installed" <<<"$installed" || echo "$package"
  done
}

sudo_with_password() {  # Asks for it, where there is somebody to ask.
  [[ -z ${CI:-} ]] && { : </dev/tty; } 2>/dev/null || return 1
  echo "==> Debian packages are missing; sudo asks for your password to install them" >&2
  sudo -v
}

install_packages() {
  [[ ${SKIP_PACKAGES:-0} == 1 ]] && return
  local wanted missing
  mapfile -t wanted < <(packages_of "$@")
  ((${#wanted[@]})) || fail "no package group named '$*' in $package_list"
  command -v dpkg-query >/dev/null ||
    fail "this is not Debian or one of its kind, so packages cannot be installed for you" \
      "Install what matches: ${wanted[*]}" "then run the same command again with SKIP_PACKAGES=1."
  mapfile -t missing < <(missing_of "${wanted[@]}")
  ((${#missing[@]})) || return 0

  local become=()
  if ((EUID != 0)); then
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || sudo_with_password; }; then
      become=(sudo)
    else
      fail "missing Debian packages: ${missing[*]}" \
        "You are not root, and sudo is missing, refuses you, or has no terminal to ask for a password." \
        "Let an administrator run" \
        "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" \
        "and then run the same command again."
    fi
  fi
  local apt=("${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q
    -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
  local advice="Is the network up (apt-get update), is there room (df -h / /var), is another apt running?"
  advice+=" Then run the same command again; what was installed stays."
  tools/step.sh "Reading the package lists" "10 s" "$advice" "${apt[@]}" update >&2
  tools/step.sh "Installing ${#missing[@]} Debian packages: ${missing[*]}" "1 minute" "$advice" \
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2
}

find_python() {  # A system interpreter that the pinned wheels support.
  local python
  for python in "${MENGER_SYSTEM_PYTHON:-/usr/bin/python3}" python3 python3.13 python3.12 python3.11; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  fail "no Python 3.11 or newer with the venv module was found" \
    "On Debian 12: apt-get install python3 python3-venv. Elsewhere: name one in MENGER_SYSTEM_PYTHON."
}

install_wheels() {  # install_wheels FILE EXPECTED [PIP_OPTION...]
  local file=$1 expected=$2 stamp hash advice
  shift 2
  stamp="$venv/.installed_$(basename "$file" .txt)"
  hash="$(sha256sum <"$file") $*"
  [[ -x $venv/bin/python && -f $stamp && $(<"$stamp") == "$hash" ]] && return
  if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then  # None yet, or one whose making was cut short.
    local python
    python=$(find_python)
    tools/step.sh "Making a virtual environment in $venv" "5 s" \
      "Is there room (df -h .)? On Debian, is python3-venv installed?" \
      "$python" -m venv --clear "$venv"
  fi
  advice="Is the network up, is there room (3 GB; df -h . /tmp)? Then run the same command again."
  [[ $file == *_test* || $file == *_plot* ]] || advice+=" Or add TORCH=OFF: recipes with a plain MLP need no torch."
  tools/step.sh "Installing the pinned wheels of $file" "$expected" "$advice" \
    "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off --quiet \
    --retries 3 --timeout 60 "$@" -r "$file"
  echo "$hash" >"$stamp"
}

install_torch() {
  if [[ $torch == CUDA ]]; then
    install_wheels tools/requirements.txt "5 minutes; 3 GB to fetch"
    return
  fi
  install_wheels tools/requirements.txt "1 minute; up to 530 MB to fetch and 1.2 GB on disk" --no-deps
  local libraries=("$venv"/lib/python3*/site-packages/torch/lib/libtorch_cuda.so)
  if [[ -e ${libraries[0]} ]]; then
    install_wheels tools/requirements_cuda_runtime.txt "5 s; 13 MB to fetch" --no-deps
  fi
}

case "${1:-}" in
  packages)
    shift
    install_packages "$@"
    ;;
  python)
    case "$torch" in
      ON | CUDA) install_torch ;;
      OFF) ;;
      *) fail "TORCH is '$torch'; it must be ON, OFF or CUDA" ;;
    esac
    if [[ ${2:-} == mujoco ]]; then
      install_wheels tools/requirements_mujoco.txt "10 s; 20 MB to fetch" --no-deps
    fi
    if [[ ${2:-} == environments ]]; then install_wheels tools/requirements_environments.txt "10 s; 20 MB to fetch" --no-deps; fi
    # Not for `make atari`: what the emulator of the project is compared with, live.
    if [[ ${2:-} == atari_peers ]]; then install_wheels tools/requirements_atari.txt "15 s; 60 MB to fetch" --no-deps; fi
    if [[ ${2:-} == test ]]; then install_wheels tools/requirements_test.txt "20 s" --no-deps; fi
    if [[ ${2:-} == test || ${2:-} == plot ]]; then
      install_wheels tools/requirements_plot.txt "10 s; 30 MB to fetch" --no-deps
    fi
    ;;
  *)
    fail "usage: tools/setup.sh packages GROUP... | python build|test|mujoco|environments|plot|atari_peers"
    ;;
esac
