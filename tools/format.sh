#!/usr/bin/env bash
# format.sh [--check]: formats every C++ file of the project in place, or only says which are not formatted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=(-i)
[[ ${1:-} == --check ]] && mode=(--dry-run --Werror)
folders=()
for folder in src tests bench; do [[ -d $folder ]] && folders+=("$folder"); done
find "${folders[@]}" \( -name '*.h' -o -name '*.cc' \) -print0 | xargs -0 -r -n 20 -P "$(nproc)" clang-format "${mode[@]}"
