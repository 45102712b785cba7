"""The cheap claims of the OOP paper hold, and the command line reports claims as it says."""

import json
import sys
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import lowwater
from lowwater.claims import (
    oop_flush,
    oop_groups,
    oop_held,
    oop_join,
    oop_joint,
    oop_union,
    registry,
    report,
)
from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.packets import Link
from lowwater.cli import app
from lowwater.errors import OptionError

runner = CliRunner()


def _made_up(name: str, holds: bool) -> Claim:
    table = pl.DataFrame({"x": [1, 2], "y": [3, 4]})
    outcome = Outcome("ours", holds, table, lambda figure: figure.subplots().plot([1, 2], [3, 4]))
    return Claim(name, "made up", "theirs", "anything", lambda _: outcome)


def test_band_join_holds_two_minutes_of_the_late_input_out_of_order():
    outcome = oop_held.S53.run(True)
    assert outcome.holds, outcome.ours


def test_joint_punctuation_answers_a_band_sooner():
    outcome = oop_joint.S7.run(True)
    assert outcome.holds, outcome.ours
    for kind in ("joint", "joint of three"):
        delays = outcome.table.filter(pl.col("punctuation") == kind)["delay_ticks"]
        assert delays.to_list() == [0]


def test_a_lagging_device_delays_nobody_else():
    outcome = oop_groups.GROUPS.run(True)
    assert outcome.holds, outcome.ours
    assert outcome.table["prompt_delay_s"][0] == 0


def test_late_link_fills_the_merge_of_an_in_order_count_only():
    table = oop_union.N3.run(True).table
    assert table["iop_bytes"][-1] > 10 * table["iop_bytes"][0]
    assert table["oop_state_bytes"][-1] < table["iop_state_bytes"][-1] / 1_000


def test_late_tuples_cost_out_of_order_join_less_memory():
    outcome = oop_join.N2.run(True)
    assert outcome.holds, outcome.ours


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
    told = json.loads(result.stdout.splitlines()[-1])
    assert (told["held"], told["failed"]) == (2, 0)
    assert told["rows"][0] == {"id": "A-1", "paper": "theirs", "ours": "ours", "holds": True}
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["A-1.csv", "A-1.png", "A-2.csv", "A-2.png"]
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
