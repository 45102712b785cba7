"""Memory of an update queue: UpStream §7.3, Fig. 16 (over skew) and Fig. 17 (over load).

The queue is in place, in virtual time: keys wait in the order of their first update, each with one
row, and a tenth of a second after the other leaves. Its rows are in the pages of a real memory
manager. All keys have come and gone once before, so that the naive manager has a location for each.

The paper's *usage* is locations that were handed out, and its *effective usage* the share of these
that holds a row. Locations of a page that were not handed out count as available there, so a page
of which little is filled does not show. Bytes of all pages in use do show it: they are told beside.
What is saved of these depends on the size of a page. One that has room for all keys is always in
use, and only objects are freed in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import COLOURS, PAPER, logarithmic, tell
from lowwater.claims.preallocated_memory import PreallocatedMemory
from lowwater.updates.memory.locations import OnDemandMemory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEYS = 100
THETAS = (0.0, 0.3, 0.6, 0.9)
"""Skew of the keys' rates: key ``n`` has one in proportion to ``n ** -theta``."""
OUT = 10
"""Rows that leave in a second."""
PAGE_ROWS = 16
SCHEMA = pl.Schema(
    {"ts": pl.Datetime("us"), "key": pl.String(), "value": pl.Float64(), "number": pl.Int64()}
)
MANAGERS: dict[str, type[OnDemandMemory] | type[PreallocatedMemory]] = {
    "paging": OnDemandMemory,
    "naive": PreallocatedMemory,
}
LOOKS = {"paging": ("o", "paging"), "naive": ("s", "naive")}
Keys = NDArray[np.int64]


class Scale(NamedTuple):
    """How much is run."""

    deliveries: int
    rates: tuple[int, ...]
    """Rows that come in a second."""


FULL = Scale(1_000, (20, 50, 100, 200, 500, 1_000))
QUICK = Scale(200, (20, 100, 1_000))


# ---- a queue in place ----------------------------------------------------------------------


def updates(count: int, theta: float, rate: int) -> tuple[Keys, pl.DataFrame]:
    """Rows that come at a rate, each of a key drawn by Zipf's law; dice fall alike for any skew."""
    dice = np.random.default_rng([count, rate])
    shares = np.arange(1, KEYS + 1, dtype=np.float64) ** -theta
    keys = dice.choice(KEYS, count, p=shares / shares.sum()).astype(np.int64)
    return keys, rows_of(keys, dice, rate)


def rows_of(keys: Keys, dice: np.random.Generator, rate: int) -> pl.DataFrame:
    """A row each of some keys; all take equally many bytes."""
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

    def __init__(self, memory: OnDemandMemory | PreallocatedMemory):
        self.memory = memory
        self._waiting: dict[int, int] = {}  # key to location, the longest waiting first

    def __len__(self) -> int:
        return len(self._waiting)

    def enqueue(self, keys: Keys, rows: pl.DataFrame) -> None:
        """Take rows in; a key that waits keeps its place and its location."""
        newest = {key: at for at, key in enumerate(keys.tolist())}
        old = [key for key in newest if key in self._waiting]
        new = [key for key in newest if key not in self._waiting]
        if old:
            locations = np.array([self._waiting[key] for key in old])
            self.memory.overwrite(locations, rows[[newest[key] for key in old]])
        if new:
            added = rows[[newest[key] for key in new]]
            if isinstance(self.memory, PreallocatedMemory):
                locations = self.memory.add(added, np.array(new))
            else:
                locations = self.memory.add(added)
            self._waiting |= dict(zip(new, locations.tolist(), strict=True))

    def dequeue(self) -> tuple[int, pl.DataFrame] | None:
        """Let go of the key that has waited longest, with its row; None if none waits."""
        if not self._waiting:
            return None
        key = next(iter(self._waiting))
        location = np.array([self._waiting.pop(key)])
        row = self.memory.read(location)
        self.memory.remove(location)
        return key, row


def prepared(name: str) -> Queue:
    """A queue through which every key has gone once."""
    queue = Queue(MANAGERS[name](SCHEMA, PAGE_ROWS))
    keys = np.arange(KEYS)
    queue.enqueue(keys, rows_of(keys, np.random.default_rng(0), 1))
    while queue.dequeue():
        pass
    return queue


def row_bytes() -> float:
    """Bytes of one row in a full page."""
    memory, keys = OnDemandMemory(SCHEMA, PAGE_ROWS), np.arange(PAGE_ROWS)
    memory.add(rows_of(keys, np.random.default_rng(0), 1))
    return memory.bytes / PAGE_ROWS


def run_one(name: str, theta: float, rate: int, deliveries: int) -> dict[str, float | int | str]:
    """What a manager uses on average, looked at before and after each delivery."""
    queue = prepared(name)
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
    return len(queue), memory.used + memory.dirty, memory.allocated, memory.bytes


# ---- UP-F16 --------------------------------------------------------------------------------


def over(table: pl.DataFrame, by: str, what: str) -> dict[str, list[float]]:
    """The mean of a measure for each manager as one thing varies."""
    means = table.group_by(by, "manager").agg(pl.col(what).mean()).sort(by)
    return {name: means.filter(pl.col("manager") == name)[what].to_list() for name in MANAGERS}


def falls(values: Sequence[float]) -> bool:
    """Whether each value is below the one before."""
    return all(after < before for before, after in pairwise(values))


def judge(table: pl.DataFrame) -> Outcome:
    """Effective usage over skew and over load, and which of the two uses more."""
    skew, load = (over(table, by, "effective_usage") for by in ("theta", "rate_per_s"))
    paged = table.filter(pl.col("manager") == "paging")
    naive = table.filter(pl.col("manager") == "naive")
    least = float(paged["effective_usage"].min())  # type: ignore[arg-type]
    more = [
        what
        for what in ("usage_locations", "page_locations", "bytes")
        if (paged[what] > naive[what]).any()
    ]
    faults = [
        text
        for failed, text in (
            (least < 1.0, f"effective usage of paging falls to {least:.2f}"),
            (not falls(skew["naive"]), "the naive manager's does not fall with skew"),
            (not falls(load["naive"][::-1]), "the naive manager's does not rise with load"),
            (bool(more), f"paging uses more than the naive manager: {', '.join(more)}"),
        )
        if failed
    ]
    means = {
        name: [float(own[what].mean()) for what in ("usage_locations", "bytes", "effective_bytes")]  # type: ignore[arg-type]
        for name, own in (("paging", paged), ("naive", naive))
    }
    ours = (
        f"effective usage of paging never below {least:.2f}, naive {skew['naive'][0]:.2f} to"
        f" {skew['naive'][-1]:.2f} as skew grows and {load['naive'][0]:.2f} to"
        f" {load['naive'][-1]:.2f} as load does; usage"
        f" {means['paging'][0]:.0f} against {means['naive'][0]:.0f} locations on average. In bytes"
        f" of whole pages of {PAGE_ROWS} locations, of which the paper does not count what was not"
        " handed out:"
        f" {means['paging'][1]:,.0f} against {means['naive'][1]:,.0f}, and rows that wait are"
        f" {means['paging'][2]:.0%} against {means['naive'][2]:.0%} of these"
    )
    ours += f" DOES NOT HOLD: {'; '.join(faults)}" if faults else ""

    share = means["paging"][1] / means["naive"][1]
    finding = (
        f"Of locations handed out at least {least:.0%} hold a row with paging,"
        f" {skew['naive'][0]:.0%} to {skew['naive'][-1]:.0%} with the naive manager; paging takes"
        f" {share:.0%} of its bytes"
    )
    return Outcome(ours, not faults, table, lambda figure: _plot(figure, table, finding))


def _plot(figure: Figure, table: pl.DataFrame, finding: str) -> None:
    axes = figure.subplots(2, 3)
    sides = (("theta", "skew of keys [Zipf θ]"), ("rate_per_s", "rows that come [1/s]"))
    for row, (by, label) in zip(axes, sides, strict=True):
        _curves(row[0], table, by, ("effective_usage", "effective_bytes"), 0.01)
        _curves(row[1], table, by, ("usage_locations", "page_locations"))
        _curves(row[2], table, by, ("bytes",), 1e3)
        row[0].axhline(100, color=PAPER, ls=":", label="paper: paging")
        names = ("effective usage [%]", "memory [locations]", "memory, pages [kB]")
        for each, name in zip(row, names, strict=True):
            each.set(xlabel=label, ylabel=name)
            if by == "rate_per_s":
                logarithmic(each, "x")
    handles, labels = axes[0][0].get_legend_handles_labels()
    axes[0][2].legend(handles, labels, loc="lower left")
    tell(
        figure,
        finding,
        "effective usage of paging 1.0; the naive manager's falls with skew and at low load",
    )


def _curves(
    axes: Axes, table: pl.DataFrame, by: str, measures: tuple[str, ...], unit: float = 1.0
) -> None:
    """What both managers use, and beside it the same of whole pages."""
    at = sorted(table[by].unique().to_list())
    for measure, dashes, which in zip(measures, ("-", "--"), ("", ", whole pages"), strict=False):
        for name, values in over(table, by, measure).items():
            marker, label = LOOKS[name]
            shown = [value / unit for value in values]
            style, label = marker + dashes, label + which
            axes.plot(at, shown, style, color=COLOURS[name], label=label, ms=4)
    axes.set_ylim(0, 1.05 * axes.get_ylim()[1])


def run(quick: bool) -> Outcome:
    """Both managers with every skew and rate."""
    size = QUICK if quick else FULL
    rows = [
        run_one(name, theta, rate, size.deliveries)
        for theta in THETAS
        for rate in size.rates
        for name in MANAGERS
    ]
    return judge(pl.DataFrame(rows))


F16 = Claim(
    "UP-F16",
    "memory of an update queue: on-demand paging against one location a key",
    "effective usage of paging 1.0; that of the naive manager falls with skew and at low load; it"
    " keeps locations for all keys",
    "effective usage of paging 1.0 in every run; the naive manager's falls with every step of skew"
    " and of less load; paging never uses more, in locations, in pages and in bytes",
    run,
)
