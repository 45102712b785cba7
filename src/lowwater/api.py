"""The fluent API: a thin, immutable facade over logical nodes.

Every method checks its arguments, builds one node and gives a new :class:`Stream`. Nothing runs
before ``collect`` or ``run``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pyarrow as pa

from lowwater.dashboard.options import LAST, Dashboard, dashboard_of
from lowwater.dashboard.page import started
from lowwater.declaring import declared
from lowwater.engines.embedded.clock import Charge, Clock
from lowwater.engines.run import Run, RunOptions, prepare, streaming_dataframe
from lowwater.errors import ExpressionError, OptionError, StreamWarning, Term
from lowwater.joins.oblivious.options import Strategy
from lowwater.joins.ordered.strategy import Order
from lowwater.joins.shape import How
from lowwater.operators.aggregates import UserAggregate
from lowwater.operators.flush import Flush
from lowwater.operators.window_state import Form
from lowwater.plan.builders import aggregates as aggregate_builders
from lowwater.plan.builders import corrections as correction_builders
from lowwater.plan.builders import joins as join_builders
from lowwater.plan.builders import multi_joins as multi_join_builders
from lowwater.plan.builders import rows as row_builders
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.builders.oblivious import options_of
from lowwater.plan.explain import explain
from lowwater.plan.expressions import Formula
from lowwater.plan.nodes import Node
from lowwater.plan.physical.compile import compile_plan
from lowwater.plan.physical.costs import Rates
from lowwater.plan.physical.operator import PlanShape
from lowwater.plan.sql.parser import read_expression
from lowwater.plan.sql.query import plan_query
from lowwater.progress.contract import Contract, Generation, Idle, Jump, jump
from lowwater.progress.spec import STREAM, LatePolicy, Stamp
from lowwater.stream.duration import Duration
from lowwater.stream.size import Size
from lowwater.updates.options import DELETE_WHEN, Schedule, Windows, updates_of

LateRows = Any
"""A table of late rows, a folder of such, or these by stream."""


def _origin() -> str:
    """The nearest line outside this package, as ``file:line``."""
    here = str(Path(__file__).parent)
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def _formulas(texts: Mapping[str, str]) -> dict[str, Formula]:
    return {name: read_expression(text) for name, text in texts.items()}


def _condition(text: str | None, option: Term | None = None) -> Formula | None:
    """The condition that an option gives; None if there is none."""
    if not text:
        return None
    try:
        return read_expression(text)
    except ExpressionError as error:
        if option is None:
            raise
        raise error.reworded(option, ": ", error.message) from None


def _aggregates(given: Mapping[str, str | UserAggregate]) -> aggregate_builders.Aggregates:
    return {
        name: each if isinstance(each, UserAggregate) else read_expression(each)
        for name, each in given.items()
    }


class Stream:
    """A stream of rows, or a query over such streams."""

    def __init__(self, node: Node, latent: str | None = None):
        self._node = node
        self._latent = latent

    def _next(self, node: Node) -> Stream:
        return Stream(node, self._latent if node.time is None else None)

    def _timed(self) -> Node:
        """This stream's node with a time: latent rows are stamped where a time is needed."""
        return row_builders.stamped(self._node, self._latent)

    def __repr__(self) -> str:
        columns = ", ".join(f"{name} {dtype}" for name, dtype in self._node.schema.items())
        return f"<lowwater stream ({columns}), time {self.time}>"

    @property
    def node(self) -> Node:
        """What this stream is, as planners read it."""
        return self._timed()

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._node.schema)

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """The columns and their types."""
        return dict(self._node.schema)

    @property
    def time(self) -> str | None:
        """The main time column."""
        return self._node.time or self._latent

    # ---- row by row ------------------------------------------------------------------------

    def where(self, predicate: str) -> Stream:
        """Keep the rows for which a SQL condition is true."""
        formula = read_expression(predicate)
        return self._next(row_builders.filtered(self._node, formula, _origin()))

    def select(self, *columns: str, **computed: str) -> Stream:
        """Only these columns, and columns computed by SQL text: ``select("a", b="a + 1")``."""
        formulas = _formulas(computed)
        return self._next(row_builders.projected(self._node, columns, formulas, origin=_origin()))

    def map(self, **computed: str) -> Stream:
        """All columns, and columns computed by SQL text beside (or over) them."""
        formulas = _formulas(computed)
        return self._next(
            row_builders.projected(self._node, (), formulas, keep=True, origin=_origin())
        )

    def apply(
        self,
        function: Callable[[pl.DataFrame], pl.DataFrame],
        schema: Mapping[str, pl.DataType | type[pl.DataType]] | None = None,
    ) -> Stream:
        """Run a Python function over chunks of rows; ``schema`` if it changes the columns.

        The function must treat rows one by one and leave the progressing columns it returns as
        they are; how rows are cut into chunks is not defined. Rows whose time it moves below what
        was promised are late rows, where a later operator goes by that promise.
        """
        return self._next(row_builders.applied(self._node, function, schema, _origin()))

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
    ) -> Stream:
        """The rows from here on as an update stream: each replaces the last of its key.

        For what follows to be worked on under load only for the newest rows; the options are those
        of :func:`lw.stream <lowwater.stream>`, where ``update_key=`` says it of a source.
        """
        by = updates_of(
            key, schedule, weights, budget, complete_within, windows, expire, delete_when
        )
        deletes = _condition(delete_when, DELETE_WHEN)
        return Stream(update_builders.updated(self._timed(), by, deletes, _origin()))

    # ---- many streams ----------------------------------------------------------------------

    def union(self, *others: Stream, prefer: Stream | str | None = None) -> Stream:
        """All rows of this stream and others with the same columns.

        Of update streams, which must have one key and the same options, the newest row of each key
        whichever stream it comes from, and one of each key and time. Where two differ, the one that
        is there first counts, and of those that wait together that of ``prefer``: one of the
        streams, or the name of its source.
        """
        streams = [self, *(_stream(other, "union") for other in others)]
        chosen = prefer if prefer is None or isinstance(prefer, str) else _stream(prefer, "prefer=")
        wanted = chosen._node if isinstance(chosen, Stream) else chosen
        return self._next(row_builders.united([each._node for each in streams], _origin(), wanted))

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
    ) -> Stream:
        """Pairs of rows with equal ``on`` columns and times near each other.

        ``within=("2 minutes", "3 minutes")``: the other row is at most 2 minutes before and at
        most 3 minutes after; one value means both; ``lw.same("10 seconds")``: both lie in the same
        10 seconds. Without ``within``, the time column must be among the ``on`` columns. Columns of
        the other side whose names are taken get ``suffix``.

        Two update streams are joined on their keys, at least: the newest row of each side, or, with
        ``within`` or equal times, the newest that is near enough. What comes out is an update
        stream, too.

        ``order``: results leave in the order of their times, the later of the two each.
        "sync-filter" lets rows wait until they are in order and joins them then; "filter-order"
        joins rows as they come and lets results wait; "adaptive" takes the second where joining is
        so much work that it pays: from a load of ``alpha`` on (0.3 if not given).

        Without ``within``, rows are kept as promises say. Where nothing is promised
        (``lw.unpromised()``), or with one of the following, it is measured how disordered the rows
        are, and they are kept as long as that says: ``memory`` is the most they may take ("64 MB");
        ``strategy`` is what relieves it: "msf" sorts rows before they are joined, "dbf" puts rows
        of a stream that is far ahead on disk, "hybrid" does both, "plain" neither, and "auto"
        chooses; ``accuracy`` is the share of results that should be found (0.999 if not given), and
        ``latency`` how long "auto" may let a row wait.
        """
        right = _stream(other, "join")
        ordering = join_builders.ordering_of(order, alpha)
        options = options_of(memory, strategy, accuracy, latency)
        node = join_builders.joined(
            self._timed(),
            right._timed(),
            on,
            within,
            _condition(where),
            how,
            times,
            suffix,
            _origin(),
            ordering,
            options,
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
        on: str | None = None,
        flush: Flush | None = None,
        keep: Form | None = None,
        table: int | None = None,
    ) -> Windowed:
        """Windows of a length of time, or of a number of rows of the source.

        With ``slide="on change"`` the window moves with every row and answers at each instant at
        which an aggregate changes: when rows come, and when they are ``range`` old.

        ``flush``: how the answers of a closed window leave, ``lw.slow()``, ``lw.lazy()``, or all at
        once. ``keep``: what waits for a window to close, partials by "panes" or by "windows" or the
        "rows"; chosen from the data if not given. ``table``: rows are first reduced in a table of
        so many slots, which never grows; ``flush`` then says how partials leave it.
        """
        node = self._node if rows is not None else self._timed()
        closing = aggregate_builders.Closing.of(flush, keep, table)
        clause = aggregate_builders.window(node, range, slide, rows, slide_rows, on, closing)
        return Windowed(node, clause, ())

    def session(self, gap: Duration, *, on: str | None = None) -> Windowed:
        """Windows that last until rows of a group stay away for ``gap``."""
        node = self._timed()
        return Windowed(node, aggregate_builders.session(node, gap, on), ())

    def group_by(self, *columns: str) -> Grouped:
        """Groups that end by progress: one of the columns must be a progressing attribute."""
        return Grouped(self._timed(), columns)

    def distinct(self, *columns: str) -> Stream:
        """One row per distinct value of the columns (all, if none are named)."""
        return self._next(row_builders.deduplicated(self._timed(), columns, _origin()))

    def order_by(self, column: str | None = None) -> Stream:
        """The rows in order of a progressing attribute."""
        return self._next(row_builders.ordered_by(self._timed(), column, _origin()))

    # ---- running ---------------------------------------------------------------------------

    def explain(
        self,
        plan: PlanShape = "out-of-order",
        *,
        rates: Mapping[str, float] | None = None,
        cost: Duration | None = None,
    ) -> str:
        """The plan: operators, how they progress, how they would be spread.

        With ``rates``, rows a second by stream, ordered joins say what each strategy is expected
        to take, and joins without a window how many rows they are expected to keep; ``cost`` is the
        time to compare two rows ("5 us").
        """
        if cost is not None and rates is None:
            raise OptionError("cost= goes with rates=, rows a second of each stream")
        expected = Rates(rates, cost) if rates is not None else None
        return explain(compile_plan(self._node, plan), expected)

    def collect(
        self,
        engine: str = "embedded",
        *,
        plan: PlanShape = "out-of-order",
        chunk_rows: int | None = None,
        tick: Duration | None = None,
        clock: Clock | Literal["virtual", "wall"] | None = None,
        buckets: int | None = None,
        session: Any = None,
    ) -> pa.Table:
        """Run to the end of finite sources and give all results.

        On Spark, what the sources hold now is taken as all there will be.
        """
        options = RunOptions(
            clock=clock,
            chunk_rows=chunk_rows,
            tick=tick,
            buckets=buckets,
            session=session,
            to_end=True,
        )
        planned = compile_plan(self._node, plan)
        run = prepare(planned, engine, options).run_here()
        asked = {each.spec.name: each.spec.late for each in planned.sources}
        for each in run.metrics().streams:
            if each.refused_rows and asked[each.name] == "side":
                warnings.warn(
                    f"{each.refused_rows:,} row(s) of {each.name} came late, or without a usable"
                    " time or channel, and are in no answer; run() keeps them, in late_rows()",
                    StreamWarning,
                    stacklevel=2,
                )
        return run.results()

    def run(
        self,
        engine: str = "embedded",
        *,
        sink: object = None,
        late_sink: object = None,
        checkpoint: object = None,
        trigger: Duration | None = None,
        plan: PlanShape = "out-of-order",
        chunk_rows: int | None = None,
        tick: Duration | None = None,
        clock: Clock | Literal["virtual", "wall"] | None = None,
        charge: Charge = "nothing",
        buckets: int | None = None,
        session: Any = None,
        dashboard: bool | Dashboard = False,
    ) -> Run:
        """Run in the background and give a handle.

        ``sink``: a folder for Parquet files, a function of a pyarrow table, or nothing to keep
        results. ``late_sink``: the same for refused rows (on Spark a folder). ``clock``: "virtual"
        jumps from arrival to arrival, "wall" waits for them. ``tick``: rows that arrive within this
        much clock time are handed over together (0: each as it arrives; nothing: when there are
        ``chunk_rows`` of them). ``charge``: what work costs on a virtual clock.

        For ``engine="spark"``: ``checkpoint``, a folder from which an ended or killed run goes on;
        ``trigger``, how often a batch is made ("1 second"), or "available-now" to stop after what
        is there; ``buckets``, into how many parts state is spread; ``session``, if not the active
        one.

        ``dashboard=True``: a page that shows the run, at ``run.dashboard.url``; for more, give
        ``lw.dashboard(...)``.
        """
        page = dashboard_of(dashboard)
        options = RunOptions(
            sink=sink,
            late_sink=late_sink,
            clock=clock,
            charge=charge,
            chunk_rows=chunk_rows,
            tick=tick,
            checkpoint=checkpoint,
            trigger=trigger,
            buckets=buckets,
            session=session,
            keep_last=LAST if page is not None and page.show_rows else 0,
        )
        planned = compile_plan(self._node, plan)
        run = prepare(planned, engine, options).start()
        return run if page is None else started(run, planned, engine, options, page)

    # ---- late rows, afterwards -------------------------------------------------------------

    def corrections(self, late: LateRows) -> pa.Table:
        """What late rows would have added: the answer to these rows alone, in the query's columns.

        ``late`` is what ``run.late_rows()`` gives, a folder of such files, or, where several
        streams had late rows, a mapping of their names to such. Rows that have no usable time are
        in no answer. What cannot be corrected is refused, and so are queries with joins, distinct
        rows, sessions, windows of rows or on change, and conditions on answers.
        """
        node = self._timed()
        tables = (
            late if isinstance(late, Mapping) else {correction_builders.only_stream(node): late}
        )
        given = {name: _frame(each, name) for name, each in tables.items()}
        planned = compile_plan(correction_builders.over_late_rows(node, given), "out-of-order")
        return prepare(planned, "embedded", RunOptions(to_end=True)).run_here().results()

    def corrected(self, answers: Any, late: LateRows) -> pa.Table:
        """Answers restated: as if the late rows had come in time.

        Counts and sums are added, extremes compared, and windows that had no answer get one.
        ``answers`` is what ``run.results()`` or ``collect`` gave, or a folder of such files.
        Queries with aggregates of which two values do not make one are refused.
        """
        node = self._timed()
        correction_builders.shape(node)
        found = pl.DataFrame(self.corrections(late))
        return correction_builders.put_together(node, _frame(answers), found).to_arrow()

    def to_spark(
        self,
        spark: Any = None,
        *,
        plan: PlanShape = "out-of-order",
        late_sink: str | Path | None = None,
        chunk_rows: int | None = None,
        tick: Duration | None = None,
        clock: Literal["virtual", "wall"] | None = None,
        buckets: int | None = None,
    ) -> Any:
        """The query as a streaming DataFrame, for any sink, trigger and checkpoint of Spark.

        Nothing is started. ``late_sink`` is a folder for refused rows.
        """
        options = RunOptions(
            late_sink=late_sink,
            clock=clock,
            chunk_rows=chunk_rows,
            tick=tick,
            buckets=buckets,
            session=spark,
        )
        return streaming_dataframe(compile_plan(self._node, plan), options)


class Windowed:
    """A stream cut into windows; say by what to group and what to aggregate."""

    def __init__(self, node: Node, window: aggregate_builders.Window, groups: tuple[str, ...]):
        self._node, self._window, self._groups = node, window, groups

    def group_by(self, *columns: str) -> Windowed:
        """Aggregate per value of these columns within each window."""
        return Windowed(self._node, self._window, (*self._groups, *columns))

    def agg(self, **aggregates: str | UserAggregate) -> Stream:
        """Aggregate: ``agg(n="count(*)", most="max(len)")``."""
        return Stream(
            aggregate_builders.window_aggregated(
                self._node, self._window, self._groups, _aggregates(aggregates), _origin()
            )
        )


class Grouped:
    """A stream grouped by columns of which one progresses."""

    def __init__(self, node: Node, groups: tuple[str, ...]):
        self._node, self._groups = node, groups

    def agg(self, **aggregates: str | UserAggregate) -> Stream:
        """Aggregate: ``agg(n="count(*)", most="max(len)")``."""
        return Stream(
            aggregate_builders.group_aggregated(
                self._node, self._groups, _aggregates(aggregates), _origin()
            )
        )


def _frame(given: Any, stream: str | None = None) -> pl.DataFrame:
    """A table, or the Parquet files of a folder; of a stream, where files hold several."""
    if isinstance(given, str | Path):
        place = Path(given)
        if not place.exists():
            raise OptionError(f"{place} is not there; if no row was late, nothing is to correct")
        files = sorted(place.rglob("*.parquet")) if place.is_dir() else [place]
        if not files:
            return pl.DataFrame()
        frame = pl.concat([pl.read_parquet(each) for each in files], how="diagonal")
    elif isinstance(given, pa.Table | pl.DataFrame):
        frame = pl.DataFrame(given)
    else:
        raise OptionError(f"give a table or a folder of Parquet files, not {type(given).__name__}")
    if stream is not None and STREAM in frame.columns:
        frame = frame.filter(pl.col(STREAM) == stream)
    return frame


def sql(text: str, /, **given: Any) -> Stream:
    """A query as text over named streams; what is given and is no stream is a parameter.

    ``lw.sql("SELECT count(*) FROM A UNION B [RANGE 1 minute, WA ts]", A=a, B=b)``
    """
    streams = {name: each._timed() for name, each in given.items() if isinstance(each, Stream)}
    values = {name: each for name, each in given.items() if name not in streams}
    for name, each in values.items():
        if hasattr(each, "columns") or hasattr(each, "schema"):
            raise OptionError(f"{name} is no stream; make it one: lw.stream({name}, time=...)")
    return Stream(plan_query(text, streams, values, _origin()))


def join(
    streams: Sequence[Stream],
    on: multi_join_builders.On = (),
    within: multi_join_builders.Windows | None = None,
    *,
    where: str | None = None,
    times: Sequence[str] | None = None,
    suffixes: Sequence[str] | None = None,
    order: Order | None = None,
    alpha: float | None = None,
    memory: Size | None = None,
    strategy: Strategy | None = None,
    accuracy: float | None = None,
    latency: Duration | None = None,
) -> Stream:
    """Rows, one of each stream, with equal ``on`` columns and times near each other.

    ``within="1 minute"``: no row is more than a minute before the latest of them.
    ``within=["1 minute", "10 seconds", 0]``: the same with a window for each stream. ``on`` takes
    names, or tuples of one name of each stream; a key of one name comes out once. Other columns
    whose names are taken get a suffix, ``"_2"`` for the second stream and so on, or ``suffixes``,
    one for each stream after the first. ``where`` is a condition on the columns that come out,
    ``times`` names the time columns to go by. Nothing is kept but rows of the streams. ``order``
    and ``alpha`` put results in the order of their times, the latest of each, and ``memory``,
    ``strategy``, ``accuracy`` and ``latency`` say how rows are kept without ``within``, as in
    :meth:`Stream.join`.
    """
    if isinstance(streams, Stream):
        raise OptionError("join takes a list of streams: lw.join([a, b, c], ...)")
    inputs = [_stream(each, "join")._timed() for each in streams]
    ordering = join_builders.ordering_of(order, alpha)
    options = options_of(memory, strategy, accuracy, latency)
    return Stream(
        multi_join_builders.joined_together(
            inputs, on, within, _condition(where), times, suffixes, _origin(), ordering, options
        )
    )


def _stream(value: object, where: str) -> Stream:
    if not isinstance(value, Stream):
        raise OptionError(f"{where} takes streams, not {type(value).__name__}")
    return value


def stream(
    source: Any,
    *,
    name: str | None = None,
    time: str | None = None,
    progress: Contract | Mapping[str, Contract] | None = None,
    unit: str = "s",
    stamp: Stamp = "external",
    channel: str | None = None,
    channels: Sequence[Hashable] = (),
    groups: str | Sequence[str] | None = None,
    idle: Idle | None = None,
    late: LatePolicy = "side",
    jump: Jump | None = jump("1 day"),  # noqa: B008
    punctuate: Generation | None = None,
    stale_after: Duration | None = None,
    update_key: str | Sequence[str] | None = None,
    schedule: Schedule | None = None,
    weights: Mapping[Hashable, float | Duration] | None = None,
    budget: Duration | None = None,
    complete_within: Duration | None = None,
    windows: Windows | None = None,
    expire: Duration | None = None,
    delete_when: str | None = None,
) -> Stream:
    """Declare a stream: where its rows come from and what their order can be relied on.

    ``time`` names the progressing column; ``progress`` is the promise about it (``lw.ordered()`` if
    not given, ``lw.unpromised()`` if there is none), or a mapping of columns to promises if several
    progress. The promise holds per ``channel``. ``unit`` is what an integer time column counts in.
    With ``stamp="internal"`` rows are stamped on entry, with ``stamp="latent"`` where an operator
    needs a time; ``time`` then names the column to make.

    ``stale_after`` sets a channel aside that is further than that behind most of the others, or
    that has sent nothing for so long while others have: it does not hold the stream back until it
    has caught up, and its rows below the stream's mark are late.

    ``update_key`` turns it into an update stream: each row replaces the last one of its key, and
    when rows come faster than they can be worked on, only the newest of each key is.
    ``schedule`` is which key is next: "in-place" the one that waits longest, "fifo" the one whose
    newest row does, "linecutting" keys that are rarely updated before others, "auto" one of these
    by how rates differ ("append" and "shedding" are what these are measured by: all rows, or a
    random share). ``weights`` says which keys count more, as numbers or as how often each is
    looked at, ``{"GOOG": "1 minute", "GM": "1 hour"}``. ``complete_within`` gives no row up as long
    as none has to wait longer. ``windows`` is which window of a key is next: the newest that is
    complete ("lazy") or that began ("eager"). ``budget`` is how much work a batch on Spark may
    hold. A key is kept for ever, unless ``expire`` says how long after its newest row, by the time
    of the stream, it is forgotten, or ``delete_when`` which rows say that their key is gone, a SQL
    condition such as ``"status = 'closed'"``.
    """
    options = {
        "schedule": schedule,
        "weights": weights,
        "budget": budget,
        "complete_within": complete_within,
        "windows": windows,
        "expire": expire,
        "delete_when": delete_when,
    }
    if update_key is None:
        given = next((name for name, value in options.items() if value is not None), None)
        if given is not None:
            raise OptionError(f"{given}= is for update streams; say update_key= too")
    node = declared(
        source,
        name=name,
        time=time,
        progress=progress,
        unit=unit,
        stamp=stamp,
        channel=channel,
        channels=channels,
        groups=groups,
        idle=idle,
        late=late,
        jump=jump,
        punctuate=punctuate,
        stale_after=stale_after,
        origin=_origin(),
    )
    found = Stream(node, time if stamp == "latent" else None)
    if update_key is None:
        return found
    by = updates_of(
        update_key, schedule, weights, budget, complete_within, windows, expire, delete_when
    )
    deletes = _condition(delete_when, DELETE_WHEN)
    return Stream(update_builders.updated(found._timed(), by, deletes, node.origin))
