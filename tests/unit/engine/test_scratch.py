"""Temporary folders: of ended processes they are swept up, of living ones they stay."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lowwater.engines import scratch

MAKE = "from lowwater.engines.scratch import scratch_folder; print(scratch_folder('run', {!r}))"


def made_by_another(home: Path, then: str = "") -> Path:
    """A folder made by a process that has ended, by itself or as ``then`` says."""
    code = MAKE.format(str(home)) + f"; {then}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    return Path(done.stdout.strip())


def test_a_folder_goes_with_its_process(tmp_path):
    folder = made_by_another(tmp_path)
    assert folder.parent == tmp_path
    assert not folder.exists()


def test_a_folder_of_a_killed_process_is_removed_by_the_next_one(tmp_path):
    kill = "import os, sys; sys.stdout.flush(); os.kill(os.getpid(), 9)"
    left = made_by_another(tmp_path, kill)
    assert left.is_dir()
    made_by_another(tmp_path)
    assert not left.exists()


def test_folders_of_living_processes_and_of_others_stay(tmp_path):
    mine = scratch.scratch_folder("run", tmp_path)
    parents = tmp_path / f"lowwater-run-{os.getppid()}-abc"
    others = tmp_path / "somebody-else-1-abc"
    for folder in (parents, others):
        folder.mkdir()
    made_by_another(tmp_path)
    assert mine.is_dir()
    assert parents.is_dir()
    assert others.is_dir()
