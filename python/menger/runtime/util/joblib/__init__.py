"""joblib's Parallel on actors, as ray.util.joblib."""


def register_ray():
    """From now on `joblib.parallel_backend("ray")` is known. Needs joblib."""
    from joblib.parallel import register_parallel_backend

    from menger.runtime.util.joblib.ray_backend import RayBackend

    register_parallel_backend("ray", RayBackend)
