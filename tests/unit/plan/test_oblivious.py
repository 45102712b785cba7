"""Joins without a window over streams that promise nothing: planned, or refused with a reason."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.joins.oblivious.options import Oblivious
from lowwater.plan.builders.oblivious import unpromised
from lowwater.plan.nodes import JoinNode, MultiJoinNode
from lowwater.plan.physical.layout import lay_out
from lowwater.plan.physical.planner import compile_plan


def sensor(name: str, progress: Any = None, **columns: Any) -> lw.Stream:
    frame = pl.DataFrame({"epoch": [1, 2], "val": [0.5, 1.5], "k": [1, 1], **columns})
    return lw.stream(frame, name=name, time="epoch", progress=progress or lw.unpromised())


def sensors(*disorders: int | None) -> list[lw.Stream]:
    return [
        sensor(f"S{at}", lw.unpromised(disorder)) for at, disorder in enumerate(disorders, start=1)
    ]


def measuring(stream: lw.Stream) -> MultiJoinNode:
    node = stream._node
    assert isinstance(node, MultiJoinNode)
    assert node.oblivious is not None
    return node


# ---- which joins measure -----------------------------------------------------------------------


def test_a_join_of_streams_that_promise_nothing_measures_them() -> None:
    node = measuring(lw.join(sensors(5, None, 7), on="epoch"))
    assert node.oblivious == Oblivious(disorder=(5, None, 7))
    assert (node.windows, node.carried, node.times) == ((0, 0, 0), (), ("epoch",) * 3)
    assert list(node.schema) == ["epoch", "val", "k", "val_2", "k_2", "val_3", "k_3"]
    assert list(node.progress) == ["epoch"]
    assert node.time == "epoch"


def test_one_that_promises_nothing_is_enough() -> None:
    assert measuring(lw.join([sensor("a"), sensor("b", lw.ordered())], on="epoch"))
    assert measuring(sensor("a", lw.ordered()).join(sensor("b"), on="epoch"))


def test_promises_alone_are_gone_by_as_before() -> None:
    first, second = sensor("a", lw.ordered()), sensor("b", lw.within(3))
    assert isinstance(first.join(second, on="epoch")._node, JoinNode)
    together = lw.join([first, second], on="epoch")._node
    assert isinstance(together, MultiJoinNode)
    assert together.oblivious is None


@pytest.mark.parametrize(
    ("given", "how"),
    [
        ({"memory": "64 MB"}, Oblivious(memory=64_000_000)),
        ({"memory": 5000}, Oblivious(memory=5000)),
        ({"strategy": "hybrid"}, Oblivious(strategy="hybrid")),
        ({"strategy": "auto"}, Oblivious()),
        ({"accuracy": 0.9}, Oblivious(accuracy=0.9)),
        ({"latency": "2 seconds"}, Oblivious(latency=2 * 10**9)),
    ],
)
def test_an_option_makes_a_join_measure_though_there_are_promises(
    given: dict[str, Any], how: Oblivious
) -> None:
    one, two = sensor("a", lw.ordered()), sensor("b", lw.ordered())
    for join in (one.join(two, on="epoch", **given), lw.join([one, two], on="epoch", **given)):
        found = measuring(join).oblivious
        assert found is not None
        assert found.disorder == (None, None)
        assert (found.memory, found.strategy) == (how.memory, how.strategy)
        assert (found.accuracy, found.latency) == (how.accuracy, how.latency)


def test_two_streams_have_the_columns_of_any_join_of_two() -> None:
    measured = measuring(sensor("a").join(sensor("b"), on=["epoch", "k"], where="val < val_right"))
    exact = sensor("a", lw.ordered()).join(sensor("b", lw.ordered()), on=["epoch", "k"])
    assert dict(measured.schema) == exact.schema
    assert list(measured.schema) == exact.columns
    assert measured.out_name(1, "epoch") == "epoch"
    assert measured.out_name(1, "val") == "val_right"
    assert measured.residual is not None


def test_times_of_different_names_all_come_out_and_progress() -> None:
    renamed = sensor("b").select("val", at="epoch")
    node = measuring(sensor("a").join(renamed, on=[("epoch", "at")]))
    assert list(node.progress) == ["epoch", "at"]
    assert (node.lag("epoch", "at"), node.lag("at", "epoch")) == (0, 0)
    many = measuring(lw.join([sensor("a"), renamed], on=[("epoch", "at")]))
    assert list(many.progress) == ["epoch", "at"]


def test_of_several_equal_times_those_that_are_promised_are_gone_by() -> None:
    def both(name: str) -> lw.Stream:
        frame = pl.DataFrame({"epoch": [1], "ts": [1]})
        mixed = {"epoch": lw.unpromised(), "ts": lw.ordered()}
        return lw.stream(frame, name=name, time="epoch", progress=mixed)

    exact = both("a").join(both("b"), on=["epoch", "ts"])._node
    assert isinstance(exact, JoinNode)
    assert exact.times == ("ts", "ts")
    assert measuring(both("a").join(both("b"), on="epoch"))


def test_a_pipeline_measures_all_the_way_up() -> None:
    one, two = (lw.join(sensors_of(name), on="epoch") for name in "ab")
    top = measuring(lw.join([one, two], on="epoch", suffixes=["_b"]))
    assert unpromised(top, "epoch") == []
    assert unpromised(top, "epoch", True) == [(f"{n}{at}", "epoch") for n in "ab" for at in (1, 2)]


def sensors_of(name: str, **known: Any) -> list[lw.Stream]:
    return [sensor(f"{name}{at}", lw.unpromised(**known)) for at in (1, 2)]


@pytest.mark.parametrize(
    ("known", "disorder"),
    [
        ({"disorder": 3, "multiplicity": 2}, 12),  # 3 * 2 + 3 * 2
        ({"disorder": 3, "multiplicity": 1}, 6),
        ({"disorder": 3}, 24),  # no more than four rows of a value
        ({"multiplicity": 2}, None),
    ],
)
def test_disorder_of_results_follows_from_that_of_inputs(
    known: dict[str, int], disorder: int | None
) -> None:
    one, two = (lw.join(sensors_of(name, **known), on="epoch") for name in "ab")
    top = measuring(lw.join([one.where("val > 1"), two.select("epoch", v="val")], on="epoch"))
    assert top.oblivious is not None
    assert top.oblivious.disorder == (disorder, disorder)


def test_disorder_is_known_through_filters_and_projections_but_not_beyond() -> None:
    one = sensor("a", lw.unpromised(5))
    shifted = one.where("val > 1").select(epoch="epoch + 3")
    greater = sensor("b", lw.unpromised(5)).select(epoch="greatest(epoch, epoch - 3)")
    assert measuring(lw.join([shifted, sensor("c")], on="epoch")).oblivious == Oblivious(
        disorder=(5, None)
    )
    assert unpromised(greater._node, "epoch") == [("b", "epoch")]
    assert measuring(lw.join([greater, sensor("c")], on="epoch")).oblivious == Oblivious(
        disorder=(None, None)
    )


# ---- what follows ------------------------------------------------------------------------------


def test_what_a_measuring_join_gives_is_promised_to_what_follows() -> None:
    measured = lw.join(sensors(None, None), on="epoch")
    within = measured.join(sensor("c", lw.ordered()), on="k", within="5 seconds")
    assert isinstance(within._node, JoinNode)
    assert isinstance(measured.join(sensor("d", lw.ordered()), "epoch", how="left")._node, JoinNode)


def test_windows_over_streams_that_promise_nothing_are_not_refused() -> None:
    assert sensor("a").window("10 seconds").agg(n="count(*)").columns[-1] == "n"


# ---- other kinds, and near times ---------------------------------------------------------------


@pytest.mark.parametrize("how", ["left", "right", "full", "semi", "anti"])
def test_every_kind_measures_where_an_input_promises_nothing(how: Any) -> None:
    join = sensor("a", lw.ordered()).join(sensor("b"), on="epoch", how=how)
    told = join.explain()
    assert "obliviousjoin#2" in told
    assert f"{how} join 2 inputs, no window, on epoch" in told
    assert (
        "rows without a partner: known when the other input has passed them, right as far" in told
    )
    assert list(join._node.progress) == ["epoch"]
    exact = sensor("a", lw.ordered()).join(sensor("b", lw.ordered()), on="epoch", how=how)
    assert "obliviousjoin" not in exact.explain()
    told = exact_or_told(lw.unpromised(3), how).explain()
    assert "known when the other input has passed them, always right" in told


def exact_or_told(progress: Any, how: Any) -> lw.Stream:
    return sensor("a", progress).join(sensor("b", progress), on="epoch", how=how)


@pytest.mark.parametrize(
    ("within", "words"),
    [
        ("5 seconds", "epoch from 5 s before to 5 s after epoch"),
        ((1, -1), "epoch from 1 s before to -1 s after epoch"),
        (0, "no window, on epoch and k"),
    ],
)
def test_a_window_over_streams_without_promises_measures_them(within: Any, words: str) -> None:
    one, two = sensor("a"), sensor("b", lw.ordered())
    joined = one.join(two, on="k", within=within)
    assert words in joined.explain()
    assert "obliviousjoin#2" in joined.explain()
    if not isinstance(within, tuple):
        assert "obliviousjoin#2" in lw.join([one, two], on="k", within=within).explain()
    promised = sensor("c", lw.ordered()).join(two, on="k", within=within)
    assert "obliviousjoin" not in promised.explain()
    asked = sensor("c", lw.ordered()).join(two, on="k", within=within, accuracy=0.9)
    assert "obliviousjoin#2" in asked.explain()


def test_over_results_of_a_join_that_measures_promises_suffice() -> None:
    """Its punctuation is true, so a join with a window, or an outer join, stays exact."""
    both = sensor("a").join(sensor("b"), on="epoch")
    third = sensor("c", lw.ordered())
    left = both.join(third, on="epoch", how="left", suffix="_3")
    assert left.explain().splitlines()[1].startswith("join#4  left")
    assert "join#4" in both.join(third, on="k", within=5, suffix="_3").explain().splitlines()[1]


def test_rows_of_the_window_are_predicted() -> None:
    """50 rows/s for 4 seconds more than the 1,000 rows of disorder."""
    one, two = known("S1"), known("S2")
    told = one.join(two, on=[], within=("4 seconds", 0)).explain()
    assert "predicted buffers: S1 1,000 rows, S2 1,200 rows" in told
    left = one.join(two, on="epoch", how="left")
    then = left.join(known("S3"), on="epoch", suffix="_3").explain()
    assert "not known: rate of (S1, S2), disorder of (S1, S2)" in then


# ---- refused -----------------------------------------------------------------------------------


def test_same_stretches_and_windows_of_many_wait_for_promises() -> None:
    words = "could never forget a row: nothing is promised about 'epoch' of stream 'a'. Promise"
    with pytest.raises(lw.QueryError, match=words):
        sensor("a").join(sensor("b", lw.ordered()), on="k", within=lw.same(10))
    many = [sensor("a"), sensor("b", lw.ordered()), sensor("c", lw.ordered())]
    with pytest.raises(lw.QueryError, match=words):
        lw.join(many, on="k", within=5)


def test_times_that_are_not_equal_bound_nothing() -> None:
    with pytest.raises(lw.QueryError, match="could never forget a row"):
        sensor("a").join(sensor("b"), on="k")
    with pytest.raises(lw.QueryError, match="could never forget a row"):
        lw.join([sensor("a"), sensor("b")], on="k")


@pytest.mark.parametrize("option", [{"memory": "1 MB"}, {"strategy": "dbf"}, {"accuracy": 0.5}])
def test_options_go_with_joins_that_can_measure(option: dict[str, Any]) -> None:
    one, two, three = (sensor(name, lw.ordered()) for name in "abc")
    with pytest.raises(lw.OptionError, match="leave within= out, or these options"):
        lw.join([one, two, three], on="k", within=5, **option)
    with pytest.raises(lw.OptionError, match="leave them out, or give within= as a length"):
        one.join(two, on="k", within=lw.same(10), **option)


def test_order_goes_by_promises() -> None:
    with pytest.raises(lw.OptionError, match="Strategy 'msf' gives them in order of 'epoch'"):
        sensor("a").join(sensor("b"), on="epoch", order="sync-filter")
    with pytest.raises(lw.OptionError, match="leave order= and greatest"):
        lw.join(sensors(None, None), on="epoch", order="adaptive", alpha=0.2)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"memory": "a lot"}, "is not an amount of memory"),
        ({"memory": 0}, "above zero"),
        ({"strategy": "disk"}, "strategy= is one of 'auto', 'plain'"),
        ({"accuracy": 1.0}, "between 0 and 1"),
        ({"accuracy": "all"}, "a share of results such as 0.999, not 'all'"),
        ({"latency": "soon"}, "latency= 'soon' is not a length of time"),
        ({"latency": 0}, "a length of time above zero"),
    ],
)
def test_options_are_checked(option: dict[str, Any], message: str) -> None:
    with pytest.raises(lw.OptionError, match=message):
        sensor("a").join(sensor("b"), on="epoch", **option)
    with pytest.raises(lw.OptionError, match=message):
        lw.join(sensors(None, None), on="epoch", **option)


def test_what_joins_cannot_be_corrected() -> None:
    with pytest.raises(lw.QueryError, match="it joins"):
        lw.join(sensors(None, None), on="epoch").corrections({"S1": pl.DataFrame()})


# ---- spread ------------------------------------------------------------------------------------


def test_a_pipeline_on_one_attribute_is_one_stage() -> None:
    one = lw.join(sensors_of("a"), on="epoch")
    layout = lay_out(compile_plan(one.join(sensor("b"), on="epoch")._node))
    (stage,) = layout.stages
    assert layout.spelled(stage) == "by epoch"


# ---- explained ---------------------------------------------------------------------------------


def known(name: str, **said: Any) -> lw.Stream:
    said = {"disorder": 500, "multiplicity": 2, "rate": 50} | said
    return sensor(name, lw.unpromised(**said))


def test_buffers_are_predicted_from_what_is_said_of_streams() -> None:
    late, soon = known("S2", delay="10 seconds"), known("S1")
    told = lw.join([soon.where("val > 1"), late], on="epoch", memory="64 MB", latency=2).explain()
    assert "keeps rows by: disorder of S1 (500 rows), S2 (500 rows) and promises" in told
    assert "options: auto, 99.9 % of results, at most 64,000,000 bytes, rows wait 2 s" in told
    # 500 + 50 * 500 / 50 rows, and those of ten seconds that S1 is ahead and S2 behind
    assert "predicted buffers: S1 1,500 rows, S2 500 rows\n" in told
    # rows of three columns of eight bytes; sorted rows wait for 500 others, and are then in order
    assert "plain 2,000 rows, 48 kB; msf 1,505 rows, 36.1 kB; " in told


def test_buffers_of_joins_of_joins_are_predicted() -> None:
    one = lw.join([known("S1"), known("S2")], on="epoch").select("epoch", v="val")
    told = one.join(known("S3", disorder=100), on="epoch").explain()
    # 500 * 2 + 500 * 2 places and 50 * 2 + 50 * 2 rows a second, and 200 * 100 / 50 for S3
    assert "predicted buffers: (S1, S2) 2,400 rows, S3 600 rows" in told


def test_rates_may_be_given_later() -> None:
    query = known("S1", rate=None).join(known("S2", rate=None), on="epoch")
    words = "predicted buffers: measured at run time (not known: rate of S1, rate of S2)"
    assert words in query.explain()
    assert "S1 1,000 rows, S2 1,000 rows" in query.explain(rates={"S1": 50, "S2": 50})
    assert "S1 1,000 rows, S2 1,000 rows" not in query.explain(rates={"S1": 50, "S2": 10})


def test_what_is_measured_is_said_to_be() -> None:
    told = lw.join([sensor("S1"), known("S2")], on="epoch").explain()
    assert "keeps rows by: disorder of S2 (500 rows), measured disorder of others and" in told
    assert "measured at run time (not known: rate of S1, disorder of S1)" in told
    assert (
        "keeps rows by: measured disorder and promises"
        in lw.join(sensors(None, None), on="epoch").explain()
    )
    assert "punctuates: nothing about epoch, which is not promised" in told


def test_what_waits_for_promises_that_are_not_made_says_so() -> None:
    ending = "answers: at the end only, for nothing is promised about epoch of S1"
    assert ending in sensor("S1").window("10 seconds").agg(n="count(*)").explain()
    assert ending in sensor("S1").map(epoch="epoch + 3").order_by("epoch").explain()
    joined = lw.join(sensors(None, None), on="epoch").window("10 seconds").agg(n="count(*)")
    assert "at the end only" not in joined.explain()
    frame = pl.DataFrame({"epoch": [1], "ts": [1]})
    mixed = lw.stream(
        frame, name="m", time="ts", progress={"ts": lw.ordered(), "epoch": lw.unpromised()}
    )
    assert "at the end only" not in mixed.window("10 seconds").agg(n="count(*)").explain()
    assert "at the end only" in mixed.window("9 seconds", on="epoch").agg(n="count(*)").explain()
