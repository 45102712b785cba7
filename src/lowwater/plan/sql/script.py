"""A pipeline file holds streams, views and queries in one text, with the target of each query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lowwater.joins.oblivious.options import ADMISSIONS
from lowwater.plan.nodes import Node
from lowwater.plan.sql import dialect
from lowwater.plan.sql.declarations import Declared, read_declaration
from lowwater.plan.sql.oblivious_joins import memory_size
from lowwater.plan.sql.parser import statements
from lowwater.plan.sql.query import Queries
from lowwater.plan.sql.values import Values
from lowwater.plan.text_places import at, line_of, place, wrong


@dataclass(frozen=True)
class ScriptQuery:
    """A query of a pipeline file; without a ``target`` it goes to the console."""

    node: Node
    line: int
    """The line in which the statement begins, from 1."""
    target: str | None = None
    target_place: tuple[int, int] | None = None
    """The first and the last character of the target in the file."""


@dataclass(frozen=True)
class Script:
    """A pipeline file: its queries, and the options that SET gives all of them."""

    queries: Sequence[ScriptQuery]
    memory: int | None = None
    """Bytes that all joins without a window may take together; None for no limit."""
    admission: str | None = None
    """What happens to a query that needs more; None for the default."""


def read_script(
    text: str, values: Values, declare: Callable[[Declared], Node], origin: str
) -> Script:
    """Return what a pipeline file holds, over the streams that ``declare`` makes."""
    known: dict[str, Node] = {}
    options: dict[str, exp.Expr] = {}
    planned: list[ScriptQuery] = []
    queries = Queries(text, values, origin)
    for tree in statements(text):
        if isinstance(tree, dialect.CreateStream):
            declared = read_declaration(tree, values, text)
            _refuse_again(declared.name, known, tree, text)
            clauses = {each.this: each for each in tree.args["clauses"]}
            with at(text, tree.args["location"], tree, clauses=clauses):
                known[declared.name] = declare(declared)
        elif isinstance(tree, exp.Create) and tree.kind == "VIEW":
            _refuse_again(tree.this.name, known, tree, text)
            known[tree.this.name] = queries.query(tree.expression, known)
        elif isinstance(tree, dialect.InsertInto):
            node = queries.query(tree.expression, known)
            target = tree.this
            planned.append(ScriptQuery(node, line_of(tree, text), target.name, place(target)))
        elif isinstance(tree, dialect.SetOption):
            name = tree.this.name
            if name in options:
                raise wrong(f"{name} is set twice", text, tree)
            options[name] = tree.expression
        elif isinstance(tree, exp.Query):
            planned.append(ScriptQuery(queries.query(tree, known), line_of(tree, text)))
        else:
            raise wrong(
                "a pipeline file holds CREATE STREAM, CREATE VIEW, INSERT INTO 'format:path', SET"
                " and queries",
                text,
                tree,
            )
    if not planned:
        raise wrong("this pipeline has no query: it would do nothing", text)
    memory, admission = options.get("MEMORY"), options.get("ADMISSION")
    return Script(
        planned,
        None if memory is None else memory_size(memory, values, text),
        None if admission is None else _admission(admission, text),
    )


def _admission(tree: exp.Expr, text: str) -> str:
    """Return the value of ADMISSION, a word or a text, as the API spells it."""
    found = tree.name.lower()
    if found not in ADMISSIONS:
        known = " or ".join(each.upper() for each in ADMISSIONS)
        raise wrong(f"ADMISSION is {known}, not {tree.name.upper()}", text, tree)
    return found


def _refuse_again(name: str, known: Mapping[str, Node], tree: exp.Expr, text: str) -> None:
    if name in known:
        raise wrong(f"{name!r} is declared twice", text, tree)
