"""Temporary folders are removed when their process ends, or later by others if it was killed.

A folder's name holds the id of the process that made it. Invariant: a folder is removed by others
only if no process with that id is alive, so a folder in use is never touched.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path

_NAME = re.compile(r"lowwater-[a-z]+-(\d+)-[a-z0-9_]+")


def scratch_folder(what: str, parent: str | Path | None = None) -> Path:
    """Make a temporary folder for this process; ``what`` is a word for its use.

    The folder is removed when the process ends. ``parent`` is the folder it is made in, the
    system's folder for temporary files if not given.
    """
    home = Path(parent or tempfile.gettempdir())
    sweep(home)
    folder = Path(tempfile.mkdtemp(prefix=f"lowwater-{what}-{os.getpid()}-", dir=home))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def sweep(home: Path) -> None:
    """Remove this user's folders of processes that have ended; once in a process and folder."""
    with contextlib.suppress(OSError):
        for path in home.iterdir():
            named = _NAME.fullmatch(path.name)
            if named and not _alive(int(named[1])) and _mine(path):
                shutil.rmtree(path, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it is another user's
    return True


def _mine(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.getuid() and not path.is_symlink()
    except OSError:
        return False
