"""Semi and anti joins within a reach: left rows that have a partner, or that have none.

Rows are matched within a reach and purged as in the band join. A left row is kept until its first
partner comes: then a semi join emits it and an anti join drops it. An anti join emits a left row
when no partner of it can come any more. The output has the left columns only, and the promises on
them are those of the band join: a result still to come is a left row still to come, or a kept one.

Invariant: a left row that is kept has matched nothing yet, and can still match a row to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import polars as pl

from lowwater.joins.band_join import ROWS, BandJoin
from lowwater.operators.kernel import Request
from lowwater.state.store import read, take
from lowwater.stream.element import Chunk, Element

LEFT, RIGHT = 0, 1
AT = "__at"


class HalfJoin(BandJoin):
    """Emits the left rows that have a partner (semi), or those that have none (anti)."""

    rule: ClassVar[str] = (
        "the lesser of the left mark and the left time that the right mark reaches"
    )

    def _join(self, port: int, chunk: Chunk) -> list[Element]:
        """Return the left rows that have their first partner now, or can have none any more."""
        shape = self._shape
        rows = shape.prepare(port, chunk)
        low, high = self._observed(port, chunk)
        if port == RIGHT:
            met = self._met_in_store(rows, low, high)
            self._keep(RIGHT, rows, low)
            return self._answered(met)
        others = self._others(LEFT, low, high)
        if others is not None:
            self.comparisons += self._reach.comparisons(rows.height, others.height, high - low)
        numbered = rows.with_row_index(AT)
        pairs = None if others is None else shape.match(numbered, others)
        if pairs is None or not pairs.height:
            met, alone = rows.clear(), rows
        else:
            found = pairs.select(AT).unique()
            met = numbered.join(found, on=AT, how="semi", maintain_order="left").drop(AT)
            alone = numbered.join(found, on=AT, how="anti", maintain_order="left").drop(AT)
        missed = self._keep(LEFT, alone, low) if alone.height else alone
        return [*self._answered(met), *self._missed(missed)]

    def _met_in_store(self, rows: Chunk, low: int, high: int) -> Chunk:
        """Remove and return the kept left rows that match new right rows."""
        shape, width = self._shape, self._slicing.width
        met = []
        first = self._reach.earliest(RIGHT, low) // width
        last = self._reach.latest(RIGHT, high) // width + 1
        for slice_ in list(self.store.slices(ROWS[LEFT], first, last)):
            waiting = read(self.store, ROWS[LEFT], slice_, slice_ + 1)
            assert waiting is not None
            numbered = waiting.with_row_index(AT)
            self.comparisons += self._reach.comparisons(rows.height, waiting.height, high - low)
            found = shape.match(numbered, rows).select(AT).unique()
            if not found.height:
                continue
            met.append(numbered.join(found, on=AT, how="semi", maintain_order="left").drop(AT))
            stay = numbered.join(found, on=AT, how="anti", maintain_order="left").drop(AT)
            take(self.store, ROWS[LEFT], slice_, slice_ + 1)
            if stay.height:
                self.store.put(ROWS[LEFT], slice_, stay)
        return pl.concat(met) if met else rows.clear()

    def _answered(self, met: Chunk) -> list[Element]:
        return [self._shape.put_out(met)] if met.height and not self._shape.keeps(LEFT) else []

    def _missed(self, rows: Chunk) -> list[Element]:
        return [self._shape.put_out(rows)] if rows.height and self._shape.keeps(LEFT) else []

    def _dropped(self, side: int, rows: Chunk | None, met: Chunk | None) -> list[Element]:
        return self._missed(rows) if rows is not None and side == LEFT else []

    @property
    def _outputs(self) -> list[tuple[int, str]]:
        name, awaited = self._shape.times[LEFT], self._out.awaited
        return [(LEFT, name)] if awaited is None or name in awaited else []

    def _promise(self) -> list[Element]:
        promises: list[Element] = []
        for known in self._received.of(LEFT):
            promises += self._out.advance(self._with_old_rows(LEFT, known))
        return promises

    def needs_any(self, bounds: Sequence[tuple[str, int]]) -> Sequence[Request]:
        """Request the bounds on left columns; there are no others in the output."""
        names = self._names[LEFT].values()
        return super().needs_any([bound for bound in bounds if bound[0] in names])
