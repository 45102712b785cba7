"""Pull queries: the newest answer of each key of a run, with how stale it is now (UpStream Fig. 1).

An engine keeps the table of answers and returns it as :class:`Answers`, taken between two steps of
the run. This module finds keys in it and adds the columns about each answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from lowwater.errors import OptionError
from lowwater.stream.duration import SECOND
from lowwater.stream.element import Chunk
from lowwater.updates.answers import NEWEST, SHOWN, AnswerShape, AnswerTable
from lowwater.updates.options import Key

TIME, AGE, STALENESS = "_time", "_age", "_staleness"
"""The columns added to an answer: its time, the seconds since it left, and the seconds for which it
has not been the newest."""
SINCE = "__since"
"""The column with the arrival of the oldest update that an answer does not reflect, in clock
nanoseconds."""


@dataclass(frozen=True)
class Answers:
    """The newest answers of a run at one moment, of all keys or at least of one."""

    table: AnswerTable
    pending: pl.DataFrame
    """The update keys of which newer updates wait, with the column ``SINCE``; a key may be there
    several times."""
    now: int
    """Clock time in nanoseconds."""


class Puller:
    """Checks keys and completes answers for one query."""

    def __init__(self, shape: AnswerShape):
        self._shape = shape
        taken = {TIME, AGE, STALENESS} & set(shape.schema)
        self._taken = min(taken, default=None)

    def check(self) -> None:
        """Refuse answers that have a column with the name of one that is added."""
        if self._taken is not None:
            raise OptionError(
                f"answers are given with the columns {TIME}, {AGE} and {STALENESS}, and this query"
                f" has a column {self._taken!r}; give yours another name in select(...)"
            )

    def key_of(self, given: object) -> Key:
        """Return the values of the key columns from those a user gives: one value, a tuple of
        several or a mapping of columns to values."""
        names = self._shape.key
        spelled = ", ".join(names) or "no columns"
        if isinstance(given, Mapping):
            if set(given) != set(names):
                found = ", ".join(map(repr, given)) or "none"
                raise OptionError(f"the key has the columns {spelled}; the mapping has {found}")
            values: tuple[object, ...] = tuple(given[name] for name in names)
        elif isinstance(given, tuple):
            values = given
        else:
            values = (given,)
        if len(values) != len(names):
            raise OptionError(
                f"the key has {len(names)} columns ({spelled}); {given!r} has {len(values)} values"
            )
        for name, value in zip(names, values, strict=True):
            self._check_value(name, value)
        return tuple(values)

    def _check_value(self, name: str, value: object) -> None:
        dtype = self._shape.schema[name]
        try:
            fits = value is None or bool(pl.Series([value], dtype=dtype, strict=True)[0] == value)
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
            fits = False
        if not fits:
            raise OptionError(
                f"{value!r} is no value of key column {name!r}, which has type {dtype}"
            )

    def key_from_texts(self, texts: Sequence[str]) -> Key:
        """Return a key from its values as texts, in the order of the key columns."""
        names = self._shape.key
        if len(texts) != len(names):
            raise OptionError(
                f"the key has the columns {', '.join(names) or '(none)'}: give {len(names)} values,"
                f" not {len(texts)}"
            )
        values = []
        for name, text in zip(names, texts, strict=True):
            dtype = self._shape.schema[name]
            try:
                values.append(_from_text(text, dtype))
            except (ValueError, pl.exceptions.PolarsError):
                raise OptionError(
                    f"{text!r} is no value of key column {name!r}, which has type {dtype}"
                ) from None
        return tuple(values)

    def one(self, answers: Answers, key: Key) -> dict[str, object] | None:
        """Return the answer of a key as a mapping; None if it has none."""
        rows = answers.table.only(self.update_key(key)).rows()
        found = self._completed(answers, _of_key(rows, self._shape.key, key))
        return found.row(0, named=True) if found.height else None

    def table(self, answers: Answers) -> Chunk:
        """Return all answers, that of the key that was answered last at the end."""
        return self._completed(answers, answers.table.rows())

    def update_key(self, key: Key) -> Key:
        """Return the values of the update key in a key."""
        named = dict(zip(self._shape.key, key, strict=True))
        return tuple(named[name] for name in self._shape.update_key)

    def _completed(self, answers: Answers, rows: Chunk) -> Chunk:
        """Return answers with the columns about them."""
        shape, now = self._shape, answers.now
        times = [pl.col(name) for name in shape.stamps]
        time = pl.max_horizontal(times) if times else pl.lit(None)
        key = list(shape.update_key)
        pending = answers.pending
        if key:
            since = pending.group_by(key).agg(pl.col(SINCE).min())
            rows = rows.join(since, on=key, how="left", nulls_equal=True, maintain_order="left")
        else:
            rows = rows.with_columns(pl.lit(pending[SINCE].min(), dtype=pl.Int64).alias(SINCE))
        age = ((now - pl.col(SHOWN)) / SECOND).clip(lower_bound=0.0).round(9)
        staleness = ((now - pl.col(SINCE)) / SECOND).clip(lower_bound=0.0).fill_null(0.0).round(9)
        return rows.with_columns(time.alias(TIME), age.alias(AGE), staleness.alias(STALENESS)).drop(
            NEWEST, SHOWN, SINCE
        )


def _of_key(rows: Chunk, names: Sequence[str], key: Key) -> Chunk:
    for name, value in zip(names, key, strict=True):
        wanted = pl.lit(value, dtype=rows.schema[name])
        rows = rows.filter(pl.col(name).eq_missing(wanted))
    return rows


def _from_text(text: str, dtype: pl.DataType) -> object:
    if dtype == pl.Boolean:
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    if dtype == pl.Date:
        return pl.Series([text]).str.to_date()[0]
    if isinstance(dtype, pl.Datetime):
        return pl.Series([text]).str.to_datetime(time_unit=dtype.time_unit)[0]
    return pl.Series([text]).cast(dtype)[0]


def pending_of(
    queues: Sequence[tuple[Mapping[Key, int], Sequence[int]]], shape: AnswerShape
) -> pl.DataFrame:
    """Return the update keys that wait in queues, each with the arrival of its oldest update;
    ``queues`` are such mappings, each with the order of the key's columns in it."""
    types = {name: shape.schema[name] for name in shape.update_key}
    rows = [
        (*(key[at] for at in order), since)
        for waiting, order in queues
        for key, since in waiting.items()
    ]
    return pl.DataFrame(rows, {**types, SINCE: pl.Int64()}, orient="row")


REFUSAL = (
    "latest() and table() give the newest answer of each key, and the answers of this query do not"
    " replace each other: declare update_key= on its stream, or make it one with updates('key')"
)
"""The error where a query has no update key."""
