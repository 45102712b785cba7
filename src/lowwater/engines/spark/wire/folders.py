"""Folders on a machine that only this user's processes can write to."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def private_folder(parent: Path, name: str) -> Path | None:
    """A folder of this user's own; None if there is none and none can be made.

    Others may have made one of the same name in a place open to all; that one is not used.
    """
    folder = parent / f"{name}-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
    except OSError:
        return None
    own = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid()
    return folder if own and not about.st_mode & 0o022 else None
