"""The nodes of the cluster that this process is in, or the one node that there is."""

import json
import operator
import os

from menger.runtime import node as names
from menger.runtime import options

LABEL = "ray.io/node-id"  # The one that Ray gives by itself: the id of the node.
_NODE_VARIABLE = "MENGER_NODE_ID"
_RESOURCES = {"cpu": "CPU", "gpu": "GPU"}
_LITTLE = 0.0001  # Of what each node has 1 of, "node:ID": ten thousand calls and actors ask for one node at a time.


class Place:
    """Where a session is: `node` is the id of its node, of a program that has joined a cluster what it is called there.

    `labels`, `totals`: of the one node, {name: value} and {resource: amount}; of a cluster's nodes `totals` is None, as others may come.
    `address`: of the cluster's head; "" without one. `process`: who knows of the nodes.
    """

    def __init__(self, node, labels, totals, address="", process=0):
        self.node, self.labels, self.totals = node, labels, totals
        self.address, self.process = address, process


def told_to_workers(labels, totals, address):
    """As of_worker reads it."""
    return json.dumps([labels, totals, address, _machine() if address else ""])


def of_worker(told, name, control):
    """(the Place, whether the driver's process can be asked). `name`: of the session; `control`: what the node's process has said."""
    labels, totals, address, machine = json.loads(told)
    if not address:
        return Place(name, labels, totals), True
    node = os.environ.get(_NODE_VARIABLE, "")
    return Place(node, {LABEL: node}, None, address, int(control.split()[-1])), machine == _machine()


def of_driver(opened, address):
    """The Place of a program that has joined a cluster."""
    own = opened.ask("nodes")["nodes"][0]
    return Place(own["id"], {LABEL: own["id"]}, None, address, opened.driver)


def _machine():
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip() + os.readlink("/proc/self/ns/pid")


def known(opened):
    """What the nodes that live say of themselves: {"id", "name", "address", "resources"} and more, in the order of their ids."""
    return sorted((each for each in opened.ask("nodes")["nodes"] if each["job"] == 0), key=operator.itemgetter("id"))


def own(opened):
    """Of this process's node, or what a program that has joined says of itself; None where there is no such one any longer."""
    return next((each for each in opened.ask("nodes")["nodes"] if each["id"] == opened.place.node), None)


def resources(node):
    """{resource: amount}, by Ray's names."""
    found = {_RESOURCES.get(name, name): amount for name, amount in node["resources"].items() if name != names.OF_ONE + node["id"]}
    if "memory" in found:
        found["memory"] = options.bytes_of_memory(found["memory"])
    return {**found, names.OF_ONE + host_and_port(node)[0]: 1.0}


def internal(name):
    """What nodes call a resource that has this name in Ray."""
    return next((own for own, rays in _RESOURCES.items() if rays == name), name)


def host_and_port(node):
    host, _, port = node["address"].rpartition(":")
    return host.strip("[]"), int(port)


def that_is_meant(resources, opened):
    """Resources of a call, in which one of those that Ray gives each node, "node:HOST", is that by which one is asked for here."""
    meant = {}
    for name, amount in resources.items():
        if name.startswith(names.OF_ONE) and name != names.HEAD:
            host = name.removeprefix(names.OF_ONE)
            name = next((names.OF_ONE + each["id"] for each in known(opened) if host_and_port(each)[0] == host), name)
        meant[name] = amount
    return meant


def asking_for(node):
    """The resources of a call that is to run on the node of that id."""
    return {names.OF_ONE + node: _LITTLE}
