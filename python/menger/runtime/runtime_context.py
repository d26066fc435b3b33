"""What a program may ask about where it runs, as ray.runtime_context."""

import ctypes
import inspect
import os
import threading
import warnings

from menger.runtime import accelerators, current, library
from menger.runtime.current import running
from menger.runtime.identities import Identity

_RESOURCES = {"cpu": "CPU", "gpu": "GPU"}


class Call:
    """A call that a worker does. What there is to know of it is asked when somebody wants to."""

    # One is made for each call, so what most do not have is the class's.
    _about = None
    function = None  # What is called,
    told = {}  # and what its options say to the worker.
    devices = {}  # The accelerators that it has: their names by their kinds,
    runner = None  # Who runs it, where that is not this thread.
    retried = None  # The exceptions for which it is run again; None: as it was made.
    # A thread of the program's may ask while the call ends, and what is asked goes. The end waits for who has begun to.
    _asking = threading.Lock()
    _is_asked = False

    def __init__(self, functions, frame):
        self._functions, self._frame = functions, frame

    def about(self):
        """None once the call is over, unless somebody has asked before."""
        if self._about is None:
            with self._asking:
                self._is_asked = True
                if self._frame is not None:
                    found = library.CallAbout()
                    self._functions.frame_about(self._frame, ctypes.byref(found))
                    self._about = About(found)
        return self._about

    def is_cancelled(self):
        with self._asking:
            self._is_asked = True
            return self._frame is not None and bool(self._functions.frame_is_cancelled(self._frame))

    def make(self, make, *arguments):
        """What makes a call, on a thread that does several: so that the call made is this one's."""
        with self._asking:
            self._is_asked = True
            if self._frame is None:  # Something goes on that the call has left.
                return make(*arguments)
            self._functions.frame_enter(self._frame)
            try:
                return make(*arguments)
            finally:
                self._functions.frame_leave(self._frame)

    def end(self):
        self._frame = None
        if self._is_asked:
            with self._asking:
                pass


class About:
    def __init__(self, found):
        self.task, self.parent, self.actor, self.actor_object, self.group = (
            bytes(each) for each in (found.task, found.parent, found.actor, found.actor_object, found.group)
        )
        self.name = ctypes.string_at(found.name.data, found.name.size).decode(errors="replace")
        self.resources = _amounts(ctypes.string_at(found.resources.data, found.resources.size).decode())
        self.is_further_run = bool(found.is_further_run)


def _amounts(text):
    """The resources of "cpu=1.000 gpu=2.000 @0"; "": one CPU. What follows a ";" says on which node."""
    text = text.partition(";")[0]
    if not text:
        return {"CPU": 1.0}
    amounts = dict(part.split("=") for part in text.split() if "=" in part)
    # The memory is told to the byte by the options.
    return {_RESOURCES.get(name, name): float(amount) for name, amount in amounts.items() if float(amount) > 0 and name != "memory"}


class Actor:
    """The actor that lives in this process. `about`: what there is to know of the call that makes it; `told`: its options."""

    def __init__(self, about, told, description):
        self.identity, self.object, self.name, self.told = about.actor, about.actor_object, told.get("name", ""), told
        self.resources, self.group = about.resources, about.group
        self.has_coroutines = False
        self.devices = {}
        self.is_further_run, self.description = about.is_further_run, description


class RuntimeContext:
    """Of the driver, or of the call that asks. Identities are texts; what there is none of is None."""

    def __init__(self, session):
        self._session = session

    def get_job_id(self):
        return self._job().hex()

    def get_node_id(self):
        """Of a program that has joined a cluster, and so is on none of its nodes, what it is called among them."""
        return self._session.place.node

    def get_session_name(self):
        return f"session_{self._session.name}"

    def get_worker_id(self):
        return self._worker().hex()

    def get_task_id(self):
        about = _about()
        return about and about.task.hex()

    def get_task_name(self):
        about = _about()
        return about and about.name

    def get_task_function_name(self):
        """The function that is called, with its module, and its class if it is a method."""
        call = running.get()
        function = call and call.function
        if function is None:
            return None
        name = function.__qualname__  # Which function it was made in is said of coroutines alone, as in Ray.
        return f"{function.__module__}.{name if inspect.iscoroutinefunction(function) else name.rpartition('<locals>.')[2]}"

    def get_actor_id(self):
        actor = self._session.actor
        return actor and actor.identity.hex()

    def get_actor_name(self):
        """ "" of an actor without a name."""
        actor = self._session.actor
        return actor and actor.name

    def get_placement_group_id(self):
        group = self._group()
        return group and group.hex()

    def get_assigned_resources(self):
        """What the call, or the actor, has for itself: {"CPU": 1.0}."""
        actor, about, call = self._session.actor, _about(), running.get()
        if actor is None and about is None:
            return {}
        told = actor.told if actor is not None else call.told
        memory = {"memory": told["memory"]} if "memory" in told else {}
        return {**(actor.resources if actor is not None else about.resources), **memory}

    @property
    def was_current_actor_reconstructed(self):
        actor = self._session.actor
        return actor is not None and actor.is_further_run

    @property
    def current_actor(self):
        """A handle of the actor that asks, which does not keep it."""
        from menger.runtime.actor import ActorHandle

        actor = self._session.actor
        if actor is None:
            raise RuntimeError("current_actor is asked for outside of an actor")
        return ActorHandle(self._session, actor.identity, actor.object, actor.description, is_weak=True)

    @property
    def namespace(self):
        return self._session.namespace

    def get_node_labels(self):
        return dict(self._session.place.labels)

    @property
    def gcs_address(self):
        """Of the head of the cluster; "" without one."""
        return self._session.place.address

    def get_dashboard_url(self):
        """There is none."""
        return ""

    def get_accelerator_ids(self):
        """The names of all that the call, or the actor, has, by what Ray calls their kinds."""
        held = _devices(self._session, running.get())
        return {kind: list(held.get(kind, [])) for kind in accelerators.VISIBLE}

    def is_canceled(self):
        """Whether the call that asks was cancelled. Coroutines are told by asyncio.CancelledError."""
        if self._session.actor is not None and self._session.actor.has_coroutines:
            raise RuntimeError("This method is not supported in an async actor.")
        call = running.get()
        return call is not None and call.is_cancelled()

    def get(self):
        """All of it that there is, by names."""
        found = {"job_id": self._job(), "node_id": Identity.fromhex(self.get_node_id()), "namespace": self.namespace}
        about, actor = _about(), self._session.actor
        if about is not None:
            found["task_id"] = Identity(about.task)
        if actor is not None:
            found["actor_id"] = Identity(actor.identity)
        return found

    # Names that Ray has left behind, with identities that are no texts.
    @property
    def job_id(self):
        return _deprecated("get_job_id", self._job())

    @property
    def node_id(self):
        return _deprecated("get_node_id", Identity.fromhex(self.get_node_id()))

    @property
    def worker_id(self):
        return _deprecated("get_worker_id", self._worker())

    @property
    def task_id(self):
        about = _about()
        return _deprecated("get_task_id", about and Identity(about.task))

    @property
    def actor_id(self):
        actor = self._session.actor
        return _deprecated("get_actor_id", actor and Identity(actor.identity))

    @property
    def current_placement_group_id(self):
        return _deprecated("get_placement_group_id", self._group())

    def _job(self):
        return Identity.fromhex(self._session.name[:8])

    def _worker(self):
        return Identity(Identity.fromhex(self._session.name[:24]) + os.getpid().to_bytes(4, "big"))

    def _group(self):
        actor = self._session.actor
        about = actor if actor is not None else _about()
        return Identity(about.group) if about is not None and any(about.group) else None


def get_gpu_ids():
    """The GPUs that the call, or the actor, has: numbers, or what else CUDA_VISIBLE_DEVICES calls them."""
    opened, call = current.session(), running.get()
    names = _devices(opened, call).get(accelerators.GPU, [])
    return [int(name) if name.isdigit() else name for name in names]


def _devices(opened, call):
    return opened.actor.devices if opened.actor is not None else call.devices if call is not None else {}


def _about():
    call = running.get()
    return call and call.about()


def _deprecated(instead, value):
    warnings.warn(f"Use {instead}() instead", DeprecationWarning, stacklevel=3)
    return value


def get_runtime_context():
    return RuntimeContext(current.session())


def current_group():
    """(reference, bundles) of the placement group that the call or the actor runs in; None if in none."""
    opened, call = current.session(), running.get()
    group = RuntimeContext(opened)._group()
    if group is None:
        return None
    told = opened.actor.told if opened.actor is not None else call.told
    return opened.adopt(group), told["bundles"]
