"""Hypothesis strategies: small streams in any order, under promises that some rows break."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st

import lowwater as lw
from lowwater.api import Stream
from lowwater.plan.physical.operator import PhysicalPlan
from lowwater.progress.contract import Learned
from lowwater.progress.learned import LearnedChannel
from lowwater.stream.element import SEQUENCE

SCHEMA = {"ts": pl.Int64, "k": pl.Int64, "s": pl.String, "v": pl.Int64}


@dataclass(frozen=True)
class Sample:
    """A declared stream, and the rows of it that keep its promise."""

    stream: Stream
    kept: pl.DataFrame
    late: pl.DataFrame
    alone: tuple[pl.DataFrame, pl.DataFrame] | None = None
    """The same where groups are promised each by itself and nothing of the whole stream."""
    numbers: pl.Series | None = None
    """The places of the rows that are kept, among all that came."""

    def judged(self, plan: PhysicalPlan) -> Sample:
        """The rows that keep the promises a plan asks for."""
        (own,) = [each for each in plan.sources if each.node is self.stream._node]
        linear = any(
            each.linear for name, each in plan.demands[own.index].items() if name != SEQUENCE
        )
        return self if linear or self.alone is None else Sample(self.stream, *self.alone)


def rows(most: int = 24, horizon: int = 40) -> st.SearchStrategy[pl.DataFrame]:
    """Rows in any order: times from a small range, two keys with few values, a value or null."""
    row = st.tuples(
        st.integers(-5, horizon),
        st.one_of(st.none(), st.integers(0, 2)),
        st.sampled_from(["a", "b"]),
        st.one_of(st.none(), st.integers(-9, 9)),
    )
    return st.lists(row, max_size=most).map(
        lambda each: pl.DataFrame(each, schema=SCHEMA, orient="row")
    )


contracts = st.one_of(
    st.just(lw.ordered()),
    st.integers(0, 30).map(lw.within),
    st.integers(0, 8).map(lw.within_rows),
    st.sampled_from([0.5, 0.8, 0.95]).map(lw.learned),
)


def is_kept(times: list[int], contract: Any) -> list[bool]:
    """Which rows keep a promise, by its plain definition."""
    if isinstance(contract, Learned):
        channel = LearnedChannel(contract.completeness, None)
        return [learn(channel, time) for time in times]
    kept = []
    for at, time in enumerate(times):
        if isinstance(contract, type(lw.within_rows(0))):
            before = times[: max(0, at - contract.rows)]
            bound = 0
        else:
            before = times[:at]
            bound = contract.bound if isinstance(contract, type(lw.within(0))) else 0
        kept.append(not before or time >= max(before) - bound)
    return kept


def learn(channel: LearnedChannel, time: int) -> bool:
    """Show one row to a channel that learns; whether it was on time."""
    one = np.array([time], dtype=np.int64)
    return time >= int(channel.observe(one, one).before[0])


@st.composite
def samples(
    draw: Any, name: str, channels: bool = True, groups: bool = False, most: int = 24
) -> Sample:
    """A stream under some promise, kept by some of its rows; per channel or group if asked."""
    table = draw(rows(most))
    contract = draw(contracts)
    channel = draw(st.sampled_from([None, "s"])) if channels and not groups else None
    if channel is None and not groups:
        kept = is_kept(table["ts"].to_list(), contract)
    else:
        kept = [False] * table.height
        for value in ("a", "b"):
            at = [i for i, each in enumerate(table["s"]) if each == value]
            judged = is_kept([table["ts"][i] for i in at], contract)
            for i, good in zip(at, judged, strict=True):
                kept[i] = good
    mask = pl.Series(kept, dtype=pl.Boolean)
    stream = lw.stream(
        lw.replay(table),
        name=name,
        time="ts",
        progress=contract,
        channel=channel,
        groups="s" if groups else None,
        jump=None,
    )
    return Sample(stream, table.filter(mask), table.filter(~mask), numbers=mask.arg_true())
