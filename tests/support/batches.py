"""Hypothesis strategies: streams long and dense enough that spreading them wrongly shows.

Rows are made from a drawn seed, not drawn one by one: that is fast, and rows with few keys and
times meet in every operator. *Unordered* streams come in batches in which nobody knows what came
first, with the plain definition of which of their rows are late.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st
from numpy.typing import NDArray

import lowwater as lw
from lowwater.progress.contract import Learned, Punctuated, Within, WithinRows
from lowwater.progress.learned import LearnedChannel
from lowwater.stream.element import BEGINNING
from tests.support.local_spark import Unordered
from tests.support.streams import SCHEMA, Sample, is_kept

Row = tuple[int, int | None, str, int | None]
PROMISES = [lw.ordered(), lw.within(2), lw.within(12), lw.within_rows(5), lw.learned(0.8)]
KEYS = (None, "channel", "groups")


def _rows(seed: int, most: int) -> list[Row]:
    """Times that go up, with some disorder; keys and values from few, some null."""
    chance = random.Random(seed)
    step, back = chance.choice([0.3, 1.0, 3.0]), chance.choice([0, 2, 10])
    found: list[Row] = []
    for at in range(chance.randint(0, most)):
        time = int(at * step) - chance.randint(0, back)
        found.append(
            (
                time,
                chance.choice([None, 0, 1, 1, 2, 3]),
                chance.choice("aab"),
                chance.choice([None, 0, 1, 2, 3, 4, -7]),
            )
        )
    return found


@st.composite
def dense(draw: Any, name: str, most: int = 40, keys: Sequence[Any] = KEYS) -> Sample:
    """A replayed stream."""
    table = pl.DataFrame(_rows(draw(st.integers(0, 999)), most), schema=SCHEMA, orient="row")
    contract = draw(st.sampled_from(PROMISES))
    key = draw(st.sampled_from(keys))
    kept = [False] * table.height
    for value in ("a", "b") if key else ("ab",):
        at = [i for i, each in enumerate(table["s"]) if each in value]
        judged = is_kept([table["ts"][i] for i in at], contract)
        for i, good in zip(at, judged, strict=True):
            kept[i] = good
    keyed = {key: "s"} if key else {}
    stream = lw.stream(table, name=name, time="ts", progress=contract, jump=None, **keyed)
    mask = pl.Series(kept, dtype=pl.Boolean)
    return Sample(stream, table.filter(mask), table.filter(~mask))


@st.composite
def unordered(draw: Any, name: str, most: int = 40, keys: Sequence[Any] = KEYS) -> Sample:
    """A stream that comes in batches without order."""
    rows = _rows(draw(st.integers(0, 999)), most)
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    edges = [0, *cuts, len(rows)]
    batches = [b - a for a, b in pairwise(edges)]
    table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    contract = draw(st.sampled_from([*PROMISES, lw.punctuated("v")]))
    key = draw(st.sampled_from(keys))
    marked = list(zip(table["ts"], table["s"], table["v"], strict=True))
    keyed = {key: "s"} if key else {}
    source: Any = Unordered(table, batches)
    stream = lw.stream(source, name=name, time="ts", progress=contract, jump=None, **keyed)
    sides = []
    for alone in (False, key == "groups"):
        on_time = kept_in_batches(marked, batches, contract, bool(key), alone=alone)
        kept = pl.Series(on_time, dtype=pl.Boolean)
        sides.append((table.filter(kept), table.filter(~kept)))
    return Sample(stream, *sides[0], sides[1])


def kept_in_batches(
    rows: Sequence[tuple[int, str, int | None]],
    batches: Sequence[int],
    contract: Any,
    keyed: bool,
    announced: Sequence[str] = (),
    alone: bool = False,
) -> list[bool]:
    """Which rows are on time, by the plain definition: a row of (time, channel, producer's mark)
    is late if it is below what held before its batch, for its channel or for a new one. Nothing
    holds for a new one if channels are promised each ``alone``."""
    if isinstance(contract, Learned):
        return learned_in_batches(rows, batches, contract, keyed, announced)
    names = list(announced) if keyed else [""]
    seen: dict[str, list[tuple[int, int | None]]] = {name: [] for name in names}
    floor = dict.fromkeys(names, BEGINNING)
    kept: list[bool] = []
    at = 0
    for size in batches:
        held = {name: max(floor[name], promised(seen[name], contract)) for name in seen}
        joining = BEGINNING if alone else min(held.values(), default=BEGINNING)
        batch = [(t, name if keyed else "", mark) for t, name, mark in rows[at : at + size]]
        at += size
        kept += [time >= held.get(name, joining) for time, name, _ in batch]
        for time, name, mark in sorted(batch, key=lambda row: row[0]):
            floor.setdefault(name, joining)
            seen.setdefault(name, []).append((time, mark))
    return kept


def learned_in_batches(
    rows: Sequence[tuple[int, str, int | None]],
    batches: Sequence[int],
    contract: Learned,
    keyed: bool,
    announced: Sequence[str] = (),
) -> list[bool]:
    """The same where the mark is learned: each channel is shown all its times of a batch."""
    names = list(announced) if keyed else [""]
    channels = {name: LearnedChannel(contract.completeness, None) for name in names}
    kept: list[bool] = []
    at = 0
    for size in batches:
        joining = min((each.mark for each in channels.values()), default=BEGINNING)
        batch = [(time, name if keyed else "") for time, name, _ in rows[at : at + size]]
        at += size
        for name in sorted({name for _, name in batch} - set(channels)):
            channels[name] = LearnedChannel(contract.completeness, None)
            channels[name].floor = joining
        kept += [time >= channels[name].mark for time, name in batch]
        for name, channel in channels.items():
            times = np.array(sorted(time for time, each in batch if each == name), dtype=np.int64)
            if len(times):
                show_batch(channel, times)
    return kept


def show_batch(channel: LearnedChannel, times: NDArray[np.int64]) -> None:
    """Show all times of a batch to a channel: to be believed, and to be counted."""
    believe, count = np.full(len(times), BEGINNING), np.ones(len(times), dtype=np.int64)
    channel.absorb(np.concatenate([times, times]), np.concatenate([believe, count]))


def promised(before: Sequence[tuple[int, int | None]], contract: Any) -> int:
    """The mark that follows from the rows of one channel, by the plain definition."""
    times = [time for time, _ in before]
    assert not isinstance(contract, Learned), "a learned mark follows from batches, not from rows"
    if isinstance(contract, Punctuated):
        return max((mark for _, mark in before if mark is not None), default=BEGINNING)
    if isinstance(contract, WithinRows):
        return max(times[: max(0, len(times) - contract.rows)], default=BEGINNING)
    slack = int(contract.bound) if isinstance(contract, Within) else 0  # type: ignore[call-overload]
    return max(times) - slack if times else BEGINNING
