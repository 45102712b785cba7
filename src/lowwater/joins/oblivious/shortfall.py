"""When to warn that a join finds fewer of its results than it was asked to."""

from __future__ import annotations

SOME = 10
"""While rows still come, nothing is concluded from fewer lost results than this."""


def shortfall(found: float, lost: float, asked: float, ended: bool) -> str | None:
    """A warning, if the share of results that was found is below what was asked for.

    The text holds no figures, so that several buckets which notice the same say the same.
    """
    if lost < (0.5 if ended else SOME) or found >= asked * (found + lost):
        return None
    return (
        f"fewer than {asked * 100:.10g} % of the results were found, which is what accuracy= asks"
        " for. Metrics say how many ('accuracy') and what cost them ('late rows', 'rows given up')."
        " Give the disorder if it is known, lw.unpromised(disorder=...), or more memory=, or ask"
        " for an accuracy= that will do"
    )
