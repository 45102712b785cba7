"""The claim on the memory of update queues: the queue it runs, and what would not hold."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lowwater.claims import registry, updates_memory
from lowwater.claims.updates_memory import (
    KEYS,
    PagedMemory,
    Queue,
    memory_outcome,
    prepare,
    run_one,
    updates,
)
from tests.support.plots import readable


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    outcome = updates_memory.run(True)
    assert outcome.holds, outcome.ours
    return outcome.table


def test_the_claim_is_listed() -> None:
    assert registry.find(["up-f16"]) == (updates_memory.F16,)


def test_rates_of_keys_are_as_skewed_as_theta_says() -> None:
    even, skewed = (np.bincount(updates(100_000, theta, 100)[0]) for theta in (0.0, 0.9))
    assert len(even) == len(skewed) == KEYS
    assert even.min() > 0.8 * even.max()
    assert skewed[0] / skewed[9] == pytest.approx(10**0.9, rel=0.1)


@pytest.mark.parametrize("name", updates_memory.MANAGERS)
def test_a_key_that_waits_keeps_its_place_and_leaves_with_its_newest_row(name: str) -> None:
    queue = prepare(name)
    _, rows = updates(5, 0.0, 10)
    queue.enqueue(np.array([3, 1, 3]), rows[:3])
    queue.enqueue(np.array([2, 1]), rows[3:])
    left = [queue.dequeue() for _ in range(4)]
    assert [None if each is None else (each[0], each[1]["number"].item()) for each in left] == [
        (3, 2),
        (1, 4),
        (2, 3),
        None,
    ]


def test_all_keys_have_a_location_before_the_naive_manager_is_measured() -> None:
    naive, paging = prepare("naive").memory, prepare("paging").memory
    assert (naive.used, naive.dirty) == (0, KEYS)
    assert (paging.used, paging.pages, paging.bytes) == (0, 0, 0)


def test_bytes_of_whole_pages_are_measured_too(table: pl.DataFrame) -> None:
    assert (table["effective_bytes"] < 1).all()
    assert (table["page_locations"] >= table["usage_locations"]).all()
    paging = table.filter(pl.col("manager") == "paging")
    assert (paging["effective_usage"] == 1).all()


def test_a_manager_that_keeps_locations_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    class Leaking(PagedMemory):
        def remove(self, locations: np.ndarray) -> None:
            if int(locations[0]) % 2:
                super().remove(locations)

    monkeypatch.setitem(updates_memory.MANAGERS, "paging", Leaking)
    runs = [
        run_one(name, theta, rate, 20)
        for theta in (0.0, 0.9)
        for rate in (20, 200)
        for name in updates_memory.MANAGERS
    ]
    outcome = memory_outcome(pl.DataFrame(runs))
    assert not outcome.holds
    assert "effective usage of paging falls" in outcome.ours
    assert "paging uses more" in outcome.ours


def test_other_shapes_do_not_hold(table: pl.DataFrame) -> None:
    flat = pl.when(pl.col("manager") == "naive").then(0.5).otherwise("effective_usage")
    outcome = memory_outcome(table.with_columns(effective_usage=flat))
    assert not outcome.holds
    assert "does not fall with skew" in outcome.ours
    assert "does not rise with load" in outcome.ours


def test_memory_that_loses_an_update_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Losing(PagedMemory):
        def add(self, rows: pl.DataFrame, owners: np.ndarray | None = None) -> np.ndarray:
            locations = self._empty.take(rows.height)
            super().write(locations, rows)
            return locations

        def write(self, *_: object) -> None:
            pass

    monkeypatch.setitem(updates_memory.MANAGERS, "paging", Losing)
    with pytest.raises(AssertionError, match="newest"):
        run_one("paging", 0.9, 200, 20)


def test_it_is_drawn(table: pl.DataFrame) -> None:
    assert "at least 100% hold a row" in readable("UP-F16", memory_outcome(table))


def test_an_empty_queue_gives_nothing() -> None:
    assert Queue(PagedMemory(updates_memory.SCHEMA)).dequeue() is None
