"""Groups of questions in the training data of models, as a file next to their weights records."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from vrag_kit.config import check_list
from vrag_kit.log import logger
from vrag_kit.tables import read_csv_rows
from vrag_kit.types import Benchmark
from vrag_kit.workspace import path as project_path

TRAINING_FACTS_FILE = "told.csv"
"""File next to the weights: a column `subject`, with a row for each subject whose facts were
taught. It is not part of the checkpoint, and does not change its answers.
"""


def trained_groups(models: Sequence[object], benchmark: Benchmark) -> dict[str, frozenset[str]]:
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
    trained = {}
    unknown = []
    for entry in models:
        options = {"model": entry} if isinstance(entry, str) else entry
        if not isinstance(options, Mapping):
            continue  # a custom object has no folder
        path = project_path(options["model"]) / TRAINING_FACTS_FILE
        if not path.is_file():
            continue
        advice = "It has one column, `subject`, and a row for each subject."
        rows = read_csv_rows(path, ["subject"], "training facts", advice)
        subjects = {row["subject"] for _, row in rows}
        name = str(options.get("name") or Path(options["model"]).name)
        groups = _groups_of(subjects, benchmark)
        if groups or not subjects:
            trained[name] = groups
        else:
            unknown.append(name)
    if unknown:
        logger.info(
            f"note: {TRAINING_FACTS_FILE} of {', '.join(unknown)} names none of the"
            f" {benchmark.groups_are} of {benchmark.name}; strata are by answers without an image",
        )
    return trained


def _groups_of(subjects: Collection[str], benchmark: Benchmark) -> frozenset[str]:
    """The groups with the name of a subject, else those whose questions contain one."""
    groups = benchmark.groups
    named = frozenset(groups.values()).intersection(subjects)
    if named or not subjects:
        return named
    words = "|".join(re.escape(name) for name in sorted(subjects))
    pattern = re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    return frozenset(
        group
        for query_id, group in groups.items()
        if pattern.search(benchmark.queries[query_id].text)
    )
