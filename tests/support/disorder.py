"""Rows out of order by places, and how far: what a join without a window goes by."""

from __future__ import annotations

import numpy as np
import polars as pl


def scrambled(values: int, copies: int, places: int, seed: int) -> pl.DataFrame:
    """Each value so many times, rows up to so many places from where they should be."""
    chance = np.random.default_rng(seed)
    epochs = np.repeat(np.arange(values), copies)
    at = np.arange(len(epochs)) + chance.integers(0, places + 1, len(epochs))
    epochs = epochs[np.argsort(at, kind="stable")]
    return pl.DataFrame({"epoch": epochs, "val": np.arange(len(epochs))})


def scrambling_factor(values: pl.Series) -> int:
    """The places at most that a row comes after one that is not less: WO-Join, Definition 2.2."""
    found = values.to_numpy()
    return max(at - int(np.argmax(found[: at + 1] >= each)) for at, each in enumerate(found))
