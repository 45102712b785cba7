"""Every example is run, on both engines: it checks its own answer, and says what it showed."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "examples"
ON_SPARK_ONLY = FOLDER / "packets_on_spark.py"
EXAMPLES = sorted(set(FOLDER.glob("*.py")) - {ON_SPARK_ONLY})
ALONE = [FOLDER / "sensor_location.py", ON_SPARK_ONLY]


def _name(path: Path) -> str:
    return path.stem


def _loaded(path: Path) -> ModuleType:
    """The program as a module that nobody else can import, so its functions go to Spark whole."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _says_what_it_showed(printed: str) -> bool:
    last = printed.rstrip().rpartition("\n")[2]
    return last.endswith(".") and re.search(r"\d", last) is not None


@pytest.mark.parametrize("path", EXAMPLES, ids=_name)
def test_example_shows_what_it_says_in_one_process(path, capsys):
    assert _loaded(path).main() == 0
    assert _says_what_it_showed(capsys.readouterr().out)


@pytest.mark.parametrize("path", EXAMPLES, ids=_name)
def test_example_shows_what_it_says_on_spark(path, spark, capsys):
    del spark  # it is the session that runs
    assert _loaded(path).main("spark") == 0
    assert _says_what_it_showed(capsys.readouterr().out)


@pytest.mark.xdist_group("apart")
@pytest.mark.parametrize("path", ALONE, ids=_name)
def test_example_is_a_program_that_warns_of_nothing(path, tmp_path, monkeypatch):
    monkeypatch.setenv("LOWWATER_DEMO_SECONDS", "8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert done.stdout.rstrip().endswith(".")


def test_list_of_examples_names_every_one():
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in FOLDER.iterdir() if path.name not in listed] == ["README.md"]
