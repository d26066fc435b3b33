"""The Python side of Menger: acts with exported policies, runs Python environments for the program, speaks to its runtime.

    policy = menger.load("policy.menger")
    action = policy.act(observation)

`menger.load` needs NumPy alone. `python -m menger.host` is started by `menger`, never by hand, and needs Gymnasium too;
`menger.runtime` has a page of its own, docs/runtime.md. Everything runs on CPython 3.9 or later.
"""


def load(path):
    """Reads a bundle of `menger export`; returns a menger.policy.Policy. Raises ValueError if it is none, or damaged."""
    from menger import policy  # Here, because not all that imports this package needs NumPy.

    return policy.Policy(path)
