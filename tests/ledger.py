"""What a user can type, set, read and click: `python tests/ledger.py` writes tests/ledger.csv.

A row is a command, an option, a variable of the environment, a field of an entry, a notebook's
parameter, a column of a figure's table, an action of a widget or a kind of failure. A row that
is new comes in as "kept". One that the code has lost stays, and says by hand what `becomes` of
it ("renamed to x", "gone") and by which `decision`; `test_ledger.py` holds that it does.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from vrag_kit.retrieval.encoders.loading import FAMILIES
from vrag_kit.runner.cli import app
from vrag_kit.runner.params import declared_parameters

ROOT = Path(__file__).parents[1]
LEDGER = ROOT / "tests/ledger.csv"
HEAD = ("kind", "feature", "becomes", "decision")
ENTRIES = {  # entry -> the fields that its reader allows
    "model": "vrag_kit.generation.generators:LocalOptions",
    "model at an endpoint": "vrag_kit.generation.remote.providers:EndpointOptions",
    "judge, one of": "vrag_kit.judging.loading:JUDGES",
    "an edition of the Field Guide": "vrag_kit.synthetic.editions:DRAWN",
    "an edition of MRAG-Bench": "vrag_kit.synthetic.editions:DRAWN_MRAG",
    "an edition of CRAG-MM": "vrag_kit.synthetic.editions:CRAG_MM_EDITIONS",
    "an edition of MRAG-Suite": "vrag_kit.synthetic.editions:DRAWN_SUITE",
}
ERRORS = ("Error", "Exception")
VARIABLE = re.compile(r"VRAG_[A-Z_]+")
BUTTON = re.compile(r'button\(\w+, "([^"]+)"')
KEY = re.compile(r"\b(Arrow\w+|Enter|Escape|Home|End|PageUp|PageDown)\b|event\.key === \"(\w)\"")

Row = tuple[str, str]


def commands() -> Iterator[Row]:
    """Each command of `vrag`, and each of its options and arguments."""
    todo = [("vrag", typer.main.get_command(app))]
    while todo:
        name, command = todo.pop()
        yield "command", name
        for each in command.params:
            yield each.param_type_name, f"{name} {each.opts[0]}"
        inner = getattr(command, "commands", {})
        todo += [(f"{name} {word}", inner[word]) for word in inner]


def targets() -> Iterator[Row]:
    """Each target of the Makefile that is no file."""
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if line.startswith(".PHONY:"):
            yield from (("command", f"make {each}") for each in line.split()[1:])


def fields() -> Iterator[Row]:
    """Each field of an entry: of models, retrievers and, by layout, MRAG-Suite's data sets; and
    the words that a judge can be.
    """
    for entry, place in ENTRIES.items():
        yield from (("field", f"{entry}: {name}") for name in _named(place))
    of_families = (family.options.model_fields for family in FAMILIES.values())
    yield from (("field", f"retriever: {name}") for name in {"revision"}.union(*of_families))
    place = "vrag_kit.benchmarks.datasets.collection"
    for layout in _named(f"{place}:LAYOUTS"):
        names = _named(f"{place}:entry_keys")(layout)
        yield from (("field", f"suite, {layout}: {name}") for name in names)


def _named(place: str) -> Any:  # names, or what maps them
    module, name = place.split(":")
    found = getattr(import_module(module), name)
    return getattr(found, "model_fields", found)


def parameters() -> Iterator[Row]:
    """Each parameter of each notebook."""
    for path in sorted((ROOT / "notebooks").rglob("*.ipynb")):
        if ".ipynb_checkpoints" not in path.parts:
            for name in declared_parameters(path):
                yield "parameter", f"{path.stem}: {name}"


def columns() -> Iterator[Row]:
    """Each column of the tables behind the committed figures."""
    for path in sorted((ROOT / "figures").rglob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for name in next(csv.reader(file), []):
                yield "column", name


def in_code() -> Iterator[Row]:
    """Buttons and keys of widgets, classes of errors, and the words of every outcome."""
    for path in sorted((ROOT / "vrag_kit").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            yield from _of_node(node)
    for path in sorted((ROOT / "vrag_kit").rglob("*.js")):
        source = path.read_text(encoding="utf-8")
        yield from (("action", f"button {name}") for name in BUTTON.findall(source))
        yield from (("action", f"key {''.join(key)}") for key in KEY.findall(source))


def _of_node(node: ast.AST) -> Iterator[Row]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from (("variable", name) for name in VARIABLE.findall(node.value))
    if isinstance(node, ast.ClassDef):
        bases = [ast.unparse(base) for base in node.bases]
        if any(base.endswith(ERRORS) for base in bases) and not node.name.startswith("_"):
            yield "failure", node.name
        if "StrEnum" in bases:
            members = [each for each in node.body if isinstance(each, ast.Assign)]
            yield from (
                ("failure", f"{node.name}: {ast.literal_eval(each.value)}") for each in members
            )
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Button"):
        for each in node.keywords:
            if each.arg == "description" and isinstance(each.value, ast.Constant):
                yield "action", f"button {each.value.value}"
    if isinstance(node, ast.Assign) and "HINTS" in ast.unparse(node.targets[0]):
        yield from (("action", f"button {name}") for name in ast.literal_eval(node.value))


@cache
def features() -> set[Row]:
    """Every feature that the code has now."""
    return {*commands(), *targets(), *fields(), *parameters(), *columns(), *in_code()}


def read_ledger() -> dict[Row, tuple[str, str]]:
    """(kind, feature) -> (what becomes of it, by which decision)."""
    with LEDGER.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["kind"], row["feature"]): (row["becomes"], row["decision"]) for row in rows}


def main() -> None:
    known = read_ledger() if LEDGER.exists() else {}
    rows = {**dict.fromkeys(features(), ("kept", "")), **known}
    with LEDGER.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        writer.writerows((*row, *rows[row]) for row in sorted(rows))


if __name__ == "__main__":
    main()
