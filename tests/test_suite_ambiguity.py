"""Ambiguous questions are detected and said anew in the paper's words, strictly read;
flagged ones meet clear ones like them; and a prompt is chosen where it is not reported.
"""

from __future__ import annotations

import json
from pathlib import Path

import factories
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from strange_server import StrangeServer, images_in, text_in

from vrag_kit.analysis import per_query
from vrag_kit.benchmarks import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.judging import UnparsedError
from vrag_kit.papers import mrag_suite as paper
from vrag_kit.papers.mrag_suite.ambiguity import (
    Detection,
    ambiguous_minus_clear,
    detection_prompt,
    match_clear_questions,
    read_detection,
    read_query_rewrite,
)
from vrag_kit.papers.mrag_suite.detection import detection_agreement, flag_rates
from vrag_kit.papers.mrag_suite.sweep import prompt_gains, prompt_sweep, split_groups
from vrag_kit.types import Benchmark, Document, Query


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
            paper.detection.load_ambiguity_detector(entry, tmp_path)
            .detect(benchmark)
            .set_index("query_id")
        )
        paper.detection.load_ambiguity_detector(entry, tmp_path).detect(benchmark)
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
        assessor = paper.detection.load_ambiguity_detector(entry, tmp_path)
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
    assert read_detection(raw) == Detection("CLEAR", "")


@pytest.mark.parametrize(
    "raw",
    [
        "CLEAR",
        f"Sure: {reply('CLEAR')}",
        reply("clear"),
        reply("CLEAR", "word " * 31),
        '{"status": "CLEAR"}',
        '{"status": "CLEAR", "status": "AMBIGUOUS", "explanation": ""}',
        '[{"status": "CLEAR", "explanation": ""}]',
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


def test_a_question_without_an_accepted_answer_has_a_prompt_too() -> None:
    (message,) = detection_prompt(Query(query_id="q", text="When?"))
    assert str(message.parts[0]).endswith('Answer: ""')


def test_flag_rates_and_kappa_leave_out_what_could_not_be_read() -> None:
    mine = ["AMBIGUOUS", "AMBIGUOUS", "CLEAR", "CLEAR", ""]
    table = pd.DataFrame({"status": mine, "group": list("abcde")})
    table["query_id"] = table["group"]
    theirs = table.assign(status=["AMBIGUOUS", "CLEAR", "CLEAR", "CLEAR", "CLEAR"])
    assessed = {"mine": {"small": table}, "theirs": {"small": theirs}}
    row = flag_rates(assessed).iloc[0]
    assert row[["n_flagged", "value", "n", "n_failed"]].tolist() == [2, 50, 4, 1]
    (found,) = detection_agreement(assessed).to_dict("records")
    # 3 of 4 agree; by chance 1/2 · 1/4 + 1/2 · 3/4 = 1/2
    assert (found["value"], found["n"], found["n_failed"]) == (0.5, 4, 1)


def short(query: Query) -> str:
    """A rule: short questions are ambiguous."""
    return "It is short." * (len(query.text.split()) < 3)


def test_ambiguous_questions_meet_clear_ones_of_like_length() -> None:
    texts = {"a": "When?", "b": "How long?", "c": "one two three four", "d": "one two three"}
    benchmark = small({**texts, "e": "one two three four five six"})
    statuses = paper.detection.detect_with_rule(benchmark, short)
    both = match_clear_questions({"x": benchmark}, {"x": statuses})
    assert set(both["ambiguous"]) == {"a", "b"}
    # c and d are nearest, and each is taken once
    assert set(both["clear"]) == {"c", "d"}
    values = pd.DataFrame({"query_id": list("abcde"), "value": [0.0, np.nan, 1.0, 1.0, 0.0]})
    values = values.assign(model="m", group=list("abcde"))
    (row,) = ambiguous_minus_clear(values, both, by=["model"]).to_dict("records")
    assert (row["value"], row["n"], row["n_failed"]) == (-1, 1, 1)
    with pytest.raises(VragError, match="there are no pairs"):
        ambiguous_minus_clear(values, both.head(0), by=["model"])


def test_partners_are_alike_in_what_each_model_was_told() -> None:
    """b and d are of told groups; c is as long as b's question, and no partner of it."""
    texts = {"a": "When?", "b": "How long?", "c": "one two three", "d": "one two three four five"}
    benchmark = small(texts)
    statuses = paper.detection.detect_with_rule(benchmark, short)
    suite, told = {"x": benchmark}, {"x": statuses}
    pairs = match_clear_questions(suite, told, {"x": {"m": frozenset("bd")}})
    pairs = pairs.set_index("ambiguous")
    assert pairs["clear"].to_dict() == {"a": "c", "b": "d"}
    assert pairs["clear_group"].to_dict() == {"a": "c", "b": "d"}
    pairs = match_clear_questions(suite, told, {"x": {"m": frozenset("abc")}})
    assert pairs["clear"].tolist() == ["c"]


def covered(groups: list[str], flagged: np.ndarray, values: np.ndarray) -> bool:
    """Whether the interval of ambiguous less clear questions holds 0."""
    names = [f"q{number}" for number in range(len(groups))]
    pairs = zip(names, groups, strict=True)
    queries = [Query(query_id=name, text="What?", answers=("a",), group=g) for name, g in pairs]
    benchmark = factories.benchmark(queries)
    status = np.where(flagged, "AMBIGUOUS", "CLEAR")
    statuses = pd.DataFrame({"query_id": names, "status": status})
    pairs = match_clear_questions({"x": benchmark}, {"x": statuses})
    table = pd.DataFrame({"query_id": names, "value": values, "group": groups}).assign(model="m")
    (row,) = ambiguous_minus_clear(table, pairs, by=["model"]).to_dict("records")
    return bool(row["ci_low"] <= 0 <= row["ci_high"])


@pytest.mark.slow
def test_clear_questions_of_few_groups_are_as_doubtful_as_these_are_few() -> None:
    """No difference: 60 ambiguous questions, 12 of them of the 12 groups of the 60 clear
    ones, whose questions are right or wrong together. Over the ambiguous side's groups alone
    the pairs pass for independent ones, and one of four intervals leaves 0 out.
    """
    draw = np.random.default_rng(5)
    ambiguous = [f"a{n}" if n >= 12 else f"c{n}" for n in range(60)]
    groups = ambiguous + [f"c{n % 12}" for n in range(60)]
    flagged = np.arange(120) < 60
    held = []
    for _ in range(80):
        right = {group: draw.random() < 0.5 for group in dict.fromkeys(groups)}
        held.append(covered(groups, flagged, np.array([float(right[each]) for each in groups])))
    assert np.mean(held) >= 0.91


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
    for _ in range(80):
        flagged = np.zeros(len(groups), bool)
        flagged[draw.permutation(len(groups))[: len(groups) // 2]] = True
        held.append(covered(groups, flagged, values))
    assert np.mean(held) >= 0.91


def swept(scores: dict[str, dict[str, float]]) -> pd.DataFrame:
    """Prompt → query → score; the query's first letter is its group."""
    rows = []
    for prompt, of in scores.items():
        for name, score in of.items():
            row = {"prompt": prompt, "query_id": name, "group": name[0], "score": score}
            row["metric"] = "webqa_f1"
            rows.append({**row, "model": "m", "status": "ok", "abstained": 0.0})
    return pd.DataFrame(rows)


def test_halves_are_of_groups_and_no_group_is_in_both() -> None:
    halves = split_groups(list("abcdeabcde"))
    assert sorted(halves.values()) == ["held_out"] * 3 + ["selection"] * 2
    assert halves == split_groups(list("edcba"))
    with pytest.raises(VragError, match="1 group cannot be halved"):
        split_groups(["a", "a"])


def test_the_best_prompt_is_chosen_on_one_half_and_reported_on_the_other() -> None:
    groups = [chr(ord("a") + n) for n in range(20)]
    halves = split_groups(groups)
    lucky = {name: float(halves[name] == "selection") for name in groups}
    steady = dict.fromkeys(groups, 0.75)
    table = prompt_sweep(swept({"lucky": lucky, "steady": steady})).set_index("prompt")
    assert table["selected"].to_dict() == {"lucky": True, "steady": False}
    assert table.loc["lucky", ["selection", "held_out"]].tolist() == [100, 0]
    assert table["held_out_n"].tolist() == [10, 10]


def test_the_planted_prompt_is_never_chosen_however_good_it_is() -> None:
    """By hand: means of 1 and 0.75 of those planted, 0.5 and 0.25 of the paper's; 0.5 is chosen."""
    names = [f"{chr(ord('a') + n)}0" for n in range(20)]
    means = {paper.sweep.NO_EVIDENCE: 1.0, paper.sweep.TAUGHT: 0.75, "weak": 0.25, "good": 0.5}
    scores = {prompt: dict.fromkeys(names, mean) for prompt, mean in means.items()}
    table = prompt_sweep(swept(scores)).set_index("prompt")
    assert list(table.index[table["selected"]]) == ["good"]
    assert all(
        "(control)" in name for name in (paper.sweep.NO_EVIDENCE, paper.sweep.TAUGHT)
    )  # as tables and figures say


def test_a_planted_prompt_is_found_in_each_stratum_and_moves_no_other() -> None:
    """Without evidence every learned question is right and no other; two prompts of the
    paper's get half of all, one up and one down by a tenth. Opposite effects, none pooled.
    """
    names = [f"{chr(ord('a') + n)}0" for n in range(24)]
    learned = dict.fromkeys(names[:12], 1.0) | dict.fromkeys(names[12:], 0.0)
    scores = {"one": dict.fromkeys(names, 0.6), "two": dict.fromkeys(names, 0.4)}
    table = swept({**scores, paper.sweep.NO_EVIDENCE: learned})
    strata = table["query_id"].isin(names[:12]).map({True: "learned", False: "not learned"})
    apart = pd.concat([table.assign(stratum=strata), table.assign(stratum="all questions")])
    gains = prompt_gains({"x": apart}).set_index(["stratum", "prompt"])
    value = gains["value"].unstack("stratum").round(9)
    assert value.loc[paper.sweep.NO_EVIDENCE].to_dict() == {
        "learned": 50,
        "not learned": -50,
        "all questions": 0,
    }
    assert (value.loc["one"] == 10).all()
    assert (
        gains.loc[["learned", "not learned"]].loc[(slice(None), paper.sweep.NO_EVIDENCE), "p_holm"]
        < 0.05
    ).all()
    assert gains.loc[("all questions", paper.sweep.NO_EVIDENCE), "p_holm"] == 1
    assert gains.loc["learned", "n"].tolist() == [12, 12, 12]


def test_a_question_counts_in_the_sweep_where_each_prompt_has_a_value() -> None:
    names = [f"{group}{n}" for group in "abcdefgh" for n in range(2)]
    scores = {prompt: dict.fromkeys(names, 0.5) for prompt in ("one", "two")}
    scores["two"]["a0"] = np.nan
    table = prompt_sweep(swept(scores))
    assert table["n_failed"].tolist() == [1, 1]
    assert (table["selection_n"] + table["held_out_n"] == 15).all()
    assert table["selected"].tolist() == [True, False]
    assert len(per_query(swept(scores), by=["prompt"])) == 32
