"""Punctuation as a value."""

from __future__ import annotations

import polars as pl

from lowwater.stream.element import MARK, GroupPunctuation, Punctuation


def test_a_linear_promise_speaks_of_one_attribute() -> None:
    promise = Punctuation.linear("ts", 5)
    assert promise.is_linear
    assert (promise.attributes, promise.values) == (("ts",), (5,))
    assert promise == Punctuation((("ts", 5),))


def test_a_joint_promise_keeps_the_order_of_its_bounds() -> None:
    promise = Punctuation((("b", 2), ("a", 1)))
    assert not promise.is_linear
    assert (promise.attributes, promise.values) == (("b", "a"), (2, 1))


def test_renaming_a_promise_loses_it_if_an_attribute_is_gone() -> None:
    promise = Punctuation((("a", 1), ("b", 2)))
    assert promise.renamed({"a": "x", "b": "y"}) == Punctuation((("x", 1), ("y", 2)))
    assert promise.renamed({"a": "x"}) is None


def test_a_group_promise_names_its_key_columns() -> None:
    marks = pl.DataFrame({"k": [1], "s": ["a"], MARK: [7]})
    assert GroupPunctuation("ts", marks).keys == ("k", "s")
