"""Locks that a fork waits for, so that the child can go on whatever other threads of its parent were doing.

They are made, and the fork is told of them, before anything that takes them is imported: a fork that has begun to wait
for one learns of no other. It takes both, in this order; so does whoever needs both.
"""

import os
import threading
from contextlib import suppress
from typing import Final

__all__ = ["COMPILING", "LOADING"]

#: Held while modules are loaded at first use. The interpreter locks a module that is being imported, and a child that
#: was forked meanwhile could never import it.
LOADING: Final = threading.RLock()
#: Held while a kernel is compiled or tested: a child that began in the middle of either would have the compiler's own
#: locks, and this one, held by a thread that it does not have.
COMPILING: Final = threading.RLock()


def _hold() -> None:
    LOADING.acquire()
    COMPILING.acquire()


def _release() -> None:
    # They are not held after a fork that had begun before this module was there.
    with suppress(RuntimeError):
        COMPILING.release()
        LOADING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_release)
