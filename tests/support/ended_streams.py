"""Hypothesis strategies: streams whose channels or groups end, with the plain definition of which
of their rows are late and which come after an end."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import polars as pl
from hypothesis import strategies as st

import lowwater as lw
from lowwater.api import Stream
from lowwater.stream.element import BEGINNING
from tests.support.batches import promised
from tests.support.local_spark import Unordered

SCHEMA = {"ts": pl.Int64, "k": pl.Int64, "s": pl.String, "v": pl.Int64, "gone": pl.Boolean}
PROMISES = [lw.ordered(), lw.within(3), lw.within(12), lw.within_rows(2)]
Row = tuple[int | None, int | None, str, int | None, bool | None]


@dataclass(frozen=True)
class Ended:
    """A declared stream, its rows, and the verdict on them by the plain definition."""

    stream: Stream
    table: pl.DataFrame
    verdicts: list[str]
    """For each row "kept", "late", "over" (after an end) or "pure"."""

    def rows(self, verdict: str) -> pl.DataFrame:
        return self.table.filter(pl.Series([each == verdict for each in self.verdicts], dtype=bool))

    @property
    def kept(self) -> pl.DataFrame:
        return self.rows("kept")


class Parts:
    """The channels or groups of a stream by the definition: no numbers but what rows say."""

    def __init__(self, contract: Any, whole: bool, announced: Iterable[str]):
        self._contract, self._whole = contract, whole
        self._seen: dict[str, list[tuple[int, None]]] = {name: [] for name in announced}
        self._floor = dict.fromkeys(announced, BEGINNING)
        self._stream = BEGINNING
        self.over: set[str] = set()

    @property
    def joining(self) -> int:
        return self._stream if self._whole else BEGINNING

    def mark(self, name: str) -> int:
        if name not in self._seen:
            return self.joining
        return max(self._floor[name], promised(self._seen[name], self._contract))

    def take(self, name: str, time: int, joining: int) -> None:
        self._floor.setdefault(name, joining)
        self._seen.setdefault(name, []).append((time, None))

    def end(self, name: str) -> None:
        self._seen.pop(name, None)
        self._floor.pop(name, None)
        self.over.add(name)

    def move(self) -> None:
        """The mark of the stream is the least of those that have not ended."""
        least = min(map(self.mark, self._seen), default=self._stream)
        self._stream = max(self._stream, least)


def in_order(
    rows: Sequence[Row], contract: Any, whole: bool, announced: Iterable[str] = ()
) -> list[str]:
    """The verdict on rows in arrival order."""
    parts, verdicts = Parts(contract, whole, announced), []
    for time, _, name, _, gone in rows:
        if time is None and gone:
            verdicts.append("pure")
        elif name in parts.over:
            verdicts.append("over")
        else:
            assert time is not None
            verdicts.append("kept" if time >= parts.mark(name) else "late")
            parts.take(name, time, parts.joining)
        parts.move()
        if gone and name not in parts.over:
            parts.end(name)
        parts.move()
    return verdicts


def in_batches(
    rows: Sequence[Row], batches: Sequence[int], contract: Any, whole: bool
) -> list[str]:
    """The verdict on rows in batches without order: by what held before the batch."""
    parts, verdicts, at = Parts(contract, whole, ()), [], 0
    for size in batches:
        batch, joining, over = rows[at : at + size], parts.joining, set(parts.over)
        at += size
        for time, _, name, _, gone in batch:
            if time is None and gone:
                verdicts.append("pure")
            elif name in over:
                verdicts.append("over")
            else:
                assert time is not None
                verdicts.append("kept" if time >= parts.mark(name) else "late")
        alive = [(time, name) for time, _, name, _, _ in batch if name not in over]
        for time, name in sorted((t, name) for t, name in alive if t is not None):
            parts.take(name, time, joining)
        ending = {name for _, _, name, _, gone in batch if gone and name not in over}
        for name in sorted(ending, key=parts.mark):  # the one furthest ahead ends last
            parts.move()
            parts.end(name)
        parts.move()
    return verdicts


def made_rows(seed: int, most: int) -> list[Row]:
    """Times that go up, with some disorder; few groups, some of which end and come again."""
    chance = random.Random(seed)
    step, back = chance.choice([0.3, 1.0, 3.0]), chance.choice([0, 2, 10])
    ends = chance.choice([0.05, 0.15, 0.4])
    found: list[Row] = []
    for at in range(chance.randint(0, most)):
        name, gone = chance.choice("aabbcde"), chance.random() < ends
        time = int(at * step) - chance.randint(0, back)
        pure = gone and chance.random() < 0.3
        found.append(
            (
                None if pure else time,
                None if pure else chance.choice([None, 0, 1, 2]),
                name,
                None if pure else chance.choice([None, 0, 1, 5, -7]),
                gone or chance.choice([None, False]),
            )
        )
    return found


@st.composite
def ending(
    draw: Any,
    name: str,
    key: str = "groups",
    whole: bool = False,
    announced: bool = True,
    most: int = 30,
) -> Ended:
    """A log whose channels or groups end. ``whole``: whether something is promised on the whole
    stream, where new ones join."""
    rows = made_rows(draw(st.integers(0, 9_999)), most)
    contract = draw(st.sampled_from(PROMISES))
    table = pl.DataFrame(rows, SCHEMA, orient="row")
    options: Any = {key: "s"}
    stream = lw.stream(
        table, name=name, time="ts", progress=contract, jump=None, ended="gone", **options
    )
    names = table["s"].unique().to_list() if announced else []
    return Ended(stream, table, in_order(rows, contract, whole, names))


@st.composite
def ending_in_batches(
    draw: Any, name: str, key: str = "groups", whole: bool = False, most: int = 40
) -> Ended:
    """The same in batches without order."""
    rows = made_rows(draw(st.integers(0, 9_999)), most)
    edges = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    batches = [b - a for a, b in pairwise([0, *edges, len(rows)])]
    contract = draw(st.sampled_from(PROMISES))
    table = pl.DataFrame(rows, SCHEMA, orient="row")
    options: Any = {key: "s"}
    source: Any = Unordered(table, batches)
    stream = lw.stream(
        source, name=name, time="ts", progress=contract, jump=None, ended="gone", **options
    )
    return Ended(stream, table, in_batches(rows, batches, contract, whole))
