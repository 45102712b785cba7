"""This claim compares LINECUTTING with IN-PLACE where some keys are slow (UpStream §5.3, Fig. 9).

Of ten keys, x are slow: they update ten times less often. The paper does not say how updates come
nor what stays the same while x grows. Here a fast key updates equally often whatever x is, and the
load is 5 with ten fast keys. Under this reading the paper's own words are true: with nearly all
keys slow, all of them are slow enough to cut the line, and the line is one again. (If the load is
kept at 5 instead, ten slow keys update as often as ten fast ones would, and none of them cuts.)
Each update is of a key drawn by the rates (§5.2 has it so), or the keys come in turn.

Drawn keys make short runs differ: with eight slow keys the load is 1.4, and near 1 lines grow and
shrink for long. Where the best x is can only be seen where keys come in turn; the claim for
drawn keys is that line cutting pays for all x between. The rate of a key is known from its second
update on, so a run has to be long beside the 20 s between two updates of a slow key.

LINECUTTING is the paper's inequality alone. By it a fast key that meets one other looks slow half
of the time, because its rate is measured; this shows with drawn keys, so there its curve is
reported and not judged. The keys that wait are counted with the key that is updated; without it a
fast key that meets one other always looks slow. Our own rule, ``rare-first``, also asks that a key
is clearly slower than others; it is judged in both patterns.

The other reading is drawn, too: with the load kept, slow keys together need up to 95 % of the time,
those that cut the line leave the others next to none, and both rules are worse than IN-PLACE. The
schedule ``auto``, which serves the key that is worth most, is shown beside them in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from lowwater.claims import updates_plots as plots
from lowwater.claims.claim import Claim, Criterion, Outcome, Scale, judge
from lowwater.claims.updates_plots import KEPT, Ratios
from lowwater.claims.updates_runs import NAMES, at_random, in_turn, run_queue
from lowwater.typing import Schedule

KEYS, SLOWER, LOAD, COST = 10, 10, 5.0, 1.0
RULES: tuple[Schedule, ...] = ("linecutting", "rare-first", "auto")
"""The rules that are compared with IN-PLACE."""
QUEUES: tuple[Schedule, ...] = ("in-place", *RULES)
EQUAL = 0.01
"""The most by which a ratio that counts as 1 differs from 1."""
ROUNDING = 1e-9
"""Seconds up to which staleness comes from rounding alone."""
BEST = range(7, 10)
"""Numbers of slow keys at which cutting the line should be best, where keys come in turn."""
LAST = 8
"""The greatest number of slow keys with which the load is above 1."""
IN_TURN, DRAWN = "in turn", "drawn"
RATE = LOAD / KEYS / COST
"""Updates of a fast key a second."""


def rate_for_load(slow: int) -> float:
    """Return the updates of a fast key a second that keep the load, with so many slow keys."""
    return LOAD / COST / (KEYS - slow + slow / SLOWER)


def drawn(slow: int, rate: float, seconds: float, seed: int) -> pl.DataFrame:
    """Return updates of keys drawn at random."""
    rates = [rate / SLOWER] * slow + [rate] * (KEYS - slow)
    return at_random(rates, seconds, seed)


@dataclass(frozen=True)
class ArrivalPattern:
    """A pattern of arrivals, and the numbers of slow keys that it is run with."""

    name: str
    slow: Sequence[int]
    services: int
    """Seconds of a run, and so the most services of it."""
    seeds: Sequence[int] = (1,)

    def came(self, slow: int, seed: int) -> pl.DataFrame:
        """Return the updates of a run."""
        rate = rate_for_load(slow) if self.name == KEPT else RATE
        seconds = self.services * COST
        if self.name == IN_TURN:
            return in_turn(slow, KEYS - slow, SLOWER, rate, seconds)
        return drawn(slow, rate, seconds, seed)


SCALE = Scale(
    (
        ArrivalPattern(IN_TURN, range(11), 400),
        ArrivalPattern(DRAWN, (0, 2, 4, 6, 7, 8, 9, 10), 800, (1, 2)),
        ArrivalPattern(KEPT, (0, 2, 4, 5, 6, 7, 8, 10), 300),
    ),
    (ArrivalPattern(IN_TURN, (0, 4, 7, 8, 10), 200),),
)


def measured(patterns: Sequence[ArrivalPattern]) -> pl.DataFrame:
    """Measure all queues, the mean of several runs where keys are drawn."""
    rows = []
    for pattern in patterns:
        for slow in pattern.slow:
            for seed in pattern.seeds:
                came = pattern.came(slow, seed)
                for queue in QUEUES:
                    run = run_queue(came, queue, COST)
                    application, waiting = run.averages()
                    rows.append(
                        {
                            "arrivals": pattern.name,
                            "slow": slow,
                            "load": came.height * COST / pattern.services,
                            "queue": queue,
                            "queue_seconds": waiting,
                            "application_seconds": application,
                        }
                    )
    found = pl.DataFrame(rows)
    return found.group_by("arrivals", "slow", "load", "queue", maintain_order=True).mean()


def ratios(points: pl.DataFrame, pattern: str, queue: Schedule) -> Ratios:
    """Return queue staleness in times IN-PLACE's, by number of slow keys; 1 if that has none."""
    own = points.filter(pl.col("arrivals") == pattern)
    wide = own.pivot("queue", index="slow", values="queue_seconds").sort("slow")
    return {
        slow: other / in_place if in_place > ROUNDING else 1.0 + other
        for slow, other, in_place in wide.select("slow", queue, "in-place").iter_rows()
    }


def is_judged(pattern: str, rule: Schedule) -> bool:
    """Return true if a rule is judged under a pattern of arrivals."""
    return pattern == IN_TURN if rule == "linecutting" else pattern != KEPT and rule == "rare-first"


def criteria_of(pattern: str, rule: Schedule, found: Ratios) -> list[Criterion]:
    """Return the criteria of a rule under a pattern of arrivals; ``found``: ratios by number of
    slow keys."""
    most = max(ratio for slow, ratio in found.items() if 0 < slow <= LAST)
    least = min(found, key=lambda slow: found[slow])
    checks = (
        (abs(found[0] - 1) <= EQUAL, f"{found[0]:.2f} with no slow keys"),
        (abs(found[KEYS] - 1) <= EQUAL, f"{found[KEYS]:.2f} with only slow keys"),
        (most < 1, f"up to {most:.2f} in between"),
        (pattern != IN_TURN or least in BEST, f"best with {least} slow keys"),
    )
    return [
        Criterion(check, f"the ratio of {rule} is {text} ({pattern})") for check, text in checks
    ]


def rates_outcome(points: pl.DataFrame) -> Outcome:
    """Judge the curves of the ratio, for all patterns of arrivals."""
    patterns = points["arrivals"].unique(maintain_order=True).to_list()
    curves = {
        pattern: {rule: ratios(points, pattern, rule) for rule in RULES} for pattern in patterns
    }
    criteria, figures = list[Criterion](), list[str]()
    for pattern, by_rule in curves.items():
        for rule, found in by_rule.items():
            if is_judged(pattern, rule):
                criteria += criteria_of(pattern, rule, found)
        spelled = (f"{NAMES[rule]} {_spelled(found)}" for rule, found in by_rule.items())
        figures.append(f"{pattern}: {', '.join(spelled)}")
    best = curves[IN_TURN]["linecutting"]
    return judge(
        "; ".join(figures),
        criteria,
        points,
        lambda figure: plots.rates(figure, curves, best, LAST),
    )


def _spelled(found: Ratios) -> str:
    least, most = (pick(found, key=lambda slow: found[slow]) for pick in (min, max))
    worst = f" and greatest {found[most]:.2f} at {most}" if found[most] > 1 + EQUAL else ""
    return f"least {found[least]:.2f} at {least}{worst}"


def run(quick: bool) -> Outcome:
    """Measure both patterns; the quick variant has only keys that come in turn."""
    return rates_outcome(measured(SCALE.of(quick)))


F9 = Claim(
    "UP-F9",
    "line cutting, the number of slow keys varied",
    "LINECUTTING / IN-PLACE, 10 keys, x of them 10 × slower, load 5: 1 at x = 0 and x = 10, better"
    " between, best near x = 8",
    f"that, in queue staleness: within {EQUAL:.0%} of 1 at both ends, below 1 for all x up to"
    f" {LAST}, best at {BEST[0]} … {BEST[-1]}, where keys come in turn, by the paper's inequality"
    " alone and by rare-first; by rare-first below 1 also where they are drawn",
    run,
)
