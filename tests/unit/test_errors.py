"""Errors carry what they are about as data, and keep it when they cross a process border."""

from __future__ import annotations

import pickle

import polars as pl
import pytest

import lowwater as lw
from lowwater.errors import ExpressionError, OptionError, QueryError, Term
from lowwater.pipeline.text import load_text
from lowwater.updates.options import SCHEDULE, updates_of

OPTION = Term("schedule=", "SCHEDULE")


def stream() -> lw.Stream:
    return lw.stream(lw.replay(pl.DataFrame({"ts": [1], "v": [1]})), name="s", time="ts")


@pytest.mark.parametrize(
    "error",
    [
        QueryError("no query"),
        OptionError(OPTION, " is one of ", OPTION.given("fifo")),
        QueryError("several things", about=OPTION),
        ExpressionError("unknown", "a +\nb", line=2, column=1, length=1, about=OPTION),
        ExpressionError("unknown", "a").with_parts(OPTION, ": unknown"),
    ],
)
def test_an_error_is_the_same_after_pickling(error: QueryError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert (again.parts, again.about, again.in_clauses) == (
        error.parts,
        error.about,
        error.in_clauses,
    )


def test_a_message_has_the_words_of_the_fluent_api_and_those_of_a_text() -> None:
    with pytest.raises(OptionError) as caught:
        updates_of("k", "append", {"a": 1})
    assert (
        str(caught.value)
        == "weights= are for queues of keys, and schedule='append' is a queue of rows"
    )
    assert (
        caught.value.in_clauses
        == "WEIGHTS are for queues of keys, and SCHEDULE append is a queue of rows"
    )
    assert caught.value.about == Term("weights=", "WEIGHTS")


def test_an_option_that_cannot_be_is_what_the_error_is_about() -> None:
    with pytest.raises(OptionError, match="schedule= is one of") as caught:
        stream().updates("v", "sideways")  # type: ignore[arg-type]
    assert caught.value.about == SCHEDULE
    with pytest.raises(ExpressionError, match="delete_when=: unknown column") as wrong:
        stream().updates("v", delete_when="w = 1")
    assert wrong.value.about == Term("delete_when=", "DELETE WHEN")


def test_a_text_that_ends_up_in_a_message_is_not_taken_for_an_option() -> None:
    text = """CREATE STREAM s (ts TIMESTAMP, k VARCHAR) FROM 'csv:x' PROGRESS ORDERED BY ts
              UPDATE KEY k WEIGHTS (('budget=', 'b') = 1); SELECT * FROM s"""
    with pytest.raises(ExpressionError, match=r"\('budget=', 'b'\) names no key") as caught:
        load_text(text)
    assert (caught.value.line, caught.value.column) == (2, 28)
