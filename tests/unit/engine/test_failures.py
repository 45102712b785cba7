"""Failures of user code name the operator and the user's line; errors cross process borders."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater import errors

HERE = __file__.rsplit("/", 1)[-1]


def stream() -> lw.Stream:
    return lw.stream(pl.DataFrame({"ts": [1, 2, 12], "k": [1, 1, 1]}), name="s", time="ts")


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def broken(chunk: pl.DataFrame) -> pl.DataFrame:
    raise ValueError("my function broke")


@pytest.mark.parametrize("here", [True, False])
def test_an_exception_in_apply_names_operator_function_and_line(here: bool) -> None:
    query, at = stream().apply(broken), line()
    run = query.collect if here else lambda: query.run().await_termination(60)
    with pytest.raises(lw.OperatorError) as caught:
        run()
    assert f"apply#1 broken ({HERE}:{at}) failed: ValueError: my function broke" in str(
        caught.value
    )
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.operator.startswith("apply#1")


@pytest.mark.parametrize("step", ["init", "add", "merge", "finish"])
def test_an_exception_in_a_user_aggregate_names_operator_and_line(step: str) -> None:
    def fail(*_: Any) -> Any:
        raise KeyError(f"{step} broke")

    steps: dict[str, Any] = {
        "init": lambda: 0,
        "add": lambda state, rows: state + rows.height,
        "merge": lambda one, two: one + two,
        "finish": lambda state: state,
    }
    steps[step] = fail
    user = lw.aggregate(**steps, columns=("k",), returns=pl.Int64)
    rows = lw.stream(pl.DataFrame({"ts": range(40), "k": range(40)}), time="ts")
    query, at = rows.window("20 s").agg(x=user), line()
    with pytest.raises(lw.OperatorError) as caught:
        query.collect(chunk_rows=4)
    assert "window#1" in str(caught.value)
    assert f"{HERE}:{at}" in str(caught.value)
    assert f"{step} broke" in str(caught.value)


def test_a_user_aggregate_gives_its_value_whatever_the_chunks() -> None:
    user = lw.aggregate(
        init=lambda: [],
        add=lambda state, rows: state + rows["ts"].to_list(),
        merge=lambda one, two: one + two,
        finish=lambda state: ",".join(str(each) for each in sorted(state)),
        columns=("ts",),
        returns=pl.String,
    )
    for chunk_rows in (1, 2, 100):
        got = stream().window("10 s").agg(x=user).collect(chunk_rows=chunk_rows)
        assert got["x"].to_pylist() == ["1,2", "12"]


def test_a_user_aggregate_over_unknown_columns_is_refused() -> None:
    user = lw.aggregate(int, lambda s, r: s, lambda a, b: a, lambda s: s, ("kk",), pl.Int64)
    with pytest.raises(lw.QueryError, match="unknown column 'kk'"):
        stream().window("10 s").agg(x=user)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda chunk: None, "the function gave NoneType, not a polars frame"),
        (lambda chunk: chunk.drop("k"), "were declared"),
        (lambda chunk: chunk.with_columns(k=pl.lit("x")), "were declared"),
    ],
)
def test_apply_checks_what_comes_back(function: Any, says: str) -> None:
    with pytest.raises(lw.BadInput, match=says) as caught:
        stream().apply(function).collect()
    assert any("apply#1" in note and HERE in note for note in caught.value.__notes__)


def test_apply_may_change_the_columns_it_declares() -> None:
    def lengthen(chunk: pl.DataFrame) -> pl.DataFrame:
        return chunk.select("ts", twice=pl.col("k") * 2)

    query = stream().apply(lengthen, schema={"ts": pl.Int64, "twice": pl.Int64})
    assert query.time == "ts"
    assert query.window("10 s").agg(x="sum(twice)").collect()["x"].to_pylist() == [4, 2]
    assert stream().apply(lambda c: c.select("k"), schema={"k": pl.Int64}).time is None


def test_an_error_of_a_background_run_is_raised_whenever_it_is_asked_about() -> None:
    run = stream().apply(broken).run()
    for _ in range(2):
        with pytest.raises(lw.OperatorError):
            run.await_termination(60)
    with pytest.raises(lw.OperatorError):
        run.results()
    assert isinstance(run.exception, lw.OperatorError)
    assert not run.active


# ---- the error tree ----------------------------------------------------------------------------

SAMPLES = [
    errors.LowwaterError("plain"),
    errors.QueryError("bad query"),
    errors.ExpressionError("unknown column 'x'", "a +\n x", line=2, column=2),
    errors.OptionError("bad option"),
    errors.StreamError("bad stream"),
    errors.AdmissionError("too little memory"),
    errors.BrokenPromise("late", stream="s", channel=("a", 1), time=3, mark=7),
    errors.BadInput("no time"),
    errors.OperatorError("sort#1", ValueError("x")),
    errors.CheckpointError("another plan"),
    errors.StateError("a page is gone"),
    errors.SinkError("disk full"),
]


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling_with_their_fields_and_notes(error: errors.LowwaterError) -> None:
    error.add_note("in sort#1")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__


def test_every_exported_error_is_drawn_in_the_tree() -> None:
    named = [name for name in lw.__all__ if isinstance(getattr(lw, name), type)]
    classes = [name for name in named if issubclass(getattr(lw, name), errors.LowwaterError)]
    assert {type(error).__name__ for error in SAMPLES} == set(classes)
    assert all(name in (errors.__doc__ or "") for name in classes)


def test_all_names_are_exported_in_order() -> None:
    assert lw.__all__ == sorted(lw.__all__)
    assert all(hasattr(lw, name) for name in lw.__all__)


def test_an_unknown_name_is_told_with_what_is_known() -> None:
    said = errors.unknown_name("column", "x", [])
    assert said == "unknown column 'x'. Known: (none)."
