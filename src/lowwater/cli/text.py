"""Text from data on a terminal: control characters are shown, never sent.

A value of a row, a name of a column or an error message may hold any characters. Sent to a terminal
as they are, some of them move the cursor, change colours or rename the window.
"""

from __future__ import annotations

import unicodedata

from rich import markup

_KEPT = "\n\t"


def visible(text: str) -> str:
    r"""The text with each control character written as its escape: ``\x1b``, ``\u202e``.

    Line ends and tabs stay. Marks that turn the direction of writing are control characters, too.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(each) for each in text)


def _shown(character: str) -> str:
    if character in _KEPT or unicodedata.category(character) not in ("Cc", "Cf", "Cs"):
        return character
    if character == "\u200d":  # joins the parts of an emoji
        return character
    return character.encode("unicode_escape").decode()


def escape(text: str) -> str:
    """Text as Rich prints it: no markup, no control characters."""
    return markup.escape(visible(text))
