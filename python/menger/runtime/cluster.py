"""What the node says of itself: its resources, actors and what has happened."""

import json
import os
import socket

from menger.runtime import current, names

_ADDRESS = "127.0.0.1"
_RESOURCES = {"cpu": "CPU", "gpu": "GPU"}


def cluster_resources():
    """What init has said that this machine has, and its memory in bytes: the store's, and the rest."""
    status = current.session().ask("status")
    return _resources(status, "total") | _memory(status, 0)


def available_resources():
    """What of that nobody has now. Of the memory apart from the store nobody counts who has it."""
    status = current.session().ask("status")
    return _resources(status, "free") | _memory(status, status["store_bytes"])


def _memory(status, used):
    store, pages = status["store_bytes_max"], os.sysconf("SC_PHYS_PAGES")
    memory = os.sysconf("SC_PAGE_SIZE") * pages - store
    return {"memory": float(memory), "object_store_memory": float(max(0, store - used)), f"node:{_ADDRESS}": 1.0}


def _resources(status, which):
    found = {_RESOURCES.get(each["name"], each["name"]): each[which] for each in status["resources"]}
    return {name: amount for name, amount in found.items() if amount > 0}


def get_node_ip_address():
    """Everything is here."""
    return _ADDRESS


def nodes():
    """The one node that there is, with Ray's names for what it has."""
    return [
        {
            "NodeID": current.session().name,
            "Alive": True,
            "NodeManagerAddress": _ADDRESS,
            "NodeManagerHostname": socket.gethostname(),
            "NodeName": _ADDRESS,
            "Resources": cluster_resources(),
            "Labels": {},
        }
    ]


def list_named_actors(all_namespaces=False):
    """The names of living actors in this namespace; of all, [{"name": ..., "namespace": ...}]."""
    owner = current.session()
    found = [names.parts(each["name"], owner) for each in owner.ask("status")["actors"] if each["named"] and each["state"] != "dead"]
    if all_namespaces:
        return [{"name": name, "namespace": namespace} for name, namespace in found]
    return [name for name, namespace in found if namespace == owner.namespace]


def timeline(filename=None):
    """What has run when, as chrome://tracing and Perfetto show it: a list, or nothing where a file's name is given."""
    found = current.session().ask("timeline")["traceEvents"]
    if filename is None:
        return found
    with open(filename, "w") as file:
        json.dump(found, file)
    return None
