"""Batches without order: a digest says as much as all rows, and no promise is broken by a verdict.

A batch is given as a whole, in parts, or row by row in ascending order; the marks that follow must
be the same, and those of the plain definition.
"""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Sequence
from itertools import combinations_with_replacement, pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.errors import StreamWarning
from lowwater.progress.contract import Learned
from lowwater.progress.demand import Demand
from lowwater.progress.digest import ATTRIBUTE, TIME, digest_schema
from lowwater.progress.intake import BatchIntake
from lowwater.progress.spec import StreamSpec
from lowwater.stream.element import BEGINNING, END_OF_TIME, MARK, Punctuation
from tests.support.batches import kept_in_batches, promised
from tests.unit.progress.judging import SCHEMA, spec_of, table
from tests.unit.progress.judging import contracts as by_rows

Rows = list[tuple[int, str, int | None]]

rows = st.lists(
    st.tuples(
        st.one_of(st.integers(-30, 30), st.integers(-30, 30), st.integers(300, 330)),
        st.sampled_from("ab"),
        st.one_of(st.none(), st.integers(-30, 20)),
    ),
    max_size=14,
)
batches = st.lists(rows, max_size=5)
contracts = st.one_of(
    by_rows,
    st.just(lw.punctuated("p")),
    st.sampled_from([0.5, 0.9]).map(lw.learned),
)
jumps = st.one_of(st.none(), st.sampled_from([1, 10, 40, 100]).map(lw.jump))
keys = st.sampled_from([{}, {"channel": "c"}, {"groups": "c"}])


def intake(spec: StreamSpec, announced: Sequence[str] = ()) -> BatchIntake:
    return BatchIntake(spec, {name: Demand.any_value() for name in spec.contracts}, announced)


def absorb(taker: BatchIntake, found: Sequence[pl.DataFrame | None], count: int) -> Any:
    """Move the marks by digests of parts; what is said about stray rows does not matter here."""
    parts = [each for each in found if each is not None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamWarning)
        return taker.absorb(pl.concat(parts) if parts else None, 0, count)


def marks(taker: BatchIntake) -> dict[str, Any]:
    """Everything rows of the next batch are judged by, and what is promised."""
    return {
        name: (dict(sorted(held.known.items(), key=str)), held.others, taker.mark(name))
        for name, held in taker.marks_before().items()
    }


def complete(taker: BatchIntake) -> list[tuple[Any, ...]]:
    """How complete the stream and its channels are; channels come in the order of a batch's rows,
    which have none."""
    return sorted(taker.completeness(), key=lambda found: str(found[:2]))


def leaps(found: dict[str, pl.DataFrame]) -> dict[str, set[Any]]:
    """The rows dated far ahead that were found."""
    return {name: set(rows.rows()) for name, rows in found.items()}


def all_times(spec: StreamSpec, frame: pl.DataFrame) -> pl.DataFrame:
    """The digest that keeps everything: each row's own time, and its mark."""
    keyed = [pl.col(name) for name in spec.key_columns]
    told = isinstance(spec.contracts["ts"], type(lw.punctuated("p")))
    mark = pl.col("p").fill_null(BEGINNING) if told else pl.lit(BEGINNING, dtype=pl.Int64)
    time = pl.col("ts").fill_null(END_OF_TIME).alias(TIME)
    whole = frame.select(*keyed, pl.lit("ts").alias(ATTRIBUTE), time, mark.alias(MARK))
    if isinstance(spec.contracts["ts"], Learned):  # each row to be believed, and to be counted
        once = pl.lit(1, dtype=pl.Int64).alias(MARK)
        whole = pl.concat([whole, whole.with_columns(once)])
    return whole.select(list(digest_schema(spec)))


def cut(data: Any, frame: pl.DataFrame) -> list[pl.DataFrame]:
    """A batch in parts, its rows in any order."""
    order = data.draw(st.permutations(range(frame.height)))
    cuts = data.draw(st.lists(st.integers(0, frame.height), max_size=3))
    edges = [0, *sorted(cuts), frame.height]
    mixed = frame[order]
    return [mixed.slice(first, last - first) for first, last in pairwise(edges)]


def reborn(taker: BatchIntake) -> BatchIntake:
    fresh = intake(taker.spec)
    fresh.restore(copy.deepcopy(taker.snapshot()))
    return fresh


@given(batches, contracts, jumps, keys, st.data())
def test_a_digest_moves_marks_as_all_rows_and_as_digests_of_parts_do(
    given_batches: list[Rows], contract: Any, jump: Any, keyed: dict[str, str], data: Any
) -> None:
    spec = spec_of(progress=contract, jump=jump, **keyed)
    whole, parted, full = intake(spec), intake(spec), intake(spec)
    for batch in map(table, given_batches):
        if data.draw(st.booleans()):
            parted = reborn(parted)
        one = absorb(whole, [whole.digest(batch)], batch.height)
        two = absorb(parted, [parted.digest(part) for part in cut(data, batch)], batch.height)
        all_ = absorb(full, [all_times(spec, batch)], batch.height)
        assert marks(parted) == marks(whole) == marks(full)
        assert complete(parted) == complete(whole) == complete(full)
        assert leaps(two) == leaps(one) == leaps(all_)


@pytest.mark.parametrize(
    "contract", [lw.ordered(), lw.within(2), lw.within_rows(1), lw.learned(0.9)], ids=str
)
def test_the_digest_of_any_few_times_moves_the_mark_as_they_do(contract: Any) -> None:
    spec = spec_of(progress=contract, jump=lw.jump(1))
    for count in range(6):
        for times in combinations_with_replacement([0, 2, 3, 300, 302], count):
            batch = table([(time, "a", None) for time in times])
            small, full = intake(spec), intake(spec)
            absorb(small, [small.digest(batch)], count)
            absorb(full, [all_times(spec, batch)], count)
            assert (times, marks(small)) == (times, marks(full))


@given(batches, contracts, keys, st.booleans(), st.data())
def test_marks_and_verdicts_are_those_of_the_plain_definition(
    given_batches: list[Rows], contract: Any, keyed: dict[str, str], known: bool, data: Any
) -> None:
    announced = "ab" if keyed and known else ""
    taker = intake(spec_of(progress=contract, **keyed), announced)
    flat = [row for batch in given_batches for row in batch]
    sizes = [len(batch) for batch in given_batches]
    expected = kept_in_batches(flat, sizes, contract, bool(keyed), announced)
    kept: list[int] = []
    numbered = table(flat)
    for at, size in zip([0, *_sums(sizes)], sizes, strict=False):
        batch = numbered.slice(at, size)
        standing = taker.marks_before()
        for part in cut(data, batch):
            kept += taker.judge(part, standing)["id"].to_list()
        absorb(taker, [taker.digest(batch)], size)
    assert sorted(kept) == [at for at, on_time in enumerate(expected) if on_time]
    refused = taker.refused()
    assert len(kept) + (0 if refused is None else refused.height) == len(flat)
    if not keyed and not isinstance(contract, Learned):
        in_order = [(t, m) for batch in given_batches for t, _, m in sorted(batch, key=_time)]
        assert taker.mark("ts") == promised(in_order, contract)


@given(batches, contracts, jumps, keys, st.data())
def test_no_row_that_is_let_in_is_below_a_promise_and_promises_never_go_back(
    given_batches: list[Rows], contract: Any, jump: Any, keyed: dict[str, str], data: Any
) -> None:
    taker = intake(spec_of(progress=contract, jump=jump, **keyed))
    promise = BEGINNING
    for batch in map(table, given_batches):
        standing = taker.marks_before()
        found = absorb(taker, [taker.digest(batch)], batch.height)
        for part in cut(data, batch):
            let_in = taker.judge(part, standing, found)
            assert let_in.filter(pl.col("ts") < promise).is_empty()
        told = [each for each in taker.row_promises() if isinstance(each, Punctuation)]
        assert [value for each in told for value in each.values] == sorted(
            {value for each in told for value in each.values}
        )
        for each in told:
            assert each.values[0] > promise
            promise = each.values[0]
        assert promise <= taker.mark("ts")
        taker = reborn(taker)


@given(st.lists(rows, min_size=1, max_size=4), contracts, jumps, st.data())
def test_two_progressing_columns_do_not_mix(
    given_batches: list[Rows], contract: Any, jump: Any, data: Any
) -> None:
    """Each column of a stream has the marks it would have if it were the only one."""
    schema = {**SCHEMA, "second": pl.Int64}
    other = data.draw(st.integers(0, 20).map(lw.within))
    empty = pl.DataFrame(schema=schema)
    both = intake(spec_of(empty, progress={"ts": contract, "second": other}, jump=jump))
    alone = {
        "ts": intake(spec_of(empty, progress=contract, jump=jump)),
        "second": intake(spec_of(empty, time="second", progress=other, jump=jump)),
    }
    for batch in map(table, given_batches):
        frame = batch.with_columns(second=-pl.col("ts") + pl.col("id"))
        absorb(both, [both.digest(part) for part in cut(data, frame)], frame.height)
        for name, single in alone.items():
            absorb(single, [single.digest(frame)], frame.height)
            assert marks(both)[name] == marks(single)[name]


@given(batches, st.sampled_from([{}, {"channel": "c"}]), st.data())
def test_rows_that_are_nothing_but_a_promise_count_and_rows_without_a_time_do_not(
    given_batches: list[Rows], keyed: dict[str, str], data: Any
) -> None:
    """Bare marks move the mark and are not passed on; a row with neither is refused."""
    spec = spec_of(progress=lw.punctuated("p"), **keyed)
    whole, parted = intake(spec), intake(spec)
    for batch in map(table, given_batches):
        bare = data.draw(st.lists(st.booleans(), min_size=batch.height, max_size=batch.height))
        frame = batch.with_columns(
            ts=pl.when(pl.Series(bare, dtype=pl.Boolean)).then(None).otherwise(pl.col("ts"))
        )
        standing = whole.marks_before()
        absorb(whole, [whole.digest(frame)], frame.height)
        absorb(parted, [parted.digest(part) for part in cut(data, frame)], frame.height)
        assert marks(whole) == marks(parted)
        let_in = whole.judge(frame, standing)
        assert let_in["ts"].null_count() == 0
        refused = whole.refused()
        lost = 0 if refused is None else refused.height
        pure = frame.filter(pl.col("ts").is_null() & pl.col("p").is_not_null()).height
        assert let_in.height + lost + pure == frame.height


@given(st.integers(0, 999), st.data())
def test_an_honest_producer_is_never_said_to_go_back(seed: int, data: Any) -> None:
    """Every mark is true of all rows after it, however the stream is cut and read."""
    chance = random.Random(seed)
    times = [at // 2 + chance.randint(0, 9) for at in range(chance.randint(0, 20))]
    told = [
        min(times[at + 1 :], default=None) if chance.random() < 0.4 else None
        for at in range(len(times))
    ]
    frame = table([(time, "a", mark) for time, mark in zip(times, told, strict=True)])
    taker = intake(spec_of(progress=lw.punctuated("p"), late="fail"))
    cuts = sorted(data.draw(st.lists(st.integers(0, frame.height), max_size=3)))
    for first, last in pairwise([0, *cuts, frame.height]):
        batch = frame.slice(first, last - first)
        standing = taker.marks_before()
        parts = [taker.digest(part) for part in cut(data, batch)]
        taker.absorb(pl.concat([each for each in parts if each is not None]), 0, batch.height)
        assert taker.judge(batch, standing).height == batch.height
        highest = batch["p"].max()
        assert highest is None or taker.mark("ts") >= highest
    assert taker.account.backward_marks == 0


def _sums(sizes: Sequence[int]) -> list[int]:
    return [sum(sizes[: at + 1]) for at in range(len(sizes))]


def _time(row: tuple[int, str, int | None]) -> int:
    return row[0]
