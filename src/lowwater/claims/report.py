"""Runs claims and reports them: a table for people, a CSV and a plot per claim, one line of JSON.

A claim whose run fails is reported as such. It takes none of the others with it.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from lowwater.claims.claim import Claim, Outcome, Plot
from lowwater.claims.drawing import drawn, told
from lowwater.claims.result import Picture, Result, Verdict
from lowwater.errors import LowwaterError

LOOKS: dict[Verdict, str] = {"holds": "green", "does not hold": "bold red", "failed": "bold red"}


def need_matplotlib() -> None:
    """Fail, before any work is done, if plots cannot be drawn."""
    try:
        import matplotlib as mpl  # noqa: F401, PLC0415
    except ImportError as error:
        raise LowwaterError(
            "plots of claims need matplotlib, which is not installed:"
            " install lowwater[claims], for example with pip install 'lowwater[claims]'"
        ) from error


def attempt(claim: Claim, quick: bool, folder: Path) -> Result:
    """Run a claim and leave its files; what it raises is part of the result."""
    begun = time.perf_counter()
    try:
        outcome = claim.run(quick)
        picture = save(claim, outcome, folder)
    except Exception:
        return Result(claim, time.perf_counter() - begun, error=traceback.format_exc())
    return Result(claim, time.perf_counter() - begun, outcome, picture)


def save(claim: Claim, outcome: Outcome, folder: Path) -> Picture:
    """Write the measured points as CSV and draw them beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    outcome.table.write_csv(folder / f"{claim.id}.csv")
    path = folder / f"{claim.id}.png"
    return Picture(path, draw(outcome.plot, path))


def draw(plot: Plot, path: Path) -> str:
    """Draw a plot into a PNG file; gives what is written above and below it."""
    need_matplotlib()
    return told(drawn(plot, path))


def line(result: Result) -> str:
    """One claim that is done, with markup for a terminal."""
    look = LOOKS[result.verdict]
    begin = f"{result.claim.id} [{look}]{result.verdict}[/{look}] ({result.seconds:.1f} s)"
    if result.picture is None:
        return f"{begin}: {escape(result.ours)}"
    return f"{begin}: {result.picture.path.with_suffix('.csv')}, {result.picture.path}"


def table(results: Sequence[Result]) -> Table:
    """Ours beside the paper's."""
    view = Table(title="Claims", show_lines=True, title_justify="left")
    view.add_column("id", no_wrap=True)
    view.add_column("the paper's", ratio=3)
    view.add_column("ours must show", ratio=2)
    view.add_column("ours", ratio=4)
    view.add_column("holds", justify="center", no_wrap=True)
    for each in results:
        claim, look = each.claim, LOOKS[each.verdict]
        said = {"holds": "yes", "does not hold": "no", "failed": "failed"}[each.verdict]
        texts = (claim.id, claim.paper, claim.expects, each.ours)
        view.add_row(*map(escape, texts), f"[{look}]{said}[/{look}]")
    return view


def listed(claims: Sequence[Claim]) -> Table:
    """Claims by name, none of them run."""
    view = Table(title="Claims", title_justify="left")
    view.add_column("id", no_wrap=True)
    view.add_column("paper", no_wrap=True)
    view.add_column("what is measured")
    for claim in claims:
        view.add_row(*map(escape, (claim.id, claim.source, claim.title)))
    return view


def as_json(results: Sequence[Result]) -> str:
    """One line: how many held, how many did not, and each row."""
    rows = [
        {
            "id": each.claim.id,
            "paper": each.claim.paper,
            "ours": each.ours,
            "holds": each.verdict == "holds",
        }
        for each in results
    ]
    held = sum(each.verdict == "holds" for each in results)
    return json.dumps({"held": held, "failed": len(results) - held, "rows": rows})
