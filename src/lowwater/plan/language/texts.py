"""These rules compute functions of texts.

Positions and lengths count characters; the first position is 1. A text that is searched for has no
wildcards.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from operator import add, or_

import polars as pl
from sqlglot import exp

from lowwater.plan.language.casts import as_text
from lowwater.plan.language.value import FunctionCall, Value

_FURTHEST = 2**32 - 1
LONGEST = 10_000
"""The greatest number of characters to which ``lpad`` and ``rpad`` fill a text."""


def changed(change: Callable[[pl.Expr], pl.Expr]) -> Callable[[FunctionCall], Value]:
    """Return the rule of a function of one text."""
    return lambda call: call.result(change(call.a_text(0)), pl.String())


def _row_by_row(*parts: pl.Expr) -> list[pl.Expr]:
    """Return values with constants repeated for every row, as functions of lists need them."""
    every = reduce(or_, [part.is_not_null() for part in parts])
    return [pl.when(every).then(part) for part in parts]


def length(call: FunctionCall) -> Value:
    """Compute ``length``: the number of characters."""
    return call.result(call.a_text(0).str.len_chars().cast(pl.Int64), pl.Int64())


def part(call: FunctionCall) -> Value:
    """Compute ``substr(text, start, length)``; a start below zero counts from the end."""
    text, start = call.a_text(0), call.a_whole(1)
    size = text.str.len_chars().cast(pl.Int64)
    count = call.a_whole(2) if len(call) > 2 else pl.lit(_FURTHEST, dtype=pl.Int64)
    near = start.is_between(-_FURTHEST, _FURTHEST) & count.is_between(-_FURTHEST, _FURTHEST)
    known = text.is_not_null() & start.is_not_null() & count.is_not_null()
    far = call.failure(known & ~near, "a position has at most 32 bits")
    start, count = (pl.when(near).then(each).otherwise(0) for each in (start, count))
    begin = pl.when(start >= 0).then(start - 1).otherwise(size + start)
    end = begin + count  # below zero it counts backwards
    first, last = pl.min_horizontal(begin, end), pl.max_horizontal(begin, end)
    first, last = pl.max_horizontal(first, 0), pl.min_horizontal(last, size)
    wide = pl.max_horizontal(last - first, 0)
    found = pl.when(known).then(text.str.slice(first.fill_null(0), wide.fill_null(0)))
    return call.result(found, pl.String(), far)


def left(call: FunctionCall) -> Value:
    """Compute ``left(text, n)``: the first n characters; for n below zero all but the last -n."""
    return _end(call, lambda text, count: text.str.head(count))


def right(call: FunctionCall) -> Value:
    """Compute ``right(text, n)``: the last n characters; for n below zero all but the first -n."""
    return _end(call, lambda text, count: text.str.tail(count))


def _end(call: FunctionCall, take: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Value:
    text, count = call.a_text(0), call.a_whole(1)
    known = text.is_not_null() & count.is_not_null()
    near = count.is_between(-_FURTHEST, _FURTHEST)
    far = call.failure(known & ~near, "a length has at most 32 bits")
    found = pl.when(known).then(take(text, pl.when(near).then(count).otherwise(0).fill_null(0)))
    return call.result(found, pl.String(), far)


def stripped(call: FunctionCall) -> Value:
    """Compute ``trim``, ``ltrim`` and ``rtrim`` of spaces, or of the characters given."""
    text = call.a_text(0)
    letters = call.a_text(1) if len(call) > 1 else pl.lit(" ")
    side = str(call.tree.args.get("position") or "BOTH").upper()
    some = pl.when(letters != "").then(letters)
    cut = {
        "BOTH": lambda: text.str.strip_chars(some),
        "LEADING": lambda: text.str.strip_chars_start(some),
        "TRAILING": lambda: text.str.strip_chars_end(some),
    }[side]()
    if len(call) > 1:  # no characters: nothing to take away
        cut = pl.when(letters == "").then(text).when(letters.is_not_null()).then(cut)
    return call.result(cut, pl.String())


def replaced(call: FunctionCall) -> Value:
    """Compute ``replace`` at every place of a text; an empty text is found nowhere."""
    text, part, other = _row_by_row(*(call.a_text(at) for at in range(3)))
    pieces = text.str.split(pl.when(part != "").then(part).otherwise(pl.lit("\0")))
    new = pieces.list.join(other)
    known = part.is_not_null() & other.is_not_null()
    found = pl.when((part == "") & other.is_not_null()).then(text).when(known).then(new)
    return call.result(found, pl.String())


def padded(call: FunctionCall) -> Value:
    """Compute ``lpad`` and ``rpad``, to a length that is the same in every row."""
    text = call.a_text(0)
    size = call.constant_whole(1, -LONGEST, LONGEST)
    pad = call.constant_text(2)
    if size is None or pad is None:
        return call.result(pl.lit(None, dtype=pl.String), pl.String())
    if not pad:
        raise call.wrong(f"{call.name} takes a text that is not empty here", 2)
    size = max(size, 0)
    filled = (pad * (size // len(pad) + 1))[:size]
    missing = pl.max_horizontal(size - text.str.len_chars().cast(pl.Int64), 0)
    filling = pl.lit(filled).str.head(missing.fill_null(0))
    kept = text.str.head(size)
    return call.result(filling + kept if call.name == "lpad" else kept + filling, pl.String())


def piece(call: FunctionCall) -> Value:
    """Compute ``split_part(text, separator, n)``; n below zero counts from the end."""
    text, separator, number = _row_by_row(call.a_text(0), call.a_text(1), call.a_whole(2))
    near = number.clip(-(2**31), 2**31)
    at = pl.when(near > 0).then(near - 1).otherwise(near)
    pieces = text.str.split(separator)
    found = pieces.list.get(at.fill_null(0), null_on_oob=True).fill_null("")
    found = pl.when(number == 0).then(pl.lit("")).otherwise(found)
    known = text.is_not_null() & separator.is_not_null() & number.is_not_null()
    return call.result(pl.when(known).then(found), pl.String())


def position(call: FunctionCall) -> Value:
    """Compute ``strpos``: the first place of a text, from 1; 0 if there is none."""
    text, part = _row_by_row(call.a_text(0), call.a_text(1))
    some = pl.when(part != "").then(part)
    before = text.str.split(some).list.first().str.len_chars().cast(pl.Int64)
    found = (
        pl.when((part == "") & text.is_not_null())
        .then(1)
        .when(text.str.contains(some, literal=True))
        .then(before + 1)
        .when(text.is_not_null() & part.is_not_null())
        .then(0)
    )
    return call.result(found.cast(pl.Int64), pl.Int64())


def found_by(search: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Callable[[FunctionCall], Value]:
    """Return the rule of a search for one text in another."""

    def rule(call: FunctionCall) -> Value:
        text, part = _row_by_row(call.a_text(0), call.a_text(1))
        known = text.is_not_null() & part.is_not_null()
        return call.result(pl.when(known).then(search(text, part)), pl.Boolean())

    return rule


def matches(call: FunctionCall) -> Value:
    """Compute ``regexp_like(text, pattern)``."""
    text, pattern = call.a_text(0), call.constant_text(1)
    if pattern is None:
        return call.result(pl.lit(None, dtype=pl.Boolean), pl.Boolean())
    try:
        pl.select(pl.lit("").str.contains(pattern))
    except pl.exceptions.PolarsError:
        raise call.wrong(f"{pattern!r} is no regular expression", 1) from None
    return call.result(text.str.contains(pattern), pl.Boolean())


def like(call: FunctionCall, escape: str = "") -> Value:
    """Compute ``LIKE`` and ``ILIKE``: % stands for any characters, _ for one."""
    text, pattern = call.a_text(0), call.constant_text(1)
    if pattern is None:
        return call.result(pl.lit(None, dtype=pl.Boolean), pl.Boolean())
    if call.name == "ILIKE":
        text, pattern = text.str.to_lowercase(), pattern.lower()
    regex = ""
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            following = next(letters, None)
            if following is None:
                raise call.wrong("the pattern ends in its escape character", 1)
            regex += re.escape(following)
        else:
            regex += {"%": ".*", "_": "."}.get(letter) or re.escape(letter)
    return call.result(text.str.contains(f"(?s)^{regex}$"), pl.Boolean())


def joined(call: FunctionCall) -> Value:
    """Compute ``a || b``."""
    one, two = as_text(call, 0), as_text(call, 1)
    return call.result(one.expr + two.expr, pl.String(), *one.failures, *two.failures)


def concatenated(call: FunctionCall) -> Value:
    """Compute ``concat``; nulls are left out."""
    texts = [as_text(call, at) for at in range(len(call))]
    failures = [failure for each in texts for failure in each.failures]
    parts = [each.expr.fill_null("") for each in texts]
    return call.result(reduce(add, parts), pl.String(), *failures)


def concatenated_with(call: FunctionCall) -> Value:
    """Compute ``concat_ws``: the values that are not null, with a separator in between."""
    texts = [as_text(call, at) for at in range(1, len(call))]
    failures = [failure for each in texts for failure in each.failures]
    separator, *parts = _row_by_row(call.a_text(0), *(each.expr for each in texts))
    row = pl.concat_list(parts).list.drop_nulls()
    known = pl.when(separator.is_not_null()).then(row.list.join(separator))
    return call.result(known, pl.String(), *failures)


def escaped(call: FunctionCall, tree: exp.Expr) -> Value:
    """Compute ``LIKE ... ESCAPE``."""
    letter = tree.name if isinstance(tree, exp.Literal) and tree.is_string else ""
    if len(letter) != 1:
        raise call.wrong("ESCAPE takes one character")
    return like(call, letter)
