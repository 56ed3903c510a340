"""Statistics of a benchmark as tables: the paper's section 3 and Figure 2."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING

import pandas as pd

from vrag_kit.types import Benchmark

if TYPE_CHECKING:
    from open_clip.tokenizer import SimpleTokenizer

CLIP_TOKENS = 77
"""Maximum number of tokens that CLIP reads."""

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


def clip_token_count(text: str) -> int:
    """Returns the number of CLIP tokens of a text, with start and end; CLIP reads the first 77."""
    return len(_tokenizer().encode(text)) + 2


@cache
def _tokenizer() -> SimpleTokenizer:
    from open_clip.tokenizer import SimpleTokenizer

    return SimpleTokenizer()


def query_table(benchmark: Benchmark) -> pd.DataFrame:
    """Builds a table with one row per query: query_id, entity, category, kind, images, clues,
    clue_share (in [0, 1]; NaN for a query without labels), clip_tokens.
    """
    rows = []
    for query_id, query in benchmark.queries.items():
        category = organism_category(query.metadata.get("folder", ""))
        images, clues = len(benchmark.qrels[query_id]), len(benchmark.relevant(query_id))
        asked = question_kind(query.text), clip_token_count(query.text)
        rows.append((query_id, query.entity, category, *asked, images, clues))
    names = ["query_id", "entity", "category", "kind", "clip_tokens", "images", "clues"]
    table = pd.DataFrame(rows, columns=names)
    table["clue_share"] = table["clues"] / table["images"]
    return table[[*names[:4], "images", "clues", "clue_share", "clip_tokens"]]


def published_statistics(benchmark: Benchmark) -> dict[str, float]:
    """Computes the statistics of the paper's section 3 for this benchmark: queries, query-image
    pairs, clues per query and share of clues; NaN if there is nothing to divide by.

    Query–image pairs count an image once for every query that lists it; the paper's 6.12 % clue
    share and 16.19 clues per query are over pairs (374 × 16.19 / 99,017).
    """
    queries = len(benchmark.queries)
    pairs = sum(len(benchmark.qrels[query_id]) for query_id in benchmark.queries)
    clues = sum(len(benchmark.relevant(query_id)) for query_id in benchmark.queries)
    return {
        "queries": queries,
        "query-image pairs": pairs,
        "clues a query, mean": round(clues / queries, 2) if queries else math.nan,
        "clue share of pairs": round(100 * clues / pairs, 2) if pairs else math.nan,
    }


def describe(benchmark: Benchmark) -> pd.DataFrame:
    """Summarises the benchmark as a table: columns statistic, value, unit.

    Unique images count once, query–image pairs as in `published_statistics`. Values without
    anything to divide by, for lack of queries or labels, are NaN.
    """
    table, totals = query_table(benchmark), published_statistics(benchmark)
    queries, clues = list(benchmark.queries.values()), table["clues"]
    versions = sorted({query.metadata.get("version", "") for query in queries})
    stated = pd.Series([query.metadata.get("y_count") for query in queries], dtype=float)
    different = {(query.entity, query.text) for query in queries}
    rows = [
        ("annotation version", ", ".join(versions), ""),
        ("queries", totals["queries"], "queries"),
        ("species", table["entity"].nunique(), "species"),
        ("query-image pairs", totals["query-image pairs"], "pairs"),
        ("unique images", len(benchmark.corpus), "images"),
        ("clues a query, mean", totals["clues a query, mean"], "images"),
        ("clues a query, median", float(clues.median()), "images"),
        ("queries with fewer than 5 clues", int((clues < 5).sum()), "queries"),
        ("clue share of pairs", totals["clue share of pairs"], "percent"),
    ]
    counts = {
        f"questions over {CLIP_TOKENS} CLIP tokens": int(
            (table["clip_tokens"] > CLIP_TOKENS).sum()
        ),
        "repeated questions": len(queries) - len(different),
        "rows whose y_count is not the number of clues": int(
            (stated.notna() & (stated != clues)).sum()
        ),
    }
    rows += [(name, count, "queries") for name, count in counts.items()]
    return pd.DataFrame(rows, columns=["statistic", "value", "unit"])


def distribution(benchmark: Benchmark) -> pd.DataFrame:
    """Counts queries by organism group and by question kind (Figure 2). Columns: facet, label, n,
    share (percent).
    """
    queries, tables = query_table(benchmark), []
    for facet, column in (("organism", "category"), ("question", "kind")):
        counts = queries[column].value_counts().rename_axis("label").reset_index(name="n")
        tables.append(counts.assign(facet=facet))
    table = pd.concat(tables, ignore_index=True)
    return table.assign(share=100 * table["n"] / len(queries))[["facet", "label", "n", "share"]]
