"""Truthfulness by the paper's rules in tables and differences, and what CRAG-MM's text
says held against them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import factories
import pandas as pd
import pytest
from factories import judged_arms

from vrag_kit.analysis import to_percent
from vrag_kit.errors import VragError
from vrag_kit.papers import crag_mm as paper
from vrag_kit.papers import published
from vrag_kit.papers.sources import DataSource
from vrag_kit.papers.statements import published_verdicts
from vrag_kit.types import Benchmark, Query

PAPERS = DataSource("the paper's", "CRAG-MM")


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    """Twelve conversations of three turns."""
    queries = []
    for talk, turn in product([f"c{number}" for number in range(12)], range(3)):
        told = {"text": "?", "group": talk, "conversation_id": talk, "turn": turn}
        queries.append(Query(query_id=f"{talk}t{turn}", **told))
    return factories.benchmark(queries, name="Drawn")


@pytest.fixture(scope="module")
def judged(benchmark: Benchmark) -> pd.DataFrame:
    """task_3 is right throughout; mm_llm is wrong at the second turn, one call failed."""
    said = {"mm_llm": [1.0, -1.0, 1.0] * 12, "task_3": [1.0] * 36}
    told = {"query_id": list(benchmark.queries), "group": [*benchmark.groups.values()]}
    table = judged_arms(said, ["setting"], model="mine", k=0, score_min=-1.0, score_max=1.0, **told)
    table.loc[0, "score"] = float("nan")
    return table


def test_gains_are_paired_by_conversations_and_turns(
    judged: pd.DataFrame, benchmark: Benchmark
) -> None:
    gains = paper.results.truthfulness_gains(judged, benchmark, baseline="mm_llm").set_index(
        "metric"
    )
    assert gains["value"].round(4).to_dict() == {
        "truthfulness": 0.6667,
        "accuracy": 0.3333,
        "missing": 0.0,
        "hallucination": -0.3333,
    }
    assert gains.loc["truthfulness", ["n", "n_failed"]].tolist() == [11, 1]
    assert gains.loc["accuracy", ["n", "n_failed"]].tolist() == [33, 3]


def test_a_table_has_the_papers_columns_and_its_numbers_as_other_data(
    judged: pd.DataFrame, benchmark: Benchmark
) -> None:
    means = to_percent(paper.conversations.conversation_means(judged, benchmark))
    table = paper.results.truthfulness_table(means, published("crag_mm", 9))
    assert list(table) == [
        "accuracy",
        "missing",
        "hallucination",
        "truthfulness",
        "early_stop",
        "n",
        "failed",
    ]
    ours = table.loc[("here", "mine", "task_3")]
    assert ours["truthfulness"].startswith("100.0 [")
    assert table.loc[("here", "mine", "mm_llm"), ["n", "failed"]].tolist() == ["11", "1"]
    # 11 conversations of 1/3, and one between (−1 − 1 + 0) / 3 and 1/3
    assert table.loc[("here", "mine", "mm_llm"), "truthfulness"].endswith("(25.0 to 33.3)")
    theirs = table.loc[("reported, other data", "GPT-5 Mini", "task_3")]
    assert theirs[["truthfulness", "early_stop", "n"]].tolist() == ["42.5", "43.5", "–"]
    turns = means[means["metric"] == "successful_turns"]
    assert set(turns["unit"]) == {"turns"}
    assert turns.set_index("setting").loc["task_3", "value"] == 3.0


def test_single_questions_have_no_early_stop(judged: pd.DataFrame, benchmark: Benchmark) -> None:
    alone = {
        name: replace(query, conversation_id=None, turn=0)
        for name, query in benchmark.queries.items()
    }
    means = to_percent(
        paper.conversations.conversation_means(judged, replace(benchmark, queries=alone))
    )
    shown = ["accuracy", "missing", "hallucination", "truthfulness", "n", "failed"]
    assert list(paper.results.truthfulness_table(means)) == shown


def test_the_papers_own_numbers_bear_most_of_its_sentences_out() -> None:
    printed = {
        said.name: published_verdicts("crag_mm", said, metric=said.metric)
        for said in paper.statements.STATEMENTS
    }
    assert printed["search_helps_multi_turn"] == ["supported"] * 9
    assert printed["low_quality_drop"] == []
    table = published("crag_mm", 8).query("metric == 'truthfulness'")
    wide = table.pivot(index="model", columns="setting", values="value")
    gains = (wide["task_1"] - wide["mm_llm"]).gt(0).sum()
    assert printed["image_search_helps"].count("supported") == gains


def test_sentences_are_held_against_a_notebooks_differences(
    judged: pd.DataFrame, benchmark: Benchmark, tmp_path: Path
) -> None:
    gains = to_percent(paper.results.truthfulness_gains(judged, benchmark, baseline="mm_llm"))
    claims = paper.statements.check_statements("53", gains, PAPERS, tmp_path).set_index(
        "statement_id"
    )
    # eleven conversations that all gain alike may hide some that lose
    assert set(claims["verdict"]) <= {"supported", "undecided"}
    assert claims.loc["search_helps_multi_turn", "value"] == pytest.approx(66.67)
    assert paper.statements.check_statements("52", gains, PAPERS, tmp_path)[
        "verdict"
    ].unique().tolist() == ["not run"]
    table = paper.statements.statements_table(tmp_path)
    assert len(table) == len(paper.statements.STATEMENTS)
    assert table["reported"].iloc[0] == "9 of 9"


def test_each_sentence_has_its_own_source(tmp_path: Path) -> None:
    """One is on questions of the paper, one on conversations that are not."""
    columns = ["model", "metric", "setting", "baseline", "value", "ci_low", "ci_high", "n"]
    rows = [
        ("mine", "truthfulness", "low quality", "normal", -20.0, -30.0, -10.0, 99),
        ("mine", "truthfulness", "needs history", "self-contained", -9.0, -12.0, -6.0, 99),
    ]
    sources = {"low_quality_drop": PAPERS, "history_drop": DataSource("mine")}
    claims = paper.statements.check_statements(
        "54", pd.DataFrame(rows, columns=columns), sources, tmp_path
    )
    saved = pd.read_csv(tmp_path / "crag_mm" / "54_claims.csv")
    assert saved["source"].tolist() == ["the paper's", "mine"]
    assert claims["data_version"].fillna("").tolist() == ["CRAG-MM", ""]
    assert claims["verdict"].tolist() == ["supported", "not tested: not the paper's data"]
    assert claims["p_holm"].notna().tolist() == [True, False]


@pytest.mark.parametrize(
    ("kind", "count", "is_papers"),
    [
        ("single", 1938, True),
        ("multi", 586, True),
        ("multi", 570, True),  # pictures are missing
        ("multi", 782, False),  # the private test
        ("multi", 40, False),
        ("single", 586, False),
    ],
)
def test_the_papers_data_are_told_by_name_and_count(kind: str, count: int, is_papers: bool) -> None:
    names = [str(number) for number in range(count)]
    queries = {name: Query(query_id=name, text="?", group=name) for name in names}
    name = f"crag-mm-{kind}-turn-public-test"
    rows = Benchmark(name=name, fingerprint="", queries=queries, corpus={}, qrels={})
    assert bool(paper.statements.data_source(rows).edition) == is_papers
    assert not paper.statements.data_source(
        replace(rows, name="crag-mm-multi-turn-validation")
    ).edition


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    columns = ["model", "metric", "setting", "baseline", "value", "ci_low", "ci_high", "n"]
    (tmp_path / "crag_mm").write_text("a file", encoding="utf-8")
    with pytest.raises(VragError, match="the claims cannot be saved"):
        paper.statements.check_statements("52", pd.DataFrame(columns=columns), PAPERS, tmp_path)
    assert paper.statements.statements_table(tmp_path / "none").empty
