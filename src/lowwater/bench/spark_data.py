"""The Spark benchmarks read Parquet files; both sides read them in the same order."""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

DISORDER = 2.0
"""Seconds by which a row may be behind the rows before it."""
BEGIN = 1_000_000.0
"""The time of the first row, in seconds; no multiple of a minute."""
ROW_GROUP = 100_000
"""Rows of a row group, so that Spark can split a file over the cores."""


@dataclass(frozen=True)
class Flow:
    """One source: its rate, its keys, its disorder and how far it is behind."""

    rate: float
    """Rows a second."""
    keys: Mapping[str, int]
    """Key columns, with the number of their values."""
    seed: int = 0
    disorder: float = DISORDER
    behind: float = 0.0
    """Seconds by which its rows are older than the moment of their arrival."""

    def rows(self, first: int, count: int) -> pl.DataFrame:
        """Return rows of the source by number, the same for the same numbers."""
        rng = np.random.default_rng((self.seed, first))
        arrived = np.arange(first, first + count) / self.rate
        back = rng.uniform(0, self.disorder, count) if self.disorder else 0.0
        times = stamps(BEGIN + arrived - self.behind - back)
        columns = {
            name: rng.integers(0, size, count, dtype=np.int32) for name, size in self.keys.items()
        }
        return pl.DataFrame({"ts": times, **columns})

    def files(self, files: int, rows_each: int) -> Iterator[pl.DataFrame]:
        """Yield the rows of so many files, one after the other."""
        for number in range(files):
            yield self.rows(number * rows_each, rows_each)

    @property
    def schema(self) -> str:
        """The schema, in the form that Spark reads."""
        return ", ".join(["ts timestamp", *(f"{name} int" for name in self.keys)])


def write_files(files: Iterable[pl.DataFrame], folder: Path) -> None:
    """Write files of rows into a new folder; their times of change give their order."""
    folder.mkdir(parents=True)
    for number, rows in enumerate(files):
        path = folder / f"{number:06d}.parquet"
        write_file(rows, path)
        os.utime(path, (1e9 + number, 1e9 + number))


def write_file(rows: pl.DataFrame, path: Path) -> None:
    """Write one file with the compression and the row groups that Spark has."""
    rows.write_parquet(path, compression="snappy", row_group_size=ROW_GROUP)


def link_files(folder: Path, target: Path, files: int) -> None:
    """Link the first files of a folder into another one."""
    target.mkdir(parents=True)
    for path in sorted(folder.iterdir())[:files]:
        (target / path.name).hardlink_to(path)


FEED_EVERY = 0.1
"""Seconds between two files of a feeder."""


class Feeder(ABC):
    """Drops files of rows that happen now, on a thread of its own, until its block ends."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._numbers = count()
        self._thread = threading.Thread(target=self._feed, daemon=True)

    def __enter__(self) -> Self:
        """Drop the first files and begin."""
        self.tick()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the thread."""
        self._done.set()
        self._thread.join()

    @abstractmethod
    def tick(self) -> None:
        """Drop the files of one tick."""

    def _feed(self) -> None:
        begun = time.monotonic()
        for number in count(1):
            if self._done.wait(max(0.0, begun + number * FEED_EVERY - time.monotonic())):
                return
            self.tick()

    def put(self, folder: Path, rows: pl.DataFrame) -> None:
        """Write a file next to a folder and move it in, so that no reader finds it half done."""
        number = next(self._numbers)
        unfinished = folder.with_name(f".{number}")
        write_file(rows, unfinished)
        unfinished.rename(folder / f"{number:06d}.parquet")


def stamps(seconds: NDArray[np.floating]) -> pl.Series:
    """Return a column ``ts`` of times that are given in seconds since 1970."""
    return pl.Series("ts", (seconds * 1e6).astype(np.int64)).cast(pl.Datetime("us", "UTC"))
