"""A report has a table for people, a CSV file and a plot per claim, and one line of JSON.

A claim holds, does not hold, or its run fails; the other claims are run all the same.
"""

from __future__ import annotations

import json
import os
import platform
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from rich.markup import escape
from rich.table import Table

import lowwater
from lowwater.claims.claim import NOT, Claim, Outcome
from lowwater.claims.drawing import caption_of, drawn
from lowwater.errors import LowwaterError

Verdict = Literal["holds", "does not hold", "failed"]
LIBRARIES = ("polars", "numpy", "matplotlib")


@dataclass(frozen=True)
class Picture:
    """The plot of a claim."""

    path: Path
    text: str
    """The text above and below the plot, for readers who do not see the picture."""


@dataclass(frozen=True)
class Result:
    """The result of a claim's run: an outcome and its plot, or an error."""

    claim: Claim
    seconds: float
    outcome: Outcome | None = None
    picture: Picture | None = None
    error: str = ""
    """The traceback of the error; empty if there was none."""

    @property
    def verdict(self) -> Verdict:
        """The verdict: the claim holds, does not hold, or its run failed."""
        if self.outcome is None:
            return "failed"
        return "holds" if self.outcome.holds else "does not hold"

    @property
    def ours(self) -> str:
        """The measured figure, or the error that the run failed with."""
        if self.outcome is None:
            return f"the run failed: {self.error.strip().splitlines()[-1]}"
        return self.outcome.ours

    @property
    def reason(self) -> str:
        """The reason why it does not hold; all of ``ours`` if it gives none."""
        return self.ours.partition(NOT)[2] or self.ours


@dataclass(frozen=True)
class Circumstances:
    """The circumstances of a run of claims."""

    quick: bool
    claims: Sequence[Claim]
    """The claims that were chosen, whether run yet or not."""
    begun: datetime = field(default_factory=lambda: datetime.now().astimezone())

    def again(self, claim: Claim) -> str:
        """Return the command that repeats a claim."""
        return f"lowwater claims {claim.id}" + (" --quick" if self.quick else "")

    def facts(self) -> dict[str, str]:
        """Return the facts that a reader needs to compare figures, by name."""
        return {
            "variant": "quick: smaller rates and durations" if self.quick else "full",
            "begun": f"{self.begun:%Y-%m-%d %H:%M %Z}",
            "cores": str(os.cpu_count()),
            "machine": f"{platform.system()} {platform.machine()}",
            "versions": ", ".join(
                (
                    f"lowwater {lowwater.__version__}",
                    f"Python {platform.python_version()}",
                    *(f"{name} {version(name)}" for name in LIBRARIES),
                )
            ),
        }


def tally(results: Sequence[Result]) -> str:
    """Return in one line how many hold, and which do not."""
    by: dict[Verdict, list[str]] = {"holds": [], "does not hold": [], "failed": []}
    for each in results:
        by[each.verdict].append(each.claim.id)
    held, broken, failed = by.values()
    parts = [f"{len(held)} of {len(results)} claims hold"]
    if broken:
        parts.append(f"not {', '.join(broken)}")
    if failed:
        parts.append(f"the run of {', '.join(failed)} failed")
    return "; ".join(parts)


# ---- running and reporting -------------------------------------------------------------------

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
    """Run a claim and write its files to a folder; an error that it raises is in the result."""
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
    need_matplotlib()
    path = folder / f"{claim.id}.png"
    return Picture(path, caption_of(drawn(outcome.plot, path)))


def line(result: Result) -> str:
    """Return one line about a claim that is done, with markup for a terminal."""
    look = LOOKS[result.verdict]
    begin = f"{result.claim.id} [{look}]{result.verdict}[/{look}] ({result.seconds:.1f} s)"
    if result.picture is None:
        return f"{begin}: {escape(result.ours)}"
    return f"{begin}: {result.picture.path.with_suffix('.csv')}, {result.picture.path}"


def table(results: Sequence[Result]) -> Table:
    """Return a table of ours beside the paper's."""
    view = Table(title="Claims", show_lines=True, title_justify="left")
    view.add_column("id", no_wrap=True)
    view.add_column("the paper's", ratio=3)
    view.add_column("ours must show", ratio=2)
    view.add_column("ours", ratio=4)
    view.add_column("holds", justify="center", no_wrap=True)
    for each in results:
        claim, look = each.claim, LOOKS[each.verdict]
        held = {"holds": "yes", "does not hold": "no", "failed": "failed"}[each.verdict]
        texts = (claim.id, claim.paper, claim.expects, each.ours)
        view.add_row(*map(escape, texts), f"[{look}]{held}[/{look}]")
    return view


def listed(claims: Sequence[Claim]) -> Table:
    """Return a table of claims and their titles, none of them run."""
    view = Table(title="Claims", title_justify="left")
    view.add_column("id", no_wrap=True)
    view.add_column("paper", no_wrap=True)
    view.add_column("what is measured")
    for claim in claims:
        view.add_row(*map(escape, (claim.id, claim.source, claim.title)))
    return view


def as_json(results: Sequence[Result]) -> str:
    """Return one line of JSON: how many held, how many did not, and each row."""
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
