#!/usr/bin/env bash
# needs_gymnasium.sh RECIPE: succeeds if the recipe (a file, or a name of experiments/) names an environment that Python makes
# in the project's virtual environment: "module:Name", or an id that is none of the program's own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# An interpreter that the user names is the user's to fill. An activated environment is used only if it has gymnasium.
[[ -z ${MENGER_PYTHON:-} ]] || exit 1

name=""
for file in "$1" "experiments/$1.toml"; do
  [[ -f $file ]] && name=$(sed -nE "s/^environment *= *[\"']([^\"']*)[\"'].*/\1/p" "$file" | head -n 1) && break
done
case "$name" in
  "" | ALE/*) exit 1 ;;
  *:*) exit 0 ;;
esac
! "${MENGER_PROGRAM:-build/release/menger}" list environments | grep -E '^ +' | grep -v ' Python environments: ' |
  grep -qE "^ +$name "
