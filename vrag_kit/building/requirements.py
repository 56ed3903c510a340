"""Data that each notebook requires of a benchmark: images per question, and other data."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vrag_kit.generation import TOP_K
from vrag_kit.retrieval.metrics import CUTOFFS
from vrag_kit.types import Benchmark


def notebook_requirements(benchmark: Benchmark, *, ks: Sequence[int] | None = None) -> pd.DataFrame:
    """Builds a table of the images that each notebook requires per question. Columns: notebook;
    candidates and non_clues, required for the largest k (of `ks`, else the notebook's own
    parameters); has_candidates and has_non_clues, the fewest of any question here; and cut,
    whether k ends earlier. Other notebooks need at most one clue and one non-clue.
    """
    needs = [row[:3] for row in _needs(benchmark, max(ks or TOP_K)) if any(row[1:3])]
    needs.append(("61_compare", max(ks or [5]), 0))
    table = pd.DataFrame(needs, columns=["notebook", "candidates", "non_clues"])
    candidates, non_clues = _pools(benchmark)
    table = table.assign(has_candidates=candidates, has_non_clues=non_clues)
    return table.assign(cut=(table["candidates"] > candidates) | (table["non_clues"] > non_clues))


def max_clues(benchmark: Benchmark) -> int:
    """Returns the most clues that `06_number_of_clues` can show for a question here, also among
    other images. At most three, the notebook's own parameter.
    """
    clues = max(len(benchmark.relevant(query_id)) for query_id in benchmark.queries)
    return min(3, clues, 1 + _pools(benchmark)[1])


def unmet_requirements(benchmark: Benchmark, *, articles: bool = False) -> dict[str, str]:
    """Maps each notebook of this paper to the reason why it cannot run on a custom benchmark, or
    "". The tour is first. The benchmark may have `articles`, but no other additional data.
    """
    reasons = {row[0]: row[3] for row in _needs(benchmark, max(TOP_K))}
    return reasons | ({"09_wikipedia_text_rag": ""} if articles else {})


def _needs(benchmark: Benchmark, k: int) -> list[tuple[str, int, int, str]]:
    """Notebook, candidates and other images (for the largest k), and why it cannot run."""
    alone = "" if _pools(benchmark)[1] else "a question has no image that is no clue"
    one_species = "" if len(set(benchmark.groups.values())) > 1 else "there is one species alone"
    few = "" if _elsewhere(benchmark) >= 4 else "there are not four images of other species"
    one_clue = "" if max_clues(benchmark) > 1 else "no question has two clues, and another image"
    judging = "holds the judge against labels of answers; open it to label yours"
    webqa = "needs another data set, webqa: {name, annotations, images}"
    swapped = "draws clues again with other values, the Field Guide's alone"
    return [
        ("00_tour", 0, 0, alone),
        ("01_benchmark_statistics", 0, 0, ""),
        ("02_retriever_comparison", max(CUTOFFS), 0, ""),
        ("03_baselines", 0, 0, alone),
        ("04_top_k_vs_one_in_k", k, k - 1, alone),
        ("05_gcue_curves", 0, k - 1, alone),
        ("06_number_of_clues", k, min(10, k) - 1, one_clue),
        ("07_easy_negatives", 0, k - 1, alone or one_species),
        ("08_inat24_corpus", k, 0, "needs a second corpus, second_corpus: {name, images}"),
        ("09_wikipedia_text_rag", 0, 0, "needs articles: {pages, species_list}"),
        ("10_abstention", k, k - 1, alone),
        ("11_judge_agreement", 0, 0, judging),
        ("12_webqa_captions", 0, 0, webqa),
        ("13_rouge", k, k - 1, alone),
        ("14_error_cases", 0, 0, ""),
        ("15_error_budget", k, 19, alone),
        ("16_paper_audit", 0, 0, "is about what the paper prints, with any data the same"),
        ("17_evidence_swap", 0, 0, swapped),
        ("18_why_distractors_hurt", 0, 4, alone or few),
        ("19_abstention_as_detection", k, 20, alone),
    ]


def _elsewhere(benchmark: Benchmark) -> int:
    """How many images of other species there are for every question."""
    images = {query.group: benchmark.qrels[name] for name, query in benchmark.queries.items()}
    counts = [len(each) for each in images.values()]
    return sum(counts) - max(counts)


def _pools(benchmark: Benchmark) -> tuple[int, int]:
    """The fewest candidates of any question, and the fewest that are no clue."""
    pools = {name: set(benchmark.searchable(name)) for name in benchmark.queries}
    others = (len(pool.difference(benchmark.relevant(name))) for name, pool in pools.items())
    return min(map(len, pools.values())), min(others)
