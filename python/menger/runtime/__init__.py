"""Tasks, actors and objects with Ray's names: `import menger.runtime as ray`.

    @ray.remote
    def square(x):
        return x * x

    ray.init()
    print(ray.get([square.remote(i) for i in range(4)]))

Which of Ray's names there are, and where they differ: docs/runtime.md.
"""

import importlib

from menger.runtime import actor, exceptions, runtime_env, util
from menger.runtime.actor import ActorHandle, find_actor as get_actor, method
from menger.runtime.calls import cancel, get, kill, put, wait
from menger.runtime.cluster import available_resources, cluster_resources, nodes, timeline
from menger.runtime.driver import init, is_initialized, shutdown
from menger.runtime.generators import DynamicObjectRefGenerator, ObjectRefGenerator
from menger.runtime.remoting import remote
from menger.runtime.runtime_context import get_gpu_ids, get_runtime_context
from menger.runtime.session import ObjectRef

__version__ = "2.58.1"  # Of Ray, whose names these are: programs ask for it before they use what is new.

ObjectID = ObjectRef  # What it was called once.

_BY_THEMSELVES = ("cloudpickle", "remote_function", "types")  # Imported when somebody wants them: cloudpickle takes 20 ms.


def __getattr__(name):
    if name in _BY_THEMSELVES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "LoggingConfig":  # Likewise.
        return importlib.import_module("menger.runtime.logging_config").LoggingConfig
    raise AttributeError(f"menger.runtime has no '{name}'")


__all__ = [
    "ActorHandle",
    "DynamicObjectRefGenerator",
    "ObjectID",
    "ObjectRef",
    "ObjectRefGenerator",
    "actor",
    "available_resources",
    "cancel",
    "cluster_resources",
    "exceptions",
    "get",
    "get_actor",
    "get_gpu_ids",
    "get_runtime_context",
    "init",
    "is_initialized",
    "kill",
    "method",
    "nodes",
    "put",
    "remote",
    "runtime_env",
    "shutdown",
    "timeline",
    "util",
    "wait",
]
