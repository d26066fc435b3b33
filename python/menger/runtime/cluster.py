"""What the node says of itself, and of others: resources, actors and what has happened."""

import collections
import json
import os
import socket

from menger.runtime import current, members, names, node, options

_RESOURCES = {"cpu": "CPU", "gpu": "GPU"}
_STORE_PART = 0.3  # Of the machine's memory, where nobody says how large the store shall be.


def memory_without_store(store):
    """Bytes of this machine for what is not in the store of that size, or of the usual one."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(0, whole - (store or int(_STORE_PART * whole)))


def cluster_resources():
    """What init has said that this machine has, and its memory in bytes: the store's, and the rest. Of a cluster what its nodes have."""
    opened = current.session()
    if opened.place.address:
        return _sum(members.known(opened))
    status = opened.ask("status")
    return _resources(status, "total") | _store(status, 0)


def available_resources():
    """What of that nobody has now.

    Of a cluster what this program does not use: other programs may, so there can be less. Only the machine of the program can tell.
    """
    opened = current.session()
    status = opened.ask("status")
    if not opened.place.address:
        return _resources(status, "free") | _store(status, status["store_bytes"])
    used = {each["name"]: each["amount"] for each in status["borrowed"]}
    left = {name: amount - used.get(members.internal(name), 0) for name, amount in _sum(members.known(opened)).items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def _sum(nodes):
    total = collections.Counter()
    for each in nodes:
        total.update(members.resources(each))
    return dict(total)


def _store(status, used):
    return {"object_store_memory": float(max(0, status["store_bytes_max"] - used)), **dict.fromkeys(node.RESOURCES, 1.0)}


def _resources(status, which):
    found = {_RESOURCES.get(each["name"], each["name"]): each[which] for each in status["resources"]}
    if "memory" in found:
        found["memory"] = options.bytes_of_memory(found["memory"])
    return {name: amount for name, amount in found.items() if amount > 0}


def get_node_ip_address():
    """Of this process's node, or of the program in a cluster: by which the other nodes reach it."""
    opened = current.session()
    own = members.own(opened) if opened.place.address else None
    return node.ADDRESS if own is None else members.host_and_port(own)[0]


def nodes():
    """The nodes that live, with Ray's names for what they have: those of the cluster, or the one that there is. Programs are none."""
    opened = current.session()
    if opened.place.address:
        return [_of_cluster(each) for each in members.known(opened)]
    return [
        {
            "NodeID": opened.place.node,
            "Alive": True,
            "NodeManagerAddress": node.ADDRESS,
            "NodeManagerHostname": socket.gethostname(),
            "NodeName": node.ADDRESS,
            "Resources": cluster_resources(),
            "Labels": dict(opened.place.labels),
        }
    ]


def _of_cluster(member):
    host, port = members.host_and_port(member)
    return {
        "NodeID": member["id"],
        "Alive": True,
        "NodeManagerAddress": host,
        "NodeManagerHostname": member["name"] or host,  # What its machine is called it does not say.
        "NodeManagerPort": port,
        "NodeName": member["name"] or host,
        "Resources": members.resources(member),
        "Labels": {members.LABEL: member["id"]},
    }


def list_named_actors(all_namespaces=False):
    """The names of living actors in this namespace; of all, [{"name": ..., "namespace": ...}]."""
    owner = current.session()
    full = set(owner.ask("names")["names"]) if owner.place.address else set()
    if owner.driver is not None:  # Those of the program alone are known on its machine.
        full |= {each["name"] for each in owner.ask("status")["actors"] if each["named"] and each["state"] != "dead"}
    found = sorted(names.parts(each, owner) for each in full)
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
