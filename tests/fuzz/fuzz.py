"""Lets libFuzzer look for inputs that crash a reader, from the seeds that the program knows.

    fuzz.py SECONDS PROGRAM...

What it finds stays in build/fuzz/NAME for the next time; so does an input that crashes, as crash-HASH beside it.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def fuzz(program, seconds):
    corpus = ROOT / "build" / "fuzz" / "corpus" / program.name
    corpus.mkdir(parents=True, exist_ok=True)
    command = [program, corpus, f"-max_total_time={seconds}", "-max_len=4096", "-timeout=20", "-rss_limit_mb=4096",
               "-print_final_stats=1", f"-artifact_prefix={corpus.parent}/{program.name}-"]  # fmt: skip
    environment = os.environ | {"MENGER_FUZZ_SEEDS": str(corpus)}
    process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = process.stdout.decode(errors="replace")
    if process.returncode != 0:
        raise SystemExit(f"{program.name}: {output[-6000:]}")
    executed = next((line.split()[-1] for line in output.splitlines() if "number_of_executed_units" in line), "?")
    print(f"{program.name}: {executed} inputs, {len(list(corpus.iterdir()))} of them kept", flush=True)


def main():
    for program in sys.argv[2:]:
        fuzz(pathlib.Path(program), int(sys.argv[1]))


if __name__ == "__main__":
    main()
