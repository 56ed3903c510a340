"""Published numbers of the paper with the intervals that they allow, tests of whether a benchmark
is the paper's own data, and the labels of its Figure 2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from vrag_kit.papers.audit import CELL
from vrag_kit.papers.published import Filter, published
from vrag_kit.papers.statements import data_columns
from vrag_kit.types import Benchmark

PAPER_QUERIES = 374
"""Number of queries behind every number of the Visual-RAG paper."""
RUN_TABLES = (13, 15)
_SAME = 0.006  # two published means are one: half a unit of the last digit, and a little
EDITIONS = {
    "94b730ac02c6606269bfb430091648549af4f6bd": "Visual-RAG v1, first upload",
    "103cb49bcc545cc7235fc62e5cd8a4e7333fd665": "Visual-RAG v1, second upload",
    "5e01244436de97da8925afbe4773cbc7370a19cf": "Visual-RAG v1, third upload",
}
"""Maps git's blob id of a released `v1_anno.jsonl` to its upload in April 2025. The blob id of
`v2_anno.jsonl` is unknown here.
"""
PAPER_NAMES = {
    "microsoft-Phi-4-multimodal-instruct": "Phi4-MM",
    "Qwen-Qwen2.5-VL-7B-Instruct": "Qwen2.5VL",
    "OpenGVLab-InternVL3-8B-hf": "InternVL3",
    "mistral-community-pixtral-12b": "Pixtral",
    "meta-llama-Llama-3.2-11B-Vision-Instruct": "Llama3.2-V",
    "gpt-4o": "GPT-4o",
    "gemini-2.5-pro": "Gemini",
    "claude-sonnet-4-20250514": "Claude",
}
"""Maps a model's name, as `params/visual_rag/paper.yaml` loads it, to its name in the paper's
tables.
"""


def reported(table: int | Sequence[int], **filters: Filter) -> pd.DataFrame:
    """Returns published tables of the paper (`published`), in percent, with the intervals that its
    numbers allow: ci_low and ci_high over its n queries and, for answers, ci_low_runs and
    ci_high_runs over its five runs, where the value is the mean of those in Tables 13 and 15: a t
    interval over other samples of images for the *same* queries. NaN elsewhere.

    That over queries is Clopper–Pearson's, the widest of a mean in percent: as if every query
    scored 0 or 1 (means of other scores vary less) and independently (queries on one species may
    not be independent; the paper publishes nothing on this). NaN where the unit is another one,
    such as hit_count's.

    Clopper & Pearson (1934), "The use of confidence or fiducial limits illustrated in
    the case of the binomial", Biometrika 26(4).
    """
    from statsmodels.stats.proportion import proportion_confint  # slow to import

    rows = published("visual_rag", table, **filters)
    right = (rows["value"] / 100 * rows["n"]).where(rows["unit"] == "percent")
    low, high = proportion_confint(right, rows["n"], method="beta")
    rows = rows.assign(ci_low=100 * low, ci_high=100 * high)
    if "model" not in rows:
        return rows
    runs = rows[CELL].merge(run_spreads(), on=CELL, how="left")
    same = (runs["mean"] - rows["value"]).abs() <= _SAME
    runs = runs.where(same)
    ends = {"ci_low_runs": runs["mean"] - runs["half"], "ci_high_runs": runs["mean"] + runs["half"]}
    return rows.assign(**ends)


def run_spreads(tables: tuple[int, ...] = RUN_TABLES) -> pd.DataFrame:
    """Computes the spread of the paper's five runs from the runs themselves (Tables 13 and 15; for
    ROUGE 14 and 16): model, setting, k, mean in percent, std (ddof = 1), count, and half, half the
    width of the mean's 95 % t interval, in points.
    """
    from scipy.special import stdtrit  # quantiles of Student's t

    cells = published("visual_rag", tables, statistic="run").groupby(CELL, sort=False)["value"]
    over = cells.agg(["mean", "std", "count"]).reset_index()
    half = stdtrit(over["count"] - 1, 0.975) * over["std"] / np.sqrt(over["count"])
    return over.assign(half=half)


def data_source(benchmark: Benchmark) -> dict[str, str]:
    """Returns the columns of statement checks on a benchmark (`data_columns`): one of the
    `EDITIONS`, or data without a verdict.

    Any other file is not the paper's: v2 changes labels and answers of 61 rows, which could explain
    a difference from the paper.
    """
    return data_columns(benchmark, EDITIONS.get(benchmark.blob, ""))


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
    nearest = (*ranks[2:3], *ranks[:1])
    return next((_CATEGORIES[rank] for rank in nearest if rank in _CATEGORIES), "other")


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
