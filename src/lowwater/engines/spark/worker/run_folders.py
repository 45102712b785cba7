"""Folders hold the files of runs on one machine; only this user's processes can write to them."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from dataclasses import dataclass
from pathlib import Path

FORGOTTEN = 24 * 3_600
"""Seconds after which the files of a run may be removed by any other run."""


@dataclass(frozen=True)
class RunFolders:
    """A folder of this user's own, with a folder for each run in it.

    Nothing here raises: without such a folder, or with a full disk, work takes longer, and its
    results are the same.
    """

    parent: Path
    name: str

    @property
    def home(self) -> Path | None:
        """The user's folder, made if need be; None if that is not possible.

        In a place open to all, another user may have made one of the same name: it is not used.
        """
        folder = self.parent / f"{self.name}-{os.getuid()}"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            about = folder.lstat()
        except OSError:
            return None
        own = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid()
        return folder if own and not about.st_mode & 0o022 else None

    def of(self, run: str) -> Path | None:
        """Return the folder of a run, which may have to be made; None if there can be none."""
        home = self.home if run else None
        return None if home is None else home / run

    def forget(self, run: str) -> None:
        """Remove the folder of a run."""
        folder = self.of(run)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> None:
        """Remove the folders of runs that were killed long ago."""
        home = self.home
        with contextlib.suppress(OSError):
            for each in home.iterdir() if home is not None else ():
                if time.time() - each.stat().st_mtime > FORGOTTEN:
                    shutil.rmtree(each, ignore_errors=True)
