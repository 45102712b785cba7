"""The cheap claims of the OOP paper hold, and the command line reports claims as it says."""

import json
import sys
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import lowwater
from lowwater.claims import (
    oop_band,
    oop_flush,
    oop_memory,
    oop_punctuation,
    registry,
    report,
)
from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.packets import Link
from lowwater.cli import app
from lowwater.errors import OptionError
from tests.support.plots import readable

runner = CliRunner()


def _made_up(name: str, holds: bool) -> Claim:
    table = pl.DataFrame({"x": [1, 2], "y": [3, 4]})
    outcome = Outcome("ours", holds, table, lambda figure: figure.subplots().plot([1, 2], [3, 4]))
    return Claim(name, "made up", "theirs", "anything", lambda _: outcome)


def test_band_join_holds_two_minutes_of_the_late_input_out_of_order():
    outcome = oop_band.S53.run(True)
    assert outcome.holds, outcome.ours
    readable("OOP-S5.3", outcome)


def test_joint_punctuation_answers_a_band_sooner():
    outcome = oop_punctuation.S7.run(True)
    assert outcome.holds, outcome.ours
    for kind in ("joint", "joint of three"):
        delays = outcome.table.filter(pl.col("punctuation") == kind)["delay_ticks"]
        assert delays.to_list() == [0]
    assert "0 ticks after both inputs" in readable("OOP-S7", outcome)


def test_a_lagging_device_delays_nobody_else():
    outcome = oop_punctuation.GROUPS.run(True)
    assert outcome.holds, outcome.ours
    assert outcome.table["prompt_delay_s"][0] == 0
    readable("OOP-GROUPS", outcome)


def test_late_link_fills_the_merge_of_an_in_order_count_only():
    outcome = oop_memory.N3.run(True)
    readable("OOP-N3", outcome)
    table = outcome.table
    assert table["iop_bytes"][-1] > 10 * table["iop_bytes"][0]
    assert table["oop_state_bytes"][-1] < table["iop_state_bytes"][-1] / 1_000


def test_late_tuples_cost_out_of_order_join_less_memory():
    outcome = oop_memory.N2.run(True)
    assert outcome.holds, outcome.ours
    readable("OOP-N2", outcome)


def swept(name: str, *ratios: float) -> pl.DataFrame:
    """Memory of both plans over what is varied, as if it had been measured."""
    iop = [2_000_000 * (at + 1) for at in range(len(ratios))]
    oop = [round(each * ratio) for each, ratio in zip(iop, ratios, strict=True)]
    varied = [20.0 * (at + 1) for at in range(len(ratios))]
    columns = {name: varied, "iop_bytes": iop, "oop_bytes": oop, "iop_rows": iop, "oop_rows": iop}
    return pl.DataFrame(columns).with_columns(ratio=pl.col("oop_bytes") / pl.col("iop_bytes"))


@pytest.mark.parametrize(("ratio", "holds"), [(0.31, True), (0.4, False), (1.2, False)])
def test_memory_of_a_count_is_judged_where_the_stream_is_latest(ratio: float, holds: bool):
    outcome = oop_memory.f1_outcome(swept("delay_seconds", 0.7, ratio))
    assert outcome.holds == holds
    assert f"takes {ratio:.0%} of the memory" in readable("OOP-F1", outcome)


@pytest.mark.parametrize(("ratio", "holds"), [(1.19, True), (1.3, False)])
def test_memory_of_a_join_is_judged_where_it_is_greatest(ratio: float, holds: bool):
    outcome = oop_memory.g3_outcome(swept("skew_seconds", ratio, 1.0))
    assert outcome.holds == holds
    assert f"up to {ratio:.2f} × the bytes" in readable("OOP-G3", outcome)


def test_a_band_join_is_judged_by_memory_latency_and_time():
    table = pl.DataFrame({"band_seconds": [1, 60], "pairs": [10, 600]}).with_columns(
        iop_bytes=pl.lit(9e6),
        oop_bytes=pl.Series([8e6, 2e6]),
        iop_latency_ms=pl.lit(4.0),
        oop_latency_ms=pl.Series([3.0, 1.0]),
        iop_seconds=pl.lit(0.5),
        oop_seconds=pl.Series([0.5, 0.4]),
    )
    outcome = oop_band.n1_outcome(table)
    assert outcome.holds, outcome.ours
    assert "memory is 22%, latency 25% and time 80%" in readable("OOP-N1", outcome)
    slower = oop_band.n1_outcome(table.with_columns(oop_seconds=pl.lit(0.6)))
    assert not slower.holds
    assert "time 120%" in readable("OOP-N1", slower)


def test_link_keeps_its_rate_its_delay_and_its_flows():
    link = Link("a", rate=50, seconds=20, flows=300, seed=1, delay=3, whole_seconds=True)
    table = link.table()
    assert table.height == 1_000
    assert table["arrived"].is_sorted()
    delays = table.select((pl.col("arrived") - pl.col("ts")).alias("d"))["d"]
    assert delays.is_between(3, 4).all()
    assert table.select("srcIP", "destIP").unique().height <= 300


def test_reverse_link_swaps_source_and_destination():
    there = Link("a", rate=50, seconds=20, flows=300, seed=1).table()
    back = Link("a", rate=50, seconds=20, flows=300, seed=1, reverse=True).table()
    assert there["srcIP"].equals(back["destIP"])
    assert there["destPort"].equals(back["srcPort"])


def test_registry_finds_claims_in_any_case_and_all_by_default():
    assert [claim.id for claim in registry.find(["oop-f1", "OOP-S7"])] == ["OOP-F1", "OOP-S7"]
    assert registry.find([]) == registry.CLAIMS
    ids = [claim.id for claim in registry.CLAIMS]
    assert len(ids) == len(set(ids))


def test_registry_suggests_the_nearest_claim():
    with pytest.raises(OptionError, match="Did you mean 'OOP-F1'"):
        registry.find(["OOP-FF1"])


def test_cli_refuses_an_unknown_claim():
    result = runner.invoke(app, ["claims", "OOP-X9"])
    assert result.exit_code == 2
    assert "unknown claim 'OOP-X9'" in result.output
    assert "OOP-S5.3" in result.output


def test_cli_ends_with_a_line_of_json_and_leaves_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(registry, "CLAIMS", (_made_up("A-1", True), _made_up("A-2", True)))
    result = runner.invoke(app, ["claims", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout.splitlines()[-1])
    assert (summary["held"], summary["failed"]) == (2, 0)
    assert summary["rows"][0] == {"id": "A-1", "paper": "theirs", "ours": "ours", "holds": True}
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["A-1.csv", "A-1.png", "A-2.csv", "A-2.png", "report.html"]
    assert pl.read_csv(tmp_path / "A-1.csv").shape == (2, 2)


def test_cli_fails_when_a_claim_does_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "CLAIMS", (_made_up("A-1", True), _made_up("A-2", False)))
    result = runner.invoke(app, ["claims", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert json.loads(result.stdout.splitlines()[-1])["failed"] == 1


def test_cli_says_what_to_install_when_there_is_no_matplotlib(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = runner.invoke(app, ["claims", "OOP-S7"])
    assert result.exit_code == 2
    assert "lowwater[claims]" in result.output


def test_cli_knows_its_version():
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.strip() == f"lowwater {lowwater.__version__}"


def test_every_outcome_can_be_drawn(tmp_path: Path):
    report.save(_made_up("A-1", True), _made_up("A-1", True).run(True), tmp_path)
    assert (tmp_path / "A-1.png").read_bytes().startswith(b"\x89PNG")


def test_a_table_emptied_in_order_bursts_and_one_out_of_order_does_not():
    works = {
        variant.name: oop_flush._work(4_000, 8_000, variant, 500) for variant in oop_flush.VARIANTS
    }
    bursts = {name: int(work.left.max()) for name, work in works.items()}
    assert bursts["iop"] > 3_000  # almost all groups at once
    assert max(bursts["oop_lazy"], bursts["oop_slow"]) <= 600  # about a step
    buffer = works["iop"].backlog(0.9, 1.0, 0.5) / 2
    rates = {name: work.rate(buffer, 1.0, 0.5) for name, work in works.items()}
    assert rates["oop_slow"] > rates["iop"]


@pytest.mark.parametrize(("in_order", "holds"), [(100.0, True), (250.0, False)])
def test_rates_are_judged_where_groups_are_few_and_where_they_are_many(
    in_order: float, holds: bool
):
    rates = {"iop": (300.0, in_order), "oop_lazy": (300.0, 280.0), "oop_slow": (300.0, 290.0)}
    table = pl.DataFrame(
        {
            "groups": groups,
            "table": size,
            "variant": name,
            "largest_burst_partials": 100,
            "highest_rate_k_per_s": rate,
        }
        for name, both in rates.items()
        for groups, rate in zip((8_250, 32_500), both, strict=True)
        for size in oop_flush.TABLES
    )
    outcome = oop_flush.g1_outcome(table, (8_250, 32_500), 32_500, "made up")
    assert outcome.holds == holds
    assert f"{in_order:.0f}k rows/s in order" in readable("OOP-G1", outcome)
