"""The declaration of a stream: the contract and the options of one source, checked and frozen."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from lowwater.errors import OptionError, QueryError, unknown_name
from lowwater.progress.contract import Contract, Ordered
from lowwater.progress.options import Every, Generation, Heartbeat, Idle, Jump, OnDemand, Timer
from lowwater.stream.duration import Duration, nanoseconds
from lowwater.stream.element import MARK, SEQUENCE
from lowwater.stream.time_domain import TimeDomain

REASON, LATE_BY, MISSED_MARK = "_reason", "_late_by_seconds", "_mark"
"""Columns that the side output adds to a row: the reason, the lateness in seconds, and the mark
that the row came below."""
STREAM = "_stream"
"""The column with the name of the stream, in files that hold rows of several streams."""

LatePolicy = Literal["side", "drop", "fail"]
Stamp = Literal["external", "internal", "latent"]


@dataclass(frozen=True)
class StreamSpec:
    """The declaration of one source: everything that is stated about it before a run.

    The fields are the arguments of :func:`lowwater.stream`, with their defaults.
    """

    name: str
    schema: Mapping[str, pl.DataType]
    time: str
    contracts: Mapping[str, Contract]
    """The contract of each time column."""
    unit: str = "s"
    stamp: Stamp = "external"
    channel: str | None = None
    channels: tuple[Hashable, ...] = ()
    groups: tuple[str, ...] = ()
    idle: Idle | None = None
    late: LatePolicy = "side"
    jump: Jump | None = None
    punctuate: Generation | None = None
    stale_after: Duration | None = None
    ended: str | None = None
    domains: Mapping[str, TimeDomain] = field(init=False)
    """The time domain of each time column."""

    def __post_init__(self) -> None:
        self._check_options()
        domains = {}
        for attribute in self.contracts:
            dtype = pl.Datetime("us") if self.stamp != "external" else self._dtype(attribute)
            what = f"stream {self.name!r}: time column {attribute!r}"
            domains[attribute] = TimeDomain.of(dtype, self.unit, what)
        object.__setattr__(self, "domains", domains)
        for attribute, contract in self.contracts.items():
            if contract.mark_column is not None:
                self._check_mark_column(attribute, contract.mark_column)
            if contract.alone_column is not None:
                self._check_truth(contract.alone_column, "alone=")

    def _check_options(self) -> None:
        where = f"stream {self.name!r}"
        if self.late not in ("side", "drop", "fail"):
            raise OptionError(f"{where}: late= is 'side', 'drop' or 'fail', not {self.late!r}")
        if self.stamp not in ("external", "internal", "latent"):
            raise OptionError(
                f"{where}: stamp= is 'external', 'internal' or 'latent', not {self.stamp!r}"
            )
        for option, kinds, words in (
            ("idle", OnDemand | Heartbeat, "lw.on_demand() or lw.heartbeat('1 second')"),
            ("punctuate", Every | Timer, "lw.every('1 second') or lw.timer('1 second')"),
            ("jump", Jump, "lw.jump('1 day', 'warn')"),
        ):
            given = getattr(self, option)
            if given is not None and not isinstance(given, kinds):
                raise OptionError(f"{where}: {option}= is {words} or None, not {given!r}")
        if self.channel and self.groups:
            raise OptionError(
                f"{where}: marks are kept per channel or per group; give channel= or groups="
            )
        self._check_unpromised(where)
        self._check_stamped(where)
        self._check_stale(where)
        self._check_ended(where)
        self._check_joint(where)
        if self.channels and not self.channel:
            raise OptionError(f"{where}: channels= names the values of channel=; give both")
        if len(set(self.channels)) != len(self.channels):
            twice = sorted({str(c) for c in self.channels if self.channels.count(c) > 1})
            raise OptionError(f"{where}: channels= names a channel twice: {', '.join(twice)}")
        for reserved in (MARK, SEQUENCE, REASON, LATE_BY, MISSED_MARK):
            if reserved in self.schema:
                raise QueryError(f"{where}: column name {reserved!r} is reserved")
        for column in (self.channel, *self.groups):
            if column is not None:
                self._check_name(column)
        if self.stamp != "external" and self.time in self.schema:
            raise OptionError(
                f"{where}: stamp={self.stamp!r} makes the time column {self.time!r} itself,"
                " but the source has a column of that name; choose another time= name"
            )

    def _check_stale(self, where: str) -> None:
        if self.stale_after is None:
            return
        if not self.channel or self.stamp != "external":
            raise OptionError(
                f"{where}: stale_after= sets when a channel is stale, so it needs channels whose"
                " times come with the rows; name their column, channel='device' for example. With"
                " groups= no group holds another back, so leave stale_after= out"
            )
        if nanoseconds(self.stale_after, f"{where}: stale_after=") <= 0:
            raise OptionError(f"{where}: stale_after= takes a length of time above zero")

    def _check_ended(self, where: str) -> None:
        if self.ended is None:
            return
        if not self.key_columns:
            raise OptionError(
                f"{where}: ended= says that a channel or group has ended, so it needs channel= or"
                " groups=; the stream itself ends with its source"
            )
        self._check_truth(self.ended, "ended=")

    def _check_joint(self, where: str) -> None:
        """Raise if marks that are promised jointly are on one column, or have no meaning."""
        joint = self.joint
        if not joint:
            return
        if len(joint) == 1:
            raise OptionError(
                f"{where}: jointly=True is for marks on two columns or more, and only {joint[0]!r}"
                " is declared so; declare another column so, or leave jointly= out"
            )
        for option in ("groups", "stale_after"):
            if getattr(self, option):
                raise OptionError(
                    f"{where}: a joint promise is about the stream or a channel, which {option}="
                    f" does not go with; leave {option}= out, or promise each column by itself"
                    " without jointly=True"
                )

    def _check_unpromised(self, where: str) -> None:
        """Raise if an option sets how promises are made and the contracts make none."""
        if self.stamp != "external" and not all(map(self.promises, self.contracts)):
            raise OptionError(
                f"{where}: stamp={self.stamp!r} takes the times from the clock, which bounds later"
                " rows; leave lw.unpromised() out"
            )
        if any(map(self.promises, self.contracts)):
            return
        for option in ("idle", "groups", "channel", "punctuate"):
            if getattr(self, option):
                raise OptionError(
                    f"{where}: {option}= sets how promises are made, and lw.unpromised() makes"
                    f" none; leave {option}= out, or promise something: progress=lw.ordered(),"
                    " lw.within('5 seconds') or lw.learned(0.999)"
                )

    def _check_stamped(self, where: str) -> None:
        """Raise if an option sets how times progress and the clock makes the times."""
        if self.stamp == "external":
            return
        for option in ("channel", "channels", "groups"):
            if getattr(self, option):
                raise OptionError(
                    f"{where}: stamp={self.stamp!r} takes the times from the clock, one for"
                    f" all rows; leave {option}= out, and group by the column where you"
                    " aggregate"
                )
        if self.contracts != {self.time: Ordered()}:
            raise OptionError(
                f"{where}: stamp={self.stamp!r} takes the times from the clock, which never goes"
                " back; leave progress= out. For rows with times of their own use stamp='external'"
            )
        if self.idle is not None and self.idle.behind_clock is not None:
            raise OptionError(
                f"{where}: stamp={self.stamp!r} takes the times from the clock, so no row is behind"
                " it; leave behind_clock= out"
            )
        if self.unit != "s":
            raise OptionError(
                f"{where}: stamp={self.stamp!r} makes times of type Datetime, which have a unit;"
                " leave unit= out"
            )

    def promises(self, attribute: str) -> bool:
        """Return true if the contract of an attribute bounds the rows still to come."""
        return self.contracts[attribute].promises

    def _check_name(self, column: str) -> None:
        """Raise if Python cannot hold and compare the values of a key column exactly."""
        dtype = self._dtype(column)
        nanoseconds = isinstance(dtype, pl.Datetime) and dtype.time_unit == "ns"
        if dtype.is_nested() or dtype.is_float() or nanoseconds or dtype in (pl.Time, pl.Object):
            raise QueryError(
                f"stream {self.name!r}: {column!r} has type {dtype}, which cannot name a channel"
                " or group; cast it to a string or an integer"
            )

    def _dtype(self, column: str) -> pl.DataType:
        if column not in self.schema:
            raise QueryError(f"stream {self.name!r}: {unknown_name('column', column, self.schema)}")
        return self.schema[column]

    def _check_mark_column(self, attribute: str, column: str) -> None:
        domain, dtype = self.domains[attribute], self._dtype(column)
        if TimeDomain.of(dtype, self.unit, f"punctuation column {column!r}") != domain:
            raise QueryError(
                f"stream {self.name!r}: punctuation column {column!r} has type {dtype}, but it"
                f" promises values of {attribute!r}, which has type {self.schema[attribute]}"
            )

    def _check_truth(self, column: str, option: str) -> None:
        """Raise if a column that marks rows does not hold truth values."""
        dtype = self._dtype(column)
        if dtype != pl.Boolean:
            raise QueryError(
                f"stream {self.name!r}: {option} names a Boolean column, which is true in the rows"
                f" that it marks; {column!r} has type {dtype}"
            )

    @property
    def joint(self) -> tuple[str, ...]:
        """The attributes whose marks in one row are a joint promise."""
        return tuple(name for name, each in self.contracts.items() if each.joins_marks)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns whose values name a channel or group; empty if the stream is one channel."""
        return (self.channel,) if self.channel else self.groups

    @property
    def promise(self) -> str:
        """The contracts of the stream as a phrase for people."""
        if self.stamp != "external":
            return f"{self.stamp} timestamps"
        words = ", ".join(f"{name} {each.describe()}" for name, each in self.contracts.items())
        if not self.key_columns:
            return words
        words = f"{words} per {', '.join(self.key_columns)}"
        if self.stale_after is not None:
            words = f"{words}, stale after {self.stale_after}"
        return words if self.ended is None else f"{words}, ended by column {self.ended}"

    @property
    def row_schema(self) -> dict[str, pl.DataType]:
        """The columns of rows once an intake has taken them."""
        schema = dict(self.schema)
        if self.stamp != "latent":
            schema |= {name: domain.dtype for name, domain in self.domains.items()}
        for attribute, contract in self.contracts.items():
            if contract.mark_column is not None:
                schema[contract.mark_column] = self.domains[attribute].dtype
        return schema


def channel_name(parts: Sequence[Any]) -> Hashable:
    """Return the name of a channel by the values of its key columns.

    That is the value of a single column, a tuple of several, and None if there are no columns.
    """
    if not parts:
        return None
    name: Hashable = parts[0] if len(parts) == 1 else tuple(parts)
    return name
