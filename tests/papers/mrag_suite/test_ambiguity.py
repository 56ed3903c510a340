"""Ambiguous questions: the paper's prompts and strict parsers, detectors and their agreement, and
contrasts of ambiguous with clear and with rewritten questions.
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
from suite_questions import guide

from vrag_kit.benchmarks import ImageFile
from vrag_kit.judging import UnparsedError
from vrag_kit.papers import mrag_suite as mrag
from vrag_kit.papers.mrag_suite.ambiguity import (
    CHECK,
    ambiguity_contrasts,
    ambiguous_minus_clear,
    match_clear_questions,
    read_detection,
    read_query_rewrite,
)
from vrag_kit.types import Benchmark, Document, Query
from vrag_kit.workspace import Workspace


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
        at = Workspace(answers_dir=tmp_path)
        model = mrag.ambiguity.load_detector(entry, at)
        table = mrag.ambiguity.detect_ambiguous(model, benchmark, at).set_index("query_id")
        mrag.ambiguity.detect_ambiguous(model, benchmark, at)
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
        at = Workspace(answers_dir=tmp_path)
        model = mrag.ambiguity.load_detector(entry, at)
        questions = mrag.ambiguity.rewrite_ambiguous(model, benchmark, detections, at)
        sent = "\n".join(map(text_in, server.requests))
    assert questions[["query_id", "original", "question"]].to_numpy().tolist() == [
        ["a", "When was it built?", "When was the tower built, by the plate of 1990?"]
    ]
    assert "EVIDENCE:\n- why it was flagged: No tower.\n- Built in 1990.\nREQUIREMENTS" in sent


def test_one_json_object_is_read() -> None:
    raw = f"<think>Hm {{</think>\n```json\n{reply('CLEAR', '')}\n```"
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
    for raw in ("", "- When?", "Rewrite: When?", "One?\nTwo?", "According to the image?"):
        with pytest.raises(UnparsedError):
            read_query_rewrite(raw)


def detected(flagged: str, clear: str) -> pd.DataFrame:
    """Detections of queries by one letter, each a group of its own."""
    status = dict.fromkeys(flagged, "AMBIGUOUS") | dict.fromkeys(clear, "CLEAR")
    table = pd.DataFrame({"query_id": list(status), "status": list(status.values())})
    return table.assign(**{"group": table["query_id"], "dataset": "x", "detector": "d"})


def test_ambiguous_questions_meet_clear_ones_of_like_length() -> None:
    texts = {"a": "When?", "b": "How long?", "c": "one two three four", "d": "one two three"}
    suite = {"x": small({**texts, "e": "one two three four five six"})}
    both = match_clear_questions(suite, detected("ab", "cde"), {"x": {}})
    assert set(both["ambiguous"]) == {"a", "b"}
    # c and d are nearest, and each is taken once
    assert set(both["clear"]) == {"c", "d"}
    values = pd.DataFrame({"query_id": list("abcde"), "value": [0.0, np.nan, 1.0, 1.0, 0.0]})
    values = values.assign(model="m", dataset="x", group=list("abcde"))
    (row,) = ambiguous_minus_clear(values, both, by=["model"]).to_dict("records")
    assert (row["value"], row["n"], row["n_failed"]) == (-1, 1, 1)
    assert ambiguous_minus_clear(values, both.head(0), by=["model"]).empty


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
    assert (table["n"] == 2).all()
    assert table["p_holm"].isna().all()
    restored = ambiguity_contrasts(both, flags, pairs, restored=True).set_index("contrast")
    assert restored.loc[CHECK, "p_holm"] == restored.loc[CHECK, "p"]  # one check


def test_a_rewrite_that_cannot_be_read_leaves_its_question_as_it_was() -> None:
    benchmark = guide(2)
    rewrites = pd.DataFrame({"query_id": ["q0", "q1"], "question": ["Which year?", ""]})
    anew = mrag.ambiguity.with_rewritten_questions(benchmark, rewrites)
    assert anew.queries["q0"].text == "Which year?"
    assert anew.queries["q0"].answers == ("red",)
    assert anew.queries["q1"] == benchmark.queries["q1"]
    with pytest.raises(KeyError, match="x"):
        mrag.ambiguity.with_rewritten_questions(benchmark, rewrites.replace("q0", "x"))
