"""What a source promises about its own order, as frozen specs (OOP §3.2, §5.1; ETS §5).

A contract is knowledge, not a guess: the same knowledge an in-order system would use to sort the
stream is used here to bound what may still arrive. Where nobody has that knowledge, a contract can
say how complete answers shall be, and the bound is learned; or that nothing is promised at all.
Contracts hold per channel when the stream names one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

from lowwater.errors import OptionError
from lowwater.stream.duration import Duration, nanoseconds, spell


@dataclass(frozen=True, slots=True)
class Ordered:
    """Times never decrease."""

    def describe(self) -> str:
        """This contract in words."""
        return "ordered"


@dataclass(frozen=True, slots=True)
class Within:
    """No row is more than ``bound`` behind the newest row before it."""

    bound: Duration

    def __post_init__(self) -> None:
        if nanoseconds(self.bound, "within(...)") < 0:
            raise OptionError("within(...) takes a length of time of zero or more")

    def describe(self) -> str:
        """This contract in words."""
        return f"within {self.bound}"


@dataclass(frozen=True, slots=True)
class WithinRows:
    """No row is below one that came more than ``rows`` rows before it (scrambling factor)."""

    rows: int

    def __post_init__(self) -> None:
        if not isinstance(self.rows, int) or isinstance(self.rows, bool) or self.rows < 0:
            raise OptionError(f"within_rows(...) takes a whole number >= 0, not {self.rows!r}")

    def describe(self) -> str:
        """This contract in words."""
        return f"within {self.rows} rows"


@dataclass(frozen=True, slots=True)
class Punctuated:
    """The producer sends the promise itself, in ``column``.

    A non-null value there says that every later row of the channel has at least this time. A row
    that has a value there and a null time is a pure punctuation: it is consumed, not passed on.
    """

    column: str

    def describe(self) -> str:
        """This contract in words."""
        return f"punctuated by column {self.column}"


@dataclass(frozen=True, slots=True)
class Learned:
    """Nobody knows how late rows come: the mark follows from how late they were.

    ``completeness`` is the share of rows that shall be on time. The others are late rows like any.
    """

    completeness: float = 0.999

    def __post_init__(self) -> None:
        share = self.completeness
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if not number or not 0 < share < 1:
            raise OptionError(
                "learned(...) takes a completeness between 0 and 1, such as 0.999 for 99.9 %,"
                f" not {share!r}; a mark that no row is ever below is not learned:"
                " lw.within(...) states it"
            )

    def describe(self) -> str:
        """This contract in words."""
        return f"learned, {self.completeness * 100:.10g} % complete"


@dataclass(frozen=True, slots=True)
class Unpromised:
    """The column grows in the long run, and nothing is promised about it.

    No row is ever late, and no mark is ever made. A join without a window measures how disordered
    the rows are (WO-Join), or goes by what is known: ``disorder``, the scrambling factor, which
    must be true then. The others serve to predict how many rows such a join keeps.
    """

    disorder: int | None = None
    """How many places at most a row comes after one that is not less."""
    multiplicity: int | None = None
    """How many rows at most have the same value."""
    rate: float | None = None
    """Rows a second."""
    delay: Duration | None = None
    """How much later rows come than those of the foremost stream."""

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
                f" {(self.multiplicity or 1) - 1} places apart, so that disorder= is at least that,"
                f" not {self.disorder}"
            )

    def describe(self) -> str:
        """This contract in words."""
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


Contract = Ordered | Within | WithinRows | Punctuated | Learned | Unpromised


def ordered() -> Ordered:
    """Times never decrease (per channel, if the stream has one)."""
    return Ordered()


def within(bound: Duration) -> Within:
    """Rows come at most ``bound`` behind the newest time seen before them."""
    return Within(bound)


def within_rows(rows: int) -> WithinRows:
    """A row comes at most ``rows`` rows after a newer one (the stream's scrambling factor)."""
    return WithinRows(rows)


def learned(completeness: float = 0.999) -> Learned:
    """The slack is learned from the rows, so that this share of them is on time."""
    return Learned(completeness)


def unpromised(
    disorder: int | None = None,
    multiplicity: int | None = None,
    rate: float | None = None,
    delay: Duration | None = None,
) -> Unpromised:
    """Nothing is promised; what is known of the rows serves joins without a window."""
    return Unpromised(disorder, multiplicity, rate, delay)


def punctuated(column: str) -> Punctuated:
    """The producer's own promises are in ``column``."""
    return Punctuated(column)


@dataclass(frozen=True, slots=True)
class Every:
    """Data-driven punctuation: one each time the mark has passed a multiple of ``step``."""

    step: Duration

    def __post_init__(self) -> None:
        if nanoseconds(self.step, "every(...)") <= 0:
            raise OptionError("every(...) takes a length of time above zero")


@dataclass(frozen=True, slots=True)
class Timer:
    """Timer-driven punctuation: the mark is told each ``period`` of the engine's clock."""

    period: Duration

    def __post_init__(self) -> None:
        if nanoseconds(self.period, "timer(...)") <= 0:
            raise OptionError("timer(...) takes a length of time above zero")


Generation = Every | Timer


def every(step: Duration) -> Every:
    """Punctuate when the mark has passed a multiple of ``step`` of the time attribute."""
    return Every(step)


def timer(period: Duration) -> Timer:
    """Punctuate when ``period`` of clock time has passed and the mark has moved."""
    return Timer(period)


@dataclass(frozen=True, slots=True)
class OnDemand:
    """An enabling timestamp is made when an operator waits on this input, and only then.

    For external timestamps it is ``t + τ - skew``: last time seen, plus the time since it came,
    minus the largest skew between two arrivals. For internal ones it is the clock.
    """

    skew: Duration = 0

    def __post_init__(self) -> None:
        _check_skew(self.skew)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A timestamp is made at every ``period``, whether anybody waits or not."""

    period: Duration
    skew: Duration = 0

    def __post_init__(self) -> None:
        if nanoseconds(self.period, "heartbeat(...)") <= 0:
            raise OptionError("heartbeat(...) takes a period above zero")
        _check_skew(self.skew)


Idle = OnDemand | Heartbeat


def _check_skew(skew: Duration) -> None:
    if nanoseconds(skew, "skew") < 0:
        raise OptionError("skew= takes a length of time of zero or more")


def on_demand(skew: Duration = 0) -> OnDemand:
    """Make a timestamp for an idle input when somebody waits for it."""
    return OnDemand(skew)


def heartbeat(period: Duration, skew: Duration = 0) -> Heartbeat:
    """Make a timestamp for an idle input at a fixed period."""
    return Heartbeat(period, skew)


JumpAction = Literal["warn", "quarantine", "fail"]


@dataclass(frozen=True, slots=True)
class Jump:
    """What to do with a row dated more than ``over`` ahead of its channel.

    Whatever the action, one such row moves no mark: the mark follows only when the next row of
    the channel confirms the jump. ``warn`` passes the row on and warns if the next row goes back;
    ``quarantine`` sends the row to the side output; ``fail`` stops the query.
    """

    over: Duration
    then: JumpAction = "warn"

    def __post_init__(self) -> None:
        if nanoseconds(self.over, "jump(...)") <= 0:
            raise OptionError("jump(...) takes a length of time above zero")
        if self.then not in ("warn", "quarantine", "fail"):
            raise OptionError(f"jump: then= is 'warn', 'quarantine' or 'fail', not {self.then!r}")


def jump(over: Duration, then: JumpAction = "warn") -> Jump:
    """How to treat a row that is suddenly dated far ahead."""
    return Jump(over, then)
