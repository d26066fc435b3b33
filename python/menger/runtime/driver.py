"""Opening and closing the runtime that a program embeds."""

import atexit
import ctypes
import json
import os
import sys

from menger.runtime import accelerators, addresses, cluster, current, environments, library, members, options, session
from menger.runtime.output import Lines

PATH_VARIABLE = "MENGER_RUNTIME_PYTHON_PATH"
# What a worker's session begins with: its name, the namespace, the driver's process, and what members.of_worker reads.
SESSION_VARIABLES = ("MENGER_RUNTIME_NAME", "MENGER_RUNTIME_NAMESPACE", "MENGER_RUNTIME_DRIVER", "MENGER_RUNTIME_NODE")
_STORE_BYTES_MIN = 2**20  # With less there is no room for a few of the smallest values that go there.
_TITLE_ROOM = " " * 128  # An argument over which workers write what they do, for `ps`.


class Context(dict):
    """What init returns: the resources, for a `with` that shuts down at its end."""

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.disconnect()

    def disconnect(self):
        shutdown()

    @property
    def address_info(self):
        """Where this is; with the address of the cluster, if there is one that others can join."""
        opened = current.opened()
        if opened is None:
            return {}
        place, joined = opened.place, {}
        if place.address:
            joined = {"address": place.address, "gcs_address": place.address}
        return {"node_id": place.node, "node_ip_address": cluster.get_node_ip_address(), "namespace": opened.namespace, **joined}


@current.alone
def init(
    address=None,
    *,
    num_cpus=None,
    num_gpus=None,
    resources=None,
    object_store_memory=None,
    runtime_env=None,
    log_to_driver=True,
    ignore_reinit_error=False,
    namespace=None,
    object_spilling_directory=None,
    worker_memory=None,
    join_seconds=None,
    node_wait_seconds=None,
    logging_config=None,
    labels=None,
    _memory=None,
    **ignored,
):
    """Joins a cluster, or starts a node of its own, with its workers, inside of this process.

    address: of a cluster's head, "HOST:PORT"; its nodes do the calls, and have num_cpus, num_gpus, resources, labels and _memory, which
    are not to be given then. "auto": what MENGER_ADDRESS says, or RAY_ADDRESS; "local": this machine; None: MENGER_ADDRESS, or else this
    machine. By what the cluster knows its members, MENGER_CLUSTER_TOKEN or MENGER_CLUSTER_TOKEN_FILE, and MENGER_TLS_CERTIFICATE,
    MENGER_TLS_KEY and MENGER_TLS_AUTHORITIES say. Nodes need this interpreter and its packages under the same paths; the folder of
    the workers (working_dir, or else this one) is brought to them.

    num_cpus: as many workers at once (one a CPU). resources: further ones, {name: amount}. object_store_memory: bytes (30% of
    the memory). object_spilling_directory: where values go that do not fit. runtime_env: {"env_vars": {...}, "working_dir":
    folder, "py_modules": folders, "worker_process_setup_hook": function} of the workers. namespace: of the names of actors. worker_memory: bytes that one worker may
    use. join_seconds: that joining a cluster may take (30). node_wait_seconds: that calls wait for a node with what they need, where
    none has it (60). logging_config: a LoggingConfig. labels: of the node, {name: value}. _memory: bytes of which tasks and actors may ask for `memory`. Options that only Ray's clusters know (include_dashboard, logging_level ...) have no effect.
    """
    unknown = set(ignored) - _WITHOUT_EFFECT
    if unknown:
        raise TypeError(f"init knows no option '{sorted(unknown)[0]}'")
    if current.opened() is not None:
        if ignore_reinit_error or current.opened().in_worker:
            return Context(current.opened().resources)
        raise RuntimeError("the runtime is open already; shutdown() closes it, init(ignore_reinit_error=True) goes on")
    options.check({"num_cpus": num_cpus, "num_gpus": num_gpus, "resources": resources}, options.FUNCTION_OPTIONS)
    options.check({"namespace": namespace}, options.ACTOR_OPTIONS)
    if runtime_env is not None:
        options.check_environment("runtime_env", runtime_env, of_call=False)
    options.check_labels("labels", labels or {})
    for bytes_name, size in (("object_store_memory", object_store_memory), ("worker_memory", worker_memory), ("_memory", _memory)):
        if size is not None:
            options.check_number(bytes_name, size)
    for seconds_name, seconds in (("join_seconds", join_seconds), ("node_wait_seconds", node_wait_seconds)):
        if seconds is not None:
            options.check_seconds(seconds_name, seconds)
    if object_store_memory is not None and object_store_memory < _STORE_BYTES_MIN:
        raise ValueError(f"object_store_memory is {object_store_memory} bytes; it must be at least {_STORE_BYTES_MIN}, or be left out")
    if object_spilling_directory is not None and not isinstance(object_spilling_directory, (str, os.PathLike)):
        raise TypeError(f"object_spilling_directory is {object_spilling_directory!r}; it must be the path of a folder")
    if object_spilling_directory and os.path.exists(object_spilling_directory) and not os.path.isdir(object_spilling_directory):
        raise ValueError(f"object_spilling_directory is '{object_spilling_directory}', which is no folder")
    if logging_config is not None and not hasattr(logging_config, "encoding"):
        raise TypeError(f"logging_config is {logging_config!r}; it must be a LoggingConfig")
    address = addresses.resolved(address)
    joins = address != addresses.LOCAL
    if joins:
        addresses.check_brings_nothing(address, num_cpus=num_cpus, num_gpus=num_gpus, resources=resources, labels=labels, _memory=_memory)
    functions = library.load()
    variables, folder = _environment(runtime_env or {}, functions)
    if logging_config is not None:
        from menger.runtime import logging_config as logs  # Takes some ms, with logging.

        logging_config.apply()
        variables |= logs.variables(logging_config)
    name, driver = os.urandom(16).hex(), os.getpid()
    cpus, memory, devices_file, place = 0, 0, None, None
    if joins:
        variables = {**accelerators.variables_on_nodes(variables), **variables}
        told = members.told_to_workers(None, None, address)
    else:
        devices = accelerators.counted(num_gpus, resources)
        devices_file = accelerators.make_file(devices)
        if devices_file is not None:
            variables[accelerators.FILE_VARIABLE] = devices_file
        variables = {**accelerators.variables_without(devices), **variables}
        cpus = num_cpus if num_cpus is not None else len(os.sched_getaffinity(0))
        memory = cluster.memory_without_store(object_store_memory) if _memory is None else _memory
        totals = {"CPU": cpus, "GPU": num_gpus or 0, "memory": memory, **(resources or {})}
        place = members.Place(name, {**(labels or {}), members.LABEL: name}, totals)
        told = members.told_to_workers(place.labels, totals, "")
    variables |= zip(SESSION_VARIABLES, (name, namespace or "", driver, told))
    lines = Lines(shown=log_to_driver)
    wanted = library.RuntimeOptions(
        workers=max(1, int(cpus)),
        workers_ahead=0 if joins else 1,
        cpus=cpus,
        gpus=num_gpus or 0,
        resources=options.amounts(resources, memory),
        store_bytes_max=int(object_store_memory or 0),
        program=library.strings([sys.executable, "-m", "menger.runtime.worker", _TITLE_ROOM]),
        variables=library.strings([f"{name}={value}" for name, value in variables.items()]),
        folder=folder.encode(),
        memory_bytes_max=int(worker_memory or 0),
        spill_folder=os.fsencode(object_spilling_directory or ""),
        address=address.encode(),
        cluster_token=b"",  # What is not said here the environment says.
        tls_certificate=b"",
        tls_key=b"",
        tls_authorities=b"",
        join_seconds=float(join_seconds or 0),
        node_wait_seconds=float(node_wait_seconds or 0),
        on_line=lines.callback,
    )
    runtime = functions.open(ctypes.byref(wanted))
    if not runtime:
        accelerators.drop_file(devices_file)
        raise addresses.failure(functions, address)
    opened = session.Session(functions, runtime, name, namespace, driver)
    try:
        opened.place = place or members.of_driver(opened, address)
    except BaseException:
        opened.close()
        raise
    opened.devices_file = devices_file
    opened.lines = lines  # What C calls must live as long as it may.
    opened.resources = {"CPU": float(cpus), "GPU": float(num_gpus or 0), **(resources or {})}
    current.set_session(opened)
    if joins:
        opened.resources = cluster.cluster_resources()
    return Context(opened.resources)


_WITHOUT_EFFECT = frozenset(
    {
        "_metrics_export_port",
        "_node_ip_address",
        "_node_name",
        "_system_config",
        "_temp_dir",
        "configure_logging",
        "dashboard_host",
        "dashboard_port",
        "include_dashboard",
        "job_config",
        "local_mode",
        "logging_format",
        "logging_level",
    }
)


def _environment(runtime_env, functions):
    """The variables and the folder of workers."""
    path = environments.folders_of_modules(runtime_env) + [os.path.abspath(each) for each in sys.path]
    package = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
    before, folder = os.environ.get("PYTHONPATH"), runtime_env.get("working_dir")
    given = environments.expanded(runtime_env.get("env_vars") or {}, os.environ)
    return {
        **environments.variables_of_threads(given),
        **environments.variables_of_hook(runtime_env.get("worker_process_setup_hook")),
        **given,
        "PYTHONPATH": package + (os.pathsep + before if before else ""),
        PATH_VARIABLE: os.pathsep.join(path),
        library.LIBRARY_VARIABLE: os.path.abspath(functions.file),
    }, os.path.abspath(folder) if folder else ""


@current.alone
def shutdown(_exiting_interpreter=False):
    """Ends all workers; what was not fetched is lost."""
    opened = current.opened()
    if opened is None or opened.in_worker:
        return
    current.set_session(None)
    opened.close()
    accelerators.drop_file(opened.devices_file)


def is_initialized():
    return current.opened() is not None


current.set_opener(init)
atexit.register(shutdown)
