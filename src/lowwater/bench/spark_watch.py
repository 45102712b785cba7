"""What the processes of a run use, read from ``/proc``: this one, its JVM and Python's workers."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
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


@dataclass
class Usage:
    """What was used, as far as it was seen."""

    cpu: float = 0.0
    """Processor seconds of all processes, also of those that have ended."""
    memory: int = 0
    """The most bytes held at once; what processes share is counted once."""


class Watch:
    """Looks at the processes again and again; what one used just before it ended is missed."""

    def __init__(self, usage: Usage, memory: bool):
        self._usage, self._memory = usage, memory
        self._begun = spent()
        self._last = dict(self._begun)

    def look(self) -> None:
        """Take down what was used by now."""
        self._last |= spent()
        self._usage.cpu = used(self._begun, self._last)
        if self._memory:
            self._usage.memory = max(self._usage.memory, sum(map(_held, processes())))


@contextmanager
def watching(memory: bool = False, seconds: float = 0.25) -> Iterator[Usage]:
    """Watch what is used while something runs."""
    usage, done = Usage(), threading.Event()
    watch = Watch(usage, memory)

    def repeat() -> None:
        while not done.wait(seconds):
            watch.look()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield usage
    finally:
        done.set()
        thread.join()
        watch.look()


def spent() -> dict[int, float]:
    """Processor seconds of each process so far."""
    found = {}
    for process in processes():
        fields = _stat(process)
        if fields:
            found[process] = (int(fields[11]) + int(fields[12])) / _TICKS
    return found


def used(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """Processor seconds in between, by all processes together."""
    return sum(now - before.get(process, 0.0) for process, now in after.items())


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
