# The front door. `make train` and `make test` set up whatever is missing (system packages, .venv, configuration, build) and
# then do their job; `make` alone lists everything.

SHELL := bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help train test build atari mujoco setup ladder bench check format clean

RECIPE ?= cartpole_ppo
ARGS ?=
TORCH ?= ON
export TORCH

# A run that is interrupted ends as the program says (130 or 143, with how to resume), so nothing may be wrapped around it.
train: build  ## Train a policy: make train RECIPE=lunarlander_ppo ARGS="--seed 3"
	@if grep -qsE '^environment *= *"ALE/' $(RECIPE) experiments/$(RECIPE).toml; then $(MAKE) atari; fi
	@if grep -qsE '^environment *= *"(HalfCheetah|Hopper|Walker2d|Ant|Humanoid|InvertedPendulum)-v5"' \
	  $(RECIPE) experiments/$(RECIPE).toml; then $(MAKE) mujoco; fi
	@if tools/needs_gymnasium.sh $(RECIPE); then tools/setup.sh python environments; fi
	build/release/menger train $(RECIPE) $(ARGS)

build:  ## Build the program, build/release/menger, and the libraries beside it
	@tools/setup.sh packages build
	@tools/setup.sh python build
	@tools/configure.sh
	@tools/build.sh build/release "3 minutes the first time" menger menger_torch menger_runtime_library menger_policy menger_replay_library

atari: build  ## Fetch and build the Atari emulator (3 minutes; Atari recipes do it by themselves)
	@tools/setup.sh packages atari
	@tools/fetch_ale.sh
	@tools/configure.sh atari
	@tools/build.sh build/release "half a minute" menger-atari-host

mujoco: build  ## Fetch MuJoCo and build its environments (a minute; MuJoCo recipes do it by themselves)
	@tools/setup.sh python mujoco
	@tools/configure.sh mujoco
	@tools/build.sh build/release "half a minute" menger_mujoco

# Twice as many at a time as there are cores: most of those that take seconds wait for processes that they started.
test: build-tests  ## Build and run all tests
	@tools/step.sh "Running the tests" "5 minutes at most" \
	  "Read the first failure above; run one test again with: ctest --test-dir build/release -R NAME --output-on-failure" \
	  ctest --test-dir build/release -j $$((2 * $$(nproc))) --output-on-failure --no-tests=error --timeout 300

build-tests:
	@tools/setup.sh packages build test
	@tools/setup.sh python test
	@tools/configure.sh tests
	@tools/build.sh build/release "6 minutes the first time" all
.PHONY: build-tests

setup:  ## Install everything that building and testing need, and build nothing
	@tools/setup.sh packages build test
	@tools/setup.sh python test
	@echo "Everything is there: make train, make test."

ladder: atari mujoco  ## Train the longer learning tiers and print a table (three hours; ARGS="--only cartpole" for some)
	@tools/setup.sh python test
	@tests/ladder/run.sh $(ARGS)

bench: setup-benchmarks atari mujoco  ## Run every benchmark, peers included (bench/README.md: how long); one alone: make bench-NAME
	@tools/bench.sh

bench-all: atari mujoco
bench-atari bench-atari_steps bench-atari_training bench-dqn_training bench-time_shares: atari
bench-mujoco bench-continuous: mujoco

bench-%: setup-benchmarks
	@tools/bench.sh $*

setup-benchmarks:
	@tools/setup.sh packages build bench
	@tools/setup.sh python test
	@tools/configure.sh benchmarks
.PHONY: setup-benchmarks

check: build-tests  ## Check format, layering, headers and clang-tidy
	@tools/setup.sh packages check
	@tools/step.sh "Checking the format" "2 s" "Run: make format" tools/format.sh --check
	@tools/step.sh "Checking the layering" "1 s" "See docs/architecture.md for the order of folders." \
	  python3 tools/check_layering.py
	@tools/step.sh "Checking the tree" "1 s" "Each line above says what would be right." python3 tools/check_tree.py
	@tools/step.sh "Compiling headers alone" "6 minutes the first time" \
	  "Add the include that the header needs." python3 tools/check_headers.py
	@tools/step.sh "Running clang-tidy" "6 minutes the first time" "Fix what is named above, or say in .clang-tidy why not." \
	  python3 tools/tidy.py

format:  ## Format every C++ file in place
	@tools/setup.sh packages check
	@tools/format.sh

clean:  ## Remove build/ (.venv and runs/ stay)
	rm -rf build

help:  ## Show this list
	@echo "Menger: reinforcement learning in C++. Targets:"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile
	@echo "Settings: RECIPE=NAME (of experiments/), ARGS='options of menger train', JOBS=N compilers at once,"
	@echo "  TORCH=OFF (no libtorch: plain MLP recipes only) or CUDA, SKIP_PACKAGES=1 (leave system packages alone)."
