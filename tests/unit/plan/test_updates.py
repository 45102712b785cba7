"""Update streams in queries: where their queue stands, and what is refused over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.plan import nodes
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.physical.layout import lay_out
from lowwater.plan.physical.planner import compile_plan

COLUMNS = {"ts": [1, 2], "symbol": ["a", "b"], "price": [0.5, 1.5], "market": ["x", "x"]}


def plain(name: str = "Plain") -> lw.Stream:
    return lw.stream(pl.DataFrame(COLUMNS), name=name, time="ts")


def trades(name: str = "Trades", **options: Any) -> lw.Stream:
    given = {"update_key": "symbol"} | options
    return lw.stream(pl.DataFrame(COLUMNS), name=name, time="ts", **given)


def key_of(stream: lw.Stream) -> tuple[str, ...] | None:
    updates = stream.node.updates
    return None if updates is None else updates.key


def test_a_node_that_keeps_no_keys_takes_no_update_stream() -> None:
    node = trades().node
    with pytest.raises(lw.QueryError, match="this operator is not for update streams"):
        nodes.OrderNode((node,), node.schema, node.progress, node.time, "ts")


# ---- columns of the key ------------------------------------------------------------------------


def test_filtered_and_computed_rows_are_updates_of_the_same_key() -> None:
    found = trades().where("price > 1").select("symbol", "ts", twice="price * 2")
    assert key_of(found) == ("symbol",)


def test_a_renamed_key_is_the_key() -> None:
    assert key_of(trades().select("ts", name="symbol")) == ("name",)


def test_a_key_that_is_copied_as_well_keeps_its_name() -> None:
    assert key_of(trades().select("symbol", "ts", again="symbol")) == ("symbol",)
    assert key_of(trades().map(again="symbol")) == ("symbol",)


def test_a_key_of_two_columns_may_change_places() -> None:
    stream = trades(update_key=["market", "symbol"]).select("ts", market="symbol", symbol="market")
    assert key_of(stream) == ("symbol", "market")


@pytest.mark.parametrize(
    "lose",
    [
        lambda s: s.select("ts", "price"),
        lambda s: s.select("ts", symbol="upper(symbol)"),
        lambda s: s.map(symbol="market"),
        lambda s: s.apply(lambda chunk: chunk.drop("symbol"), {"ts": pl.Int64}),
        lambda s: s.apply(lambda chunk: chunk, dict.fromkeys(COLUMNS, pl.Int64)),
    ],
)
def test_rows_without_their_key_are_refused(lose: Callable[[lw.Stream], Any]) -> None:
    with pytest.raises(lw.QueryError, match=r"the update key \(symbol\) must stay with its rows"):
        lose(trades())


def test_a_lost_column_of_a_key_is_named() -> None:
    with pytest.raises(lw.QueryError, match="select symbol as it is; it may get another name"):
        trades(update_key=["market", "symbol"]).select("ts", "market")


# ---- what has no meaning -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refused", "says"),
    [
        (lambda s: s.distinct(), "distinct over .* there is one row of each key and time"),
        (lambda s: s.order_by(), "order_by over .* sort across keys"),
        (lambda s: s.group_by("ts").agg(n="count(*)"), "without a window over .* put window"),
        (lambda s: s.updates("symbol"), r"an update stream already, by \(symbol\)"),
        (lambda s: s.corrections(pl.DataFrame(COLUMNS)), "older than what its key shows"),
        (
            lambda s: lw.join([s, trades("Others"), plain()], on="ts", within="1 s"),
            "two at a time",
        ),
    ],
)
def test_what_has_no_meaning_says_what_to_do(
    refused: Callable[[lw.Stream], Any], says: str
) -> None:
    with pytest.raises(lw.QueryError, match=says):
        refused(trades())
    with pytest.raises(lw.QueryError, match=says):
        refused(trades().where("price > 1"))


# ---- unions ------------------------------------------------------------------------------------


def queue(stream: lw.Stream) -> nodes.UpdateNode:
    assert isinstance(stream.node, nodes.UpdateNode)
    return stream.node


def names(stream: lw.Stream) -> list[str]:
    return [source.spec.name for source in update_builders.sources(stream.node)]


def test_a_union_of_update_streams_is_one_queue_of_their_rows() -> None:
    found = queue(trades("A").union(trades("B").where("price > 1")))
    assert found.updates.key == ("symbol",)
    assert [type(each) for each in found.inputs] == [nodes.SourceNode, nodes.FilterNode]
    assert type(found.inputs[1].inputs[0]) is nodes.SourceNode
    assert found.time == "ts"
    assert found.prefer is None


def test_a_union_of_unions_is_one_queue() -> None:
    a, b, c, d = map(trades, "ABCD")
    found = a.union(b).where("price > 1").union(c.union(d))
    assert names(found) == ["A", "B", "C", "D"]
    assert len(queue(found).inputs) == 4
    assert all(each.updates is None for each in queue(found).inputs)


@pytest.mark.parametrize("by_name", [False, True])
def test_a_union_prefers_one_of_its_streams(by_name: bool) -> None:
    a, b, c = map(trades, "ABC")
    wanted = c.where("price > 1")
    assert queue(a.union(b, wanted, prefer="C" if by_name else wanted)).prefer == 2
    assert queue(a.union(b).union(wanted, prefer="C" if by_name else wanted)).prefer == 2


def test_what_a_union_prefers_it_prefers_in_another() -> None:
    a, b, c = map(trades, "ABC")
    assert queue(c.union(a.union(b, prefer=b))).prefer == 2
    with pytest.raises(lw.QueryError, match="give it once"):
        c.union(a.union(b, prefer=b), prefer=c)
    with pytest.raises(lw.QueryError, match="several of these streams prefer"):
        c.union(trades("D"), prefer=c).union(a.union(b, prefer=b))


@pytest.mark.parametrize("prefer", [trades("C"), "C", trades("A")])
def test_what_is_preferred_must_be_united(prefer: Any) -> None:
    with pytest.raises(lw.QueryError, match=r"one of the streams that are united \(A, B\)"):
        trades("A").union(trades("B"), prefer=prefer)


def test_a_union_itself_is_not_preferred() -> None:
    both = trades("A").union(trades("B"))
    with pytest.raises(lw.QueryError, match="one of the streams that are united"):
        both.union(trades("C"), prefer=both)


def test_prefer_takes_a_stream() -> None:
    with pytest.raises(lw.OptionError, match="prefer= takes streams, not int"):
        trades("A").union(trades("B"), prefer=1)  # type: ignore[arg-type]


def test_prefer_is_for_update_streams() -> None:
    with pytest.raises(lw.OptionError, match="prefer= is for unions of update streams"):
        plain("A").union(plain("B"), prefer="A")


def test_update_streams_and_others_do_not_mix() -> None:
    for one, two in [(trades(), plain()), (plain(), trades())]:
        with pytest.raises(lw.QueryError, match=r"some are not; .* updates\('k'\)"):
            one.union(two)


def test_a_union_needs_one_key_and_the_same_options() -> None:
    with pytest.raises(lw.QueryError, match=r"\(symbol\), in-place against \(market\), in-place"):
        trades("A").union(trades("B", update_key="market"))
    with pytest.raises(lw.QueryError, match=r"in-place against \(symbol\), fifo"):
        trades("A").union(trades("B", schedule="fifo"))


def test_a_union_of_update_streams_needs_the_same_columns_and_a_time() -> None:
    with pytest.raises(lw.QueryError, match="union needs streams with the same columns"):
        trades("A").union(trades("B").select("ts", "symbol"))
    with pytest.raises(lw.QueryError, match="keep it where columns are selected"):
        trades("A").select("symbol").union(trades("B").select("symbol"))


def test_a_window_over_a_union_goes_over_one_row_of_each_key_and_time() -> None:
    rows = update_builders.without_queue(trades("A").union(trades("B")).node)
    assert isinstance(rows, nodes.DistinctNode)
    assert rows.key == ("symbol", "ts")
    assert isinstance(rows.inputs[0], nodes.UnionNode)


def test_the_arrival_of_a_union_is_that_of_all_its_streams() -> None:
    def replayed(name: str, arrival: str) -> lw.Stream:
        log = lw.replay(pl.DataFrame(COLUMNS), arrival=arrival)
        return lw.stream(log, name=name, time="ts", update_key="symbol")

    assert queue(replayed("A", "ts").union(replayed("B", "ts"))).arrival == "ts"
    assert queue(replayed("A", "ts").union(trades("B"))).arrival is None


# ---- joins -------------------------------------------------------------------------------------


def test_a_join_on_the_keys_is_of_the_newest_rows_and_an_update_stream() -> None:
    found = trades("A").join(trades("B"), on="symbol")
    assert isinstance(found.node, nodes.NewestJoinNode)
    assert key_of(found) == ("symbol",)
    assert found.time is None
    assert found.columns == [*COLUMNS, "ts_right", "price_right", "market_right"]
    assert found.node.stamps == ("ts", "ts_right")


def test_other_columns_that_must_be_equal_are_no_keys() -> None:
    node = trades("A").join(trades("B"), on=["market", "symbol"]).node
    assert isinstance(node, nodes.NewestJoinNode)
    assert node.on == (("symbol", "symbol"),)
    assert node.same == (("market", "market"),)
    assert node.updates is not None
    assert node.updates.key == ("symbol",)


@pytest.mark.parametrize("options", [{"within": "1 s"}, {"on": ["symbol", "ts"]}])
def test_a_join_of_times_near_each_other_is_an_update_stream_too(options: Any) -> None:
    found = trades("A").join(trades("B"), **{"on": "symbol"} | options)
    assert isinstance(found.node, nodes.JoinNode)
    assert found.node.newest
    assert key_of(found) == ("symbol",)
    assert found.time == "ts"


def test_a_join_with_an_ordinary_stream_is_no_update_stream() -> None:
    for one, two in [(trades(), plain()), (plain(), trades())]:
        assert key_of(one.join(two, on="symbol", within="1 s")) is None
        with pytest.raises(lw.QueryError, match="this join could never forget a row"):
            one.join(two, on="symbol")


@pytest.mark.parametrize(
    "joined",
    [
        lambda s: lw.join([plain("A"), plain("B"), s], on="symbol", within="1 s"),
        lambda s: lw.join([plain("A"), s], on=["ts", "symbol"]),
        lambda s: plain().join(s, on=["ts", "symbol"], memory="1 MB"),
        lambda s: lw.sql("SELECT P.ts FROM P, S [MEMORY '1 MB'] WHERE P.ts = S.ts", P=plain(), S=s),
    ],
)
def test_one_input_of_a_join_of_many_may_be_an_update_stream(
    joined: Callable[[lw.Stream], lw.Stream],
) -> None:
    found = joined(trades())
    assert key_of(found) is None
    assert sorted(found.collect()["ts"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("on", ["market", [("market", "symbol")], []])
def test_a_join_needs_both_keys(on: Any) -> None:
    for options in ({}, {"within": "1 s"}):
        with pytest.raises(
            lw.QueryError, match=r"\(symbol\) of the left and \(symbol\) of the right"
        ):
            trades("A").join(trades("B"), on=on, **options)


def test_keys_of_different_columns_are_joined_pair_by_pair() -> None:
    both = trades("A", update_key=["symbol", "market"])
    turned = trades("B", update_key=["symbol", "market"])
    node = both.join(turned, on=[("market", "symbol"), ("symbol", "market")]).node
    assert isinstance(node, nodes.NewestJoinNode)
    assert node.on == (("symbol", "market"), ("market", "symbol"))
    for on in (["symbol"], [("symbol", "symbol"), ("market", "symbol")]):
        with pytest.raises(lw.QueryError, match="both update keys"):
            both.join(turned, on=on)
    with pytest.raises(lw.QueryError, match="both update keys"):
        both.join(trades("C"), on="symbol")


@pytest.mark.parametrize("within", [None, "1 s"])
@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"how": "left"}, lw.QueryError, "a left join of update streams .* use an inner join"),
        ({"how": "anti"}, lw.QueryError, "an anti join of update streams .* use an inner join"),
        ({"order": "adaptive"}, lw.QueryError, "the results of each key leave in order"),
        ({"memory": "1 MB"}, lw.OptionError, "one row of each key is kept"),
        ({"where": "price > nothing"}, lw.QueryError, "unknown column 'nothing'"),
    ],
)
def test_what_a_join_of_update_streams_is_not(
    within: Any, options: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        trades("A").join(trades("B"), on="symbol", within=within, **options)


def test_a_join_needs_the_times_of_rows() -> None:
    bare = trades("A").select("symbol", "price")
    for one, two in [(bare, trades("B")), (trades("B"), bare)]:
        with pytest.raises(lw.QueryError, match="keep them where columns are selected"):
            one.join(two, on="symbol")
    with pytest.raises(lw.QueryError, match="keep them where columns are selected"):
        trades("A").join(trades("B"), on="symbol").select("symbol", "ts").join(
            trades("C"), on="symbol"
        )


def test_joins_of_joins_go_by_all_times() -> None:
    def kept(chunk: pl.DataFrame) -> pl.DataFrame:
        return chunk

    both = trades("A").join(trades("B"), on="symbol").apply(kept).where("price > 0")
    named = both.select("symbol", first="ts", second="ts_right")
    node = named.join(trades("C"), on="symbol").node
    assert isinstance(node, nodes.NewestJoinNode)
    assert node.sides == (("first", "second"), ("ts",))
    assert node.stamps == ("first", "second", "ts")


def test_a_key_may_be_named_by_any_column_that_equals_it() -> None:
    named = trades("B").select("ts", name="symbol")
    both = trades("A").join(named, on=[("symbol", "name")]).where("price > 0")
    renamed = both.select("symbol", "ts", "ts_right", again="name")
    for left, column in ((both, "name"), (renamed, "again"), (renamed, "symbol")):
        node = left.join(trades("C"), on=[(column, "symbol")], suffix="_c").node
        assert isinstance(node, nodes.NewestJoinNode)
        assert node.on == (("symbol", "symbol"),)
    near = trades("A").join(named, on=[("symbol", "name")], within="1 s")
    assert key_of(near.join(trades("C"), on=[("name", "symbol")], suffix="_c")) == ("symbol",)


def test_windows_and_unions_do_not_go_over_joins() -> None:
    both = trades("A").join(trades("B"), on="symbol", within="1 s")
    with pytest.raises(lw.QueryError, match="here they would read answers"):
        both.union(both)


def test_streams_without_a_key_are_joined_by_what_is_newest_of_all() -> None:
    node = trades("A", update_key=()).join(trades("B", update_key=())).node
    assert isinstance(node, nodes.NewestJoinNode)
    assert node.on == ()


# ---- spread over machines ----------------------------------------------------------------------


def stages(stream: lw.Stream) -> list[tuple[list[str], str]]:
    plan = compile_plan(stream.node)
    layout = lay_out(plan)
    return [
        ([plan.operators[each].name for each in stage.operators], layout.spelled(stage))
        for stage in layout.stages
    ]


def test_queues_and_what_joins_them_run_together() -> None:
    a, b, c = map(trades, "ABC")
    joined = a.join(b.where("price > 1"), on=["symbol", "market"])
    assert stages(joined) == [(["update", "update", "filter", "newestjoin"], "by symbol")]
    assert stages(joined.join(c, on="symbol", suffix="_c")) == [
        (["update", "update", "filter", "newestjoin", "update", "newestjoin"], "by symbol")
    ]
    near = a.join(b, on=["symbol", "market"], within="1 s")
    assert stages(near) == [(["update", "update", "join", "newest"], "by symbol")]


def test_a_union_is_spread_by_its_key() -> None:
    a, b = trades("A"), trades("B").select("ts", symbol="symbol", price="price", market="market")
    assert stages(a.union(b)) == [(["project", "update"], "by symbol")]


def test_queues_without_a_key_run_in_one_place() -> None:
    a, b = trades("A", update_key=()), trades("B", update_key=())
    assert stages(a.join(b)) == [(["update", "update", "newestjoin"], "one bucket")]


def test_queues_that_no_key_suits_stay_apart() -> None:
    a, b = trades("A"), trades("B").apply(lambda chunk: chunk)
    assert [spread for _, spread in stages(a.join(b, on="symbol"))] == [
        "by symbol",
        "by symbol",
        "by symbol",
    ]


def test_an_ordinary_stream_joins_where_the_queue_is() -> None:
    query = trades("A").join(plain(), on="symbol", within="1 s")
    assert stages(query) == [(["update", "join"], "by symbol")]


# ---- in words ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "the newest row of each symbol waits, older ones are given up"),
        ({}, "next is the key that has waited longest"),
        ({}, "a batch on Spark: as much as keeps answers freshest"),
        ({"budget": "1 s"}, "a batch on Spark: 1 s of work"),
        ({"schedule": "fifo"}, "next is the key whose newest update has waited longest"),
        (
            {"schedule": "linecutting"},
            "next is a key whose rate is below 1 / (cost * waiting keys), or else",
        ),
        ({"schedule": "rare-first"}, "next is a key that is rarely updated, or else"),
        ({"schedule": "auto"}, "next is the key whose service is worth most"),
        ({"weights": {"a": 2}}, "next is the one whose waiting, times its weight, is greatest"),
        ({"complete_within": "2 s"}, "given up, but only while a row would have to wait 2 s"),
        ({"schedule": "append"}, "under load: all rows wait for their turn"),
        ({"schedule": "shedding"}, "under load: a share is dropped at random"),
        ({"update_key": ()}, "under load: the newest row of all waits"),
        ({"update_key": ["symbol", "market"]}, "the newest row of each symbol and market waits"),
    ],
)
def test_explain_says_what_a_queue_does_under_load(options: Any, says: str) -> None:
    assert says in trades(**options).explain()


def test_explain_says_where_a_queue_stands() -> None:
    text = trades().where("price > 1").explain()
    assert text.index("filter#2") < text.index("update#1") < text.index("source#0")
    text = trades("A").where("price > 1").union(trades("B")).explain()
    assert text.index("update#3  by symbol, in-place") < text.index("filter#1")
    assert "stage 0: filter#1, update#3" in text
    assert "rows go to buckets: by symbol" in text


def test_explain_says_whom_a_union_believes() -> None:
    a, b = trades("A"), trades("B")
    assert "of rows with one key and ts the first is shown" in a.union(b).explain()
    text = a.union(b, prefer=b).explain()
    assert "the first is shown, or that of B if it comes while the first waits" in text


def test_explain_says_what_a_join_keeps() -> None:
    text = trades("A").join(trades("B"), on=["symbol", "market"], where="price > 3").explain()
    assert "newestjoin#4  the newest of each symbol, market, price > 3" in text
    assert "keeps: the newest row of each symbol of both inputs" in text
    text = trades("A").join(trades("B"), on="symbol", within="5 s").explain()
    assert text.index("newest#5  of each symbol") < text.index("join#4  inner, ts from 5 s before")


@pytest.mark.parametrize(
    ("windows", "kind"), [("lazy", "complete window"), ("eager", "window that began")]
)
def test_explain_says_which_window_waits(windows: Any, kind: str) -> None:
    stream = trades(windows=windows)
    text = stream.window("5 s").group_by("symbol").agg(mean="avg(price)").explain()
    assert f"under load: the newest {kind} of each symbol waits" in text
