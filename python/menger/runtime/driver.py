"""Opening and closing the runtime that a program embeds."""

import atexit
import ctypes
import os
import sys

from menger.runtime import current, exceptions, library, session
from menger.runtime.output import Lines

PATH_VARIABLE = "MENGER_RUNTIME_PYTHON_PATH"
NAME_VARIABLE = "MENGER_RUNTIME_NAME"
ENVIRONMENT_OPTIONS = ("env_vars", "working_dir")


def init(
    *,
    num_cpus=None,
    num_gpus=None,
    resources=None,
    object_store_memory=None,
    runtime_env=None,
    log_to_driver=True,
    ignore_reinit_error=False,
    worker_memory=None,
    **ignored,
):
    """Starts the node and its workers inside of this process.

    num_cpus: as many workers at once (one a CPU). resources: further ones, {name: amount}. object_store_memory: bytes (30% of
    the memory). runtime_env: {"env_vars": {...}, "working_dir": folder} of the workers. worker_memory: bytes that one worker may
    use. Options that only a cluster of Ray's knows (address, include_dashboard, namespace, logging_level ...) have no effect.
    """
    unknown = set(ignored) - _WITHOUT_EFFECT
    if unknown:
        raise TypeError(f"init knows no option '{sorted(unknown)[0]}'")
    if current.opened() is not None:
        if ignore_reinit_error or current.opened().in_worker:
            return current.opened().resources
        raise RuntimeError("the runtime is open already; shutdown() closes it, init(ignore_reinit_error=True) goes on")
    if num_cpus is not None and num_cpus < 0:
        raise ValueError(f"num_cpus is {num_cpus}; it must not be negative")
    functions = library.load()
    variables, folder = _environment(runtime_env or {}, functions)
    name = variables[NAME_VARIABLE] = os.urandom(16).hex()
    cpus = num_cpus if num_cpus is not None else len(os.sched_getaffinity(0))
    lines = Lines(shown=log_to_driver)
    options = library.RuntimeOptions(
        workers=max(1, int(cpus)),
        workers_ahead=1,
        cpus=cpus,
        gpus=num_gpus or 0,
        resources=" ".join(f"{name}={float(amount)!r}" for name, amount in (resources or {}).items()).encode(),
        store_bytes_max=int(object_store_memory or 0),
        program=library.strings([sys.executable, "-m", "menger.runtime.worker"]),
        variables=library.strings([f"{name}={value}" for name, value in variables.items()]),
        folder=folder.encode(),
        memory_bytes_max=int(worker_memory or 0),
        on_line=lines.callback,
    )
    runtime = functions.open(ctypes.byref(options))
    if not runtime:
        raise functions.failure()
    opened = session.Session(functions, runtime, name)
    opened.lines = lines  # What C calls must live as long as it may.
    opened.resources = {"CPU": float(cpus), "GPU": float(num_gpus or 0), **(resources or {})}
    current.set_session(opened)
    return opened.resources


_WITHOUT_EFFECT = frozenset(
    {
        "address",
        "configure_logging",
        "dashboard_host",
        "dashboard_port",
        "include_dashboard",
        "job_config",
        "logging_format",
        "logging_level",
        "log_to_driver",
        "namespace",
    }
)


def _environment(runtime_env, functions):
    """The variables and the folder of workers."""
    for name in runtime_env:
        if name not in ENVIRONMENT_OPTIONS:
            raise ValueError(f"runtime_env has '{name}'; there are: {', '.join(ENVIRONMENT_OPTIONS)}")
    folder = runtime_env.get("working_dir") or ""
    if folder and not os.path.isdir(folder):
        raise exceptions.RuntimeEnvSetupError(f"working_dir is '{folder}', which is no folder")
    path = [os.path.abspath(each) for each in sys.path]
    if folder:
        path.insert(0, os.path.abspath(folder))
    package = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
    before = os.environ.get("PYTHONPATH")
    return {
        **{str(name): str(value) for name, value in runtime_env.get("env_vars", {}).items()},
        "PYTHONPATH": package + (os.pathsep + before if before else ""),
        PATH_VARIABLE: os.pathsep.join(path),
        library.LIBRARY_VARIABLE: os.path.abspath(functions.file),
    }, os.path.abspath(folder) if folder else ""


def shutdown(_exiting_interpreter=False):
    """Ends all workers; what was not fetched is lost."""
    opened = current.opened()
    if opened is None or opened.in_worker:
        return
    current.set_session(None)
    opened.close()


def is_initialized():
    return current.opened() is not None


current.set_opener(init)
atexit.register(shutdown)
