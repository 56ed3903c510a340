"""Ambiguous questions: the paper's prompts and strict parsers, detectors and their agreement, and
contrasts of ambiguous with clear and with rewritten questions.
"""

from __future__ import annotations

import json
from dataclasses import replace

import factories
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from strange_server import StrangeServer, images_in, text_in
from suite_questions import guide

from vrag_kit.benchmarks import ImageFile
from vrag_kit.judging import UnparsedError
from vrag_kit.papers.mrag_suite import ambiguity as paper
from vrag_kit.types import Benchmark, Document, Query
from vrag_kit.workspace import Workspace


def reply(status: str, explanation: str = "No year is given.") -> str:
    return json.dumps({"status": status, "explanation": explanation})


def small(texts: dict[str, str]) -> Benchmark:
    """A question each, and one document that answers them all."""
    answers = ("in {q_esc} 1990",)
    queries = [Query(query_id=name, text=texts[name], answers=answers) for name in texts]
    gold = Document(doc_id="gold", text="Built in\n1990.")
    return factories.benchmark(queries, [gold], {name: {"gold": 1} for name in texts})


def test_an_assessor_is_asked_in_the_papers_words_once_and_once_more(tmp_path):
    benchmark = small({"a": "When was it built?", "drawn": "What shape is it?", "c": "Which?"})
    Image.new("RGB", (8, 8), "red").save(tmp_path / "own.png")
    drawn = replace(benchmark.queries["drawn"], image=ImageFile(tmp_path / "own.png"))
    benchmark = replace(benchmark, queries={**benchmark.queries, "drawn": drawn})
    plans = {
        "When was": [f"say {reply('AMBIGUOUS')}"],
        "What shape": [f"say {reply('CLEAR')}"],
        "Which": ["say It is AMBIGUOUS.", "say AMBIGUOUS"],
    }
    at = Workspace(answers_dir=tmp_path)
    with StrangeServer(plans) as server:
        entry = {"model": f"eyes@{server.url}", "timeout": 5.0, "retries": 0}
        model = paper.load_detector(entry, at)
        table = paper.detect_ambiguous(model, benchmark, at).set_index("query_id")
        paper.detect_ambiguous(model, benchmark, at)
        requests = [each for each in server.requests if "word: ready" not in text_in(each)]
    assert table["status"].to_dict() == {"a": "AMBIGUOUS", "drawn": "CLEAR", "c": ""}
    assert "not one JSON object" in table.loc["c", "detail"]
    assert len(requests) == 4  # three, and one of them again
    first = next(text for text in map(text_in, requests) if "When was" in text)
    assert first.startswith("You are an expert question-quality assessor.\nYour goal is")
    assert first.endswith('Answer: "in {q_esc} 1990"')  # braces in an answer are no fields
    (seen,) = [each for each in requests if images_in(each)]
    assert "from the question plus the attached image" in text_in(seen)
    assert seen["temperature"] == 0


def test_flagged_questions_are_said_anew_from_gold_evidence(tmp_path):
    benchmark = small({"a": "When was it built?", "b": "Which is best?"})
    flags = {"query_id": ["a", "b"], "status": ["AMBIGUOUS", "CLEAR"]}
    detections = pd.DataFrame({**flags, "explanation": ["No tower.", ""]})
    at = Workspace(answers_dir=tmp_path)
    with StrangeServer({"rewriting ambiguous": ["say When was the tower built?"]}) as server:
        model = paper.load_detector({"model": f"eyes@{server.url}", "retries": 0}, at)
        (row,) = paper.rewrite_ambiguous(model, benchmark, detections, at).to_dict("records")
        sent = "\n".join(map(text_in, server.requests))
    new = {"original": "When was it built?", "question": "When was the tower built?"}
    assert row == {"query_id": "a", **new, "detail": ""}
    assert "EVIDENCE:\n- why it was flagged: No tower.\n- Built in 1990.\nREQUIREMENTS" in sent


@pytest.mark.parametrize(
    "raw",
    [
        "CLEAR",
        f"Sure: {reply('CLEAR')}",
        reply("CLEAR", "word " * 31),
        '{"status": "CLEAR"}',
        '{"status": "CLEAR", "status": "AMBIGUOUS", "explanation": ""}',
        '[["status", "CLEAR"], ["explanation", ""]]',
        "",
    ],
)
def test_one_json_object_is_read_and_all_else_is_unreadable(raw):
    good = f"<think>Hm {{</think>\n```json\n{reply('CLEAR', '')}\n```"
    assert paper.read_detection(good) == ("CLEAR", "")
    with pytest.raises(UnparsedError):
        paper.read_detection(raw)


def test_a_question_said_anew_is_one_line():
    assert paper.read_query_rewrite("\nWhen was it built?\n") == "When was it built?"
    for raw in ("", "- When?", "Rewrite: When?", "One?\nTwo?", "According to the image?"):
        with pytest.raises(UnparsedError):
            paper.read_query_rewrite(raw)


def detected(flagged: str, clear: str) -> pd.DataFrame:
    """Detections of queries by one letter."""
    status = dict.fromkeys(flagged, "AMBIGUOUS") | dict.fromkeys(clear, "CLEAR")
    return pd.DataFrame({"query_id": list(status), "status": list(status.values()), "dataset": "x"})


def test_ambiguous_questions_meet_clear_ones_of_like_length():
    texts = {"a": "When?", "b": "How long?", "c": "one two three four", "d": "one two three"}
    suite = {"x": small({**texts, "e": "one two three four five six"})}
    both = paper.match_clear_questions(suite, detected("ab", "cde"), {"x": {}})
    assert set(both["ambiguous"]) == {"a", "b"}
    assert set(both["clear"]) == {"c", "d"}  # the nearest, and each is taken once
    values = pd.DataFrame({"query_id": list("abcde"), "value": [0.0, np.nan, 1.0, 1.0, 0.0]})
    values = values.assign(model="m", dataset="x")
    (row,) = paper.ambiguous_minus_clear(values, both, by=["model"]).to_dict("records")
    assert (row["value"], row["n"], row["n_failed"]) == (-1, 1, 1)
    assert paper.ambiguous_minus_clear(values, both.head(0), by=["model"]).empty


def answered(version: str, *scores: float) -> pd.DataFrame:
    told = {"query_id": list("abcd"), "score": scores, "version": version, "dataset": "x"}
    return factories.judged(**told, evidence_source="gold", metric="webqa_f1", stratum="s")


def test_a_flagged_question_is_compared_with_clear_ones_and_with_itself():
    pairs = pd.DataFrame({"ambiguous": list("ab"), "clear": list("cd"), "group": list("ab")})
    pairs = pairs.assign(clear_group=list("cd"), dataset="x")
    rewritten = answered("rewritten", 1.0, 0.5, 1.0, 0.5)
    both = pd.concat([answered("original", 0.0, 0.0, 1.0, 0.5), rewritten])
    flags = detected("ab", "cd")
    table = paper.ambiguity_contrasts(both, flags, pairs).set_index("contrast")
    # (0 − 1 + 0 − 0.5) / 2; (1 − 1 + 0.5 − 0.5) / 2; (1 + 0.5) / 2
    assert table["value"].to_dict() == {
        "ambiguous − clear": -75,
        "rewritten − clear": 0,
        "rewritten − original": 75,
    }
    assert (table["n"] == 2).all()
    assert table["p_holm"].isna().all()
    restored = paper.ambiguity_contrasts(both, flags, pairs, restored=True).set_index("contrast")
    assert restored.loc[paper.CHECK, "p_holm"] == restored.loc[paper.CHECK, "p"]  # one check


def test_a_rewrite_that_cannot_be_read_leaves_its_question_as_it_was():
    benchmark = guide(2)
    rewrites = pd.DataFrame({"query_id": ["q0", "q1"], "question": ["Which year?", ""]})
    anew = paper.with_rewritten_questions(benchmark, rewrites)
    changed = replace(benchmark.queries["q0"], text="Which year?")
    assert anew.queries == {**benchmark.queries, "q0": changed}
    with pytest.raises(KeyError, match="x"):
        paper.with_rewritten_questions(benchmark, rewrites.replace("q0", "x"))
