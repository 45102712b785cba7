"""The latency histogram."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.metrics import Histogram, together

lengths = st.lists(st.integers(0, 10**13), min_size=1, max_size=200)


@given(lengths, st.sampled_from([0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 1.0]))
def test_quantiles_are_at_most_an_eighth_above_the_true_ones(
    values: list[int], share: float
) -> None:
    histogram = Histogram()
    histogram.add_all(np.array(values, dtype=np.int64))
    true = int(np.quantile(np.array(values), share, method="inverted_cdf"))
    assert true <= histogram.quantile(share) <= true * 1.125


@given(lengths)
def test_count_mean_and_longest_are_exact(values: list[int]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    assert histogram.count == len(values)
    assert histogram.total == sum(values)
    assert histogram.mean == pytest.approx(sum(values) / len(values))
    assert histogram.longest == max(values)
    assert histogram.quantile(1.0) == max(values)


@given(lengths)
def test_adding_many_at_once_is_adding_each(values: list[int]) -> None:
    one, all_ = Histogram(), Histogram()
    for value in values:
        one.add(value)
    all_.add_all(np.array(values, dtype=np.int64))
    assert [one.quantile(q / 20) for q in range(21)] == [all_.quantile(q / 20) for q in range(21)]


def test_small_lengths_are_exact() -> None:
    histogram = Histogram()
    histogram.add_all(np.arange(8))
    assert [histogram.quantile((n + 1) / 8) for n in range(8)] == list(range(8))


def test_an_empty_histogram_has_zeroes() -> None:
    assert (Histogram().mean, Histogram().quantile(0.5), Histogram().longest) == (0.0, 0, 0)


def test_lengths_below_zero_count_as_zero() -> None:
    histogram = Histogram()
    histogram.add(-5)
    assert histogram.quantile(1.0) == 0


def test_what_copies_of_an_operator_tell_is_put_together() -> None:
    assert together([]) == {}
    parts = [{"strategy": "a", "rows": 1}, {"strategy": "a", "rows": 2, "more": 0.5}]
    assert together(parts) == {"strategy": "a", "rows": 3, "more": 0.5}
    mixed = together([{"strategy": "a"}, {"strategy": "b"}, {"strategy": "b"}])
    assert mixed == {"strategy": "b (2 of 3 buckets); a (1 of 3 buckets)"}


def test_shares_are_not_added_up_and_of_multiplicities_the_greatest_counts() -> None:
    parts = [
        {"accuracy": 1.0, "multiplicity[0]": 5, "held rows[0]": 7},
        {"accuracy": 0.5, "multiplicity[0]": 9, "held rows[0]": 1},
    ]
    assert together(parts) == {"accuracy": 0.75, "multiplicity[0]": 9, "held rows[0]": 8}
