"""How the program and its workers write what they log, as ray.LoggingConfig: each line says what wrote it."""

import dataclasses
import json
import logging
import os
import sys

from menger.runtime import current, runtime_context
from menger.runtime.output import LOGGING_VARIABLE as VARIABLE

_ENCODINGS = ("TEXT", "JSON")
_ATTRIBUTES = ("args", "created", "exc_info", "exc_text", "filename", "funcName", "levelname", "levelno", "lineno", "message", "module",
               "msecs", "msg", "name", "pathname", "process", "processName", "relativeCreated", "stack_info", "thread", "threadName",
               "taskName")  # fmt: skip


@dataclasses.dataclass
class LoggingConfig:
    """Of init: `encoding` "TEXT" or "JSON"; `additional_log_standard_attrs`: further attributes of a logging.LogRecord."""

    encoding: str = "TEXT"
    log_level: str = "INFO"
    additional_log_standard_attrs: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        if self.encoding not in _ENCODINGS:
            raise ValueError(f"Invalid encoding type: {self.encoding!r}; it must be one of {', '.join(_ENCODINGS)}")
        for each in self.additional_log_standard_attrs:
            if each not in _ATTRIBUTES:
                raise ValueError(f"additional_log_standard_attrs has {each!r}; there are: {', '.join(_ATTRIBUTES)}")

    def apply(self):
        """In this process, instead of what its root logger did before."""
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Formatter(self))
        root = logging.getLogger()
        root.handlers[:] = [handler]
        root.setLevel(self.log_level)


def variables(config):
    """What tells workers."""
    return {VARIABLE: json.dumps(dataclasses.asdict(config))}


def apply_in_worker():
    LoggingConfig(**json.loads(os.environ.pop(VARIABLE))).apply()


class _Formatter(logging.Formatter):
    def __init__(self, config):
        super().__init__()
        self._config = config

    def format(self, record):
        usual = super().format(record)  # The message, and the traceback where there is one.
        fields = {**_context(), **{name: getattr(record, name, None) for name in self._config.additional_log_standard_attrs}}
        fields["timestamp_ns"] = int(record.created * 1e9)
        time = self.formatTime(record)
        if self._config.encoding == "JSON":
            place = {"filename": record.filename, "lineno": record.lineno}
            return json.dumps({"asctime": time, "levelname": record.levelname, "message": usual, **place, **fields}, default=str)
        more = " ".join(f"{name}={value}" for name, value in fields.items())
        return f"{time}\t{record.levelname} {record.filename}:{record.lineno} -- {usual} {more}"


def _context():
    """Which job, process, actor and call logs."""
    if current.opened() is None:
        return {}
    context = runtime_context.RuntimeContext(current.opened())
    found = {
        "job_id": context.get_job_id(),
        "worker_id": context.get_worker_id(),
        "node_id": context.get_node_id(),
        "actor_id": context.get_actor_id(),
        "actor_name": context.get_actor_name(),
        "task_id": context.get_task_id(),
        "task_name": context.get_task_name(),
    }
    return {name: value for name, value in found.items() if value}
