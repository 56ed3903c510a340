"""How many images a question each notebook takes, beside what a benchmark has."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from vrag_kit.generation import ONE_IN_K, TOP_K
from vrag_kit.retrieval import CUTOFFS
from vrag_kit.types import Benchmark


@dataclass(frozen=True, slots=True)
class _Needed:
    candidates: int = 0
    """What the deepest top-k, or cut-off, takes."""
    non_clues: int = 0
    """What stands beside the clue, or in its place."""


_BOTH = _Needed(candidates=max(TOP_K), non_clues=max(ONE_IN_K) - 1)
_NEEDED = {
    "02_retriever_comparison": _Needed(candidates=max(CUTOFFS)),
    "04_top_k_vs_one_in_k": _BOTH,
    "05_gcue_curves": _Needed(non_clues=_BOTH.non_clues),
    "06_number_of_clues": _Needed(candidates=max(TOP_K), non_clues=9),
    "07_easy_negatives": _Needed(non_clues=_BOTH.non_clues),
    "08_inat24_corpus": _Needed(candidates=max(TOP_K)),
    "10_abstention": _BOTH,
    "13_rouge": _BOTH,
    "15_error_budget": _BOTH,
    "18_why_distractors_hurt": _Needed(non_clues=4),
    "19_abstention_as_detection": _Needed(candidates=max(TOP_K), non_clues=20),
}
"""With the parameters that the notebooks have by themselves."""


def pools_needed(benchmark: Benchmark) -> pd.DataFrame:
    """One row a notebook: candidates and non_clues, what each question must have for its
    largest k, at the notebook's own parameters; has_candidates and has_non_clues, the
    fewest of a question here; and cut, whether its k end earlier. The other notebooks
    take a clue and a non-clue at most.
    """
    candidates, non_clues = [], []
    for query_id in benchmark.queries:
        pool = benchmark.candidates(query_id)
        shown = set(benchmark.corpus if pool is None else pool)
        shown -= benchmark.left_out.get(query_id, frozenset())
        candidates.append(len(shown))
        non_clues.append(len(shown - set(benchmark.relevant(query_id))))
    rows = [
        (name, needed.candidates, needed.non_clues, min(candidates), min(non_clues))
        for name, needed in _NEEDED.items()
    ]
    columns = ["notebook", "candidates", "non_clues", "has_candidates", "has_non_clues"]
    table = pd.DataFrame(rows, columns=columns)
    few = table["candidates"] > table["has_candidates"]
    return table.assign(cut=few | (table["non_clues"] > table["has_non_clues"]))
