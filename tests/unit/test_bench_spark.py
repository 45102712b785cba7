"""The parts of the Spark benchmark that need no Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from lowwater.bench import (
    BENCHMARKS,
    PARTS,
    run,
    spark_large,
    spark_oblivious,
    spark_ordered,
    spark_updates,
)
from lowwater.bench.kernels import QUERIES, millis
from lowwater.bench.spark_compare import agreement, same_rows
from lowwater.bench.spark_data import BEGIN, Flow, write_files
from lowwater.bench.spark_groups import LAG, Fleet, due, lateness, lost, many_devices
from lowwater.bench.spark_live import ages_when_read, batches_taken, counted
from lowwater.bench.spark_side import Batch, SideRun, Usage, committed, family, used
from lowwater.bench.spark_small import Wait, completed, waits
from lowwater.errors import OptionError


def batch(number: int, began: float, millis: int, rows: int = 10) -> Batch:
    return Batch(number, began, rows, {"triggerExecution": millis}, 0, 0, 0, 0)


def windows(*rows: tuple[int, int, float]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "window_start": [start for start, _, _ in rows],
            "n": [n for _, n, _ in rows],
            "written": [written for _, _, written in rows],
        }
    )


def test_windows_both_sides_answered_decide_whether_they_agree():
    ours = windows((0, 5, 1.0), (10, 7, 2.0), (20, 1, 3.0))
    found = agreement(ours, windows((10, 7, 9.0), (0, 5, 9.0)))
    assert (found.same, found.both, found.only_ours, found.only_theirs) == (True, 2, 1, 0)
    assert not agreement(ours, windows((0, 6, 9.0))).same
    assert not agreement(ours, pl.DataFrame()).same


def test_a_row_too_many_is_no_agreement():
    assert not agreement(windows((0, 5, 1.0)), windows((0, 5, 1.0), (0, 5, 1.0))).same


def test_the_same_numbers_give_the_same_rows():
    flow = Flow(100, {"key": 5}, seed=3, disorder=0.5, behind=60)
    rows = flow.rows(200, 100)
    assert rows.equals(flow.rows(200, 100))
    seconds = rows["ts"].dt.epoch("us") / 1e6 - BEGIN + 60
    assert seconds.min() >= 1.5  # type: ignore[operator]
    assert seconds.max() <= 3.0  # type: ignore[operator]
    assert flow.schema == "ts timestamp, key int"


def test_files_are_read_in_the_order_of_their_times(tmp_path: Path):
    write_files(Flow(10, {"key": 2}, disorder=0.0).files(3, 10), tmp_path / "in")
    files = sorted((tmp_path / "in").iterdir(), key=lambda file: file.stat().st_mtime)
    newest = [pl.read_parquet(file)["ts"].max() for file in files]
    assert newest == sorted(newest)  # type: ignore[type-var]


def test_speed_with_and_without_the_first_batch():
    batches = [batch(0, 0.0, 4_000), batch(1, 4.0, 500), batch(2, 4.5, 500), batch(3, 5.0, 300, 0)]
    ran = SideRun("ours", batches, 6.3, Usage())
    assert ran.first == pytest.approx(5.0)
    assert ran.steady_speed == pytest.approx(20.0)
    assert ran.cold_speed == pytest.approx(30 / 6.0)


def test_a_window_is_complete_when_all_sources_have_passed_its_end():
    fast, slow = Flow(10, {}, disorder=0.0), Flow(10, {}, disorder=0.0, behind=5)
    alone = completed([fast], 10, 40, 0.0)
    both = completed([fast, slow], 10, 40, 0.0)
    first = int(BEGIN) + 10
    assert both[first] == alone[first] + 5
    assert completed([fast], 10, 40, 2.0)[first] == alone[first] + 2


def test_a_wait_lasts_from_the_start_of_one_batch_to_the_end_of_another():
    batches = [batch(number, number * 1.0, 900) for number in range(30)]
    results = pl.DataFrame({"window_end": [70, 80], "written": [25.5, 21.0]})
    results = results.with_columns(pl.from_epoch("window_end", time_unit="s"))
    found = waits(results, batches, {70: 25, 80: 3})
    assert [each.batches for each in found] == [0]  # the other is complete during warm-up
    assert found[0].millis == pytest.approx(900)
    assert Wait(1, 5.0).batches == 1


def test_rows_are_counted_by_their_second():
    assert counted([5.0, 5.9, 6.0]) == {5: 2, 6: 1}


def test_an_answer_takes_the_batch_that_runs_when_it_is_due_and_those_begun_after():
    batches = [batch(number, number * 1.0, 900) for number in range(10)]
    begun = [each.began for each in batches]
    assert batches_taken(3.5, 3.9, [], begun) == 1
    assert batches_taken(3.5, 4.9, [], begun) == 2
    ages = ages_when_read([1.25, 6.5], batches)
    assert ages == [(2.0, 0.75), (7.0, 0.5)]
    assert batches_taken(3.5, 4.9, ages, begun) == 1  # due at 4.25


def test_only_files_of_complete_batches_count(tmp_path: Path):
    line = json.dumps({"path": "file:///out/part%20a.parquet"})
    (tmp_path / "0").write_text(f"v1\n{line}\n")
    (tmp_path / ".1.tmp").write_text("v1\n")
    assert committed(tmp_path) == [Path("/out/part a.parquet")]


def test_descendants_of_a_process_and_what_they_used():
    assert family([(2, 1), (3, 2), (4, 9)], 1) == {1, 2, 3}
    assert used({1: 5.0}, {1: 6.0, 7: 2.5}) == pytest.approx(3.5)


def test_parts_can_be_named_and_others_are_refused():
    large = {"W1", "W2", "W3", "W4", "growth"}
    assert large | {"closes", "small", "groups", "ordered", "oblivious", "updates"} == set(PARTS)
    assert not set(PARTS) & set(BENCHMARKS)
    with pytest.raises(OptionError, match="W9"):
        run(["W9"])


def test_naming_the_benchmarks_loads_no_spark():
    program = "import sys, lowwater.bench; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_every_other_device_is_behind_and_each_is_in_order():
    rows = Fleet(100, {"device": 4}, 1, 0.0).rows(0, 1_000)
    for _, device in rows.group_by("device"):
        assert device["ts"].is_sorted()
    behind = rows.group_by(pl.col("device") % 2).agg(pl.col("ts").max()).sort("device")["ts"]
    assert round((behind[0] - behind[1]).total_seconds()) == LAG


def test_answers_are_late_by_arrival_after_their_device_and_rows_are_lost_by_window():
    begun = 1e9
    batches = [batch(number, begun + number, 500) for number in range(40)]
    rows = Fleet(10, {"device": 2}, 1, 0.0).rows(0, 10_000)
    expected = due(rows)
    counts = expected.with_columns(n=pl.col("rows").cast(pl.Int64)).drop("rows")
    end = (pl.col("window_start") + pl.duration(seconds=60)).alias("window_end")
    answers = counts.with_columns(end, written=pl.lit(begun + 2.4))
    assert lost(answers, expected) == 0
    assert (
        lost(answers.filter(pl.col("device") == 0), expected)
        == expected.filter(pl.col("device") == 1)["rows"].sum()
    )
    assert lost(pl.DataFrame(), expected) == expected["rows"].sum()
    first = answers.filter(pl.col("device") == 1).sort("window_end").head(1)
    passed = first["window_end"].dt.epoch("s")[0] + LAG
    assert lateness(first, batches, 1) == [(BEGIN + 3 * 180 - passed) / 60]
    assert lateness(first, batches, 0) == []


def test_files_have_two_rows_of_each_device_and_then_rows_of_a_few():
    files = list(many_devices(1_000))
    twice = pl.concat(files[:10])["device"].value_counts()["count"]
    assert twice.to_list() == [2] * 1_000
    assert all(each["device"].max() < 100 for each in files[10:])  # type: ignore[operator]
    assert pl.concat(files)["ts"].is_sorted()


def test_queries_over_many_groups_are_run_chunk_by_chunk(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lowwater.bench.kernels.CHUNKS", 2)
    assert all(millis(query, 200) > 0 for query in QUERIES.values())


def test_a_burst_is_the_slowest_batch_to_the_median_one():
    def ran(*millis: int) -> SideRun:
        warm = [5_000] * (spark_large.CLOSE_WARM * spark_large.CLOSE_BATCHES)
        batches = [batch(number, 0.0, each) for number, each in enumerate([*warm, *millis])]
        return SideRun("ours", batches, 0.0, Usage())

    rounds = [ran(100, 400, 100, 900), ran(100, 300, 800, 100)]
    assert spark_large.batch_millis(rounds) == [100, 300, 100, 100]
    assert spark_large.burst(rounds) == 3.0


def pairs(*rows: tuple[int, float]) -> pl.DataFrame:
    """Results by batch and seconds since the beginning."""
    times = pl.Series([int((BEGIN + second) * 1e6) for _, second in rows]).cast(pl.Datetime("us"))
    return pl.DataFrame({"batch": [batch for batch, _ in rows], "k": 1, "at": times})


def test_results_go_back_behind_any_that_was_before():
    assert spark_ordered.goes_back(pairs((0, 1), (0, 2), (1, 2), (2, 7))) == 0
    assert spark_ordered.goes_back(pairs((0, 1), (0, 5), (1, 3), (1, 4), (2, 6))) == 2


def test_a_result_is_late_by_what_has_arrived_when_its_batch_is_done():
    size = spark_ordered.Size("tiny", rate=10, files=3, rows_each=50)
    found = pairs((0, 4.0), (1, 4.5), (2, 14.0))
    assert spark_ordered.delay(found, size, 0.5) == pytest.approx(1.0)
    assert spark_ordered.delay(found, size, 1.0) == pytest.approx(5.5)
    rows = sum(flow.rows(0, 1_000).height for flow in size.flows)
    assert rows == 2_000
    assert [flow.keys for flow in size.flows] == [{"k": 100}] * 2


def test_pairs_are_compared_up_to_the_last_that_may_be_held_back():
    ours, theirs = pairs((0, 1), (1, 2), (1, 3)), pairs((1, 2), (0, 1), (2, 3), (2, 4))
    assert spark_ordered.same_pairs(ours, theirs)
    assert not spark_ordered.same_pairs(ours, pairs((0, 1), (2, 3), (2, 4)))
    assert not spark_ordered.same_pairs(ours, pl.DataFrame())


def times(*seconds: float) -> pl.DataFrame:
    micros = pl.Series([round(each * 1e6) for each in seconds]).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts": micros, "v": range(len(seconds))})


def test_a_watermark_finds_what_comes_before_it_has_passed():
    """It is at 10 before the second batch and at 12 before the third."""
    given = [[times(10, 20), times(7), times(12, 21)], [times(10), times(9, 12), times(7, 20, 21)]]
    late = spark_oblivious.lateness(given)
    assert sorted(late.tolist()) == [-10_000_000, -9_000_000, -8_000_000, 0, 5_000_000]
    shares = [(late < millis * 1_000).mean() for millis in (0, 1, 5_000, 5_001)]
    assert shares == [0.6, 0.8, 0.8, 1.0]
    assert spark_oblivious.least_delay(late, 0.6) == 0
    assert spark_oblivious.least_delay(late, 0.8) == 1
    assert spark_oblivious.least_delay(late, 1.0) == 5_001


def test_results_that_are_missing_or_too_many_are_counted():
    everything = spark_oblivious.pairs(times(1, 2, 2), times(2, 3, 2))
    assert everything.height == 4
    assert spark_oblivious.found(everything.head(3), everything) == 0.75
    assert spark_oblivious.made_up(everything, everything) == 0
    assert spark_oblivious.made_up(pl.concat([everything, everything.head(2)]), everything) == 2
    other = everything.with_columns(v=pl.lit(9, dtype=pl.Int64))
    assert spark_oblivious.made_up(other, everything) == 4
    columns = everything.columns
    assert same_rows(everything, everything.reverse(), columns)
    assert not same_rows(everything, other, columns)
    assert not same_rows(everything, pl.DataFrame(), columns)


def test_times_of_two_sources_can_be_equal_and_one_is_behind():
    first, second = (flow.rows(0, 20_000) for flow in spark_oblivious.flows())
    grid = round(1e6 / spark_oblivious.RATE)
    assert (first["ts"].dt.epoch("us") % grid == 0).all()
    ahead = (first["ts"].max() - second["ts"].max()).total_seconds()  # type: ignore[operator]
    assert ahead == pytest.approx(spark_oblivious.BEHIND, abs=0.1)
    partners = spark_oblivious.pairs(first, first).height / first.height
    assert 1.5 < partners < 2.5  # itself, and about one more


def test_what_is_kept_is_read_off_in_the_end_and_half_way():
    kept = [Batch(at, at, 10, {"triggerExecution": 5}, 0, 0, at * 100, at * 8) for at in range(5)]
    ran = SideRun("ours", [*kept, batch(5, 5.0, 5, rows=0)], 6.0, Usage())
    assert spark_oblivious.kept_rows(ran, 1.0) == 400
    assert spark_oblivious.kept_rows(ran, 0.5) == 100
    assert spark_oblivious.kept_bytes(ran) == 32


def test_staleness_of_what_was_handed_over_is_the_age_of_the_oldest_update_not_seen():
    """Key 0 is updated at 0 and 2, and shown at 4 and 6 seconds; key 1 at 1, and never shown."""
    came = [(0.0, 0), (1.0, 1), (2.0, 0)]
    shown = [(4.0, 0, 0), (6.0, 0, 2)]
    one = 4 * 4 / 2 + (4 * 4 - 2 * 2) / 2
    two = 7 * 7 / 2
    found = spark_updates.staleness(came, shown, 0.0, 8.0)
    assert found == pytest.approx((one + two) / spark_updates.KEYS / 8)
    late = spark_updates.staleness(came, shown, 6.0, 8.0)
    assert late == pytest.approx((7 * 7 - 5 * 5) / 2 / spark_updates.KEYS / 2)
