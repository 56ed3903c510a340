"""What models were told in training, as far as that was written beside their weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from vrag_kit.generation.own_answerer import AnswererClass
from vrag_kit.options import Entry, check_list
from vrag_kit.tables import read_rows
from vrag_kit.types import Benchmark
from vrag_kit.workspace import path as project_path

TOLD_FILE = "told.csv"
"""Beside weights: a column `about`, a row for each thing whose facts were taught. It is
no part of the checkpoint, whose answers it does not change.
"""


def told_facts(
    models: Sequence[Entry | AnswererClass], benchmark: Benchmark
) -> dict[str, frozenset[str]]:
    """Model's name in tables → the groups of the benchmark's questions (species) that it
    was told about; only for models whose folder holds a `told.csv`.

    A group is told where it bears a name of that file, and, where none does, where one
    of its questions holds such a name: folders of one's own are called as one likes. A
    model of which neither tells anything is left out, as if it had no such file, and a
    note is printed: all its questions as "not told" would look like a finding.

    `models` as `ask_models` takes them; nothing is loaded. Raises `VragError` for a
    file that cannot be read.
    """
    check_list(models, "models")
    told, unknown = {}, []
    for entry in models:
        if not isinstance(entry, str | Mapping):
            continue  # an object of somebody's own has no folder
        spec = str(entry["model"]) if isinstance(entry, Mapping) else entry
        path = project_path(spec) / TOLD_FILE
        if not path.is_file():
            continue
        given = entry.get("name") if isinstance(entry, Mapping) else None
        name = str(given or Path(spec).name)
        names = _read(path)
        groups = _groups(names, benchmark) if names else names
        if groups or not names:
            told[name] = groups
        else:
            unknown.append(name)
    if unknown:
        print(
            f"note: {TOLD_FILE} of {', '.join(unknown)} names none of the {benchmark.groups_are} of"
            f" {benchmark.name}, so questions are split by what is right without an image",
            flush=True,
        )
    return told


def _groups(names: frozenset[str], benchmark: Benchmark) -> frozenset[str]:
    """The groups of questions that bear a name, else those whose questions hold one."""
    groups = benchmark.groups
    if alike := names & set(groups.values()):
        return frozenset(alike)
    said = "|".join(re.escape(name) for name in sorted(names))
    find = re.compile(rf"\b(?:{said})\b", re.IGNORECASE)
    return frozenset(
        group for query_id, group in groups.items() if find.search(benchmark.queries[query_id].text)
    )


def _read(path: Path) -> frozenset[str]:
    advice = "It has one column, `about`, and a row for each thing that was told."
    return frozenset(row["about"] for _, row in read_rows(path, ["about"], "what was told", advice))
