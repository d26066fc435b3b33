"""The calls that the node knows, for util.state: those that are not done, and runs that have ended."""

from menger.runtime import cluster, current, identities
from menger.runtime.util.entry import Entry

_ENDS = {"task_ended": "FINISHED", "task_failed": "FAILED", "task_lost": "FAILED"}
_ERRORS = {"task_failed": "TASK_EXECUTION_EXCEPTION", "task_lost": "WORKER_DIED"}
# What Ray calls the states of calls that are not done: of functions, and of actors' methods.
_STATES = {"waiting": "PENDING_ARGS_AVAIL", "ready": "PENDING_NODE_ASSIGNMENT", "given": "SUBMITTED_TO_WORKER", "running": "RUNNING"}
_STATES_OF_METHODS = {**_STATES, **dict.fromkeys(("ready", "given"), "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY")}


def known(job):
    opened = current.session()
    under_way = opened.ask("calls")["calls"]  # Before the others: what ends meanwhile is there twice, and not missed.
    workers = {each["index"]: each for each in opened.ask("status")["workers"]}
    events = cluster.timeline()
    made = _constructions(events)
    ended = [_ended(event, event["args"]["id"] in made, job) for event in events if event.get("cat") in _ENDS]
    over = {(each.task_id, each.attempt_number) for each in ended}
    found = [_under_way(each, workers.get(each["worker"], {}), job) for each in under_way]
    return [each for each in found if (each.task_id, each.attempt_number) not in over] + ended


def _under_way(each, worker, job):
    kind = "ACTOR_CREATION_TASK" if each["constructs"] else "ACTOR_TASK" if each["actor"] else "NORMAL_TASK"
    name = f"{each['name']}.__init__" if each["constructs"] else each["name"]
    return Entry(
        task_id=identities.of_text(each["id"]).hex(),
        attempt_number=each["attempt"],
        name=name,
        func_or_class_name=name,
        type=kind,
        state=(_STATES_OF_METHODS if kind == "ACTOR_TASK" else _STATES)[each["state"]],
        actor_id=identities.of_text(each["actor"]).hex() if each["actor"] else None,
        worker_pid=worker.get("process"),
        job_id=job,
        node_id=worker.get("node") or current.session().place.node,
        error_type=None,
    )


def _constructions(events):
    """The ids of calls that made actors: the last run of a worker before an actor had started there."""
    last, found = {}, set()
    for event in sorted(events, key=lambda each: each.get("ts", 0)):
        worker = event["pid"], event["tid"]
        if event.get("cat") in _ENDS:
            last[worker] = event["args"]["id"]
        elif event.get("cat") == "actor_started" and worker in last:
            found.add(last[worker])
    return found


def _ended(event, constructs, job):
    name = f"{event['name']}.__init__" if constructs else event["name"]
    return Entry(
        task_id=identities.of_text(event["args"]["id"]).hex(),
        attempt_number=event["args"]["attempt"],
        name=name,
        func_or_class_name=name,
        type="ACTOR_CREATION_TASK" if constructs else "ACTOR_TASK" if "." in name else "NORMAL_TASK",
        state=_ENDS[event["cat"]],
        actor_id=None,
        worker_pid=None,
        job_id=job,
        node_id=current.session().place.node,
        error_type=_ERRORS.get(event["cat"]),
    )
