"""The environments of single tasks and actors: the option runtime_env, at the worker."""

import base64
import contextlib
import importlib
import os
import re
import sys

from menger.runtime import exceptions, values

_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_THREADS = "OMP_NUM_THREADS"
_HOOK = "MENGER_RUNTIME_HOOK"
THREADS_ARE_OURS = "MENGER_RUNTIME_THREADS"  # Is there where the user has not said how many threads libraries shall use.


def apply(environment):
    """For good, as of an actor."""
    os.environ.update(expanded(environment.get("env_vars") or {}, os.environ))
    working = environment.get("working_dir")
    sys.path[:0] = folders_of_modules(environment)
    if working:
        os.chdir(working)


def expanded(variables, before):
    """The variables with what ${NAME} stands for in them: the one of that name above it, or of `before`; nothing if there is none."""
    known = dict(before)
    for name, value in variables.items():
        known[name] = _REFERENCE.sub(lambda found: known.get(found[1], ""), value)
    return {name: known[name] for name in variables}


def inherited(outer, own):
    """The environment of a call that is made in the environment `outer`: its own before that."""
    if not outer or not own:
        return own or outer
    variables = {**(outer.get("env_vars") or {}), **(own.get("env_vars") or {})}
    return {**outer, **own, **({"env_vars": variables} if variables else {})}


def folders_of_modules(environment):
    """Where the modules of `py_modules` and `working_dir` are found."""
    working = environment.get("working_dir")
    folders = [os.path.abspath(each) for each in [*(environment.get("py_modules") or []), *([working] if working else [])]]
    for folder in folders:
        if not os.path.isdir(folder):
            raise exceptions.RuntimeEnvSetupError(f"runtime_env names '{folder}', which is no folder")
    # Of a package its own folder is named: it is found in the one above.
    return [os.path.dirname(each) if os.path.exists(os.path.join(each, "__init__.py")) else each for each in folders]


@contextlib.contextmanager
def applied(environment):
    """While a task runs."""
    variables, folder, path, modules = dict(os.environ), os.getcwd(), list(sys.path), set(sys.modules)
    folders = folders_of_modules(environment)
    try:
        apply(environment)
        yield
    finally:
        _forget_modules(modules, folders)
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(folder)
        sys.path[:] = path


def _forget_modules(before, folders):
    """Of modules that were imported meanwhile, those in the folders: the next task may mean others of these names."""
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if any(file.startswith(folder + os.sep) for folder in folders):
            del sys.modules[name]


def variables_of_hook(hook):
    """What says to workers which function each of them calls before all else."""
    if hook is None:
        return {}
    try:
        return {_HOOK: base64.b64encode(values.dumps(hook).joined()).decode()}
    except Exception as error:
        raise exceptions.RuntimeEnvSetupError(f"Failed to export the setup function. worker_process_setup_hook is {hook!r}: {error}") from error


def run_hook():
    """In a worker that begins. Returns what is wrong where the hook fails: that is the error of all that the worker is given."""
    packed = os.environ.pop(_HOOK, "")
    if not packed:
        return None
    try:
        hook = values.loads(base64.b64decode(packed))
        if isinstance(hook, str):
            module, _, name = hook.rpartition(".")
            hook = getattr(importlib.import_module(module), name)
        hook()
        return None
    except Exception as error:
        return f"Failed to execute the setup hook method. worker_process_setup_hook raised {error!r}"


def prefer_for_killing():
    """Where the machine's memory runs out the kernel ends workers, as in Ray, and not the driver, which has what they are done for."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def set_threads(count):
    """So many threads for numerical libraries, unless the user has said how many."""
    if THREADS_ARE_OURS in os.environ:
        os.environ[_THREADS] = str(count)


def variables_of_threads(given):
    """What workers begin with, beside the variables that they are given."""
    return {} if _THREADS in os.environ or _THREADS in given else {_THREADS: "1", THREADS_ARE_OURS: "1"}
