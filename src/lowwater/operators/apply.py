"""A user's function over chunks; its rows are judged by the promises made before them.

The function should leave progressing columns as they are. A row that it moves below a promise is a
late row, and goes where the ``late`` option of its stream sends it.

If the order of rows is known and the function returns one row for each, a row that it moves back is
judged by the rows before it, whatever chunk they were in. Otherwise it is judged by the promises
before its chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import polars as pl

from lowwater.errors import BadInput
from lowwater.operators.kernel import ALONE, Host, Kernel, Request
from lowwater.progress.channel import Ticks
from lowwater.progress.late import LateAccount, LateRows, SideOutput
from lowwater.progress.spec import StreamSpec
from lowwater.state.store import ChunkStore
from lowwater.stream.element import (
    BEGINNING,
    END_OF_TIME,
    ENDED,
    Chunk,
    Element,
    GroupPunctuation,
    Punctuation,
)


@dataclass(frozen=True)
class ResultPromises:
    """The promises by which the rows that a function returns are judged."""

    spec: StreamSpec
    """The declaration of these rows as a stream; name and ``late`` option are the source's."""
    attributes: frozenset[str]
    """The columns on which a later operator uses promises."""
    slack: Mapping[str, int] = field(default_factory=dict)
    """Most ticks that rows of the source are behind the newest, for contracts that state this."""
    shown: tuple[str, ...] = ()
    """The columns that the side output gets."""


class Apply(Kernel):
    """Runs a Python function over chunks.

    ``schema`` has the columns that it must return, ``kept`` those that it must not change. The rows
    that it returns are judged by ``promises``; None if they are not judged.
    """

    rule: ClassVar[str] = "promises pass through on the attributes the function keeps"

    def __init__(
        self,
        store: ChunkStore,
        function: Callable[[Chunk], Chunk],
        schema: Mapping[str, pl.DataType],
        kept: frozenset[str],
        promises: ResultPromises | None = None,
        host: Host = ALONE,
    ):
        super().__init__(store, host=host)
        self._function = function
        self._schema = dict(schema)
        self._kept = kept
        self._promises = promises
        self._marks: dict[str, int] = {}
        self._joint: dict[tuple[str, ...], tuple[int, ...]] = {}
        self._newest: dict[str, int] = {}
        if promises is not None:
            self._account = LateAccount(promises.spec.name)
            self._side_output = SideOutput(promises.spec, self._account)

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Run the function, and check what it returns."""
        result = self._function(chunk)
        if not isinstance(result, pl.DataFrame):
            raise BadInput(f"apply: the function gave {type(result).__name__}, not a polars frame")
        if dict(result.schema) != self._schema:
            raise BadInput(
                f"apply: the function gave columns {dict(result.schema)},"
                f" but {self._schema} were declared"
            )
        if self._promises is not None:
            result = self._on_time(self._promises, chunk, result)
        return [result] if result.height else []

    def _on_time(self, promises: ResultPromises, chunk: Chunk, result: Chunk) -> Chunk:
        """Return the rows that keep every promise; the others go to the side output."""
        keep = np.ones(result.height, dtype=bool)
        for attribute in sorted(promises.attributes):
            times = self._ticks(promises, result, attribute)
            marks = self._marks_before(promises, attribute, chunk, times)
            late = keep & (times < marks)
            if late.any():
                self._side_output.add_late(result, attribute, times, marks, late)
                keep &= ~late
        for attributes, bounds in self._joint.items():
            first = self._ticks(promises, result, attributes[0])
            late = keep.copy()
            for attribute, mark in zip(attributes, bounds, strict=True):
                late &= self._ticks(promises, result, attribute) < mark
            if late.any():
                marks = np.full(len(first), bounds[0], dtype=np.int64)
                self._side_output.add_late(result, attributes[0], first, marks, late)
                keep &= ~late
        return result if keep.all() else result.filter(pl.Series(keep))

    def _ticks(self, promises: ResultPromises, rows: Chunk, attribute: str) -> Ticks:
        ticks = promises.spec.domains[attribute].ticks_of(rows[attribute])
        found: Ticks = ticks.fill_null(END_OF_TIME).to_numpy()
        return found

    def _marks_before(
        self, promises: ResultPromises, attribute: str, chunk: Chunk, times: Ticks
    ) -> Ticks:
        """Return the mark before each row."""
        marks = np.full(len(times), self._marks.get(attribute, BEGINNING), dtype=np.int64)
        if attribute not in promises.slack or self.host.in_batches or not chunk.height:
            return marks
        given = self._ticks(promises, chunk, attribute)
        newest = np.maximum.accumulate(
            np.concatenate(([self._newest.get(attribute, BEGINNING)], given))
        )
        self._newest[attribute] = int(newest[-1])
        if len(given) != len(times) or np.array_equal(np.sort(given), np.sort(times)):
            return marks
        before = np.where(times < given, newest[:-1] - promises.slack[attribute], BEGINNING)
        return np.maximum(marks, before)

    def take_late_rows(self) -> tuple[str, Chunk | None, list[LateRows]] | None:
        """Return the late rows since the last call, and their counts; None if there are none."""
        if self._promises is None or not self._account.rows:
            return None
        rows, lines = self._side_output.take_rows(), self._account.lines()
        self._account = LateAccount(self._promises.spec.name)
        self._side_output = SideOutput(self._promises.spec, self._account)
        if rows is not None:
            whole = [name for name in self._schema if name not in self._promises.shown]
            rows = rows.drop(whole)
        return self._promises.spec.name, rows, lines

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Pass promises on attributes that the function does not change."""
        if not set(promise.attributes) <= self._kept:
            return []
        if self._promises is not None and set(promise.attributes) <= self._promises.attributes:
            if promise.is_linear:
                ((attribute, mark),) = promise.bounds
                self._marks[attribute] = max(mark, self._marks.get(attribute, BEGINNING))
            else:
                self._joint[promise.attributes] = promise.values
        return [promise]

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Pass the ends of keys on: the function does not change an update key."""
        return [promise] if promise.attribute == ENDED else []

    def needs_any(self, bounds: Sequence[tuple[str, int]]) -> Sequence[Request]:
        """Request the same promise of the input."""
        return [Request.any_of(0, bounds)]

    def snapshot(self) -> dict[str, Any]:
        """Return the promises, and the newest times."""
        return super().snapshot() | {
            "marks": dict(self._marks),
            "joint": dict(self._joint),
            "newest": dict(self._newest),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._marks, self._joint = dict(saved["marks"]), dict(saved["joint"])
        self._newest = dict(saved["newest"])
