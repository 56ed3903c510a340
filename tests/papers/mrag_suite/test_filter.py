"""The filter drops what models answer without evidence, what a question itself answers, and the
easiest of each domain; its controls show what selection alone does to scores.
"""

from __future__ import annotations

from dataclasses import replace

import factories
import numpy as np
import pandas as pd
import pytest
from factories import benchmark
from strange_server import StrangeServer

from vrag_kit.errors import VragError
from vrag_kit.papers import mrag_suite as paper
from vrag_kit.synthetic.mrag_suite import ask_closed_book
from vrag_kit.types import Benchmark, Query
from vrag_kit.workspace import Workspace

ANY = paper.filter.FilterRules(min_confidence=None, drop_share=0.0)


def question(name: str, text: str = "What color is it?", **more: object) -> Query:
    metadata = {"domain": "charts", "hops": None, "required_modality": "image", **more}
    return Query(query_id=name, text=text, answers=("red",), group=name, metadata=metadata)


def judged(scores: dict[str, dict[str, float]], setting: str = "zero_shot") -> pd.DataFrame:
    """Model → query → score, as a table of judged answers."""
    tables = []
    for model, of in scores.items():
        told = {"query_id": list(of), "score": list(of.values()), "setting": setting, "k": 0}
        tables.append(factories.judged(model=model, **told))
    return pd.concat(tables, ignore_index=True)


def controls(asked: Benchmark, answers: pd.DataFrame, book: pd.DataFrame) -> pd.DataFrame:
    """The controls of one data set and stratum."""
    table = answers.assign(dataset="x", metric="m", stratum="all questions")
    return paper.filter.filter_controls(table, {"x": asked}, book.assign(dataset="x"), ANY)


@pytest.mark.parametrize(
    ("text", "answer", "stands"),
    [
        ("Is the Red Kite red?", "a red kite", True),
        ("Is the red, old kite red?", "red kite", False),
        ("Is it so, yes or no?", "yes", False),
        ("Which of A and B is it?", "B", False),
        ("What is redder?", "red", False),
    ],
)
def test_an_answer_stands_in_a_question_word_by_word(text, answer, stands):
    query = replace(question("q", text), answers=(answer,))
    assert paper.filter.answer_in_question(query) is stands


def test_step_1_counts_the_models_that_know_it_and_are_sure():
    asked = benchmark([*map(question, "abcd"), question("e", "Is it red?")])
    scores = {"one": dict.fromkeys("abcde", 1.0), "two": {"a": 1.0, "b": 0.5, "c": 1.0, "d": 0.0}}
    book = judged(scores).assign(confidence=[0.95, 0.95, np.nan, 0.9, 0.95, 0.95, 1.0, 1.0, 1.0])
    rules = paper.filter.FilterRules(drop_share=0.0)
    table = paper.filter.filter_decisions(asked, book, rules).set_index("query_id")
    # c: "two" is sure; d: 0.9 is not more than 0.9
    assert table["votes"].to_dict() == {"a": 2, "b": 1, "c": 1, "d": 0, "e": 1}
    assert list(table.index[table["dropped"]]) == ["a", "b", "c", "e"]
    assert table.loc["e", "reason"] == "answer_in_question"
    for confidence, dropped in ((0.9, ["a", "e"]), (None, ["a", "c", "e"])):
        rules = paper.filter.FilterRules(min_votes=2, min_confidence=confidence, drop_share=0)
        table = paper.filter.filter_decisions(asked, book, rules)
        assert table.loc[table["dropped"], "query_id"].tolist() == dropped


def test_step_2_drops_the_easiest_of_each_domain_by_hops_needs_and_success():
    easiest_last = [
        question("page", domain="pages", hops=3, required_modality="both"),
        question("two hops", hops=2),
        question("both", hops=1, required_modality="both"),
        question("unsolved", hops=1),
        question("solved", hops=1),
    ]
    scores = {"one": {"solved": 1.0, "both": 1.0, "two hops": 1.0, "unsolved": 0.0, "page": 0.0}}
    for share, easy in ((0.25, {"solved"}), (0.5, {"solved", "unsolved"})):
        rules = paper.filter.FilterRules(min_votes=2, min_confidence=None, drop_share=share)
        table = paper.filter.filter_decisions(benchmark(easiest_last), judged(scores), rules)
        assert set(table.loc[table["step"] == 2, "query_id"]) == easy


def test_the_filtered_split_is_what_41_did_not_drop(tmp_path):
    suite = {"one": benchmark(map(question, "abc")), "two": benchmark(map(question, "ab"))}
    book = judged({"m": {"a": 1.0, "b": 0.0, "c": 0.0}})
    decisions = paper.filter.filter_decisions(suite["one"], book, ANY).assign(dataset="one")
    paper.filter.write_dropped(decisions, tmp_path / "dropped.csv")
    written = pd.read_csv(tmp_path / "dropped.csv")
    columns = ["query_id", "step", "reason", "votes", "success_rate"]
    assert written[columns].to_numpy().tolist() == [["a", 1, "closed_book_correct", 1, 1.0]]
    left = paper.filter.without_dropped(suite, tmp_path / "dropped.csv")
    assert [list(each.queries) for each in left.values()] == [["b", "c"], ["a", "b"]]
    assert paper.filter.without_dropped(suite, "") == suite
    with pytest.raises(VragError, match="run that first"):
        paper.filter.without_dropped(suite, tmp_path / "none.csv")


def test_a_model_that_can_say_how_sure_it_is_is_asked(tmp_path):
    suite = {"mine": benchmark([question("a"), question("b", "How wide is it?")])}
    plans = {"What color": ["say Answer: red\nConfidence: 0.95"], "How wide": ["say red"]}
    with StrangeServer(plans) as server:
        entry = {"model": f"book@{server.url}", "timeout": 5.0, "retries": 0}
        how = {"prompt": "plain-ex1-direct", "decoding": {"temperature": 0}}
        table = ask_closed_book([entry], suite, Workspace(answers_dir=tmp_path), **how)
    assert table["answer"].tolist() == ["red", "red"]
    assert table["confidence"].tolist() == pytest.approx([0.95, np.nan], nan_ok=True)


def test_a_filter_that_asks_for_confidence_needs_it_and_one_that_drops_all_is_refused():
    rules, unsure = paper.filter.FilterRules(), judged({"one": {"a": 1.0}})
    with pytest.raises(KeyError, match="'confidence'"):
        paper.filter.filter_decisions(benchmark([question("a")]), unsure, rules)
    known = judged({"one": dict.fromkeys("abcd", 1.0)})
    with pytest.raises(VragError, match="4 questions"):
        controls(benchmark(map(question, "abcd")), known, known)


def test_controls_count_what_has_no_score_and_refuse_several_arms():
    asked = benchmark(map(question, "abcd"))
    table = judged({"one": {"a": 1.0, "b": np.nan, "c": 0.0, "d": 1.0}})
    found = controls(asked, table, table).set_index("setting")
    # of a, c, d with scores c is left
    assert found.loc["filtered", ["n", "n_full", "n_failed"]].tolist() == [1, 3, 1]
    assert found.loc["filtered", "value"] == pytest.approx(-100 * 2 / 3)
    assert set(found["baseline"]) == {"all questions"}
    with pytest.raises(VragError, match="several arms"):
        controls(asked, pd.concat([table, table.assign(setting="both")]), table)


def test_a_filter_is_decided_without_the_answers_of_the_model_under_test():
    """One knows a, two knows b; c and d are known to none. Without one's answers a stays."""
    asked = benchmark(map(question, "abcd"))
    one, two = {"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}
    table = judged({"one": {**one, "c": 0.0, "d": 1.0}, "two": {**two, "c": 0.0, "d": 1.0}})
    book = judged({"one": one, "two": two, "another": {"c": 0.0}})
    found = controls(asked, table, book).set_index(["model", "setting"])
    assert (found.xs("filtered", level="setting")["n"] == 2).all()  # c and d
    left_out = found.xs("filtered, model left out", level="setting")
    assert (left_out["n"] == 3).all()
    # of a (1), c and d; and of b (1), c and d: 2/3 less 2/4
    assert left_out["value"].tolist() == pytest.approx([100 * (2 / 3 - 1 / 2)] * 2)
