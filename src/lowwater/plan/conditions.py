"""A condition on progressing columns bounds the rows that satisfy it; the bounds are floors.

Of a conjunction, each part that compares a progressing column, plus or minus a constant or not,
with a constant gives a bound: ``ts >= TIMESTAMP '2024-01-01'``, ``ts + 5 > 20``, ``ts BETWEEN 1 AND
9``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta

import polars as pl
from sqlglot import exp

from lowwater.errors import LowwaterError, OptionError
from lowwater.plan.expressions import Expression, Formula, column_and_shift, compile_expression
from lowwater.plan.main_time import main_time
from lowwater.plan.nodes import Node
from lowwater.stream.floor import Floor, raised
from lowwater.stream.time_domain import TimeDomain

Time = datetime | date | int | str
"""A time as users give it: of an integer column its number, of others a datetime, a date or a text
in ISO form."""

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def floor_of(condition: Expression, progressing: Mapping[str, TimeDomain]) -> Floor:
    """Return the floor below which no row satisfies a condition."""
    found: Floor = {}
    for side, strict, constant in _bounds(condition.tree):
        single = column_and_shift(side, progressing)
        if single is None:
            continue
        name, shift = single
        ticks = _ticks(constant, progressing[name], strict)
        if ticks is not None:
            found = raised(found, {name: ticks - shift})
    return found


def _bounds(tree: exp.Expr | None) -> Iterator[tuple[exp.Expr, bool, exp.Expr]]:
    """Yield what each part of a conjunction states to be at least a constant, or (True) above it,
    with the constant."""
    match tree:
        case exp.Paren():
            yield from _bounds(tree.this)
        case exp.And():
            yield from _bounds(tree.this)
            yield from _bounds(tree.expression)
        case exp.GTE() | exp.GT():
            yield _bare(tree.this), isinstance(tree, exp.GT), tree.expression
        case exp.LTE() | exp.LT():
            yield _bare(tree.expression), isinstance(tree, exp.LT), tree.this
        case exp.EQ():
            yield _bare(tree.this), False, tree.expression
            yield _bare(tree.expression), False, tree.this
        case exp.Between():
            yield _bare(tree.this), False, tree.args["low"]
        case exp.Not():
            match _bare(tree.this):
                case exp.LT() | exp.LTE() as less:
                    yield _bare(less.this), isinstance(less, exp.LTE), less.expression
                case exp.GT() | exp.GTE() as more:
                    yield _bare(more.expression), isinstance(more, exp.GTE), more.this


def _bare(tree: exp.Expr) -> exp.Expr:
    return tree.this if isinstance(tree, exp.Paren) else tree


def _ticks(tree: exp.Expr, domain: TimeDomain, strict: bool) -> int | None:
    """Return the least tick at or after a constant, or (``strict``) after it; None if the tree is
    not constant, or not of the domain's type."""
    if tree.find(exp.Column) is not None:
        return None
    if isinstance(tree, exp.Literal) and tree.is_string and isinstance(domain.dtype, pl.Datetime):
        tree = exp.cast(tree.copy(), "TIMESTAMPTZ" if domain.dtype.time_zone else "TIMESTAMP")
    try:
        constant = compile_expression(Formula(tree, "", ""), {})
        value = pl.select(constant.polars).item()
    except (LowwaterError, pl.exceptions.PolarsError):
        return None
    return ticks_from(value, domain, strict)


def floor_before(node: Node, time: Time, column: str | None, what: str) -> dict[str, int]:
    """Return the floor that forgets a node's rows before a time; ``column`` is that of the time,
    None for the main time. ``what`` names the call in error messages."""
    name = column or main_time(node, what, "on={}")
    domain = node.progressing(name, what)
    value: object = time
    if isinstance(time, str):
        try:
            value = datetime.fromisoformat(time)
        except ValueError:
            raise OptionError(
                f"{what} takes a time such as '2024-01-31 12:00:00', not {time!r}"
            ) from None
    ticks = ticks_from(value, domain)
    if ticks is None:
        zone = getattr(domain.dtype, "time_zone", None)
        wanted = "a whole number" if domain.dtype.is_integer() else "a datetime or a date"
        wanted += f" with a time zone, as {name} has {zone}" if zone else ""
        raise OptionError(f"{what}: {name} is of type {domain.dtype}; give {wanted}, not {time!r}")
    return {name: ticks}


def ticks_from(value: object, domain: TimeDomain, strict: bool = False) -> int | None:
    """Return the least tick at or after a time, or (``strict``) after it; None if the value is not
    a time of the domain."""
    if isinstance(domain.dtype, pl.Datetime):
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        if not isinstance(value, datetime) or (value.tzinfo is None) != (
            domain.dtype.time_zone is None
        ):
            return None
        since = value - (_EPOCH if value.tzinfo is None else _EPOCH.replace(tzinfo=value.tzinfo))
        if value.tzinfo is not None:
            since -= value.utcoffset() or timedelta()
        scaled = since // _MICROSECOND * domain.ticks_per_second
        return scaled // 1_000_000 + 1 if strict else -(-scaled // 1_000_000)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value + strict
