"""MRAG-Suite's filter drops what a closed book knows, what stands in the question, and the
easiest of each domain; and beside what it does to scores stands what selection does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vrag_kit.errors import VragError
from vrag_kit.generation import render
from vrag_kit.generation.generator import text_of
from vrag_kit.papers.mrag_suite import (
    CLOSED_BOOK,
    FilterRules,
    closed_book_wording,
    filter_controls,
    filter_decisions,
    keep_rates,
    kept,
    stands_in_question,
    with_confidence,
    write_dropped,
)
from vrag_kit.types import Benchmark, Query

ANY = FilterRules(confidence=None, drop_share=0.0)


def question(name: str, text: str = "What color is it?", **more: object) -> Query:
    answers = more.pop("answers", ("red",))
    assert isinstance(answers, tuple)
    metadata = {"domain": "charts", "hops": None, "needs": "image", **more}
    return Query(query_id=name, text=text, answers=answers, group=name, metadata=metadata)


def benchmark(*queries: Query) -> Benchmark:
    asked = {query.query_id: query for query in queries}
    return Benchmark(
        name="small", fingerprint="f", queries=asked, corpus={}, qrels={key: {} for key in asked}
    )


def judged(scores: dict[str, dict[str, float]], **columns: object) -> pd.DataFrame:
    """Model → query → score, as a table of judged answers."""
    rows = []
    for model, of in scores.items():
        rows += [{"model": model, "query_id": name, "score": score} for name, score in of.items()]
    table = pd.DataFrame(rows).assign(setting=CLOSED_BOOK, k=0, **columns)
    return table.assign(group=table["query_id"], status="ok", abstained=0.0)


@pytest.mark.parametrize(
    ("text", "answers", "stands"),
    [
        ("Is the Red Kite red?", ("a red kite",), True),
        ("Is the red, old kite red?", ("red kite",), False),
        ("Which is it, red or blue?", ("green", "blue"), True),
        ("Is it so, yes or no?", ("yes",), False),
        ("Which of A and B is it?", ("B",), False),
        ("How many, 1,234 or 12?", ("1,234",), True),
        ("What is it?", ("the",), False),
        ("What is redder?", ("red",), False),
    ],
)
def test_an_answer_stands_in_a_question_word_by_word(
    text: str, answers: tuple[str, ...], stands: bool
) -> None:
    assert stands_in_question(question("q", text, answers=answers)) is stands


def test_step_1_counts_the_models_that_know_it_and_are_sure() -> None:
    asked = benchmark(*map(question, "abcd"), question("e", "Is it red?"))
    scores = {"one": dict.fromkeys("abcde", 1.0), "two": {"a": 1.0, "b": 0.5, "c": 1.0, "d": 0.0}}
    book = judged(scores).assign(confidence=[0.95, 0.95, np.nan, 0.9, 0.95, 0.95, 1.0, 1.0, 1.0])
    table = filter_decisions(asked, book, FilterRules(drop_share=0.0)).set_index("query_id")
    # c: "two" is sure; d: 0.9 is not more than 0.9
    assert table["votes"].to_dict() == {"a": 2, "b": 1, "c": 1, "d": 0, "e": 1}
    assert list(table.index[table["dropped"]]) == ["a", "b", "c", "e"]
    assert table.loc["e", "reason"] == "its answer stands in the question"
    assert (table["models"] == 2).all()
    rules = FilterRules(votes=2, drop_share=0.0)
    table = filter_decisions(asked, book, rules).set_index("query_id")
    assert list(table.index[table["dropped"]]) == ["a", "e"]
    table = filter_decisions(asked, book, FilterRules(votes=2, confidence=None, drop_share=0))
    assert table.set_index("query_id").loc["c", "reason"] == "known without evidence"


def test_step_2_drops_the_easiest_of_each_domain_by_hops_needs_and_success() -> None:
    asked = benchmark(
        question("two hops", hops=2),
        question("both", hops=1, needs="both"),
        question("solved", hops=1),
        question("unsolved", hops=1),
        question("page", domain="pages", hops=3, needs="both"),
    )
    right = {"one": {"solved": 1.0, "both": 1.0, "two hops": 1.0, "unsolved": 0.0, "page": 0.0}}
    nobody = judged({"one": dict.fromkeys(asked.queries, 0.0)})
    order = ["solved", "unsolved", "both", "two hops"]
    for share, many in ((0.25, 1), (0.5, 2), (0.75, 3)):
        rules = FilterRules(confidence=None, drop_share=share)
        table = filter_decisions(asked, nobody, rules, baseline=judged(right))
        easy = table[table["dropped"]]
        charts = easy[easy["domain"] == "charts"]
        assert set(charts["query_id"]) == set(order[:many])
        assert set(easy["step"]) == {2}
    # one page: 0.75 of it is one
    assert "page" in set(easy["query_id"])


def test_the_order_among_equals_is_a_seeds_and_no_row_moves_another() -> None:
    names = [f"q{n}" for n in range(40)]
    nobody = judged({"one": dict.fromkeys(names, 0.0)})
    rules = FilterRules(confidence=None, drop_share=0.5)
    easy = filter_decisions(benchmark(*map(question, names)), nobody, rules)
    back = filter_decisions(benchmark(*map(question, reversed(names))), nobody, rules)
    dropped = set(easy[easy["dropped"]]["query_id"])
    assert len(dropped) == 20
    assert dropped == set(back[back["dropped"]]["query_id"])
    other = FilterRules(confidence=None, drop_share=0.5, seed=1)
    again = filter_decisions(benchmark(*map(question, names)), nobody, other)
    assert dropped != set(again[again["dropped"]]["query_id"])


def test_the_dropped_questions_are_written_with_the_reason_and_its_values(tmp_path: Path) -> None:
    asked = benchmark(*map(question, "abc"), question("d", domain="pages"))
    table = filter_decisions(asked, judged({"one": {"a": 1.0, "b": 0.0}}), ANY)
    write_dropped(table, tmp_path / "dropped.csv")
    written = pd.read_csv(tmp_path / "dropped.csv")
    assert written[["query_id", "step", "reason", "votes", "success"]].to_numpy().tolist() == [
        ["a", 1, "known without evidence", 1, 1.0]
    ]
    assert list(kept(asked, table).queries) == ["b", "c", "d"]
    rates = keep_rates(table).set_index("domain")
    assert rates.loc["charts", ["n", "kept"]].tolist() == [3, 2]
    assert rates.loc["pages", "kept_share"] == 100
    nothing = filter_decisions(asked, judged({"one": dict.fromkeys("abcd", 1.0)}), ANY)
    with pytest.raises(VragError, match="drops all 4 questions"):
        kept(asked, nothing)


def test_confidence_is_read_in_its_form_or_not_at_all() -> None:
    told = [
        "Answer: red\nConfidence: 0.95",
        "Answer: red and\nblue\nConfidence: 1",
        "Answer: red\nConfidence: 95%",
        "Answer: red\nConfidence: 1.5",
        "It is red.",
        None,
    ]
    table = with_confidence(pd.DataFrame({"answer": told}, dtype=object))
    assert table["answer"].tolist()[:2] == ["red", "red and\nblue"]
    assert table["confidence"].tolist()[:2] == [0.95, 1.0]
    assert table["confidence"][2:].isna().all()
    assert table["answer"].tolist()[4:] == ["It is red.", None]
    template = closed_book_wording().template("closed book")
    assert "Confidence: how sure" in text_of(render(template, question("a")))


def test_a_filter_that_asks_for_confidence_needs_it() -> None:
    with pytest.raises(VragError, match="no column 'confidence'"):
        filter_decisions(benchmark(question("a")), judged({"one": {"a": 1.0}}))
    for wrong in ({"votes": 0}, {"confidence": 1.0}, {"drop_share": 1.0}):
        with pytest.raises(VragError, match=next(iter(wrong))):
            FilterRules(**wrong)


def test_a_model_that_takes_part_in_the_filter_loses_by_selection_alone() -> None:
    """Two models guess: each is right on a random half, and has no reason to be worse on
    any part of the questions.
    """
    names = [f"q{n}" for n in range(400)]
    rng = np.random.default_rng(0)
    scores = {}
    for model in ("inside", "outside"):
        scores[model] = dict(zip(names, rng.integers(0, 2, 400).astype(float), strict=True))
    asked = benchmark(*map(question, names))
    table = judged(scores)

    def decide(without: frozenset[str]) -> pd.DataFrame:
        voters = table[(table["model"] == "inside") & ~table["model"].isin(without)]
        return filter_decisions(asked, voters, ANY)

    found = filter_controls(table, decide).set_index(["model", "control"])
    inside, outside = found.loc["inside"], found.loc["outside"]
    # all that it knows is dropped: from its mean to 0
    mean = sum(scores["inside"].values()) / 400
    assert inside.loc["the filter", "value"] == pytest.approx(-mean)
    assert inside.loc["the filter without the evaluated model", "value"] == 0
    own = outside.loc["the filter"]
    assert own["value"] == outside.loc["the filter without the evaluated model", "value"]
    left = [scores["outside"][name] for name in names if not scores["inside"][name]]
    overall = sum(scores["outside"].values()) / 400
    assert own["value"] == pytest.approx(sum(left) / len(left) - overall)
    assert own["ci_low"] < 0 < own["ci_high"]
    chance = found.xs("a random drop of as many", level="control")
    assert (chance["n"] == len(left)).all()
    assert (chance["ci_low"] < 0).all()
    assert (chance["value"].abs() < 0.01).all()
    assert inside.loc["the filter", "value"] < chance.loc["inside", "ci_low"]


def test_controls_count_what_has_no_score_and_refuse_several_arms() -> None:
    asked = benchmark(*map(question, "abcd"))
    table = judged({"one": {"a": 1.0, "b": np.nan, "c": 0.0, "d": 1.0}})

    def decide(without: frozenset[str]) -> pd.DataFrame:
        return filter_decisions(asked, table[~table["model"].isin(without)], ANY)

    found = filter_controls(table, decide, draws=5).set_index("control")
    # of a, c, d with scores c is left
    assert found.loc["the filter", ["n", "n_full", "n_failed"]].tolist() == [1, 3, 1]
    assert found.loc["the filter", "value"] == pytest.approx(0 - 2 / 3)
    with pytest.raises(VragError, match="several arms"):
        filter_controls(pd.concat([table, table.assign(setting="both")]), decide)
