"""Any metric on any benchmark: every cell against a hand calculation, or its reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from claim_sheets import sheet

from vrag_kit.claims import ClaimVerdicts
from vrag_kit.errors import VragError
from vrag_kit.papers.crag_mm.conversations import early_stopping_rule
from vrag_kit.papers.cross_benchmark import (
    ACROSS,
    JudgedBenchmark,
    availability_table,
    cross_benchmark_scores,
    cross_benchmark_table,
    stratum_rows,
)
from vrag_kit.synthetic.mrag_suite import (
    OracleClaims,
    TextOnlyEvaluation,
    open_ground_truth,
    open_suite,
)
from vrag_kit.types import Benchmark, Query

RIGHT, WRONG, DECLINES = ("red", 1.0, 0.0), ("blue", 0.0, 0.0), ("I don't know", 0.0, 1.0)
HALF = ("red, not spotted", 0.5, 0.0)
Said = tuple[str, float, float]
RUN = {
    "decoding": {"temperature": 0, "max_new_tokens": 16},
    "hardware": {"batch_size": 32},
}
NOT_ASKED = "settings not run: no evidence, gold alone, one that is no gold, gold among others"


def questions(n: int, *, labelled: bool = True, choices: tuple[str, ...] = ()) -> Benchmark:
    """Questions whose answer is "red", and of which document d tells it."""
    queries = {}
    for number in range(n):
        name = f"q{number}"
        queries[name] = Query(
            query_id=name, text="What color?", answers=("red",), choices=choices, group=name
        )
    qrels = {name: {"d": 1} if labelled else {} for name in queries}
    return Benchmark(name="toy", fingerprint="", queries=queries, corpus={}, qrels=qrels)


def judged(said: Sequence[Said], setting: str = "top_k", k: int = 3) -> pd.DataFrame:
    """One answer a question: (words, score, abstained)."""
    table = pd.DataFrame(list(said), columns=["answer", "score", "abstained"])
    names = [f"q{number}" for number in range(len(table))]
    failed = table["score"].isna()
    return table.assign(
        query_id=names,
        group=names,
        model="m",
        setting=setting,
        k=k,
        draw=0,
        sample=0,
        doc_ids=[("d", "e") if number % 2 == 0 else ("e",) for number in range(len(table))],
        status=failed.map({True: "timeout", False: "ok"}),
        detail="",
        score_min=0.0,
        score_max=1.0,
    )


def cells(answered: JudgedBenchmark) -> pd.DataFrame:
    return cross_benchmark_scores([answered]).set_index("metric")


SAID = [RIGHT, RIGHT, HALF, WRONG, DECLINES, DECLINES, ("", math.nan, math.nan), RIGHT]
ROW = JudgedBenchmark(name="toy", benchmark=questions(8), judged=judged(SAID), k=3)


@pytest.mark.slow
def test_graded_answers_have_accuracy_abstention_and_truthfulness_by_hand() -> None:
    found = cells(ROW)
    # seven verdicts: 1, 1, ½, 0, 0 (declines), 0 (declines), 1
    assert found.loc["accuracy", "value"] == pytest.approx(100 * 3.5 / 7)
    assert found.loc["abstention", "value"] == pytest.approx(100 * 2 / 7)
    # right 3.5, wrong ½ + 1, declined nothing
    assert found.loc["truthfulness", "value"] == pytest.approx(100 * (3.5 - 1.5) / 7)
    assert list(found.loc[["accuracy", "abstention"], "n"]) == [7, 7]
    assert list(found.loc[["accuracy", "abstention"], "n_failed"]) == [1, 1]
    assert found.loc["evidence_hit_rate", "value"] == pytest.approx(50)
    assert (found["ci_low"] <= found["value"])[found["reason"] == ""].all()


@pytest.mark.slow
def test_every_cell_has_a_value_with_n_and_interval_or_a_reason() -> None:
    for row in (
        ROW,
        replace(ROW, benchmark=questions(8, labelled=False)),
        replace(ROW, benchmark=questions(8, choices=("red", "blue"))),
    ):
        table = cross_benchmark_scores([row])
        assert list(table["metric"]) == list(ACROSS)
        told = table["reason"] == ""
        assert (table["n"] > 0).eq(told).all()
        assert table[["value", "ci_low", "ci_high"]].notna().eq(told, axis=0).all(axis=None)


@pytest.mark.slow
def test_gcue_is_told_where_all_four_arms_were_asked() -> None:
    arms = {
        "zero_shot": [WRONG] * 8,
        "gt_clue": [RIGHT] * 8,
        "non_clue": [WRONG] * 6 + [RIGHT] * 2,
        "one_in_k": [RIGHT] * 4 + [WRONG] * 4,
    }
    asked = [judged(said, setting) for setting, said in arms.items()]
    found = cells(replace(ROW, judged=pd.concat([ROW.judged, *asked]))).loc["gcue"]
    # B is A_zero-shot = 0, whatever a document that is no gold adds: ½ / 1, not percent
    assert (found["value"], found["unit"], found["n"]) == (pytest.approx(1 / 2), "ratio", 8)
    arms |= {"gt_clue": [WRONG] * 8, "zero_shot": [WRONG] * 6 + [RIGHT] * 2}
    asked = [judged(said, setting) for setting, said in arms.items()]
    useless = cells(replace(ROW, judged=pd.concat([ROW.judged, *asked]))).loc["gcue"]
    # A_GT − B is −1 for two of 8 questions and else 0: its interval holds 0
    assert (useless["n"], useless["reason"]) == (0, "clue may not help")
    deeper = replace(ROW, judged=pd.concat([judged(SAID, k=5), *asked]), k=5)
    assert cells(deeper).loc["gcue", "reason"] == "settings not run: gold among 5"


@pytest.mark.slow
def test_conversations_end_before_truthfulness_and_not_before_accuracy() -> None:
    turns = [RIGHT, WRONG, WRONG, RIGHT]  # stopped at the third, so the last is missing
    queries = {}
    for turn in range(4):
        name = f"q{turn}"
        queries[name] = Query(
            query_id=name, text="?", answers=("red",), group="c", conversation_id="c", turn=turn
        )
    talk = replace(questions(0), queries=queries, qrels={name: {} for name in queries})
    scores = judged(turns).assign(group="c", score=[1.0, -1.0, -1.0, 1.0], score_min=-1.0)
    row = JudgedBenchmark(name="talk", benchmark=talk, judged=scores, stop=early_stopping_rule)
    found = cells(row)
    assert found.loc["accuracy", "value"] == pytest.approx(50)
    assert (found.loc["accuracy", "n"], found.loc["accuracy", "unit_of_n"]) == (4, "turns")
    assert found.loc["truthfulness", "value"] == pytest.approx(100 * (1 - 1 - 1 + 0) / 4)
    assert found.loc["truthfulness", "n"] == 1
    assert found.loc["truthfulness", "unit_of_n"] == "conversations"
    assert found.loc["normalised_em", ["n", "unit_of_n"]].tolist() == [4, "turns"]
    unended = cells(replace(row, stop=None))
    assert unended.loc["truthfulness", "value"] == pytest.approx(0)


def with_sheets(sheets: Sequence[ClaimVerdicts | None]) -> pd.DataFrame:
    told = [each and replace(each, query_id=f"q{n}") for n, each in enumerate(sheets)]
    return judged([RIGHT] * len(sheets)).assign(sheet=told)


@pytest.mark.slow
def test_claims_are_means_over_answers_and_lack_what_their_sheets_lack() -> None:
    supported = sheet("it", ["EN"], ["EN", "NN"], "1", "10")
    unsupported = sheet("it", ["NN"], ["EE"], "0", "0")
    row = replace(ROW, benchmark=questions(2), judged=judged([RIGHT] * 2))
    found = cells(replace(row, checked=with_sheets([supported, unsupported])))
    expected = {
        "claim_recall": (1 / 2 + 1) / 2,
        "answer_claim_recall": (1 / 2 + 0) / 2,
        "faithfulness": 1 / 2,
        "evidence_utilization": (1 / 2 + 0) / 2,
    }
    for metric, value in expected.items():
        assert found.loc[metric, "value"] == pytest.approx(100 * value)
    silent = cells(replace(row, checked=with_sheets([sheet("it", [], ["EN"], "", "0")] * 2)))
    assert silent.loc["faithfulness", "reason"] == "no claims in answers"
    assert silent.loc["evidence_utilization", "reason"] == "no claims in answers"
    assert silent.loc["claim_recall", "n"] == 2
    unknown = cells(replace(row, checked=with_sheets([sheet("it", ["EN"], [], "1", "")] * 2)))
    assert unknown.loc["claim_recall", "reason"] == "no gold claims"
    bare = cells(replace(row, checked=with_sheets([sheet("", [""], [""], "1", "1")] * 2)))
    assert bare.loc["faithfulness", "reason"] == "nothing was shown"
    lost = cells(replace(row, checked=with_sheets([None, None])))
    assert lost.loc["faithfulness", "reason"] == "no answer has a sheet of claims"


def test_a_row_is_one_model_in_an_arm_that_was_asked() -> None:
    with pytest.raises(VragError, match="toy: found answers of the models none in the setting 'x'"):
        cross_benchmark_scores([replace(ROW, setting="x")])
    two = pd.concat([ROW.judged, ROW.judged.assign(model="other")])
    with pytest.raises(VragError, match=r"models m, other in .* at k = 3; expected one"):
        cross_benchmark_scores([replace(ROW, judged=two)])


@pytest.mark.slow
def test_the_tables_tell_numbers_and_reasons() -> None:
    table = cross_benchmark_scores([ROW])
    wide = cross_benchmark_table(table)
    assert wide.loc[("toy", "m"), "accuracy"].startswith("50.0 [")
    assert wide.loc[("toy", "m"), "accuracy"].endswith("(n = 7); 1 failed")
    assert wide.loc[("toy", "m"), "faithfulness"] == "no claims were taken out of its answers"
    short, reasons = availability_table(table)
    row = short.loc[("toy", "m")]
    assert row["n"] == "7 questions"
    assert row["accuracy"].startswith("50 [")
    assert row["gCUE, λ = 1"] == "– a"
    assert reasons["a"] == NOT_ASKED


def test_what_was_taught_stands_apart_before_all_questions_are_pooled() -> None:
    """Of 8 questions the groups of the first 3 were taught, of which 2 are answered rightly."""
    told = [RIGHT, RIGHT, WRONG]
    row = replace(ROW, judged=judged([*told, *[WRONG] * 5]))
    groups = row.judged["group"].tolist()
    rows = stratum_rows(row, {"m": frozenset(groups[:3])})
    names = ["toy, in training data", "toy, not in training data", "toy"]
    assert [each.name for each in rows] == names
    found = cross_benchmark_scores(rows).query("metric == 'accuracy'").set_index("benchmark")
    assert found["value"].to_dict() == pytest.approx(
        dict(zip(names, (200 / 3, 0, 25), strict=True))
    )
    assert found["n"].tolist() == [3, 5, 8]
    assert stratum_rows(row, {}) == stratum_rows(row, {"m": frozenset(groups)}) == [row]


@pytest.mark.slow
def test_questions_of_several_parts_are_asked_part_by_part_over_what_was_seen(
    tmp_path: Path,
) -> None:
    datasets = open_suite("field-guide-mrag-suite-small", ["WebQA"])
    words = TextOnlyEvaluation(k=2, questions=2)
    rows = words.ask(datasets, ["field-guide-vlm-few"], tmp_path, **RUN)
    assert [any(each.image for each in few.corpus.values()) for few, _ in rows.values()] == [
        True,
        False,
    ]
    assert list(rows) == ["WebQA", "WebQA, captions and snippets"]
    asked, judged = rows["WebQA"]
    row = JudgedBenchmark(name="WebQA", benchmark=asked, judged=judged, k=2)
    asker = claims_of(tmp_path)
    checked = asker.extract(row)
    found = cells(checked)
    assert found.loc["claim_recall", "unit_of_n"] == "long answers"
    assert found.loc["accuracy", "unit_of_n"] == "questions"
    shown = dict(zip(row.arm["query_id"], row.arm["doc_ids"], strict=True))
    for each in checked.checked.to_dict("records"):
        assert each["doc_ids"] == shown[each["query_id"]]
        assert len(each["parts"]) == len(asker.world.sub_questions(asked.queries[each["query_id"]]))
    other = replace(asker, model="field-guide-vlm-many")
    with pytest.raises(VragError, match="WebQA: field-guide-vlm-few gave the short answers"):
        other.extract(row)


def claims_of(folder: Path) -> OracleClaims:
    world = open_ground_truth("field-guide-mrag-suite-small")
    return OracleClaims(world=world, model="field-guide-vlm-few", answers_dir=folder, **RUN)
