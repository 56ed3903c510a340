"""Statistics of a split, compared with the published ones of the whole benchmark (Tables 2 and 3),
and annotations missing from the public data.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from vrag_kit.benchmarks.datasets.crag_mm import NAMES
from vrag_kit.papers.published import published
from vrag_kit.types import Benchmark, Query

SINGLE = "single questions"
MULTI = "conversations"
IMAGES = "images"
KINDS = ("egocentric", "non-egocentric")
_LABELS = ("domain", "query_category", "dynamism", "image_quality")
MARKS = ("entity", "region", "popularity", "reference_query", "needs_history")
"""Annotations that the authors have and did not publish."""
_SPELLED = {  # as Table 3 has it → as the data have it
    "General Obj. Rec.": "general object recognition",
    "Math & Science": "math and science",
    "Plants & Gardening": "plants and gardening",
    "Sports & Games": "sports and games",
    "Style & Fashion": "style and fashion",
}


def image_type(query: Query) -> str:
    """Returns one of `KINDS`."""
    return KINDS[not query.metadata.get("egocentric")]


def distribution(single: Benchmark, multi: Benchmark) -> pd.DataFrame:
    """Counts each label. Columns: facet (the annotation), label, population, n, share and
    `published`, in percent of the population; the paper's shares are of the whole benchmark, NaN if
    unpublished.

    Single questions and turns of conversations have a type and a dynamism; domain, image quality
    and kind are those of a conversation's first turn, as it has one image. Labels that do not occur
    have n 0.
    """
    questions = question_labels(single, multi)
    singles, turns = (questions[questions["population"] == name] for name in (SINGLE, "turns"))
    images = {IMAGES: questions.query("first")}
    lengths = turns.groupby("group").size().astype(str).to_frame("turns")
    facets = {
        "domain": {SINGLE: singles, MULTI: turns.query("first")},
        "query_category": {SINGLE: singles, "turns": turns},
        "dynamism": {SINGLE: singles, "turns": turns},
        "image_quality": images,
        "image_type": images,
        "turns": {MULTI: lengths},
    }
    labels = {**NAMES, "image_type": KINDS, "turns": tuple("23456")}
    tables = []
    for facet, populations in facets.items():
        for population, rows in populations.items():
            n = rows[facet].value_counts().reindex(labels[facet], fill_value=0)
            table = n.rename_axis("label").reset_index(name="n")
            share = 100 * table["n"] / (len(rows) or np.nan)
            tables.append(table.assign(facet=facet, population=population, share=share))
    table = pd.concat(tables, ignore_index=True).merge(_published_shares(), "left")
    return table[["facet", "label", "population", "n", "share", "published"]]


def annotation_coverage(single: Benchmark, multi: Benchmark) -> pd.DataFrame:
    """Counts the questions with each annotation of `MARKS`: rows annotations, a column of single
    questions and one of turns, as "annotated of all".
    """
    columns = {}
    for population, benchmark in ((SINGLE, single), ("turns", multi)):
        queries = benchmark.queries.values()
        marks = pd.DataFrame([{**query.metadata, "entity": query.entity} for query in queries])
        known = marks.reindex(columns=list(MARKS)).replace("", None).count()
        columns[population] = known.map(f"{{:,}} of {len(queries):,}".format)
    return pd.DataFrame(columns)


def question_labels(single: Benchmark, multi: Benchmark) -> pd.DataFrame:
    """Returns a row per question: population, group, first (whether it is its conversation's first
    turn), domain, query_category, dynamism, image_quality and image_type.
    """
    rows = []
    for population, benchmark in ((SINGLE, single), ("turns", multi)):
        for query in benchmark.queries.values():
            labels = {name: query.metadata[name] for name in _LABELS}
            row = {"population": population, "group": query.group, "first": not query.turn}
            rows.append({**row, **labels, "image_type": image_type(query)})
    columns = ["population", "group", "first", *_LABELS, "image_type"]
    return pd.DataFrame(rows, columns=columns).astype({"first": bool})


def _published_shares() -> pd.DataFrame:
    """The paper's shares, in percent of the whole benchmark, by facet, population and label."""
    tables = {
        ("domain", SINGLE): published("crag_mm", 3, split="single_turn", question_type="total"),
        ("domain", MULTI): published("crag_mm", 3, split="multi_turn", question_type="total"),
        ("query_category", SINGLE): published("crag_mm", 3, split="single_turn", domain="total"),
        ("image_quality", IMAGES): published("crag_mm", 2, image_type="total"),
        ("image_type", IMAGES): published("crag_mm", 2, image_quality="total"),
    }
    parts: list[pd.DataFrame] = []
    for (facet, population), table in tables.items():
        counts = table.set_index(table.columns[0])["value"]
        shares = (100 * counts / counts["total"]).drop("total")
        shares.index = [_label(facet, name) for name in shares.index]
        part = shares.rename_axis("label").reset_index(name="published")
        parts.append(part.assign(facet=facet, population=population))
    return pd.concat(parts)


def _label(facet: str, name: str) -> str:
    """A label of the data by its name in Tables 2 and 3."""
    if facet == "image_type":
        return KINDS[name == "normal"]
    blank = "-" if facet == "query_category" else " "
    return _SPELLED.get(name, name.lower().replace("_", blank))
