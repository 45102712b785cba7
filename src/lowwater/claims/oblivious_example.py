"""This claim repeats the worked example of lag: WO-Join §2.3.2, Fig. 1.

The figure is lost. The text says which rows came last at t5 and t10, which places some of them
have, and which rows they are compared with. It leaves some rows open, so every way of filling them
in that agrees with the text is tried: the lag must come out the same in all of them.

The text does not say how many of the rows after t5 are of which stream. One row comes at a time, S1
at t1, t4 and t5, so S2 at t2 and t3; the paper's own answer for t10 follows only if four of the
next five rows are of S1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from lowwater.claims import oblivious_plots as plots
from lowwater.claims.claim import Claim, Criterion, Outcome, judge
from lowwater.claims.oblivious_definitions import Keys, lag, scrambling_factor, virtual_index
from lowwater.probe import scrambling_factors

EXPECTED = {"t5": 0, "t10": 3}
CAME = {"t5": (3, 2), "t10": (7, 3)}
"""Numbers of rows of S1 and of S2 in the figure that have come, by moment."""
OPEN = range(61, 70)
"""The keys that are tried for rows the text leaves open."""
BEFORE = 8
"""Number of rows of each stream before the figure, all of lower keys."""


@dataclass(frozen=True)
class Filling:
    """The keys of both streams in the figure: those of the text, and the rest filled in."""

    one: tuple[int, ...]
    other: tuple[int, ...]

    def both(self) -> tuple[Keys, Keys]:
        """Return the keys of both, with the rows before."""
        before = range(50 - BEFORE, 50)
        return np.array([*before, *self.one]), np.array([*before, *self.other])

    def lags(self) -> dict[str, int]:
        """Return the lag from S1 to S2 at both moments."""
        one, other = self.both()
        return {
            at: lag(one, other, BEFORE + came, BEFORE + other_came)
            for at, (came, other_came) in CAME.items()
        }


def places(keys: tuple[int, ...], key: int) -> range:
    """Return the places of a key in order; 0 is the first row of the figure."""
    stream = np.array(keys)
    least, greatest = virtual_index(stream)
    at = keys.index(key)
    return range(int(least[at]) - 1, int(greatest[at]))


def first_streams() -> Iterator[tuple[int, ...]]:
    """Yield every S1 that agrees with the text; one more row comes after t10.

    ⟨66⟩ came third and belongs fifth, the last ⟨63⟩ belongs third. The row next below ⟨65⟩ is ⟨64⟩.
    """
    for *between, after in product(OPEN, repeat=4):
        keys = (63, 63, 66, *between, 67, after)
        if 64 not in keys or 65 in keys:
            continue
        if places(keys, 66) == range(4, 5) and places(keys, 63)[-1] == 2:
            yield keys


def second_streams() -> Iterator[tuple[int, ...]]:
    """Yield every S2 that agrees with the text; two more rows come after t10.

    ⟨65⟩ came where ⟨63⟩ belongs, then ⟨68⟩ where ⟨65⟩ belongs.
    """
    for first, *after in product(OPEN, repeat=3):
        keys = (first, 65, 68, *after)
        if 63 in keys and 1 in places(keys, 63) and 2 in places(keys, 65):
            yield keys


def fillings() -> list[Filling]:
    """Return every stream that agrees, each with a first one of the other."""
    ones, others = list(first_streams()), list(second_streams())
    return [Filling(one, others[0]) for one in ones] + [Filling(ones[0], each) for each in others]


SHOWN = Filling((63, 63, 66, 64, 62, 68, 67, 69), (62, 65, 68, 63, 66))
SHOWN_AT = ("S1", "S2", "S2", "S1", "S1", "S1", "S1", "S2", "S1", "S1")
"""The stream of the row that comes at t1, t2 and so on, in the filling that is drawn."""


def table(shown: Filling = SHOWN) -> pl.DataFrame:
    """Return the rows of a filling as the figure has them: key, places, and the lag."""
    streams = {"S1": shown.one, "S2": shown.other}
    came = dict.fromkeys(streams, 0)
    one, other = shown.both()
    rows = []
    for at, name in enumerate(SHOWN_AT, 1):
        key = streams[name][came[name]]
        belongs = places(streams[name], key)
        place = came[name]
        came[name] += 1
        rows.append(
            {
                "at": f"t{at}",
                "stream": name,
                "key": key,
                "place_from_p": place,
                "least_virtual_from_p": belongs[0],
                "greatest_virtual_from_p": belongs[-1],
                "lag": lag(one, other, BEFORE + came["S1"], BEFORE + came["S2"]),
            }
        )
    return pl.DataFrame(rows)


def measured_as_defined(filled: Filling) -> bool:
    """Return true if a running join measures both scrambling factors, row by row, as defined.

    Lags are not compared: they need rows still to come, so a running join can only estimate them.
    """
    for keys in filled.both():
        defined = [scrambling_factor(keys[:came]) for came in range(1, len(keys) + 1)]
        if scrambling_factors(keys).tolist() != defined:
            return False
    return True


def example_outcome(shown: pl.DataFrame, filled: list[Filling]) -> Outcome:
    """Judge whether all fillings have the paper's lags."""
    found = [each.lags() for each in filled]
    drawn = dict(zip(shown["at"], shown["lag"], strict=True))
    wrong = sum(each != EXPECTED for each in found)
    off = sum(not measured_as_defined(each) for each in filled)
    right = all(drawn[at] == lag for at, lag in EXPECTED.items())
    ours = (
        f"L(t5) = {drawn['t5']}, L(t10) = {drawn['t10']}; {len(found) - wrong} of {len(found)}"
        f" ways to fill in the lost figure agree; the join measures the scrambling factors"
        f" of {len(found) - off} as they are defined"
    )
    criteria = [
        Criterion(right and not wrong, "the definitions give another lag"),
        Criterion(not off, "a measured scrambling factor is not the defined one"),
    ]
    finding = (
        f"The lag from S1 to S2 is {drawn['t5']} at t5 and {drawn['t10']} at t10; it is the"
        f" paper's in {len(found) - wrong} of {len(found)} ways to fill in its lost figure"
    )
    return judge(
        ours, criteria, shown, lambda figure: plots.example(figure, shown, finding, EXPECTED)
    )


def run(_: bool) -> Outcome:
    """Try all fillings; the quick variant is the same."""
    return example_outcome(table(), fillings())


F1 = Claim(
    "WO-F1",
    "lag between two scrambled streams, the worked example",
    "L(t5) = 0, L(t10) = 3",
    "exactly these, however the rows the text leaves open are filled in",
    run,
)
