"""The lock of a folder that one run writes to.

Invariant: at any moment at most one lock of a folder is held, over all processes of all machines
that see the folder and whose file system passes locks on. The operating system ends the lock of a
process that has died, so nothing that a killed process leaves behind keeps others out.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import warnings
from pathlib import Path

from lowwater.errors import StreamWarning

LOCK_FILE = "_lowwater.lock"
"""The file that is locked where a folder itself cannot be, as on NFS."""
_HELD = (errno.EWOULDBLOCK, errno.EACCES)


class FolderLocked(Exception):
    """Another process holds the lock of a folder."""


class FolderLock:
    """The lock of a folder, held from the start until it is released or the process ends.

    Raises :class:`FolderLocked` if another process holds it.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._descriptor: int | None = None
        try:
            self._descriptor = _locked(folder, os.O_RDONLY)
        except (FolderLocked, PermissionError):
            raise
        except OSError:
            self._descriptor = self._file_locked()

    def _file_locked(self) -> int | None:
        """Lock a file in the folder; warn and return None if the file system has no locks."""
        try:
            return _locked(self._folder / LOCK_FILE, os.O_RDWR | os.O_CREAT)
        except FolderLocked:
            raise
        except OSError as error:
            warnings.warn(
                f"{self._folder} is on a file system without locks ({error.strerror}): make"
                " sure that no other run writes to it",
                StreamWarning,
                stacklevel=4,
            )
            return None

    def release(self) -> None:
        """End the lock; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def __del__(self) -> None:
        self.release()


def _locked(path: Path, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno in _HELD:
            raise FolderLocked from None
        raise
    return descriptor
