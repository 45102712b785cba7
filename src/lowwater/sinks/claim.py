"""A folder claimed by one writer: a lock that ends with the process that holds it.

Invariant: at any moment at most one claim on a folder is held, by any process of any machine that
sees the folder and whose file system passes locks on. The operating system ends the lock of a
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
"""The file that is locked where folders themselves cannot be, as on NFS."""
_HELD = (errno.EWOULDBLOCK, errno.EACCES)


class FolderTaken(Exception):
    """Somebody else holds the claim on a folder."""


class Claim:
    """The claim on a folder, held until it is released or the process ends."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._descriptor: int | None = None
        try:
            self._descriptor = _locked(folder, os.O_RDONLY)
        except (FolderTaken, PermissionError):
            raise
        except OSError:
            self._descriptor = self._file_locked()

    def _file_locked(self) -> int | None:
        """A file in the folder, locked; None, with a warning, where there are no locks at all."""
        try:
            return _locked(self._folder / LOCK_FILE, os.O_RDWR | os.O_CREAT)
        except FolderTaken:
            raise
        except OSError as error:
            warnings.warn(
                f"{self._folder} is on a file system without locks ({error.strerror}): take care"
                " that no other run writes to it",
                StreamWarning,
                stacklevel=4,
            )
            return None

    def release(self) -> None:
        """Let others have the folder."""
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
            raise FolderTaken from None
        raise
    return descriptor
