"""Targets of staleness: which keys miss them, what is counted, and that it is told once."""

from __future__ import annotations

import json
import warnings
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.metrics import plain, restored
from lowwater.updates.freshness import Freshness, MissedTarget
from lowwater.updates.staleness import Staleness
from tests.unit.running import finished


def stream(**options: Any) -> lw.Stream:
    """Rows of a, b, c in turn, one a second."""
    rows = pl.DataFrame(
        {"ts": range(60), "k": [*"abc"] * 20, "came": [float(n) for n in range(60)]}
    )
    return lw.stream(
        lw.replay(rows, arrival="came"), name="S", time="ts", update_key="k", **options
    )


def loaded(query: lw.Stream) -> lw.Run:
    return finished(query, tick=0, charge=lw.per_row("4 seconds"))


def longest(run: lw.Run) -> dict[Any, float]:
    """The greatest staleness of each key, from its own rows: a result that leaves at its time shows
    all rows that came before the work on it began."""
    found: dict[Any, float] = {}
    shown: dict[Any, int] = {}
    end = 0.0
    for row in run.results().to_pylist():
        begun = max(end, row["came"])
        end = begun + 4
        first = next(n for n in range(shown.get(row["k"], -1) + 1, 60) if "abc"[n % 3] == row["k"])
        found[row["k"]] = max(found.get(row["k"], 0), end - first)
        shown[row["k"]] = row["ts"]
    return found


def test_keys_beyond_their_targets_are_counted_named_and_warned_of_once() -> None:
    true = longest(loaded(stream()))
    bound = max(true.values()) - 1
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run = loaded(stream(fresh_within=f"{bound} seconds"))
    worse = {key: each for key, each in true.items() if each > bound}
    queue = run.metrics().operator("update")
    assert queue.staleness is not None
    found = queue.staleness.freshness
    assert found is not None
    assert (found.keys, found.beyond, found.missed) == (3, 0, len(worse))
    assert {key: each.longest for (key,), each in found.worst.items()} == worse
    assert all(each.now == 0 and each.target == bound for each in found.worst.values())
    assert queue.about["keys staler than their target"] == 0
    assert queue.about["keys that missed their target"] == len(worse) > 0
    (message,) = [str(each.message) for each in told if each.category is lw.StreamWarning]
    assert message.startswith("update#")
    assert "staler than fresh_within= asks: " in message
    for remedy in ("weights=", "fewer keys", "less work for a row", "budget="):
        assert remedy in message


def test_targets_of_single_keys_concern_no_other() -> None:
    with pytest.warns(lw.StreamWarning, match="1 key was staler"):
        run = loaded(stream(fresh_within={"b": "1 second", "z": "1 second"}))
    found = run.metrics().operator("update").staleness
    assert found is not None
    assert found.freshness is not None
    assert found.freshness.keys == 1
    assert set(found.freshness.worst) == {("b",)}


def test_targets_that_are_met_are_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = loaded(stream(fresh_within="1 hour"))
    assert run.metrics().operator("update").about["keys that missed their target"] == 0
    assert (
        "keys that missed their target" not in loaded(stream()).metrics().operator("update").about
    )


def test_keys_that_were_forgotten_stay_counted() -> None:
    rows = pl.DataFrame(
        {"ts": range(60), "k": [n // 3 for n in range(60)], "came": [n / 1.0 for n in range(60)]}
    )
    log = lw.replay(rows, arrival="came")
    query = lw.stream(
        log, name="S", time="ts", update_key="k", expire="5 seconds", fresh_within="1 second"
    )
    with pytest.warns(lw.StreamWarning):
        queue = loaded(query).metrics().operator("update")
    assert int(queue.about["keys"]) < 20
    assert queue.about["keys that missed their target"] == 20


def test_windows_have_targets() -> None:
    query = stream(fresh_within="1 second").window("5 seconds").group_by("k").agg(n="count(*)")
    with pytest.warns(lw.StreamWarning, match=r"update windows#\d+: 3 keys|1 key"):
        run = loaded(query)
    assert run.metrics().operator("update windows").about["keys that missed their target"] == 3


def test_freshness_of_buckets_is_put_together_and_survives_json() -> None:
    one = Freshness(2, 1, 1, {("a",): MissedTarget(3.0, 2.0, 1.0)})
    two = Freshness(1, 0, 4, {("b",): MissedTarget(9.0, 0.0, 1.0)})
    both = Freshness.of([one, two])
    assert (both.keys, both.beyond, both.missed) == (3, 1, 5)
    assert list(both.worst) == [("b",), ("a",)]
    found = Staleness(0.0, 0.0, 0.0, 1, 1.0, {}, both)
    assert restored(Staleness, json.loads(json.dumps(plain(found)))) == found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("0 seconds", "fresh_within= is a length of time above zero"),
        ({}, "fresh_within= names no key"),
        ({"a": "soon"}, "fresh_within=: the target of 'a'"),
        ({("a", "b"): "1 second"}, "names no key of 1 column"),
        ({7: "1 second"}, "fresh_within=: 7 is no value of update key column 'k'"),
    ],
)
def test_wrong_targets_are_refused(given: Any, message: str) -> None:
    with pytest.raises(lw.LowwaterError, match=message):
        stream(fresh_within=given)


def test_targets_are_options_of_update_streams() -> None:
    table = pl.DataFrame({"ts": [1]})
    with pytest.raises(lw.OptionError, match="fresh_within= is for update streams"):
        lw.stream(table, name="S", time="ts", fresh_within="1 second")
    assert "fresh within 5 s" in stream(fresh_within="5 seconds").explain()
    assert "1 keys with targets" in stream(fresh_within={"a": 1_000_000_000}).explain()
