"""This claim measures the memory of an update queue: UpStream §7.3, Fig. 16 (skew), 17 (load).

The queue is in place, in virtual time: keys wait in the order of their first update, each with one
row, and a tenth of a second after the other leaves. Its rows are in the pages of a real memory
manager. All keys have come and gone once before, so that the naive manager has a location for each.

The paper's *usage* is locations that were handed out, and its *effective usage* the share of these
that holds a row. Locations of a page that were not handed out count as available there, so its
figures do not show pages that are nearly empty. Bytes of all pages in use are shown beside it.
The bytes that are saved depend on the size of a page: a page that has room for all keys is always
in use, and only objects are freed in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.claims import updates_plots as plots
from lowwater.claims.claim import Claim, Criterion, Outcome, Scale, judge
from lowwater.updates.memory.locations import OnDemandMemory
from lowwater.updates.memory.pages import Locations, PagedRows

KEYS = 100
THETAS = (0.0, 0.3, 0.6, 0.9)
"""Skew of the keys' rates: key ``n`` has one in proportion to ``n ** -theta``."""
OUT = 10
"""Number of rows that leave in a second."""
PAGE_ROWS = 16
"""Locations of a page."""
SCHEMA = pl.Schema(
    {"ts": pl.Datetime("us"), "key": pl.String(), "value": pl.Float64(), "number": pl.Int64()}
)
Keys = NDArray[np.int64]


SCALE = Scale((1_000, (20, 50, 100, 200, 500, 1_000)), (200, (20, 100, 1_000)))
"""The number of deliveries, and the rates in rows that come in a second."""


# ---- the two memories ----------------------------------------------------------------------


class PagedMemory(OnDemandMemory):
    """On-demand paging as update queues have it, with the members that the naive memory has."""

    dirty = 0
    """Number of locations that were handed out and hold no row: none."""

    def add(self, rows: pl.DataFrame, owners: Keys | None = None) -> Locations:
        """Write rows to empty locations, whichever keys they are of; return these."""
        return super().add(rows)


class PreallocatedMemory(PagedRows):
    """The naive memory that on-demand paging is compared with: one location a key for ever (§7.3).

    When the row of a key goes, its location stays the key's and stays as it is: it is dirty, and
    only the next row of the same key makes use of it. So there are as many locations as keys. The
    location of key number ``n`` is location ``n``; keys are numbered from 0 in the order they come.
    """

    def __init__(self, schema: pl.Schema, page_rows: int):
        super().__init__(schema, page_rows)
        self._given = np.zeros(0, bool)
        self.used = 0
        """Number of locations that hold a row."""
        self.dirty = 0
        """Number of locations that were handed out and hold no current row."""

    def add(self, rows: pl.DataFrame, owners: Keys) -> Locations:
        """Write rows of keys that have none to the locations of these keys; return them."""
        while self.pages * self.page_rows <= owners.max(initial=-1):
            self.alloc()
        self._given = np.pad(self._given, (0, self.pages * self.page_rows - len(self._given)))
        self.dirty -= int(self._given[owners].sum())
        self._given[owners] = True
        self.used += len(owners)
        self.write(owners, rows)
        return owners

    def remove(self, locations: Locations) -> None:
        """Make locations dirty."""
        count = len(np.unique(locations))
        self.used -= count
        self.dirty += count


Memory = PagedMemory | PreallocatedMemory
MANAGERS: dict[str, type[Memory]] = {"paging": PagedMemory, "naive": PreallocatedMemory}


# ---- a queue in place ----------------------------------------------------------------------


def updates(count: int, theta: float, rate: int) -> tuple[Keys, pl.DataFrame]:
    """Return rows that come at a rate, of keys drawn by Zipf's law, alike for any skew."""
    dice = np.random.default_rng([count, rate])
    shares = np.arange(1, KEYS + 1, dtype=np.float64) ** -theta
    keys = dice.choice(KEYS, count, p=shares / shares.sum()).astype(np.int64)
    return keys, rows_of(keys, dice, rate)


def rows_of(keys: Keys, dice: np.random.Generator, rate: int) -> pl.DataFrame:
    """Return a row for each of some keys; all take equally many bytes."""
    start, numbers = datetime(2024, 1, 1), np.arange(len(keys))
    return pl.DataFrame(
        {
            "ts": [start + timedelta(seconds=each / rate) for each in numbers.tolist()],
            "key": [f"KEY-{key:03d}" for key in keys],
            "value": dice.random(len(keys)),
            "number": numbers,
        },
        schema=SCHEMA,
    )


class Queue:
    """The newest row of each key that waits, in a memory."""

    def __init__(self, memory: Memory):
        self.memory = memory
        self._waiting: dict[int, int] = {}  # key to location, the longest waiting first

    def __len__(self) -> int:
        return len(self._waiting)

    def enqueue(self, keys: Keys, rows: pl.DataFrame) -> None:
        """Add rows; a key that waits keeps its place and its location."""
        newest = {key: at for at, key in enumerate(keys.tolist())}
        old = [key for key in newest if key in self._waiting]
        new = [key for key in newest if key not in self._waiting]
        if old:
            locations = np.array([self._waiting[key] for key in old])
            self.memory.write(locations, rows[[newest[key] for key in old]])
        if new:
            locations = self.memory.add(rows[[newest[key] for key in new]], np.array(new))
            self._waiting |= dict(zip(new, locations.tolist(), strict=True))

    def dequeue(self) -> tuple[int, pl.DataFrame] | None:
        """Remove and return the key that has waited longest, with its row; None if none waits."""
        if not self._waiting:
            return None
        key = next(iter(self._waiting))
        location = np.array([self._waiting.pop(key)])
        row = self.memory.read(location)
        self.memory.remove(location)
        return key, row


def prepare(name: str) -> Queue:
    """Return a queue through which every key has gone once."""
    queue = Queue(MANAGERS[name](SCHEMA, PAGE_ROWS))
    keys = np.arange(KEYS)
    queue.enqueue(keys, rows_of(keys, np.random.default_rng(0), 1))
    while queue.dequeue():
        pass
    return queue


def row_bytes() -> float:
    """Return the bytes of one row in a full page."""
    memory, keys = OnDemandMemory(SCHEMA, PAGE_ROWS), np.arange(PAGE_ROWS)
    memory.add(rows_of(keys, np.random.default_rng(0), 1))
    return memory.bytes / PAGE_ROWS


def run_one(name: str, theta: float, rate: int, deliveries: int) -> dict[str, float | int | str]:
    """Measure the mean usage of a manager, sampled before and after each delivery."""
    queue = prepare(name)
    step = rate // OUT
    keys, rows = updates(step * deliveries, theta, rate)
    newest = np.full(KEYS, -1)
    samples: list[tuple[int, int, int, int]] = []
    for start in range(0, len(keys), step):
        came = keys[start : start + step]
        newest[came] = np.arange(start, start + step)
        queue.enqueue(came, rows[start : start + step])
        samples.append(_sample(queue))
        left = queue.dequeue()
        if left is None or left[1]["number"].item() != newest[left[0]]:
            raise AssertionError(f"the {name} manager did not give the newest row")
        samples.append(_sample(queue))
    waiting, handed_out, allocated, size = np.mean(samples, axis=0).tolist()
    return {
        "theta": theta,
        "rate_per_s": rate,
        "manager": name,
        "waiting_rows": waiting,
        "usage_locations": handed_out,
        "effective_usage": waiting / handed_out,
        "page_locations": allocated,
        "bytes": size,
        "effective_bytes": waiting * row_bytes() / size,
    }


def _sample(queue: Queue) -> tuple[int, int, int, int]:
    memory = queue.memory
    return len(queue), memory.used + memory.dirty, memory.pages * memory.page_rows, memory.bytes


# ---- UP-F16 --------------------------------------------------------------------------------


def over(table: pl.DataFrame, by: str, what: str) -> dict[str, list[float]]:
    """Return the means of a column for each manager, in the order of the column ``by``."""
    means = table.group_by(by, "manager").agg(pl.col(what).mean()).sort(by)
    return {name: means.filter(pl.col("manager") == name)[what].to_list() for name in MANAGERS}


def falls(values: Sequence[float]) -> bool:
    """Return true if each value is below the one before."""
    return all(after < before for before, after in pairwise(values))


def memory_outcome(table: pl.DataFrame) -> Outcome:
    """Judge effective usage over skew and over load, and the memory that both managers use."""
    skew, load = (over(table, by, "effective_usage") for by in ("theta", "rate_per_s"))
    paged = table.filter(pl.col("manager") == "paging")
    naive = table.filter(pl.col("manager") == "naive")
    least = float(paged["effective_usage"].min())  # type: ignore[arg-type]
    more = [
        what
        for what in ("usage_locations", "page_locations", "bytes")
        if (paged[what] > naive[what]).any()
    ]
    criteria = [
        Criterion(least >= 1.0, f"effective usage of paging falls to {least:.2f}"),
        Criterion(falls(skew["naive"]), "the naive manager's does not fall with skew"),
        Criterion(falls(load["naive"][::-1]), "the naive manager's does not rise with load"),
        Criterion(not more, f"paging uses more than the naive manager: {', '.join(more)}"),
    ]
    means = {
        name: [float(own[what].mean()) for what in ("usage_locations", "bytes", "effective_bytes")]  # type: ignore[arg-type]
        for name, own in (("paging", paged), ("naive", naive))
    }
    ours = (
        f"effective usage of paging never below {least:.2f}, naive {skew['naive'][0]:.2f} to"
        f" {skew['naive'][-1]:.2f} as skew grows and {load['naive'][0]:.2f} to"
        f" {load['naive'][-1]:.2f} as load does; usage"
        f" {means['paging'][0]:.0f} against {means['naive'][0]:.0f} locations on average. Pages"
        f" of {PAGE_ROWS} locations, with those not handed out, which the paper does not count,"
        f" take {means['paging'][1]:,.0f} against {means['naive'][1]:,.0f} bytes; rows that wait"
        f" are {means['paging'][2]:.0%} against {means['naive'][2]:.0%} of these"
    )

    share = means["paging"][1] / means["naive"][1]
    finding = (
        f"Of locations handed out at least {least:.0%} hold a row with paging,"
        f" {skew['naive'][0]:.0%} to {skew['naive'][-1]:.0%} with the naive manager; paging takes"
        f" {share:.0%} of its bytes"
    )
    sides = {
        by: {what: over(table, by, what) for what in plots.MEASURES}
        for by in ("theta", "rate_per_s")
    }
    places = {by: sorted(table[by].unique().to_list()) for by in sides}
    return judge(ours, criteria, table, lambda figure: plots.memory(figure, sides, places, finding))


def run(quick: bool) -> Outcome:
    """Measure both managers with every skew and rate."""
    deliveries, rates = SCALE.of(quick)
    rows = [
        run_one(name, theta, rate, deliveries)
        for theta in THETAS
        for rate in rates
        for name in MANAGERS
    ]
    return memory_outcome(pl.DataFrame(rows))


F16 = Claim(
    "UP-F16",
    "memory of an update queue: on-demand paging against one location a key",
    "effective usage of paging 1.0; that of the naive manager falls with skew and at low load; it"
    " keeps locations for all keys",
    "effective usage of paging 1.0 in every run; the naive manager's falls with every step of skew"
    " and of less load; paging never uses more, in locations, in pages and in bytes",
    run,
)
