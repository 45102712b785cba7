"""Spark sessions are made here, or prepared if they are the user's; lowwater is sent to workers.

:func:`spark_session` is for users who have no session yet: it makes the settings with which small
batches are fast, and turns Spark's logging off.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import re
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from lowwater.engines.scratch import scratch_folder
from lowwater.engines.spark import check_spark_version, jvm, require_spark
from lowwater.errors import OptionError

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
_STATES = "org.apache.spark.sql.execution.streaming.state"
ROCKSDB = f"{_STATES}.RocksDBStateStoreProvider"
"""The only state store of Spark's that can keep the state of Python operators."""

_ROCKSDB_SETTINGS = "spark.sql.streaming.stateStore.rocksdb"
_HDFS_BACKED = f"{_STATES}.HDFSBackedStateStoreProvider"
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"

Setting = str | int | float | bool


def spark_session(
    master: str | None = None, app_name: str = "lowwater", **settings: Setting
) -> SparkSession:
    """Make a session with what lowwater needs and recommends, or get the one that runs.

    ``settings`` are Spark's own, ``**{"spark.driver.memory": "4g"}``; they replace those that are
    recommended. The default of ``master`` is Spark's configured one, else all cores of this
    machine.
    """
    require_spark()
    own = {name: _as_text(value) for name, value in settings.items()}
    if (master or "").startswith("sc://") or (master is None and "SPARK_REMOTE" in os.environ):
        session = _remote(master, app_name, own)
    elif SparkContext._active_spark_context is not None:
        session = _running(master, own)
    else:
        session = _made(master or own.get("spark.master") or _usual_master(), app_name, own)
    prepare_session(session)
    return session


def prepare_session(spark: SparkSession) -> None:
    """Make a session ready for a query, or refuse it with an error that names the setting.

    Settings that a query needs are made where the user has made none. It may be a session of Spark
    Connect.
    """
    check_spark_version(spark.version, "this session's")
    store = spark.conf.get(STATE_STORE, None)
    if store is None:
        _set(spark, STATE_STORE, ROCKSDB)
    elif store == _HDFS_BACKED:
        raise OptionError(
            f"{STATE_STORE} is set to {store.rpartition('.')[2]}, which cannot keep the state of"
            f" Python operators; use spark.conf.set({STATE_STORE!r}, {ROCKSDB!r})"
        )
    if _is_classic(spark) and _is_one_process(spark):
        _check_workers(spark.sparkContext.pythonExec)


def _set(spark: SparkSession, name: str, value: str) -> None:
    """Make a setting that a query needs; a pipeline's settings come from its specification."""
    if not set_if_allowed(spark, name, value):
        raise OptionError(
            f"put {name}: {value} under 'configuration' in the specification of the pipeline"
        )


def set_if_allowed(spark: SparkSession, name: str, value: str) -> bool:
    """Make a setting and return True; False in a declarative pipeline, which allows none."""
    try:
        spark.conf.set(name, value)
    except PySparkException as error:
        if not (error.getCondition() or "").startswith("SESSION_MUTATION_IN_DECLARATIVE_PIPELINE"):
            raise
        return False
    return True


def ship_package(spark: SparkSession) -> None:
    """Send lowwater to the workers of a cluster, once a session; it need not be installed there.

    Its dependencies (Polars, PyArrow, ...) have to be installed. So has lowwater on the machine of
    a Spark Connect server: a worker there, which gets no artifacts, sets up stateful stages.
    """
    classic = _is_classic(spark)
    if classic and _is_one_process(spark):
        return
    session = spark.sparkContext.applicationId if classic else spark.session_id  # type: ignore[attr-defined]
    if session in _shipped:
        return
    archive = str(package_archive())
    if classic:
        context = spark.sparkContext
        context.addPyFile(archive)
        # A stateful stage is set up by a worker next to the driver, which gets no files.
        paths = [archive, context.environment.get("PYTHONPATH")]
        context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    else:
        spark.addArtifact(archive, pyfile=True)
    _shipped.add(session)


_shipped: set[str] = set()


@cache
def package_archive() -> Path:
    """Return the installed package as a zip: the same bytes for the same code."""
    package = Path(__file__).resolve().parents[2]
    folder = scratch_folder("package")
    archive = folder / "lowwater.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for path in sorted(package.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                entry = zipfile.ZipInfo(str(path.relative_to(package.parent)))
                entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                target.writestr(entry, path.read_bytes())
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:12]
    return archive.rename(folder / f"lowwater-{digest}.zip")


def _made(master: str | None, app_name: str, own: dict[str, str]) -> SparkSession:
    settings = _recommended(master) | own
    builder = SparkSession.builder.appName(app_name).config(map={**settings})
    if master:
        builder = builder.master(master)
    start = SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ
    with jvm.environment(here=_is_here(master), start=start):
        session = builder.getOrCreate()
    atexit.register(_stop, session.sparkContext)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        # They write every error of a query with its Java stack, beside the error that is raised.
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    return session


def _stop(context: SparkContext) -> None:
    """Stop Spark before Python ends; workers whose JVM just disappears write tracebacks."""
    if SparkContext._active_spark_context is context:
        context.stop()


def _running(master: str | None, own: dict[str, str]) -> SparkSession:
    """Return the session that runs, with the user's own settings if they can still be made."""
    session = SparkSession.builder.getOrCreate()
    context = session.sparkContext
    if master and master != context.master:
        raise OptionError(
            f"a session on {context.master} is running; stop it before one on {master} is made"
        )
    for name, value in own.items():
        if value in (context.getConf().get(name), session.conf.get(name, None)):
            continue
        try:
            session.conf.set(name, value)
        except PySparkException as error:
            raise OptionError(
                f"{name} cannot be changed in a running session; stop that one first"
            ) from error
    return session


def _remote(master: str | None, app_name: str, own: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.appName(app_name).config(map={**own})
    return (builder.remote(master) if master else builder).getOrCreate()


def _recommended(master: str | None) -> dict[str, str]:
    settings = {
        STATE_STORE: ROCKSDB,
        # Each batch writes the changes of the state; the whole state is written now and then.
        f"{_ROCKSDB_SETTINGS}.changelogCheckpointing.enabled": "true",
        "spark.python.unix.domain.socket.enabled": "true",
        # A batch for Python ends at this many rows. A limit in bytes would be looked at after every
        # row, which costs more than the row.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
        # Every reader knows this type of times; Spark's default is also slower to write.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if _is_here(master):
        settings["spark.sql.streaming.checkpointFileManagerClass"] = (
            f"{_CHECKPOINTS}.FileSystemBasedCheckpointFileManager"
        )
        settings["spark.sql.shuffle.partitions"] = str(_cores(master or ""))
        # A file of some megabytes is split evenly over the cores, a smaller one not at all.
        settings["spark.sql.files.openCostInBytes"] = str(2**20)
        # The JVM shares its cores with Python workers, so it has the cheapest garbage collector.
        settings["spark.driver.extraJavaOptions"] = "-XX:+UseParallelGC"
    return settings


def _usual_master() -> str | None:
    """Return all cores of this machine, or None if Spark is configured and may have a master."""
    configured = ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME")
    return None if any(name in os.environ for name in configured) else "local[*]"


def _is_here(master: str | None) -> bool:
    return master is not None and master.startswith("local")


def on_one_machine(spark: SparkSession) -> bool:
    """Return whether driver and workers are known to share a machine, and so its files."""
    return _is_classic(spark) and (spark.sparkContext.master or "").startswith("local")


def _is_one_process(spark: SparkSession) -> bool:
    master = spark.sparkContext.master or ""
    return master.startswith("local") and not master.startswith("local-cluster")


def _cores(master: str) -> int:
    cluster = re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master)
    if cluster:
        return int(cluster[1]) * int(cluster[2])
    some = re.match(r"local\[\s*(\d+|\*)", master)
    if some and some[1] == "*":
        return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return int(some[1]) if some else 1


def _is_classic(spark: SparkSession) -> bool:
    return isinstance(spark, SparkSession)


@cache
def _check_workers(python: str) -> None:
    """Refuse a Python for workers on this machine that cannot import lowwater."""
    found = shutil.which(python)
    if found and Path(found).parent == Path(sys.executable).parent:
        return
    if python == jvm.worker_python():
        return
    probe = [found or python, "-c", "import lowwater, pandas, google.protobuf"]
    if found:
        tried = subprocess.run(probe, capture_output=True, text=True, check=False)
        if tried.returncode == 0:
            return
    reason = tried.stderr.strip().rpartition("\n")[2] if found else "there is no such program"
    raise OptionError(
        f"Spark's workers would run {found or python}: {reason}."
        f" Set PYSPARK_PYTHON={sys.executable} before the session is made"
    )


def _as_text(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
