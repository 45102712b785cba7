"""A live source whose rows the program itself pushes, from any thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal

import polars as pl
import pyarrow as pa

from lowwater.errors import BadInput, OptionError, StreamError, unknown_name
from lowwater.progress.producer import ProducerPromise
from lowwater.sources.source import AT_ONCE, Reader, Source
from lowwater.sources.values import first_altered, read_as
from lowwater.stream.element import Chunk

MOST_WAITING = 1_000_000
"""Number of rows that may wait to be read, unless the user gives another."""


class Push(Source, Reader):
    """A live source and its one reader; made by ``lw.push(...)``.

    At most ``limit`` rows are unread, or those of one push if that alone has more.

    >>> source = lw.push({"ts": pl.Int64, "v": pl.Float64})
    >>> run = lw.stream(source, name="s", time="ts").run()
    >>> source.send([{"ts": 1, "v": 0.5}, {"ts": 2}])
    >>> source.punctuate("ts", 10)
    >>> source.close()
    >>> run.await_termination()
    True
    >>> run.results()["v"].to_pylist()
    [0.5, None]
    """

    live = True

    def __init__(
        self,
        schema: Mapping[str, pl.DataType | type[pl.DataType]],
        limit: int = MOST_WAITING,
        full: Literal["wait", "fail"] = "wait",
    ):
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise OptionError(f"limit= is a whole number of rows above zero, not {limit!r}")
        if full not in ("wait", "fail"):
            raise OptionError(f"full= is 'wait' or 'fail', not {full!r}")
        self.schema = dict(pl.Schema(schema))
        self._limit, self._full = limit, full
        self._rows = self._bytes = 0
        self._reader: int | None = None
        self._lock = threading.Condition()
        self._events: deque[Chunk | ProducerPromise] = deque()
        self._check: Callable[[ProducerPromise], object] | None = None
        self._closed = False
        self._opened = False
        self._released = False
        self._wake: Callable[[], None] | None = None

    def send(self, rows: Any) -> None:
        """Push rows.

        If too many rows are unread already, this blocks until the run has read some. It fails
        instead if the source was made with ``full="fail"``, or if no run will read them.

        ``rows``
            A Polars frame, a PyArrow table, a list of dicts or one dict. Columns that a dict leaves
            out are null.
        """
        chunk = self._chunk(rows)
        with self._lock:
            self._refuse_if_over()
            while self._rows and chunk.height and self._rows + chunk.height > self._limit:
                self._refuse_to_wait(chunk.height)
                self._lock.wait()
                self._refuse_if_over()
            if chunk.height:
                self._events.append(chunk)
                self._rows += chunk.height
                self._bytes += int(chunk.estimated_size())
        self._notify()

    def _refuse_to_wait(self, rows: int) -> None:
        """Raise if blocking would have no end, or ``full`` is "fail"."""
        full = (
            f"{self._rows:,} rows wait to be read and {rows:,} more would be above the limit of"
            f" {self._limit:,}"
        )
        if self._full == "fail":
            raise StreamError(f"{full}; they were not taken. Send them again later")
        if self._wake is None:
            raise StreamError(
                f"{full}, and no run reads this source yet; they were not taken. Start the run"
                " first, or make the source with a larger limit="
            )
        if self._reader == threading.get_ident():
            raise StreamError(
                f"{full}, and they were sent from within the run that reads them, which would block"
                " for ever; they were not taken. Send them from another thread, or make the source"
                " with a larger limit="
            )

    def punctuate(
        self, attribute: Any, value: Any = None, *, channel: Any = None, group: Any = None
    ) -> None:
        """Promise that every later row, of the stream or of a part of it, has ``attribute >=
        value``.

        >>> source = lw.push({"ts": pl.Int64, "device": pl.String})
        >>> s = lw.stream(source, time="ts", groups="device")
        >>> run = s.window("10 seconds").group_by("device").agg(n="count(*)").run()
        >>> source.send([{"ts": 1, "device": "a"}, {"ts": 2, "device": "b"}])
        >>> source.punctuate("ts", 10, group="a")
        >>> source.punctuate(20)
        >>> source.close()
        >>> run.await_termination()
        True
        >>> run.results()["device"].to_pylist()
        ['a', 'b']

        ``attribute``
            Name of a progressing column. Left out, the promise is on the main time:
            ``punctuate(10)``. A mapping of columns to bounds is a joint promise: every later row
            satisfies at least one of them, ``punctuate({"start": 10, "end": 20})``.
        ``value``
            Bound on it, of the column's type. Default: None, the first argument is the bound.
        ``channel``
            The channel that the promise is about, of a stream with ``channel=``. One that is not
            known yet is known from then on, and holds the mark of the stream. Default: None, the
            promise is about all rows.
        ``group``
            The group that the promise is about, of a stream with ``groups=``: the value of its
            column; of several columns a tuple, or a mapping of columns to values. Default: None,
            the promise is about all rows.
        """
        bounds = self._bounds(attribute, value)
        if channel is not None and group is not None:
            raise OptionError("a promise is about a channel or a group: give channel= or group=")
        self._promise(ProducerPromise(bounds, channel, group))

    def _promise(self, promise: ProducerPromise) -> None:
        if self._check is not None:
            self._check(promise)
        with self._lock:
            self._refuse_if_over()
            self._events.append(promise)
        self._notify()

    def end(self, *, channel: Any = None, group: Any = None) -> None:
        """Promise that no more rows of a channel or group come: its answers leave, and nothing of
        it is kept.

        A row of it that comes all the same is refused, as long as its name is remembered: until at
        least 1,000 others have ended.

        >>> source = lw.push({"ts": pl.Int64, "device": pl.String})
        >>> s = lw.stream(source, time="ts", groups="device")
        >>> run = s.window("10 seconds").group_by("device").agg(n="count(*)").run()
        >>> source.send([{"ts": 1, "device": "a"}, {"ts": 2, "device": "b"}])
        >>> source.end(group="a")
        >>> source.send({"ts": 3, "device": "a"})
        >>> source.close()
        >>> run.await_termination()
        True
        >>> run.results()["n"].to_pylist(), run.late_rows()["_reason"].to_pylist()
        ([1, 1], ['after its end'])

        ``channel``
            The channel that has ended, of a stream with ``channel=``. It no longer holds the mark
            of the stream. Default: None.
        ``group``
            The group that has ended, of a stream with ``groups=``, named as in ``punctuate``.
            Default: None.
        """
        if (channel is None) == (group is None):
            raise OptionError(
                "end(...) takes the channel or group that has ended: channel='a' or group='a'; the"
                " stream itself ends by close()"
            )
        self._promise(ProducerPromise((), channel, group, ends=True))

    def _bounds(self, attribute: Any, value: Any) -> tuple[tuple[str | None, object], ...]:
        """Return the bounds of a promise by column; the column None is the main time."""
        if isinstance(attribute, Mapping):
            if not attribute or value is not None:
                raise OptionError(
                    "a joint promise is on columns, each with its bound: punctuate({'ts': 10,"
                    " 'end': 20})"
                )
            return tuple(each for bound in attribute.items() for each in self._bounds(*bound))
        if value is None and not isinstance(attribute, str) and attribute is not None:
            return ((None, attribute),)
        if not isinstance(attribute, str):
            raise OptionError(
                "a promise is on a column: punctuate('ts', 10), or punctuate(10) for the main time,"
                f" not {attribute!r}"
            )
        if attribute not in self.schema:
            raise OptionError(unknown_name("column", attribute, self.schema))
        if value is None or not _fits(pl.Series([value]).dtype, self.schema[attribute]):
            raise OptionError(
                f"a promise on {attribute!r} is of type {self.schema[attribute]}, not {value!r}"
            )
        return ((attribute, value),)

    def _refuse_if_over(self) -> None:
        if self._closed:
            raise StreamError("this source was closed; nothing can be sent any more")
        if self._released:
            raise StreamError("the run that read this source has ended")

    def release(self) -> None:
        """End the reading; a call of :meth:`send` that blocks raises an error."""
        with self._lock:
            self._released = True
            self._lock.notify_all()

    def close(self) -> None:
        """End the stream: nothing can be sent after this."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        self._notify()

    def _chunk(self, rows: Any) -> Chunk:
        if isinstance(rows, dict):
            rows = [rows]
        try:
            frame = rows if isinstance(rows, pl.DataFrame) else _frame(rows, self.schema)
        except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
            raise BadInput(f"rows do not fit the source's columns: {error}") from None
        for name, have in frame.schema.items():
            if name not in self.schema:
                raise BadInput(unknown_name("column", name, self.schema))
            if not _fits(have, self.schema[name]):
                raise BadInput(f"column {name!r} is {self.schema[name]}, and this is {have}")
        missing = [name for name in self.schema if name not in frame.columns]
        if missing and isinstance(rows, pl.DataFrame | pa.Table | pa.RecordBatch):
            raise BadInput(f"rows lack column {missing[0]!r}")
        nulls = [pl.lit(None).alias(name) for name in missing]
        whole = frame.with_columns(nulls)
        values = read_as(whole, self.schema)
        wrong = first_altered(whole, values)
        if wrong is not None:
            raise BadInput(f"row {wrong[0] + 1} of those sent, {wrong[1]}")
        return values

    def _notify(self) -> None:
        if self._wake is not None:
            self._wake()

    # ---- the reader of the one query --------------------------------------------------------

    def open(self) -> Push:
        """Start reading; a live source can be read once only."""
        if self._opened:
            raise StreamError("a live source can feed one run only; make another one")
        self._opened = True
        return self

    @property
    def ended(self) -> bool:
        """True if the source was closed and everything was read."""
        with self._lock:
            return self._closed and not self._events

    def due(self, rows: int = 1) -> int | None:
        """Return ``AT_ONCE`` if rows or a promise are unread, else None."""
        with self._lock:
            return AT_ONCE if self._events else None

    def read(self, now: int, limit: int) -> Chunk | None:
        """Return the next rows; None if there are none, or a promise comes before them."""
        with self._lock:
            chunk = self._events[0] if self._events else None
            if not isinstance(chunk, pl.DataFrame):
                return None
            self._events.popleft()
            before = int(chunk.estimated_size())
            if chunk.height > limit:
                rest = chunk.slice(limit)
                self._events.appendleft(rest)
                before -= int(rest.estimated_size())
                chunk = chunk.head(limit)
            self._rows -= chunk.height
            self._bytes -= before
            self._lock.notify_all()
            return chunk

    def waiting(self) -> tuple[int, int]:
        """Return the number of rows pushed and not read yet, and their size in bytes."""
        with self._lock:
            return self._rows, self._bytes

    def take_promises(self) -> list[ProducerPromise]:
        """Return the promises made after the rows read so far and before the next ones."""
        promises = []
        with self._lock:
            while self._events and isinstance(self._events[0], ProducerPromise):
                event = self._events.popleft()
                assert isinstance(event, ProducerPromise)
                promises.append(event)
        return promises

    def check_promises(self, check: Callable[[ProducerPromise], object]) -> None:
        """Set the function that raises an error if a promise has no meaning for the stream."""
        self._check = check

    def notify(self, wake: Callable[[], None]) -> None:
        """Set the function to call whenever rows or a promise are pushed."""
        self._reader = threading.get_ident()
        self._wake = wake


def _frame(rows: Any, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Return rows as a frame with the types they have, which may not fit the source's columns."""
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return pl.DataFrame(rows)
    named = rows and isinstance(rows[0], dict)
    columns = None if named else list(schema)
    return pl.DataFrame(rows, columns, orient="row", infer_schema_length=None)


def _fits(have: pl.DataType, needed: pl.DataType) -> bool:
    """Return true if values of one type may be read as the other without being altered."""
    if have in (needed, pl.Null()):
        return True
    if have.is_integer():
        return needed.is_numeric()
    if have.is_float():
        return needed.is_float()
    if have.is_temporal():
        return type(have) is type(needed)
    return have == pl.String and needed.base_type() in (pl.Categorical, pl.Enum)


def push(
    schema: Mapping[str, pl.DataType | type[pl.DataType]],
    limit: int = MOST_WAITING,
    full: Literal["wait", "fail"] = "wait",
) -> Push:
    """Return a live source; feed it with ``send``, ``punctuate`` and ``close``, from any thread.

    >>> source = lw.push({"ts": pl.Int64})
    >>> run = lw.stream(source, name="s", time="ts").run()
    >>> source.send({"ts": 1})
    >>> source.close()
    >>> run.await_termination()
    True
    >>> run.results()["ts"].to_pylist()
    [1]

    ``schema``
        The columns, and the Polars type of each.
    ``limit``
        Most rows that wait to be read, above zero. Default: 1,000,000.
    ``full``
        What ``send`` does beyond that: "wait" blocks until the run has read some, "fail" raises an
        error. Default: "wait".
    """
    return Push(schema, limit, full)
