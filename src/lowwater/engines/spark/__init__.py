"""The Spark engine runs the same kernels in Structured Streaming.

This module loads without PySpark, so that it can name the packages that are missing.
"""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec

from lowwater.errors import OptionError

OLDEST_SPARK = (4, 3)
"""The first version of Spark on which the engine runs."""

INSTALL = "pip install 'lowwater[spark]'"

_MODULES = {
    "pyspark": "pyspark",
    "pandas": "pandas",
    "google.protobuf": "protobuf",
    "cloudpickle": "cloudpickle",
}
"""The modules that the engine imports, each with the package it comes in."""


def require_spark() -> None:
    """Refuse to run if a package that the engine needs is missing or too old; the error says what
    to install."""
    missing = [package for module, package in _MODULES.items() if not _installed(module)]
    if missing:
        raise OptionError(
            f"the Spark engine needs {' and '.join(missing)}, not installed here: {INSTALL}"
        )
    check_spark_version(import_module("pyspark").__version__, "PySpark here")


def check_spark_version(number: str, whose: str) -> None:
    """Refuse a version of Spark that is too old."""
    if tuple(int(part) for part in re.findall(r"\d+", number)[:2]) < OLDEST_SPARK:
        oldest = ".".join(map(str, OLDEST_SPARK))
        raise OptionError(
            f"the Spark engine needs Spark {oldest} or newer; {whose} is {number}: {INSTALL}"
        )


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
