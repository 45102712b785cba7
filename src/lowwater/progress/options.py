"""The options of a stream beside its contract, as frozen values.

They set the moments at which punctuation is generated and enabling timestamps are made (ETS §5),
and the treatment of rows dated far ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lowwater.errors import OptionError
from lowwater.stream.duration import Duration, nanoseconds


@dataclass(frozen=True, slots=True)
class Every:
    """Punctuation is generated each time the mark has passed a multiple of ``step``."""

    step: Duration

    def __post_init__(self) -> None:
        if nanoseconds(self.step, "every(...)") <= 0:
            raise OptionError("every(...) takes a length of time above zero")


@dataclass(frozen=True, slots=True)
class Timer:
    """Punctuation is generated once in each ``period`` of the engine's clock."""

    period: Duration

    def __post_init__(self) -> None:
        if nanoseconds(self.period, "timer(...)") <= 0:
            raise OptionError("timer(...) takes a length of time above zero")


Generation = Every | Timer


def every(step: Duration) -> Every:
    """Punctuate each time the mark has passed a multiple of ``step``.

    >>> log = pl.DataFrame({"ts": [1, 2, 61]})
    >>> s = lw.stream(log, name="s", time="ts", punctuate=lw.every("1 minute"))
    >>> s.distinct().collect().num_rows
    3

    ``step``
        Length of the stream's time, above zero.
    """
    return Every(step)


def timer(period: Duration) -> Timer:
    """Punctuate when ``period`` of clock time has passed and the mark has moved.

    >>> log = lw.Workload(rate=10, seconds=60).replay()
    >>> s = lw.stream(log, name="s", time="ts", punctuate=lw.timer("5 seconds"))
    >>> s.window("10 seconds").agg(n="count(*)").collect().num_rows
    6

    ``period``
        Length of clock time, above zero.
    """
    return Timer(period)


@dataclass(frozen=True, slots=True)
class OnDemand:
    """An enabling timestamp is made when an operator waits for this input, and only then.

    If rows have times, it is ``t + τ - skew``: the newest time, plus the clock time since it came,
    minus the largest skew between two arrivals. With internal times it is the clock time. If rows
    are known to be at most ``behind_clock`` behind the clock, it is at least the clock time minus
    that, also before the first row (OOP A.1.1).
    """

    skew: Duration = 0
    behind_clock: Duration | None = None

    def __post_init__(self) -> None:
        _check_lengths(self)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """An enabling timestamp is made in each ``period``, whether an operator waits or not."""

    period: Duration
    skew: Duration = 0
    behind_clock: Duration | None = None

    def __post_init__(self) -> None:
        if nanoseconds(self.period, "heartbeat(...)") <= 0:
            raise OptionError("heartbeat(...) takes a period above zero")
        _check_lengths(self)


Idle = OnDemand | Heartbeat


def _check_lengths(idle: Idle) -> None:
    if nanoseconds(idle.skew, "skew") < 0:
        raise OptionError("skew= takes a length of time of zero or more")
    if idle.behind_clock is not None and nanoseconds(idle.behind_clock, "behind_clock") < 0:
        raise OptionError("behind_clock= takes a length of time of zero or more")


def on_demand(skew: Duration = 0, behind_clock: Duration | None = None) -> OnDemand:
    """Make a timestamp for an idle input when an operator waits for it.

    >>> log = pl.DataFrame({"at": [0.0, 1.0], "ts": [0, 1]})
    >>> s = lw.stream(lw.replay(log, "at"), name="s", time="ts", idle=lw.on_demand("1 second"))
    >>> s.collect().num_rows
    2

    ``skew``
        Length of time: the largest difference, between two rows, of the time from their timestamp
        to their arrival. Default: 0.
    ``behind_clock``
        Length of time: the most by which the timestamp of a row is behind the clock when the row
        is read. With it a timestamp is made also before the first row. Default: None, not known.
    """
    return OnDemand(skew, behind_clock)


def heartbeat(
    period: Duration, skew: Duration = 0, behind_clock: Duration | None = None
) -> Heartbeat:
    """Make a timestamp for an idle input at a fixed period.

    >>> log = pl.DataFrame({"at": [0.0, 9.0], "ts": [0, 9]})
    >>> s = lw.stream(lw.replay(log, "at"), name="s", time="ts", idle=lw.heartbeat("1 second"))
    >>> s.collect().num_rows
    2

    ``period``
        Length of clock time, above zero.
    ``skew``
        Length of time, as in :func:`on_demand`. Default: 0.
    ``behind_clock``
        Length of time, as in :func:`on_demand`. Default: None.
    """
    return Heartbeat(period, skew, behind_clock)


JumpAction = Literal["warn", "quarantine", "fail"]


@dataclass(frozen=True, slots=True)
class Jump:
    """The treatment of a row dated more than ``over`` ahead of its channel.

    Whatever the action, one such row moves no mark: the mark follows only when the next row of
    the channel confirms the jump.
    """

    over: Duration
    then: JumpAction = "warn"

    def __post_init__(self) -> None:
        if nanoseconds(self.over, "jump(...)") <= 0:
            raise OptionError("jump(...) takes a length of time above zero")
        if self.then not in ("warn", "quarantine", "fail"):
            raise OptionError(f"jump: then= is 'warn', 'quarantine' or 'fail', not {self.then!r}")


def jump(over: Duration, then: JumpAction = "warn") -> Jump:
    """Set the treatment of a row that is suddenly dated far ahead.

    >>> log = pl.DataFrame({"ts": [1, 2, 99_999]})
    >>> s = lw.stream(log, name="s", time="ts", jump=lw.jump("1 hour", "quarantine"))
    >>> run = s.run()
    >>> run.await_termination()
    True
    >>> run.results()["ts"].to_pylist(), run.late_rows()["ts"].to_pylist()
    ([1, 2], [99999])

    ``over``
        Length of time, above zero, by which such a row is ahead of its channel.
    ``then``
        "warn" passes the row on, and warns if the next row goes back; "quarantine" writes it to
        the side output; "fail" ends the run. Default: "warn".
    """
    return Jump(over, then)
