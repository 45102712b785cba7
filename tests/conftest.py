"""Hypothesis profiles, chosen by LOWWATER_HYPOTHESIS=quick|deep|thorough|noshrink, and one Spark
session."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]

settings.register_profile(
    "quick",
    max_examples=16,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "deep", settings.get_profile("quick"), max_examples=40, derandomize=False, database=None
)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=400)
settings.register_profile(
    "noshrink",
    settings.get_profile("quick"),
    phases=[Phase.explicit, Phase.generate],
    print_blob=False,
)
settings.load_profile(os.environ.get("LOWWATER_HYPOTHESIS", "quick"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A quiet session on two cores; its workers can import the tests' modules."""
    from lowwater.engines.spark.session import spark_session

    session = spark_session(master="local[2]", **{"spark.executorEnv.PYTHONPATH": str(ROOT)})
    yield session
    session.stop()


FULL = bool(os.environ.get("LOWWATER_FULL"))
"""Run every query of the conformance suite on Spark, and what takes a Spark of its own to prove."""
ONLY_IN_FULL = (
    "test_buckets_share_their_parts_of_the_budget",
    "test_cluster.py",
    "test_newest_answers.py",
    "test_keys_that_have_expired_or_were_deleted_are_gone_from_the_checkpoint",
    "test_state_of_a_changed_aggregate_is_refused",
    "test_connect.py",
    "test_pipeline.py",
    "test_a_sample_of_the_matrix_is_the_same_on_spark",
    "test_killed_and_started_again_rows_go_on_in_order",
    "test_killed_and_started_again_what_waits_goes_on_waiting",
    "test_windows_that_are_shown_are_whole_and_the_newest_is_shown[lazy]",
    "test_where_work_takes_no_time_all_windows_are_shown[lazy]",
    "test_where_work_takes_no_time_all_windows_are_shown[eager]",
    "test_joins_share_a_memory_budget",
    "test_too_many_lost_results_are_told",
    "test_a_window_over_a_silent_latent_stream_closes_by_the_clock",
    "test_a_source_that_never_sent_a_row_is_bounded_by_the_clock",
    "test_rows_of_equal_time_leave_alike_whatever_the_strategy",
    "test_every_result_is_found_as_in_one_process[plain]",
    "test_every_result_is_found_as_in_one_process[msf]",
    "test_every_result_is_found_as_in_one_process[dbf]",
    "test_a_channel_set_aside_stays_aside_after_a_restart",
    "test_a_checkpoint_refuses_a_log_that_grew",
    "test_workers_of_a_cluster_get_the_package",
    "test_machine_without_java_runs_a_stateful_query",
    "test_example_shows_what_it_says_on_spark[fresh_ticker]",
    "test_example_shows_what_it_says_on_spark[stalled_device]",
    "test_example_shows_what_it_says_on_spark[session_matching]",
    "test_example_shows_what_it_says_on_spark[packet_monitoring]",
)
ONE_IN = 40
"""Of the conformance cases on Spark, one in so many is run in a quick run."""
ROTATING = {
    "test_the_accuracy_told_is_that_of_the_run": 6,
    "test_one_epoch_is_never_taken_for_several": 6,
    "test_several_epochs_are_joined_as_one_is": 4,
    "test_a_queue_of_windows_keeps_the_keys_that_live": 4,
    "test_groups_that_end_are_answered_once": 6,
    "test_what_has_ended_holds_no_mark_of_the_whole_stream": 6,
    "test_groups_of_two_inputs_end_each_for_itself": 6,
    "test_on_spark_what_ends_is_answered_once": 9,
    "test_on_spark_groups_of_two_inputs_end_each_for_itself": 6,
    "test_answers_and_late_rows_follow_from_the_promises_in_rows": 4,
    "test_on_spark_promises_in_rows_hold_from_the_next_batch_on": 4,
    "test_state_is_no_larger_however_many_groups_came_and_ended": 10,
    "test_on_spark_state_is_no_larger_either": 4,
}
"""Of the cases of these tests, one in so many is run in a quick run."""
MOST = int(os.environ.get("LOWWATER_ONE_IN", "1"))
"""With ``LOWWATER_FULL``: of the cases that rotate, one in so many is run at least."""
SEED = int(os.environ.setdefault("LOWWATER_SEED", str(int(time.time() // 86_400))))
"""Which cases are run of those that rotate: another seed every day. Workers are given it."""


def one_in(usual: int) -> int:
    """Of how many cases that rotate one is run."""
    return min(usual, MOST) if FULL else usual


def pytest_report_header() -> str:
    """Say by which seed cases rotate, so that a run can be repeated."""
    return f"cases that rotate: LOWWATER_SEED={SEED}"


@pytest.hookimpl(tryfirst=True)  # groups have to be known when tests are dealt out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that share the session run in one process; those that start Spark apart, in another."""
    kept, left_out, seen = [], [], Counter[str]()
    for item in items:
        on_spark = "spark" in getattr(item, "fixturenames", ()) or "[spark" in item.nodeid
        if on_spark:
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif "tests/spark/" in item.nodeid:
            item.add_marker(pytest.mark.xdist_group("apart"))
        alone = any(name in item.nodeid for name in ONLY_IN_FULL)
        rotating = item.nodeid.partition("::")[2].partition("[")[0]
        usual = ROTATING.get(rotating, 1)
        if on_spark and "tests/conformance/" in item.nodeid:
            rotating, usual = "conformance on Spark", ONE_IN
        seen[rotating] += 1
        if (alone and not FULL) or (seen[rotating] + SEED) % one_in(usual):
            left_out.append(item)
        else:
            kept.append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept
