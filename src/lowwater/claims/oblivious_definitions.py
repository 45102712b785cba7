"""These functions compute disorder, multiplicity and lag by definition (WO-Join §2).

A stream is the array of its join keys in the order of arrival. The *physical index* of a row is the
place at which it came, from 1; its *virtual index* is the places that it and the rows equal to it
have once the whole stream is in order. Virtual indexes and lags need rows that are still to come,
so a running join can only estimate them; its estimates are checked against the functions here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]
Places = NDArray[np.int64]


def displacements(keys: Keys) -> Places:
    """Return by how many places each row came after the first row that is not less."""
    highest = np.maximum.accumulate(keys)
    first = np.searchsorted(highest, keys, side="left")
    return np.arange(len(keys)) - first


def scrambling_factor(keys: Keys) -> int:
    """Return by how many places at most a row came after one that is not less (Def. 2.2).

    Equal rows count as out of order: a stream in order has the greatest number of equal rows in it,
    less one.
    """
    return int(displacements(keys).max()) if len(keys) else 0


def multiplicity(keys: Keys) -> int:
    """Return how many rows at most have the same key (§3.2)."""
    return int(np.unique(keys, return_counts=True)[1].max()) if len(keys) else 0


def virtual_index(keys: Keys) -> tuple[Places, Places]:
    """Return the least and greatest place of each row if the stream were in order (Def. 2.5)."""
    ordered = np.sort(keys)
    least = np.searchsorted(ordered, keys, side="left") + 1
    return least, np.searchsorted(ordered, keys, side="right")


def lag(one: Keys, other: Keys, came: int, other_came: int) -> int:
    """Return by how many rows one stream is ahead of another after so many of each (Def. 2.6)."""
    return int(lags(one, other, np.array([came]), np.array([other_came]))[0])


def lags(one: Keys, other: Keys, came: Places, other_came: Places) -> Places:
    """Return the lag at many moments.

    Take the row of the other stream that would have come last if that stream were in order. Rows of
    the one stream that are not greater should have come by then: the lag is the number of rows that
    came less the number of those. Before the first row of the other stream none should have come.
    """
    expected = np.searchsorted(np.sort(one), np.sort(other), side="right")
    return came - np.concatenate(([0], expected))[other_came]
