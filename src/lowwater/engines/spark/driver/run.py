"""A run on Spark is one Structured Streaming query, watched until it ends."""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame

from lowwater.engines.admission import query_memory
from lowwater.engines.answers import Answers
from lowwater.engines.run import STOP_SECONDS, Run, RunOptions
from lowwater.engines.scratch import scratch_folder
from lowwater.engines.spark.driver.answer_table import CommittedAnswers
from lowwater.engines.spark.driver.checkpoint_folder import (
    LockedFolders,
    about_checkpoint,
    folder_of,
)
from lowwater.engines.spark.driver.dataframe import Built, build
from lowwater.engines.spark.driver.reports import Reports
from lowwater.engines.spark.driver.written_files import (
    has_log,
    last_written,
    read_in_order,
    read_written,
)
from lowwater.engines.spark.wire.errors import translate
from lowwater.engines.spark.wire.late_files import (
    last_refused,
    late_folder,
    late_folder_of,
    read_refused,
)
from lowwater.engines.spark.wire.types import taken_back
from lowwater.engines.spark.worker import cache, hints
from lowwater.errors import OptionError, StreamError, StreamWarning
from lowwater.metrics import RunMetrics
from lowwater.plan.physical.answers import answer_shape
from lowwater.plan.physical.operator import PhysicalPlan
from lowwater.progress.late import LateAccount, SideOutput
from lowwater.sinks import Folder, LastRows, SinkCall
from lowwater.stream.duration import nanoseconds
from lowwater.stream.floor import Floor
from lowwater.updates.options import Key

POLL = 0.05
"""Seconds between two checks of a query."""
AVAILABLE_NOW = "available-now"
TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
"""The format of times in text files."""
ZONE = "XXX"
"""The format of the zone after a time, as in +01:00."""
STOPPED = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling toArrow:"
    " java.lang.InterruptedException: the run is being stopped"
)
"""The text by which Spark recognizes a batch that was interrupted on purpose. The original error
has it too, but Spark searches it in a way that overflows its stack when it is long."""


def prepare_spark(plan: PhysicalPlan, options: RunOptions) -> SparkRun:
    """Set a plan up as a query on Spark."""
    return SparkRun(plan, options)


class SparkRun(Run):
    """A query on Spark."""

    def __init__(self, plan: PhysicalPlan, options: RunOptions):
        if options.charge != "nothing":
            raise OptionError("charge= is for the virtual clock of the embedded engine")
        if options.memory is not None:
            query_memory(plan, options.memory, None, options.rates, options.label)
        super().__init__(plan, SinkCall(), options.sink is None)
        self._plan, self._options = plan, options
        folder = _run_folder(options)
        self._checkpoint = folder / "checkpoint" if options.checkpoint is None else folder
        late = late_folder(options.late_sink, str(folder / "late"))
        assert late is not None
        self._late = late
        self._results_folder = folder / "results"
        self._folders: LockedFolders | None = None
        answers = folder / "answers"
        self._built = build(plan, options, self._late, answers=str(answers))
        shape = answer_shape(plan)
        kept = shape is not None and self._built.answers is not None
        self._newest = CommittedAnswers(shape, answers) if kept and shape is not None else None
        self._reports = Reports(plan, self._built.program, options.memory)
        self._trigger = self._chosen_trigger()
        self._last = LastRows(options.keep_last)
        self._query: Any = None
        self._stopping = False
        self._noted: set[str] = set()
        self._gathering = threading.Lock()

    @property
    def query(self) -> Any:
        """Spark's own handle on the query."""
        return self._query

    # ---- starting and ending ---------------------------------------------------------------

    def _chosen_trigger(self) -> dict[str, Any]:
        given = self._options.trigger
        logs_only = all(source.ordered for source in self._built.program.sources)
        if given is None:
            return {"availableNow": True} if logs_only or self._options.to_end else {}
        if given == AVAILABLE_NOW:
            return {"availableNow": True}
        try:
            length = nanoseconds(given, "trigger")
            return {"processingTime": f"{length // 1_000_000} milliseconds"}
        except OptionError:
            raise OptionError(
                f"trigger= is a length of time such as '1 second', or {AVAILABLE_NOW!r},"
                f" not {given!r}"
            ) from None

    def start(self) -> Self:
        """Run in the background."""
        hints.FOLDERS.sweep()
        self._folders = LockedFolders(self._options, self._checkpoint, self._results_folder)
        try:
            if self._newest is not None:
                self._newest.begin(self._folders.progress)
            self._query = self._begin(self._built)
        except BaseException:
            self._folders.release()
            raise
        return super().start()

    def _begin(self, built: Built) -> Any:
        writer = built.dataframe.writeStream.outputMode("append")
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        if self._trigger:
            writer = writer.trigger(**self._trigger)
        sink = self._options.sink
        try:
            if sink is None:
                return writer.format("parquet").option("path", str(self._results_folder)).start()
            folder = folder_of(sink)
            if folder is not None:
                return _writing(writer, folder).start()
            return writer.foreachBatch(self._handing(sink)).start()
        except Exception as error:
            raise self._translated(error)  # noqa: B904 (its cause is set)

    def _translated(self, error: BaseException) -> BaseException:
        """Return the error of ours for one of Spark's."""
        assert self._folders is not None
        fresh = self._folders.progress.fresh
        return about_checkpoint(translate(error), self._checkpoint, fresh)

    def _handing(self, sink: Any) -> Callable[[DataFrame, int], None]:
        """Return the function that Spark calls for each batch: it hands the rows to the sink, a
        function or an object with ``write``."""
        if not callable(sink) and not hasattr(sink, "write"):
            raise OptionError(
                f"sink= is a folder, a function of a pyarrow table, or an object with write and"
                f" close, not {type(sink).__name__}"
            )

        def hand(batch: DataFrame, number: int) -> None:
            del number
            try:
                table = batch.toArrow()
            except Exception:
                if self._stopping:
                    raise RuntimeError(STOPPED) from None
                raise
            if table.num_rows:
                self._last.add(pl.DataFrame(table))
                with self._sink_call.during(sink, table.num_rows):
                    if callable(sink):
                        sink(table)
                    else:
                        sink.write(pl.from_arrow(table))

        return hand

    def _work(self) -> None:
        try:
            self._await_query()
            if self._options.to_end and not self._stopping:
                self._finish_sources()
        except Exception as error:
            self._error = self._translated(error)
        finally:
            assert self._folders is not None
            self._folders.release()
        with contextlib.suppress(Exception):
            self._gather()
            if self._newest is not None:
                self._newest.end()
            for folders in (hints.FOLDERS, cache.FOLDERS):
                folders.forget(str(self._query.runId))

    def _await_query(self) -> None:
        finite = self._built.live and not self._reports.unending
        while not self._query.awaitTermination(POLL):
            self._gather()
            if self._reports.refusal is not None:
                self._query.stop()
                raise self._reports.refusal
            if finite and self._reports.all_ended and not self._query.status["isTriggerActive"]:
                self._query.stop()  # between two batches: nothing has to be torn down
                break
        self._gather()
        if self._reports.refusal is not None:
            raise self._reports.refusal

    def _finish_sources(self) -> None:
        """End the sources that have no end of their own, in a query of one batch."""
        if all(source.ordered for source in self._built.program.sources):
            return
        answers = self._built.answers
        closing = build(self._plan, self._options, self._late, end=True, answers=answers)
        self._reports.begin_again()
        self._query = self._begin(closing)
        self._await_query()

    def _gather(self) -> None:
        """Take the reports of the batches since the last call."""
        with self._gathering:
            for progress in self._query.recentProgress:
                self._reports.take(progress)
                if self._newest is not None:
                    self._newest.fold(int(progress.batchId))

    def _interrupt(self) -> None:
        self._stopping = True
        if self._query is None:
            return
        stopping = threading.Thread(target=self._stop_query, daemon=True)
        stopping.start()
        while stopping.is_alive() and self._sink_call.blocked(STOP_SECONDS) is None:
            stopping.join(POLL)
        if not stopping.is_alive():
            self._thread.join()

    def _stop_query(self) -> None:
        try:
            self._query.stop()
        except Exception as error:
            self._error = self._error or translate(error)

    def process_all_available(self) -> None:
        """Wait until all rows that are there now have been processed."""
        try:
            self._query.processAllAvailable()
        except Exception as error:
            raise translate(error)  # noqa: B904 (its cause is set)
        self._gather()

    def _raise(self) -> None:
        for note in self._reports.notes:
            if note not in self._noted:
                self._noted.add(note)
                warnings.warn(note, StreamWarning, stacklevel=3)
        super()._raise()

    def _forget(self, floor: Floor) -> None:
        raise OptionError(
            "forget_before() of a run is for the embedded engine: on Spark a batch that is run"
            " again must give the same. Stop the run, and start the query with .forget_before(...)"
            " on the same checkpoint; it goes on from there"
        )

    # ---- results and metrics ---------------------------------------------------------------

    def _results(self) -> pa.Table:
        if not has_log(self._results_folder):
            return pl.DataFrame(schema=self._schema).to_arrow()
        read = read_written if self._plan.order is None else read_in_order
        rows = read(self._built.session, self._results_folder)
        return taken_back(rows, self._schema).to_arrow()

    def _answers(self, key: Key | None) -> Answers:
        if self._newest is None:
            raise OptionError(
                "the newest answers are kept in files that all machines of the cluster write:"
                " give checkpoint= a folder that all of them can see"
            )
        if self._query is not None:
            self._gather()
        goes_on = self.active and any(each.hurried for each in self._built.program.stages)
        return self._newest.answers(time.time_ns() if goes_on else None)

    def last_rows(self) -> pl.DataFrame:
        """Return the last answers, the newest last, at most ``keep_last`` of them."""
        sink = self._options.sink
        folder = Folder(self._results_folder) if sink is None else folder_of(sink)
        if folder is None:
            return self._last.table()
        return last_written(folder, self._options.keep_last)

    def last_late_rows(self, stream: str) -> pl.DataFrame:
        """Return the last late rows of a stream, at most ``keep_last`` of them."""
        folder = late_folder_of(self._late, stream)
        if folder is None:
            return pl.DataFrame()
        return last_refused(folder, stream, self._options.keep_last)

    def _late_rows(self, stream: str) -> pa.Table:
        spec = next(each.spec for each in self._plan.sources if each.spec.name == stream)
        empty = SideOutput(spec, LateAccount(stream)).empty()
        folder = late_folder_of(self._late, stream)
        found = read_refused(folder, stream) if folder is not None else None
        return (empty if found is None else pl.concat([empty, found], how="diagonal")).to_arrow()

    def metrics(self) -> RunMetrics:
        """Return the metrics so far."""
        if self._query is None:
            raise StreamError("the run has not been started")
        self._gather()
        with self._gathering:  # the reports of the next batch may come meanwhile
            return self._reports.metrics()


def _run_folder(options: RunOptions) -> Path:
    """Return the folder of a run: its checkpoint's, or a temporary one of this process."""
    if options.checkpoint is not None:
        return Path(str(options.checkpoint)).absolute()
    return scratch_folder("run")


def _writing(writer: Any, folder: Folder) -> Any:
    """Return a writer of files as the embedded engine writes them; each format ignores the options
    of others."""
    return writer.format(folder.format).options(
        path=str(folder.path.absolute()),
        header=True,
        ignoreNullFields=False,
        timestampNTZFormat=TIME,
        timestampFormat=f"{TIME}{ZONE}",
    )
