"""Sheets for a table of answers, by rules on a world of two colours, and the means over them."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path

import factories
import pandas as pd
import pytest
from claim_sheets import Colors, Painter, block, letters, plain, row

from vrag_kit.analysis.estimates import estimate
from vrag_kit.benchmarks import ImageFile
from vrag_kit.claims import (
    ClaimVerdicts,
    EntailmentLabel,
    RuleChecker,
    RuleExtractor,
    check_answers,
    claim_means,
)
from vrag_kit.claims.verdicts import EvidenceItem
from vrag_kit.errors import VragError
from vrag_kit.types import Benchmark, Document, Query

GROUPS = {"a": "one", "b": "two", "c": "two"}


@pytest.fixture
def world(tmp_path: Path) -> Benchmark:
    picture = ImageFile(tmp_path / "never_opened.png")
    documents = [
        Document(doc_id="p_red", image=picture, text="a blue caption"),
        Document(doc_id="p_blue", image=picture),
        Document(doc_id="t_blue", text="It is blue"),
        Document(doc_id="t_none", text="It flies."),
        Document(doc_id="nothing"),
    ]
    query = partial(Query, text="Of what color is it?", answers=("red",))
    told = {"a": {"gold_claims": ("It is red.", "It is green.")}, "b": {"reference": "red, green"}}
    queries = [query(query_id=q, group=GROUPS[q], metadata=told.get(q, {})) for q in GROUPS]
    return factories.benchmark(queries, documents, name="colors")


def answers(*rows: tuple[str, str, tuple[str, ...]], status: str = "ok") -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["query_id", "answer", "doc_ids"])
    groups = table["query_id"].map(GROUPS)
    return factories.answers(**table, group=groups, setting="top_k", k=2, status=status)


def checked(world: Benchmark, table: pd.DataFrame, painter: Painter) -> pd.DataFrame:
    extractor, checker = RuleExtractor(Colors()), RuleChecker(Colors(), painter)
    return check_answers(world, table, extractor, checker)


def test_an_answer_becomes_a_sheet_of_verdicts(world: Benchmark) -> None:
    shown = ("p_red", "p_blue", "t_blue", "t_none")
    found = checked(world, answers(("a", "red and blue", shown)), Painter())
    kinds = ("image", "image", "text", "text")
    expected = ClaimVerdicts(
        query_id="a",
        claims=("It is red.", "It is blue."),
        gold_claims=("It is red.", "It is green."),  # the data's own
        items=tuple(map(EvidenceItem, shown, kinds)),
        verdicts=block("ECEC", ["ECCN", "CEEN", "ECCN", "CCCN"]),
    )
    assert plain(found["sheet"][0]) == plain(expected)
    assert list(found[["n_claims", "n_unparsed", "no_sheet"]].iloc[0]) == [2, 0, ""]


def test_an_empty_answer_has_no_claims(
    world: Benchmark, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = ("t_blue",)
    silent = [answers(("a", "", shown), status=status) for status in ("empty", "truncated")]
    table = pd.concat([*silent, answers(("a", "", shown), status="timeout")], ignore_index=True)
    found = checked(world, table.assign(detail="too slow"), Painter())
    for sheet in found["sheet"][:2]:
        assert (sheet.claims, letters(sheet.recalled)) == ((), "NN")
        assert sheet.on_gold.tolist() == [row("C"), row("C")]
    assert found["sheet"][2] is None
    assert found["no_sheet"][2] == "timeout: too slow"
    out = capsys.readouterr().out
    assert "2 sheets of 3 answers, 8 verdicts, 0 of them missing" in out
    assert '1 answers have no sheet, such as "timeout: too slow"' in out


def test_what_cannot_be_checked_is_named(world: Benchmark) -> None:
    for answer, words in (
        (("a", "red", ("p_gone",)), "'a'.*'p_gone'"),
        (("a", "red", ("nothing",)), "'a'.*'nothing'"),
        (("z", "red", ()), "'z'"),
    ):
        with pytest.raises(VragError, match=words):
            checked(world, answers(answer), Painter())
    with pytest.raises(VragError, match="has no column 'sheet'"):
        claim_means(answers(("a", "red", ())))


def test_the_model_that_answered_does_not_look_at_the_pictures_again(world: Benchmark) -> None:
    table = answers(("c", "red", ("p_red",))).assign(model="painter")
    with pytest.raises(VragError, match="'painter' answered too"):
        check_answers(world, table, RuleExtractor(Colors()), Painter())
    texts = table.assign(doc_ids=[("t_blue",)])
    check_answers(world, texts, RuleExtractor(Colors()), Painter())


def test_means_are_over_queries_and_everything_left_out_is_counted(world: Benchmark) -> None:
    said = (("a", "red"), ("a", "blue"), ("b", "red"), ("c", "nothing"))
    table = answers(*((*each, ("t_blue",)) for each in said)).assign(draw=[0, 1, 0, 0])
    failed = answers(("c", "", ("t_blue",)), status="error").assign(draw=1)
    found = checked(world, pd.concat([table, failed], ignore_index=True), Painter())
    means = claim_means(found).set_index(["metric", "modality"])
    entailed = means.loc["entailed_share", "all"]
    assert entailed["value"] == pytest.approx((1 / 2 + 0) / 2)  # the draws of a first
    expected = estimate([0.5, 0.0], ["one", "two"])
    assert entailed["ci_low"] == pytest.approx(expected.ci_low)
    assert entailed["ci_high"] == pytest.approx(expected.ci_high)
    counts = ["n", "n_failed", "n_undefined", "n_unparsed", "n_claims"]
    assert list(entailed[counts]) == [2, 1, 1, 0, 3 / 4]
    used = means.loc["evidence_utilization", "text"]
    assert list(used[counts]) == [3, 1, 0, 0, 3 / 4]
    zero = claim_means(found, empty="zero").set_index(["family", "metric"])
    faithfulness = zero.loc[("ragchecker", "faithfulness"), ["value", "n"]]
    assert faithfulness.to_numpy().ravel() == pytest.approx([1 / 6, 3])


def test_an_unparsed_accepted_answer_leaves_a_claim_unknown(world: Benchmark) -> None:
    class Strict(Colors):
        def relation(self, claim: str, text: str) -> EntailmentLabel | None:
            return None if "odd" in text else super().relation(claim, text)

    one = dataclasses.replace(world.queries["c"], answers=("red", "odd"))
    other = dataclasses.replace(world, queries={"c": one})
    rules = RuleExtractor(Colors()), RuleChecker(Strict())
    (found,) = check_answers(other, answers(("c", "red", ("t_blue",))), *rules)["sheet"]
    assert letters(found.accepted) == "?"  # although "red" entails it
