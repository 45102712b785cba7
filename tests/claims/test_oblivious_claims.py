"""The claims of joins without windows: the streams, the truth they are judged by, and the runs."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.claims import oblivious_example, registry
from lowwater.claims.oblivious_example import BEFORE, EXPECTED, SHOWN, Filled, fillings
from lowwater.claims.oblivious_runs import Query, query_1, query_2
from lowwater.claims.oblivious_streams import (
    KEY,
    RATE,
    ROW_BYTES,
    Phase,
    Setting,
    Stream,
    scrambled,
)
from lowwater.claims.oblivious_truth import Log, Truth
from lowwater.joins.oblivious.definitions import multiplicity, scrambling_factor

# ---- the worked example --------------------------------------------------------------------


def test_the_worked_example_is_exact() -> None:
    outcome = oblivious_example.run(True)
    assert outcome.holds, outcome.ours
    assert "L(t5) = 0, L(t10) = 3; 399 of 399" in outcome.ours


def test_what_is_shown_agrees_with_the_text() -> None:
    shown = oblivious_example.table()
    assert SHOWN.one in [each.one for each in fillings()]
    assert SHOWN.other in [each.other for each in fillings()]
    at = {row["at"]: row for row in shown.iter_rows(named=True)}
    assert [at[t]["key"] for t in ("t1", "t4", "t5", "t10")] == [63, 63, 66, 67]
    assert (at["t5"]["place_from_p"], at["t5"]["least_virtual_from_p"]) == (2, 4)
    last_of_2 = shown.filter(pl.col("stream") == "S2")
    assert last_of_2.filter(pl.col("at").is_in(["t2", "t3"]))["key"].to_list()[-1] == 65
    assert last_of_2["key"].to_list()[-1] == 68


def test_another_lag_does_not_hold() -> None:
    earlier = Filled(SHOWN.one[1:], SHOWN.other)
    assert earlier.lags() != EXPECTED
    outcome = oblivious_example.judge(oblivious_example.table(), [SHOWN, earlier])
    assert not outcome.holds
    assert "1 of 2" in outcome.ours
    assert len(SHOWN.keys()[0]) == BEFORE + len(SHOWN.one)


# ---- streams -------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(1, 3), st.integers(0, 1_000))
def test_streams_are_exactly_as_scrambled_as_asked(disorder: int, equal: int, seed: int) -> None:
    ordered = np.arange(300) // equal
    keys = scrambled(ordered, disorder, np.random.default_rng(seed))
    assert scrambling_factor(keys) == max(disorder, equal - 1)
    assert np.array_equal(np.sort(keys), ordered)


def test_streams_cannot_be_scrambled_beyond_their_length() -> None:
    with pytest.raises(ValueError, match="10 rows cannot be scrambled by 10 places"):
        scrambled(np.arange(10), 10, np.random.default_rng(1))


def test_streams_come_at_their_rates_and_keys_go_on() -> None:
    stream = Stream("S2", 40, 60, seed=3, phases=(Phase(10, 40, 1 / 8),))
    table = stream.table()
    at = table["S2_at"].to_numpy()
    assert table.estimated_size() == ROW_BYTES * table.height
    assert (np.diff(at) > 0).all()
    for start, end, rate in ((0, 10, RATE), (10, 40, RATE / 8), (40, 60, RATE)):
        rows = ((at >= start) & (at < end)).sum()
        expected = rate * (end - start)
        assert abs(rows - expected) < 4 * np.sqrt(expected)
    keys = table[KEY].to_numpy()
    assert (scrambling_factor(keys), multiplicity(keys)) == (40, 2)
    assert np.array_equal(np.sort(keys), np.arange(len(keys)) // 2)
    assert table["S2"].to_list() == list(range(1, table.height + 1))
    assert stream.table().equals(table)


def test_settings_are_the_papers() -> None:
    setting = Setting(7)
    one, two = setting.query_1(), setting.query_2()
    assert [each.phases for each in one] == [(), (Phase(10, 40, 1 / 8),), (Phase(80, 90, 8),)]
    assert [bool(each.phases) for each in two] == [False, True, False, False, False, False]
    assert all(1 <= each.disorder <= 500 and each.multiplicity == 2 for each in two)
    short = Setting(7, faster=4).query_1()
    assert short[1].phases == (Phase(2.5, 10, 1 / 8),)
    assert [each.disorder for each in short] == [round(each.disorder / 4) for each in one]


# ---- the truth -----------------------------------------------------------------------------


def logs(setting: Setting, number: int = 3) -> tuple[Log, ...]:
    streams = setting.query_1() if number == 3 else setting.query_2()
    return tuple(Log(each.name, each.table()) for each in streams)


def test_results_are_the_batch_answer() -> None:
    truth = Truth(logs(Setting(1, faster=12)))
    with duckdb.connect() as connection:
        for log in truth.logs:
            connection.register(log.name, log.table.to_arrow())
        answer = connection.execute(
            f"SELECT greatest(S1_at, S2_at, S3_at), {KEY}, S1, S2, S3 FROM S1"
            f" JOIN S2 USING ({KEY}) JOIN S3 USING ({KEY})"
        ).fetchall()
    assert sorted(answer) == sorted(truth.results.rows())


def test_the_least_buffer_is_found_by_going_back() -> None:
    truth = Truth(logs(Setting(2, faster=12)))
    seconds = 10
    optimal = truth.optimal(seconds)
    best = np.zeros_like(optimal)
    for at, _, *places in truth.results.rows():
        for port, log in enumerate(truth.logs):
            rows = [n for n, came in enumerate(log.at.tolist(), 1) if came <= at]
            needed = len([n for n in rows if n >= places[port]])
            best[int(at), port] = max(best[int(at), port], needed)
    assert np.array_equal(optimal, best)


def test_the_model_with_all_known_is_never_below_the_least_buffer() -> None:
    """Equation 8, at every result, for both queries."""
    for seed in range(4):
        setting = Setting(seed, faster=6)
        one = Truth(logs(setting))
        assert (
            one.predicted([scrambling_factor(each.keys) for each in one.logs]) >= one.needs
        ).all()
        two = logs(setting, 6)
        last = Truth((Truth(two[:3]).log("S7"), Truth(two[3:]).log("S8")))
        known = [scrambling_factor(each.keys) for each in last.logs]
        assert (last.predicted(known) >= last.needs).all()


def test_a_fixed_buffer_finds_what_it_reaches() -> None:
    query = query_1(Setting(3, faster=12))
    truth, sizes = query.joins[0], [60, 20, 80]
    reached = truth.reached(sizes)
    assert 0 < reached.mean() < 0.9
    assert query.found_by([sizes]) == reached.mean()
    assert len(truth.log("S7", sizes).keys) == reached.sum()
    assert truth.reached(truth.needs.max(axis=0).tolist()).all()


@pytest.mark.parametrize("make", [query_1, query_2])
def test_least_fixed_buffers_for_a_share_of_the_results(make: Callable[[Setting], Query]) -> None:
    query = make(Setting(3, faster=12))
    sizes = query.fixed_sizes(0.95)
    assert 0.95 <= query.found_by(sizes) < 0.99
    assert query.found_by([[0.9 * each for each in own] for own in sizes]) < 0.95


def test_a_log_goes_on_in_order_where_another_is_ahead() -> None:
    behind, ahead = (
        Log(name, pl.DataFrame({f"{name}_at": 0.0, KEY: keys, name: 1}))
        for name, keys in (("S1", [3, 4, 3, 4]), ("S2", [6, 5]))
    )
    assert behind.continued(ahead).tolist() == [3, 4, 3, 4, 5, 5, 6, 6]
    assert ahead.continued(behind).tolist() == [6, 5]


# ---- the runs ------------------------------------------------------------------------------


def test_the_claims_are_found_by_name() -> None:
    ids = ["wo-f1"]
    assert [claim.id for claim in registry.find(ids)] == [name.upper() for name in ids]
