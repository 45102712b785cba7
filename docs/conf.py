"""How the site is built from these pages; nothing is fetched from elsewhere."""

import re
from typing import Any

import lowwater

project = "lowwater"
author = "The lowwater authors"
copyright = author
version = release = lowwater.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["pictures"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
ALIASES = """
    Charge Clock Contract Duration Flush Form Generation How Idle Jump LateRows Order PlanShape
    Schedule Size Strategy Windows
"""
autodoc_type_aliases = {name: name for name in ALIASES.split()}
python_maximum_signature_line_length = 88
nitpick_ignore_regex = [("py:(class|data|obj)", ".*")]

pygments_dark_style = "github-dark"
html_theme = "furo"
html_title = "lowwater"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False


def with_alias_names(*event: Any) -> tuple[str | None, str | None]:
    """Return the arguments and the result of a signature, with type aliases by their names."""
    *_, arguments, result = event
    return _named(arguments), _named(result)


def _named(part: str | None) -> str | None:
    plain = part and part.replace("<factory>", "{}")
    return plain and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", plain)


def setup(app: Any) -> None:
    """Connect what changes signatures."""
    app.connect("autodoc-process-signature", with_alias_names)
