"""Errors of workers arrive as they were raised, whatever Spark wraps around them."""

from __future__ import annotations

import traceback
from datetime import UTC, date, datetime, timedelta

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming import StatefulProcessor

from lowwater import errors
from lowwater.engines.spark.wire.errors import carried, carrying, translate
from lowwater.errors import (
    BadInput,
    BrokenPromise,
    ExpressionError,
    LowwaterError,
    OperatorError,
    SinkError,
    StreamError,
)

STREAM_FAILED = """\
[STREAM_FAILED] Query [id = c4d0, runId = 272a] terminated with exception: {} SQLSTATE: XXKST
=== Streaming Query ===
Identifier: q [id = c4d0, runId = 272a]
Current State: ACTIVE

Logical Plan:
WriteToMicroBatchDataSource MemorySink [NOT_AN_ERROR] at all
"""


def worker_text(error: BaseException) -> str:
    """How a worker's error reads inside Spark's."""
    told = "".join(traceback.format_exception(error))
    return (
        "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: "
        f"{told} SQLSTATE: 38000\n\tat org.apache.spark.api.python.BasePythonRunner.read(P.scala:9)"
    )


def raised(error: BaseException) -> BaseException:
    """The error, as it is after it was raised and caught."""
    try:
        raise error
    except BaseException as caught:
        return caught


def through_spark(error: BaseException) -> BaseException:
    return translate(PySparkException(STREAM_FAILED.format(worker_text(raised(error)))))


def noted(error: LowwaterError, *notes: str) -> LowwaterError:
    for note in notes:
        error.add_note(note)
    return error


PROMISE = BrokenPromise(
    "stream 'a': a row has ts = 5\nand more", stream="a", channel=("x", 1), time=5, mark=None
)


@pytest.mark.parametrize(
    "error",
    [
        noted(PROMISE, "in window (query.py:3)", "and\nagain"),
        BadInput("no time: ü “quoted” <tag> SQLSTATE: 1 === Streaming Query ==="),
        OperatorError("select x (a.py:1)", ZeroDivisionError("division by zero")),
        ExpressionError("unknown column", "a +\nbb", line=2, column=1, length=2),
        SinkError(""),
    ],
    ids=lambda error: type(error).__name__,
)
def test_error_is_the_same_after_the_way_through_spark(error):
    back = through_spark(carried(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert back.__dict__ == error.__dict__
    assert back.__cause__ is None
    assert back.__suppress_context__


def test_every_error_class_can_be_carried():
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    for kind in (each for each in kinds if issubclass(each, LowwaterError)):
        assert type(through_spark(carried(kind.__new__(kind, "told")))) is kind


def test_class_derived_from_ours_comes_back_as_ours():
    class Special(BadInput):
        pass

    assert type(through_spark(carried(Special("odd")))) is BadInput


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        "text",
        datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        date(2024, 1, 2),
        timedelta(seconds=1.5),
        ["a", ("b", 2)],
    ],
)
def test_fields_keep_their_types(value):
    error = BrokenPromise("told", stream="s", channel=value, time=value, mark=None)
    assert through_spark(carried(error)).channel == value


def test_field_of_any_other_type_becomes_text():
    error = BrokenPromise("told", stream="s", channel={"a"}, time=None, mark=None)
    assert through_spark(carried(error)).channel == "{'a'}"


def test_carrying_lets_other_errors_pass():
    with pytest.raises(RuntimeError, match="BadInput: told") as ours, carrying():
        raise BadInput("told")
    assert isinstance(ours.value.__cause__, BadInput)
    with pytest.raises(KeyError, match="other"), carrying():
        raise KeyError("other")


def test_innermost_error_survives_being_wrapped_twice():
    inner = noted(BadInput("told"), "a note")
    wrapped = OperatorError("select", raised(carried(inner)))
    for error in (carried(wrapped), RuntimeError(str(carried(wrapped))), wrapped):
        back = through_spark(error)
        assert (type(back), str(back), back.__notes__) == (BadInput, "told", ["a note"])


def test_translated_error_stays_what_it_is():
    back = through_spark(carried(BadInput("told")))
    assert translate(back) is back
    interrupt = KeyboardInterrupt()
    assert translate(interrupt) is interrupt


def test_error_in_a_cause_is_found():
    outer = PySparkException("Job aborted")
    outer.__cause__ = PySparkException(worker_text(raised(carried(BadInput("told")))))
    assert isinstance(translate(outer), BadInput)


def test_error_of_ours_that_was_not_carried_keeps_class_and_message():
    back = through_spark(BadInput("first line\nsecond line"))
    assert (type(back), str(back)) == (BadInput, "first line\nsecond line")


def test_damaged_mark_is_left_alone():
    assert str(through_spark(ValueError("<lowwater-error AAAA>"))).startswith("ValueError: <low")


def test_foreign_python_error_is_told_in_one_line():
    try:
        try:
            raise KeyError("first")
        except KeyError as error:
            raise ValueError("boom here\nsecond line") from error
    except ValueError as error:
        spark_error = PySparkException(STREAM_FAILED.format(worker_text(error)))
    trouble = translate(spark_error)
    assert (type(trouble), str(trouble)) == (StreamError, "ValueError: boom here")
    assert trouble.__cause__ is spark_error


def test_missing_module_in_a_worker_says_what_to_set():
    trouble = through_spark(ModuleNotFoundError("No module named 'polars'"))
    assert "PYSPARK_PYTHON" in trouble.__notes__[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] No such thing. SQLSTATE: 58030",
            "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] No such thing.",
        ),
        (
            "Job aborted due to stage failure: Lost task 0.0: java.lang.OutOfMemoryError: heap\n"
            "\tat java.base/java.util.Arrays.copyOf(Arrays.java:1)\n\nDriver stacktrace:",
            "Job aborted due to stage failure: Lost task 0.0: java.lang.OutOfMemoryError: heap",
        ),
    ],
)
def test_error_of_spark_itself_is_told_by_its_condition(text, message):
    assert str(translate(PySparkException(STREAM_FAILED.format(text)))) == message


def test_error_without_words_is_told_by_its_class():
    assert str(translate(ValueError())) == "ValueError"


# ---- on a real Spark -------------------------------------------------------------------------


class Failing(StatefulProcessor):
    """A stage that fails as it is told."""

    def __init__(self, error):
        self._error = error

    def init(self, handle):
        """Keep nothing."""

    def handleInputRows(self, key, rows, timerValues):
        """Fail."""
        with carrying():
            raise self._error
        yield pd.DataFrame()

    def close(self):
        """Do nothing."""


class FailingReader(DataSourceStreamReader):
    """A source that fails where it is told to."""

    def __init__(self, where):
        self._where = where

    def initialOffset(self):
        """The beginning."""
        return {"at": 0}

    def latestOffset(self):
        """Fail, or go on."""
        with carrying():
            if self._where == "offset":
                raise noted(BadInput("in the offset"), "a note")
        return {"at": 1}

    def partitions(self, start, end):
        """One."""
        return [InputPartition(0)]

    def read(self, partition):
        """Fail."""
        with carrying():
            raise noted(BadInput("in the read"), "a note")
        yield (0,)


class FailingSource(DataSource):
    """Hands the reader out."""

    @classmethod
    def name(cls):
        """Its name for Spark."""
        return "failing"

    def schema(self):
        """One column."""
        return "id long"

    def streamReader(self, schema):
        """The reader."""
        return FailingReader(self.options["where"])


def run(stream, folder, function=None):
    """Run a stream to its end, and give back what it fails with, translated."""
    writer = stream.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    writer = writer.foreachBatch(function) if function else writer.format("noop")
    query = writer.outputMode("append").trigger(availableNow=True).start()
    with pytest.raises(PySparkException) as failure:
        query.awaitTermination()
    return translate(failure.value)


@pytest.fixture
def numbers(spark, tmp_path):
    spark.range(4, numPartitions=1).write.parquet(str(tmp_path / "rows"))
    return spark.readStream.schema("id long").parquet(str(tmp_path / "rows"))


def test_error_of_a_stateful_stage(numbers, tmp_path):
    error = noted(PROMISE)
    stage = numbers.groupBy("id").transformWithStateInPandas(
        Failing(error), "id long", "Append", "None"
    )
    back = run(stage, tmp_path)
    assert (type(back), str(back), back.__dict__) == (BrokenPromise, str(error), error.__dict__)


@pytest.mark.parametrize("where", ["offset", "read"])
def test_error_of_a_python_source(spark, tmp_path, where):
    spark.dataSource.register(FailingSource)
    back = run(spark.readStream.format("failing").option("where", where).load(), tmp_path)
    assert (type(back), str(back)) == (BadInput, f"in the {where}")
    assert back.__notes__ == ["a note"]


def test_error_of_a_sink_that_is_a_function(numbers, tmp_path):
    def refuse(rows, number):
        raise SinkError("not today")

    back = run(numbers, tmp_path, refuse)
    assert (type(back), str(back)) == (SinkError, "not today")


def test_error_of_a_batch_query(spark):
    def fail(batches):
        with carrying():
            raise BadInput("told")
        yield pa.RecordBatch.from_pydict({})

    with pytest.raises(PySparkException) as failure:
        spark.range(1).mapInArrow(fail, "id long").collect()
    assert str(translate(failure.value)) == "told"


def test_foreign_error_of_a_worker(spark):
    def fail(batches):
        yield pa.RecordBatch.from_pydict({"id": [1 // 0]})

    with pytest.raises(PySparkException) as failure:
        spark.range(1).mapInArrow(fail, "id long").collect()
    assert str(translate(failure.value)).startswith("ZeroDivisionError: ")
