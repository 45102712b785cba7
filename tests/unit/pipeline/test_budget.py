"""A memory budget that a pipeline file sets, or the command: all its queries share it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import lowwater as lw
from lowwater.engines.memory import MemoryBudget
from lowwater.joins.oblivious.memory_manager import MEMORY_BUDGET, MEMORY_SHARE
from lowwater.pipeline.run import PipelineRun, RunSettings
from lowwater.pipeline.text import BudgetOptions, load_text
from lowwater.plan.physical.costs import Rates
from tests.unit.running import LONG

STREAMS = "".join(
    f"CREATE STREAM {name} FROM 'generate:rate=100,seconds=40,scramble=100,unit=epoch,seed={at}'"
    f" PROGRESS UNPROMISED{facts} ON ts;"
    for at, (name, facts) in enumerate(
        [("A", ""), ("B", ""), ("C", " DISORDER 500 ROWS"), ("D", " DISORDER 500 ROWS")], 1
    )
).replace(",unit=epoch", "")
QUERIES = """
    SELECT A.ts, A.value, B.value AS v2 FROM A JOIN B USING (ts);
    SELECT C.ts, C.value, D.value AS v2 FROM C JOIN D USING (ts);
"""
THIRD = "SELECT A.ts, C.value FROM A JOIN C USING (ts) [ACCURACY 0.99];"


def run(text: str, folder: Path, **options: object) -> PipelineRun:
    pipeline = load_text(text)
    settings = RunSettings(output=folder, **options)  # type: ignore[arg-type]
    started = PipelineRun(pipeline, settings, console=lambda _: pytest.fail("no console"))
    assert started.wait(LONG)
    started.stop()
    return started


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("SET MEMORY = '1 GB';", MemoryBudget(10**9)),
        ("set memory to 64 MB; set admission to 'refuse';", MemoryBudget(64_000_000, "refuse")),
        ("SET MEMORY = 5000; SET ADMISSION = WARN;", MemoryBudget(5_000, "warn")),
        ("", None),
    ],
)
def test_a_file_sets_the_budget_of_all_its_queries(text: str, budget: MemoryBudget | None) -> None:
    assert load_text(text + STREAMS + QUERIES).memory == budget
    assert load_text(STREAMS + QUERIES + text).memory == budget


def test_a_parameter_may_be_the_budget_and_the_command_replaces_it() -> None:
    text = f"SET MEMORY = :most; SET ADMISSION = refuse; {STREAMS} {QUERIES}"
    assert load_text(text, values={"most": "2 kB"}).memory == MemoryBudget(2_000, "refuse")
    given = BudgetOptions("1 MB", "warn")
    found = load_text(text, values={"most": "2 kB"}, budget=given)
    assert found.memory == MemoryBudget(10**6, "warn")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SET MEMORY = '64 megs'", "'64 megs' is not an amount of memory"),
        ("SET MEMORY = '1 GB'; SET MEMORY = '2 GB'", "MEMORY is set twice"),
        ("SET MEMORY = 5; SET ADMISSION = maybe", "ADMISSION is WARN or REFUSE, not MAYBE"),
        ("SET MEMRY = 5", "SET takes MEMORY or ADMISSION. Did you mean MEMORY?"),
        ("SET MEMORY '1 GB'", "= is missing: SET MEMORY = '1 GB'"),
    ],
)
def test_what_is_set_wrongly_is_underlined(text: str, said: str) -> None:
    with pytest.raises(lw.ExpressionError) as raised:
        load_text(f"{text}; {STREAMS} {QUERIES}")
    assert said in str(raised.value)
    assert "^" in str(raised.value)


def test_a_budget_that_nothing_shares_is_refused() -> None:
    text = STREAMS + "SELECT ts FROM A"
    with pytest.raises(lw.OptionError, match="is divided over joins of equal times"):
        load_text(f"SET MEMORY = '1 GB'; {text}")
    with pytest.raises(lw.OptionError, match="admission= goes with memory="):
        load_text(f"SET ADMISSION = refuse; {STREAMS} {QUERIES}")


def test_queries_share_one_budget(tmp_path: Path) -> None:
    started = run(f"SET MEMORY = '90 kB'; {STREAMS} {QUERIES} {THIRD}", tmp_path)
    assert started.failed is None
    shares = []
    for query in started.progress().queries:
        for operator in query.metrics.operators:
            if MEMORY_SHARE in operator.readings:
                assert operator.readings[MEMORY_BUDGET] == 90_000
                shares.append(operator.readings[MEMORY_SHARE])
    assert len(shares) == 3
    assert all(each <= 90_000 for each in shares)


def test_a_query_that_does_not_fit_is_refused_with_its_name_before_any_runs(tmp_path: Path) -> None:
    rates = Rates({"C": 100.0, "D": 100.0})
    text = f"SET MEMORY = '30 kB'; SET ADMISSION = refuse; {STREAMS} {QUERIES}"
    with pytest.raises(lw.AdmissionError, match=r"^query 2, line 1: to be sure of 99"):
        run(text.replace("\n", " "), tmp_path, rates=rates)
    assert not list(tmp_path.rglob("*.parquet"))
    with pytest.raises(lw.OptionError, match="--rate goes with --memory"):
        run(STREAMS + QUERIES, tmp_path, rates=rates)


def test_the_command_takes_the_budget(tmp_path: Path) -> None:
    file = tmp_path / "shared.sql"
    file.write_text(STREAMS + QUERIES)

    def lowwater(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "lowwater", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    shown = lowwater(
        "explain", str(file), "--memory", "50 kB", "--rate", "C=100", "--rate", "D=100"
    )
    assert "of the 50 kB of all joins, divided by need; needs" in shown.stdout
    given = ("--memory", "30 kB", "--admission", "refuse", "--rate", "C=100", "--rate", "D=100")
    refused = lowwater("run", str(file), "--output", "out", *given)
    assert refused.returncode == 1
    assert "to be sure of 99.9 % of the results" in " ".join(refused.stderr.split())
