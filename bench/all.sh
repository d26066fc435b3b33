#!/usr/bin/env bash
# all.sh [FILE [PART...]]  runs every benchmark whose figures stand in docs/performance.md, one after the other, or the parts
# named (classic, pixels, mujoco, continuous, hosting, runtime), and prints Markdown ready to paste; FILE (default
# runs/benchmarks.md) gets the same as it goes, FILE.jsonl every single result.
#
# bench/README.md says how long it takes. Each part has a limit of its own; a part that fails or is cut short says so and the
# others still run. Leave the machine alone meanwhile: the column "other" says how much else was running.
# docs/performance.md says how to put FILE into it. `make bench-all` builds first. The peers' environments are made if
# they are missing (not counted; 5 minutes, with PufferLib 10).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly build=${MENGER_BUILD:-build/release}
readonly report=${1:-runs/benchmarks.md}
readonly parts=" ${*:2} "
mkdir -p "$(dirname "$report")"
: >"$report"
export MENGER_BENCH_LOG="$report.jsonl"
: >"$MENGER_BENCH_LOG"
failed=0

say() { printf '%s\n' "$@" | tee -a "$report"; }

run() {  # run LIMIT_S TITLE FENCE COMMAND...: one part; FENCE is text for plain output, "" for Markdown.
  local limit=$1 title=$2 fence=$3 start=$SECONDS
  shift 3
  printf '[%s] %s (%s s at most)\n' "$(date +%H:%M:%S)" "$title" "$limit" >&2
  say "" "## $title" "" "\`${*/#$build\//build/release/}\`" ""
  [[ -n $fence ]] && say '```'"$fence"
  timeout --kill-after=5 "$limit" "$@" | tee -a "$report"
  local code=${PIPESTATUS[0]}
  [[ -n $fence ]] && say '```'
  if ((code != 0)); then
    failed=1
    say "" "This part ended with $code after $((SECONDS - start)) s (124: its limit), so it is incomplete."
  fi
}

wanted() { [[ $parts == "  " || $parts == *" $1 "* ]]; }

programs=()
wanted classic && programs+=(bench/bench_{environment_steps,ppo_breakdown,collection,mlp})
wanted pixels && programs+=(menger-atari-host bench/bench_{atari_steps,cnn})
wanted mujoco && programs+=(bench/bench_mujoco)
wanted hosting && programs+=(bench/bench_hosting)
wanted runtime && programs+=(bench/bench_runtime_{calls,tasks,objects,start,control,failures})
for program in menger "${programs[@]}"; do
  [[ -x $build/$program ]] || { echo "*** $build/$program is missing: make atari mujoco bench-all builds it" >&2; exit 1; }
done
bench/peers/setup.sh all >&2 || echo "*** some peers could not be set up; their rows will be missing" >&2
bench/peers/setup.sh puffer >&2 || echo "*** PufferLib could not be built; its row will be missing" >&2
if wanted continuous; then
  bench/peers/setup.sh sbx rllib >&2 || echo "*** SBX or RLlib could not be set up; its rows will be missing" >&2
fi

say "" "## Measured on $(date +%Y-%m-%d)" "" \
  "- Machine: $(nproc) CPUs, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)," \
  "  $(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo), $(. /etc/os-release && echo "$PRETTY_NAME")" \
  "- $("$build/menger" --version | head -1)" "- Load before the start: $(cut -d' ' -f1-3 /proc/loadavg)"

if wanted classic; then
  run 150 "a. Environment steps" "" bench/environments.py --seconds 1
  run 180 "b. Collection" text "$build/bench/bench_collection" --seconds 0.2
  run 120 "c. PPO: steps per second, CartPole" "" bench/ppo_against_peers.py --part speed --seeds 3 --budget 110
  run 560 "c. PPO: sample efficiency" "" bench/ppo_against_peers.py --part efficiency --seeds 20 --budget 500
  run 150 "c. PPO: steps per second, LunarLander" "" bench/ppo_against_peers.py --part lunar --seeds 3 --budget 110
  run 90 "c. PPO: wall clock" "" bench/ppo_against_peers.py --part wallclock --seeds 20 --budget 60
  run 120 "c. PPO: a light network" "" bench/ppo_against_peers.py --part puffer --seeds 5 --budget 60
  run 60 "d. Where the time of a PPO iteration goes" "" "$build/bench/bench_ppo_breakdown"
  run 60 "Kernels of small networks" text "$build/bench/bench_mlp" --benchmark_min_time=0.1
fi
if wanted pixels; then
  run 700 "Atari: collection without a network" "" bench/atari.py --rounds 2 --seconds 4
  run 300 "Convolutional networks" text "$build/bench/bench_cnn" 0.1
  run 600 "Atari: training end to end" "" bench/atari_training.py
fi
wanted mujoco && run 300 "MuJoCo: steps" "" bench/mujoco.py
wanted continuous && run 1200 "SAC and TD3: steps per second" "" bench/continuous.py --seconds 20
wanted hosting && run 300 "Python environments: the cost of hosting" "" bench/hosting.py
if wanted runtime; then
  run 1500 "The runtime beside Ray" "" bench/runtime.py
  run 600 "Whole programs beside Ray" "" bench/runtime_programs.py
  run 300 "The runtime: failures" "" bench/runtime_failures.py
fi
exit $failed
