"""What the node says of itself: its resources, actors and what has happened."""

import json
import os
import socket

from menger.runtime import current, names, node, options

_RESOURCES = {"cpu": "CPU", "gpu": "GPU"}
_STORE_PART = 0.3  # Of the machine's memory, where nobody says how large the store shall be.


def memory_without_store(store):
    """Bytes of this machine for what is not in the store of that size, or of the usual one."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(0, whole - (store or int(_STORE_PART * whole)))


def cluster_resources():
    """What init has said that this machine has, and its memory in bytes: the store's, and the rest."""
    status = current.session().ask("status")
    return _resources(status, "total") | _store(status, 0)


def available_resources():
    """What of that nobody has now."""
    status = current.session().ask("status")
    return _resources(status, "free") | _store(status, status["store_bytes"])


def _store(status, used):
    return {"object_store_memory": float(max(0, status["store_bytes_max"] - used)), **dict.fromkeys(node.RESOURCES, 1.0)}


def _resources(status, which):
    found = {_RESOURCES.get(each["name"], each["name"]): each[which] for each in status["resources"]}
    if "memory" in found:
        found["memory"] = options.bytes_of_memory(found["memory"])
    return {name: amount for name, amount in found.items() if amount > 0}


def get_node_ip_address():
    """Everything is here."""
    return node.ADDRESS


def nodes():
    """The one node that there is, with Ray's names for what it has."""
    return [
        {
            "NodeID": current.session().name,
            "Alive": True,
            "NodeManagerAddress": node.ADDRESS,
            "NodeManagerHostname": socket.gethostname(),
            "NodeName": node.ADDRESS,
            "Resources": cluster_resources(),
            "Labels": dict(current.session().labels),
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
