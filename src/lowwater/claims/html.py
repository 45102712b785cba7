"""A run of claims writes one page, which needs no other file, no script and no network.

The page is written again after each claim, whole or not at all, so that a run that is stopped
leaves a page of the claims that were run.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from math import isfinite
from pathlib import Path

import polars as pl

from lowwater.claims.claim import Claim
from lowwater.claims.report import Circumstances, Picture, Result, Verdict, tally

SHORT, LONG = 12, 200
"""The most rows of a table that is shown unfolded, and the most rows that are shown of any."""
MARKS: dict[Verdict, str] = {"holds": "✓", "does not hold": "✗", "failed": "!"}
CLASSES: dict[Verdict, str] = {"holds": "holds", "does not hold": "broken", "failed": "failed"}


def write(results: Sequence[Result], run: Circumstances, folder: Path) -> Path:
    """Write the page into a folder; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path, unfinished = folder / "report.html", folder / ".report.html"
    unfinished.write_text(page(results, run), encoding="utf-8")
    unfinished.replace(path)
    return path


def page(results: Sequence[Result], run: Circumstances) -> str:
    """Return the whole page."""
    style = files("lowwater.claims").joinpath("report.css").read_text(encoding="utf-8")
    articles = {each.claim.id: _article(each, run) for each in results}
    sections = "".join(
        f"<section><h2>{escape(paper)}</h2>{''.join(articles[one.id] for one in claims)}</section>"
        for paper, claims in _by_paper([each.claim for each in results]).items()
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>Claims: {escape(tally(results))}</title><style>\n{style}</style></head>\n"
        f"<body><main>{_summary(results, run)}{_contents(results, run)}{sections}</main></body>"
        "</html>\n"
    )


# ---- the beginning -------------------------------------------------------------------------


def _summary(results: Sequence[Result], run: Circumstances) -> str:
    missing = len(run.claims) - len(results)
    note = (
        f"<p class='missing'>Not run: {missing} of {len(run.claims)} claims. The run continues, or"
    )
    note += " was stopped.</p>"
    wrong = "".join(
        f"<li>{_link(each.claim)} {_verdict(each.verdict)} {escape(each.reason)}</li>"
        for each in results
        if each.verdict != "holds"
    )
    return (
        "<header><h1>What the papers claim, measured again</h1>"
        f"<p class='tally'>{escape(tally(results))}.</p>{note if missing else ''}"
        f"{f'<ul class=wrong>{wrong}</ul>' if wrong else ''}"
        f"{_pairs(run.facts())}</header>"
    )


def _contents(results: Sequence[Result], run: Circumstances) -> str:
    done = {each.claim.id: each for each in results}
    parts = []
    for paper, claims in _by_paper(run.claims).items():
        items = "".join(_entry(claim, done.get(claim.id)) for claim in claims)
        parts.append(f"<div><h2>{escape(paper)}</h2><ul>{items}</ul></div>")
    return f"<nav aria-label='Contents'>{''.join(parts)}</nav>"


def _entry(claim: Claim, result: Result | None) -> str:
    if result is None:
        return f"<li><span class='mark'>·</span> {escape(claim.id)} {escape(claim.title)}</li>"
    return f"<li>{_mark(result.verdict)} {_link(claim)} {escape(claim.title)}</li>"


# ---- a claim -------------------------------------------------------------------------------


def _article(result: Result, run: Circumstances) -> str:
    claim, outcome = result.claim, result.outcome
    texts = {"The paper’s": claim.paper, "Ours must show": claim.expects, "Ours": result.ours}
    return (
        f"<article id='{escape(claim.id)}'>"
        f"<h3>{_link(claim)} {escape(claim.title)} {_verdict(result.verdict)}</h3>{_pairs(texts)}"
        f"{_figure(result.picture) if result.picture else ''}"
        f"{_measured(outcome.table, claim.id) if outcome else _error(result.error)}"
        f"<p class='again'><code>{escape(run.again(claim))}</code> took {result.seconds:,.1f} s</p>"
        "</article>"
    )


def _figure(picture: Picture) -> str:
    data = b64encode(picture.path.read_bytes()).decode("ascii")
    text = escape(picture.text)
    return f"<figure><img alt='{text}' src='data:image/png;base64,{data}'></figure>"


def _error(text: str) -> str:
    return f"<details><summary>Where it failed</summary><pre>{escape(text)}</pre></details>"


def _measured(table: pl.DataFrame, name: str) -> str:
    heads = "".join(
        f"<th{_side(dtype)}>{escape(column.replace('_', ' '))}</th>"
        for column, dtype in table.schema.items()
    )
    sides = [_side(dtype) for dtype in table.dtypes]
    rows = "".join(_row(row, sides) for row in table.head(LONG).iter_rows())
    rest = f", the first {LONG} are shown, all are in {name}.csv" if table.height > LONG else ""
    return (
        f"<details{' open' if table.height <= SHORT else ''}><summary>Measured: {table.height:,}"
        f" rows{escape(rest)}</summary><div class='scroll'><table><thead><tr>{heads}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div></details>"
    )


def _row(row: Iterable[object], sides: Sequence[str]) -> str:
    cells = (f"<td{side}>{spelled(value)}</td>" for value, side in zip(row, sides, strict=True))
    return f"<tr>{''.join(cells)}</tr>"


def _side(dtype: pl.DataType) -> str:
    return " class='number'" if dtype.is_numeric() else ""


def spelled(value: object) -> str:
    """Write a value of a table for people: four digits, thousands apart."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return escape(str(value))
    if isfinite(value) and abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


# ---- small parts ---------------------------------------------------------------------------


def _by_paper(claims: Sequence[Claim]) -> dict[str, list[Claim]]:
    found: dict[str, list[Claim]] = {}
    for claim in claims:
        found.setdefault(claim.source, []).append(claim)
    return found


def _link(claim: Claim) -> str:
    name = escape(claim.id)
    return f"<a href='#{name}'>{name}</a>"


def _mark(verdict: Verdict) -> str:
    look = CLASSES[verdict]
    return f"<span class='mark {look}' role='img' aria-label='{verdict}'>{MARKS[verdict]}</span>"


def _verdict(verdict: Verdict) -> str:
    return f"<span class='verdict {CLASSES[verdict]}'>{MARKS[verdict]} {verdict}</span>"


def _pairs(texts: Mapping[str, str]) -> str:
    pairs = (f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in texts.items())
    return f"<dl>{''.join(pairs)}</dl>"
