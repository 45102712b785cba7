"""Latent timestamps (ETS §5): rows get a time when an operator needs one, not before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import polars as pl

from lowwater.operators.kernel import Ask, Kernel
from lowwater.state.store import ChunkStore
from lowwater.stream.element import Chunk, Element, Punctuation


class Stamp(Kernel):
    """Stamps rows with the engine's time, which the engine gives as a function."""

    rule: ClassVar[str] = "the time given to the last rows"

    def __init__(self, store: ChunkStore, column: str, now: Callable[[], int]):
        super().__init__(store)
        self._column, self._now = column, now

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Stamp rows; a clock never goes back, so the stamp is a promise too."""
        now = self._now()
        stamp = pl.lit(now // 1_000, dtype=pl.Int64).cast(pl.Datetime("us")).alias(self._column)
        return [chunk.with_columns(stamp), self.told(now)]

    def told(self, now: int) -> Punctuation:
        """The promise that no row will be stamped earlier than this."""
        return Punctuation.linear(self._column, now // 1_000)

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Latent streams make no promises."""
        return []

    def needs(self, attribute: str, mark: int) -> Sequence[Ask]:
        """Nobody can be asked for a latent timestamp."""
        return []
