"""A memory budget over the joins of a query: shares, admission, and what people are shown."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.joins.oblivious.memory_manager import MEMORY_BUDGET, MEMORY_LEAST, MEMORY_SHARE
from lowwater.metrics import OperatorMetrics
from tests.support.local_spark import LocalSpark
from tests.unit.running import finished

ROWS = 3_000


def log(seed: int, places: int, behind: int = 0) -> pl.DataFrame:
    chance = random.Random(seed)
    order = sorted(range(ROWS), key=lambda at: at + chance.uniform(0, places))
    arrived = [(at + behind) / 100 for at in range(ROWS)]
    return pl.DataFrame({"epoch": order, f"v{seed}": order, "at": arrived})


def stream(seed: int, places: int, behind: int = 0, **facts: Any) -> lw.Stream:
    frame = log(seed, places, behind)
    promise = lw.unpromised(**facts)
    return lw.stream(lw.replay(frame, "at"), name=f"s{seed}", time="epoch", progress=promise)


def pairs() -> lw.Stream:
    """Three joins: of two prompt inputs, of two of which one is far behind, and of their results.

    No result is found twice, so the needs are those of the disorder and of the lag.
    """
    one = stream(1, 50).join(stream(2, 50), on="epoch")
    two = stream(3, 50).join(stream(4, 50, behind=800), on="epoch")
    return one.join(two, on="epoch", suffix="_2")


@contextmanager
def quiet() -> Iterator[None]:
    """Results may be lost, and are not what a test is about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.StreamWarning)
        yield


# ---- shares --------------------------------------------------------------------------------


def watched(query: lw.Stream, **options: Any) -> tuple[lw.Run, list[list[OperatorMetrics]]]:
    """A run that is over, and the joins under a budget as they were at each of its results."""
    seen: list[list[OperatorMetrics]] = []

    def look(_: Any) -> None:
        found = started[0].metrics().operators
        seen.append([each for each in found if MEMORY_SHARE in each.readings])

    started: list[lw.Run] = []
    with quiet():
        started.append(query.run(sink=look, tick="500 ms", **options))
        assert started[0].await_termination(60)
    return started[0], seen


def test_joins_share_the_budget_by_need_and_find_all_results() -> None:
    run, seen = watched(pairs(), memory="60 kB")
    assert run.metrics().rows_out >= 0.999**3 * ROWS  # three joins, each at its accuracy
    prompt, lagging, _ = (each.readings for each in seen[len(seen) // 2])
    assert lagging[MEMORY_SHARE] > 2 * prompt[MEMORY_SHARE]
    assert {prompt[MEMORY_BUDGET], lagging[MEMORY_BUDGET]} == {60_000}
    for joins in seen:
        assert sum(each.readings[MEMORY_SHARE] for each in joins) <= 60_000


def test_all_joins_together_stay_within_the_budget() -> None:
    _, seen = watched(pairs(), memory="12 kB")
    assert len(seen) > 20
    assert max(sum(each.state_bytes for each in joins) for joins in seen) <= 12_000


def test_the_memory_of_one_join_is_its_own_limit_within_the_budget() -> None:
    joined = stream(1, 200).join(stream(2, 200), on="epoch", memory="2 kB", strategy="plain")
    run, seen = watched(joined, memory="1 MB")
    (operator,) = seen[len(seen) // 2]
    assert operator.readings[MEMORY_SHARE] == 1_000_000
    assert operator.readings[MEMORY_LEAST] <= 2_000
    (ended,) = (each for each in run.metrics().operators if MEMORY_SHARE in each.readings)
    assert ended.state_bytes_peak < 10_000
    assert ended.readings[MEMORY_SHARE] == 0


@pytest.mark.parametrize("seed", range(3))
def test_buckets_share_their_parts_of_the_budget(seed: int) -> None:
    local = LocalSpark(pairs(), seed, 2, memory=200_000)
    found = local.results()
    assert found.height >= 0.99 * ROWS
    held = [each.readings for each in local.metrics().operators if MEMORY_SHARE in each.readings]
    assert [each[MEMORY_BUDGET] for each in held] == [200_000] * 3
    assert sum(each[MEMORY_SHARE] for each in held) <= 200_000


# ---- admission -----------------------------------------------------------------------------


def declared(**more: Any) -> lw.Stream:
    facts = {"disorder": 500, "multiplicity": 1} | more
    return stream(1, 400, **facts).join(stream(2, 400, **facts), on="epoch", strategy="plain")


def test_a_query_is_refused_before_it_begins_by_what_is_declared() -> None:
    said = r"99\.9 % .* need 53\.3 kB of memory, and 20 kB of the budget of 20 kB are left"
    with pytest.raises(lw.AdmissionError, match=said):
        declared(rate=100.0).run(memory="20 kB", admission="refuse")
    with pytest.raises(lw.AdmissionError, match=said):
        declared().collect(memory="20 kB", admission="refuse", rates={"s1": 100, "s2": 100})


def test_a_query_that_needs_more_is_told_and_runs() -> None:
    with pytest.warns(lw.StreamWarning, match=r"the joins need 53\.3 kB") as told:
        finished(declared(rate=100.0), memory="20 kB", tick="500 ms")
    assert sum("the joins need" in str(each.message) for each in told) == 1


def test_a_query_of_which_nothing_is_declared_is_judged_by_what_is_measured() -> None:
    joined = stream(1, 200).join(stream(2, 200), on="epoch", strategy="plain")
    with quiet():
        run = joined.run(memory="1 kB", admission="refuse", tick="500 ms")
        with pytest.raises(lw.AdmissionError, match=r"need .* and 1 kB of the budget of 1 kB"):
            run.await_termination(60)
    assert 0 < run.metrics().streams[0].rows < ROWS
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        finished(joined, memory="1 kB", tick="500 ms")
    assert sum("the joins need" in str(each.message) for each in told) == 1


def test_a_query_that_fits_is_not_told() -> None:
    joined = stream(1, 200).join(stream(2, 200), on="epoch")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        finished(joined, memory="1 MB", admission="refuse", tick="500 ms")


@pytest.mark.parametrize("admission", ["warn", "refuse"])
def test_buckets_that_need_more_are_judged_together(admission: str) -> None:
    joined = stream(1, 100).join(stream(2, 100), on="epoch", strategy="plain")
    local = LocalSpark(joined, 1, 2, memory=400, admission=admission)
    local.results()
    said = r"the joins of the fullest bucket need .* of the budget of 400 bytes is 200 bytes"
    if admission == "warn":
        (note,) = (each for each in local.notes if "fullest bucket" in each)
        assert re.search(said, note)
    else:
        with pytest.raises(lw.AdmissionError, match=said):
            raise local.refusal  # type: ignore[misc]


# ---- what is shown and refused -----------------------------------------------------------------


def test_explain_shows_needs_shares_and_the_budget() -> None:
    first = declared(rate=100.0).select("epoch")
    plan = first.join(stream(3, 50), on="epoch").explain(memory="100 kB")
    assert (
        "of the 100 kB of all joins, divided by need; needs 53.3 kB with strategy 'plain'" in plan
    )
    assert "divided by need; needs measured at run time" in plan
    short = declared(rate=100.0).explain(memory="5 kB")
    assert "memory: 5 kB of the 5 kB of all joins" in short
    assert "expected with it: about" in short
    assert "memory:" not in declared(rate=100.0).explain()


def test_a_budget_that_nothing_shares_is_refused() -> None:
    window = stream(1, 5).window("10 seconds").agg(n="count(*)")
    for refused in (lambda: window.run(memory="1 GB"), lambda: window.explain(memory="1 GB")):
        with pytest.raises(lw.OptionError, match="memory= is divided over joins of equal times"):
            refused()


def test_options_that_go_with_a_budget_are_refused_without_one() -> None:
    joined = declared()
    with pytest.raises(lw.OptionError, match="admission= goes with memory="):
        joined.run(admission="refuse")
    with pytest.raises(lw.OptionError, match="rates= goes with memory="):
        joined.run(rates={"s1": 1.0})
    with pytest.raises(lw.OptionError, match="unknown stream 's9'"):
        joined.run(memory="1 GB", rates={"s9": 1.0})
