"""Truthfulness as paired differences, by slice, and where the image search finds the entity,
against counts by hand; and what the paper says of its results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import factories
import numpy as np
import pandas as pd
import pytest
from conversation_data import entry
from conversation_process import listed
from factories import judged_arms
from scipy import stats

from vrag_kit.benchmarks import ImageFile
from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.papers import crag_mm as paper
from vrag_kit.papers.crag_mm.results import RETRIEVED
from vrag_kit.papers.crag_mm.search import SearchPipeline
from vrag_kit.types import Benchmark, Query
from vrag_kit.workspace import Workspace

SCORES = {"R": 1.0, "M": 0.0, "W": -1.0, "?": float("nan")}
GRAPH = (  # found in this order: similarity 0.95, the others 0.05 less each
    entry("kg-1", ("Talia ensis", "")),
    entry("kg-2", ("Talia osa", "")),
    entry("kg-3", ("Bora", "")),
)


def questions(*qualities: str, entities: Sequence[str] = ()) -> Benchmark:
    """A question of each image quality."""
    queries = []
    for number, quality in enumerate(qualities):
        one = {"text": "?", "image": ImageFile(Path("never-opened.png")), "group": f"q{number}"}
        one["metadata"] = {"image_quality": quality, "egocentric": True}
        entity = entities[number] if entities else ""
        queries.append(Query(query_id=f"q{number}", entity=entity, **one))
    return factories.benchmark(queries)


def conversations(count: int) -> Benchmark:
    """Conversations of three turns."""
    queries = [
        Query(query_id=f"{talk}-{turn}", text="?", group=talk, conversation_id=talk, turn=turn)
        for talk, turn in product([f"c{number}" for number in range(count)], range(3))
    ]
    return factories.benchmark(queries)


def judged(benchmark: Benchmark, arm: str = "setting", **letters: str) -> pd.DataFrame:
    """An arm a keyword, a letter (R, M, W, ?) a query."""
    scores = {name: [SCORES[letter] for letter in word] for name, word in letters.items()}
    rows = {"query_id": list(benchmark.queries), "group": [*benchmark.groups.values()], "k": 0}
    return judged_arms(scores, [arm], score_min=-1.0, score_max=1.0, **rows)


def test_gains_are_paired_by_conversations_and_turns_and_are_in_points():
    talks = conversations(12)
    table = judged(talks, mm_llm="?WR" + "RWR" * 11, task_3="RRR" * 12)
    gains = paper.results.truthfulness_gains(table, talks, ["mm_llm"]).set_index("metric")
    assert gains["value"].round(2).to_dict() == {
        "truthfulness": 66.67, "accuracy": 33.33, "missing": 0.0, "hallucination": -33.33
    }  # fmt: skip
    assert gains.loc["truthfulness", ["n", "n_failed"]].tolist() == [11, 1]
    assert gains.loc["accuracy", ["n", "n_failed"]].tolist() == [33, 3]


def test_slices_are_those_that_the_data_annotate_in_the_papers_order():
    benchmark = questions("rotated", "low light", "", "normal")
    labels = paper.results.slice_labels(benchmark, SearchPipeline())
    assert list(labels) == ["low_quality", "image_quality", "image_type"]
    order = list(dict.fromkeys(labels["image_quality"].values()))
    assert order == ["normal", "low light", "rotated", "not annotated"]
    table = judged(benchmark, task_2="RWRM")
    means = paper.results.slice_means(table, benchmark, labels).query("facet == 'image_quality'")
    values = list(zip(means["slice"], means["value"], strict=True))
    assert values == [("normal", 0.0), ("low light", -100.0), ("rotated", 100.0)]


def test_a_drop_is_the_unpaired_difference_of_two_slices():
    benchmark = questions(*["blurred", "normal"] * 80)
    letters = "".join(f"{bad}{good}" for bad, good in zip("WMRW" * 20, "RRMW" * 20, strict=True))
    labels = paper.results.slice_labels(benchmark, SearchPipeline())["low_quality"]
    table = judged(benchmark, task_2=letters)
    row = paper.results.slice_contrast(table, benchmark, labels, ("low quality", "normal")).iloc[0]
    bad, good = np.array([-1, 0, 1, -1] * 20), np.array([1, 1, 0, -1] * 20)
    welch = stats.ttest_ind(bad, good, equal_var=False)
    interval = [100 * end for end in welch.confidence_interval()]
    assert row["value"] == pytest.approx(100 * (bad.mean() - good.mean()))
    assert row[["n", "n_baseline", "arm"]].tolist() == [80, 80, "task_2"]
    assert row[["ci_low", "ci_high"]].tolist() == pytest.approx(interval, abs=2)
    assert row["p"] == row["p_holm"] == pytest.approx(welch.pvalue, abs=0.001)


def test_each_question_has_the_retrieval_status_of_its_entity(tmp_path):
    benchmark = questions(*[""] * 5, entities=["Talia ensis", "Talia osa", "Bora", "Nobody", ""])
    images = listed("image", *GRAPH)
    searches = SearchPipeline(images=images, image_k=2, similarity_threshold=0.92)
    facets = paper.results.slice_labels(benchmark, searches)
    assert list(facets["entity"].values()) == [
        RETRIEVED, "below threshold", "in index, not retrieved", "not in index", "not annotated"
    ]  # fmt: skip
    table = judged(benchmark, task_2="RWMWR")
    kept = paper.results.with_entity_retrieved(table, facets)
    assert kept["query_id"].tolist() == ["q0"]
    nameless = paper.results.slice_labels(questions("normal"), searches)
    assert "entity" not in nameless
    with pytest.raises(VragError, match=r"'retrieved'; .* marks\.jsonl"):
        paper.results.with_entity_retrieved(table, nameless)
    with dry_run(tmp_path):  # where nothing is searched
        assert paper.results.with_entity_retrieved(table, nameless).equals(table)


def of_paper(kind: str, count: int, split: str = "public-test") -> Benchmark:
    """A benchmark with the name of the released rows."""
    names = [f"q{number}" for number in range(count)]
    return factories.benchmark(names, name=f"crag-mm-{kind}-turn-{split}")


SINGLE, MULTI = of_paper("single", 1938), of_paper("multi", 40)
"""As many questions as the paper's public test; fewer conversations."""


def checked(folder: Path, notebook: str, differences: pd.DataFrame) -> pd.DataFrame:
    """The saved checks of a notebook's differences, by statement."""
    at = Workspace(figures_dir=folder)
    paper.results.check_statements(notebook, differences, SINGLE, MULTI, at)
    return pd.read_csv(folder / f"crag_mm/{notebook}_claims.csv", index_col="statement_id")


def test_a_notebooks_differences_are_saved_with_the_statements_they_test(tmp_path):
    benchmark = questions(*["normal"] * 12)
    table = judged(benchmark, mm_llm="W" * 12, task_3="R" * 12)
    gains = paper.results.truthfulness_gains(table, benchmark, ["mm_llm"])
    verdicts = checked(tmp_path, "52", gains)["verdict"]
    assert list(verdicts.index) == ["search_helps_multi_turn", "search_multi_turn_accuracy"]
    assert set(verdicts) == {"not tested: not the paper's data"}


def test_a_statement_is_tested_on_the_papers_own_data_only(tmp_path):
    """That about image quality is on the paper's questions, that about history is not."""
    columns = ["setting", "baseline", "value", "ci_low", "ci_high"]
    rows = [
        ("low quality", "normal", -20.0, -30.0, -10.0),
        ("needs history", "self-contained", -9.0, -12.0, -6.0),
    ]
    table = pd.DataFrame(rows, columns=columns).assign(model="m", metric="truthfulness", n=99)
    found = checked(tmp_path, "53", table)
    assert found["source"].tolist() == [SINGLE.name, MULTI.name]
    assert found["verdict"].tolist() == ["supported", "not tested: not the paper's data"]
    assert found["p_holm"].notna().tolist() == [True, False]


@pytest.mark.parametrize(
    ("rows", "is_papers"),
    [
        (SINGLE, True),
        (of_paper("multi", 586), True),
        (of_paper("multi", 570), True),  # images are missing
        (of_paper("multi", 782), False),  # the private test
        (MULTI, False),
        (of_paper("single", 586), False),
        (replace(SINGLE, name="crag-mm-single-turn-validation"), False),
    ],
)
def test_the_papers_data_are_identified_by_name_and_count(rows, is_papers):
    assert bool(paper.results.data_source(rows)["data_version"]) == is_papers
