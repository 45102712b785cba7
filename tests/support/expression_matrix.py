"""Every function, operator and cast of the language over every type, from the language's tables.

A case is a text over the columns of :func:`frame`. It is right if it is refused, or if each row has
DuckDB's value, or if both fail in a row. The few differences that are meant are in :data:`MEANT`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from math import isclose, isnan
from random import Random
from typing import Any

import duckdb
import polars as pl
from sqlglot import exp

import lowwater as lw
from lowwater.plan.expressions import compile_expression
from lowwater.plan.language.casts import TYPES
from lowwater.plan.language.compiler import COMPARISONS, ExpressionCompiler
from lowwater.plan.language.functions import FUNCTIONS, MANY, Function
from lowwater.plan.language.value import Value
from lowwater.plan.sql.parser import read_expression

NAN, INF = float("nan"), float("inf")
_DAY = 86_400 * 10**6


def _whole(bits: int, *more: int) -> list[int]:
    half = 1 << bits - 1
    return [-half, -half + 1, half - 1, -7, -1, 0, 1, 2, 5, 63, *more]


FLOATS = [NAN, INF, -INF, 0.0, -0.0, 0.1, 0.5, -1.5, 2.5, 3.0, 1e-300, 1e300, -1e16, 2.0**53, -7.25]
TEXTS = ["", "a", "plain.", "a(b)", "Ab-c", "ß", "łódź-l", "💥x", "12", " -7 ", "1.5", "2e3", "300"]
TEXTS += [
    "true",
    "nan",
    "2024-02-29",
    "2023-02-29",
    "2024-02-29 10:20:30.5",
    "x\ny",
    "%_\\",
    "xxaxx",
]
DAYS = [-719_162, -1, 0, 19_782, 2_932_896, 11_017, 16_801, -25_567, 5_000_000, -800_000]
MOMENTS = [each * _DAY + 37_230_500_000 for each in DAYS[:-2]] + [-1, 0, 1, 1_709_164_800_000_000]
MOMENTS += [9_214_000_000_000_000_000, -9_200_000_000_000_000_000]
POOLS: Mapping[str, tuple[Sequence[Any], pl.DataType]] = {
    "i8": (_whole(8), pl.Int8()),
    "i16": (_whole(16, 300), pl.Int16()),
    "i32": (_whole(32, 70_000), pl.Int32()),
    "i64": (_whole(64, 2**53 + 1, 2**32, 3_037_000_500), pl.Int64()),
    "u8": ([0, 1, 2, 7, 254, 255], pl.UInt8()),
    "u32": ([0, 1, 2, 7, 2**32 - 1], pl.UInt32()),
    "u64": ([0, 1, 2, 7, 2**63, 2**64 - 1], pl.UInt64()),
    "f32": ([NAN, INF, -INF, 0.0, -0.0, 0.5, -1.5, 2.5, 3.0, 0.1, 1e30, 16777216.0], pl.Float32()),
    "f64": (FLOATS, pl.Float64()),
    "m": (
        [Decimal("0.00"), Decimal("1.50"), Decimal("-2.25"), Decimal("9999999.99")],
        pl.Decimal(9, 2),
    ),
    "s": (TEXTS, pl.String()),
    "b": ([True, False], pl.Boolean()),
    "d": (DAYS, pl.Date()),
    "t": (MOMENTS, pl.Datetime("us")),
}
CONSTANTS = {
    "i": ["0", "1", "-1", "2", "5", "-3", "300", "3000000000", "-9223372036854775808"],
    "f": ["0.5", "-1.5", "1e3", "2.675"],
    "s": [
        "''",
        "'a'",
        "'.'",
        "'('",
        "'-'",
        "'%Y-%m-%d'",
        "'%f|%H'",
        "'a%'",
        "'_'",
        "'hour'",
        "'week'",
    ],
    "t": ["DATE '2024-02-29'", "TIMESTAMP '2024-02-29 10:20:30.5'", "INTERVAL '1' DAY"],
    "u": ["INTERVAL '90' SECOND", "TRUE", "NULL", "'2024-02-29'"],
}
ROWS = 48


def frame(seed: int) -> pl.DataFrame:
    """Every value of every pool and nulls, twice, paired at random."""
    chance = Random(seed)
    columns = []
    for name, (pool, dtype) in POOLS.items():
        for suffix in ("", "2"):
            values = [*pool, None, *chance.choices([*pool, None], k=ROWS - len(pool) - 1)]
            chance.shuffle(values)
            physical = (
                pl.Int32() if dtype == pl.Date() else pl.Int64() if dtype.is_temporal() else dtype
            )
            columns.append(pl.Series(name + suffix, values, dtype=physical).cast(dtype))
    return pl.DataFrame(columns).with_row_index("row")


# ---- cases ---------------------------------------------------------------------------------------

COLUMNS = list(POOLS)
ALL = [*COLUMNS, *(each for pool in CONSTANTS.values() for each in pool)]


def calls(function: Function, name: str, arguments: Sequence[str]) -> str:
    """A call as it is written."""
    if name == "extract":
        return f"extract({arguments[0]})"
    if name == "position":
        return f"position({' IN '.join(arguments)})"
    return f"{name}({', '.join(arguments)})"


def _second(name: str) -> str:
    return f"{name}2" if name in POOLS else name


UNITS = (
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "dow",
    "isodow",
    "doy",
    "hour",
    "minute",
    "second",
)
OPERATORS = {
    **{sign: f"{{0}} {sign} {{1}}" for sign in ("+", "-", "*", "/", "%", "||", "AND", "OR")},
    **{sign: f"{{0}} {sign} {{1}}" for sign in COMPARISONS.values()},
    **{sign: f"{{0}} {sign} {{1}}" for sign in ("LIKE", "NOT LIKE", "ILIKE")},
    **{word: f"{{0}} {word}" for word in ("IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT FALSE")},
    "IN": "{0} IN ({1}, NULL)",
    "NOT IN": "{0} NOT IN ({1})",
    "BETWEEN": "{0} BETWEEN {1} AND {0}",
    "-x": "-({0})",
    "NOT": "NOT {0}",
    "CASE": "CASE WHEN b THEN {0} ELSE {1} END",
    "CASE of": "CASE {0} WHEN {1} THEN 1 ELSE 2 END",
    "IF": "if(b, {0}, {1})",
    "guard": "CASE WHEN {1} <> 0 THEN {0} % {1} END",
}
CAST_TO = [
    *(
        each
        for each in TYPES
        if each not in ("DATETIME", "TIMESTAMPNTZ", "TIMESTAMPTZ", "TEXT", "UINT")
    ),
    "DECIMAL(5, 2)",
    "DECIMAL(38, 0)",
    "VARCHAR(3)",
    "TIMESTAMP(3)",
]


def every_case() -> Iterator[tuple[str, str]]:
    """Of what is written, and the text, for all of the language with one or two arguments."""
    for function in FUNCTIONS:
        for name in function.names:
            if name in ("extract", "date_part", "date_trunc"):
                yield from _of_times(name)
                continue
            for count in range(max(0, function.least - 1), min(function.most + 1, 3) + 1):
                if count == 0:
                    yield name, f"{name}()"
                elif count == 1:
                    yield from ((name, calls(function, name, [each])) for each in ALL)
                elif count == 2:
                    pairs = product(ALL, ALL)
                    yield from (
                        (name, calls(function, name, [one, _second(two)])) for one, two in pairs
                    )
    for name, form in OPERATORS.items():
        seconds = ALL if "{1}" in form else [""]
        yield from ((name, form.format(one, _second(two))) for one, two in product(ALL, seconds))
    for to in CAST_TO:
        for word in ("CAST", "TRY_CAST"):
            yield from ((f"{word} {to}", f"{word}({each} AS {to})") for each in ALL)


def _of_times(name: str) -> Iterator[tuple[str, str]]:
    units = [*UNITS, "millisecond", "microsecond", "century"]
    for unit, each in product(units, ALL):
        text = f"extract({unit} FROM {each})" if name == "extract" else f"{name}('{unit}', {each})"
        yield name, text
    yield name, f"{name}(t)"
    yield name, f"{name}('hour', t, t2)"


def three_arguments(chance: Random, count: int) -> Iterator[tuple[str, str]]:
    """Calls with three and more arguments, drawn by chance; likelier such that fit."""
    wanted = [each for each in FUNCTIONS if each.most >= 2 and each.node is not exp.Anonymous]
    texts, numbers = ["s", "s2", *CONSTANTS["s"]], ["i8", "i64", *CONSTANTS["i"]]
    for _ in range(count):
        function = chance.choice(wanted)
        name = chance.choice(function.names)
        if name in ("date_trunc", "position"):
            continue
        size = chance.choice([3, 3, 3, 4]) if function.most < MANY else chance.randint(3, 5)
        pools = [chance.choice([texts, texts, numbers, ALL]) for _ in range(size)]
        yield name, calls(function, name, [chance.choice(pool) for pool in pools])


# ---- the oracle ----------------------------------------------------------------------------------

_NAMES = {
    "regexp_like": "regexp_matches",
    "is_nan": "isnan",
    "nvl": "ifnull",
    "str_position": "strpos",
}


def in_duckdb(name: str, text: str) -> str:
    """What DuckDB is asked."""
    if name in _NAMES:
        text = text.replace(f"{name}(", f"{_NAMES[name]}(", 1)
    return text


@dataclass(frozen=True)
class Answer:
    """The values of a case, one a row, and the rows in which it fails."""

    values: Sequence[Any]
    failed: Sequence[bool]
    kind: str = ""


_EPOCH = "TIMESTAMP '1970-01-01'"


class Oracle:
    """DuckDB over the same rows."""

    def __init__(self, rows: pl.DataFrame):
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("SET disabled_optimizers = 'common_subexpressions'")  # ignores TRY
        self._connection.register("arrived", rows.to_arrow(compat_level=pl.CompatLevel.oldest()))
        self._connection.execute("CREATE TABLE rows AS SELECT * FROM arrived")

    def answer(self, text: str) -> Answer | str:
        """DuckDB's answer, or why it refuses."""
        try:
            kind = self._kind(text)
            shown = {
                "TIMESTAMP": f"epoch_us({text})",
                "DATE": f"date_diff('day', DATE '1970-01-01', {text})",
                "INTERVAL": f"epoch_us({_EPOCH} + ({text}))",
            }.get(kind, text)
            rows = self._connection.execute(
                f"SELECT TRY({shown}), TRY(coalesce(CAST(({text}) AS VARCHAR), '')) IS NULL"
                " FROM rows ORDER BY row"
            ).fetchall()
        except (duckdb.Error, OverflowError, ValueError) as error:
            return str(error).split("\n", 1)[0]
        return Answer([row[0] for row in rows], [row[1] for row in rows], kind)

    def _kind(self, text: str) -> str:
        described = self._connection.execute(f"DESCRIBE SELECT {text} AS x FROM rows").fetchone()
        assert described is not None
        return str(described[1])


# ---- comparing -----------------------------------------------------------------------------------


def ours(text: str, rows: pl.DataFrame) -> tuple[Answer, Value] | lw.ExpressionError:
    """Our answer, or why a text is refused; anything else is a defect."""
    try:
        compiled = compile_expression(read_expression(text), rows.schema)
    except lw.ExpressionError as error:
        return error
    value = ExpressionCompiler(rows.schema, text).value(read_expression(text).tree)
    assert value.dtype == compiled.dtype
    columns = [value.expr.alias("x")]
    columns += [each.when.alias(f"f{n}") for n, each in enumerate(value.failures)]
    found = rows.with_columns(columns)
    assert found["x"].dtype == value.dtype, (text, found["x"].dtype, value.dtype)
    fails = [found[f"f{n}"].fill_null(False) for n in range(len(value.failures))]
    failed = [any(each) for each in zip(*fails, strict=True)] if fails else [False] * rows.height
    values = found["x"]
    if values.dtype == pl.Datetime("ms"):
        values = values.cast(pl.Datetime("us"))
    return Answer(
        values.to_physical().to_list() if values.dtype.is_temporal() else values.to_list(), failed
    ), value


def same(one: Any, two: Any, tolerance: float) -> bool:
    """Whether two values are equal, floating-point numbers nearly."""
    if one is None or two is None:
        return one is two
    if isinstance(one, float) or isinstance(two, float):
        if isinstance(one, str) or isinstance(two, str):
            return False
        one, two = float(one), float(two)
        return (isnan(one) and isnan(two)) or isclose(one, two, rel_tol=tolerance, abs_tol=1e-15)
    return bool(one == two)


@dataclass(frozen=True)
class Meant:
    """A difference from DuckDB that is meant, and why; the page on the language lists them all."""

    name: str
    text: str
    why: str
    kind: str = "value"
    """``value``: another one; ``fails``: ours fails; ``accepted``: DuckDB refuses the text."""

    def covers(self, name: str, text: str, kind: str) -> bool:
        """Whether a case differs in this way."""
        return (
            kind in self.kind.split()
            and re.fullmatch(self.name, name) is not None
            and re.search(self.text, text) is not None
        )


_WITH_TIMES = r"\b[dt]2?\b"
_DAYS = r"(DATE|\bd2?\b).*\bi({0})2?\b|\bi({0})2?\b.*(DATE|\bd2?\b)"
MEANT: Sequence[Meant] = (
    Meant(
        r"concat|concat_ws|\|\||(TRY_)?CAST VARCHAR|strftime",
        _WITH_TIMES,
        "a time has a text in the years 1 to 9999",
        "fails",
    ),
    Meant(
        r"date_part|extract|date_trunc|year|quarter|month|week|day|hour|minute|second",
        _WITH_TIMES,
        "a time has parts in the years -258000 to 258000",
        "fails",
    ),
    Meant(r"left|right", r"i64|3000000000|922337", "a length has at most 32 bits", "fails"),
    Meant(r"[-+*]", r"\bm2?\b", "a DECIMAL that is computed has 38 digits"),
    Meant(
        r"[-+*%]|mod|guard", r"\bu642?\b", "UBIGINT beside a number with a sign is BIGINT", "fails"
    ),
    Meant(r"[-+]", _DAYS.format("64"), "a number of days may be a BIGINT", "accepted"),
    Meant(r"[-+]", _DAYS.format("32|64"), "a DATE is less than 2**31 - 1 days from 1970", "fails"),
    Meant("abs", "INTERVAL", "a length of time has an absolute value", "accepted"),
    Meant("TRY_CAST VARCHAR", _WITH_TIMES, "a time has a text in the years 1 to 9999"),
    Meant(r"(TRY_)?CAST DECIMAL\(38, 0\)", r"\bf322?\b", "a FLOAT has the digits of its text"),
    Meant("upper", r"\bs2?\b|ß", "Unicode defines upper('ß') as SS"),
    Meant("round", r"\bu642?\b", "UBIGINT rounded is UBIGINT", "fails"),
)


def differences(name: str, text: str, rows: pl.DataFrame, oracle: Oracle) -> list[str]:
    """What is wrong with a case."""
    mine = ours(text, rows)
    if isinstance(mine, lw.ExpressionError):
        return []
    (answer, value), theirs = mine, oracle.answer(in_duckdb(name, text))
    if isinstance(theirs, str):
        if all(
            each or found is None for each, found in zip(answer.failed, answer.values, strict=True)
        ):
            return []
        return _unless_meant(name, text, "accepted", f"accepted, and DuckDB says: {theirs}")
    if value.dtype == pl.Date() and theirs.kind == "TIMESTAMP":  # the page says that it stays a day
        days = [None if each is None else each * _DAY for each in answer.values]
        answer = Answer(days, answer.failed)
    single = "f32" in text or "FLOAT" in text
    tolerance = 2e-6 if single else 1e-12
    wrong = []
    for row in range(rows.height):
        if answer.failed[row]:
            if not theirs.failed[row]:
                said = f"row {row} fails, and DuckDB gives {theirs.values[row]!r}"
                wrong += _unless_meant(name, text, "fails", said)
        elif theirs.failed[row]:
            said = f"row {row} gives {answer.values[row]!r}, and DuckDB fails"
            wrong += _unless_meant(name, text, "value", said)
        elif not same(answer.values[row], theirs.values[row], tolerance):
            said = f"row {row} gives {answer.values[row]!r}, and DuckDB {theirs.values[row]!r}"
            wrong += _unless_meant(name, text, "value", said)
    return wrong


def _unless_meant(name: str, text: str, kind: str, said: str) -> list[str]:
    if any(each.covers(name, text, kind) for each in MEANT):
        return []
    return [f"{name}: {text}: {said}"]
