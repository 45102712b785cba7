"""What the processes of a run use, read from ``/proc``: this one, its JVM and Python's workers."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


def family(parents: Iterable[tuple[int, int]], root: int) -> set[int]:
    """A process and all that descend from it, out of pairs of process and parent."""
    children: dict[int, list[int]] = {}
    for process, parent in parents:
        children.setdefault(parent, []).append(process)
    found, ahead = set(), [root]
    while ahead:
        process = ahead.pop()
        found.add(process)
        ahead += [child for child in children.get(process, []) if child not in found]
    return found


def processes() -> set[int]:
    """This process and everything it started."""
    pairs = []
    for path in PROC.glob("[0-9]*"):
        fields = _stat(int(path.name))
        if fields:
            pairs.append((int(path.name), int(fields[1])))
    return family(pairs, os.getpid())


def cpu_seconds() -> float:
    """Processor time used so far, that of ended children included."""
    ticks = 0
    for process in processes():
        fields = _stat(process)
        if fields:
            ticks += sum(int(each) for each in fields[11:15])
    return ticks / _TICKS


def memory() -> int:
    """Bytes held in memory now; what processes share is counted once."""
    return sum(_held(process) for process in processes())


@dataclass
class Peak:
    """The most memory that was seen."""

    bytes: int = 0


@contextmanager
def watching(seconds: float = 0.25) -> Iterator[Peak]:
    """Look at the memory again and again while something runs."""
    peak, done = Peak(), threading.Event()

    def watch() -> None:
        while not done.wait(seconds):
            peak.bytes = max(peak.bytes, memory())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def _stat(process: int) -> list[str]:
    """The fields after the name, which may hold anything; none if the process is gone."""
    try:
        text = (PROC / str(process) / "stat").read_text(encoding="utf-8")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _held(process: int) -> int:
    try:
        text = (PROC / str(process) / "smaps_rollup").read_text(encoding="utf-8")
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))
