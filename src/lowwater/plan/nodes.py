"""Logical nodes: what a query says, as small frozen typed values.

A node knows its columns, which of them progress (and whether they can be null), its main time, and
the line of the user's program that made it. Building a node checks it; a node that exists is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import polars as pl

from lowwater.errors import QueryError, unknown_name
from lowwater.joins.reach import Reach
from lowwater.joins.shape import Carried, How
from lowwater.operators.aggregates import Aggregate, Call
from lowwater.operators.flush import Flush
from lowwater.operators.keeping import Form
from lowwater.operators.rowwise import Derivation
from lowwater.plan.expressions import Expression
from lowwater.progress.spec import StreamSpec
from lowwater.sources.source import Source
from lowwater.stream.element import SEQUENCE
from lowwater.stream.time_domain import ROWS, TimeDomain
from lowwater.stream.window import WindowSpec


@dataclass(frozen=True)
class Progressing:
    """A column on which the stream progresses."""

    domain: TimeDomain
    nullable: bool = False
    partners: frozenset[str] = frozenset()
    """Columns, this one among them, of which at least one is never null."""
    behind: Mapping[str, int] = field(default_factory=dict)
    """By how many ticks at most this column is below others that count the same way."""


@dataclass(frozen=True, eq=False)
class Node:
    """Base of all logical nodes."""

    inputs: tuple[Node, ...]
    schema: Mapping[str, pl.DataType]
    progress: Mapping[str, Progressing]
    time: str | None
    origin: str = field(kw_only=True, default="")
    """The user's own line, as ``file:line``."""

    @property
    def numbered(self) -> bool:
        """Whether rows can carry the sequence number their one source gave them."""
        return False

    def lag(self, column: str, other: str) -> int | None:
        """By how many ticks at most a progressing column is below another; None if by any."""
        return 0 if column == other else self.progress[column].behind.get(other)

    def need(self, column: str, what: str = "column") -> pl.DataType:
        """The type of a column; an error that names the known ones if there is none."""
        if column not in self.schema:
            raise QueryError(unknown_name(what, column, self.schema))
        return self.schema[column]

    def progressing(self, column: str, use: str) -> TimeDomain:
        """The domain of a progressing column; an error that says why it cannot be used."""
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

    spec: StreamSpec
    source: Source

    @classmethod
    def of(cls, spec: StreamSpec, source: Source, origin: str) -> SourceNode:
        """The node of a declared stream."""
        progress = {name: Progressing(domain) for name, domain in spec.domains.items()}
        latent = spec.stamp == "latent"
        return cls(
            (),
            spec.row_schema,
            {} if latent else progress,
            None if latent else spec.time,
            spec,
            source,
            origin=origin,
        )

    @property
    def numbered(self) -> bool:
        """A source numbers its rows."""
        return True


@dataclass(frozen=True, eq=False)
class StampNode(Node):
    """Gives latent rows a time when an operator needs one (ETS §5)."""

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
class FilterNode(Node):
    """Rows that satisfy a predicate."""

    predicate: Expression

    @property
    def numbered(self) -> bool:
        """Filtering keeps the numbers of the rows that stay."""
        return self.inputs[0].numbered


@dataclass(frozen=True, eq=False)
class ProjectNode(Node):
    """Columns computed from columns."""

    items: tuple[tuple[str, Expression], ...]
    derived: Mapping[str, Derivation]
    copied: Mapping[str, str]

    @property
    def numbered(self) -> bool:
        """Projecting keeps the rows and so their numbers."""
        return self.inputs[0].numbered


@dataclass(frozen=True, eq=False)
class ApplyNode(Node):
    """A user's function over chunks."""

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

    @property
    def domain(self) -> TimeDomain:
        """How the window's attribute counts."""
        return (
            ROWS if self.attribute == SEQUENCE else self.inputs[0].progress[self.attribute].domain
        )


@dataclass(frozen=True, eq=False)
class SessionNode(Node):
    """Aggregates per session and group."""

    attribute: str
    gap: int
    groups: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    texts: tuple[str, ...]

    @property
    def domain(self) -> TimeDomain:
        """How the session's attribute counts."""
        return self.inputs[0].progress[self.attribute].domain


@dataclass(frozen=True, eq=False)
class SlidingNode(Node):
    """Aggregates per group over a window that moves with every row."""

    attribute: str
    range: int
    groups: tuple[str, ...]
    calls: tuple[Call, ...]
    texts: tuple[str, ...]

    @property
    def domain(self) -> TimeDomain:
        """How the window's attribute counts."""
        return self.inputs[0].progress[self.attribute].domain


@dataclass(frozen=True, eq=False)
class GroupAggregateNode(Node):
    """Aggregates per group, where groups end by progress."""

    groups: tuple[str, ...]
    progressing_keys: Mapping[str, TimeDomain]
    aggregates: tuple[Aggregate, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class JoinNode(Node):
    """Matching pairs of two inputs."""

    times: tuple[str, str]
    reach: Reach
    on: tuple[tuple[str, str], ...]
    right_names: Mapping[str, str]
    merged: Mapping[str, str]
    residual: Expression | None
    how: How
    carried: tuple[Carried, ...] = ()
    """Columns beside the two times that progress."""

    @property
    def domain(self) -> TimeDomain:
        """How both times count."""
        return self.inputs[0].progress[self.times[0]].domain


@dataclass(frozen=True, eq=False)
class DistinctNode(Node):
    """One row per key."""

    key: tuple[str, ...]
    attribute: str

    @property
    def numbered(self) -> bool:
        """The rows that stay keep their numbers."""
        return self.inputs[0].numbered


@dataclass(frozen=True, eq=False)
class OrderNode(Node):
    """Rows in order of a progressing attribute."""

    attribute: str
