"""The input operator (OOP §5.4): rows in; kept rows, refused rows and promises out.

It checks each chunk, judges its rows against the stream's contracts, keeps account of what it
refuses, and turns the marks into punctuation no finer than the consumers demand and never twice.
It also makes enabling timestamps (ETS §5) when asked. It reads no clock: the engine tells ``now``.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.errors import BadInput, BrokenPromise, OptionError
from lowwater.progress import late
from lowwater.progress.channel import Ticks
from lowwater.progress.contract import Every, Punctuated, Timer
from lowwater.progress.describe import Demand
from lowwater.progress.late import LateAccount
from lowwater.progress.spec import StreamSpec
from lowwater.progress.tracker import Judgement, Tracker, channel_maker
from lowwater.stream.duration import SECOND, nanoseconds
from lowwater.stream.element import (
    BEGINNING,
    END_OF_TIME,
    MARK,
    SEQUENCE,
    Chunk,
    GroupPunctuation,
    Punctuation,
)

Promises = list[Punctuation | GroupPunctuation]

REASON, LATE_BY, MET = "_reason", "_late_by_seconds", "_mark"
"""Columns the side output adds to a refused row."""


@dataclass(slots=True)
class Taken:
    """What came of a chunk: rows let in, rows refused (None if none), promises that follow."""

    rows: Chunk
    refused: Chunk | None
    promises: Promises


class Intake:
    """Lets the rows of one source in and tells their progress."""

    def __init__(
        self, spec: StreamSpec, demands: Mapping[str, Demand], announced: Iterable[Hashable] = ()
    ):
        self.spec = spec
        self.account = LateAccount(spec.name)
        self._numbered = SEQUENCE in demands
        self._sequence = 0
        self._demands = dict(demands)
        if isinstance(spec.punctuate, Every):
            for attribute, domain in spec.domains.items():
                step = domain.ticks(spec.punctuate.step, "every(...)")
                self._demands[attribute] = Demand.grid(step)
        self._held = isinstance(spec.punctuate, Timer)
        channels = tuple(announced) if spec.key_columns else (None,)
        self._trackers = {
            attribute: Tracker(
                channel_maker(contract, spec.domains[attribute], spec.jump), channels
            )
            for attribute, contract in spec.contracts.items()
            if spec.stamp != "latent"
        }
        self._told: dict[str, int] = {}
        self._group_told: dict[Hashable, int] = {}
        self._last_seen: dict[Hashable, int] = {}

    # ---- rows ------------------------------------------------------------------------------

    def take(self, chunk: Chunk, now: int) -> Taken:
        """Let a chunk in; ``now`` is the engine's clock in nanoseconds."""
        chunk = self._conform(chunk, now)
        if self.spec.stamp == "latent":
            return Taken(self._number(chunk), None, self._sequence_promise())
        keep = np.ones(chunk.height, dtype=bool)
        refused: list[Chunk] = []
        self._refuse_unusable(chunk, keep, refused)
        usable = keep.copy()
        order = list(self._channel_rows(chunk, usable))
        for attribute, tracker in self._trackers.items():
            times, marks = self._ticks(chunk, attribute, usable)
            judged = tracker.observe(times, marks, order)
            self._refuse_broken(chunk, attribute, times, judged, keep, refused)
        for name, _ in order:
            self._last_seen[name] = now
        rows = chunk if keep.all() else chunk.filter(pl.Series(keep & ~self._pure(chunk)))
        if rows is chunk and self._pure(chunk).any():
            rows = chunk.filter(pl.Series(~self._pure(chunk)))
        promises = [] if self._held else self.promises()
        side = pl.concat(refused, how="diagonal") if refused else None
        return Taken(self._number(rows), side, [*promises, *self._sequence_promise()])

    def _conform(self, chunk: Chunk, now: int) -> Chunk:
        spec = self.spec
        if list(chunk.columns) != list(spec.schema):
            missing = [name for name in spec.schema if name not in chunk.columns]
            if missing:
                raise BadInput(f"stream {spec.name!r}: rows lack column {missing[0]!r}")
            chunk = chunk.select(list(spec.schema))
        casts = []
        for name, expected in spec.schema.items():
            if chunk.schema[name] != expected:
                casts.append(pl.col(name).cast(expected))
        if casts:
            try:
                chunk = chunk.with_columns(casts)
            except pl.exceptions.PolarsError as error:
                raise BadInput(f"stream {spec.name!r}: rows have the wrong type: {error}") from None
        if spec.stamp == "internal":
            stamp = pl.lit(now // 1_000).cast(pl.Int64).cast(pl.Datetime("us")).alias(spec.time)
            return chunk.with_columns(stamp)
        for attribute, domain in spec.domains.items():
            if spec.stamp == "external":
                chunk = _to_domain(chunk, attribute, domain.dtype)
        for contract in spec.contracts.values():
            if isinstance(contract, Punctuated):
                chunk = _to_domain(chunk, contract.column, spec.domains[spec.time].dtype)
        return chunk

    def _pure(self, chunk: Chunk) -> NDArray[np.bool_]:
        """Rows that are nothing but a producer's punctuation."""
        pure = np.zeros(chunk.height, dtype=bool)
        for attribute, contract in self.spec.contracts.items():
            if isinstance(contract, Punctuated):
                bare = chunk[attribute].is_null() & chunk[contract.column].is_not_null()
                pure |= bare.to_numpy()
        return pure

    def _refuse_unusable(
        self, chunk: Chunk, keep: NDArray[np.bool_], refused: list[Chunk]
    ) -> None:
        pure = self._pure(chunk)
        for attribute, domain in self.spec.domains.items():
            column = chunk[attribute]
            low, high = domain.valid
            if column.null_count():
                bad = column.is_null().to_numpy() & ~pure & keep
                self._refuse(chunk, bad, keep, refused, late.NO_TIME, f"{attribute} is null")
            ticks = domain.ticks_of(column)
            least, most = ticks.min(), ticks.max()
            if least is not None and (int(least) < low or int(most) >= high):  # type: ignore[arg-type]
                outside = ((ticks < low) | (ticks >= high)).fill_null(False).to_numpy() & keep
                detail = f"{attribute} is outside the years 1 to 9999"
                self._refuse(chunk, outside, keep, refused, late.BAD_TIME, detail)
        for column_name in self.spec.key_columns:
            if chunk[column_name].null_count():
                bad = chunk[column_name].is_null().to_numpy() & keep
                detail = f"{column_name} is null"
                self._refuse(chunk, bad, keep, refused, late.NO_CHANNEL, detail)

    def _refuse(
        self,
        chunk: Chunk,
        bad: NDArray[np.bool_],
        keep: NDArray[np.bool_],
        refused: list[Chunk],
        reason: str,
        detail: str,
    ) -> None:
        if not bad.any():
            return
        if self.spec.late == "fail":
            row = int(np.flatnonzero(bad)[0])
            raise BadInput(
                f"stream {self.spec.name!r}: a row cannot be used: {detail}: {chunk.row(row)}."
                " late='side' would set such rows aside"
            )
        keep &= ~bad
        self.account.add(None, reason, int(bad.sum()), 0.0, 0.0)
        if self.spec.late == "side":
            rows = chunk.filter(pl.Series(bad))
            refused.append(rows.with_columns(pl.lit(reason).alias(REASON)))

    def _refuse_broken(
        self,
        chunk: Chunk,
        attribute: str,
        times: Ticks,
        judged: Judgement,
        keep: NDArray[np.bool_],
        refused: list[Chunk],
    ) -> None:
        self.account.backward_marks += judged.backward
        if judged.backward:
            self._complain_backward(attribute)
        if judged.strays:
            self._complain_strays(attribute, judged.strays)
        broken = keep & (times < judged.met)
        leaps = keep & judged.leaps
        if leaps.any() and self.spec.jump and self.spec.jump.then != "warn":
            self._refuse_leaps(chunk, attribute, leaps, keep, refused)
        if not broken.any():
            return
        if self.spec.late == "fail":
            self._fail(chunk, attribute, times, judged, broken)
        keep &= ~broken
        domain = self.spec.domains[attribute]
        seconds = (judged.met[broken] - times[broken]) / domain.ticks_per_second
        rows = chunk.filter(pl.Series(broken)).with_columns(
            pl.lit(late.LATE).alias(REASON),
            pl.Series(LATE_BY, seconds),
            domain.from_ticks(pl.lit(pl.Series(MET, judged.met[broken]))).alias(MET),
        )
        self._count(rows)
        if self.spec.late == "side":
            refused.append(rows)

    def _count(self, rows: Chunk) -> None:
        keys = list(self.spec.key_columns)
        amounts = [
            pl.len().alias("rows"),
            pl.col(LATE_BY).max().alias("longest"),
            pl.col(LATE_BY).sum().alias("total"),
        ]
        counted = rows.group_by(keys).agg(amounts) if keys else rows.select(amounts)
        for *names, count, longest, total in counted.iter_rows():
            self.account.add(_channel_name(names), late.LATE, count, longest, total)

    def _refuse_leaps(
        self,
        chunk: Chunk,
        attribute: str,
        leaps: NDArray[np.bool_],
        keep: NDArray[np.bool_],
        refused: list[Chunk],
    ) -> None:
        assert self.spec.jump is not None
        if self.spec.jump.then == "fail":
            row = int(np.flatnonzero(leaps)[0])
            time = chunk[attribute][row]
            channel = _channel_name([chunk[name][row] for name in self.spec.key_columns])
            mark = self.spec.domains[attribute].show(self._trackers[attribute].mark)
            raise BrokenPromise(
                f"stream {self.spec.name!r}, channel {channel!r}: a row has {attribute} = {time},"
                f" more than {self.spec.jump.over} ahead of the rows before it (mark {mark})",
                stream=self.spec.name,
                channel=channel,
                time=time,
                mark=mark,
            )
        keep &= ~leaps
        self.account.add(None, late.AHEAD, int(leaps.sum()), 0.0, 0.0)
        rows = chunk.filter(pl.Series(leaps))
        refused.append(rows.with_columns(pl.lit(late.AHEAD).alias(REASON)))

    def _fail(
        self,
        chunk: Chunk,
        attribute: str,
        times: Ticks,
        judged: Judgement,
        broken: NDArray[np.bool_],
    ) -> None:
        row = int(np.flatnonzero(broken)[0])
        domain = self.spec.domains[attribute]
        channel = _channel_name([chunk[name][row] for name in self.spec.key_columns])
        time, mark = domain.show(int(times[row])), domain.show(int(judged.met[row]))
        behind = domain.spell(int(judged.met[row] - times[row]))
        promise = self.spec.contracts[attribute].describe()
        raise BrokenPromise(
            f"stream {self.spec.name!r}, channel {channel!r}: a row has {attribute} = {time}, but"
            f" the stream had promised nothing below {mark} ({promise}); it is {behind} late."
            " late='side' would set such rows aside",
            stream=self.spec.name,
            channel=channel,
            time=time,
            mark=mark,
        )

    def _complain_backward(self, attribute: str) -> None:
        message = f"stream {self.spec.name!r}: the producer's marks on {attribute} go backwards"
        if self.spec.late == "fail":
            raise BrokenPromise(
                message, stream=self.spec.name, channel=None, time=None, mark=self.mark(attribute)
            )
        warnings.warn(f"{message}; such marks are ignored", stacklevel=2)

    def _complain_strays(self, attribute: str, strays: int) -> None:
        self.account.strays += strays
        assert self.spec.jump is not None
        warnings.warn(
            f"stream {self.spec.name!r}: {strays} row(s) had {attribute} more than"
            f" {self.spec.jump.over} ahead and the rows after them went back;"
            " their times were not believed",
            stacklevel=2,
        )

    def _ticks(self, chunk: Chunk, attribute: str, usable: NDArray[np.bool_]) -> tuple[Ticks, Ticks]:
        domain = self.spec.domains[attribute]
        times = domain.ticks_of(chunk[attribute]).fill_null(END_OF_TIME).to_numpy()
        if not usable.all():
            times = np.where(usable, times, END_OF_TIME)
        contract = self.spec.contracts[attribute]
        if isinstance(contract, Punctuated):
            return times, domain.ticks_of(chunk[contract.column]).fill_null(BEGINNING).to_numpy()
        return times, times

    def _channel_rows(
        self, chunk: Chunk, usable: NDArray[np.bool_]
    ) -> Iterator[tuple[Hashable, NDArray[np.int64]]]:
        """Each channel with the positions of its usable rows, in order of first appearance."""
        if not usable.any():
            return
        keys = list(self.spec.key_columns)
        if not keys:
            yield None, np.flatnonzero(usable)
            return
        rows = chunk.select(keys).with_row_index("__row")
        if not usable.all():
            rows = rows.filter(pl.Series(usable))
        grouped = rows.group_by(keys, maintain_order=True).agg(pl.col("__row"))
        for *names, positions in grouped.rows():
            yield _channel_name(names), np.asarray(positions, dtype=np.int64)

    def _number(self, rows: Chunk) -> Chunk:
        if not self._numbered:
            return rows
        first, self._sequence = self._sequence, self._sequence + rows.height
        return rows.with_columns(pl.int_range(first, self._sequence, dtype=pl.Int64).alias(SEQUENCE))

    def _sequence_promise(self) -> Promises:
        return self._tell(SEQUENCE, self._sequence) if self._numbered else []

    # ---- promises --------------------------------------------------------------------------

    def mark(self, attribute: str) -> int:
        """The mark now held on an attribute, told or not."""
        if attribute == SEQUENCE:
            return self._sequence
        tracker = self._trackers.get(attribute)
        return tracker.mark if tracker else BEGINNING

    def slowest(self, attribute: str) -> Hashable:
        """The channel that holds the mark of an attribute back."""
        return self._trackers[attribute].slowest

    def promises(self) -> Promises:
        """The punctuation that is due: new, and useful to somebody."""
        due: Promises = []
        for attribute in self._trackers:
            due += self._tell(attribute, self.mark(attribute))
        if self.spec.groups:
            due += self._tell_groups()
        return due

    def _tell(self, attribute: str, mark: int, at_least: int = BEGINNING) -> Promises:
        demand = self._demands.get(attribute)
        if demand is None:
            return []
        useful = max(demand.roll(mark), at_least) if mark > BEGINNING else BEGINNING
        if useful <= self._told.get(attribute, BEGINNING):
            return []
        self._told[attribute] = useful
        return [Punctuation.linear(attribute, useful)]

    def _tell_groups(self) -> Promises:
        attribute = self.spec.time
        demand = self._demands.get(attribute)
        if demand is None:
            return []
        moved = []
        for name, channel in self._trackers[attribute].channels.items():
            useful = demand.roll(channel.mark) if channel.mark > BEGINNING else BEGINNING
            if useful > self._group_told.get(name, BEGINNING):
                self._group_told[name] = useful
                keys = name if isinstance(name, tuple) else (name,)
                moved.append((*keys, useful))
        if not moved:
            return []
        schema = {key: self.spec.row_schema[key] for key in self.spec.groups} | {MARK: pl.Int64()}
        return [GroupPunctuation(attribute, pl.DataFrame(moved, schema=schema, orient="row"))]

    def promise(self, attribute: str, mark: int) -> Promises:
        """Take a promise the producer makes outside its rows, for all channels."""
        if attribute not in self._trackers:
            known = ", ".join(self._trackers) or "none: its timestamps are latent"
            raise OptionError(
                f"stream {self.spec.name!r} makes no promises on {attribute!r} (it does on {known})"
            )
        tracker = self._trackers[attribute]
        if mark < tracker.mark:
            self.account.backward_marks += 1
            self._complain_backward(attribute)
        for name in tracker.channels:
            tracker.promise(name, mark)
        return self.promises()

    # ---- enabling timestamps ---------------------------------------------------------------

    def enable(self, attribute: str, awaited: int, now: int) -> Promises:
        """An enabling timestamp of at least ``awaited``, if ``now`` allows one; else nothing."""
        tracker = self._trackers.get(attribute)
        if tracker is None:
            return []
        stamps = {name: self._stamp(attribute, name, now) for name in tracker.channels}
        for name, stamp in stamps.items():
            if stamp > BEGINNING:
                tracker.promise(name, stamp)
        if tracker.mark < awaited:
            return self.promises() if awaited == BEGINNING else []
        return self._tell(attribute, tracker.mark, at_least=awaited)

    def when(self, attribute: str, awaited: int, now: int) -> int | None:
        """The clock time at which :meth:`enable` could reach ``awaited``; None if never."""
        tracker = self._trackers.get(attribute)
        if tracker is None or not tracker.channels:
            return None
        domain = self.spec.domains[attribute]
        latest = now
        for name, channel in tracker.channels.items():
            if channel.mark >= awaited:
                continue
            stamp = self._stamp(attribute, name, now)
            if stamp == BEGINNING:
                return None
            missing = max(0, awaited - stamp)
            latest = max(latest, now + -(-missing * SECOND // domain.ticks_per_second))
        return latest

    def _stamp(self, attribute: str, name: Hashable, now: int) -> int:
        """``t + τ - δ`` of ETS §5, or the clock for internal timestamps."""
        domain = self.spec.domains[attribute]
        if self.spec.stamp == "internal":
            return now * domain.ticks_per_second // SECOND
        seen = self._last_seen.get(name)
        newest = self._trackers[attribute].channels[name].newest
        if seen is None or newest == BEGINNING:
            return BEGINNING
        skew = nanoseconds(self.spec.idle.skew, "skew") if self.spec.idle else 0
        return newest + (now - seen - skew) * domain.ticks_per_second // SECOND

    # ---- saving ----------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""
        return {
            "sequence": self._sequence,
            "trackers": {name: tracker.snapshot() for name, tracker in self._trackers.items()},
            "told": dict(self._told),
            "group_told": dict(self._group_told),
            "last_seen": dict(self._last_seen),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._sequence = saved["sequence"]
        for name, state in saved["trackers"].items():
            self._trackers[name].restore(state)
        self._told, self._group_told = dict(saved["told"]), dict(saved["group_told"])
        self._last_seen = dict(saved["last_seen"])




def _to_domain(chunk: Chunk, column: str, dtype: pl.DataType) -> Chunk:
    """Bring a Date or floating-point time column to the domain's type; NaN becomes null."""
    have = chunk.schema[column]
    if have == dtype:
        return chunk
    source = pl.col(column)
    if have.is_float():
        finite = pl.when(source.is_finite()).then(source)
        bounded = pl.when(finite.abs() < 1e12).then(finite).otherwise(
            pl.when(finite.is_not_null()).then(pl.lit(1e12))
        )
        return chunk.with_columns((bounded * 1e6).round().cast(pl.Int64).cast(dtype).alias(column))
    if have.is_integer():
        return chunk.with_columns(source.cast(pl.Int64))
    return chunk.with_columns(source.cast(dtype))


def _channel_name(parts: list[Any]) -> Hashable:
    """One key column names a channel by its value, several by the tuple, none by None."""
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else tuple(parts)
