"""The plain, row-by-row definition of lateness, and an intake to compare it with."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import polars as pl
from hypothesis import strategies as st

import lowwater as lw
from lowwater.plan.nodes import SourceNode
from lowwater.progress.demand import Demand
from lowwater.progress.intake import Intake
from lowwater.progress.spec import StreamSpec
from lowwater.stream.element import BEGINNING, Punctuation
from tests.support.batches import promised

SCHEMA = {"id": pl.Int64, "ts": pl.Int64, "c": pl.String, "p": pl.Int64}
ANY = Demand.any_value()


def table(rows: Sequence[tuple[int, str, int | None]]) -> pl.DataFrame:
    """Rows of (time, channel, producer's mark), numbered."""
    numbered = [(at, *row) for at, row in enumerate(rows)]
    columns = {"id": pl.Int64, "ts": pl.Int64, "c": pl.String, "p": pl.Int64}
    return pl.DataFrame(numbered, schema=columns, orient="row")


rows = st.lists(
    st.tuples(
        st.integers(-30, 30),
        st.sampled_from("ab"),
        st.one_of(st.none(), st.integers(-30, 20)),
    ),
    max_size=30,
)
contracts = st.one_of(
    st.just(lw.ordered()),
    st.integers(0, 30).map(lw.within),
    st.integers(0, 6).map(lw.within_rows),
)


def spec_of(source: Any = None, **options: Any) -> StreamSpec:
    """The spec of a declared stream."""
    source = pl.DataFrame(schema=SCHEMA) if source is None else source
    node = lw.stream(source, **{"time": "ts", "name": "s", "jump": None} | options)._node
    assert isinstance(node, SourceNode)
    return node.spec


def intake(
    demands: dict[str, Demand] | None = None, announced: Sequence[Hashable] = (), **options: Any
) -> Intake:
    """An intake of a stream declared with these options."""
    return Intake(spec_of(**options), demands or {"ts": ANY}, announced)


@dataclass
class Outcome:
    """What became of a whole stream."""

    kept: list[int]
    late: list[int]
    mark: int


def judge(
    given: Sequence[tuple[int, str, int | None]], contract: Any, keyed: bool, announced: str = ""
) -> Outcome:
    """Row by row: a row is late if it is below what its channel had promised before it."""
    seen: dict[str, list[tuple[int, int | None]]] = {name: [] for name in announced}
    floor = dict.fromkeys(announced, BEGINNING)
    if not keyed:
        seen, floor = {"": []}, {"": BEGINNING}

    def mark_of(name: str) -> int:
        return max(floor[name], promised(seen[name], contract))

    kept, late = [], []
    for at, (time, channel, mark) in enumerate(given):
        name = channel if keyed else ""
        if name not in seen:
            joins_at = min((mark_of(each) for each in seen), default=BEGINNING)
            seen[name], floor[name] = [], joins_at
        (late if time < mark_of(name) else kept).append(at)
        seen[name].append((time, mark))
    return Outcome(kept, late, min((mark_of(each) for each in seen), default=BEGINNING))


def run(
    judged: Intake,
    frame: pl.DataFrame,
    cuts: Sequence[int] = (),
    restart_at: int | None = None,
    demands: dict[str, Demand] | None = None,
) -> tuple[Outcome, list[Punctuation]]:
    """Take a stream in, cut at these places, torn down and built again at one of them."""
    edges = sorted({0, frame.height, *(cut for cut in cuts if cut < frame.height)})
    kept: list[int] = []
    late: list[int] = []
    promises: list[Punctuation] = []
    for at, (first, last) in enumerate(pairwise(edges)):
        if at == restart_at:
            saved = copy.deepcopy(judged.snapshot())
            judged = Intake(judged.spec, demands or {"ts": ANY})
            judged.restore(saved)
        taken = judged.take(frame.slice(first, last - first), now=at)
        kept += taken.rows["id"].to_list()
        late += [] if taken.refused is None else taken.refused["id"].to_list()
        promises += [each for each in taken.promises if isinstance(each, Punctuation)]
    return Outcome(kept, sorted(late), judged.mark("ts")), promises
