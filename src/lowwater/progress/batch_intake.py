"""The input operator for rows that come in batches without order.

Within a batch no row is late by another one of it: which came first cannot be known, and guessing
would make the verdict depend on how the batch was read. Rows are judged by the marks that held
before the batch; the batch as a whole, as if in ascending order, then moves the marks. So every
reader of the same batch comes to the same verdict, also when the batch is read again.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from lowwater.progress.channel import Ticks
from lowwater.progress.conform import conform
from lowwater.progress.digest import ATTRIBUTE, TIME, digest
from lowwater.progress.intake import Intake, Promises
from lowwater.progress.refusal import Mask
from lowwater.progress.runs import Runs
from lowwater.progress.standing import FrameStanding, NamedStanding, Standing
from lowwater.progress.tracker import Judgement
from lowwater.stream.element import MARK, Chunk


class BatchIntake(Intake):
    """Lets batches of one source in and tells their progress."""

    def standing(self) -> Mapping[str, Standing]:
        """The marks rows of the coming batch are judged by, per attribute."""
        return {attribute: tracker.standing() for attribute, tracker in self._trackers.items()}

    def left(self) -> dict[str, NamedStanding | FrameStanding]:
        """The marks that hold now, for whoever reads the next batch."""
        return {attribute: tracker.left() for attribute, tracker in self._trackers.items()}

    def conformed(self, chunk: Chunk, now: int, arrivals: Ticks | None = None) -> Chunk:
        """A chunk with the declared types, stamped if the stream says so."""
        return conform(self.spec, chunk, now, arrivals)

    def digest(self, chunk: Chunk) -> Chunk | None:
        """What the rows of a conformed chunk say about progress; None if nothing."""
        if self.spec.stamp != "external" or not self._trackers:
            return None
        pure = self._pure(chunk)
        usable = self._usable_quietly(chunk, pure)
        if not usable.all():
            chunk, pure = chunk.filter(pl.Series(usable)), pure[usable]
        return digest(self.spec, chunk, pl.Series(pure))

    def _usable_quietly(self, chunk: Chunk, pure: Mask) -> Mask:
        """Which rows have a time and a channel, without taking note of the others."""
        usable = np.ones(chunk.height, dtype=bool)
        for attribute, domain in self.spec.domains.items():
            low, high = domain.valid
            if not chunk[attribute].null_count():
                times = domain.array_of(chunk[attribute])
                if not len(times) or (times.min() >= low and times.max() < high):
                    continue
            ticks = domain.ticks_of(chunk[attribute])
            fine = ((ticks >= low) & (ticks < high)).fill_null(False).to_numpy()
            usable &= fine | pure
        for name in self.spec.key_columns:
            if chunk[name].null_count():
                usable &= chunk[name].is_not_null().to_numpy()
        return usable

    def judge(
        self, chunk: Chunk, standing: Mapping[str, Standing], leaps: dict[str, Chunk] | None = None
    ) -> Chunk:
        """The rows of a conformed chunk that keep every promise; the others are refused."""
        chunk = self._number(chunk)
        if self.spec.stamp != "external":
            return chunk
        pure = self._pure(chunk)
        keep = self._usable(chunk, pure) & ~pure
        for attribute, held in standing.items():
            times, _ = self._ticks(chunk, attribute, keep)
            far = self._far(chunk, attribute, (leaps or {}).get(attribute))
            if far is None and (not len(times) or int(times.min()) >= held.highest):
                continue
            met = self._met(chunk, held)
            judged = Judgement(met, np.zeros(len(times), bool) if far is None else far, 0, 0)
            self._refuse(chunk, attribute, times, judged, keep)
        return chunk if keep.all() else chunk.filter(pl.Series(keep))

    def _met(self, chunk: Chunk, held: Standing) -> Ticks:
        keys = list(self.spec.key_columns)
        if not keys:
            mark = held.known.get(None, held.others)
            return np.full(chunk.height, mark, dtype=np.int64)
        named = chunk.select(keys)
        once = named.unique()
        marks = once.with_columns(pl.Series(MARK, held.met(once)))
        met = named.join(marks, on=keys, how="left", nulls_equal=True, maintain_order="left")
        return met[MARK].to_numpy()

    def _far(self, chunk: Chunk, attribute: str, leaps: Chunk | None) -> Mask | None:
        """Which rows are the leaps that were found; None if none were."""
        if leaps is None or not leaps.height:
            return None
        keys = [*self.spec.key_columns, TIME]
        times = self.spec.domains[attribute].ticks_of(chunk[attribute]).alias(TIME)
        marked = leaps.select(keys).unique().with_columns(pl.lit(True).alias("__far"))
        rows = chunk.select(*self.spec.key_columns, times)
        found = rows.join(marked, on=keys, how="left", nulls_equal=True, maintain_order="left")
        return found["__far"].fill_null(False).to_numpy()

    def absorb(self, found: Chunk | None, now: int, rows: int) -> dict[str, Chunk]:
        """Move the marks by the digest of a whole batch; the leaps found, per attribute."""
        if self.spec.stamp != "external":
            if rows:
                for tracker in self._trackers.values():
                    tracker.promise_all(now // 1_000)
            return {}
        leaps: dict[str, Chunk] = {}
        if found is None or not found.height:
            return leaps
        for attribute, tracker in self._trackers.items():
            part = found.filter(pl.col(ATTRIBUTE) == attribute).sort(MARK, TIME)
            before = self._shown_mark(attribute)
            runs = Runs.of(part, self.spec.key_columns, np.ones(part.height, bool))
            verdict = tracker.absorb(part[TIME].to_numpy(), part[MARK].to_numpy(), runs, now)
            if verdict.backward:
                self._refusals.backward(attribute, verdict.backward, before)
            if verdict.strays:
                self._refusals.strays(attribute, verdict.strays)
            if verdict.short is not None:
                self._refusals.short(attribute, verdict.short)
            self._tell_stale(attribute, tracker)
            if verdict.leaps.any():
                far = part.filter(pl.Series(verdict.leaps))
                leaps[attribute] = far.select(*self.spec.key_columns, TIME)
        return leaps

    def refused(self) -> Chunk | None:
        """The rows set aside since the last call; None if there are none."""
        return self._collected()

    def told(self) -> Promises:
        """The promises that follow from what was taken in."""
        promises = [] if self._held else self.promises()
        return [*promises, *self._sequence_promise()]
