"""Ambiguous questions: the paper's prompts and strict parsers, detectors and their agreement, and
contrasts of ambiguous with clear and with rewritten questions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import factories
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from strange_server import StrangeServer, images_in, text_in
from suite_questions import SPECIES, guide

from vrag_kit.benchmarks import ImageFile
from vrag_kit.judging import UnparsedError
from vrag_kit.papers import mrag_suite as mrag
from vrag_kit.papers.mrag_suite.ambiguity import (
    CHECK,
    ambiguity_contrasts,
    ambiguous_minus_clear,
    detection_agreement,
    match_clear_questions,
    read_detection,
    read_query_rewrite,
)
from vrag_kit.synthetic.mrag_suite import (
    PUT_BACK,
    TRUTH,
    detect_ambiguity,
    load_prompts_by_dataset,
    open_ambiguous,
    open_judges,
    rewrite_questions,
)
from vrag_kit.synthetic.mrag_suite.ambiguity import RULE
from vrag_kit.synthetic.mrag_suite.prompts import FIELD_GUIDE
from vrag_kit.types import Benchmark, Document, Prompt, Query


def reply(status: str, explanation: str = "No year is given.") -> str:
    return json.dumps({"status": status, "explanation": explanation})


def small(texts: dict[str, str], *, folder: Path | None = None) -> Benchmark:
    """A question each; "drawn" has a picture of its own."""
    queries = []
    for name, text in texts.items():
        image = None
        if name == "drawn" and folder is not None:
            Image.new("RGB", (8, 8), "red").save(folder / "own.png")
            image = ImageFile(folder / "own.png")
        about = {"image": image, "answers": ("in {q_esc} 1990",), "group": name[0]}
        queries.append(Query(query_id=name, text=text, **about))
    gold = Document(doc_id="gold", text="Built in\n1990.")
    return factories.benchmark(queries, [gold], {name: {"gold": 1} for name in texts})


def test_an_assessor_is_asked_in_the_papers_words_once_and_once_more(tmp_path: Path) -> None:
    texts = {"a": "When was it built?", "drawn": "What shape is it?", "c": "Which is best?"}
    plans = {
        "When was": [f"say {reply('AMBIGUOUS')}"],
        "What shape": [f"say {reply('CLEAR')}"],
        "Which is": ["say It is AMBIGUOUS.", "say AMBIGUOUS"],
    }
    benchmark = small(texts, folder=tmp_path)
    with StrangeServer(plans) as server:
        entry = {"model": f"eyes@{server.url}", "timeout": 5.0, "retries": 0}
        table = (
            mrag.ambiguity.load_ambiguity_detector(entry, tmp_path)
            .detect(benchmark)
            .set_index("query_id")
        )
        mrag.ambiguity.load_ambiguity_detector(entry, tmp_path).detect(benchmark)
        requests = [each for each in server.requests if "word: ready" not in text_in(each)]
    assert table["status"].to_dict() == {"a": "AMBIGUOUS", "drawn": "CLEAR", "c": ""}
    assert "not one JSON object" in table.loc["c", "detail"]
    assert len(requests) == 4  # three, and one of them again
    first = next(text for text in map(text_in, requests) if "When was" in text)
    assert first.startswith("You are an expert question-quality assessor.\nYour goal is")
    # braces in an answer are no fields
    assert first.endswith('Answer: "in {q_esc} 1990"')
    (seen,) = [each for each in requests if images_in(each)]
    assert "from the question plus the attached image" in text_in(seen)
    assert seen["temperature"] == 0


def test_flagged_questions_are_said_anew_from_gold_evidence(tmp_path: Path) -> None:
    plans = {
        "rewriting ambiguous": ["say When was the tower built, by the plate of 1990?"],
    }
    benchmark = small({"a": "When was it built?", "b": "Which is best?"})
    detections = pd.DataFrame(
        {"query_id": ["a", "b"], "status": ["AMBIGUOUS", "CLEAR"], "explanation": ["No tower.", ""]}
    )
    with StrangeServer(plans) as server:
        entry = {"model": f"eyes@{server.url}", "timeout": 5.0, "retries": 0}
        assessor = mrag.ambiguity.load_ambiguity_detector(entry, tmp_path)
        questions = assessor.rewrite_queries(benchmark, detections)
        sent = "\n".join(map(text_in, server.requests))
    assert questions[["query_id", "original", "question"]].to_numpy().tolist() == [
        ["a", "When was it built?", "When was the tower built, by the plate of 1990?"]
    ]
    assert "EVIDENCE:\n- why it was flagged: No tower.\n- Built in 1990.\nREQUIREMENTS" in sent


@pytest.mark.parametrize(
    "raw",
    [
        reply("CLEAR", ""),
        f"<think>Hm {{</think>\n```json\n{reply('CLEAR', '')}\n```",
    ],
)
def test_one_json_object_is_read(raw: str) -> None:
    assert read_detection(raw) == ("CLEAR", "")


@pytest.mark.parametrize(
    "raw",
    [
        "CLEAR",
        f"Sure: {reply('CLEAR')}",
        reply("CLEAR", "word " * 31),
        '{"status": "CLEAR"}',
        '{"status": "CLEAR", "status": "AMBIGUOUS", "explanation": ""}',
        "",
    ],
)
def test_all_else_is_unreadable(raw: str) -> None:
    with pytest.raises(UnparsedError):
        read_detection(raw)


def test_a_question_said_anew_is_one_line() -> None:
    assert read_query_rewrite("\nWhen was it built?\n") == "When was it built?"
    for raw in (
        "",
        "- When?",
        "Rewritten Question: When?",
        "One?\nTwo?",
        "According to the image?",
    ):
        with pytest.raises(UnparsedError):
            read_query_rewrite(raw)


def detected(flagged: str, clear: str, unread: str = "", **columns: object) -> pd.DataFrame:
    """Detections of queries by one letter, each a group of its own."""
    status = dict.fromkeys(flagged, "AMBIGUOUS") | dict.fromkeys(clear, "CLEAR")
    status |= dict.fromkeys(unread, "")
    table = pd.DataFrame({"query_id": list(status), "status": list(status.values())})
    return table.assign(**{"group": table["query_id"], "dataset": "x", "detector": "d", **columns})


def test_agreement_is_over_all_data_sets_and_counts_what_was_not_parsed() -> None:
    one = [detected("12", "34", dataset="a"), detected("", "5", "6", dataset="b")]
    other = [detected("1", "234", dataset="a"), detected("", "56", dataset="b")]
    table = pd.concat([*one, *(each.assign(detector="other") for each in other)])
    (row,) = detection_agreement(table).to_dict("records")
    assert [row[name] for name in ("both", "only_one", "only_other", "neither")] == [1, 1, 0, 3]
    # 4 of 5 agree; by chance 2/5 · 1/5 + 3/5 · 4/5 = 14/25
    assert row["value"] == pytest.approx((4 / 5 - 14 / 25) / (1 - 14 / 25))
    assert (row["n"], row["n_failed"]) == (5, 1)
    assert detection_agreement(pd.concat(one)).empty


def matched(benchmark: Benchmark, trained: dict[str, frozenset[str]] | None = None) -> pd.DataFrame:
    """Pairs where questions of fewer than three words are ambiguous."""
    short = {name: len(query.text.split()) < 3 for name, query in benchmark.queries.items()}
    flagged, clear = ([n for n in short if short[n] is which] for which in (True, False))
    memorised = None if trained is None else {"x": trained}
    return match_clear_questions({"x": benchmark}, detected(flagged, clear), memorised)


def test_ambiguous_questions_meet_clear_ones_of_like_length() -> None:
    texts = {"a": "When?", "b": "How long?", "c": "one two three four", "d": "one two three"}
    both = matched(small({**texts, "e": "one two three four five six"}))
    assert set(both["ambiguous"]) == {"a", "b"}
    # c and d are nearest, and each is taken once
    assert set(both["clear"]) == {"c", "d"}
    values = pd.DataFrame({"query_id": list("abcde"), "value": [0.0, np.nan, 1.0, 1.0, 0.0]})
    values = values.assign(model="m", dataset="x", group=list("abcde"))
    (row,) = ambiguous_minus_clear(values, both, by=["model"]).to_dict("records")
    assert (row["value"], row["n"], row["n_failed"]) == (-1, 1, 1)
    assert ambiguous_minus_clear(values, both.head(0), by=["model"]).empty


def test_partners_are_alike_in_what_each_model_memorised() -> None:
    """b and d are memorised; c is as long as b's question, and no partner of it."""
    texts = {"a": "When?", "b": "How long?", "c": "one two three", "d": "one two three four five"}
    pairs = matched(small(texts), {"m": frozenset("bd")}).set_index("ambiguous")
    assert pairs["clear"].to_dict() == {"a": "c", "b": "d"}
    assert matched(small(texts), {"m": frozenset("abc")})["clear"].tolist() == ["c"]


def covered(groups: list[str], flagged: np.ndarray, values: np.ndarray) -> bool:
    """Whether the interval of ambiguous less clear questions holds 0."""
    names = [f"q{number}" for number in range(len(groups))]
    pairs = zip(names, groups, strict=True)
    queries = [Query(query_id=name, text="What?", answers=("a",), group=g) for name, g in pairs]
    benchmark = factories.benchmark(queries)
    status = np.where(flagged, "AMBIGUOUS", "CLEAR")
    told = {"query_id": names, "status": status, "dataset": "x"}
    pairs = match_clear_questions({"x": benchmark}, pd.DataFrame(told))
    table = pd.DataFrame({"query_id": names, "value": values, "group": groups})
    table = table.assign(model="m", dataset="x")
    (row,) = ambiguous_minus_clear(table, pairs, by=["model"]).to_dict("records")
    return bool(row["ci_low"] <= 0 <= row["ci_high"])


@pytest.mark.slow
def test_a_lot_that_makes_questions_ambiguous_and_clear_again_leaves_no_difference() -> None:
    """What 45 shows as its check: of the same 120 questions, of groups of like ones, a
    random half against the other. 95 of 100 lots have 0 in the interval.
    """
    draw = np.random.default_rng(3)
    sizes = draw.integers(1, 10, 24)
    groups = [f"g{number}" for number, size in enumerate(sizes) for _ in range(size)]
    easy = np.repeat(draw.random(24), sizes)
    values = (draw.random(len(groups)) < easy).astype(float)
    held = []
    for _ in range(40):
        flagged = np.zeros(len(groups), bool)
        flagged[draw.permutation(len(groups))[: len(groups) // 2]] = True
        held.append(covered(groups, flagged, values))
    assert np.mean(held) >= 0.9


def answered(version: str, **scores: float) -> pd.DataFrame:
    told = {"query_id": list(scores), "score": list(scores.values()), "version": version}
    told |= {"evidence_source": "gold", "dataset": "x", "metric": "webqa_f1", "stratum": "s"}
    return factories.judged(**told)


def test_a_flagged_question_is_compared_with_clear_ones_and_with_itself() -> None:
    pairs = pd.DataFrame({"ambiguous": list("ab"), "clear": list("cd"), "group": list("ab")})
    pairs = pairs.assign(clear_group=list("cd"), dataset="x")
    before = answered("original", a=0.0, b=0.0, c=1.0, d=0.5)
    both = pd.concat([before, answered("rewritten", a=1.0, b=0.5, c=1.0, d=0.5)])
    flags = detected("ab", "cd")
    table = ambiguity_contrasts(both, flags, pairs).set_index("contrast")
    # (0 − 1 + 0 − 0.5) / 2; (1 − 1 + 0.5 − 0.5) / 2; (1 + 0.5) / 2
    assert table["value"].to_dict() == {
        "ambiguous − clear": -75,
        "rewritten − clear": 0,
        "rewritten − original": 75,
    }
    assert table["baseline"].tolist() == ["clear", "clear", "original"]
    assert (table["n"] == 2).all()
    assert table["p_holm"].isna().all()
    restored = ambiguity_contrasts(both, flags, pairs, restored=True).set_index("contrast")
    assert restored.loc[CHECK, "p_holm"] == restored.loc[CHECK, "p"]  # one check
    assert ambiguity_contrasts(before, detected("", "abcd"), pairs.head(0)).empty


def test_what_was_left_out_is_found_by_the_rule_and_put_back() -> None:
    originals = {"WebQA": guide()}
    asked, truth = open_ambiguous(originals, 0.5, seed=1)
    by_rule = detect_ambiguity([RULE], asked, "unused")
    (row,) = detection_agreement(pd.concat([by_rule, truth])).to_dict("records")
    assert (row["one"], row["other"], row["value"]) == (RULE, TRUTH, 1)
    assert (row["both"], row["neither"], row["only_one"], row["only_other"]) == (4, 4, 0, 0)
    anew, rewrites = rewrite_questions(asked, by_rule, PUT_BACK, "unused", originals=originals)
    assert len(rewrites) == 4
    assert (rewrites["original"] != rewrites["question"]).all()
    assert anew["WebQA"].queries == originals["WebQA"].queries
    fingerprints = {each["WebQA"].fingerprint for each in (originals, asked, anew)}
    assert len(fingerprints) == 3
    same, nothing = open_ambiguous(originals, 0)
    assert (same, len(nothing)) == (originals, 0)


def test_a_rewrite_that_cannot_be_read_leaves_its_question_as_it_was() -> None:
    benchmark = guide(2)
    rewrites = pd.DataFrame({"query_id": ["q0", "q1"], "question": ["Which year?", ""]})
    anew = mrag.ambiguity.with_rewritten_questions(benchmark, rewrites)
    assert anew.queries["q0"].text == "Which year?"
    assert anew.queries["q0"].answers == ("red",)
    assert anew.queries["q1"] == benchmark.queries["q1"]
    with pytest.raises(KeyError, match="x"):
        mrag.ambiguity.with_rewritten_questions(benchmark, rewrites.replace("q0", "x"))


class SaysTheSame:
    """A model that answers every question in the same words."""

    name, fingerprint = "same", "1"

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        return ["The hindwings of this moth are red."] * len(prompts)


@pytest.mark.slow
def test_equal_answers_get_equal_scores_in_both_versions(tmp_path: Path) -> None:
    """A keypoint names the species, as the whole question does and the ambiguous one does
    not: held against that one, the answer would lack the name.
    """
    told = {"domain": "moths", "gold_claims": (f"The hindwings of {SPECIES} are red.",)}
    queries = {name: replace(each, metadata=told) for name, each in guide().queries.items()}
    originals = dict.fromkeys(mrag.datasets.DATASETS, replace(guide(), queries=queries))
    ambiguous, _ = open_ambiguous(originals, 1)
    prompts = load_prompts_by_dataset(FIELD_GUIDE, originals)
    judges = open_judges("rule", originals, tmp_path)
    shown = mrag.modes.SuiteEvidence(retrievers={}, k={"image": 1, "text": 1}).gold
    versions = []
    for suite in (ambiguous, originals):
        contexts = {name: shown(each) for name, each in suite.items()}
        said = mrag.modes.ask_suite([SaysTheSame()], suite, contexts, prompts, tmp_path)
        versions.append(mrag.modes.judge_suite(originals, said, judges))
    before, after = versions
    assert before["score"].tolist() == after["score"].tolist()
    assert (after.loc[after["dataset"] == "Chart-MRAG", "score"] == 1).all()
