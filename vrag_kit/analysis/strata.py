"""Strata of answers by what a model knew before it was shown any evidence.

A clue can help only where a model does not know the answer; where it does, an image can only
confuse. The mean over both kinds of questions is the mean of opposite effects, so the two are
reported separately before they are pooled.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.benchmarks.sources import read_csv_rows
from vrag_kit.config import check_list
from vrag_kit.errors import VragError
from vrag_kit.files import project_path
from vrag_kit.judging.scale import scale_of
from vrag_kit.types import Benchmark

IN_TRAINING, NOT_IN_TRAINING = "in training data", "not in training data"
KNOWN, UNKNOWN = "correct without an image", "incorrect without an image"
LEFT_OUT = " (that answer is not counted)"
NO_VERDICT = "no verdict without an image"
ALL = "all questions"
NO_STRATUM = ""
"""No stratum: it is unknown, or the answer itself assigned it."""
_WITHOUT_IMAGE = (KNOWN, KNOWN + LEFT_OUT, UNKNOWN, UNKNOWN + LEFT_OUT, NO_VERDICT)
STRATA = (IN_TRAINING, NOT_IN_TRAINING, *_WITHOUT_IMAGE, ALL)


def expand_strata(
    table: pd.DataFrame,
    trained: Mapping[str, Collection[str]],
    zero_shot: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Repeats the rows of `table` by stratum, with a column `stratum`, and then all rows as `ALL`.
    Whatever is computed by stratum then has both.

    `trained` names the groups (species) in the training data of each model; see `trained_groups`. A
    question about one of these is `IN_TRAINING`, any other `NOT_IN_TRAINING`. For a model that is
    not in `trained` a question is `KNOWN` where it scores more than the middle of the scale without
    an image, and else `UNKNOWN`; where such answers have no verdict, `NO_VERDICT`. They are read
    from the setting zero_shot of `zero_shot` (None: of `table`).

    Answers that assigned a stratum are not counted within it: a question that was correct by luck
    is less often correct again. So one half of a question's zero-shot answers assigns its stratum,
    and only the other half stays in it; the halves alternate from question to question. A single
    answer assigns the stratum, which then has no zero-shot, and is named so (`LEFT_OUT`).

    `table` has the columns model, query_id and group. Raises `VragError` when a model is not in
    `trained` and has no zero-shot answers.
    """
    asked = (table if zero_shot is None else zero_shot).query("setting == 'zero_shot'")
    if odd := [each for each in table["model"].unique() if each not in {*trained, *asked["model"]}]:
        raise VragError(
            f"expand_strata: {odd[0]} has neither a list of training facts nor answers without an"
            " image. Ask with `zero_shot(benchmark)` too."
        )
    placed = _by_model(table, trained, asked)
    every = pd.concat([placed[placed["stratum"] != NO_STRATUM], table.assign(stratum=ALL)])
    order = every["stratum"].map(STRATA.index)
    return every.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)


def assign_stratum(
    table: pd.DataFrame,
    trained: Mapping[str, Collection[str]],
    zero_shot: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Adds a column `stratum`, as in `expand_strata`, to the rows of `table`, each once and in
    their order. It is saved with answers, to compare two runs by stratum. "" in answers that
    assigned one, and where neither `trained` nor zero-shot answers determine it.
    """
    asked = (table if zero_shot is None else zero_shot).query("setting == 'zero_shot'")
    return _by_model(table.reset_index(drop=True), trained, asked).sort_index()


def sort_strata(names: Iterable[str]) -> list[str]:
    """Sorts the names, each once, in the order of `STRATA`; then others, and "" last."""
    places = {name: place for place, name in enumerate(STRATA)}
    unknown = len(places)
    return sorted(set(names), key=lambda name: (name == "", places.get(name, unknown), name))


def _by_model(
    table: pd.DataFrame, trained: Mapping[str, Collection[str]], asked: pd.DataFrame
) -> pd.DataFrame:
    """The rows, model by model, with their stratum, `NO_STRATUM` where they have none."""
    parts = [table.assign(stratum=NO_STRATUM)[:0]]
    for model, part in table.groupby("model", sort=False):
        if model in trained:
            known = part["group"].isin(list(trained[str(model)]))
            parts.append(part.assign(stratum=np.where(known, IN_TRAINING, NOT_IN_TRAINING)))
        else:
            parts.append(_by_zero_shot(part, asked[asked["model"] == model]))
    return pd.concat(parts)


def _by_zero_shot(part: pd.DataFrame, asked: pd.DataFrame) -> pd.DataFrame:
    """One model's rows by what it knew, and `NO_STRATUM` in the answers that assigned a stratum:
    one half of each question's, in one question the first and in the next the second; all where
    there is one.
    """
    if asked.empty:
        return part.assign(stratum=NO_STRATUM)
    in_order = asked.sort_values(["draw", "sample"], kind="stable").groupby("query_id")
    place = in_order.cumcount().reindex(asked.index)
    count = asked["query_id"].map(asked["query_id"].value_counts())
    even = pd.factorize(asked["query_id"])[0] % 2 == 0
    choosing = asked[(count == 1) | ((place < (count + 1) // 2) == even)]
    earned = choosing.groupby("query_id", sort=False)["score"].mean()
    single = asked["query_id"].value_counts().reindex(earned.index) == 1
    known = np.where(earned > scale_of(asked).middle, KNOWN, UNKNOWN)
    strata = pd.Series(known, earned.index) + single.map({True: LEFT_OUT, False: ""})
    strata = strata.where(earned.notna(), NO_VERDICT)
    found = part["query_id"].map(strata).fillna(NO_VERDICT)
    if "setting" not in part:
        return part.assign(stratum=found)
    answer = ["query_id", "draw", "sample"]
    used = pd.MultiIndex.from_frame(choosing[answer])
    assigned = pd.MultiIndex.from_frame(part[answer]).isin(used) & (part["setting"] == "zero_shot")
    return part.assign(stratum=found.mask(assigned, NO_STRATUM))


TRAINING_FACTS_FILE = "told.csv"
"""File next to the weights: a column `subject`, with a row for each subject whose facts were
taught. It is not part of the checkpoint, and does not change its answers.
"""


def trained_groups(models: Sequence[object], benchmark: Benchmark) -> dict[str, frozenset[str]]:
    """Return, per model, the groups of questions (species) that were in its training data.

    Models are keyed by their names in tables; only those whose folder holds a `told.csv` are
    included. A group is in training data if that file names it or, if it names no group, if a
    question of the group contains such a name: folders of custom models may have any name. A model
    for which neither matches is left out, as if it had no such file: all its questions as "not in
    training data" would look like a finding.

    `models` as in `ask_models`; nothing is loaded. Raises `VragError` for a file that cannot be
    read.
    """
    check_list(models, "models")
    trained = {}
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
    return trained


def _groups_of(subjects: Collection[str], benchmark: Benchmark) -> frozenset[str]:
    """The groups with the name of a subject, else those whose questions contain one."""
    groups = benchmark.groups
    named = frozenset(groups.values()).intersection(subjects)
    if named or not subjects:
        return named
    words = "|".join(re.escape(name) for name in sorted(subjects))
    pattern = re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    queries = benchmark.queries.items()
    return frozenset(groups[name] for name, query in queries if pattern.search(query.text))
