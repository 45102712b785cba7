"""Joins of update streams, kernel by kernel: what is newest of each key meets."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest

from lowwater.state import keyed_rows
from lowwater.state.store import MemoryStore
from lowwater.stream.element import End, GroupPunctuation, Punctuation
from lowwater.updates.newest_join import NewestFilter, NewestJoin, NewestShape

Row = tuple[Any, ...]
KEYED = NewestShape(
    keys=(("k",), ("rk",)),
    stamps=(("ts",), ("rts",)),
    right_names={"ts": "rts", "k": "rk", "v": "rv"},
    output=("k", "ts", "rts", "v", "rv"),
    check=None,
)


def chunk(*rows: Row) -> pl.DataFrame:
    schema = {"ts": pl.Int64, "k": pl.String, "v": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def join(**options: Any) -> NewestJoin:
    shape = NewestShape(**{**vars(KEYED), **options})
    return NewestJoin(MemoryStore(), shape)


def met(kernel: NewestJoin, port: int, *rows: Row) -> list[Row]:
    return [row for each in kernel.on_chunk(port, chunk(*rows)) for row in each.rows()]  # type: ignore[union-attr]


def test_a_row_is_joined_with_the_newest_of_the_other_side() -> None:
    kernel = join()
    assert met(kernel, 0, (1, "a", 1), (2, "b", 2)) == []
    assert met(kernel, 1, (1, "a", 10)) == [("a", 1, 1, 1, 10)]
    assert met(kernel, 0, (5, "a", 3)) == [("a", 5, 1, 3, 10)]
    assert met(kernel, 1, (2, "a", 20), (2, "b", 30)) == [("a", 5, 2, 3, 20), ("b", 2, 2, 2, 30)]


def test_rows_that_come_together_are_joined_from_the_oldest_on() -> None:
    kernel = join()
    met(kernel, 0, (1, "a", 1))
    assert met(kernel, 1, (4, "a", 40), (3, "a", 30)) == [("a", 1, 3, 1, 30), ("a", 1, 4, 1, 40)]
    assert met(kernel, 0, (2, "a", 2)) == [("a", 2, 4, 2, 40)]


def test_a_row_that_is_older_than_what_is_shown_changes_nothing() -> None:
    kernel = join()
    met(kernel, 0, (5, "a", 1))
    assert met(kernel, 0, (4, "a", 2)) == []
    assert met(kernel, 1, (1, "a", 10)) == [("a", 5, 1, 1, 10)]


def test_of_rows_of_one_time_the_last_counts() -> None:
    kernel = join()
    met(kernel, 0, (5, "a", 1), (5, "a", 2))
    assert met(kernel, 1, (1, "a", 10)) == [("a", 5, 1, 2, 10)]
    assert met(kernel, 1, (1, "a", 11)) == [("a", 5, 1, 2, 11)]


def test_null_is_no_key() -> None:
    kernel = join()
    met(kernel, 0, (1, None, 1))
    assert met(kernel, 1, (1, None, 10)) == []
    assert kernel.store.rows == 0


def test_the_newest_pair_is_what_the_condition_is_about() -> None:
    kernel = join(check=pl.col("v") < pl.col("rv"))
    met(kernel, 0, (1, "a", 1))
    assert met(kernel, 1, (1, "a", 0)) == []
    assert met(kernel, 1, (2, "a", 5)) == [("a", 1, 2, 1, 5)]
    assert met(kernel, 0, (3, "a", 9)) == []
    assert met(kernel, 1, (3, "a", 9)) == []


def test_without_a_key_all_rows_are_updates_of_one_thing() -> None:
    kernel = join(keys=((), ()))
    met(kernel, 0, (1, "a", 1), (2, "b", 2))
    assert met(kernel, 1, (1, "c", 10)) == [("b", 2, 1, 2, 10)]


def test_one_row_of_a_key_and_side_is_kept_and_none_after_the_end() -> None:
    kernel = join()
    for at in range(20):
        met(kernel, at % 2, *((at, key, at) for key in "abc"))
    assert kernel.store.rows == 6
    assert kernel.on_punctuation(0, Punctuation.linear("ts", 100)) == []
    assert kernel.on_end(0) == []
    assert met(kernel, 1, (30, "a", 30)) == [("a", 18, 30, 18, 30)]
    assert kernel.on_end(1) == [End()]
    assert kernel.store.rows == 0


def test_of_rows_with_several_times_the_greatest_says_which_is_newest() -> None:
    shape = NewestShape(
        keys=(("k",), ("rk",)),
        stamps=(("ts", "v"), ("rts",)),
        right_names={"ts": "rts", "k": "rk", "v": "rv"},
        output=("ts", "v"),
        check=None,
    )
    kernel = NewestJoin(MemoryStore(), shape)
    met(kernel, 0, (9, "a", 1))
    met(kernel, 0, (8, "a", 7))
    assert met(kernel, 1, (0, "a", 0)) == [(9, 1)]
    assert met(kernel, 0, (2, "a", 9)) == [(2, 9)]


# ---- of all pairs, the newest ------------------------------------------------------------------


def newest(key: tuple[str, ...] = ("k",)) -> NewestFilter:
    return NewestFilter(MemoryStore(), key, ("ts", "v"))


def shown(kernel: NewestFilter, *rows: Row) -> list[Row]:
    return [row for each in kernel.on_chunk(0, chunk(*rows)) for row in each.rows()]  # type: ignore[union-attr]


def test_of_pairs_of_one_time_that_with_the_newest_partner_is_shown() -> None:
    assert shown(newest(), (9, "a", 1), (9, "a", 5), (3, "a", 9), (4, "b", 1)) == [
        (4, "b", 1),
        (9, "a", 5),
    ]


def test_pairs_leave_in_the_order_of_their_times_and_never_go_back() -> None:
    kernel = newest()
    assert shown(kernel, (5, "a", 1), (2, "a", 3)) == [(2, "a", 3), (5, "a", 1)]
    assert shown(kernel, (4, "a", 4), (5, "a", 0), (5, "a", 1)) == []
    assert shown(kernel, (5, "a", 2), (1, "b", 1)) == [(1, "b", 1), (5, "a", 2)]


def test_without_a_key_pairs_are_updates_of_one_thing() -> None:
    kernel = newest(())
    assert shown(kernel, (5, "a", 1)) == [(5, "a", 1)]
    assert shown(kernel, (4, "b", 1)) == []


def test_promises_pass_and_what_was_shown_is_forgotten_at_the_end() -> None:
    kernel = newest()
    shown(kernel, (5, "a", 1), (5, "b", 1), (6, "b", 1))
    assert kernel.store.rows == 2
    promise = Punctuation.linear("ts", 7)
    group = GroupPunctuation("ts", pl.DataFrame({"k": ["a"], "__mark": [7]}))
    assert kernel.on_punctuation(0, promise) == [promise]
    assert kernel.on_group_punctuation(0, group) == [group]
    assert kernel.on_end(0) == [End()]
    assert kernel.store.rows == 0


@pytest.mark.parametrize("seed", range(8))
def test_of_many_keys_each_meets_its_own(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Step by step beside two dictionaries, whatever the slices keys are in."""
    monkeypatch.setattr(keyed_rows, "ROWS_PER_SLICE", 3)
    chance = random.Random(seed)
    kernel = join()
    newest: list[dict[str, Row]] = [{}, {}]
    for step in range(60):
        port = chance.randint(0, 1)
        times = [step - chance.randint(0, 3) for _ in range(chance.randint(1, 8))]
        rows = [(time, f"k{chance.randint(0, 40)}", at) for at, time in enumerate(sorted(times))]
        expected = []
        for row in rows:
            time, key, value = row
            if key in newest[port] and newest[port][key][0] > time:
                continue
            newest[port][key] = row
            if key in newest[1 - port]:
                other, _, met_value = newest[1 - port][key]
                pair = (key, time, other, value, met_value)
                expected.append(pair if port == 0 else (key, other, time, met_value, value))
        if chance.random() < 0.2:
            again = NewestJoin(kernel.store, KEYED)
            again.restore(kernel.snapshot())
            kernel = again
        assert met(kernel, port, *rows) == expected
    assert kernel.store.rows == sum(map(len, newest))


JOIN = (NewestJoin, KEYED), [(0, (1, "a", 1)), (1, (3, "a", 2)), (0, (2, "a", 5)), (1, (2, "a", 9))]
PAIRS = (NewestFilter, ("k",), ("ts", "v")), [(0, (1, "a", 1)), (0, (3, "a", 2)), (0, (2, "a", 3))]


@pytest.mark.parametrize(("parts", "steps"), [JOIN, PAIRS])
@pytest.mark.parametrize("cut", range(4))
def test_a_kernel_built_again_goes_on(parts: Any, steps: list[tuple[int, Row]], cut: int) -> None:
    make, *arguments = parts
    whole, kernel = make(MemoryStore(), *arguments), make(MemoryStore(), *arguments)
    for at, (port, row) in enumerate(steps):
        if at == cut:
            again = make(kernel.store, *arguments)
            again.restore(kernel.snapshot())
            kernel = again
        found, expected = kernel.on_chunk(port, chunk(row)), whole.on_chunk(port, chunk(row))
        assert [each.rows() for each in found] == [each.rows() for each in expected]
