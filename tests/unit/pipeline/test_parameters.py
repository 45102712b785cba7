"""Parameters of pipelines: all that are given are used, all that are used are given."""

from __future__ import annotations

import pytest

import lowwater as lw
from lowwater.pipeline.text import load_text
from tests.unit.pipeline.playing import SCHEMA

TEXT = f"""
    CREATE STREAM S {SCHEMA} FROM 'csv:nowhere' PROGRESS WITHIN :slack SECONDS ON ts;
    CREATE VIEW V AS SELECT v, ts FROM S WHERE v > :least;
    SELECT v FROM V WHERE v < most
"""
VALUES = {"slack": 5, "least": 1, "most": 9}


def test_parameters_may_be_used_anywhere() -> None:
    assert len(load_text(TEXT, values=VALUES).queries) == 1


def test_a_parameter_that_is_not_used_is_refused_with_the_nearest_that_is() -> None:
    with pytest.raises(
        lw.OptionError, match=r"^unknown parameter ':lest'. Did you mean ':least'\?"
    ):
        load_text(TEXT, values={**VALUES, "lest": 1})


@pytest.mark.parametrize("name", ["slack", "least"])
def test_a_parameter_that_is_not_given_is_underlined_and_says_how_to_give_it(name: str) -> None:
    values = {each: value for each, value in VALUES.items() if each != name}
    with pytest.raises(lw.ExpressionError, match=f"unknown parameter ':{name}'") as caught:
        load_text(TEXT, values=values)
    first, _, line, marks = str(caught.value).splitlines()
    assert first.endswith(f" Give it with --param {name}=VALUE.")
    assert name in line[marks.index("^") : len(marks)]


def test_other_errors_say_nothing_of_parameters() -> None:
    with pytest.raises(lw.ExpressionError, match="unknown column 'most'") as caught:
        load_text(TEXT, values={"slack": 5, "least": 1})
    assert "--param" not in str(caught.value)
