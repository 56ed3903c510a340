"""Facts in the training data of models, as recorded in a file next to their weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from vrag_kit.generation.own_answerer import CustomGenerator
from vrag_kit.options import Entry, check_list
from vrag_kit.tables import read_csv_rows
from vrag_kit.types import Benchmark
from vrag_kit.workspace import path as project_path

TRAINING_FACTS_FILE = "told.csv"
"""File next to the weights: a column `subject`, with a row for each subject whose facts were
taught. It is not part of the checkpoint, and does not change its answers.
"""


def trained_groups(
    models: Sequence[Entry | CustomGenerator], benchmark: Benchmark
) -> dict[str, frozenset[str]]:
    """Return, per model, the groups of questions (species) that were in its training data.

    Models are keyed by their names in tables; only those whose folder holds a `told.csv` are
    included. A group is in training data if that file names it or, if it names no group, if a
    question of the group contains such a name: folders of custom models may have any name. A model
    for which neither matches is left out, as if it had no such file, and a note is printed: all its
    questions as "not in training data" would look like a finding.

    `models` as in `ask_models`; nothing is loaded. Raises `VragError` for a file that cannot be
    read.
    """
    check_list(models, "models")
    told, unknown = {}, []
    for entry in models:
        if not isinstance(entry, str | Mapping):
            continue  # an object of somebody's own has no folder
        spec = str(entry["model"]) if isinstance(entry, Mapping) else entry
        path = project_path(spec) / TRAINING_FACTS_FILE
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
            f"note: {TRAINING_FACTS_FILE} of {', '.join(unknown)} names none of the"
            f" {benchmark.groups_are} of"
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
    advice = "It has one column, `subject`, and a row for each thing that was told."
    return frozenset(
        row["subject"] for _, row in read_csv_rows(path, ["subject"], "what was told", advice)
    )
