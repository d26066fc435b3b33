"""What joblib asks of a backend, done by a Pool of actors."""

from joblib._parallel_backends import MultiprocessingBackend

import menger.runtime as ray
from menger.runtime.util.multiprocessing import Pool


class RayBackend(MultiprocessingBackend):
    """`ray_remote_args`: the options of the actors."""

    def __init__(self, nesting_level=None, inner_max_num_threads=None, ray_remote_args=None, **others):
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads, **others)
        self._remote_args = ray_remote_args

    def effective_n_jobs(self, n_jobs):
        """-1: as many as there are CPUs. Not fewer where the caller is itself a worker: actors are no forks of his."""
        if n_jobs == 0:
            raise ValueError("n_jobs is 0; it must be another number")
        cpus = int(ray.cluster_resources().get("CPU", 1))
        return max(1, cpus + 1 + n_jobs) if n_jobs is not None and n_jobs < 0 else n_jobs or 1

    def configure(self, n_jobs=1, parallel=None, prefer=None, require=None, **_memory):
        n_jobs = self.effective_n_jobs(n_jobs)
        self._pool = Pool(n_jobs, ray_remote_args=self._remote_args)
        self.parallel = parallel
        return n_jobs

    def terminate(self):
        if getattr(self, "_pool", None) is not None:
            self._pool.terminate()
            self._pool = None
