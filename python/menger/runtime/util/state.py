"""What there is now, as the part of ray.util.state that the program's own node can say: its actors, tasks, workers, placement groups, the nodes."""

import collections
import operator

from menger.runtime import cluster, current, identities, node
from menger.runtime.util import calls
from menger.runtime.util.entry import Entry
from menger.runtime.util.placement_group import placement_group_table

_ACTOR_STATES = {"pending": "PENDING_CREATION", "alive": "ALIVE", "dead": "DEAD", "restarting": "RESTARTING"}
_COMPARE = {"=": operator.eq, "!=": operator.ne}
_LIMIT = 100


def list_actors(filters=None, limit=_LIMIT, **_without_effect):
    """The first thousand actors, then those that have ended, as far as the timeline has them."""
    status = current.session().ask("status")
    workers = {each["index"]: each for each in status["workers"]}
    found = [_actor(each, workers.get(each["worker"], {})) for each in status["actors"]]
    known = {each.actor_id for each in found}
    for event in cluster.timeline():
        if event.get("cat") == "actor_ended":
            ended = _ended_actor(event["args"])
            if ended.actor_id not in known:
                found.append(ended)
    return _chosen(found, filters, limit)


def _actor(each, worker):
    actor = identities.of_text(each["id"])
    name, _, namespace = each["name"].partition(" @") if each["named"] else ("", "", "")
    made = current.session().made_actors.get(actor, "")
    return Entry(
        actor_id=actor.hex(),
        class_name=made if each["named"] else each["name"],
        name=name,
        ray_namespace=namespace or current.session().namespace,
        state=_ACTOR_STATES[each["state"]],
        pid=worker.get("process"),
        node_id=worker.get("node") or current.session().place.node,
        job_id=_job(),
        num_restarts=each["restarts"],
    )


def _ended_actor(told):
    """Of an actor that has ended the node keeps its name, or else its class; this process knows the classes of those that it has made."""
    actor, made = identities.of_text(told["id"]), current.session().made_actors
    return Entry(
        actor_id=actor.hex(),
        class_name=made.get(actor, told["name"]),
        name=told["name"] if made.get(actor, told["name"]) != told["name"] else "",
        ray_namespace=current.session().namespace,
        state="DEAD",
        pid=None,
        node_id=current.session().place.node,
        job_id=_job(),
        num_restarts=0,
    )


def get_actor(id, **_without_effect):
    """The actor of that id, or None."""
    return next(iter(list_actors([("actor_id", "=", id)])), None)


def list_tasks(filters=None, limit=_LIMIT, **_without_effect):
    """The first ten thousand calls that are not done, then those that have run, as far as the timeline has them."""
    return _chosen(calls.known(_job()), filters, limit)


def get_task(id, **_without_effect):
    """The call of that id, or None: of several runs a list."""
    found = list_tasks([("task_id", "=", getattr(id, "task_id", lambda: id)() if not isinstance(id, str) else id)])
    return found if len(found) > 1 else next(iter(found), None)


def summarize_tasks(**_without_effect):
    """How many calls of each name are in which state."""
    counts = collections.defaultdict(collections.Counter)
    kinds, total = {}, collections.Counter()
    for each in calls.known(_job()):
        counts[each.name][each.state] += 1
        kinds[each.name] = each.type
        total[each.type] += 1
    summary = {
        name: {"func_or_class_name": name, "type": kinds[name], "state_counts": dict(states)} for name, states in counts.items()
    }
    return {
        "cluster": {
            "summary": summary,
            "total_tasks": total["NORMAL_TASK"],
            "total_actor_tasks": total["ACTOR_TASK"],
            "total_actor_scheduled": total["ACTOR_CREATION_TASK"],
            "summary_by": "func_name",
        }
    }


def summarize_actors(**_without_effect):
    """How many actors of each class are in which state."""
    counts = collections.defaultdict(collections.Counter)
    for each in list_actors(limit=None):
        counts[each.class_name][each.state] += 1
    summary = {name: {"class_name": name, "state_counts": dict(states)} for name, states in counts.items()}
    total = sum(sum(states.values()) for states in counts.values())
    return {"cluster": {"summary": summary, "total_actors": total, "summary_by": "class"}}


def list_workers(filters=None, limit=_LIMIT, **_without_effect):
    own = current.session().place.node
    made = [
        Entry(worker_id=str(each["index"]), is_alive=True, worker_type="WORKER", pid=each["process"], node_id=each["node"] or own)
        for each in current.session().ask("status")["workers"]
    ]
    return _chosen(made, filters, limit)


def list_jobs(filters=None, limit=_LIMIT, **_without_effect):
    """The one that there is."""
    made = Entry(job_id=_job(), type="DRIVER", status="RUNNING", driver_info={"pid": str(current.session().driver)})
    return _chosen([made], filters, limit)


def list_nodes(filters=None, limit=_LIMIT, **_without_effect):
    made = [
        Entry(
            node_id=each["NodeID"],
            node_ip=each["NodeManagerAddress"],
            node_name=each["NodeName"],
            is_head_node=node.HEAD in each["Resources"],
            state="ALIVE",
            resources_total=each["Resources"],
            labels=each["Labels"],
        )
        for each in cluster.nodes()
    ]
    return _chosen(made, filters, limit)


def get_node(id, **_without_effect):
    """The node, if that is its id; else None."""
    return next(iter(list_nodes([("node_id", "=", id)])), None)


def list_placement_groups(filters=None, limit=_LIMIT, **_without_effect):
    """Those that this process has made."""
    return _chosen([Entry(each) for each in placement_group_table().values()], filters, limit)


def get_placement_group(id, **_without_effect):
    """The group of that id, or None."""
    return next(iter(list_placement_groups([("placement_group_id", "=", id)])), None)


def _job():
    return current.session().name[:8]


def _chosen(entries, filters, limit):
    for key, compare, value in filters or ():
        if compare not in _COMPARE:
            raise ValueError(f"filters has {compare!r}; it must be '=' or '!='")
        key = key.lower()
        entries = [each for each in entries if key in each and _COMPARE[compare](str(each[key]).lower(), str(value).lower())]
    return entries[:limit]
