"""Ray: a program that gets one result from another process and waits until its input ends; bench/runtime.py times it from outside.

ray_start.py
"""

import os
import sys

import ray

ray.init(include_dashboard=False, log_to_driver=False)


@ray.remote
def process():
    return os.getpid()


assert ray.get(process.remote()) != os.getpid()
print("first result", flush=True)
sys.stdin.read()
ray.shutdown()
