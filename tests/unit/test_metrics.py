"""The latency histogram, and how metrics of copies of an operator combine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.joins.oblivious.estimates import ACCURACY, FOUND, HELD, LOST, MULTIPLICITY
from lowwater.joins.ordered.ordered_join import HELD_ROWS, HELD_ROWS_PEAK
from lowwater.metrics import Histogram
from lowwater.operators.metric import STRATEGY, Readings, combined
from lowwater.updates.queue_kernel import KEYS, SECONDS_A_ROW

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


def test_readings_of_copies_of_an_operator_combine() -> None:
    assert combined([]) == {}
    parts = [
        Readings({STRATEGY: "a", KEYS: 1}),
        Readings({STRATEGY: "a", KEYS: 2, SECONDS_A_ROW: 0.5}),
    ]
    assert combined(parts) == {STRATEGY: "a", KEYS: 3, SECONDS_A_ROW: 0.5}
    mixed = combined([Readings({STRATEGY: name}) for name in "abb"])
    assert mixed == {STRATEGY: "b (2 of 3 buckets); a (1 of 3 buckets)"}


def test_shares_are_not_added_up_and_of_multiplicities_the_greatest_counts() -> None:
    parts = [
        Readings({ACCURACY: 1.0, FOUND: 2, LOST: 0.0, MULTIPLICITY.of(0): 5, HELD.of(0): 7}),
        Readings({ACCURACY: 0.5, FOUND: 1, LOST: 1.0, MULTIPLICITY.of(0): 9, HELD.of(0): 1}),
    ]
    whole = {ACCURACY: 0.75, FOUND: 3, LOST: 1.0, MULTIPLICITY.of(0): 9, HELD.of(0): 8}
    assert combined(parts) == whole


def test_of_peaks_of_buckets_the_greatest_is_shown_and_no_sum_that_never_was() -> None:
    parts = [Readings({HELD_ROWS_PEAK: 5, HELD_ROWS: 1}), Readings({HELD_ROWS_PEAK: 9})]
    assert combined(parts) == {HELD_ROWS_PEAK: 9, HELD_ROWS: 1}
