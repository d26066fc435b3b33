"""Where servers of this host are found: a port is the name of a socket in a folder of this user's."""

import os
import random
import socket
import stat
import tempfile

_HERE = ("localhost", "127.0.0.1", "::1", "[::1]", "0.0.0.0", "[::]", "")


def folder():
    """Made if need be, for this user alone."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.path.isdir(base) and os.access(base, os.W_OK):
        path = os.path.join(base, "menger-replay")
    else:
        path = os.path.join(tempfile.gettempdir(), f"menger-replay-{os.getuid()}")
    os.makedirs(path, mode=0o700, exist_ok=True)
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise RuntimeError(f"'{path}' must be a folder of this user's that nobody else may enter (mode 700)")
    return path


def socket_of_port(port):
    if not 0 < port < 65536:
        raise ValueError(f"port is {port}; it must be 1 to 65535")
    return os.path.join(folder(), f"{port}.sock")


def socket_of(address):
    """The socket of "localhost:<port>". Raises ValueError for another form, or another host."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError(f"a server's address is '{address}'; it must be 'localhost:<port>'")
    host = host.split("://")[-1]
    if host not in (*_HERE, socket.gethostname()):
        raise ValueError(
            f"the server at '{address}' is on another host; menger.replay serves the processes of one host, by shared"
            " memory: use 'localhost:<port>'"
        )
    return socket_of_port(int(port))


def free_ports():
    """Ports that nobody has, as far as one can see, in no order; not too many."""
    for port in random.SystemRandom().sample(range(20_000, 60_000), 64):
        if not os.path.exists(socket_of_port(port)):
            yield port
