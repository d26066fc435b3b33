"""What there is now, as the part of ray.util.state that one node can say: its actors, tasks, workers, placement groups."""

import operator

from menger.runtime import cluster, current, identities
from menger.runtime.util.placement_group import placement_group_table

_ACTOR_STATES = {"alive": "ALIVE", "dead": "DEAD", "restarting": "RESTARTING"}
_TASK_STATES = {"task_ended": "FINISHED", "task_failed": "FAILED", "task_lost": "FAILED"}
_COMPARE = {"=": operator.eq, "!=": operator.ne}
_LIMIT = 100


class Entry(dict):
    """One of a list: what is known of it by names, as attributes, too."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def list_actors(filters=None, limit=_LIMIT, **_without_effect):
    """The first thousand actors."""
    status = _status()
    processes = {each["index"]: each["process"] for each in status["workers"]}
    return _chosen([_actor(each, processes) for each in status["actors"]], filters, limit)


def _actor(each, processes):
    name, _, namespace = each["name"].partition(" @") if each["named"] else ("", "", "")
    return Entry(
        actor_id=identities.of_text(each["id"]).hex(),
        class_name="" if each["named"] else each["name"],
        name=name,
        ray_namespace=namespace or current.session().namespace,
        state=_ACTOR_STATES.get(each["state"], "PENDING_CREATION"),
        pid=processes.get(each["worker"]),
        node_id=current.session().name,
        job_id=_job(),
        num_restarts=each["restarts"],
    )


def get_actor(id, **_without_effect):
    """The actor of that id, or None."""
    return next(iter(list_actors([("actor_id", "=", id)])), None)


def list_tasks(filters=None, limit=_LIMIT, **_without_effect):
    """Those that run, then those that have run, as far as the timeline has them; not those that wait."""
    status = _status()
    made = [_task(each["running"], "RUNNING", each["process"]) for each in status["workers"] if each["running"]]
    for event in cluster.timeline():
        if event.get("cat") in _TASK_STATES:
            made.append(_task(event["name"], _TASK_STATES[event["cat"]], None))
    return _chosen(made, filters, limit)


def _task(name, state, process):
    return Entry(name=name, func_or_class_name=name, state=state, worker_pid=process, job_id=_job())


def list_workers(filters=None, limit=_LIMIT, **_without_effect):
    made = [
        Entry(worker_id=str(each["index"]), is_alive=True, worker_type="WORKER", pid=each["process"], node_id=current.session().name)
        for each in _status()["workers"]
    ]
    return _chosen(made, filters, limit)


def list_nodes(filters=None, limit=_LIMIT, **_without_effect):
    node = cluster.nodes()[0]
    made = Entry(
        node_id=node["NodeID"],
        node_ip=node["NodeManagerAddress"],
        node_name=node["NodeName"],
        is_head_node=True,
        state="ALIVE",
        resources_total=node["Resources"],
        labels={},
    )
    return _chosen([made], filters, limit)


def list_placement_groups(filters=None, limit=_LIMIT, **_without_effect):
    """Those that this process has made."""
    return _chosen([Entry(each) for each in placement_group_table().values()], filters, limit)


def _status():
    return current.session().ask("status")


def _job():
    return current.session().name[:8]


def _chosen(entries, filters, limit):
    for key, compare, value in filters or ():
        if compare not in _COMPARE:
            raise ValueError(f"filters has {compare!r}; it must be '=' or '!='")
        entries = [each for each in entries if key in each and _COMPARE[compare](str(each[key]).lower(), str(value).lower())]
    return entries[:limit]
