"""As ray.cloudpickle: what functions and classes of the program are pickled by."""

import cloudpickle as _all


def __getattr__(name):
    return getattr(_all, name)


def dumps_debug(value, protocol=None, buffer_callback=None):
    """As dumps; where that fails, the error says what of the value cannot be pickled."""
    import io

    from menger.runtime.util.check_serialize import inspect_serializability

    try:
        return _all.dumps(value, protocol, buffer_callback)
    except (TypeError, _all.pickle.PicklingError) as error:
        found = io.StringIO()
        inspect_serializability(value, print_file=found)
        raise TypeError(f"Could not serialize {value!r}: {error}\n{found.getvalue()}") from error
