"""How the processes that Spark starts for us end."""

from __future__ import annotations

import subprocess
import sys

ENDING = """
import sys, traceback
import pyspark_lowwater
try:
    raise {error}
except Exception:
    traceback.print_exc()
raise {error}
"""


def ended(error: str) -> str:
    """What a process writes that met an error twice: once it was caught, once not."""
    program = [sys.executable, "-c", ENDING.format(error=error)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return done.stderr


def test_a_process_that_is_put_away_while_it_writes_says_nothing():
    assert ended("BrokenPipeError(32, 'Broken pipe')") == ""


def test_other_errors_are_shown():
    assert ended("ValueError('wrong')").count("ValueError: wrong") == 2


def test_what_spark_finds_loads_next_to_nothing():
    program = (
        "import pyspark_lowwater, sys; print({'polars', 'pyarrow', 'pandas'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
