"""Promises through row-wise operators and union: sound, translated, never twice."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.operators.apply import Apply
from lowwater.operators.kernel import Request
from lowwater.operators.rowwise import Derivation, Project, Select
from lowwater.operators.union import Union
from lowwater.plan.expressions import compile_expression
from lowwater.plan.sql.parser import read_expression
from lowwater.state.store import MemoryStore
from lowwater.stream.element import END_OF_TIME, MARK, End, GroupPunctuation, Punctuation
from lowwater.stream.time_domain import TimeDomain

SCHEMA = {"a": pl.Int64(), "b": pl.Int64()}
DOMAINS = {name: TimeDomain.of(pl.Int64()) for name in SCHEMA}
FORMS = [
    "a",
    "a + 7",
    "a - 7",
    "greatest(a, b)",
    "greatest(a + 3, b - 3)",
    "least(a, b)",
    "least(a, b + 5)",
    "coalesce(a, b)",
]


def projection(text: str) -> Project:
    compiled = compile_expression(read_expression(text), SCHEMA)
    found = compiled.derivation(DOMAINS)
    assert found is not None
    return Project(MemoryStore(), [compiled.polars.alias("x")], {"x": found}, {})


steps = st.lists(
    st.one_of(
        st.tuples(st.just("a"), st.integers(-20, 20)),
        st.tuples(st.just("b"), st.integers(-20, 20)),
        st.tuples(st.just("row"), st.tuples(st.integers(0, 15), st.integers(0, 15))),
    ),
    max_size=25,
)


@pytest.mark.parametrize("text", FORMS)
@given(steps)
def test_derived_promises_are_sound_and_monotone(text: str, moves: list[Any]) -> None:
    kernel, marks, told = projection(text), {"a": -30, "b": -30}, None
    for kind, value in moves:
        if kind == "row":  # a row that keeps both promises
            row = {"a": [marks["a"] + value[0]], "b": [marks["b"] + value[1]]}
            (out,) = kernel.on_chunk(0, pl.DataFrame(row))
            assert isinstance(out, pl.DataFrame)
            assert told is None or out["x"][0] >= told
            continue
        marks[kind] = max(marks[kind], value)
        for promise in kernel.on_punctuation(0, Punctuation.linear(kind, value)):
            assert isinstance(promise, Punctuation)
            assert promise.attributes == ("x",)
            assert told is None or promise.values[0] > told
            told = promise.values[0]


def told_by(kernel: Project, *promises: Punctuation) -> list[Any]:
    return [each.bounds for p in promises for each in kernel.on_punctuation(0, p)]  # type: ignore[union-attr]


def test_greatest_follows_the_faster_and_least_the_slower_attribute() -> None:
    a, b = Punctuation.linear("a", 10), Punctuation.linear("b", 4)
    assert told_by(projection("greatest(a, b)"), b, a) == [(("x", 4),), (("x", 10),)]
    assert told_by(projection("least(a, b)"), b, a) == [(("x", 4),)]
    assert told_by(projection("coalesce(a, b)"), a, b) == [(("x", 4),)]


def test_a_shift_shifts_the_promise() -> None:
    assert told_by(projection("a - 7"), Punctuation.linear("a", 10)) == [(("x", 3),)]


def test_a_joint_promise_bounds_the_greatest_by_the_lesser_bound() -> None:
    # a >= 10 or b >= 4 says nothing of least(a, b), and greatest(a, b) >= 4.
    joint = Punctuation((("a", 10), ("b", 4)))
    assert told_by(projection("greatest(a, b)"), joint) == [(("x", 4),)]
    assert told_by(projection("least(a, b)"), joint) == []


def test_a_joint_promise_is_renamed_where_both_attributes_are_copied() -> None:
    derived = {"x": Derivation((("a", 0),)), "y": Derivation((("b", 0),))}
    columns = [pl.col("a").alias("x"), pl.col("b").alias("y")]
    kernel = Project(MemoryStore(), columns, derived, {"a": "x", "b": "y"})
    joint = Punctuation((("a", 10), ("b", 4)))
    assert told_by(kernel, joint) == [(("x", 10), ("y", 4))]


def test_a_promise_on_a_column_that_is_dropped_ends_there() -> None:
    assert told_by(projection("a"), Punctuation.linear("b", 5)) == []


def test_a_projection_asks_for_what_its_column_is_made_of() -> None:
    kernel = projection("least(a, b + 5)")
    assert kernel.needs("x", 10) == [Request(0, "a", 10), Request(0, "b", 5)]
    kernel.on_punctuation(0, Punctuation.linear("a", 10))
    assert kernel.needs("x", 10) == [Request(0, "b", 5)]
    assert kernel.needs("other", 10) == []


def test_a_restarted_projection_tells_nothing_twice() -> None:
    kernel = projection("least(a, b)")
    assert told_by(kernel, Punctuation.linear("a", 10), Punctuation.linear("b", 4)) == [(("x", 4),)]
    again = projection("least(a, b)")
    again.restore(kernel.snapshot())
    assert told_by(again, Punctuation.linear("b", 4), Punctuation.linear("b", 12)) == [(("x", 10),)]


def test_a_filter_keeps_every_promise_and_sends_no_empty_chunk() -> None:
    kernel = Select(MemoryStore(), pl.col("a") > 5)
    assert kernel.on_chunk(0, pl.DataFrame({"a": [1, 2]})) == []
    promise = Punctuation.linear("a", 3)
    assert kernel.on_punctuation(0, promise) == [promise]
    assert kernel.on_end(0) == [End()]


def test_apply_keeps_the_promises_on_the_columns_it_keeps() -> None:
    kernel = Apply(MemoryStore(), lambda chunk: chunk, SCHEMA, frozenset({"a"}))
    kept = Punctuation.linear("a", 3)
    assert kernel.on_punctuation(0, kept) == [kept]
    assert kernel.on_punctuation(0, Punctuation.linear("b", 3)) == []


def test_a_group_promise_survives_where_its_keys_are_passed_on() -> None:
    promise = GroupPunctuation("ts", pl.DataFrame({"k": [1], MARK: [5]}))
    columns = [pl.col("ts").alias("when"), pl.col("k").alias("key")]
    derived = {"when": Derivation((("ts", 0),))}
    kernel = Project(MemoryStore(), columns, derived, {"ts": "when", "k": "key"})
    (out,) = kernel.on_group_punctuation(0, promise)
    assert isinstance(out, GroupPunctuation)
    assert (out.attribute, out.keys) == ("when", ("key",))
    dropping = Project(MemoryStore(), columns[:1], derived, {"ts": "when"})
    assert dropping.on_group_punctuation(0, promise) == []


# ---- union -------------------------------------------------------------------------------------


def test_union_holds_punctuation_until_slowest_input_passes() -> None:
    union = Union(MemoryStore(), 2)
    assert union.on_punctuation(0, Punctuation.linear("ts", 10)) == []
    assert union.on_punctuation(1, Punctuation.linear("ts", 4)) == [Punctuation.linear("ts", 4)]
    assert union.on_punctuation(1, Punctuation.linear("ts", 20)) == [Punctuation.linear("ts", 10)]


def test_union_passes_rows_at_once() -> None:
    union, rows = Union(MemoryStore(), 2), pl.DataFrame({"ts": [1]})
    (out,) = union.on_chunk(1, rows)
    assert out is rows


def test_an_ended_input_of_a_union_holds_nobody_back() -> None:
    union = Union(MemoryStore(), 2)
    union.on_punctuation(0, Punctuation.linear("ts", 10))
    assert union.on_end(1) == [Punctuation.linear("ts", 10)]
    assert union.on_punctuation(0, Punctuation.linear("ts", 12)) == [Punctuation.linear("ts", 12)]
    assert union.on_end(0) == [End()]


def test_a_union_that_never_saw_a_promise_of_an_ended_input_goes_on() -> None:
    union = Union(MemoryStore(), 2)
    assert union.on_end(1) == []
    assert union.on_punctuation(0, Punctuation.linear("ts", 3)) == [Punctuation.linear("ts", 3)]
    assert union.marks() == {"ts[0]": 3, "ts[1]": END_OF_TIME}


def test_union_takes_joint_promises_bound_by_bound() -> None:
    union = Union(MemoryStore(), 2)
    union.on_punctuation(0, Punctuation((("a", 10), ("b", 1))))
    (told,) = union.on_punctuation(1, Punctuation((("a", 5), ("b", 9))))
    assert told == Punctuation((("a", 5), ("b", 1)))


def test_union_asks_the_inputs_that_are_behind() -> None:
    union = Union(MemoryStore(), 3)
    assert union.needs("ts", 5) == [Request(port, "ts", 5) for port in range(3)]
    union.on_punctuation(1, Punctuation.linear("ts", 7))
    union.on_end(2)
    assert union.needs("ts", 5) == [Request(0, "ts", 5)]


def test_union_takes_group_promises_group_by_group() -> None:
    union = Union(MemoryStore(), 2)
    first = GroupPunctuation("ts", pl.DataFrame({"k": ["x", "y"], MARK: [5, 8]}))
    second = GroupPunctuation("ts", pl.DataFrame({"k": ["y"], MARK: [6]}))
    assert union.on_group_punctuation(0, first) == []
    (told,) = union.on_group_punctuation(1, second)
    assert isinstance(told, GroupPunctuation)
    assert told.marks.rows() == [("y", 6)]
