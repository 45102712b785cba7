"""Text from data on a terminal: control characters are shown, never sent.

A value of a row, a name of a column or an error message may hold any characters. Sent to a terminal
as they are, some of them move the cursor, change colours or rename the window.
"""

from __future__ import annotations

import unicodedata

from rich import markup

_KEPT = "\n\t"
_CONTROL = ("Cc", "Cf", "Cs", "Zl", "Zp")


def visible(text: str) -> str:
    r"""The text with each control character written as its escape: ``\x1b``, ``\u202e``.

    Line ends and tabs stay. Marks that turn the direction of writing are control characters, too.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(each, _KEPT) for each in text)


def one_line(text: str) -> str:
    r"""The same of a name or another text of one line: a line end is ``\n``, so that it makes no
    line that looks like one of ours."""
    return "".join(_shown(each, "") for each in text)


def _shown(character: str, kept: str) -> str:
    if character in kept or unicodedata.category(character) not in _CONTROL:
        return character
    if character == "\u200d":  # joins the parts of an emoji
        return character
    return character.encode("unicode_escape").decode()


def escape(text: str) -> str:
    """Text as Rich prints it: no markup, no control characters."""
    return markup.escape(visible(text))


def escape_line(text: str) -> str:
    """The same of a text that is one line."""
    return markup.escape(one_line(text))
