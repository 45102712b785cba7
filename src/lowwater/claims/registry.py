"""All claims, in the order of the papers, and how they are found by id."""

from __future__ import annotations

from collections.abc import Sequence

from lowwater.claims import ets, oblivious, oop, ordered, updates
from lowwater.claims.claim import Claim
from lowwater.errors import OptionError, unknown_name

CLAIMS: tuple[Claim, ...] = (
    *oop.CLAIMS,
    *ets.CLAIMS,
    *ordered.CLAIMS,
    *oblivious.CLAIMS,
    *updates.CLAIMS,
)
"""Every claim that is run."""


def find(ids: Sequence[str]) -> tuple[Claim, ...]:
    """The claims with these ids, in any case; all of them if none are given."""
    known = {claim.id.upper(): claim for claim in CLAIMS}
    for name in ids:
        if name.upper() not in known:
            raise OptionError(unknown_name("claim", name, [claim.id for claim in CLAIMS]))
    return tuple(known[name.upper()] for name in dict.fromkeys(ids)) or CLAIMS
