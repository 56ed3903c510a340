"""Sheets for a table of answers, by rules on a world of two colours, and the means over them."""

from __future__ import annotations

import dataclasses
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


def query(query_id: str, group: str, **more: object) -> Query:
    return Query(
        query_id=query_id, text="Of what color is it?", answers=("red",), group=group, **more
    )


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
    queries = [
        query("a", "one", metadata={"gold_claims": ("It is red.", "It is green.")}),
        query("b", "two", metadata={"reference": "red and green", "gold_claims": ()}),
        query("c", "two"),
    ]
    return factories.benchmark(queries, documents, name="colors")


def answers(*rows: tuple[str, str, tuple[str, ...]], status: str = "ok") -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["query_id", "answer", "doc_ids"])
    groups = table["query_id"].map({"a": "one", "b": "two", "c": "two"})
    return factories.answers(**table, group=groups, setting="top_k", k=2, status=status)


def checked(world: Benchmark, table: pd.DataFrame, painter: Painter) -> pd.DataFrame:
    extractor, checker = RuleExtractor(Colors()), RuleChecker(Colors(), painter)
    return check_answers(world, table, extractor, checker)


def test_an_answer_becomes_a_sheet_of_verdicts(world: Benchmark) -> None:
    shown = ("p_red", "p_blue", "t_blue", "t_none")
    found = checked(world, answers(("a", "red and blue", shown)), Painter())
    assert (
        plain(found["sheet"][0])
        == plain(
            ClaimVerdicts(
                query_id="a",
                claims=("It is red.", "It is blue."),
                gold_claims=("It is red.", "It is green."),  # the data's own
                items=(
                    EvidenceItem("p_red", "image"),
                    EvidenceItem("p_blue", "image"),
                    *map(EvidenceItem, shown[2:]),
                ),
                verdicts=block("ECEC", ["ECCN", "CEEN", "ECCN", "CCCN"]),
            )
        )
    )
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


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (("a", "red", ("p_gone",)), "'a'.*'p_gone'"),
        (("a", "red", ("nothing",)), "'a'.*'nothing'"),
        (("z", "red", ()), "'z'"),
    ],
)
def test_missing_evidence_is_named(
    world: Benchmark, rows: tuple[str, str, tuple[str, ...]], words: str
) -> None:
    with pytest.raises(VragError, match=words):
        checked(world, answers(rows), Painter())


def test_the_model_that_answered_does_not_look_at_the_pictures_again(world: Benchmark) -> None:
    table = answers(("c", "red", ("p_red",))).assign(model="painter")
    with pytest.raises(VragError, match="'painter' answered too"):
        check_answers(world, table, RuleExtractor(Colors()), Painter())
    texts = table.assign(doc_ids=[("t_blue",)])
    check_answers(world, texts, RuleExtractor(Colors()), Painter())


def test_means_are_over_queries_and_everything_left_out_is_counted(world: Benchmark) -> None:
    rows = [
        ("a", "red", ("t_blue",)),
        ("a", "blue", ("t_blue",)),
        ("b", "red", ("t_blue",)),
        ("c", "nothing", ("t_blue",)),
    ]
    table = answers(*rows).assign(draw=[0, 1, 0, 0])
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
    assert zero.loc[("ragchecker", "faithfulness"), "value"].item() == pytest.approx(1 / 6)
    assert zero.loc[("ragchecker", "faithfulness"), "n"].item() == 3


def test_an_unparsed_accepted_answer_leaves_a_claim_unknown(world: Benchmark) -> None:
    class Strict(Colors):
        def relation(self, claim: str, text: str) -> EntailmentLabel | None:
            return None if "odd" in text else super().relation(claim, text)

    one = dataclasses.replace(world.queries["c"], answers=("red", "odd"))
    other = dataclasses.replace(world, queries={"c": one})
    rules = RuleExtractor(Colors()), RuleChecker(Strict())
    (found,) = check_answers(other, answers(("c", "red", ("t_blue",))), *rules)["sheet"]
    assert letters(found.accepted) == "?"  # although "red" entails it


def test_a_table_without_sheets_is_refused() -> None:
    with pytest.raises(VragError, match="has no column 'sheet'"):
        claim_means(answers(("a", "red", ())))
