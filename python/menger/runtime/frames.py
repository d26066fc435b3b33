"""What a call finds in its frame: (address, bytes) of what it is, of how its arguments are ordered, and of each that lies by itself."""

import ctypes
import weakref

from menger.runtime import library, session, values


def arguments(flat, shared):
    """(positional ones, those by name). `shared` gets (memory that the call may hold on to, weakly, its index in the frame)."""
    if len(flat) == 4 and not flat[3]:
        return (), {}
    payload, first = values.copied(flat[2], flat[3]), 2
    if payload == session.BY_REFERENCE:
        payload, first = _view(flat, 2, shared), 3
    encoded = values.loads(payload)
    if type(encoded) is tuple:
        return encoded, {}
    positional, keywords, slots = encoded if encoded is not None else ((), {}, ())
    for index, slot in enumerate(slots, first):
        value = session.checked(values.loads(_view(flat, index, shared)))
        if type(slot) is int:
            positional[slot] = value
        else:
            keywords[slot] = value
    return positional, keywords


def _view(flat, index, shared):
    """The bytes of a value; of a large one, those in shared memory."""
    address, size = flat[2 * index], flat[2 * index + 1]
    if size <= session.INLINE_BYTES_MAX:
        return values.copied(address, size)
    memory = values.shared_bytes(address, size)
    shared.append((weakref.ref(memory), index))
    return values.read_only(memory)


def pin_what_is_held(functions, of, frame, shared):
    """Arguments in shared memory that the call has kept, as an actor may, are kept in their place. `of`: the worker's session."""
    for reference, index in shared:
        memory = reference()
        identity = library.Id()
        if memory is not None and functions.frame_object(frame, index, ctypes.byref(identity)):
            memory.pin = of.pin(of.adopt(bytes(identity)))
