"""Joins without a window over streams that promise nothing: all results, however rows are read.

The disorder of each stream is given and true, so nothing may be missed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import lowwater as lw
from tests.support.local_spark import LocalSpark
from tests.unit.running import finished


def scrambled(values: int, copies: int, places: int, seed: int) -> pl.DataFrame:
    """Each value so many times, rows up to so many places from where they should be."""
    chance = np.random.default_rng(seed)
    epochs = np.repeat(np.arange(values), copies)
    at = np.arange(len(epochs)) + chance.integers(0, places + 1, len(epochs))
    epochs = epochs[np.argsort(at, kind="stable")]
    return pl.DataFrame({"epoch": epochs, "val": np.arange(len(epochs))})


def factor(epochs: np.ndarray) -> int:
    """The scrambling factor, by its definition."""
    places = [at - int(np.argmax(epochs[: at + 1] >= each)) for at, each in enumerate(epochs)]
    return max(places)


def sensor(name: str, frame: pl.DataFrame) -> lw.Stream:
    disorder = factor(frame["epoch"].to_numpy())
    return lw.stream(
        frame, name=name, time="epoch", progress=lw.unpromised(disorder=disorder, multiplicity=2)
    )


FRAMES = {f"S{at}": scrambled(150, 2, places, at) for at, places in enumerate((5, 30, 12, 20), 1)}


def streams() -> dict[str, lw.Stream]:
    return {name: sensor(name, frame) for name, frame in FRAMES.items()}


def one() -> lw.Stream:
    """Query 1: one join of three."""
    first, second, third, _ = streams().values()
    return lw.join([first, second, third], on="epoch")


def two() -> lw.Stream:
    """Query 2: a join of joins."""
    first, second, third, fourth = streams().values()
    return first.join(second, on="epoch").join(
        third.join(fourth, on="epoch").select("epoch", c="val", d="val_right"), on="epoch"
    )


def counted(frames: list[pl.DataFrame]) -> dict[int, int]:
    """How many results each value has."""
    found: dict[int, int] = {}
    for value in range(150):
        found[value] = int(np.prod([frame.filter(epoch=value).height for frame in frames]))
    return found


TRUTH = {
    "one": counted([FRAMES[name] for name in ("S1", "S2", "S3")]),
    "two": counted(list(FRAMES.values())),
}
QUERIES = {"one": one, "two": two}


def per_value(results: pl.DataFrame) -> dict[int, int]:
    return dict(results.group_by("epoch").len().rows())


@pytest.mark.parametrize("chunk_rows", [1, 7, None])
@pytest.mark.parametrize("name", QUERIES)
def test_all_results_are_found(name: str, chunk_rows: int | None) -> None:
    run = finished(QUERIES[name](), chunk_rows=chunk_rows)
    assert per_value(pl.DataFrame(run.results())) == TRUTH[name]
    assert run.metrics().state_rows == 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", QUERIES)
def test_all_results_are_found_in_batches(name: str, seed: int) -> None:
    assert per_value(LocalSpark(QUERIES[name](), seed, 1 + seed % 3).results()) == TRUTH[name]


@pytest.mark.parametrize("strategy", ["plain", "msf", "dbf", "hybrid", "auto"])
def test_strategies_find_the_same(strategy: Any) -> None:
    first, second, third, _ = streams().values()
    joined = lw.join([first, second, third], on="epoch", strategy=strategy)
    assert per_value(pl.DataFrame(finished(joined, chunk_rows=11).results())) == TRUTH["one"]


@pytest.mark.parametrize("seed", range(4))
def test_what_follows_is_answered_by_what_the_join_tells(seed: int) -> None:
    windows = one().window("10 seconds").agg(n="count(*)")
    expected = {
        start: sum(TRUTH["one"][value] for value in range(start, start + 10))
        for start in range(0, 150, 10)
    }
    tables: list[Any] = []
    finished(windows, chunk_rows=5, sink=tables.append)
    answers = [row for table in tables for row in table.to_pylist()]
    assert {row["window_start"]: row["n"] for row in answers} == expected
    assert len(tables) > 5  # as the join goes on, not when it ends
    found = LocalSpark(windows, seed, 3).results()
    assert dict(found.select("window_start", "n").rows()) == expected
    assert found.height == len(expected)
