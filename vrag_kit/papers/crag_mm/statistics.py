"""Statistics of a split, compared with the published ones of the whole benchmark (Tables 2 and 3),
and annotations missing from the public data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np
import pandas as pd

from vrag_kit.benchmarks.datasets.crag_mm import NAMES
from vrag_kit.papers.published import published
from vrag_kit.types import Benchmark, Query

SINGLE = "single questions"
MULTI = "conversations"
IMAGES = "images"
KINDS = ("egocentric", "non-egocentric")
_IN_TABLE_2 = {"non-egocentric": "normal"}
MEAN_TURNS = 4.9
"""Mean number of turns of a conversation (section 1)."""
MARKS = ("entity", "region", "popularity", "reference_query", "needs_history")
"""Annotations that the authors have and did not publish."""
_SPELLED = {  # as Table 3 has it → as the data have it
    "General Obj. Rec.": "general object recognition",
    "Math & Science": "math and science",
    "Plants & Gardening": "plants and gardening",
    "Sports & Games": "sports and games",
    "Style & Fashion": "style and fashion",
}


def describe(single: Benchmark, multi: Benchmark) -> pd.DataFrame:
    """Summarises a split as a table: columns statistic, value, unit, and `published`, the paper's
    value for the whole benchmark, whose public splits are 30 % each (NaN if there is none).
    """
    lengths = list(_lengths(multi).values())
    sessions = [*_sessions(single), *_sessions(multi)]
    worn = sum(bool(query.metadata["egocentric"]) for query in sessions)
    domains = {query.metadata["domain"] for query in sessions}
    printed = published("crag_mm", 3).set_index(["domain", "split", "question_type"])["value"]
    images = published("crag_mm", 2).set_index(["image_quality", "image_type"])["value"]
    talks = printed["total", "multi_turn", "total"]
    rows = [
        ("single questions", len(single.queries), printed["total", "single_turn", "total"], ""),
        ("conversations", len(lengths), talks, ""),
        ("turns of conversations", sum(lengths), np.nan, "turns"),
        ("turns of a conversation, mean", _mean(lengths), MEAN_TURNS, "turns"),
        ("images", len(sessions), images["total", "total"], ""),
        ("egocentric images", worn, images["total", "egocentric"], ""),
        ("domains", len(domains), len(NAMES["domain"]), ""),
    ]
    return pd.DataFrame(
        [(name, value, unit or name.split()[-1], paper) for name, value, paper, unit in rows],
        columns=["statistic", "value", "unit", "published"],
    )


def distribution(single: Benchmark, multi: Benchmark) -> pd.DataFrame:
    """Counts each label. Columns: facet (the annotation), label, population, n, share and
    `published`, in percent of the population; the paper's shares are of the whole benchmark, NaN if
    unpublished.

    Single questions and turns of conversations have a type and a dynamism; domain, image quality
    and kind are those of a conversation's first turn, as it has one image. Labels that do not occur
    have n 0.
    """
    sessions = {SINGLE: list(single.queries.values()), MULTI: list(_sessions(multi))}
    turns = {SINGLE: sessions[SINGLE], "turns": list(multi.queries.values())}
    images = {IMAGES: list(chain.from_iterable(sessions.values()))}
    paper = _printed_shares()
    tables = [
        _shares("domain", sessions, NAMES["domain"], paper),
        _shares("query_category", turns, NAMES["query_category"], paper),
        _shares("dynamism", turns, NAMES["dynamism"], paper),
        _shares("image_quality", images, NAMES["image_quality"], paper),
    ]
    kinds = [_kind(query) for query in images[IMAGES]]
    tables.append(_counted("image_type", IMAGES, kinds, KINDS, paper))
    lengths = [str(length) for length in _lengths(multi).values()]
    tables.append(_counted("turns", MULTI, lengths, tuple("23456"), paper))
    return pd.concat(tables, ignore_index=True)


def quality_by_kind(single: Benchmark, multi: Benchmark) -> pd.DataFrame:
    """Computes Table 2: rows image qualities and their total, columns egocentric, non-egocentric
    and total images, each with the paper's share in percent.
    """
    sessions = [*_sessions(single), *_sessions(multi)]
    found = Counter((query.metadata["image_quality"], _kind(query)) for query in sessions)
    printed = published("crag_mm", 2).set_index(["image_quality", "image_type"])["value"]
    every = printed["total", "total"]
    rows = {}
    for quality in (*NAMES["image_quality"], "total"):
        row: dict[tuple[str, str], float] = {}
        for kind in (*KINDS, "total"):
            n = _count(found, quality, kind)
            row[kind, "n"] = n
            row[kind, "%"] = 100 * n / len(sessions) if sessions else np.nan
            there = printed[quality.replace(" ", "_"), _IN_TABLE_2.get(kind, kind)]
            row[kind, "paper, %"] = 100 * there / every
        rows[quality] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def annotation_coverage(single: Benchmark, multi: Benchmark) -> pd.DataFrame:
    """Counts the questions with each annotation of `MARKS`: rows annotations, a column of single
    questions and one of turns, as "annotated of all".
    """
    rows = {}
    for mark in MARKS:
        row = {}
        for population, benchmark in ((SINGLE, single), ("turns", multi)):
            told = sum(_is_annotated(query, mark) for query in benchmark.queries.values())
            row[population] = f"{told:,} of {len(benchmark.queries):,}"
        rows[mark] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def example_per_quality(benchmark: Benchmark) -> dict[str, Query]:
    """Maps each image quality to the first question with such an image, egocentric ones first;
    absent if there is none.
    """
    queries = sorted(benchmark.queries.values(), key=lambda each: not each.metadata["egocentric"])
    found: dict[str, Query] = {}
    for quality in NAMES["image_quality"]:
        of_it = [query for query in queries if query.metadata["image_quality"] == quality]
        if of_it:
            found[quality] = of_it[0]
    return found


def _is_annotated(query: Query, mark: str) -> bool:
    if mark == "entity":
        return bool(query.entity)
    return query.metadata.get(mark) not in (None, "")


def _kind(query: Query) -> str:
    return KINDS[not query.metadata["egocentric"]]


def _count(found: Mapping[tuple[str, str], int], quality: str, kind: str) -> int:
    return sum(
        n
        for (own, own_kind), n in found.items()
        if quality in (own, "total") and kind in (own_kind, "total")
    )


def _sessions(benchmark: Benchmark) -> list[Query]:
    """The first turn of each session."""
    return [query for query in benchmark.queries.values() if not query.turn]


def _lengths(multi: Benchmark) -> Mapping[str, int]:
    """Conversation → its turns."""
    return Counter(query.group for query in multi.queries.values())


def _shares(
    facet: str,
    populations: Mapping[str, Sequence[Query]],
    labels: Sequence[str],
    paper: Mapping[tuple[str, str, str], float],
) -> pd.DataFrame:
    tables = [
        _counted(facet, name, [str(query.metadata[facet]) for query in queries], labels, paper)
        for name, queries in populations.items()
    ]
    return pd.concat(tables, ignore_index=True)


def _counted(
    facet: str,
    population: str,
    found: Sequence[str],
    labels: Iterable[str],
    paper: Mapping[tuple[str, str, str], float],
) -> pd.DataFrame:
    counts, rows = Counter(found), []
    for label in labels:
        share = 100 * counts[label] / len(found) if found else np.nan
        printed = paper.get((facet, population, label), np.nan)
        rows.append((facet, label, population, counts[label], share, printed))
    return pd.DataFrame(rows, columns=["facet", "label", "population", "n", "share", "published"])


def _printed_shares() -> dict[tuple[str, str, str], float]:
    """(facet, population, label) → percent of the whole benchmark."""
    tables = {
        ("domain", SINGLE): published("crag_mm", 3, split="single_turn", question_type="total"),
        ("domain", MULTI): published("crag_mm", 3, split="multi_turn", question_type="total"),
        ("query_category", SINGLE): published("crag_mm", 3, split="single_turn", domain="total"),
        ("image_quality", IMAGES): published("crag_mm", 2, image_type="total"),
        ("image_type", IMAGES): published("crag_mm", 2, image_quality="total"),
    }
    shares = {}
    for (facet, population), table in tables.items():
        counts = table.set_index(table.columns[0])["value"]
        for name, count in counts.drop("total").items():
            label = _label(facet, str(name))
            shares[facet, population, label] = 100 * count / counts["total"]
    return shares


def _label(facet: str, name: str) -> str:
    """A label of the data by its name in Tables 2 and 3."""
    if facet == "image_type":
        return KINDS[name == "normal"]
    blank = "-" if facet == "query_category" else " "
    return _SPELLED.get(name, name.lower().replace("_", blank))


def _mean(values: Sequence[int]) -> float:
    return float(np.mean(values)) if values else np.nan
