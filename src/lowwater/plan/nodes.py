"""Logical nodes state the meaning of a query, as small frozen typed values.

A node holds its columns, which of them progress (and whether they can be null), its main time, and
the line of the user's program that made it. The builders check a node before they make it, so a
node that exists is valid.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import polars as pl

from lowwater.errors import QueryError, unknown_name
from lowwater.joins.oblivious.options import Oblivious
from lowwater.joins.ordered.strategy import Ordering
from lowwater.joins.reach import Reach
from lowwater.joins.shape import KINDS, Carried, How, JoinKind
from lowwater.operators.aggregates import Aggregate, Call
from lowwater.operators.flush import Flush, Slow
from lowwater.operators.last_rows import LastRows
from lowwater.operators.rowwise import Derivation
from lowwater.operators.window_state import Form
from lowwater.plan.expressions import Expression
from lowwater.progress.spec import StreamSpec
from lowwater.sources.source import Source
from lowwater.stream.element import SEQUENCE
from lowwater.stream.floor import Floor
from lowwater.stream.time_domain import ROWS, TimeDomain
from lowwater.stream.window import WindowSpec
from lowwater.updates.options import Updates


@dataclass(frozen=True)
class Progressing:
    """A column on which the stream progresses."""

    domain: TimeDomain
    nullable: bool = False
    partners: frozenset[str] = frozenset()
    """Columns, this one among them, of which at least one is never null."""
    behind: Mapping[str, int] = field(default_factory=dict)
    """For other columns of the same domain, the most ticks by which this one is below them."""


@dataclass(frozen=True, eq=False)
class Node:
    """Base of all logical nodes."""

    inputs: tuple[Node, ...]
    schema: Mapping[str, pl.DataType]
    progress: Mapping[str, Progressing]
    time: str | None
    origin: str = field(kw_only=True, default="")
    """The user's own line, as ``file:line``."""
    keeps_numbers: ClassVar[bool] = False
    """True if each row can carry the sequence number of the one input row it comes from."""
    keeps_keys: ClassVar[bool] = False
    """True if every row of the output has the update key of its input row."""
    drops_rows: ClassVar[bool] = False
    """True if the output is some of the rows of the one input, as they are and in their order."""

    def __post_init__(self) -> None:
        """Refuse a node over an update stream that neither keeps the keys nor defines
        :attr:`updates`."""
        silent = not self.keeps_keys and type(self).updates is Node.updates
        if silent and any(each.updates is not None for each in self.inputs):
            raise QueryError(
                "this operator is not for update streams, whose rows replace each other by key;"
                " use it on the stream before it becomes one"
            )

    @property
    def numbered(self) -> bool:
        """True if rows can carry the sequence numbers that their one source gave them."""
        return self.keeps_numbers and all(each.numbered for each in self.inputs)

    @property
    def counts_rows(self) -> bool:
        """True if the node needs the sequence numbers of its input's rows."""
        return False

    @property
    def stamps(self) -> tuple[str, ...]:
        """The columns whose greatest value is the time of a row; several after a join."""
        return () if self.time is None else (self.time,)

    @property
    def updates(self) -> Updates | None:
        """The options of an update stream, under the names columns have here; None if rows do not
        replace each other."""
        return self.inputs[0].updates if self.keeps_keys else None

    def lag(self, column: str, other: str) -> int | None:
        """Return the most ticks by which a progressing column is below another; None for no
        bound."""
        return 0 if column == other else self.progress[column].behind.get(other)

    def lag_of_time(self, column: str, stamps: Sequence[str]) -> int | None:
        """Return the most ticks by which a progressing column is below the greatest of others;
        None for no bound."""
        lags = [self.lag(column, name) for name in stamps]
        known = [lag for lag in lags if lag is not None]
        return max(known) if len(known) == len(lags) else None

    def need(self, column: str, what: str = "column") -> pl.DataType:
        """Return the type of a column; refuse an unknown one with an error that lists the known."""
        if column not in self.schema:
            raise QueryError(unknown_name(what, column, self.schema))
        return self.schema[column]

    def progressing(self, column: str, use: str) -> TimeDomain:
        """Return the domain of a progressing column; refuse others with the reason."""
        self.need(column)
        attribute = self.progress.get(column)
        if attribute is None:
            known = ", ".join(self.progress) or "none"
            raise QueryError(
                f"{use} needs a progressing attribute, and {column!r} is not one here"
                f" (progressing: {known}). A column progresses if a stream promises it"
                " (time=, progress=) or it is computed from such as itself, plus or minus a"
                " constant, or greatest/least/coalesce of several"
            )
        if attribute.nullable:
            raise QueryError(
                f"{use} cannot go by {column!r}: an outer join can leave it null;"
                " use coalesce(...) of both times"
            )
        return attribute.domain


@dataclass(frozen=True, eq=False)
class SourceNode(Node):
    """A source and the contract its user declared."""

    keeps_numbers: ClassVar[bool] = True  # it has no inputs and numbers its rows

    spec: StreamSpec
    source: Source

    @classmethod
    def of(cls, spec: StreamSpec, source: Source, origin: str) -> SourceNode:
        """Return the node of a declared stream."""
        progress: dict[str, Progressing] = {}
        if spec.stamp != "latent":
            progress = {name: Progressing(domain) for name, domain in spec.domains.items()}
        time = spec.time if progress else None
        return cls((), spec.row_schema, progress, time, spec, source, origin=origin)


@dataclass(frozen=True, eq=False)
class StampNode(Node):
    """Latent rows with the time that they get when an operator needs one (ETS §5)."""

    column: str

    @classmethod
    def of(cls, node: Node, column: str) -> StampNode:
        """Stamp the rows of a node."""
        domain = TimeDomain(pl.Datetime("us"), 1_000_000)
        schema = {**node.schema, column: domain.dtype}
        return cls(
            (node,), schema, {column: Progressing(domain)}, column, column, origin=node.origin
        )


@dataclass(frozen=True, eq=False)
class UpdateNode(Node):
    """An update stream: rows of one or several inputs replace each other by key while they wait."""

    by: Updates
    prefer: int | None = field(kw_only=True, default=None)
    """The input whose row is shown if several inputs have a row of one key and time; None for the
    first row."""
    arrival: str | None = field(kw_only=True, default=None)
    """The column of the rows' arrival times, if there is one."""

    @property
    def updates(self) -> Updates:
        """The options of the update stream."""
        return self.by


@dataclass(frozen=True, eq=False)
class FilterNode(Node):
    """Rows that satisfy a predicate."""

    keeps_numbers: ClassVar[bool] = True
    keeps_keys: ClassVar[bool] = True
    drops_rows: ClassVar[bool] = True

    predicate: Expression
    floor: Floor = field(kw_only=True, default_factory=dict)
    """The floor below which no row satisfies the predicate."""

    @property
    def stamps(self) -> tuple[str, ...]:
        """The time columns of the input."""
        return self.inputs[0].stamps


@dataclass(frozen=True, eq=False)
class ProjectNode(Node):
    """Columns computed from columns."""

    keeps_numbers: ClassVar[bool] = True

    items: tuple[tuple[str, Expression], ...]
    derived: Mapping[str, Derivation]
    copied: Mapping[str, str]

    @property
    def updates(self) -> Updates | None:
        """The options of the input, with columns under their new names."""
        before = self.inputs[0].updates
        if before is None:
            return None
        deletion = before.deletion and before.deletion.renamed(self.copied)
        key = tuple(self.copied[name] for name in before.key)
        return replace(before, key=key, deletion=deletion)

    @property
    def stamps(self) -> tuple[str, ...]:
        """The time columns of the input, if all are passed on; else one computed from them."""
        before = self.inputs[0].stamps
        if before and all(name in self.copied for name in before):
            return tuple(self.copied[name] for name in before)
        for name, derivation in self.derived.items():
            if derivation.is_greatest(before):
                return (name,)
        return super().stamps


@dataclass(frozen=True, eq=False)
class ApplyNode(Node):
    """A user's function over chunks."""

    keeps_keys: ClassVar[bool] = True

    function: Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True, eq=False)
class UnionNode(Node):
    """All rows of several inputs."""


@dataclass(frozen=True, eq=False)
class WindowAggregateNode(Node):
    """Aggregates per window and group."""

    attribute: str
    window: WindowSpec
    groups: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    texts: tuple[str, ...]
    flush: Flush
    keep: Form | None
    table: int | None
    calls: tuple[Call | None, ...] = field(kw_only=True, default=())
    """The call of each aggregate; None for one of the user's own."""
    by: Updates | None = field(kw_only=True, default=None)
    """The options by which windows replace each other; None if every window is answered."""
    arrival: str | None = field(kw_only=True, default=None)
    """The column of the rows' arrival times, if windows replace each other and there is one."""

    @property
    def counts_rows(self) -> bool:
        """True for windows of a number of rows, which are cut by sequence numbers."""
        return self.attribute == SEQUENCE

    @property
    def updates(self) -> Updates | None:
        """The options by which windows replace each other."""
        return self.by

    @property
    def domain(self) -> TimeDomain:
        """The time domain of the window's attribute."""
        return ROWS if self.counts_rows else self.inputs[0].progress[self.attribute].domain


@dataclass(frozen=True, eq=False)
class SessionNode(Node):
    """Aggregates per session and group."""

    attribute: str
    gap: int
    groups: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    texts: tuple[str, ...]
    flush: Slow | None = None
    """The pace of answers; None if they leave at once."""


@dataclass(frozen=True, eq=False)
class SlidingNode(Node):
    """Aggregates per group over a window that moves with every row."""

    attribute: str
    range: int
    groups: tuple[str, ...]
    calls: tuple[Call, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LastRowsNode(Node):
    """Aggregates per window of the last rows of each key."""

    attribute: str
    window: LastRows
    aggregates: tuple[Aggregate, ...]
    reads: tuple[str, ...]
    """The columns that the aggregates read, in the order of the stream."""
    texts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class GroupAggregateNode(Node):
    """Aggregates per group, where groups end by progress."""

    groups: tuple[str, ...]
    progressing_keys: Mapping[str, TimeDomain]
    aggregates: tuple[Aggregate, ...]
    texts: tuple[str, ...]
    calls: tuple[Call | None, ...] = field(kw_only=True, default=())
    """The call of each aggregate; None for one of the user's own."""


@dataclass(frozen=True, eq=False)
class AnyJoin(Node, ABC):
    """Rows put together from rows of several inputs, near each other in time.

    The time of an input's row is the greatest value of its *stamps*. The time of a result is the
    greatest time of its rows.
    """

    times: tuple[str, ...]
    """The columns by which rows must be near each other, one of each input."""
    on: tuple[tuple[str, ...], ...]
    """Columns that must be equal, one of each input."""
    carried: tuple[Carried, ...] = field(kw_only=True, default=())
    """Columns beside the times that progress."""
    ordering: Ordering | None = field(kw_only=True, default=None)
    """The strategy by which results are put in order of their times; None if they are not."""
    oblivious: Oblivious | None = field(kw_only=True, default=None)
    """The options of a join that drops rows by the disorder that it measures; None if rows are
    dropped by punctuation alone."""

    @abstractmethod
    def behind(self, port: int) -> int:
        """Return the most ticks by which a row of an input is older than those it is joined
        with."""

    @abstractmethod
    def out_name(self, port: int, column: str) -> str:
        """Return the name that a column of an input has in the output."""

    @property
    def shown(self) -> tuple[int, ...]:
        """The inputs whose columns are in the output."""
        return tuple(range(len(self.inputs)))

    @property
    def domain(self) -> TimeDomain:
        """The time domain that all times have."""
        return self.inputs[0].progress[self.times[0]].domain

    @property
    def kept_seconds(self) -> tuple[float, ...]:
        """Seconds for which rows of each input are kept, to be joined with later rows of others."""
        rate = max(1, self.domain.ticks_per_second)
        return tuple(max(0, self.behind(port)) / rate for port in range(len(self.inputs)))

    def side_stamps(self, port: int) -> tuple[str, ...]:
        """Return the columns of an input whose greatest value is the time of a row."""
        stamps = self.inputs[port].stamps
        return stamps if self.times[port] in stamps else (self.times[port],)

    def out_stamps(self, port: int) -> tuple[str, ...]:
        """Return the same columns under their names in the output."""
        return tuple(self.out_name(port, name) for name in self.side_stamps(port))

    @property
    def stamps(self) -> tuple[str, ...]:
        """The time columns of all inputs whose columns are in the output."""
        return tuple(dict.fromkeys(name for port in self.shown for name in self.out_stamps(port)))

    def side_lags(self, port: int) -> dict[str, int]:
        """Return the progressing columns of an input, each with the most ticks by which it is
        below its row's time."""
        given, stamps = self.inputs[port], self.side_stamps(port)
        lags = {name: given.lag_of_time(name, stamps) for name in given.progress}
        return {name: lag for name, lag in lags.items() if lag is not None}

    @property
    def out_lags(self) -> dict[str, int]:
        """The progressing columns of the output, each with the most ticks by which it is below its
        row's time."""
        places = [(at, time, self.out_name(at, time)) for at, time in enumerate(self.times)]
        places += [(each.side, each.name, each.out) for each in self.carried]
        to_own = [self.side_lags(port) for port in range(len(self.inputs))]
        lags: dict[str, int] = {}
        for port, name, out in places:
            to_time = self.inputs[port].lag(name, self.times[port])
            if out not in self.progress or to_time is None or name not in to_own[port]:
                continue
            found = [to_own[port][name]] + [
                to_time + self.behind(port) + to_own[other][time]
                for other, time in enumerate(self.times)
                if other != port and time in to_own[other]
            ]
            if len(found) == len(self.times):
                lags[out] = min(max(found), lags.get(out, max(found)))
        return lags


@dataclass(frozen=True, eq=False)
class JoinNode(AnyJoin):
    """Matching pairs of two inputs."""

    times: tuple[str, str]
    on: tuple[tuple[str, str], ...]
    reach: Reach
    right_names: Mapping[str, str]
    merged: Mapping[str, str]
    residual: Expression | None
    how: How
    newest: bool = field(kw_only=True, default=False)
    """True if both inputs are update streams, so that results replace each other, too."""
    flush: Slow | None = field(kw_only=True, default=None)
    """The pace at which rows without a partner leave; None if they leave at once."""

    @property
    def updates(self) -> Updates | None:
        """The options of both inputs."""
        return self.inputs[0].updates if self.newest else None

    def behind(self, port: int) -> int:
        """Return the ticks that the join reaches ahead of a row."""
        return self.reach.behind(port)

    def out_name(self, port: int, column: str) -> str:
        """Return the name in the output; columns of the left keep theirs."""
        if port == 0:
            return column
        inside = self.right_names[column]
        return next((out for out, each in self.merged.items() if each == inside), inside)

    @property
    def kind(self) -> JoinKind:
        """The sides whose rows are in the output, alone or in pairs, by ``how=``."""
        return KINDS[self.how]

    @property
    def shown(self) -> tuple[int, ...]:
        """The inputs whose columns are in the output; for semi and anti joins, the left one."""
        return self.kind.shown


@dataclass(frozen=True, eq=False)
class NewestJoinNode(Node):
    """The newest row of each key of an update stream with that of another."""

    on: tuple[tuple[str, str], ...]
    """The columns of both update keys."""
    same: tuple[tuple[str, str], ...]
    """Other columns that must be equal in both rows."""
    sides: tuple[tuple[str, ...], tuple[str, ...]]
    """The time columns of each input's rows."""
    right_names: Mapping[str, str]
    merged: Mapping[str, str]
    residual: Expression | None

    @property
    def updates(self) -> Updates | None:
        """The options of both inputs."""
        return self.inputs[0].updates

    @property
    def stamps(self) -> tuple[str, ...]:
        """The time columns of both rows."""
        outside = {inside: out for out, inside in self.merged.items()}
        inside = [self.right_names[name] for name in self.sides[1]]
        right = (outside.get(name, name) for name in inside)
        return tuple(dict.fromkeys((*self.sides[0], *right)))


@dataclass(frozen=True, eq=False)
class MultiJoinNode(AnyJoin):
    """Matching rows of many inputs, one of each."""

    windows: tuple[int, ...]
    """For each input, the most ticks by which its row is older than another of the same result."""
    names: tuple[Mapping[str, str], ...]
    """For each input, its columns to the names they have inside the join."""
    merged: Mapping[str, str]
    """Maps each key column that is not in the output, by its name inside the join, to the output
    column that has its value."""
    residual: Expression | None
    how: How = field(kw_only=True, default="inner")
    """The kind of join; those but ``inner`` have two inputs, and measure their disorder."""

    @property
    def kind(self) -> JoinKind:
        """The inputs whose rows are in the output, alone or with others, by ``how=``."""
        return KINDS[self.how]

    @property
    def shown(self) -> tuple[int, ...]:
        """The inputs whose columns are in the output; for semi and anti joins, the left one."""
        return super().shown if self.how == "inner" else self.kind.shown

    @property
    def updates(self) -> None:
        """None: one input may be an update stream, whose rows are joined like those of others."""
        return None

    def behind(self, port: int) -> int:
        """Return the window of an input."""
        return self.windows[port]

    def out_name(self, port: int, column: str) -> str:
        """Return the name in the output; key columns of one name are in it once."""
        inside = self.names[port][column]
        return self.merged.get(inside, inside)


@dataclass(frozen=True, eq=False)
class DistinctNode(Node):
    """One row per key."""

    keeps_numbers: ClassVar[bool] = True
    drops_rows: ClassVar[bool] = True

    key: tuple[str, ...]
    attribute: str


@dataclass(frozen=True, eq=False)
class OrderNode(Node):
    """Rows in order of a progressing attribute."""

    attribute: str
