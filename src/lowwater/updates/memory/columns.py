"""Columns as arrays of cells, which can be written in place, and back.

A type of fixed width is an array of its physical numbers, with a mask where nulls occur. Any other
value is one ``bytes`` object, so that its size in memory is known: text as UTF-8, values that have
a text form (decimals, categories, very wide integers) as that text, and nested values marshalled,
with values of fixed width in them as their physical numbers.

Invariant: columns come back as they were, to the last bit and with the same type.
"""

from __future__ import annotations

import marshal
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.stream.element import Chunk

Mask = NDArray[np.bool_]
Index = NDArray[np.int64]

MARSHAL = 2
"""A version of marshal in which equal values take equally many bytes, whatever refers to them."""
OVERHEAD = sys.getsizeof(b"")
"""Bytes of a ``bytes`` object beyond its content."""
PHYSICAL: dict[type[pl.DataType], type[pl.DataType]] = {
    pl.Date: pl.Int32,
    pl.Datetime: pl.Int64,
    pl.Duration: pl.Int64,
    pl.Time: pl.Int64,
}
WIDE = (pl.Int128, pl.UInt128, pl.Decimal)


class ColumnValues(NamedTuple):
    """Some cells of a column; objects are None where a value is null and have no mask."""

    values: NDArray[Any]
    nulls: Mask | None

    def at(self, index: Index | slice) -> ColumnValues:
        """Return some of the cells."""
        return ColumnValues(self.values[index], None if self.nulls is None else self.nulls[index])


def joined(parts: Sequence[ColumnValues]) -> ColumnValues:
    """Return the cells of one column, concatenated."""
    values = np.concatenate([part.values for part in parts])
    if all(part.nulls is None for part in parts):
        return ColumnValues(values, None)
    masks = [np.zeros(len(values), bool) if nulls is None else nulls for values, nulls in parts]
    return ColumnValues(values, np.concatenate(masks))


def payload(values: NDArray[Any]) -> int:
    """Return the bytes of the objects in an array; ``b""`` is one shared object and not counted."""
    present = list(filter(None, values.tolist()))
    return sum(map(len, present)) + OVERHEAD * len(present)


class FixedColumn:
    """A column whose values all take equally many bytes."""

    def __init__(self, name: str, dtype: pl.DataType):
        self.name, self._dtype = name, dtype
        empty = pl.Series(name, [], dtype=dtype).to_physical()
        self.kind: np.dtype[Any] = empty.to_numpy().dtype
        self._empty_cell = False if dtype == pl.Boolean else 0

    def cells(self, values: pl.Series) -> ColumnValues:
        """Return values as cells."""
        numbers = values.to_physical()
        if not numbers.null_count():
            return ColumnValues(numbers.to_numpy(), None)
        return ColumnValues(
            numbers.fill_null(self._empty_cell).to_numpy(), numbers.is_null().to_numpy()
        )

    def series(self, cells: ColumnValues) -> pl.Series:
        """Return cells as values."""
        numbers = pl.Series(self.name, cells.values)
        if cells.nulls is not None:
            numbers = numbers.set(pl.Series(cells.nulls), None)
        if isinstance(self._dtype, pl.Enum):
            return numbers.cat.to(self._dtype)
        return numbers.cast(self._dtype)


class TextColumn:
    """A column whose values are bytes, or can be written as text."""

    kind: np.dtype[Any] = np.dtype(object)

    def __init__(self, name: str, dtype: pl.DataType):
        self.name, self._dtype = name, dtype

    def cells(self, values: pl.Series) -> ColumnValues:
        """Return values as cells."""
        if self._dtype != pl.Binary:
            values = values.cast(pl.String).cast(pl.Binary)
        return ColumnValues(_objects(values.to_list()), None)

    def series(self, cells: ColumnValues) -> pl.Series:
        """Return cells as values."""
        values = pl.Series(self.name, cells.values.tolist(), dtype=pl.Binary)
        return values if self._dtype == pl.Binary else values.cast(pl.String).cast(self._dtype)


class NestedColumn:
    """A column of lists, arrays, structs or maps."""

    kind: np.dtype[Any] = np.dtype(object)

    def __init__(self, name: str, dtype: pl.DataType):
        self.name, self._dtype, self._plain = name, dtype, plain(dtype)

    def cells(self, values: pl.Series) -> ColumnValues:
        """Return values as cells."""
        found = values.cast(self._plain).to_list()
        bodies = [None if each is None else marshal.dumps(each, MARSHAL) for each in found]
        return ColumnValues(_objects(bodies), None)

    def series(self, cells: ColumnValues) -> pl.Series:
        """Return cells as values."""
        found = [None if body is None else marshal.loads(body) for body in cells.values.tolist()]
        return pl.Series(self.name, found, dtype=self._plain).cast(self._dtype)


def plain(dtype: Any) -> pl.DataType:
    """Return a type to and from which ``dtype`` can be cast, whose values Python holds without
    loss."""
    if isinstance(dtype, pl.List):
        return pl.List(plain(dtype.inner))
    if isinstance(dtype, pl.Array):
        return pl.Array(plain(dtype.inner), dtype.size)
    if isinstance(dtype, pl.Struct):
        return pl.Struct({field.name: plain(field.dtype) for field in dtype.fields})
    if isinstance(dtype, pl.Map):
        return pl.List(plain(pl.Struct({"key": dtype.key, "value": dtype.value})))
    if isinstance(dtype, pl.Decimal | pl.Categorical | pl.Enum):
        return pl.String()
    found: pl.DataType = PHYSICAL[type(dtype)]() if type(dtype) in PHYSICAL else dtype
    return found


def _objects(values: list[Any]) -> NDArray[Any]:
    found = np.empty(len(values), object)
    found[:] = values
    return found


Column = FixedColumn | TextColumn | NestedColumn
"""A column of a schema; ``kind`` is the type of its array of cells."""


def _column(name: str, dtype: pl.DataType) -> Column:
    if dtype.is_nested():
        return NestedColumn(name, dtype)
    number = dtype.is_numeric() and not isinstance(dtype, WIDE)
    if number or dtype.is_temporal() or isinstance(dtype, pl.Boolean | pl.Enum):
        return FixedColumn(name, dtype)
    return TextColumn(name, dtype)


class CellLayout:
    """The columns of a schema as arrays of cells."""

    def __init__(self, schema: pl.Schema):
        self.columns = [_column(name, dtype) for name, dtype in schema.items()]
        self.row_bytes = sum(column.kind.itemsize for column in self.columns)
        """Bytes of a location, without masks and objects."""
        self.empty = pl.DataFrame(schema=schema)
        """A frame without rows."""

    def cells(self, rows: Chunk) -> list[ColumnValues]:
        """Return rows as cells, by column."""
        return [column.cells(rows[column.name]) for column in self.columns]

    def rows(self, cells: Sequence[ColumnValues]) -> Chunk:
        """Return cells as rows."""
        return pl.DataFrame([c.series(own) for c, own in zip(self.columns, cells, strict=True)])
