"""How much of a score the spelling of options could explain, and where examples turn
answers round.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from mrag_rows import four_questions

from vrag_kit.judging import judge_answers
from vrag_kit.papers import mrag_bench as paper
from vrag_kit.papers.mrag_bench.option_leakage import with_planted_cue
from vrag_kit.types import Benchmark


def answered(benchmark: Benchmark, letters: dict[str, str], setting: str) -> pd.DataFrame:
    """The verdicts on these letters, as of one model."""
    rows = []
    for query_id, letter in letters.items():
        group = benchmark.queries[query_id].group
        told = {"model": "m", "setting": setting, "k": 0, "query_id": query_id, "group": group}
        rows.append({**told, "answer": letter, "status": "ok", "detail": ""})
    judged = judge_answers(paper.choices.MultipleChoiceJudge(), benchmark, pd.DataFrame(rows))
    return paper.results.with_scenarios(judged, benchmark)


def test_options_of_one_spelling_get_a_copy_and_others_do_not(drawn: Benchmark) -> None:
    assert list(paper.option_leakage.option_format_variants(drawn)) == [
        "original",
        "normalised",
        "planted",
    ]
    assert list(paper.option_leakage.option_format_variants(with_planted_cue(drawn))) == [
        "original",
        "normalised",
    ]


def test_a_question_whose_options_differ_in_spelling_alone_is_not_asked_alike() -> None:
    four = four_questions()
    odd = replace(four.queries["3"], choices=("Lily", "lily", "toad", "rose"), answers=("Lily",))
    arms = paper.option_leakage.option_format_variants(
        replace(four, queries={**four.queries, "3": odd})
    )
    assert list(arms["original"].queries) == ["0", "1", "2", "3"]
    assert list(arms["normalised"].queries) == ["0", "1", "2"]


def test_who_follows_the_spelling_owes_it_all_that_it_names(drawn: Benchmark) -> None:
    arms = paper.option_leakage.option_format_variants(drawn)
    copy = arms["planted"]
    said = paper.option_leakage.option_format_baseline(copy).set_index("query_id")
    wrong = {name: "ABCD".replace(q.metadata["letter"], "")[0] for name, q in copy.queries.items()}
    follows = {name: said.loc[name, "option"] or wrong[name] for name in copy.queries}
    judged = pd.concat(
        [
            answered(copy, follows, "planted"),
            answered(drawn, wrong, "original"),
        ]
    )
    strata = paper.option_leakage.with_cue_strata(judged, arms)
    assert strata["stratum"].value_counts()["all questions"] == 2 * 63
    means = strata.groupby(["setting", "stratum"])["score"].mean()
    assert means["planted"].to_dict() == {
        "all questions": pytest.approx(said["correct"].mean()),
        "cue on an incorrect option": 0,
        "no cue": 0,
        "cue on the correct option": 1,
    }
    table = paper.option_leakage.explained_by_cue(strata, weights=None).set_index(
        ["setting", "metric"]
    )["value"]
    share = 100 * said["correct"].mean()
    assert table["planted"].tolist() == pytest.approx([share, share])
    assert table["original"].tolist() == [0, 0]


def test_what_has_no_verdict_is_explained_by_nothing(drawn: Benchmark) -> None:
    arms = paper.option_leakage.option_format_variants(drawn)
    judged = answered(drawn, dict.fromkeys(drawn.queries, "A"), "original")
    judged.loc[0, "score"] = np.nan
    table = paper.option_leakage.explained_by_cue(
        paper.option_leakage.with_cue_strata(judged, arms), weights=None
    )
    assert table["n_failed"].tolist() == [1, 1]
    assert table["n"].tolist() == [62, 62]


def test_answers_that_examples_turn_are_counted_where_both_have_a_verdict() -> None:
    four = four_questions()  # the right letter is A everywhere
    told = pd.concat(
        [
            answered(four, {"0": "A", "1": "A", "2": "B", "3": "A"}, "no_rag"),
            answered(four, {"0": "A", "1": "A", "2": "A", "3": "A"}, "gt_rag"),
            answered(four, {"0": "B", "1": "A", "2": "A", "3": "C"}, "retrieved_rag"),
        ],
        ignore_index=True,
    )
    found = paper.settings.answer_flips(told, weights=None).set_index("metric")["value"]
    assert found.to_dict() == {
        "right alone, wrong with retrieved": 50,
        "right with GT, wrong with retrieved": 50,
        "wrong alone, right with retrieved": 25,
        "wrong alone, right with GT": 25,
    }
    lost = told.copy()
    lost.loc[(lost["setting"] == "retrieved_rag") & (lost["query_id"] == "0"), "score"] = np.nan
    row = paper.settings.answer_flips(lost, weights=None).iloc[0]
    assert (row["n"], row["n_failed"]) == (3, 1)
    assert row["value"] == pytest.approx(100 / 3)


def test_one_question_of_each_scenario_is_shown_with_its_pictures(drawn: Benchmark) -> None:
    letters = {name: query.metadata["letter"] for name, query in drawn.queries.items()}
    odd = [name for name, q in drawn.queries.items() if q.metadata["scenario"] == "scope"][-1]
    told = [answered(drawn, letters, setting) for setting in ("no_rag", "gt_rag")]
    told.append(answered(drawn, {**letters, odd: "E"}, "retrieved_rag"))
    judged = pd.concat(told, ignore_index=True)
    chosen = paper.settings.example_per_scenario(judged, "m")
    scenarios = [drawn.queries[name].metadata["scenario"] for name in chosen]
    assert scenarios[:3] == ["angle", "partial", "scope"]
    assert len(set(scenarios)) == 9
    assert chosen[2] == odd
    figure = paper.figures.examples_figure(drawn, judged, chosen[:3], "m", "Finding")
    card = figure.axes[2]
    words = {text.get_text(): text.get_weight() for text in card.texts}
    assert {"✓ no examples", "✓ gold", "✗ retrieved"} <= set(words)
    query = drawn.queries[odd]
    right = f"({query.metadata['letter']}) {query.answers[0]}"
    bold = [text for text, weight in words.items() if weight == "bold" and text[0] == "("]
    assert bold == [right]
    assert len(card.images) == 3
