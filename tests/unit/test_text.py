"""Text from data reaches a terminal without control characters."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lowwater.cli.app import escape, one_line, visible
from lowwater.cli.screen import cell_text


def control_characters(text: str) -> set[str]:
    return {each for each in text if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


@given(st.text())
def test_no_value_reaches_a_terminal_with_control_characters(text):
    assert not control_characters(cell_text(text)) - {"\u200d"}
    assert not control_characters(visible(text)) - {"\n", "\t", "\u200d"}
    assert not control_characters(one_line(text)) - {"\u200d"}
    assert len(one_line(text).splitlines()) <= 1


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_printable_text_stays_as_it_is(text):
    assert visible(text) == text


def test_escapes_are_cell_text():
    assert cell_text("\x1b[2J\x1b]0;title\x07") == r"\x1b[2J\x1b]0;title\x07"
    assert visible("a\u202eb") == r"a\u202eb"


def test_markup_in_data_is_no_markup():
    console = Console(width=80)
    with console.capture() as printed:
        console.print(escape("[red]a[/red]\x1b[31m"))
    assert printed.get() == "[red]a[/red]\\x1b[31m\n"
