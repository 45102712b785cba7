"""Windows of update streams on a virtual clock, and how stale what they show is.

Every row that leaves the queue takes as long. A window of a key makes what is shown stale from the
arrival of what completed it (UpStream §6.1.2) until it or a newer window of the key is shown. That
is worked out here from what came and what was shown, as for rows; the queue's own accounts are not
asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

import lowwater as lw
from lowwater.claims.updates_runs import Numbers, Seconds, Unreflected, UntilThen
from lowwater.engines.embedded.clock import PerRow, VirtualClock
from lowwater.engines.embedded.engine import EmbeddedEngine, Pace
from lowwater.operators.window_state import START
from lowwater.plan.physical.compile import compile_plan
from lowwater.stream.duration import SECOND
from lowwater.updates.options import Schedule, Windows

Way = Literal["append", "shedding", "lazy", "eager"]
WAYS: dict[Way, tuple[Schedule, Windows]] = {
    "append": ("append", "lazy"),
    "shedding": ("shedding", "lazy"),
    "lazy": ("in-place", "lazy"),
    "eager": ("in-place", "eager"),
}
NAMES: dict[Way, str] = {
    "append": "append",
    "shedding": "append, random window shedding",
    "lazy": "LAZY",
    "eager": "EAGER",
}
LINES: dict[Way, str] = {"append": "^-", "shedding": "v-", "lazy": "s-", "eager": "o-"}


@dataclass(frozen=True)
class Rows:
    """Rows with times in ticks, one a second, and what they let be known."""

    ticks: Numbers
    keys: Numbers
    strict: bool = False
    """Whether a tick is over with its row: no two rows have the same time."""
    alone: bool = False
    """Whether a key goes on with its own rows only: each is promised by itself."""

    @property
    def arrived(self) -> Seconds:
        """When rows come, one a second."""
        return np.arange(1, len(self.ticks) + 1, dtype=np.float64)

    def stream(self, way: Way) -> lw.Stream:
        """The update stream of these rows."""
        schedule, windows = WAYS[way]
        table = pl.DataFrame(
            {
                "tick": self.ticks,
                "next": self.ticks + 1,
                "arrived": self.arrived,
                "key": self.keys,
            }
        )
        options: dict[str, Any] = {"groups": "key"} if self.alone else {}
        return lw.stream(
            lw.replay(table, arrival="arrived"),
            name="rows",
            time="tick",
            progress=lw.punctuated("next") if self.strict else lw.ordered(),
            update_key="key",
            schedule=schedule,
            windows=windows,
            jump=None,
            **options,
        )

    def complete(self, key: int, size: int, slide: int) -> tuple[Numbers, Seconds]:
        """The windows of a key that are complete when the last row has come: their starts, and
        when each was."""
        own = self.keys == key
        starts = [_starts(int(tick), size, slide) for tick in self.ticks[own]]
        found = np.unique(np.concatenate(starts))
        of = own if self.alone else np.ones(len(own), bool)
        at = np.searchsorted(self.ticks[of] + self.strict, found + size)
        reached = at < of.sum()
        return found[reached], self.arrived[of][at[reached]]


def _starts(tick: int, size: int, slide: int) -> Numbers:
    return np.arange(((tick - size) // slide + 1) * slide, tick + 1, slide)


def engine_of(
    rows: Rows, way: Way, size: int, slide: int, clock: VirtualClock, end: float | None = None
) -> tuple[EmbeddedEngine, UntilThen]:
    """An engine that counts the rows of windows, handed over when they come, and its sink."""
    counted = rows.stream(way).window(size, slide=slide).group_by("key").agg(rows="count(*)")
    sink = UntilThen(clock, end)
    sink.engine = EmbeddedEngine(compile_plan(counted._node), sink, clock, Pace(tick=0), None)
    return sink.engine, sink


@dataclass(frozen=True)
class Seen:
    """What a run showed until its last row had come."""

    staleness: float
    """Application staleness, the mean over time and keys, in seconds."""
    windows: int


def seen(rows: Rows, way: Way, size: int, slide: int, cost: float) -> Seen:
    """Run rows through a queue of windows until the last has come."""
    end = float(rows.arrived[-1])
    engine, sink = engine_of(
        rows, way, size, slide, VirtualClock(charge=PerRow(cost * SECOND)), end
    )
    engine.run()
    shown = sink.table().filter(pl.col("_out_at") <= end)
    area = 0.0
    keys = np.unique(rows.keys).tolist()
    for key in keys:
        starts, came = rows.complete(key, size, slide)
        own = shown.filter(pl.col("key") == key)
        reflected = np.searchsorted(starts, own[START].to_numpy(), "right")
        area += Unreflected.of(came, reflected, own["_out_at"].to_numpy(), end).area
    return Seen(area / len(keys) / (end - float(rows.arrived[0])), shown.height)
