"""The registry lists all claims in the order of the papers, and finds them by id."""

from __future__ import annotations

from collections.abc import Sequence

from lowwater.claims import (
    ets,
    learned,
    oblivious_buffers,
    oblivious_example,
    oblivious_memory,
    oop_band,
    oop_flush,
    oop_memory,
    oop_punctuation,
    ordered_model,
    ordered_output,
    ordered_response,
    updates_example,
    updates_load,
    updates_memory,
    updates_rates,
    updates_traces,
    updates_windows,
)
from lowwater.claims.claim import Claim
from lowwater.errors import OptionError, unknown_name

CLAIMS: tuple[Claim, ...] = (
    oop_memory.F1,
    oop_flush.G1,
    oop_memory.G3,
    oop_band.N1,
    oop_memory.N2,
    oop_memory.N3,
    oop_band.S53,
    oop_punctuation.S7,
    oop_punctuation.GROUPS,
    learned.LEARNED,
    *ets.CLAIMS,
    ordered_model.EQ,
    ordered_response.F7,
    ordered_response.F9,
    ordered_output.OUT,
    oblivious_example.F1,
    oblivious_buffers.F5,
    oblivious_buffers.F6,
    oblivious_memory.F8,
    oblivious_memory.F9,
    oblivious_memory.F11,
    updates_example.F2,
    updates_load.F5,
    updates_load.F7,
    updates_rates.F9,
    updates_traces.F12,
    updates_windows.F13,
    updates_windows.F14,
    updates_memory.F16,
)
"""Every claim that is run."""


def find(ids: Sequence[str]) -> tuple[Claim, ...]:
    """Return the claims with these ids, in any case; all of them if none are given."""
    known = {claim.id.upper(): claim for claim in CLAIMS}
    for name in ids:
        if name.upper() not in known:
            raise OptionError(unknown_name("claim", name, [claim.id for claim in CLAIMS]))
    return tuple(known[name.upper()] for name in dict.fromkeys(ids)) or CLAIMS
