"""Ids of workers that a command starts: the same after a restart, and never those of two that run at once."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import PurePath
from typing import Final

_SAME_MAX: Final = 1_000


@contextmanager
def held_member_id(group: str, program: str) -> Iterator[str]:
    """Yield a member id that no other process of this host has in the same group, for as long as a `with` block runs.

    It is the name of the host and of the program, such as `web-1-worker`. While another process has that, it is
    `web-1-worker-2`, and so on. The kernel frees an id when its process ends, however it ends, so that a worker that
    is started again is the same member. What is bound is the name of a socket in Linux' abstract namespace, so no file
    is left behind. Other systems have no such names, and the process id takes the place of the program there.

    Args:
        program: the worker's program; only the last part of its path counts.
    """
    host = socket.gethostname()
    name = f"{host}-{PurePath(program).name}"
    for number in range(1, _SAME_MAX + 1):
        member_id = name if number == 1 else f"{name}-{number}"
        try:
            holder = _hold(f"{group}\0{member_id}")
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                continue
            break
        with holder:
            yield member_id
        return
    yield f"{host}-{os.getpid()}"


def _hold(name: str) -> socket.socket:
    """Bind a socket to a name, which no other process can do until it is closed.

    Raises:
        OSError: another one has it, or there are no such names here.
    """
    if sys.platform != "linux":
        raise OSError(errno.EOPNOTSUPP, "no abstract sockets")
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        holder.bind(f"\0heartwheel-beats/{blake2b(name.encode(), digest_size=16).hexdigest()}")
    except OSError:
        holder.close()
        raise
    return holder
