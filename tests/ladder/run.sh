#!/usr/bin/env bash
# The longer tiers of the learning ladder: trains each recipe from several seeds, evaluates the final policy greedily, and prints
# a Markdown table. Exits with status 1 if a rung is missed. Run it as: make ladder [ARGS="--only acrobot"]
set -euo pipefail
cd "$(dirname "$0")/../.."
exec .venv/bin/python tests/ladder/ladder.py "$@"
