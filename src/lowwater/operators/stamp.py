"""Latent timestamps (ETS §5): rows get a time only where an operator needs one.

The time of a row is the clock time at which it is stamped. So the clock time can be promised at any
moment, whatever the sources do: after a chunk, at a timer or heartbeat, or on request.

Invariant: no row is stamped below a promise, also if the clock goes back.
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
"""Nanoseconds of the clock in a tick of the stamped time."""


@dataclass(frozen=True, slots=True)
class StampPromises:
    """The moments at which latent time is promised."""

    step: int = 1
    """After rows, only multiples of this number of ticks are promised."""
    held: bool = False
    """True if the promises that follow from rows wait for a timer."""
    on_demand: bool = False
    """True if the clock time is promised on request."""
    beats: bool = False
    """True if the clock time is promised at heartbeats."""


class Stamp(Kernel):
    """Stamps rows with the engine's time.

    ``column`` is the name of the time column; ``now`` is a function of the engine that returns the
    clock time in nanoseconds.
    """

    rule: ClassVar[str] = "the time given to the last rows"

    def __init__(
        self,
        store: ChunkStore,
        column: str,
        now: Callable[[], int],
        how: StampPromises | None = None,
    ):
        super().__init__(store)
        self._column, self._now, self.how = column, now, how or StampPromises()
        self._last = self._promised = BEGINNING

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Stamp rows, and promise their time: later rows get no earlier one."""
        promises = self.rows_stamped(self._now())
        stamp = pl.lit(self._last, dtype=pl.Int64).cast(pl.Datetime("us")).alias(self._column)
        return [chunk.with_columns(stamp), *promises]

    def rows_stamped(self, now: int) -> list[Element]:
        """Record that rows were stamped, here or in another bucket; return the promise due."""
        self._last = max(self._last, now // TICK)
        return [] if self.how.held else self.promise_last()

    def promise_last(self) -> list[Element]:
        """Return the promise of the last rows' time, if that is new."""
        return self._emit(self._last // self.how.step * self.how.step)

    def enable(self, now: int) -> list[Element]:
        """Return the promise of the clock time: no later row is stamped earlier."""
        self._last = max(self._last, now // TICK)
        return self._emit(self._last)

    def _emit(self, mark: int) -> list[Element]:
        if mark <= self._promised or self._last == BEGINNING or not self._open:
            return []
        self._promised = mark
        return [Punctuation.linear(self._column, mark)]

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Drop the promise: streams with latent times make none."""
        return []

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Return no requests: latent time comes from the engine's clock, not from a source."""
        return []

    def snapshot(self) -> dict[str, Any]:
        """Return the last stamp and promise."""
        return super().snapshot() | {"last": self._last, "promised": self._promised}

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._last, self._promised = saved["last"], saved["promised"]
