"""What tests of menger.runtime share. Functions that workers run stay in the tests themselves: those travel with the calls."""

import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
if "MENGER_PROGRAM" in os.environ:
    built = pathlib.Path(os.environ["MENGER_PROGRAM"]).resolve().parent / "libmenger_runtime.so"
    os.environ.setdefault("MENGER_RUNTIME_LIBRARY", str(built))

import menger.runtime as ray  # noqa: E402

PATIENCE_S = 60


def check_library():
    if not os.path.exists(os.environ.get("MENGER_RUNTIME_LIBRARY", __file__)):
        raise unittest.SkipTest("this build has no libmenger_runtime.so: an instrumented one cannot be loaded by Python")


def get(references):
    return ray.get(references, timeout=PATIENCE_S)
