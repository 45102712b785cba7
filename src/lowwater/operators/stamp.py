"""Latent timestamps (ETS §5): rows get a time when an operator needs one, not before.

The time is the clock's where rows are stamped. So the clock is all there is to promise: after every
chunk, at timers and heartbeats, and on demand, whatever the sources do.

Invariant: no row is stamped below what was promised, also if the clock went back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from lowwater.operators.kernel import Kernel, Request
from lowwater.state.store import ChunkStore
from lowwater.stream.element import BEGINNING, Chunk, Element, Punctuation

TICK = 1_000
"""Nanoseconds of the clock in a tick of the time."""


@dataclass(frozen=True, slots=True)
class Told:
    """When latent time is promised beside what follows from rows."""

    step: int = 1
    """Only multiples of so many ticks are promised after rows."""
    held: bool = False
    """Whether what follows from rows waits for a timer."""
    on_demand: bool = False
    """Whether the clock is promised when an operator waits."""
    beats: bool = False
    """Whether it is promised at heartbeats."""


class Stamp(Kernel):
    """Stamps rows with the engine's time, which the engine gives as a function."""

    rule: ClassVar[str] = "the time given to the last rows"

    def __init__(
        self, store: ChunkStore, column: str, now: Callable[[], int], how: Told | None = None
    ):
        super().__init__(store)
        self._column, self._now, self.how = column, now, how or Told()
        self._last = self._told = BEGINNING

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Stamp rows; a clock never goes back, so the stamp is a promise too."""
        promises = self.moved(self._now())
        stamp = pl.lit(self._last, dtype=pl.Int64).cast(pl.Datetime("us")).alias(self._column)
        return [chunk.with_columns(stamp), *promises]

    def moved(self, now: int) -> list[Element]:
        """Take note that rows were stamped, here or in another bucket; what is promised then."""
        self._last = max(self._last, now // TICK)
        return [] if self.how.held else self.tell()

    def tell(self) -> list[Element]:
        """Promise the time of the last rows, if that is new."""
        return self._tell(self._last // self.how.step * self.how.step)

    def enable(self, now: int) -> list[Element]:
        """Promise the clock: no row will be stamped earlier than this."""
        self._last = max(self._last, now // TICK)
        return self._tell(self._last)

    def _tell(self, mark: int) -> list[Element]:
        if mark <= self._told or self._last == BEGINNING or not self._open:
            return []
        self._told = mark
        return [Punctuation.linear(self._column, mark)]

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Latent streams make no promises."""
        return []

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """No source can be asked for a latent timestamp; the engine asks its clock."""
        return []

    def snapshot(self) -> dict[str, Any]:
        """The last stamp and promise."""
        return super().snapshot() | {"last": self._last, "told": self._told}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        super().restore(saved)
        self._last, self._told = saved["last"], saved["told"]
