"""Any metric on any benchmark: every cell against a hand calculation, or its reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import factories
import pandas as pd
import pytest
from claim_sheets import sheet

from vrag_kit.claims import ClaimVerdicts
from vrag_kit.errors import VragError
from vrag_kit.papers.crag_mm.conversations import early_stopping_rule
from vrag_kit.papers.cross_benchmark import (
    ACROSS,
    JudgedBenchmark,
    cross_benchmark_scores,
    cross_benchmark_table,
    stratum_rows,
)
from vrag_kit.synthetic.mrag_suite import (
    ask_as_text,
    check_by_truth,
    open_ground_truth,
    open_suite,
)
from vrag_kit.types import Benchmark, Query
from vrag_kit.workspace import Workspace

RIGHT, WRONG, ABSTAINS = ("red", 1.0, 0.0), ("blue", 0.0, 0.0), ("I don't know", 0.0, 1.0)
pytestmark = pytest.mark.slow


def questions(n: int, *, labelled: bool = True, choices: tuple[str, ...] = ()) -> Benchmark:
    """Questions whose answer is "red", and of which document d tells it."""
    asked = {"text": "What color?", "answers": ("red",), "choices": choices}
    queries = [Query(query_id=f"q{i}", group=f"q{i}", **asked) for i in range(n)]
    labels = {query.query_id: {"d": 1} if labelled else {} for query in queries}
    return factories.benchmark(queries, qrels=labels)


def judged(
    said: Sequence[tuple[str, float, float]], setting: str = "top_k", k: int = 3
) -> pd.DataFrame:
    """One answer a question: (words, score, abstained); every second one has document d."""
    columns = pd.DataFrame(said, columns=["answer", "score", "abstained"])
    shown = [("e",) if number % 2 else ("d", "e") for number in range(len(said))]
    status = columns["score"].isna().map({True: "timeout", False: "ok"})
    about = {"setting": setting, "k": k, "score_min": 0.0, "score_max": 1.0}
    return factories.judged(**columns.to_dict("list"), doc_ids=shown, status=status, **about)


def cells(answered: JudgedBenchmark) -> pd.DataFrame:
    return cross_benchmark_scores([answered]).set_index("metric")


DECODING = {"temperature": 0, "max_new_tokens": 16}
SAID = [
    *(RIGHT, RIGHT, ("red, not spotted", 0.5, 0.0), WRONG, ABSTAINS, ABSTAINS),
    *(("", math.nan, math.nan), RIGHT),
]
ROW = JudgedBenchmark(name="toy", benchmark=questions(8), judged=judged(SAID), k=3)


def test_graded_answers_have_accuracy_abstention_and_truthfulness_by_hand():
    found = cells(ROW)
    # seven verdicts: 1, 1, ½, 0, 0 (abstains), 0 (abstains), 1; correct 3.5, incorrect ½ + 1
    values = found.loc[["accuracy", "abstention", "truthfulness"], "value"].tolist()
    assert values == pytest.approx([350 / 7, 200 / 7, 100 * (3.5 - 1.5) / 7])
    assert found.loc["accuracy", ["n", "n_failed"]].tolist() == [7, 1]
    assert found.loc["evidence_hit_rate", "value"] == pytest.approx(50)
    wide = cross_benchmark_table(found.reset_index()).loc[("toy", "m")]
    assert wide["accuracy"].startswith("50.0 [")
    assert wide["accuracy"].endswith("(n = 7); 1 failed")
    assert wide["faithfulness"] == "no claims were taken out of its answers"


@pytest.mark.parametrize("changed", [{}, {"labelled": False}, {"choices": ("red", "blue")}])
def test_every_cell_has_a_value_with_n_and_interval_or_a_reason(changed):
    table = cross_benchmark_scores([replace(ROW, benchmark=questions(8, **changed))])
    assert list(table["metric"]) == list(ACROSS)
    known = table["reason"] == ""
    assert (table["n"] > 0).eq(known).all()
    assert table[["value", "ci_low", "ci_high"]].notna().eq(known, axis=0).all(axis=None)


def test_gcue_needs_all_four_arms_and_a_clue_that_helps():
    arms = {
        "zero_shot": [WRONG] * 8,
        "gt_clue": [RIGHT] * 8,
        "non_clue": [WRONG] * 6 + [RIGHT] * 2,
        "one_in_k": [RIGHT] * 4 + [WRONG] * 4,
    }
    asked = [judged(said, setting) for setting, said in arms.items()]
    found = cells(replace(ROW, judged=pd.concat([ROW.judged, *asked]))).loc["gcue"]
    # B is A_zero-shot = 0, whatever a document that is no gold adds: ½ / 1, not percent
    assert found[["value", "unit", "n"]].tolist() == [pytest.approx(1 / 2), "ratio", 8]
    asked[1] = judged([WRONG] * 8, "gt_clue")
    useless = cells(replace(ROW, judged=pd.concat([ROW.judged, *asked]))).loc["gcue"]
    assert useless[["n", "reason"]].tolist() == [0, "clue may not help"]
    deeper = replace(ROW, judged=pd.concat([judged(SAID, k=5), *asked]), k=5)
    assert cells(deeper).loc["gcue", "reason"] == "settings not run: gold among others"


def test_conversations_end_before_truthfulness_and_not_before_accuracy():
    turns = [RIGHT, WRONG, WRONG, RIGHT]  # stopped at the third, so the last is missing
    one = {"text": "?", "answers": ("red",), "group": "c", "conversation_id": "c"}
    talk = factories.benchmark(Query(query_id=f"q{turn}", turn=turn, **one) for turn in range(4))
    scores = judged(turns).assign(group="c", score=[1.0, -1.0, -1.0, 1.0], score_min=-1.0)
    row = JudgedBenchmark(name="talk", benchmark=talk, judged=scores, stop=early_stopping_rule)
    found = cells(row)[["value", "n", "unit_of_n"]].T
    assert found["accuracy"].tolist() == [50, 4, "turns"]
    assert found["truthfulness"].tolist() == [100 * (1 - 1 - 1 + 0) / 4, 1, "conversations"]
    assert found["normalised_em"].tolist()[1:] == [4, "turns"]
    assert cells(replace(row, stop=lambda scores: None)).loc["truthfulness", "value"] == 0


def with_sheets(*sheets: ClaimVerdicts) -> pd.DataFrame:
    """The metrics of answers with these sheets."""
    checked = [replace(each, query_id=f"q{n}") for n, each in enumerate(sheets)]
    table = judged([RIGHT] * len(sheets)).assign(sheet=checked)
    row = replace(ROW, benchmark=questions(len(sheets)), judged=table, checked=table)
    return cells(row)


def test_claims_are_means_over_answers_and_lack_what_their_sheets_lack():
    supported = sheet("it", ["EN"], ["EN", "NN"], "1", "10")
    unsupported = sheet("it", ["NN"], ["EE"], "0", "0")
    expected = {"claim_recall": 75, "answer_claim_recall": 25}
    expected |= {"faithfulness": 50, "evidence_utilization": 25}
    found = with_sheets(supported, unsupported)["value"]
    assert found[list(expected)].to_dict() == pytest.approx(expected)
    silent = with_sheets(sheet("it", [], ["EN"], "", "0"))
    assert silent.loc["faithfulness", "reason"] == "no claims in answers"
    assert silent.loc["claim_recall", "n"] == 1
    unknown = with_sheets(sheet("it", ["EN"], [], "1", ""))
    assert unknown.loc["claim_recall", "reason"] == "no gold claims"


def test_a_row_is_one_model_in_an_arm_that_was_asked():
    with pytest.raises(VragError, match="toy: found answers of the models none in the setting 'x'"):
        cross_benchmark_scores([replace(ROW, setting="x")])
    two = pd.concat([ROW.judged, ROW.judged.assign(model="other")])
    with pytest.raises(VragError, match=r"models m, other in .* at k = 3; expected one"):
        cross_benchmark_scores([replace(ROW, judged=two)])


def test_what_is_in_training_data_stands_apart_before_all_questions_are_pooled():
    """Of 8 questions the groups of the first 3 are, of which 2 are answered correctly."""
    row = replace(ROW, judged=judged([RIGHT, RIGHT, *[WRONG] * 6]))
    groups = row.judged["group"].tolist()
    found = cross_benchmark_scores(stratum_rows(row, {"m": frozenset(groups[:3])}))
    accuracy = found.query("metric == 'accuracy'").set_index("benchmark")
    assert accuracy["value"].to_dict() == {
        "toy, in training data": pytest.approx(200 / 3),
        "toy, not in training data": 0,
        "toy": 25,
    }
    assert accuracy["n"].tolist() == [3, 5, 8]
    assert stratum_rows(row, {}) == stratum_rows(row, {"m": frozenset(groups)}) == [row]


def test_questions_of_several_parts_are_asked_part_by_part_over_what_was_seen(tmp_path):
    datasets = open_suite("field-guide-mrag-suite-small", ["WebQA"])
    model, at = "field-guide-vlm-few", Workspace(answers_dir=tmp_path)
    rows = ask_as_text(datasets, [model], at, k=2, questions=1, decoding=DECODING)
    assert list(rows) == ["WebQA", "WebQA, captions and snippets"]
    with_images = [any(each.image for each in few.corpus.values()) for few, _ in rows.values()]
    assert with_images == [True, False]
    asked, answers = rows["WebQA"]
    row = JudgedBenchmark(name="WebQA", benchmark=asked, judged=answers, k=2)
    world = open_ground_truth("field-guide-mrag-suite-small")
    assert world
    checked = check_by_truth(row, world, model, at, DECODING)
    found = cells(checked)["unit_of_n"]
    assert found[["claim_recall", "accuracy"]].tolist() == ["long answers", "questions"]
    shown = dict(zip(row.arm["query_id"], row.arm["doc_ids"], strict=True))
    for each in checked.checked.to_dict("records"):
        assert each["doc_ids"] == shown[each["query_id"]]
        assert len(each["parts"]) == len(world.sub_questions(asked.queries[each["query_id"]]))
