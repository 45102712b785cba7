"""What became of the claims of a run: held, did not hold, or could not be measured at all."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import lowwater
from lowwater.claims.claim import Claim, Outcome

Verdict = Literal["holds", "does not hold", "failed"]
NOT = "DOES NOT HOLD: "
"""Where an outcome begins to say why it does not hold."""
LIBRARIES = ("polars", "numpy", "matplotlib")


@dataclass(frozen=True)
class Picture:
    """The plot of a claim."""

    path: Path
    says: str
    """What is written above and below it, for those who do not see it."""


@dataclass(frozen=True)
class Result:
    """A claim and what its run gave: an outcome and its plot, or an error."""

    claim: Claim
    seconds: float
    outcome: Outcome | None = None
    picture: Picture | None = None
    error: str = ""
    """What was raised, with the place; empty if nothing was."""

    @property
    def verdict(self) -> Verdict:
        """What became of it."""
        if self.outcome is None:
            return "failed"
        return "holds" if self.outcome.holds else "does not hold"

    @property
    def ours(self) -> str:
        """What was measured, or why nothing was."""
        if self.outcome is None:
            return f"the run failed: {self.error.strip().splitlines()[-1]}"
        return self.outcome.ours

    @property
    def reason(self) -> str:
        """Why it does not hold, as far as that is said."""
        return self.ours.partition(NOT)[2] or self.ours


@dataclass(frozen=True)
class Circumstances:
    """Under which claims were run."""

    quick: bool
    wanted: Sequence[Claim]
    begun: datetime = field(default_factory=lambda: datetime.now().astimezone())

    def again(self, claim: Claim) -> str:
        """The command that repeats a claim."""
        return f"lowwater claims {claim.id}" + (" --quick" if self.quick else "")

    def facts(self) -> dict[str, str]:
        """What a reader has to know to compare figures."""
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
    """How many hold, and which do not."""
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
