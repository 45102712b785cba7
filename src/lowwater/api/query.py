"""A stream is a query; its methods check their arguments and return a stream with one more node."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path

import polars as pl

from lowwater.api.runs import Runnable
from lowwater.errors import OptionError
from lowwater.joins.oblivious.options import Strategy
from lowwater.joins.ordered.strategy import Order
from lowwater.joins.shape import How
from lowwater.operators.aggregates import UserAggregate
from lowwater.operators.flush import Flush
from lowwater.operators.window_state import Form
from lowwater.plan.builders import aggregates as aggregate_builders
from lowwater.plan.builders import joins as join_builders
from lowwater.plan.builders import rows as row_builders
from lowwater.plan.builders import unions as union_builders
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.builders.oblivious import options_of
from lowwater.plan.conditions import Time
from lowwater.plan.expressions import Formula
from lowwater.plan.nodes import Node
from lowwater.plan.sql.parser import read_expression
from lowwater.plan.text_places import under
from lowwater.stream.duration import Duration
from lowwater.stream.size import Size
from lowwater.updates.options import DELETE_WHEN, FreshWithin, Schedule, Windows, updates_of

_PACKAGE = f"{Path(__file__).parent.parent}{os.sep}"
"""The folder of this package, with the separator behind it."""


def line_of_user() -> str:
    """Return the nearest line on the stack outside this package, as ``file:line``."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def joinable(value: object, where: str) -> Stream:
    """Return a stream; refuse anything else, naming the function that was given it."""
    if not isinstance(value, Stream):
        raise OptionError(f"{where} takes streams, not {type(value).__name__}")
    return value


def condition(text: str | None) -> Formula | None:
    """Return the condition an option gives, parsed; None if there is none."""
    return read_expression(text) if text else None


def _formulas(texts: Mapping[str, str]) -> dict[str, Formula]:
    return {name: read_expression(text) for name, text in texts.items()}


def _aggregates(given: Mapping[str, str | UserAggregate]) -> aggregate_builders.Aggregates:
    return {
        name: each if isinstance(each, UserAggregate) else read_expression(each)
        for name, each in given.items()
    }


class Stream(Runnable):
    """A stream of rows, or a query over such streams. It never changes; methods return new ones.

    >>> s = lw.stream(pl.DataFrame({"ts": [1, 2], "v": [10, 20]}), name="s", time="ts")
    >>> s
    <lowwater stream (ts Int64, v Int64), time ts>
    """

    def __init__(self, node: Node, latent: str | None = None):
        self._node = node
        self._latent = latent

    def _next(self, node: Node) -> Stream:
        return Stream(node, self._latent if node.time is None else None)

    def _timed(self) -> Node:
        return row_builders.stamped(self._node, self._latent)

    def __repr__(self) -> str:
        columns = ", ".join(f"{name} {dtype}" for name, dtype in self._node.schema.items())
        return f"<lowwater stream ({columns}), time {self.time}>"

    @property
    def node(self) -> Node:
        """The logical node of this stream; rows that have no time yet are stamped in it."""
        return self._timed()

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self._node.schema)

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """The Polars type of each column."""
        return dict(self._node.schema)

    @property
    def time(self) -> str | None:
        """The main time column; None if no column progresses."""
        return self._node.time or self._latent

    # ---- row by row ------------------------------------------------------------------------

    def where(self, predicate: str) -> Stream:
        """Keep the rows for which a condition is true.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 2], "v": [10, 20]}), name="s", time="ts")
        >>> s.where("v > 10 AND v IS NOT NULL").collect()["ts"].to_pylist()
        [2]

        ``predicate``
            SQL expression that is true or false.
        """
        formula = read_expression(predicate)
        return self._next(row_builders.filtered(self._node, formula, line_of_user()))

    def forget_before(self, time: Time, on: str | None = None) -> Stream:
        """Leave out the rows before a time, and let no operator keep anything for them.

        The bound is handed on to the operators and streams before, as that of a condition on the
        time is. Of a run, :meth:`lowwater.Run.forget_before` does the same while it goes on.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 70]}), name="s", time="ts")
        >>> counts = s.window("1 minute").agg(n="count(*)").forget_before(60)
        >>> counts.collect()["window_start"].to_pylist()
        [60]

        ``time``
            The earliest time that is kept: a datetime, a date, or a text in ISO form; of an integer
            column the number, in its unit.
        ``on``
            The progressing column that is compared. Default: None, the main time.
        """
        return self._next(row_builders.forgotten(self._timed(), time, on, line_of_user()))

    def select(self, *columns: str, **computed: str) -> Stream:
        """Keep some columns, and add computed ones; all others are left out.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 2], "v": [10, 20]}), name="s", time="ts")
        >>> s.select("ts", twice="v * 2").collect().to_pylist()
        [{'ts': 1, 'twice': 20}, {'ts': 2, 'twice': 40}]

        ``columns``
            Names of columns that stay as they are.
        ``computed``
            SQL expressions over the columns, by the names of the columns they give.
        """
        formulas = _formulas(computed)
        return self._next(
            row_builders.projected(self._node, columns, formulas, origin=line_of_user())
        )

    def map(self, **computed: str) -> Stream:
        """Keep all columns, and add computed ones or put them in place of others.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 2], "v": [10, 20]}), name="s", time="ts")
        >>> s.map(v="v + 1").collect()["v"].to_pylist()
        [11, 21]

        ``computed``
            SQL expressions over the columns, by the names of the columns they give.
        """
        formulas = _formulas(computed)
        return self._next(
            row_builders.projected(self._node, (), formulas, keep=True, origin=line_of_user())
        )

    def apply(
        self,
        function: Callable[[pl.DataFrame], pl.DataFrame],
        schema: Mapping[str, pl.DataType | type[pl.DataType]] | None = None,
    ) -> Stream:
        """Run a Python function over chunks of rows.

        A chunk may have any number of rows. Rows whose time the function moves below a promise are
        late rows for the operators that follow.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 2], "v": [10, 20]}), name="s", time="ts")
        >>> s.apply(lambda rows: rows.with_columns(-pl.col("v"))).collect()["v"].to_pylist()
        [-10, -20]

        ``function``
            Function that takes a Polars frame and returns one. It must treat rows one by one, and
            leave the progressing columns it returns as they are.
        ``schema``
            The columns that the function returns. Default: None, those it is given.
        """
        return self._next(row_builders.applied(self._node, function, schema, line_of_user()))

    def updates(
        self,
        key: str | Sequence[str],
        schedule: Schedule | None = None,
        *,
        weights: Mapping[Hashable, float | Duration] | None = None,
        budget: Duration | None = None,
        complete_within: Duration | None = None,
        windows: Windows | None = None,
        expire: Duration | None = None,
        delete_when: str | None = None,
        fresh_within: FreshWithin | None = None,
    ) -> Stream:
        """Make an update stream, in which each row replaces the last one of its key.

        Under load, the operators that follow work on the newest rows only.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 2], "k": ["a", "a"]}), name="s", time="ts")
        >>> s.updates("k").collect()["ts"].to_pylist()[-1]
        2

        ``key``
            The column, or columns, of the key.
        ``schedule``, ``weights``, ``budget``, ``complete_within``, ``windows``, ``expire``, \
``delete_when``, ``fresh_within``
            The options of :func:`lw.stream <lowwater.stream>` of these names, with the same
            defaults.
        """
        by = updates_of(
            key,
            schedule,
            weights,
            budget,
            complete_within,
            windows,
            expire,
            delete_when,
            fresh_within,
        )
        with under(DELETE_WHEN):
            deletes = condition(delete_when)
        return Stream(update_builders.updated(self._timed(), by, deletes, line_of_user()))

    # ---- many streams ----------------------------------------------------------------------

    def union(
        self,
        *others: Stream,
        prefer: Stream | str | None = None,
        time: union_builders.Times | None = None,
    ) -> Stream:
        """Return all rows of this stream and others with the same columns.

        The union progresses on the columns that all streams promise, in one type and unit;
        ``explain`` names the others. Its time is that of the first stream, if it is one of these.

        A union of update streams, which must have one key and the same options, has the newest row
        of each key, whichever stream it comes from, and one row of each key and time.

        >>> a = lw.stream(pl.DataFrame({"ts": [1, 3]}), name="a", time="ts")
        >>> b = lw.stream(pl.DataFrame({"ts": [2]}), name="b", time="ts")
        >>> sorted(a.union(b).collect()["ts"].to_pylist())
        [1, 2, 3]

        ``others``
            The other streams, one at least.
        ``prefer``
            Of update streams: the stream, or the name of its source, whose row is taken where
            several streams have a row of one key and time. Default: None, the row that came
            first.
        ``time``
            Columns that become common times: ``{"t": ("ts", "sent")}`` is ``ts`` of this stream and
            ``sent`` of the other, as one column ``t``; a single name stands for a column that all
            call alike. Times in different units or types are brought to the finest; an integer
            counts from 1970 in the unit of its stream. The first of them is the time of the union.
            Default: None, columns stay as they are.
        """
        streams = [self, *(joinable(other, "union") for other in others)]
        chosen = (
            prefer if prefer is None or isinstance(prefer, str) else joinable(prefer, "prefer=")
        )
        preferred = chosen._node if isinstance(chosen, Stream) else chosen
        nodes = [each._node for each in streams]
        return self._next(union_builders.united(nodes, line_of_user(), preferred, time))

    def join(
        self,
        other: Stream,
        on: str | Sequence[str | tuple[str, str]] | Mapping[str, str] = (),
        within: Duration | tuple[Duration, Duration] | join_builders.Same | None = None,
        *,
        where: str | None = None,
        how: How = "inner",
        times: tuple[str, str] | None = None,
        suffix: str = "_right",
        order: Order | None = None,
        alpha: float | None = None,
        memory: Size | None = None,
        strategy: Strategy | None = None,
        accuracy: float | None = None,
        latency: Duration | None = None,
        flush: Flush | None = None,
        read_ahead: int | str | None = None,
    ) -> Stream:
        """Return pairs of rows with equal keys and times near each other.

        Update streams are joined on their keys at least: the newest row of each side or, with
        ``within`` or equal times, the newest that is near enough. The result is an update stream.

        >>> a = lw.stream(pl.DataFrame({"ts": [0, 100], "k": ["x", "y"]}), name="a", time="ts")
        >>> b = lw.stream(pl.DataFrame({"ts": [30, 300], "k": ["x", "y"]}), name="b", time="ts")
        >>> a.join(b, on="k", within="1 minute").collect()["ts_right"].to_pylist()
        [30]

        ``other``
            The stream on the right.
        ``on``
            Columns that must be equal: names, pairs of names (left, right), or a mapping of left to
            right names. Default: none.
        ``within``
            Lengths of time by which the times of a pair may be apart: with ``("2 minutes", "3
            minutes")`` the right row is 2 minutes before to 3 minutes after the left one; one
            length means both; with ``lw.same("10 seconds")`` both are in the same 10 seconds.
            Default: None, times must be equal and be among ``on``. If an input is
            ``lw.unpromised()``, the join measures its disorder to keep rows as long as a partner
            may come; with ``lw.same`` all inputs must promise something.
        ``where``
            SQL condition on the columns of both. Default: None.
        ``how``
            "inner" (default), "left", "right", "full", "semi" or "anti". Where disorder is
            measured, a row that came out without a partner may turn out to have one; the metrics
            count this.
        ``times``
            The time columns that are compared, (left, right). Default: the main times.
        ``suffix``
            Suffix of right columns whose names are taken. Default: ``"_right"``.
        ``order``
            The way in which results are put in order of their times, the later of the two:
            "sync-filter" holds rows until they are in order and then joins them, "filter-order"
            joins at once and holds results, "adaptive" does the second from a load of ``alpha`` on.
            Default: None, results leave as they are found.
        ``alpha``
            Load, from 0 to below 1, from which on "adaptive" holds results. Default: None, which
            means 0.3.
        ``memory``
            Most memory for the rows of a join that measures, ``"64 MB"``. Default: None, no
            limit. With this option or one of the next four, as with an input that is
            ``lw.unpromised()``, the join measures how disordered its inputs are, and keeps rows as
            long as that demands.
        ``strategy``
            The strategy that relieves the memory: "msf" sorts rows before they are joined, "dbf"
            puts rows of a stream that is far ahead on disk, "hybrid" does both, "plain" does
            neither, "auto" chooses one of these. Default: None, which means "auto".
        ``accuracy``
            Share of results to find, between 0 and 1. Default: None, which means 0.999.
        ``latency``
            Length of time that "auto" may let a row wait. Default: None, any.
        ``flush``
            The pace at which rows without a partner leave an outer or anti join,
            ``lw.slow(every=160, within="1 minute")``; with ``within=lw.same(...)`` also bounded by
            ``within_windows=``. Default: None, all that a promise frees leave at once.
        ``read_ahead``
            Rows on disk that are read before they are due: a number of rows, an amount of memory
            such as ``"64 kB"``, or "auto", which takes as many as become due at once or while a
            page is read. Under ``memory`` they take a part of it at most. Default: None, which
            means "auto".
        """
        node = join_builders.joined(
            self._timed(),
            joinable(other, "join")._timed(),
            on=on,
            within=within,
            where=condition(where),
            how=how,
            times=times,
            suffix=suffix,
            ordering=join_builders.ordering_of(order, alpha),
            options=options_of(memory, strategy, accuracy, latency, read_ahead),
            origin=line_of_user(),
            flush=flush,
        )
        return Stream(node)

    # ---- keyed by time ---------------------------------------------------------------------

    def window(
        self,
        range: Duration | None = None,
        slide: Duration | None = None,
        *,
        rows: int | None = None,
        slide_rows: int | None = None,
        by: str | Sequence[str] | None = None,
        expire: Duration | None = None,
        on: str | None = None,
        flush: Flush | None = None,
        keep: Form | None = None,
        table: int | None = None,
    ) -> Windowed:
        """Cut the stream into windows of a length of time, or of a number of rows of the source.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 2, 61]}), name="s", time="ts")
        >>> s.window("1 minute").agg(n="count(*)").collect()["n"].to_pylist()
        [2, 1]

        ``range``
            Length of a window. Default: None; must be given, unless ``rows`` is.
        ``slide``
            Length of time from one window's start to the next. ``"on change"``: the window moves
            with every row, and answers at each instant at which an aggregate changes. Default:
            ``range``.
        ``rows``
            Number of rows of a window, instead of a length of time. Default: None.
        ``slide_rows``
            Number of rows from one window's start to the next. With a length of time or with
            ``by``: number of rows from one answer to the next. Default: ``rows``.
        ``by``
            Name of a column, or names: the keys whose rows are counted, each by itself, in order of
            time. Every ``slide_rows`` rows a key is answered for its last ``rows`` rows, or for its
            rows of the last ``range``. Default: None; rows are counted as they came, or for a
            length of time all in order of time.
        ``expire``
            Length of time without a row after which a key is forgotten; its next row is counted as
            its first. Default: None, never.
        ``on``
            The progressing column that windows go by. Default: the main time.
        ``flush``
            The pace at which the answers of a closed window leave, ``lw.slow(...)`` or
            ``lw.lazy(...)``. Default: None, all at once.
        ``keep``
            Form of the state of open windows: partials by "panes" or by "windows", or the "rows".
            Default: None, chosen from the data.
        ``table``
            Number of slots of a table that reduces rows first and never grows; ``flush`` is then
            the pace at which partials leave it. Default: None, no table.
        """
        keys = (by,) if isinstance(by, str) else by
        node = self._node if rows is not None and keys is None else self._timed()
        closing = aggregate_builders.Closing.of(flush, keep, table)
        clause = aggregate_builders.window(
            node, range, slide, rows, slide_rows, on, closing, keys, expire
        )
        return Windowed(node, clause, ())

    def session(
        self, gap: Duration, *, on: str | None = None, flush: Flush | None = None
    ) -> Windowed:
        """Cut the stream into windows that end when no row of their group comes for some time.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 5, 60]}), name="s", time="ts")
        >>> s.session("10 seconds").agg(n="count(*)").collect()["n"].to_pylist()
        [2, 1]

        ``gap``
            Length of time without a row of the group after which its window ends.
        ``on``
            The progressing column that windows go by. Default: the main time.
        ``flush``
            The pace at which the answers of ended sessions leave,
            ``lw.slow(every=160, within="1 minute")``. Default: None, all at once.
        """
        node = self._timed()
        return Windowed(node, aggregate_builders.session(node, gap, on, flush), ())

    def group_by(self, *columns: str) -> Grouped:
        """Group by columns, one of which progresses; a group ends when that column has passed it.

        >>> s = lw.stream(pl.DataFrame({"day": [1, 1, 2]}), name="s", time="day")
        >>> s.group_by("day").agg(n="count(*)").collect()["n"].to_pylist()
        [2, 1]

        ``columns``
            Names of the columns to group by.
        """
        return Grouped(self._timed(), columns)

    def distinct(self, *columns: str) -> Stream:
        """Return one row for each value of some columns, one of which progresses.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 1, 2]}), name="s", time="ts")
        >>> s.distinct().collect()["ts"].to_pylist()
        [1, 2]

        ``columns``
            Names of the columns of the result. Default: all.
        """
        return self._next(row_builders.deduplicated(self._timed(), columns, line_of_user()))

    def order_by(self, column: str | None = None) -> Stream:
        """Put the rows in ascending order of a progressing column.

        >>> s = lw.stream(pl.DataFrame({"ts": [2, 1]}), name="s", time="ts",
        ...               progress=lw.within("1 second"))
        >>> s.order_by().collect()["ts"].to_pylist()
        [1, 2]

        ``column``
            The column to order by. Default: the main time.
        """
        return self._next(row_builders.ordered_by(self._timed(), column, line_of_user()))


class Windowed:
    """A stream cut into windows, to be grouped and aggregated.

    >>> s = lw.stream(pl.DataFrame({"ts": [1, 2], "k": ["a", "b"]}), name="s", time="ts")
    >>> s.window("1 minute").group_by("k").agg(n="count(*)").collect().num_rows
    2
    """

    def __init__(self, node: Node, window: aggregate_builders.Window, groups: tuple[str, ...]):
        self._node, self._window, self._groups = node, window, groups

    def group_by(self, *columns: str) -> Windowed:
        """Aggregate per value of some columns within each window.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 2], "k": ["a", "a"]}), name="s", time="ts")
        >>> s.window("1 minute").group_by("k").agg(n="count(*)").columns
        ['window_start', 'window_end', 'k', 'n']

        ``columns``
            Names of the columns to group by, added to those named before.
        """
        return Windowed(self._node, self._window, (*self._groups, *columns))

    def agg(self, **aggregates: str | UserAggregate) -> Stream:
        """Aggregate the rows of each window and group.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 2], "v": [10, 20]}), name="s", time="ts")
        >>> query = s.window("1 minute").agg(n="count(*)", most="max(v)")
        >>> query.select("n", "most").collect().to_pylist()
        [{'n': 2, 'most': 20}]

        ``aggregates``
            One call of an aggregate each, such as ``"sum(a + b)"``, or a ``lw.aggregate`` of your
            own, by the names of the columns they give.
        """
        return Stream(
            aggregate_builders.window_aggregated(
                self._node, self._window, self._groups, _aggregates(aggregates), line_of_user()
            )
        )


class Grouped:
    """A stream grouped by columns of which one progresses, to be aggregated.

    >>> s = lw.stream(pl.DataFrame({"day": [1, 1, 2]}), name="s", time="day")
    >>> s.group_by("day").agg(n="count(*)").collect()["n"].to_pylist()
    [2, 1]
    """

    def __init__(self, node: Node, groups: tuple[str, ...]):
        self._node, self._groups = node, groups

    def agg(self, **aggregates: str | UserAggregate) -> Stream:
        """Aggregate the rows of each group.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 1], "v": [10, 20]}), name="s", time="ts")
        >>> s.group_by("ts").agg(mean="avg(v)").collect().to_pylist()
        [{'ts': 1, 'mean': 15.0}]

        ``aggregates``
            As in :meth:`Windowed.agg`.
        """
        return Stream(
            aggregate_builders.group_aggregated(
                self._node, self._groups, _aggregates(aggregates), line_of_user()
            )
        )
