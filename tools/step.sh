#!/usr/bin/env bash
# step.sh WHAT ABOUT_HOW_LONG ADVICE COMMAND...: says what it does, runs it, says how long it took. If the command fails, it
# says so, says what to do, and fails with the command's exit status.
set -uo pipefail

what=$1 expected=$2 advice=$3
shift 3

echo "==> $what (about $expected)"
started=$SECONDS
"$@"
status=$?
took=$((SECONDS - started))
if ((status == 0)); then
  echo "    done: $what took $took s"
else
  {
    echo "*** failed after $took s (exit status $status): $what"
    echo "    What to do: $advice"
  } >&2
fi
exit "$status"
