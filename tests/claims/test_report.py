"""The page about a run of claims, whatever becomes of them, and what makes a plot readable."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from lowwater.claims import drawing, html, registry, report
from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.report import Circumstances, Result, tally
from lowwater.cli import app
from tests.support.plots import faults

runner = CliRunner()


def plot(figure: Figure) -> None:
    axes = figure.subplots()
    for shift, way, style in ((0, "iop", "o-"), (1, "oop", "s-")):
        axes.plot([1, 2], [1 + shift, 2], style, color=drawing.COLOURS[way], label=way)
    axes.set(xlabel="delay [s]", ylabel="memory [MB]")
    axes.legend()
    drawing.caption(figure, "Memory is 22% <of> in-order", "about 30 %")


def made_up(name: str, holds: bool = True, rows: int = 2) -> Claim:
    table = pl.DataFrame({"delay_seconds": range(rows), "ratio": [1 / 3] * rows})
    ours = "0.22 & less" if holds else "0.44 DOES NOT HOLD: it is <above> 0.35"
    outcome = Outcome(ours, holds, table, plot)
    return Claim(name, f"memory of {name}", "about 30 %", "OOP < IOP", lambda _: outcome)


def raising(name: str, error: BaseException) -> Claim:
    def run(_: bool) -> Outcome:
        raise error

    return Claim(name, "made up", "theirs", "anything", run)


def run_claims(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *claims: Claim, options: tuple[str, ...] = ()
) -> tuple[int, str, str]:
    """The exit code, the output and the page of a run of these claims."""
    monkeypatch.setattr(registry, "CLAIMS", claims)
    result = runner.invoke(app, ["claims", "--out", str(folder), *options])
    return result.exit_code, result.stdout, (folder / "report.html").read_text(encoding="utf-8")


class Parsed(HTMLParser):
    """Tags that are closed, what they point to, and their text."""

    def __init__(self, page: str):
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.sources: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "iframe")
        if tag not in ("meta", "img"):
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.add(str(value))
            elif name == "href":
                self.links.add(str(value))
            elif name in ("src", "alt"):
                self.sources.append(str(value))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)


# ---- the page ------------------------------------------------------------------------------


def test_the_page_has_all_of_a_run_and_needs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = made_up("OOP-1"), made_up("UP-1", holds=False), made_up("OOP-2")
    code, output, page = run_claims(monkeypatch, tmp_path, *claims, options=("--quick",))
    assert code == 1
    assert f"2 of 3 claims hold; not UP-1: {tmp_path / 'report.html'}" in output
    parsed = Parsed(page)
    assert not parsed.open
    assert parsed.ids == {"OOP-1", "OOP-2", "UP-1"}
    assert parsed.links == {f"#{each}" for each in parsed.ids}
    text = "".join(parsed.texts)
    assert text.index("memory of OOP-1") < text.index("memory of OOP-2") < text.index("UpStream")
    for said in ("0.22 & less", "it is <above> 0.35", "OOP < IOP", "about 30 %", "quick", "0.3333"):
        assert said in text
    assert "lowwater claims UP-1 --quick" in text
    pictures, alts = parsed.sources[1::2], parsed.sources[::2]
    assert all(each.startswith("data:image/png;base64,iVBOR") for each in pictures)
    assert alts == ["Memory is 22% <of> in-order. Paper: about 30 %"] * 3
    assert "http" not in page.replace(drawing.PAPER, "")


def test_a_run_that_fails_takes_no_other_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = raising("OOP-2", ValueError("no <such> thing"))
    claims = made_up("OOP-1"), broken, made_up("OOP-3")
    code, output, page = run_claims(monkeypatch, tmp_path, *claims)
    assert code == 1
    assert "OOP-2 failed" in output
    rows = json.loads(output.splitlines()[-1])["rows"]
    assert [row["holds"] for row in rows] == [True, False, True]
    assert rows[1]["ours"] == "the run failed: ValueError: no <such> thing"
    text = "".join(Parsed(page).texts)
    assert "2 of 3 claims hold; the run of OOP-2 failed." in text
    assert "test_report.py" in text
    assert text.count("Measured: 2 rows") == 2


def test_a_plot_that_cannot_be_drawn_is_a_run_that_failed(tmp_path: Path) -> None:
    claim = made_up("OOP-1")
    outcome = claim.run(True)

    def no_plot(_: Figure) -> None:
        raise RuntimeError("no ink")

    blank = Outcome(outcome.ours, True, outcome.table, no_plot)
    wrong = Claim("OOP-1", "", "", "", lambda _: blank)
    assert report.attempt(wrong, True, tmp_path).verdict == "failed"


def test_a_run_that_is_stopped_leaves_the_page_of_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = made_up("OOP-1"), raising("OOP-2", KeyboardInterrupt()), made_up("OOP-3")
    code, _, page = run_claims(monkeypatch, tmp_path, *claims)
    assert code != 0
    text = "".join(Parsed(page).texts)
    assert "1 of 1 claims hold." in text
    assert "Not run: 2 of 3 claims." in text
    assert "memory of OOP-3" in text
    assert [path.name for path in tmp_path.glob("*report*")] == ["report.html"]


def test_long_tables_are_folded_and_very_long_ones_cut(tmp_path: Path) -> None:
    for rows, opened, shown in ((html.SHORT, True, 12), (13, False, 13), (500, False, html.LONG)):
        claim = made_up("OOP-1", rows=rows)
        run = Circumstances(False, (claim,))
        page = html.page([report.attempt(claim, False, tmp_path)], run)
        assert ("<details open>" in page) == opened
        assert page.count("<tr>") == shown + 1
        assert ("all are in OOP-1.csv" in page) == (rows > html.LONG)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "yes"),
        (12_345, "12,345"),
        (12_345.678, "12,346"),
        (0.123456, "0.1235"),
        (0.0, "0"),
        (float("inf"), "inf"),
        ("a < b", "a &lt; b"),
    ],
)
def test_values_are_spelled_for_people(value: object, text: str) -> None:
    assert html.spelled(value) == text


def test_the_tally_names_what_does_not_hold() -> None:
    held, broken = (
        Result(each, 1.0, each.run(True)) for each in (made_up("A"), made_up("B", False))
    )
    failed = Result(made_up("C"), 1.0, error="Traceback\n\nOSError: gone\n")
    assert tally([held]) == "1 of 1 claims hold"
    assert tally([held, broken, failed]) == "1 of 3 claims hold; not B; the run of C failed"
    assert broken.reason == "it is <above> 0.35"
    assert failed.reason == "the run failed: OSError: gone"


def test_claims_are_listed_with_their_papers_and_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = runner.invoke(app, ["claims", "--list"])
    assert result.exit_code == 0, result.output
    for claim in registry.CLAIMS:
        line = next(each for each in result.stdout.splitlines() if f" {claim.id} " in each)
        assert claim.source in line
        assert claim.title in line
    assert {claim.source for claim in registry.CLAIMS} == {
        *("OOP", "ETS", "Ordered", "WO-Join", "UpStream")
    }
    one = runner.invoke(app, ["claims", "--list", "wo-f1"])
    assert "WO-F1" in one.stdout
    assert "WO-F5" not in one.stdout


# ---- plots ---------------------------------------------------------------------------------


def test_the_plot_of_every_claim_is_looked_at() -> None:
    """Where its outcome is tested, because to measure it a second time would take long."""
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [claim.id for claim in registry.CLAIMS if f'readable("{claim.id}", ' not in tests] == []


def no_legend(figure: Figure) -> None:
    figure.axes[0].get_legend().remove()


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda figure: figure.suptitle("Memory is less"), "no measured figure"),
        (lambda figure: figure.suptitle("Memory is nan% of 1"), "of nothing measured"),
        (lambda figure: figure.supxlabel(""), "nothing is said of the paper"),
        (lambda figure: figure.axes[0].set_xlabel(""), "an axis (x) has no name"),
        (lambda figure: figure.axes[0].set_ylabel("memory"), "the axis 'memory' has no unit"),
        (no_legend, "no legend has ['iop', 'oop']"),
        (lambda figure: figure.axes[0].lines[0].set_color("red"), "no colours of the palette"),
        (lambda figure: figure.axes[0].set_title("tiny", fontsize=7), "too small to read"),
        (lambda figure: figure.suptitle("9 letters " * 30, x=0), "goes beyond the figure"),
        (lambda figure: [figure.text(0.5, 0.5, text) for text in ("on", "off")], "lies over"),
    ],
)
def test_plots_that_lack_something_are_found(spoil: Callable[[Figure], object], why: str) -> None:
    def spoiled(figure: Figure) -> None:
        plot(figure)
        spoil(figure)

    assert list(faults(drawing.drawn(plot))) == []
    assert why in "; ".join(faults(drawing.drawn(spoiled)))


def test_axes_of_names_need_no_unit_and_shared_ones_no_second_name() -> None:
    def bars(figure: Figure) -> None:
        both = figure.subplots(1, 2, sharey=True)
        for axes in both:
            drawing.bars(axes, (0, 1), (3.0, 4.0), drawing.BLUE, drawing.brief)
            axes.set_xticks((0, 1), ["plain", "sorted"])
            axes.set_xlabel("strategy")
        both[0].set_ylabel("held [rows]")
        drawing.caption(figure, "4 rows are held", "fewer are")

    assert list(faults(drawing.drawn(bars))) == []


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(1.1, 3, ["1.5", "2", "2.5", "3"]), (0.5, 80, ["0.5", "1", "2", "5", "10", "20", "50"])],
)
def test_logarithmic_axes_have_numbers_as_people_write_them(
    low: float, high: float, shown: list[str]
) -> None:
    def lines(figure: Figure) -> None:
        axes = figure.subplots()
        axes.set_ylim(low, high)
        drawing.logarithmic(axes, "y")

    labels = drawing.drawn(lines).axes[0].get_yticklabels()
    assert [each.get_text() for each in labels] == shown
