"""The Python side of Menger: runs Python environments for the program, which is not Python.

`python -m menger.host` is started by `menger`, never by hand. Nothing here needs more than NumPy and Gymnasium, on CPython 3.9
or later.
"""
