"""Packages that are missing, all of them in one message with the one command that mends it. Needs none itself."""

import ast
import importlib.util
import os
import sys
import sysconfig

_NEEDED = ("numpy", "gymnasium")  # By this package.

# What to install for what is imported, where the names differ.
_INSTALLED_AS = {"cv2": "opencv-python", "PIL": "pillow", "yaml": "pyyaml", "sklearn": "scikit-learn", "Box2D": "gymnasium[box2d]",
                 "skimage": "scikit-image", "mpl_toolkits": "matplotlib", "ale_py": "ale-py", "highway_env": "highway-env",
                 "gymnasium_robotics": "gymnasium-robotics", "mo_gymnasium": "mo-gymnasium"}  # fmt: skip


def is_missing(package):
    try:
        return importlib.util.find_spec(package) is None
    except (ImportError, ValueError):
        return True


def missing_of(environment, path=(), also=()):
    """The top-level packages that an environment's module imports, and those needed here, that the interpreter lacks."""
    names = [*_NEEDED, *also, *_imports(environment, path)]
    return [name for name in dict.fromkeys(names) if is_missing(name)]


def command_for(packages):
    """One line for a shell after which the interpreter has them."""
    wanted = " ".join(f"'{name}'" if "[" in name else name for name in packages)
    managed = os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))
    if sys.prefix == sys.base_prefix and managed:  # The system's own, into which pip refuses to install.
        return (f"{sys.executable} -m venv my_env && my_env/bin/pip install {wanted} && "
                "export MENGER_PYTHON=$PWD/my_env/bin/python")  # fmt: skip
    return f"{sys.executable} -m pip install {wanted}"


def missing_message(environment, missing):
    names = " and ".join(filter(None, [", ".join(missing[:-1]), missing[-1]]))
    package = "package" if len(missing) == 1 else "packages"
    installed = [_INSTALLED_AS.get(name, name) for name in missing]
    return (f"'{environment}' needs the Python {package} {names}, which {sys.executable} lacks. Install with: "
            f"{command_for(installed)}")  # fmt: skip


def _imports(environment, path):
    """The top-level names of what the module of `environment` ("module:Name") imports unconditionally."""
    module, colon, _ = environment.removeprefix("host:").partition(":")
    file = _file_of(module, path) if colon else None
    if file is None:
        return []
    try:
        with open(file, encoding="utf-8") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return []  # Importing it will say what is wrong with it.
    names = []
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            names += [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.level == 0:
            names.append(statement.module)
    beside = [*path, os.path.dirname(file)]
    return [top for top in (name.partition(".")[0] for name in names) if _file_of(top, beside) is None]


def _file_of(module, path):
    """Where a module lies in one of the folders; None if in none. Parents of it are not imported."""
    for folder in path:
        stem = os.path.join(folder, *module.split("."))
        for file in (stem + ".py", os.path.join(stem, "__init__.py")):
            if os.path.exists(file):
                return file
    return None
