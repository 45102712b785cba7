"""Reports of claims: a table for people, a CSV and a plot per claim, one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from lowwater.claims.claim import Claim, Outcome, Plot
from lowwater.claims.drawing import drawn
from lowwater.errors import LowwaterError

Judged = Sequence[tuple[Claim, Outcome]]
"""Claims with what their runs measured."""


def need_matplotlib() -> None:
    """Fail, before any work is done, if plots cannot be drawn."""
    try:
        import matplotlib as mpl  # noqa: F401, PLC0415
    except ImportError as error:
        raise LowwaterError(
            "plots of claims need matplotlib, which is not installed:"
            " install lowwater[claims], for example with pip install 'lowwater[claims]'"
        ) from error


def save(claim: Claim, outcome: Outcome, folder: Path) -> tuple[Path, Path]:
    """Write the measured points as CSV and draw them; gives both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    points, picture = folder / f"{claim.id}.csv", folder / f"{claim.id}.png"
    outcome.table.write_csv(points)
    draw(outcome.plot, picture)
    return points, picture


def draw(plot: Plot, path: Path) -> None:
    """Draw a plot into a PNG file."""
    need_matplotlib()
    drawn(plot).savefig(path, dpi=130)


def table(judged: Judged) -> Table:
    """Ours beside the paper's."""
    view = Table(title="Claims", show_lines=True, title_justify="left")
    view.add_column("id", no_wrap=True)
    view.add_column("the paper's", ratio=3)
    view.add_column("ours must show", ratio=2)
    view.add_column("ours", ratio=4)
    view.add_column("holds", justify="center", no_wrap=True)
    for claim, outcome in judged:
        verdict = "[green]yes[/green]" if outcome.holds else "[bold red]no[/bold red]"
        texts = (claim.id, claim.paper, claim.expects, outcome.ours)
        view.add_row(*map(escape, texts), verdict)
    return view


def as_json(judged: Judged) -> str:
    """One line: how many held, how many did not, and each row."""
    rows = [
        {"id": claim.id, "paper": claim.paper, "ours": outcome.ours, "holds": outcome.holds}
        for claim, outcome in judged
    ]
    held = sum(outcome.holds for _, outcome in judged)
    return json.dumps({"held": held, "failed": len(judged) - held, "rows": rows})
