"""As ray.runtime_env."""


class RuntimeEnv(dict):
    """A runtime_env by its names: RuntimeEnv(env_vars={...}, working_dir=folder, py_modules=folders)."""

    def __init__(self, **told):
        super().__init__({name: value for name, value in told.items() if value is not None})
