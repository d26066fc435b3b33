"""What calls and actors can be told, and what is so where they are not."""

import inspect
import numbers
import os
import re

from menger.runtime import resource_names
from menger.runtime.placement import ANY_GROUP, Anywhere, Placement

_UNLIMITED = 65535
CONCURRENCY_MAX = 65535  # More is as if it were that.
CONCURRENCY_OF_COROUTINES = 1000  # Of actors that have some, where nobody says it, as in Ray.
_RESULTS_MAX = 1000
STREAMING, DYNAMIC = "streaming", "dynamic"
AHEAD_MAX = 1_000_000_000  # Items that a generator may be ahead of its reader, unless it is told a number.

_OF_BOTH = {
    "num_gpus": 0,
    "resources": None,
    "name": "",
    "scheduling_strategy": None,
    "placement_group": ANY_GROUP,
    "placement_group_bundle_index": -1,
    "placement_group_capture_child_tasks": None,
    "runtime_env": None,
    "label_selector": None,
    "fallback_strategy": None,
    "memory": None,
    "accelerator_type": None,
    "enable_task_events": None,
}
FUNCTION_OPTIONS = {
    "num_cpus": 1,
    "num_returns": None,
    "max_calls": None,
    "max_retries": 3,
    "retry_exceptions": False,
    **_OF_BOTH,
    "_generator_backpressure_num_objects": None,
}
ACTOR_OPTIONS = {
    "num_cpus": 0,
    "namespace": None,
    "lifetime": None,
    "get_if_exists": False,
    "max_restarts": 0,
    "max_task_retries": 0,
    "max_concurrency": 1,
    "max_pending_calls": -1,
    "allow_out_of_order_execution": None,
    "concurrency_groups": None,
    **_OF_BOTH,
}
METHOD_OPTIONS = {
    "num_returns": None,
    "name": "",
    "max_task_retries": None,
    "retry_exceptions": False,
    "concurrency_group": "",
    "enable_task_events": None,
    "_generator_backpressure_num_objects": None,
}
_MANY = 1e18  # More than that is no number of bytes, or seconds, of anything.
_NUMBERS = {int, float}  # What most are: asking whether something is a Real takes half a microsecond.
_SECONDS_MIN, _SECONDS_MAX = 0.001, 31_536_000  # As RuntimeOptions has it.
_AMOUNT_MAX = 1_000_000
_AMOUNT_MIN = 0.0001
_OPTION_OF = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory", "object_store_memory": "object_store_memory of init"}
_MEMORY_UNIT = 2**20  # Of what the library knows of memory, to a ten-thousandth.
_RESOURCE = re.compile(r"[^\s=@;\0]+")
_LABEL = r"[A-Za-z0-9](?:[-_.A-Za-z0-9]*[A-Za-z0-9])?"
_LABEL_KEY = re.compile(rf"(?:{_LABEL}/)?{_LABEL}")
_LABEL_CONDITION = re.compile(rf"!?(?:{_LABEL}|in\({_LABEL}(?:, *{_LABEL})*\))")
_ENVIRONMENT_OPTIONS = ("env_vars", "working_dir", "py_modules")  # And of init:
_OF_INIT = "worker_process_setup_hook"


def filled(given, known):
    """All options: those that were given, and what is so otherwise. None is as if it had not been given, but for one."""
    return {**known, **{name: value for name, value in given.items() if value is not None or name == "placement_group"}}


def check(given, known):
    for name in given:
        if name not in known:
            raise ValueError(f"'{name}' is no option; there are: {', '.join(each for each in known if each[0] != '_')}")
    for name, value in given.items():
        if value is not None:
            _CHECKS.get(name, _check_nothing)(name, value)
    if given.get("scheduling_strategy") is not None and given.get("placement_group", ANY_GROUP) not in (None, ANY_GROUP):
        raise ValueError("placement_group and scheduling_strategy both say where it runs; leave one out")
    if given.get("placement_group_bundle_index", -1) not in (None, -1) and given.get("placement_group") in (None, ANY_GROUP):
        raise ValueError("the placement group bundle index must be -1 where no placement_group is named")
    return given


def _is_whole(number):
    return isinstance(number, int) and not isinstance(number, bool)


def _check_nothing(name, value):
    pass


def check_number(name, number, most=_MANY):
    """A number from 0 to `most`, and none of those that are no amount of anything."""
    if isinstance(number, bool) or not isinstance(number, numbers.Real):
        raise TypeError(f"{name} is {number!r}; it must be a number")
    if number < 0:
        raise ValueError(f"{name} is {number}; it must not be negative")
    if not number <= most:
        raise ValueError(f"{name} is {number}; it must be a number up to {most:g}")


def check_seconds(name, seconds):
    """A time that somebody waits: some, and no more than a year."""
    check_number(name, seconds, _SECONDS_MAX)
    if seconds < _SECONDS_MIN:
        raise ValueError(f"{name} is {seconds}; it must be at least {_SECONDS_MIN} seconds")


def check_amount(name, amount, resource=None):
    """An amount of a resource, which an option names or is; in the words that Ray's programs look for where it is nearly none."""
    check_number(name, amount, _AMOUNT_MAX)
    if 0 < amount < _AMOUNT_MIN:
        quantity = f"the fractional quantity of resource {resource or name}"
        raise ValueError(f"The precision of {quantity} cannot go beyond {_AMOUNT_MIN}: it is {amount}")


def seconds(timeout):
    """A timeout that somebody gave, which is not None; None where it is longer than anybody waits."""
    if type(timeout) not in _NUMBERS and (type(timeout) is bool or not isinstance(timeout, numbers.Real)):
        raise TypeError(f"timeout is {timeout!r}; it must be a number of seconds, or None to wait for ever")
    if timeout != timeout:
        raise ValueError(f"timeout is {timeout}; it must be a number of seconds, or None to wait for ever")
    return float(timeout) if timeout < _MANY else None


def _check_resources(name, resources):
    if not isinstance(resources, dict):
        raise TypeError(f"{name} is {resources!r}; it must be a dict of names and amounts")
    for each, amount in resources.items():
        if not isinstance(each, str) or not _RESOURCE.fullmatch(each):
            raise ValueError(f"{name} has the name {each!r}; it must be a text without spaces, '=', '@' and ';'")
        if len(each.encode()) > resource_names.BYTES_MAX:
            short = resource_names.shortened(each)
            raise ValueError(f"'{short}' is too long for the name of a resource: {resource_names.BYTES_MAX} bytes are the most")
        if each in _OPTION_OF:
            raise ValueError(f"{name} has '{each}'; say it as {_OPTION_OF[each]}")
        check_amount(f"{name}['{each}']", amount, each)


def _check_results(name, results):
    if results in (STREAMING, DYNAMIC):
        return
    _check_type(name, results, int, str)
    if not _is_whole(results) or not 0 <= results <= _RESULTS_MAX:
        raise ValueError(
            f"The keyword '{name}' only accepts None, a non-negative integer, '{STREAMING}' (for generators), or '{DYNAMIC}';"
            f" it is {results!r}, and {_RESULTS_MAX} are the most"
        )


def _check_concurrency(name, concurrency):
    if not _is_whole(concurrency) or concurrency < 1:
        raise ValueError(f"{name} is {concurrency!r}; it must be a whole number of at least 1")


def _check_groups(name, groups):
    if not isinstance(groups, dict):
        raise TypeError(f"{name} is {groups!r}; it must be a dict of names and how many calls each does at once")
    for each, concurrency in groups.items():
        _check_concurrency(f"{name}['{each}']", concurrency)


def _check_type(name, value, *kinds):
    """In the words that Ray's programs look for."""
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise TypeError(
            f"The type of keyword '{name}' must be {(*kinds, type(None))}, but received type {type(value)}: it is {value!r}"
        )


def _check_count(name, count):
    _check_type(name, count, int)
    if count < -1:
        raise ValueError(
            f"The keyword '{name}' only accepts None, 0, -1 or a positive integer, where -1 represents infinity. It is {count}"
        )


def _check_calls(name, calls):
    _check_type(name, calls, int)
    if calls < 0:
        raise ValueError(f"The keyword '{name}' only accepts None, 0 or a positive integer, where 0 is any number. It is {calls}")


def _check_flag(name, flag):
    if not isinstance(flag, bool):
        raise TypeError(f"{name} is {flag!r}; it must be True or False")


def _check_text(name, text):
    if not isinstance(text, str):
        raise TypeError(f"{name} is {text!r}; it must be a text")


def _check_namespace(name, text):
    _check_text(name, text)
    if not text:
        raise ValueError(f"{name} is empty; leave it out instead")


def _check_exceptions(name, given):
    if isinstance(given, bool):
        return
    if isinstance(given, (list, tuple)) and all(inspect.isclass(each) and issubclass(each, BaseException) for each in given):
        return
    raise ValueError(f"{name} is {given!r}; it must be True, False or a list of classes of exceptions")


def _check_strategy(name, strategy):
    if not isinstance(strategy, (Placement, Anywhere)) and strategy not in ("DEFAULT", "SPREAD"):
        raise ValueError(f"{name} is {strategy!r}; it must be 'DEFAULT', 'SPREAD' or one of util.scheduling_strategies")


def _check_group(name, group):
    if group != ANY_GROUP and not hasattr(group, "placement"):
        raise ValueError(f"{name} is {group!r}; it must be a PlacementGroup, None or '{ANY_GROUP}'")


def _check_index(name, index):
    if not _is_whole(index):
        raise TypeError(f"{name} is {index!r}; it must be a whole number")
    if index < -1:
        raise ValueError(f"{name} is {index}; it must be the number of a bundle, or -1 for any")


def _check_ahead(name, ahead):
    if not _is_whole(ahead) or (ahead != -1 and not 1 <= ahead <= AHEAD_MAX):
        raise ValueError(f"{name}={ahead!r} is not allowed; it must be -1, for any number, or at least 1")


def check_environment(name, environment, of_call=True):
    if not isinstance(environment, dict):
        raise TypeError(f"{name} is {environment!r}; it must be a dict")
    for each in environment:
        if each == _OF_INIT:
            _check_hook(name, environment[each])
            if of_call:
                raise ValueError(f"{name} has '{each}', which is of init's runtime_env: every worker calls it once, before all else")
        elif each not in _ENVIRONMENT_OPTIONS:
            known = _ENVIRONMENT_OPTIONS if of_call else (*_ENVIRONMENT_OPTIONS, _OF_INIT)
            raise ValueError(f"{name} has '{each}'; there are: {', '.join(known)}")
    variables = environment.get("env_vars") or {}
    if not isinstance(variables, dict) or not all(isinstance(text, str) for pair in variables.items() for text in pair):
        raise TypeError(f"{name}['env_vars'] is {variables!r}; it must be a dict of texts")
    for key, value in variables.items():
        if not key or "=" in key or "\0" in key + value:
            raise ValueError(f"{name}['env_vars'] has {key!r}: {value!r}; a name is not empty and has no '=', and neither has a zero byte")
    working, modules = environment.get("working_dir"), environment.get("py_modules")
    if working is not None and not isinstance(working, (str, os.PathLike)):
        raise TypeError(f"{name}['working_dir'] is {working!r}; it must be the path of a folder")
    if modules is not None and not (isinstance(modules, list) and all(isinstance(each, (str, os.PathLike)) for each in modules)):
        raise TypeError(f"{name}['py_modules'] is {modules!r}; it must be a list of paths of folders")


def _check_hook(name, hook):
    if hook is not None and not callable(hook) and not (isinstance(hook, str) and "." in hook):
        raise TypeError(f"{name}['{_OF_INIT}'] is {hook!r}; it must be a function, or its name as 'module.function'")


def check_labels(name, labels):
    """Of a node: names and values."""
    if not isinstance(labels, dict):
        raise TypeError(f"{name} is {labels!r}; it must be a dict of texts")
    for key, value in labels.items():
        if not isinstance(key, str) or not _LABEL_KEY.fullmatch(key):
            raise ValueError(f"{name} has the key {key!r}; it must be a label as 'region' or 'domain/region'")
        if not isinstance(value, str) or not re.fullmatch(f"(?:{_LABEL})?", value):
            raise ValueError(f"{name} has {key!r}: {value!r}; it must be a text of letters, digits, '-', '_' and '.', or empty")


def _check_label_selector(name, labels):
    if not isinstance(labels, dict):
        raise TypeError(f"{name} is {labels!r}; it must be a dict of texts")
    for key, value in labels.items():
        if not isinstance(key, str) or not _LABEL_KEY.fullmatch(key):
            raise ValueError(f"{name} has the key {key!r}; it must be a label as 'region' or 'domain/region'")
        if not isinstance(value, str) or not _LABEL_CONDITION.fullmatch(value):
            raise ValueError(f"{name} has {key!r}: {value!r}; it must be as 'a', '!a', 'in(a, b)' or '!in(a, b)'")


def _check_fallback(name, strategies):
    if not isinstance(strategies, list):
        raise TypeError(f"{name} is {strategies!r}; it must be a list of dicts")
    for each in strategies:
        if not isinstance(each, dict) or set(each) - {"label_selector"}:
            raise ValueError(f"{name} has {each!r}; it must be a dict with 'label_selector' alone")
        _check_label_selector(f"label_selector of {name}", each.get("label_selector", {}))


_CHECKS = {
    "num_cpus": check_amount,
    "num_gpus": check_amount,
    "memory": check_number,
    "accelerator_type": _check_text,
    "resources": _check_resources,
    "num_returns": _check_results,
    "max_calls": _check_calls,
    "max_retries": _check_count,
    "max_restarts": _check_count,
    "max_task_retries": _check_count,
    "max_concurrency": _check_concurrency,
    "max_pending_calls": _check_count,
    "allow_out_of_order_execution": _check_flag,
    "enable_task_events": _check_flag,
    "concurrency_groups": _check_groups,
    "concurrency_group": _check_text,
    "name": _check_text,
    "namespace": _check_namespace,
    "retry_exceptions": _check_exceptions,
    "scheduling_strategy": _check_strategy,
    "placement_group": _check_group,
    "placement_group_bundle_index": _check_index,
    "runtime_env": check_environment,
    "label_selector": _check_label_selector,
    "fallback_strategy": _check_fallback,
    "_generator_backpressure_num_objects": _check_ahead,
}


def amounts(resources, memory=None):
    """As the library reads them."""
    given = {**(resources or {}), "memory": units_of_memory(memory or 0)}
    return " ".join(f"{name}={float(amount)!r}" for name, amount in given.items() if amount).encode()


def units_of_memory(count):
    return max(min(count / _MEMORY_UNIT, _AMOUNT_MAX), _AMOUNT_MIN if count else 0)


def bytes_of_memory(units):
    return units * _MEMORY_UNIT


def retries(count):
    return _UNLIMITED if count == -1 else min(count, _UNLIMITED)


def ahead(options):
    """Items that a generator may be ahead of its reader."""
    given = options["_generator_backpressure_num_objects"]
    return AHEAD_MAX if given in (None, -1) else given


def check_results(results, usual, name):
    """`usual`: what num_returns is of the function where nobody says it."""
    if results == STREAMING and usual != STREAMING:
        raise ValueError(f"num_returns is '{results}', which can only be used with generators; '{name}' is none")


def results_of(function):
    """What num_returns is of a function that says nothing."""
    return STREAMING if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function) else 1
