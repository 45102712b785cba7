"""The claims of joins without windows: the streams, the truth they are judged by, and the runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.claims import (
    oblivious_buffers,
    oblivious_example,
    oblivious_memory,
    registry,
)
from lowwater.claims.claim import Outcome
from lowwater.claims.oblivious_buffers import joined_outcome
from lowwater.claims.oblivious_definitions import multiplicity, scrambling_factor
from lowwater.claims.oblivious_example import BEFORE, EXPECTED, SHOWN, Filling, fillings
from lowwater.claims.oblivious_runs import QUICK, RELIEF_MODES, Query, query_1, query_2, run
from lowwater.claims.oblivious_streams import (
    KEY,
    RATE,
    ArrivalLog,
    ScrambledStream,
    Setting,
    Truth,
    scrambled,
)
from tests.support.plots import readable

# ---- the worked example --------------------------------------------------------------------


def test_the_worked_example_is_exact() -> None:
    outcome = oblivious_example.run(True)
    assert outcome.holds, outcome.ours
    assert "L(t5) = 0, L(t10) = 3; 399 of 399" in outcome.ours
    assert "scrambling factors of 399" in outcome.ours
    assert "0 at t5 and 3 at t10" in readable("WO-F1", outcome)


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
    earlier = Filling(SHOWN.one[1:], SHOWN.other)
    assert earlier.lags() != EXPECTED
    outcome = oblivious_example.example_outcome(oblivious_example.table(), [SHOWN, earlier])
    assert not outcome.holds
    assert "1 of 2" in outcome.ours
    assert len(SHOWN.both()[0]) == BEFORE + len(SHOWN.one)


# ---- streams -------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(1, 3), st.integers(0, 1_000))
def test_streams_have_exactly_the_given_scrambling_factor(
    disorder: int, equal: int, seed: int
) -> None:
    ordered = np.arange(300) // equal
    keys = scrambled(ordered, disorder, np.random.default_rng(seed))
    assert scrambling_factor(keys) == max(disorder, equal - 1)
    assert np.array_equal(np.sort(keys), ordered)


def test_streams_cannot_be_scrambled_beyond_their_length() -> None:
    with pytest.raises(ValueError, match="10 rows cannot be scrambled by 10 places"):
        scrambled(np.arange(10), 10, np.random.default_rng(1))


def test_streams_come_at_their_rates_and_keys_go_on() -> None:
    stream = ScrambledStream("S2", 40, 60, seed=3, phases=((10, 40, 1 / 8),))
    table = stream.table()
    at = table["S2_at"].to_numpy()
    assert table.estimated_size() == 24 * table.height
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
    assert [each.phases for each in one] == [(), ((10, 40, 1 / 8),), ((80, 90, 8),)]
    assert [bool(each.phases) for each in two] == [False, True, False, False, False, False]
    assert all(1 <= each.disorder <= 500 and each.multiplicity == 2 for each in two)
    short = Setting(7, faster=4).query_1()
    assert short[1].phases == ((2.5, 10, 1 / 8),)
    assert [each.disorder for each in short] == [round(each.disorder / 4) for each in one]


# ---- the truth -----------------------------------------------------------------------------


def logs(setting: Setting, number: int = 3) -> tuple[ArrivalLog, ...]:
    streams = setting.query_1() if number == 3 else setting.query_2()
    return tuple(ArrivalLog(each.name, each.table()) for each in streams)


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
        ArrivalLog(name, pl.DataFrame({f"{name}_at": 0.0, KEY: keys, name: 1}))
        for name, keys in (("S1", [3, 4, 3, 4]), ("S2", [6, 5]))
    )
    assert behind.continued(ahead).tolist() == [3, 4, 3, 4, 5, 5, 6, 6]
    assert ahead.continued(behind).tolist() == [6, 5]


# ---- the runs ------------------------------------------------------------------------------


def test_a_join_with_fixed_buffers_finds_what_the_logs_say() -> None:
    query = query_1(Setting(3, faster=15))
    sizes = [[40, 10, 50]]
    found = run(query, sizes=sizes)
    assert 0 < found.accuracy < 0.9
    assert found.results.height == round(query.found_by(sizes) * query.total)


def test_a_result_that_came_twice_or_is_none_is_noticed() -> None:
    query = query_1(Setting(3, faster=15))
    found = run(query, known=True, tick=0.5)
    assert found.accuracy == 1
    twice = replace(found, results=pl.concat([found.results, found.results.head(1)]))
    with pytest.raises(AssertionError, match="twice"):
        _ = twice.accuracy
    other = replace(found, results=found.results.head(1).with_columns(pl.col("S1") + 9))
    with pytest.raises(AssertionError, match="is no match"):
        _ = other.accuracy


@cache
def one_join() -> pl.DataFrame:
    setting = QUICK.settings[0]
    runs = [QUICK.run(1, setting, known=known) for known in (True, False)]
    found = oblivious_buffers.RunPair(*runs)
    return oblivious_buffers.points(found, 0, oblivious_buffers._model(query_1(setting)))


def test_predicted_buffers_follow_the_optimal_ones() -> None:
    outcome = oblivious_buffers.one_join_outcome([one_join()])
    assert outcome.holds, outcome.ours
    assert "accuracy 100.00% known" in outcome.ours
    readable("WO-F5", outcome)


@pytest.mark.parametrize(
    ("spoiled", "why"),
    [
        ({"accuracy_known": pl.lit(0.9999)}, "results are missing though all is known"),
        ({"accuracy_measured": pl.lit(0.99)}, "too many results are missing where measured"),
        ({"model_rows": pl.col("optimal_rows") - 1}, "the model is below the optimum"),
        ({"predicted_measured_rows": pl.col("second") % 7}, "where measured they correlate by"),
        ({"predicted_known_rows": pl.col("second") % 7}, "with all known they correlate by"),
    ],
)
def test_buffers_that_do_not_follow_say_why(spoiled: dict[str, pl.Expr], why: str) -> None:
    outcome = oblivious_buffers.one_join_outcome([one_join().with_columns(**spoiled)])
    assert not outcome.holds
    assert why in outcome.ours


@cache
def joined() -> tuple[pl.DataFrame, list[oblivious_buffers.Bound]]:
    setting = QUICK.settings[0]
    query = query_2(setting)
    bounds = oblivious_buffers.bounds(query)
    runs = [QUICK.run(2, setting, known=known) for known in (True, False)]
    rows = {"bound_rows": oblivious_buffers.bound_rows(query, bounds)}
    return oblivious_buffers.points(oblivious_buffers.RunPair(*runs), 2, rows), bounds


def test_over_joins_the_bound_holds() -> None:
    table, bounds = joined()
    outcome = oblivious_buffers.joined_outcome([table], [bounds])
    assert outcome.holds, outcome.ours
    assert "below the optimum at 0 of" in readable("WO-F6", outcome)
    assert all(each.disorder < each.traits.disorder for each in bounds)


def test_a_bound_that_is_broken_does_not_hold() -> None:
    table, bounds = joined()
    low = table.with_columns(bound_rows=pl.col("optimal_rows") - 1)
    assert "the bound is below the optimum" in joined_outcome([low], [bounds]).ours
    broken = [replace(bounds[0], disorder=10**6), bounds[1]]
    outcome = joined_outcome([table], [broken])
    assert not outcome.holds
    assert "Theorem 3.1 is broken by S7" in outcome.ours


FIXED = pl.DataFrame(
    {
        "query": [1, 2],
        "held_rows": [1_000.0, 2_000.0],
        "accuracy": [1.0, 0.996],
        "fixed_accuracy_at_equal_rows": [0.3, 0.2],
        "one_size_accuracy_at_equal_rows": [0.25, 0.3],
        "fixed_rows_at_equal_accuracy": [2_000, 3_000],
        "one_size_rows_at_equal_accuracy": [4_000, 9_000],
        "times": [2.0, 1.5],
        "one_size_times": [4.0, 4.5],
    }
)


def test_a_run_is_set_beside_fixed_buffers() -> None:
    ours = QUICK.run(1, QUICK.settings[0])
    row = oblivious_memory.against_fixed(1, ours, checked=False)
    assert row["held_rows"] == ours.memory()
    assert row["fixed_accuracy_at_equal_rows"] < ours.accuracy == row["accuracy"]
    assert row["fixed_rows_at_equal_accuracy"] <= row["one_size_rows_at_equal_accuracy"]
    sizes = ours.query.one_size(int(row["one_size_rows_at_equal_accuracy"]) // 3)
    assert ours.query.found_by(sizes) >= ours.accuracy


def test_small_fixed_buffers_miss_most_and_large_ones_cost_more() -> None:
    held = oblivious_memory.fixed_outcome(FIXED)
    assert held.holds
    assert "find 30% of results at most" in readable("WO-F8", held)
    better = FIXED.with_columns(one_size_accuracy_at_equal_rows=pl.lit(0.5))
    assert "of one size find 50% of Query 1" in oblivious_memory.fixed_outcome(better).ours
    cheaper = FIXED.with_columns(one_size_times=pl.lit(1.2))
    outcome = oblivious_memory.fixed_outcome(cheaper)
    assert not outcome.holds
    assert "a window needs 1.20 × the memory for Query 2" in outcome.ours


def reliefs(one: tuple[float, ...], two: tuple[float, ...]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "query": number,
                "strategy": mode,
                "held_rows": rows,
                "held_bytes": 24 * rows,
                "disk_rows": 0.0,
                "model_rows": 2 * rows,
                "exact_model_rows": 1.5 * rows,
                "accuracy": 1.0,
            }
            for number, held in ((1, one), (2, two))
            for mode, rows in zip(RELIEF_MODES, held, strict=True)
        ]
    )


def test_the_order_of_strategies_is_judged() -> None:
    papers = (100.0, 105.0, 70.0, 50.0)
    assert oblivious_memory.reliefs_outcome(reliefs(papers, (100.0, 60.0, 80.0, 40.0))).holds
    for one, two, why in (
        ((100.0, 150.0, 70.0, 50.0), (100.0, 60.0, 80.0, 40.0), "MSF takes +50% on Query 1"),
        ((100.0, 105.0, 110.0, 50.0), (100.0, 60.0, 80.0, 40.0), "DBF is not below MSF"),
        ((100.0, 105.0, 70.0, 80.0), (100.0, 60.0, 80.0, 40.0), "not the least on Query 1"),
        (papers, (100.0, 60.0, 80.0, 70.0), "not the least on Query 2"),
        (papers, (100.0, 80.0, 60.0, 40.0), "DBF is below MSF on Query 2"),
    ):
        outcome = oblivious_memory.reliefs_outcome(reliefs(one, two))
        readable("WO-F9", outcome)
        assert not outcome.holds
        assert why in outcome.ours


def test_rows_on_disk_are_not_in_memory_and_all_strategies_find_the_same() -> None:
    setting = QUICK.settings[0]
    runs = {mode: QUICK.run(1, setting, mode) for mode in RELIEF_MODES}
    assert {each.results.height for each in runs.values()} == {runs["plain"].query.total}
    assert runs["plain"].memory("disk_rows") == 0 < runs["dbf"].memory("disk_rows")
    assert runs["dbf"].memory() < runs["plain"].memory()
    assert runs["hybrid"].memory() < runs["msf"].memory()


def test_the_model_has_the_papers_order_by_the_bounds_and_ours_without() -> None:
    """For Query 2, sorting first takes less than the disk by Theorem 3.1, and more by the truth."""
    setting = Setting(1)
    one, two = (
        {mode: oblivious_memory.modelled(make(setting), mode) for mode in RELIEF_MODES}
        for make in (query_1, query_2)
    )
    assert one["hybrid"] < one["dbf"] < one["msf"]
    assert two["hybrid"] < two["msf"] < two["dbf"] < two["plain"]
    true = {
        mode: oblivious_memory.modelled(query_2(setting), mode, exact=True) for mode in RELIEF_MODES
    }
    assert true["hybrid"] < true["dbf"] < true["msf"] < true["plain"]


def test_sorting_first_takes_orders_longer() -> None:
    """A step of work takes a millisecond, whatever it does, so this is repeatable."""
    table = oblivious_memory.latencies(Setting(1, faster=20, warm=6), charge=1_000_000)
    mean = dict(table.select("strategy", "mean_seconds").iter_rows())
    assert min(mean["msf"], mean["hybrid"]) > 10 * mean["plain"]
    assert mean["plain"] == pytest.approx(mean["fixed"], rel=0.5)
    assert table["results"].min() > 0  # type: ignore[operator]


def test_latencies_are_judged_by_order_and_ratio() -> None:
    def judged(fixed: float, dbf: float, msf: float, hybrid: float) -> Outcome:
        mean = {"fixed": fixed, "plain": 1.0, "msf": msf, "dbf": dbf, "hybrid": hybrid}
        rows = [{"strategy": name, "mean_seconds": 1e-3 * each} for name, each in mean.items()]
        return oblivious_memory.latency_outcome(pl.DataFrame(rows))

    assert judged(0.9, 1.5, 100, 110).holds
    assert "1.50 × with DBF" in readable("WO-F11", judged(0.9, 1.5, 100, 110))
    for latencies, why in (
        ((0.5, 1.5, 100, 110), "W-Join takes 0.50 × as long"),
        ((0.9, 0.9, 100, 110), "DBF takes 0.90 × as long"),
        ((0.9, 1.5, 12, 110), "MSF takes only 12 × as long"),
        ((0.9, 1.5, 100, 12), "Hybrid takes only 12 × as long"),
    ):
        outcome = judged(*latencies)
        assert not outcome.holds
        assert why in outcome.ours


def test_the_claims_are_found_by_name() -> None:
    ids = ["wo-f1", "WO-F5", "wo-f6", "WO-F8", "WO-F9", "WO-F11"]
    assert [claim.id for claim in registry.find(ids)] == [name.upper() for name in ids]
