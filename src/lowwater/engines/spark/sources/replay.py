"""A replay is a Spark source that gives batches of messages in a controlled arrival order.

The reader is on the driver's machine and has the whole log. Played as fast as possible, a log has
an order, so the same intake as in the embedded engine judges its rows one by one, here, before they
are sent; the messages of a batch follow from its offsets alone. Played by the clock, rows are sent
when they are due and judged like those of any live source.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from lowwater.engines.spark.wire.errors import carrying
from lowwater.engines.spark.wire.message import (
    DDL,
    Kind,
    Message,
    ReaderReport,
    as_batch,
    packed,
    pickled,
    unpacked,
    unpickled,
)
from lowwater.engines.spark.wire.program import SourceProgram
from lowwater.engines.spark.worker.outgoing import deliver, deliver_promises
from lowwater.engines.spark.worker.source_stage import Reading
from lowwater.engines.spark.worker.task import begin_task, end_quietly
from lowwater.errors import CheckpointError, StreamWarning
from lowwater.metrics import CHANNELS
from lowwater.progress.intake import Intake
from lowwater.progress.late import LateRows
from lowwater.sources.replay import Replay
from lowwater.stream.element import Element, End

FORMAT = "lowwater-replay"
SEED = 0
"""The seed of the hash of rows, the same in every process."""
ROWS_A_TASK = 262_144
"""The greatest number of rows that one task sends."""


@dataclass(frozen=True)
class ReplayLog:
    """A log to play: its rows, when they arrive, and how they are cut into batches."""

    source: SourceProgram
    rows: str
    """An Arrow file."""
    times: NDArray[np.int64] | None
    """The arrival time of each row, in nanoseconds."""
    cuts: tuple[int, ...]
    """Batch k holds the rows from ``cuts[k]`` to ``cuts[k + 1]``."""
    live: bool
    print: LogPrint | None = None
    """Saved in a checkpoint to recognize the log; None if logs are not compared."""


@dataclass(frozen=True)
class LogPrint:
    """Identifies a log: its length, its columns, and a digest of its rows."""

    rows: int
    columns: str
    content: str
    batches: str
    """A digest of the cuts into batches; empty if the log is played by the clock."""

    @classmethod
    def of(cls, given: Replay, cuts: tuple[int, ...], live: bool) -> LogPrint:
        """Return the print of a log."""
        times = b"" if given.times is None else given.times.tobytes()
        return cls(
            given.rows,
            ", ".join(f"{name} {dtype}" for name, dtype in given.schema.items()),
            _digest(given.table.hash_rows(SEED).to_numpy().tobytes(), times),
            "" if live else _digest(repr(cuts).encode()),
        )

    def refuse_other(self, kept: dict[str, Any] | None) -> None:
        """Refuse a checkpoint of another log; ``kept`` is its print, None if an earlier version
        without prints wrote it."""
        if kept is None or kept == asdict(self):
            return
        if kept["columns"] != self.columns:
            what = f"it had the columns {kept['columns']}, and has {self.columns}"
        elif kept["rows"] != self.rows:
            what = f"it had {kept['rows']:,} rows, and has {self.rows:,}"
        elif kept["content"] != self.content:
            what = "it has as many rows, but some of them differ"
        else:
            what = "it is cut into other batches: chunk_rows= or tick= was different"
        raise CheckpointError(
            f"the checkpoint is of a log that has changed since: {what}. A log that was played to"
            " its end has been answered as a whole, and nothing can follow it. Play this log with"
            " a checkpoint folder of its own; rows that go on coming are better read from a folder"
            " that is followed"
        )


def _digest(*parts: bytes) -> str:
    return sha256(b"".join(parts)).hexdigest()


@dataclass(frozen=True)
class Share:
    """The rows and elements that one task sends."""

    number: int
    rows: bytes
    elements: tuple[Element, ...]
    """Promises, and the end; only the first share of a batch has some."""
    refused: bytes
    """The refused rows and the report on them; empty in all shares but the first."""
    at: int
    """The clock of the batch, in nanoseconds."""
    judged: bool
    """True if the rows were let in; False if they are judged where they arrive."""
    arrivals: NDArray[np.int64] | None = None
    """The arrival time of each row by the clock; None if the log is not played by the clock."""


class ReplayStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches on the driver's machine; reads shares anywhere."""

    def __init__(self, path: str):
        end_quietly()
        log: ReplayLog = unpickled(Path(path).read_bytes())
        self._log, self._source = log, log.source
        self._table: pl.DataFrame | None = None
        self._intake: Intake | None = None
        self._at = 0
        self._planned: tuple[Any, list[InputPartition]] | None = None
        self._begun: int | None = None
        self._bounded = False

    def __getstate__(self) -> dict[str, Any]:
        return {"_source": self._source}

    # ---- offsets ---------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first row."""
        return self._offset({"step": 0, "row": 0, "at": 0, "ended": False})

    def _offset(self, place: dict[str, Any]) -> dict[str, Any]:
        """Return an offset: a place, with the print of the log."""
        known = self._log.print
        return place if known is None else {**place, "log": asdict(known)}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of a batch: one stretch of the log."""
        return ReadMaxRows(1)

    def prepareForTriggerAvailableNow(self) -> None:
        """Note that the run ends with the log, all of which is there."""
        self._bounded = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next batch."""
        self._check(start)
        if start["ended"]:
            return start
        cuts = self._log.cuts
        if not self._log.live or self._bounded:
            last = len(cuts) - 1
            step = last if isinstance(limit, ReadAllAvailable) else start["step"] + 1
            at = self._arrived(cuts[step])
            place = {"step": step, "row": cuts[step], "at": at, "ended": step == last}
            return self._offset(place)
        return self._due(start)

    def _check(self, *places: dict[str, Any]) -> None:
        if self._log.print is not None:
            with carrying():
                for place in places:
                    self._log.print.refuse_other(place.get("log"))

    def _arrived(self, row: int) -> int:
        """Return the arrival time of the last of the first ``row`` rows."""
        times = self._log.times
        return int(times[row - 1]) if times is not None and row else 0

    def _due(self, start: dict[str, Any]) -> dict[str, Any]:
        """Return the end of the rows that have arrived by the clock since ``start``."""
        times, now = self._log.times, time.time_ns()
        total = self._log.cuts[-1]
        if times is None:
            row = total
        else:
            if self._begun is None:
                done = int(times[start["row"] - 1] - times[0]) if start["row"] else 0
                self._begun = now - done
            first = int(times[0]) if len(times) else 0
            row = int(np.searchsorted(times, first + now - self._begun, "right"))
        ended = row >= total
        if row <= start["row"] and not ended:
            return start
        step = start["step"] + 1
        place = {"step": step, "row": row, "at": now, "ended": ended, "begun": self._begun}
        return self._offset(place)

    # ---- planning --------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the shares of a batch."""
        if start == end:
            return []
        self._check(start, end)
        if self._planned is None or self._planned[0] != (start, end):
            with carrying():
                shares = self._live(start, end) if self._log.live else self._judged(start, end)
            self._planned = ((start, end), [InputPartition(share) for share in shares])
        return self._planned[1]

    def _rows(self, first: int, last: int) -> pl.DataFrame:
        if self._table is None:
            self._table = pl.read_ipc(self._log.rows)
        return self._table.slice(first, last - first)

    def _live(self, start: dict[str, Any], end: dict[str, Any]) -> list[Share]:
        rows = self._rows(start["row"], end["row"])
        over: tuple[Element, ...] = (End(),) if end["ended"] else ()
        arrivals = self._log.times
        if arrivals is not None and len(arrivals):
            begun = end.get("begun")
            shift = 0 if begun is None else begun - arrivals[0]
            arrivals = arrivals[start["row"] : end["row"]] + shift
        return [Share(0, packed(rows), over, b"", end["at"], False, arrivals)]

    def _judged(self, start: dict[str, Any], end: dict[str, Any]) -> list[Share]:
        if self._intake is None or self._at > start["row"]:
            source = self._source
            self._intake = Intake(source.spec, source.demands, source.announced)
            self._intake.floor = source.floor
            self._at = 0
        cuts = [cut for cut in self._log.cuts if self._at < cut < start["row"]]
        for cut in (*cuts, start["row"]):  # rows that an earlier run has sent
            self._take(cut)
        rows, refused, account, elements = self._take(end["row"])
        if end["ended"]:
            elements.append(End())
        count = max(1, -(-rows.height // ROWS_A_TASK))
        size = -(-rows.height // count) if rows.height else 0
        report = pickled((account, refused))
        return [
            Share(
                number,
                packed(rows.slice(number * size, size)),
                tuple(elements) if number == 0 else (),
                report if number == 0 else b"",
                end["at"],
                True,
            )
            for number in range(count)
        ]

    def _take(self, until: int) -> tuple[pl.DataFrame, bytes, ReaderReport, list[Element]]:
        """Judge the rows up to a row number; return those let in, those refused, the report on them
        and the promises that follow."""
        assert self._intake is not None
        account = self._intake.account
        before = {(x.channel, x.reason): x for x in account.lines()}
        strays, backward = account.strays, account.backward_marks
        with warnings.catch_warnings(record=True) as noticed:
            warnings.simplefilter("always")
            times = self._log.times
            arrivals = None if times is None else times[self._at : until]
            chunk, now = self._rows(self._at, until), self._arrived(until)
            taken = [
                self._intake.take(chunk[part], now, None if arrivals is None else arrivals[part])
                for part in self._intake.parts(chunk)
            ]
        self._at = until
        notes = [str(each.message) for each in noticed if each.category is StreamWarning]
        added = (_added(line, before.get((line.channel, line.reason))) for line in account.lines())
        out = [each.refused for each in taken if each.refused is not None]
        refused = packed(pl.concat(out, how="diagonal")) if out else b""
        promises: list[Element] = [promise for each in taken for promise in each.promises]
        spec = self._source.spec
        known = [(spec.name, *each) for each in self._intake.completeness()]
        channels = self._intake.channels(spec.time, CHANNELS)
        marks = {name: self._intake.shown(name) for name in spec.domains}
        counted = ReaderReport(
            [each for each in added if each is not None],
            notes,
            known,
            sum(each.came for each in taken),
            marks,
            channels,
            account.strays - strays,
            account.backward_marks - backward,
        )
        return pl.concat([each.rows for each in taken]), refused, counted, promises

    # ---- reading ---------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a share."""
        begin_task()
        with carrying():
            yield as_batch(self._messages(partition.value))

    def _messages(self, share: Share) -> Iterator[Message]:
        source = self._source
        rows = unpacked(share.rows)
        if share.judged:
            tried: dict[int, bool] = {}
            for delivery in source.deliveries:
                yield from deliver(rows, delivery, share.number, share.at, tried)
        else:
            reading = Reading(source, share.number, None)
            yield from reading.take(rows, share.at if source.clocked else 0, share.arrivals)
            yield from reading.close()
        if share.elements or (source.spec.stamp == "latent" and share.number == 0):
            for delivery in source.deliveries:
                yield from deliver_promises(source.index, share.elements, delivery, share.at)
        if share.refused:
            first = source.deliveries[0]
            yield Message(
                first.stage, first.ids[0], source.index, Kind.REFUSED, -1, share.at, share.refused
            )


def _added(line: LateRows, before: LateRows | None) -> LateRows | None:
    """Return the rows that were added to a line of the account since an earlier one; None if there
    are none."""
    if before is None:
        return line
    rows = line.rows - before.rows
    if not rows:
        return None
    total = line.mean_seconds * line.rows - before.mean_seconds * before.rows
    return replace(line, rows=rows, mean_seconds=total / rows)


class ReplaySource(DataSource):
    """A replay as a format that Spark reads."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> str:
        """Return the columns of messages."""
        end_quietly()
        return DDL

    def streamReader(self, schema: Any) -> ReplayStreamReader:
        """Make a reader."""
        del schema
        return ReplayStreamReader(self.options["log"])
