"""What a benchmark consists of, as tables: the paper's section 3 and Figure 2."""

from __future__ import annotations

import re
from functools import cache

import pandas as pd

from vrag_kit.types import Benchmark, Query

CLIP_TOKENS = 77

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
    """Plain word for the organisms of an iNaturalist species folder, by class, else
    kingdom; "other" when the name says neither.

    "01234_Animalia_Chordata_Aves_…" → "birds".
    """
    ranks = folder.split("_")[1:]
    return next(
        (_CATEGORIES[rank] for rank in (*ranks[2:3], *ranks[:1]) if rank in _CATEGORIES), "other"
    )


def question_kind(question: str) -> str:
    """yes/no, count, color, pattern, shape, texture or other: the first whose words
    occur in the question.

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


@cache
def _clip_tokenizer() -> object:
    from open_clip.tokenizer import SimpleTokenizer

    return SimpleTokenizer()


def clip_length(text: str) -> int:
    """Number of CLIP tokens of a text, start and end included; CLIP reads the first 77."""
    return len(_clip_tokenizer().encode(text)) + 2  # type: ignore[attr-defined]


def query_table(benchmark: Benchmark) -> pd.DataFrame:
    """One row a query: query_id, entity, category, kind, images, clues, clue_share (in
    [0, 1]), clip_tokens.
    """

    def row(query: Query) -> dict[str, object]:
        labels = benchmark.qrels[query.query_id]
        clues = len(benchmark.relevant(query.query_id))
        return {
            "query_id": query.query_id,
            "entity": query.entity,
            "category": organism_category(query.metadata.get("folder", "")),
            "kind": question_kind(query.text),
            "images": len(labels),
            "clues": clues,
            "clue_share": clues / len(labels),
            "clip_tokens": clip_length(query.text),
        }

    return pd.DataFrame([row(query) for query in benchmark.queries.values()])


def statistics(benchmark: Benchmark) -> pd.DataFrame:
    """The benchmark in numbers: columns statistic, value, unit.

    Query–image pairs count an image once for every query that lists it, unique images
    once; the paper's 6.12 % clue share and 16.19 clues a query are over pairs (374 ×
    16.19 / 99,017).
    """
    queries = query_table(benchmark)
    counts, pairs = queries["clues"], int(queries["images"].sum())
    disagree = sum(
        q.metadata.get("y_count", count) != count
        for q, count in zip(benchmark.queries.values(), counts, strict=True)
    )
    rows = [
        (
            "annotation version",
            ", ".join(sorted({q.metadata.get("version", "") for q in benchmark.queries.values()})),
            "",
        ),
        ("queries", len(queries), "queries"),
        ("species", queries["entity"].nunique(), "species"),
        ("query-image pairs", pairs, "pairs"),
        ("unique images", len(benchmark.corpus), "images"),
        ("clues a query, mean", round(float(counts.mean()), 2), "images"),
        ("clues a query, median", float(counts.median()), "images"),
        ("queries with fewer than 5 clues", int((counts < 5).sum()), "queries"),
        ("clue share of pairs", round(100 * float(counts.sum()) / pairs, 2), "percent"),
        (
            f"questions over {CLIP_TOKENS} CLIP tokens",
            int((queries["clip_tokens"] > CLIP_TOKENS).sum()),
            "queries",
        ),
        (
            "repeated questions",
            int(
                pd.Series([(q.entity, q.text) for q in benchmark.queries.values()])
                .duplicated()
                .sum()
            ),
            "queries",
        ),
        ("rows whose y_count is not the number of clues", disagree, "queries"),
    ]
    return pd.DataFrame(rows, columns=["statistic", "value", "unit"])


def distribution(benchmark: Benchmark) -> pd.DataFrame:
    """Figure 2: queries by organism category and by question kind; columns facet,
    label, n, share (percent).
    """
    queries = query_table(benchmark)
    tables = [
        queries[column]
        .value_counts()
        .rename_axis("label")
        .reset_index(name="n")
        .assign(facet=facet)
        for facet, column in (("organism", "category"), ("question", "kind"))
    ]
    return pd.concat(tables, ignore_index=True).assign(share=lambda t: 100 * t["n"] / len(queries))[
        ["facet", "label", "n", "share"]
    ]
