"""Folders on a machine that only this user's processes can write to."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def private_folder(parent: Path, name: str) -> Path | None:
    """Return a folder of this user's own, made if need be; None if that is not possible.

    In a place open to all, another user may have made one of the same name: it is not used.
    """
    folder = parent / f"{name}-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
    except OSError:
        return None
    own = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid()
    return folder if own and not about.st_mode & 0o022 else None
