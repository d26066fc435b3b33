"""From a name to an environment: Gymnasium's ids, and classes or functions of a user's module."""

import importlib
import importlib.util
import inspect
import re
import sys
import traceback

import gymnasium

from menger.control import NOT_FOUND, Failure, Refused
from menger.values import hint_of, shown

# Packages that register environments when they are imported, by how the ids begin, where that is not the package's own name.
_MODULES = {"minigrid": "minigrid", "babyai": "minigrid", "mo": "mo_gymnasium", "fetch": "gymnasium_robotics",
            "handreach": "gymnasium_robotics", "antmaze": "gymnasium_robotics", "pointmaze": "gymnasium_robotics",
            "highway": "highway_env", "parking": "highway_env", "merge": "highway_env", "procgen": "procgen"}  # fmt: skip

# Packages that register their environments when they are imported, by the namespace of the ids.
_REGISTERED_BY = {"ALE": "ale_py"}

VectorEnv = gymnasium.vector.VectorEnv
AutoresetMode = getattr(gymnasium.vector, "AutoresetMode", None)


def users_failure(name, where, error):
    """An error of the user's code with its traceback, without the frames of this package."""
    if isinstance(error, Refused):
        return Failure(f"{name}{where}: {error}")
    if type(error).__name__ == "DependencyNotInstalled" and hint_of(error):
        return Failure(f"{name} needs what {sys.executable} lacks.{hint_of(error)}".replace("\n", " "))
    trace = error.__traceback__
    while trace is not None and _is_not_the_users(trace.tb_frame.f_globals.get("__name__", "")):
        trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace)
    last = traceback.format_exception_only(type(error), error)[-1]
    if lines[-1] == last:  # What the first line says.
        lines.pop()
    hint = hint_of(error) if lines else hint_of(error).replace("\n", ". ")
    return Failure(f"{name}{where}: {type(error).__name__}: {error}\n{''.join(lines)}".rstrip() + hint)


def with_sentence(text, sentence):
    """A text and what follows: a traceback would run into it."""
    return f"{text}\n{sentence}" if "\n" in text else f"{text}. {sentence}"


def _takes(call, name):
    """Whether it has a keyword argument of that name, as far as can be told."""
    try:
        parameters = inspect.signature(call).parameters
    except (TypeError, ValueError):
        return True
    return name in parameters or any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters.values())


def _is_not_the_users(module):
    return module.startswith(("menger.", "importlib.")) or module == "importlib"


class Maker:
    """What to make, as the recipe has it: {"environment", "arguments", "metrics", "path", "vector", "render"}."""

    def __init__(self, request):
        self.name = request["environment"]
        self.metrics = tuple(request.get("metrics", ()))
        self.vector = bool(request.get("vector", False))
        self._render = {"render_mode": "rgb_array"} if request.get("render", False) else {}
        self._arguments = dict(request.get("arguments") or {})
        for folder in reversed(request.get("path", [])):
            if folder not in sys.path:
                sys.path.insert(0, folder)
        self._id, self._call = _find(self.name.removeprefix("host:"), request.get("path", []))
        if self._render and self.vector and self._id is not None and gymnasium.spec(self._id).entry_point is not None:
            self.vector = False  # A recording plays one environment, and more of them can be shown alone than in a batch.

    def spec(self):
        """Gymnasium's own spec, None for a class or function."""
        return gymnasium.spec(self._id) if self._id is not None else None

    def make(self, where=""):
        """One environment of the user's; `where` says in errors which."""
        return self._guard(self._make, where)

    def make_vector(self, count):
        """`count` environments that step as one batch, with resets in the same step."""
        return self._guard(lambda: self._make_vector(count), "")

    def _guard(self, make, where):
        try:
            return self._checked(make())
        except Failure:
            raise
        except BaseException as error:
            if isinstance(error, TypeError) and self._render and self._takes_no_render_mode(error):
                raise self._cannot_be_recorded() from None
            raise users_failure(self.name, f"{where}, when it was made", error) from None

    def _takes_no_render_mode(self, error):
        return "render_mode" in str(error) or (self._call is not None and not _takes(self._call, "render_mode"))

    def _cannot_be_recorded(self):
        each = " an environment" if self.vector else ""
        return Failure(f"{self.name} cannot be recorded, because it takes no render_mode: let it take the keyword "
                       f"render_mode=\"rgb_array\", and render() return one array [height, width, 3]{each}")  # fmt: skip

    def _checked(self, environment):
        """What was made, if it says what is observed and done."""
        for name in ("single_observation_space", "single_action_space") if self.vector else ("observation_space", "action_space"):
            space = getattr(environment, name, None)
            if not isinstance(space, gymnasium.Space):
                what = type(environment).__name__
                has = f"has no {name}" if space is None else f"has {shown(space)} as its {name}"
                raise Failure(f"{self.name} makes a {what}, which {has}; a gymnasium.Env is needed, whose observation_space and "
                              "action_space are spaces of gymnasium.spaces")  # fmt: skip
        return environment

    def _make(self):
        if self._call is not None:
            environment = self._call(**self._render, **self._arguments)
            if isinstance(environment, VectorEnv):
                raise Failure(f"{self.name} makes a vector environment: set host.vector = true to step it as one batch")
            return environment
        # The checker would look at the first step only, and print where nobody reads.
        return gymnasium.make(self._id, disable_env_checker=True, **self._render, **self._arguments)

    def _make_vector(self, count):
        arguments = {"num_envs": count, **self._render, **self._arguments}
        same_step = {} if AutoresetMode is None else {"autoreset_mode": AutoresetMode.SAME_STEP}
        if self._call is not None:
            make = self._call
        else:
            arguments["vectorization_mode"] = "vector_entry_point"

            def make(**arguments):
                return gymnasium.make_vec(self._id, **arguments)

        try:
            environment = make(**arguments, **same_step)
        except TypeError as error:
            if "autoreset_mode" not in str(error) or (self._render and "render_mode" in str(error)):
                raise
            environment = make(**arguments)
        return checked_vector(environment, count, self.name)


def checked_vector(environment, count, name):
    if not isinstance(environment, VectorEnv):
        raise Failure(f"{name} with host.vector makes a {type(environment).__name__}; a gymnasium.vector.VectorEnv is needed")
    mode = environment.metadata.get("autoreset_mode")
    if AutoresetMode is None or mode != AutoresetMode.SAME_STEP:
        raise Failure(f"the vector environment {name} resets in mode {getattr(mode, 'name', mode)}; SAME_STEP is needed "
                      "(give autoreset_mode to its constructor), or leave host.vector off")  # fmt: skip
    if environment.num_envs != count:
        raise Failure(f"the vector environment {name} has {environment.num_envs} environments; {count} are needed here: its "
                      "function must take num_envs, with host.vector on")  # fmt: skip
    return environment


def _find(name, folders):
    """(id, None) or (None, callable)."""
    module_name, colon, attribute = name.partition(":")
    if not colon:
        return _registered(name), None
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and not (module_name == error.name or module_name.startswith(error.name + ".")):
            raise users_failure(name, ", when its module was imported", error) from None
        raise Failure(f"there is no Python module '{module_name}' for environment '{name}'; it was looked for in "
                      f"{', '.join(folders)} (beside the recipe, the current folder, host.path) and among the packages of "
                      f"{sys.executable}", NOT_FOUND) from None  # fmt: skip
    except (Exception, SystemExit) as error:
        raise users_failure(name, ", when its module was imported", error) from None
    if attribute in gymnasium.registry:
        return attribute, None
    found = getattr(module, attribute, None)
    if callable(found):
        return None, found
    if "-v" in attribute:
        return _registered(attribute), None
    raise Failure(f"module '{module_name}' neither registers an environment '{attribute}' nor has a class or function of that "
                  "name", NOT_FOUND)  # fmt: skip


def _hint(name):
    """What to write where a package would register the id once it was imported."""
    start = re.split(r"[-/]", name)[0].lower()
    module = _MODULES.get(start, start)
    if not module.isidentifier() or module in sys.stdlib_module_names:
        return ""
    try:
        found = importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        found = False
    if found:
        return f". The package '{module}' is installed but not imported: write environment = \"{module}:{name}\""
    if start in _MODULES:
        return f". The package '{module}' registers it: install it, and write environment = \"{module}:{name}\""
    return f". If a package registers it when it is imported, name that, too: environment = \"package:{name}\""


def _sentence(error, name):
    """Gymnasium's words, and ours where they do not say it all."""
    text = str(error).rstrip(".")
    return text if "instead" in text else text + _hint(name)


def _registered(name):
    package = _REGISTERED_BY.get(name.partition("/")[0])
    if name not in gymnasium.registry and package is None:
        for known in set(_REGISTERED_BY.values()):  # Ids without a namespace: PongNoFrameskip-v4.
            try:
                importlib.import_module(known)
            except ImportError:
                pass  # Whether it is needed nobody can tell.
    elif name not in gymnasium.registry:
        try:
            importlib.import_module(package)
        except ModuleNotFoundError:
            raise Failure(f"environment '{name}' needs the Python package '{package.replace('_', '-')}': install it for "
                          f"{sys.executable}", NOT_FOUND) from None  # fmt: skip
    try:
        gymnasium.spec(name)
    except gymnasium.error.Error as error:  # Unregistered, of another version, or its name is none.
        raise Failure(f"Gymnasium {gymnasium.__version__} has no environment '{name}': {_sentence(error, name)}", NOT_FOUND) from None
    return name
