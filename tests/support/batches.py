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

import polars as pl
from hypothesis import strategies as st

import lowwater as lw
from lowwater.progress.contract import Punctuated, Within, WithinRows
from lowwater.stream.element import BEGINNING
from tests.support.local_spark import Unordered
from tests.support.streams import SCHEMA, Sample, is_kept

Row = tuple[int, int | None, str, int | None]
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
    contract = draw(st.sampled_from([lw.ordered(), lw.within(2), lw.within(12), lw.within_rows(5)]))
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
    contract = draw(
        st.sampled_from(
            [lw.ordered(), lw.within(2), lw.within(12), lw.within_rows(5), lw.punctuated("v")]
        )
    )
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


def promised(before: Sequence[tuple[int, int | None]], contract: Any) -> int:
    """The mark that follows from the rows of one channel, by the plain definition."""
    times = [time for time, _ in before]
    if isinstance(contract, Punctuated):
        return max((mark for _, mark in before if mark is not None), default=BEGINNING)
    if isinstance(contract, WithinRows):
        return max(times[: max(0, len(times) - contract.rows)], default=BEGINNING)
    slack = int(contract.bound) if isinstance(contract, Within) else 0  # type: ignore[call-overload]
    return max(times) - slack if times else BEGINNING
