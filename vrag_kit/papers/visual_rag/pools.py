"""How many images a question each notebook takes, beside what a benchmark has; which
notebooks run on one of one's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from vrag_kit.generation import TOP_K
from vrag_kit.retrieval import CUTOFFS
from vrag_kit.types import Benchmark

_COMPARED = (1, 5)
"""The k of 61_compare."""


@dataclass(frozen=True, slots=True)
class _Needed:
    candidates: int = 0
    """What the deepest top-k, or cut-off, takes."""
    non_clues: int = 0
    """What stands beside the clue, or in its place."""


def _needed(given: Sequence[int] | None, cutoffs: Sequence[int]) -> dict[str, _Needed]:
    """Notebook → what it takes with these, and else with its own parameters."""
    ks = given or TOP_K
    retrieved = _Needed(candidates=max(ks))
    beside = _Needed(non_clues=max(ks) - 1)
    both = replace(retrieved, non_clues=beside.non_clues)
    return {
        "02_retriever_comparison": _Needed(candidates=max(cutoffs)),
        "04_top_k_vs_one_in_k": both,
        "05_gcue_curves": beside,
        "06_number_of_clues": replace(retrieved, non_clues=min(10, max(ks)) - 1),
        "07_easy_negatives": beside,
        "08_inat24_corpus": retrieved,
        "10_abstention": both,
        "13_rouge": both,
        "15_error_budget": replace(retrieved, non_clues=19),
        "18_why_distractors_hurt": _Needed(non_clues=4),
        "19_abstention_as_detection": replace(retrieved, non_clues=20),
        "61_compare": _Needed(candidates=max(given or _COMPARED)),
    }


def pools_needed(
    benchmark: Benchmark, *, ks: Sequence[int] | None = None, cutoffs: Sequence[int] = CUTOFFS
) -> pd.DataFrame:
    """One row a notebook: candidates and non_clues, what each question must have for its
    largest k, at these `ks` and `cutoffs` and else at the notebook's own parameters;
    has_candidates and has_non_clues, the fewest of a question here; and cut, whether its
    k end earlier. The other notebooks take a clue and a non-clue at most.
    """
    candidates, non_clues = _pools(benchmark)
    rows = [
        (name, needed.candidates, needed.non_clues, min(candidates), min(non_clues))
        for name, needed in _needed(ks, cutoffs).items()
    ]
    columns = ["notebook", "candidates", "non_clues", "has_candidates", "has_non_clues"]
    table = pd.DataFrame(rows, columns=columns)
    few = table["candidates"] > table["has_candidates"]
    return table.assign(cut=few | (table["non_clues"] > table["has_non_clues"]))


def most_clues(benchmark: Benchmark) -> int:
    """The most clues that `06_number_of_clues` can show a question here, among other
    images too, and at most the three of its own parameter.
    """
    clues = max(len(benchmark.relevant(query_id)) for query_id in benchmark.queries)
    return min(3, clues, 1 + min(_pools(benchmark)[1]))


def why_not(benchmark: Benchmark, *, articles: bool = False) -> dict[str, str]:
    """Each notebook of this paper, the tour first → why it cannot run on a benchmark of
    one's own that has its `articles` or not, and no other data; "" where it can.
    """
    clues_alone = "" if min(_pools(benchmark)[1]) else "a question has no image that is no clue"
    one_species = "" if len(set(benchmark.groups.values())) > 1 else "there is one species alone"
    few_others = "" if _elsewhere(benchmark) >= 4 else "there are not four images of other species"
    one_clue = "" if most_clues(benchmark) > 1 else "no question has two clues, and another image"
    return {
        "00_tour": clues_alone,
        "01_benchmark_statistics": "",
        "02_retriever_comparison": "",
        "03_baselines": clues_alone,
        "04_top_k_vs_one_in_k": clues_alone,
        "05_gcue_curves": clues_alone,
        "06_number_of_clues": one_clue,
        "07_easy_negatives": clues_alone or one_species,
        "08_inat24_corpus": "needs a second corpus, other_corpus: {name, images}",
        "09_wikipedia_text_rag": "" if articles else "needs articles: {pages, species_list}",
        "10_abstention": clues_alone,
        "11_judge_agreement": "holds the judge against labels of answers; open it to label yours",
        "12_webqa_captions": "needs another data set, webqa: {name, annotations, images}",
        "13_rouge": clues_alone,
        "14_error_cases": "",
        "15_error_budget": clues_alone,
        "16_paper_audit": "is about what the paper prints, with any data the same",
        "17_evidence_swap": "draws clues again with other values, the Field Guide's alone",
        "18_why_distractors_hurt": clues_alone or few_others,
        "19_abstention_as_detection": clues_alone,
    }


def _elsewhere(benchmark: Benchmark) -> int:
    """How many images of other species there are for every question."""
    images = {query.group: benchmark.qrels[name] for name, query in benchmark.queries.items()}
    counts = [len(each) for each in images.values()]
    return sum(counts) - max(counts)


def _pools(benchmark: Benchmark) -> tuple[list[int], list[int]]:
    """Of each question, how many candidates it has, and how many of them are no clue."""
    candidates, non_clues = [], []
    for query_id in benchmark.queries:
        pool = benchmark.candidates(query_id)
        shown = set(benchmark.corpus if pool is None else pool)
        shown -= benchmark.left_out.get(query_id, frozenset())
        candidates.append(len(shown))
        non_clues.append(len(shown - set(benchmark.relevant(query_id))))
    return candidates, non_clues
