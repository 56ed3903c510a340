"""How much of a score the spelling of options could explain, and where examples turn
answers round.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from mrag_rows import four_questions

from vrag_kit.judging import judge_all
from vrag_kit.papers.mrag_bench import (
    ChoiceJudge,
    by_spelling,
    examples_figure,
    explained_by_spelling,
    one_of_each,
    options_spelt_apart,
    spelling_arms,
    spelling_baseline,
    turned,
    with_scenarios,
)
from vrag_kit.types import Benchmark


def answered(benchmark: Benchmark, letters: dict[str, str], setting: str) -> pd.DataFrame:
    """The verdicts on these letters, as of one model."""
    rows = []
    for query_id, letter in letters.items():
        group = benchmark.queries[query_id].group
        told = {"model": "m", "setting": setting, "k": 0, "query_id": query_id, "group": group}
        rows.append({**told, "answer": letter, "status": "ok", "detail": ""})
    judged = judge_all(ChoiceJudge(), benchmark, pd.DataFrame(rows))
    return with_scenarios(judged, benchmark)


def test_options_of_one_spelling_get_a_copy_and_others_do_not(drawn: Benchmark) -> None:
    assert list(spelling_arms(drawn)) == ["as they are", "spelt alike", "a copy, spelt apart"]
    assert list(spelling_arms(options_spelt_apart(drawn))) == ["as they are", "spelt alike"]


def test_a_question_whose_options_differ_in_spelling_alone_is_not_asked_alike() -> None:
    four = four_questions()
    odd = replace(four.queries["3"], choices=("Lily", "lily", "toad", "rose"), answers=("Lily",))
    arms = spelling_arms(replace(four, queries={**four.queries, "3": odd}))
    assert list(arms["as they are"].queries) == ["0", "1", "2", "3"]
    assert list(arms["spelt alike"].queries) == ["0", "1", "2"]


def test_who_follows_the_spelling_owes_it_all_that_it_names(drawn: Benchmark) -> None:
    arms = spelling_arms(drawn)
    copy = arms["a copy, spelt apart"]
    said = spelling_baseline(copy).set_index("query_id")
    wrong = {name: "ABCD".replace(q.metadata["letter"], "")[0] for name, q in copy.queries.items()}
    follows = {name: said.loc[name, "letter"] or wrong[name] for name in copy.queries}
    judged = pd.concat(
        [
            answered(copy, follows, "a copy, spelt apart"),
            answered(drawn, wrong, "as they are"),
        ]
    )
    strata = by_spelling(judged, arms)
    assert strata["stratum"].value_counts()["all questions"] == 2 * 63
    means = strata.groupby(["setting", "stratum"])["score"].mean()
    assert means["a copy, spelt apart"].to_dict() == {
        "all questions": pytest.approx(said["right"].mean()),
        "spelling names a wrong option": 0,
        "spelling names none": 0,
        "spelling names the right option": 1,
    }
    table = explained_by_spelling(strata, mix=None).set_index(["setting", "metric"])["value"]
    share = 100 * said["right"].mean()
    assert table["a copy, spelt apart"].tolist() == pytest.approx([share, share])
    assert table["as they are"].tolist() == [0, 0]


def test_what_has_no_verdict_is_explained_by_nothing(drawn: Benchmark) -> None:
    arms = spelling_arms(drawn)
    judged = answered(drawn, dict.fromkeys(drawn.queries, "A"), "as they are")
    judged.loc[0, "score"] = np.nan
    table = explained_by_spelling(by_spelling(judged, arms), mix=None)
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
    found = turned(told, mix=None).set_index("metric")["value"]
    assert found.to_dict() == {
        "right alone, wrong with retrieved": 50,
        "right with GT, wrong with retrieved": 50,
        "wrong alone, right with retrieved": 25,
        "wrong alone, right with GT": 25,
    }
    lost = told.copy()
    lost.loc[(lost["setting"] == "retrieved_rag") & (lost["query_id"] == "0"), "score"] = np.nan
    row = turned(lost, mix=None).iloc[0]
    assert (row["n"], row["n_failed"]) == (3, 1)
    assert row["value"] == pytest.approx(100 / 3)


def test_one_question_of_each_scenario_is_shown_with_its_pictures(drawn: Benchmark) -> None:
    letters = {name: query.metadata["letter"] for name, query in drawn.queries.items()}
    odd = [name for name, q in drawn.queries.items() if q.metadata["scenario"] == "scope"][-1]
    told = [answered(drawn, letters, setting) for setting in ("no_rag", "gt_rag")]
    told.append(answered(drawn, {**letters, odd: "E"}, "retrieved_rag"))
    judged = pd.concat(told, ignore_index=True)
    chosen = one_of_each(judged, "m")
    scenarios = [drawn.queries[name].metadata["scenario"] for name in chosen]
    assert scenarios[:3] == ["angle", "partial", "scope"]
    assert len(set(scenarios)) == 9
    assert chosen[2] == odd
    figure = examples_figure(drawn, judged, chosen[:3], "m")
    assert "←: the right option" in figure.get_supxlabel()
    words = figure.axes[8].get_xlabel()
    assert "✓ alone\n✓ GT\n✗ retrieved" in words
    assert sum(len(axis.images) for axis in figure.axes) == 9


def test_options_are_shown_whole_and_no_title_lies_on_the_picture_above(drawn: Benchmark) -> None:
    letters = {name: query.metadata["letter"] for name, query in drawn.queries.items()}
    judged = answered(drawn, letters, "no_rag")
    chosen = list(drawn.queries)[:3]
    long = "a name of three words and many more that no line below a picture could hold"
    queries = dict(drawn.queries)
    for name in chosen:
        queries[name] = replace(queries[name], choices=(long,) * 4, answers=(long,))
    others = ("gt_rag", "retrieved_rag")
    judged = pd.concat([judged, *(judged.assign(setting=each) for each in others)])
    figure = examples_figure(replace(drawn, queries=queries), judged, chosen, "m")
    words = " ".join(figure.axes[6].get_xlabel().split())
    assert all(f"({letter}) {long} ←" in words for letter in "ABCD")
    figure.draw_without_rendering()
    for above, below in ((0, 3), (3, 6)):
        picture = figure.axes[above].get_window_extent()
        title = figure.axes[below].title.get_window_extent()
        assert title.y1 <= picture.y0
