"""Expressions as the text polars reads, with the meaning SQL gives them where polars has another.

What is written differently: ``round`` goes away from zero at a half; a cast of a fraction to a
whole number rounds, that of a text to a time reads each by itself; ``concat`` passes nulls over;
``IS TRUE`` is never null; lengths, positions and parts of a date are whole numbers of 64 bits, so
that computing with them does not overflow, and positions count characters; NaN is the greatest
number; a text beside a time is read as one; logarithms name their base as SQL does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import ClassVar

import polars as pl
from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ErrorLevel, UnsupportedError
from sqlglot.generator import Generator
from sqlglot.generators.postgres import PostgresGenerator

Schema = Mapping[str, pl.DataType]
TypeOf = Callable[[exp.Expr], pl.DataType]
Rule = Callable[[exp.Expr, TypeOf], exp.Expr]


def polars_text(tree: exp.Expr, schema: Schema) -> str:
    """The text of a checked expression over columns of these types."""
    columns = pl.LazyFrame(schema=schema)

    def type_of(part: exp.Expr) -> pl.DataType:
        if isinstance(part, exp.Column):
            return schema[part.name]
        found = columns.select(pl.sql_expr(plain_text(part)).alias("x"))
        return found.collect_schema()["x"]

    return plain_text(_rewritten(tree.copy(), type_of))


def plain_text(tree: exp.Expr) -> str:
    """The text of an expression that means in polars what it means here."""
    return tree.sql(dialect=PolarsSql, identify=True, unsupported_level=ErrorLevel.RAISE)


def _try_cast(writer: Generator, tree: exp.Expr) -> str:
    return f"TRY_CAST({writer.sql(tree, 'this')} AS {writer.sql(tree, 'to')})"


def _logarithm(writer: Generator, tree: exp.Expr) -> str:
    """``log(base, value)``; the base is ten if none is given."""
    value = tree.args.get("expression")
    if value is None:
        return f"LOG10({writer.sql(tree, 'this')})"
    if tree.this.name in ("2", "10"):
        return f"LOG{tree.this.name}({writer.sql(value)})"
    return f"(LN({writer.sql(value)}) / LN({writer.sql(tree, 'this')}))"


_WRITTEN: Mapping[type[exp.Expr], Callable[..., str]] = {
    exp.TryCast: _try_cast,
    exp.Log: _logarithm,
}


class PolarsSql(Postgres):
    """The dialect polars reads is near to that of Postgres."""

    class Generator(PostgresGenerator):
        """Writes it."""

        TRANSFORMS: ClassVar = {**PostgresGenerator.TRANSFORMS, **_WRITTEN}


# ---- what is written differently ---------------------------------------------------------------


def _rewritten(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """A tree whose parts are rewritten from the leaves up."""
    for key, value in list(tree.args.items()):
        if isinstance(value, list):
            tree.set(key, [_rewritten(v, type_of) if isinstance(v, exp.Expr) else v for v in value])
        elif isinstance(value, exp.Expr):
            tree.set(key, _rewritten(value, type_of))
    rule = RULES.get(type(tree))
    return tree if rule is None else rule(tree, type_of)


def _floor(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    if tree.args.get("decimals") is not None:
        raise UnsupportedError("floor and ceil take one argument")
    return tree


def _round(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """Halves go away from zero."""
    if tree.args.get("truncate") is not None:
        raise UnsupportedError("round takes a number and how many digits to keep")
    given = tree.args.get("decimals")
    places = 0 if given is None else _whole(given)
    if places is None or not type_of(tree.this).is_float():
        return tree
    return _rounded(tree.this, places)


def _rounded(value: exp.Expr, places: int) -> exp.Expr:
    """``sign(x) * floor(abs(x) * 10^n + 0.5) / 10^n``."""
    up, down = (exp.Mul, exp.Div) if places >= 0 else (exp.Div, exp.Mul)
    scale = exp.Literal.number(f"1e{abs(places)}")
    grown = up(this=exp.Abs(this=value.copy()), expression=scale)
    half = exp.Add(this=grown, expression=exp.Literal.number("0.5"))
    cut = down(this=exp.Floor(this=half), expression=scale.copy())
    return exp.paren(exp.Mul(this=exp.Sign(this=value), expression=exp.paren(cut)))


def _whole(tree: exp.Expr | None) -> int | None:
    """The value of a whole constant."""
    if isinstance(tree, exp.Neg):
        inner = _whole(tree.this)
        return None if inner is None else -inner
    return int(tree.this) if isinstance(tree, exp.Literal) and tree.is_int else None


def _cast(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """A fraction becomes the nearest whole number; of two, the even one."""
    kind = tree.args["to"].this
    if kind in _TIMES:
        return _text_to_time(tree, type_of)
    if kind not in exp.DataType.INTEGER_TYPES:
        return tree
    dtype = type_of(tree.this)
    if dtype.is_float():
        tree.set("this", exp.Round(this=tree.this))
    elif isinstance(dtype, pl.Decimal) and dtype.scale:
        tree.set("this", _rounded(_cast_to("DOUBLE", tree.this), 0))
    return tree


_TIMES = (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP, exp.DataType.Type.DATETIME)
_YEAR = r"\d{4}"
_LEAP = r"(\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
_DAY = (
    rf"({_YEAR}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)"
    rf"|02-(0[1-9]|1\d|2[0-8]))|{_LEAP}-02-29)"
)
_MOMENT = rf"^{_DAY}([ T]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?)?$"
"""Texts that are a day, or a time of one: what there is no need to try."""


def _text_to_time(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """A text is a day or a time, written year first; each by itself, whatever others look like."""
    if _is_text(tree.this) or type_of(tree.this) != pl.String:
        return tree
    text = tree.this
    if isinstance(tree, exp.TryCast):
        fits = exp.RegexpLike(this=text.copy(), expression=exp.Literal.string(_MOMENT))
        text = _when(fits, text)
    long = exp.Case(ifs=[_if_long(text, 10, " 00:00:00"), _if_long(text, 16, ":00")], default=text)
    plain = exp.func("REPLACE", exp.paren(long), exp.Literal.string("T"), exp.Literal.string(" "))
    moment = exp.Anonymous(
        this="STRPTIME", expressions=[plain, exp.Literal.string("%Y-%m-%d %H:%M:%S%.f")]
    )
    return _cast_to("DATE", moment) if tree.args["to"].this == _TIMES[0] else moment


def _if_long(text: exp.Expr, length: int, rest: str) -> exp.If:
    """What is missing of a text of this length."""
    is_long = exp.EQ(this=exp.Length(this=text.copy()), expression=exp.Literal.number(length))
    whole = exp.DPipe(this=text.copy(), expression=exp.Literal.string(rest))
    return exp.If(this=is_long, true=whole)


def _when(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    """A value, or null unless a condition holds."""
    return exp.paren(exp.Case(ifs=[exp.If(this=condition, true=value)]))


def _known(tree: exp.Expr) -> exp.Expr:
    """That a value is not null."""
    return exp.Not(this=exp.Is(this=tree.copy(), expression=exp.null()))


def _concat(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """Nulls are passed over."""
    return _joined([_text(each) for each in tree.expressions])


def _concat_ws(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """What is not null, with a separator in between."""
    separator, *parts = tree.expressions
    led = [exp.DPipe(this=separator.copy(), expression=_cast_to("VARCHAR", p)) for p in parts]
    joined = _joined([exp.func("COALESCE", each, exp.Literal.string("")) for each in led])
    skipped = exp.Add(this=exp.func("LENGTH", separator), expression=exp.Literal.number(1))
    return exp.func("SUBSTR", joined, skipped)


def _joined(parts: list[exp.Expr]) -> exp.Expr:
    return exp.paren(reduce(lambda one, two: exp.DPipe(this=one, expression=two), parts))


def _text(tree: exp.Expr) -> exp.Expr:
    return exp.func("COALESCE", _cast_to("VARCHAR", tree), exp.Literal.string(""))


def _cast_to(kind: str, tree: exp.Expr) -> exp.Cast:
    return exp.Cast(this=tree, to=exp.DataType.build(kind))


def _position(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """Counted in characters, which polars does in bytes; null in a null."""
    text, part = tree.this, tree.args["substr"]
    before = exp.func("LENGTH", exp.func("SPLIT_PART", text, part, exp.Literal.number(1)))
    after = exp.Add(this=_cast_to("BIGINT", before), expression=exp.Literal.number(1))
    one, none = (_cast_to("BIGINT", exp.Literal.number(each)) for each in (1, 0))
    empty = exp.EQ(this=part.copy(), expression=exp.Literal.string(""))
    cases = [
        exp.If(this=exp.And(this=empty, expression=_known(text)), true=one),
        exp.If(this=_found(text, part), true=after),
        exp.If(this=exp.And(this=_known(text), expression=_known(part)), true=none),
    ]
    return exp.paren(exp.Case(ifs=cases))


def _found(text: exp.Expr, part: exp.Expr) -> exp.Expr:
    place = exp.Anonymous(this="STRPOS", expressions=[text.copy(), part.copy()])
    return exp.GT(this=place, expression=exp.Literal.number(0))


def _contains(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    text, part = tree.this, tree.expression
    return _when(exp.And(this=_known(text), expression=_known(part)), _found(text, part))


def _ends(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """Nothing of a null is null."""
    return _when(_known(tree.this), tree)


def _replace(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """Nothing is nowhere in a text, and is replaced nowhere."""
    nothing = exp.EQ(this=tree.expression.copy(), expression=exp.Literal.string(""))
    return exp.paren(exp.Case(ifs=[exp.If(this=nothing, true=tree.this.copy())], default=tree))


def _greatest(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """NaN is greater than any number."""
    parts = [tree.this, *tree.expressions]
    floats = [each for each in parts if each.find(exp.Column) and type_of(each).is_float()]
    if not floats:
        return tree
    cases = [exp.If(this=_is_nan(each, type_of), true=_nan()) for each in floats]
    return exp.paren(exp.Case(ifs=cases, default=tree))


def _is_nan(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    value = tree.this if isinstance(tree, exp.IsNan) else tree
    return exp.paren(exp.EQ(this=value.copy(), expression=_nan()))


def _nan() -> exp.Expr:
    return _cast_to("DOUBLE", exp.Literal.string("nan"))


def _part(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """Parts of a time are whole numbers; polars gives milliseconds with a fraction."""
    name = tree.this.name.upper().rstrip("S")
    if name == "MILLISECOND":
        tree.set("this", exp.var("MICROSECOND"))
        thousands = exp.Div(this=_cast_to("BIGINT", tree), expression=exp.Literal.number(1_000))
        return _cast_to("BIGINT", thousands)
    return _cast_to("BIGINT", tree) if name == "MICROSECOND" else _counted(tree, type_of)


def _called(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """``date_part('hour', t)`` is ``EXTRACT(hour FROM t)``."""
    arguments = tree.expressions
    if tree.name.lower() != "date_part" or len(arguments) != 2 or not _is_text(arguments[0]):
        return tree
    unit, moment = arguments
    return _part(exp.Extract(this=exp.var(unit.name), expression=moment), type_of)


def _all_matches(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    raise UnsupportedError("regexp_replace is not part of the language")


def _power(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    tree.set("this", _cast_to("DOUBLE", tree.this))
    return tree


def _is(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """A truth value is one or the other, or null; it never is null that it is."""
    if not isinstance(tree.expression, exp.Boolean):
        return tree
    value = tree.this if tree.expression.this else exp.Not(this=exp.paren(tree.this))
    return exp.func("COALESCE", value, exp.false())


def _counted(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """A whole number of 64 bits."""
    return _cast_to("BIGINT", tree) if type_of(tree).is_integer() else tree


def _compared(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """A text beside a time is a time."""
    for one, other in (("this", "expression"), ("expression", "this")):
        _as_time(tree, other, tree.args[one], type_of)
    return tree


def _between(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    for other in ("low", "high"):
        _as_time(tree, other, tree.this, type_of)
    return tree


def _in(tree: exp.Expr, type_of: TypeOf) -> exp.Expr:
    members = tree.expressions
    if any(map(_is_text, members)) and not _is_text(tree.this):
        dtype = type_of(tree.this)
        tree.set("expressions", [_read(each, dtype) for each in members])
    return tree


def _as_time(tree: exp.Expr, key: str, beside: exp.Expr, type_of: TypeOf) -> None:
    if _is_text(tree.args[key]) and not _is_text(beside):
        tree.set(key, _read(tree.args[key], type_of(beside)))


def _is_text(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Literal) and bool(tree.is_string)


def _read(text: exp.Expr, dtype: pl.DataType) -> exp.Expr:
    """A text as a time of this type, if it is one."""
    zoned = isinstance(dtype, pl.Datetime) and dtype.time_zone is not None
    if zoned or not _is_text(text) or not dtype.is_temporal():
        return text
    return _cast_to("DATE" if dtype == pl.Date else "TIMESTAMP", text)


RULES: Mapping[type[exp.Expr], Rule] = {
    exp.Round: _round,
    exp.Floor: _floor,
    exp.Ceil: _floor,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Concat: _concat,
    exp.ConcatWs: _concat_ws,
    exp.StrPosition: _position,
    exp.Contains: _contains,
    exp.Left: _ends,
    exp.Right: _ends,
    exp.Replace: _replace,
    exp.Greatest: _greatest,
    exp.IsNan: _is_nan,
    exp.Extract: _part,
    exp.Anonymous: _called,
    exp.RegexpReplace: _all_matches,
    exp.Pow: _power,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), _compared),
    **dict.fromkeys(
        (
            exp.Length,
            exp.Year,
            exp.Quarter,
            exp.Month,
            exp.Week,
            exp.Day,
            exp.Hour,
            exp.Minute,
            exp.Second,
        ),
        _counted,
    ),
}
