"""Contracts: statements of a user about the order of a source, as frozen values (OOP §3.2, §5.1).

A contract states facts that an in-order system would need to sort the stream. Here they bound the
rows still to come. If nobody has such facts, a contract states the share of rows that must be on
time, and the bound is learned from the rows; or it states that there is no bound. If the stream
names a channel column, the contract holds for each channel by itself.

The options that stand beside a contract are in :mod:`lowwater.progress.options`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from lowwater.errors import OptionError
from lowwater.progress.channel import Channel, MeasuredChannel, ProducerChannel
from lowwater.progress.learned import LearnedChannel
from lowwater.stream.duration import Duration, nanoseconds, spell
from lowwater.stream.time_domain import TimeDomain


class Contract(ABC):
    """The base of all contracts: facts about the times of a stream, without any state.

    :meth:`channel` builds the object that follows a channel and has its state.
    """

    __slots__ = ()

    promises: ClassVar[bool] = True
    """True if the contract bounds the rows still to come."""
    in_order: ClassVar[bool] = False
    """True if the rows of a channel come in order of their times."""
    counts_times: ClassVar[bool] = False
    """True if the digest of a batch must hold all its times, coarsely, with their counts."""

    @abstractmethod
    def describe(self) -> str:
        """Return the contract as a phrase for people."""

    @abstractmethod
    def channel(self, domain: TimeDomain, jump: int | None) -> Channel:
        """Build the state of one channel.

        ``domain`` is that of the time column. A row dated more than ``jump`` ticks ahead of its
        channel is a leap; with None leaps are not looked for.
        """

    @property
    def mark_column(self) -> str | None:
        """Name of the column with the producer's own marks; None if there is none."""
        return None

    @property
    def alone_column(self) -> str | None:
        """Name of the column that is true in rows that are punctuation only; None if there is
        none."""
        return None

    @property
    def joins_marks(self) -> bool:
        """True if a mark is one of several bounds, together with those of other columns."""
        return False

    @property
    def greatest_times(self) -> int:
        """Number of greatest times, per channel, that the digest of a batch must keep."""
        return 2

    def top_slack(self, domain: TimeDomain) -> int | None:
        """Return the slack, in ticks, if a mark is always the newest time less a fixed slack.

        None for contracts whose marks follow from more than the newest time.
        """
        return None


@dataclass(frozen=True, slots=True)
class Ordered(Contract):
    """Times never decrease."""

    in_order: ClassVar[bool] = True

    def describe(self) -> str:
        """Return the contract as a phrase for people."""
        return "ordered"

    def channel(self, domain: TimeDomain, jump: int | None) -> Channel:
        """Build a channel without slack."""
        return MeasuredChannel(0, 0, jump)

    def top_slack(self, domain: TimeDomain) -> int:
        """Return 0: the mark is the newest time."""
        return 0


@dataclass(frozen=True, slots=True)
class Within(Contract):
    """No row is more than ``bound`` behind the newest row before it."""

    bound: Duration
    """A length of time of zero or more."""

    def __post_init__(self) -> None:
        if nanoseconds(self.bound, "within(...)") < 0:
            raise OptionError("within(...) takes a length of time of zero or more")

    def describe(self) -> str:
        """Return the contract as a phrase for people."""
        return f"within {self.bound}"

    def channel(self, domain: TimeDomain, jump: int | None) -> Channel:
        """Build a channel whose mark is ``bound`` below its newest time."""
        return MeasuredChannel(self.top_slack(domain), 0, jump)

    def top_slack(self, domain: TimeDomain) -> int:
        """Return the bound in ticks."""
        return domain.ticks(self.bound, "within(...)")


@dataclass(frozen=True, slots=True)
class WithinRows(Contract):
    """No row is below one that came more than ``rows`` rows before it (scrambling factor)."""

    rows: int
    """A number of rows of zero or more."""

    def __post_init__(self) -> None:
        if not isinstance(self.rows, int) or isinstance(self.rows, bool) or self.rows < 0:
            raise OptionError(f"within_rows(...) takes a whole number >= 0, not {self.rows!r}")

    def describe(self) -> str:
        """Return the contract as a phrase for people."""
        return f"within {self.rows} rows"

    def channel(self, domain: TimeDomain, jump: int | None) -> Channel:
        """Build a channel whose mark is the greatest time more than ``rows`` rows back."""
        return MeasuredChannel(0, self.rows, jump)

    @property
    def greatest_times(self) -> int:
        """Number of greatest times, per channel, that the digest of a batch must keep."""
        return self.rows + 2


@dataclass(frozen=True, slots=True)
class Punctuated(Contract):
    """The producer sends its marks in ``column``.

    A value there that is not null is a mark: every later row of the channel has at least this time.
    A row with a mark and a null time is a *pure punctuation*: it is consumed, not passed on. So is
    a row in which the Boolean column ``alone`` is true. Marks of several columns that are declared
    ``jointly`` in one row are one promise: every later row satisfies at least one of them.
    """

    column: str
    alone: str | None = None
    jointly: bool = False

    def describe(self) -> str:
        """Return the contract as a phrase for people."""
        return f"punctuated by column {self.column}{', jointly' if self.jointly else ''}"

    def channel(self, domain: TimeDomain, jump: int | None) -> Channel:
        """Build a channel that follows the producer's marks; it does not look for leaps."""
        return ProducerChannel()

    @property
    def mark_column(self) -> str:
        """Name of the column with the producer's marks."""
        return self.column

    @property
    def alone_column(self) -> str | None:
        """Name of the column that is true in rows that are punctuation only; None if there is
        none."""
        return self.alone

    @property
    def joins_marks(self) -> bool:
        """True if a mark is one of several bounds, together with those of other columns."""
        return self.jointly


@dataclass(frozen=True, slots=True)
class Learned(Contract):
    """The slack is learned from the lateness of the rows so far.

    The rows that come later than the slack are late rows, as under any contract.
    """

    counts_times: ClassVar[bool] = True

    completeness: float = 0.999
    """Share of rows that must be on time, between 0 and 1."""

    def __post_init__(self) -> None:
        share = self.completeness
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if not number or not 0 < share < 1:
            raise OptionError(
                "learned(...) takes a completeness between 0 and 1, such as 0.999 for 99.9 %,"
                f" not {share!r}; if no row may be late, state the bound with lw.within(...)"
            )

    def describe(self) -> str:
        """Return the contract as a phrase for people."""
        return f"learned, {self.completeness * 100:.10g} % complete"

    def channel(self, domain: TimeDomain, jump: int | None) -> Channel:
        """Build a channel that learns its slack."""
        return LearnedChannel(self.completeness, jump)


@dataclass(frozen=True, slots=True)
class Unpromised(Contract):
    """Times grow in the long run, and nothing bounds the rows still to come.

    No row is ever late, and no mark is ever made. A join without a window measures how disordered
    the rows are (WO-Join), or uses ``disorder`` if it is given, which must then be true. The other
    values serve to predict how many rows such a join keeps.
    """

    promises: ClassVar[bool] = False

    disorder: int | None = None
    """Greatest number of rows by which a row comes after one that is not less; None to measure
    it."""
    multiplicity: int | None = None
    """Greatest number of rows with the same value."""
    rate: float | None = None
    """Rows a second."""
    delay: Duration | None = None
    """Time by which rows come later than those of the stream that is furthest ahead."""

    def __post_init__(self) -> None:
        for name, least in (("disorder", 0), ("multiplicity", 1)):
            given = getattr(self, name)
            whole = isinstance(given, int) and not isinstance(given, bool)
            if given is not None and (not whole or given < least):
                raise OptionError(
                    f"unpromised(...): {name}= is a whole number >= {least}, not {given!r}"
                )
        rate = self.rate
        number = isinstance(rate, int | float) and not isinstance(rate, bool)
        if rate is not None and (not number or not 0 < rate < inf):
            raise OptionError(f"unpromised(...): rate= is rows a second above 0, not {rate!r}")
        if self.delay is not None and nanoseconds(self.delay, "delay=") < 0:
            raise OptionError("unpromised(...): delay= takes a length of time of zero or more")
        if self.disorder is not None and (self.multiplicity or 1) > self.disorder + 1:
            raise OptionError(
                f"unpromised(...): {self.multiplicity} rows of one value are"
                f" {(self.multiplicity or 1) - 1} places apart, so disorder= is at least that,"
                f" not {self.disorder}"
            )

    def describe(self) -> str:
        """Return the contract as a phrase for people."""
        known = []
        if self.disorder is not None:
            known.append(f"disorder {self.disorder} rows")
        if self.multiplicity is not None:
            known.append(f"multiplicity {self.multiplicity}")
        if self.rate is not None:
            known.append(f"{self.rate:g} rows/s")
        if self.delay is not None:
            known.append(f"delay {spell(nanoseconds(self.delay))}")
        return f"unpromised ({', '.join(known)})" if known else "unpromised"

    def channel(self, domain: TimeDomain, jump: int | None) -> Channel:
        """Raise: a column without promises has no marks to follow."""
        raise AssertionError("a column without promises has no channels")


def ordered() -> Ordered:
    """State that times never decrease; per channel, if the stream has channels.

    >>> log = pl.DataFrame({"ts": [1, 2, 61]})
    >>> s = lw.stream(log, name="s", time="ts", progress=lw.ordered())
    >>> s.window("1 minute").agg(n="count(*)").collect()["n"].to_pylist()
    [2, 1]
    """
    return Ordered()


def within(bound: Duration) -> Within:
    """State that no row is more than ``bound`` behind the newest row before it.

    >>> log = pl.DataFrame({"ts": [61, 59, 130]})
    >>> s = lw.stream(log, name="s", time="ts", progress=lw.within("5 seconds"))
    >>> s.window("1 minute").agg(n="count(*)").collect()["n"].to_pylist()
    [1, 1, 1]

    ``bound``
        Length of time, zero or more. A row further behind is a late row.
    """
    return Within(bound)


def within_rows(rows: int) -> WithinRows:
    """State that no row comes more than ``rows`` rows after a newer one.

    >>> log = pl.DataFrame({"ts": [61, 1, 130]})
    >>> s = lw.stream(log, name="s", time="ts", progress=lw.within_rows(1))
    >>> s.window("1 minute").agg(n="count(*)").collect()["n"].to_pylist()
    [1, 1, 1]

    ``rows``
        Number of rows, zero or more: the scrambling factor of the stream.
    """
    return WithinRows(rows)


def learned(completeness: float = 0.999) -> Learned:
    """Let the slack be learned from the rows.

    >>> log = lw.Workload(rate=100, seconds=60, late_share=0.1, late_by=1).replay()
    >>> s = lw.stream(log, time="ts", progress=lw.learned(0.99), late="drop")
    >>> s.window("10 seconds").agg(n="count(*)").collect().num_rows
    6

    ``completeness``
        Share of rows that must be on time, above 0 and below 1. Default: 0.999, one row in a
        thousand may be late.
    """
    return Learned(completeness)


def unpromised(
    disorder: int | None = None,
    multiplicity: int | None = None,
    rate: float | None = None,
    delay: Duration | None = None,
) -> Unpromised:
    """State that nothing bounds the rows still to come; for joins without a window.

    Every argument is a fact about the rows, if it is known.

    >>> log = pl.DataFrame({"n": [1, 3, 2]})
    >>> a, b = (lw.stream(log, name=each, time="n", progress=lw.unpromised()) for each in "ab")
    >>> sorted(a.join(b, on="n").collect()["n"].to_pylist())
    [1, 2, 3]

    ``disorder``
        Greatest number of rows by which a row comes after one that is not less. Default: None, a
        join measures it.
    ``multiplicity``
        Greatest number of rows with one value. Default: None, not known.
    ``rate``
        Rows a second. Default: None, not known.
    ``delay``
        Length of time by which rows come later than those of the stream furthest ahead. Default:
        None, not known.
    """
    return Unpromised(disorder, multiplicity, rate, delay)


def punctuated(column: str, alone: str | None = None, jointly: bool = False) -> Punctuated:
    """State that the producer sends its own marks, in ``column``.

    >>> log = pl.DataFrame({"ts": [61, 1, 130], "mark": [None, 60, None]})
    >>> s = lw.stream(log, name="s", time="ts", progress=lw.punctuated("mark"))
    >>> s.window("1 minute").agg(n="count(*)").collect()["n"].to_pylist()
    [1, 1, 1]

    ``column``
        Name of the column of marks. A value there bounds the times of all later rows of the
        channel; null is no mark. A row with a mark and without a time is a promise only: it is
        neither answered nor counted.
    ``alone``
        Name of a Boolean column that is true in rows that are a promise only, whatever their other
        columns hold. Default: None, only rows without a time are.
    ``jointly``
        If true, a row with marks of several columns promises that every later row satisfies at
        least one of them; a row with one mark promises this one. All these columns are declared so.
        Default: False, each mark is a promise of its own.
    """
    return Punctuated(column, alone, jointly)
