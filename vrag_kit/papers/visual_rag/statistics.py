"""Statistics of a benchmark as tables: the paper's section 3 and Figure 2."""

from __future__ import annotations

import math
import re
from functools import cache

import pandas as pd

from vrag_kit.types import Benchmark

_CATEGORIES = {  # third rank where it tells more, else the first
    "Aves": "birds",
    "Insecta": "insects",
    "Mammalia": "mammals",
    "Reptilia": "reptiles",
    "Amphibia": "amphibians",
    "Actinopterygii": "ray-finned fishes",
    "Arachnida": "arachnids",
    "Gastropoda": "mollusks",
    "Bivalvia": "mollusks",
    "Cephalopoda": "mollusks",
    "Plantae": "plants",
    "Fungi": "fungi",
    "Animalia": "other animals",
}
_KINDS = (  # the first pattern that matches names the kind
    ("yes/no", r"^(is|are|do|does|did|has|have|can|will)\b"),
    ("count", r"\bhow many\b|\bnumber of\b"),
    ("color", r"\bcolou?r"),
    ("pattern", r"\bpatterns?\b|\bmarkings?\b|\bspots?\b|\bstripes?\b|\bbands?\b"),
    ("shape", r"\bshapes?\b|\bshaped\b|\bform\b"),
    ("texture", r"\btextures?\b|\bsurface\b|\bsmooth\b|\bhairy\b"),
)


def organism_category(folder: str) -> str:
    """Returns the organism group of an iNaturalist species folder, by class, else by kingdom;
    "other" if the name has neither.

    "01234_Animalia_Chordata_Aves_…" → "birds".
    """
    ranks = folder.split("_")[1:]
    known = [_CATEGORIES[rank] for rank in (*ranks[2:3], *ranks[:1]) if rank in _CATEGORIES]
    return known[0] if known else "other"


def question_kind(question: str) -> str:
    """Classifies a question as yes/no, count, color, pattern, shape, texture or other: the first
    kind whose words occur.

    Questions that open with a verb (is, are, do, does, has, have, can) are yes/no. The
    last question of a text counts ("When wings are folded …; do the same patterns
    appear below?" is yes/no).
    """
    last = re.split(
        r"[;,.]\s+(?=(?:is|are|do|does|has|have|can|what|which|how)\b)", question.strip().lower()
    )
    for part in (last[-1], question.lower()):
        for kind, words in _KINDS:
            if re.search(words, part):
                return kind
    return "other"


def query_table(benchmark: Benchmark) -> pd.DataFrame:
    """Builds a table with one row per query: query_id, entity, category, kind, images, clues,
    clue_share (in [0, 1]; NaN for a query without labels), clip_tokens.
    """
    from open_clip.tokenizer import SimpleTokenizer  # slow to import

    encode, rows = cache(SimpleTokenizer)().encode, []
    for query_id, query in benchmark.queries.items():
        category = organism_category(query.metadata.get("folder", ""))
        images, clues = len(benchmark.qrels[query_id]), len(benchmark.relevant(query_id))
        asked, tokens = question_kind(query.text), len(encode(query.text)) + 2  # start and end
        share = clues / images if images else math.nan
        rows.append((query_id, query.entity, category, asked, images, clues, share, tokens))
    names = ["query_id", "entity", "category", "kind", "images", "clues", "clue_share"]
    return pd.DataFrame(rows, columns=[*names, "clip_tokens"])


def describe(benchmark: Benchmark) -> pd.DataFrame:
    """Summarises the benchmark as a table: columns statistic, value, unit.

    Unique images count once, query–image pairs count an image once for every query that lists it;
    the paper's 6.12 % clue share and 16.19 clues per query are over pairs (374 × 16.19 / 99,017).
    Values without anything to divide by, for lack of queries or labels, are NaN.
    """
    table, queries = query_table(benchmark), benchmark.queries.values()
    clues, pairs = table["clues"], table["images"].sum()
    stated = pd.Series([query.metadata.get("y_count") for query in queries], dtype=float)
    versions = sorted({query.metadata.get("version", "") for query in queries})
    share = 100 * clues.sum() / pairs if pairs else math.nan
    repeated = len(queries) - len({(query.entity, query.text) for query in queries})
    rows = [
        ("annotation version", ", ".join(versions), ""),
        ("queries", len(queries), "queries"),
        ("species", table["entity"].nunique(), "species"),
        ("query-image pairs", pairs, "pairs"),
        ("unique images", len(benchmark.corpus), "images"),
        ("clues a query, mean", round(float(clues.mean()), 2), "images"),
        ("clues a query, median", float(clues.median()), "images"),
        ("queries with fewer than 5 clues", (clues < 5).sum(), "queries"),
        ("clue share of pairs", round(share, 2), "percent"),
        ("questions over 77 CLIP tokens", (table["clip_tokens"] > 77).sum(), "queries"),
        ("repeated questions", repeated, "queries"),
        (
            "rows whose y_count is not the number of clues",
            (stated.notna() & (stated != clues)).sum(),
            "queries",
        ),
    ]
    return pd.DataFrame(rows, columns=["statistic", "value", "unit"])


def distribution(benchmark: Benchmark) -> pd.DataFrame:
    """Counts queries by organism group and by question kind (Figure 2). Columns: facet, label, n,
    share (percent).
    """
    queries = query_table(benchmark).rename(columns={"category": "organism", "kind": "question"})
    counts = {facet: queries[facet].value_counts() for facet in ("organism", "question")}
    table = pd.concat(counts, names=["facet", "label"]).rename("n").reset_index()
    return table.assign(share=100 * table["n"] / len(queries))
