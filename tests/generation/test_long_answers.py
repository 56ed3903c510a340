"""Short and long answers: two labelled lines, read strictly, and long answers joined from
replies to short questions.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from conversation_data import contexts_of, make_conversations
from strange_server import StrangeServer

from vrag_kit.generation import ask_models
from vrag_kit.generation.prompts import PARSERS, PromptSet, parse_long, parse_short
from vrag_kit.judging import is_abstention
from vrag_kit.papers.crag_mm.parameters import PROMPT_SETS
from vrag_kit.synthetic.mrag_suite.prompts import LongQuestions, ask_long, questions_in_parts
from vrag_kit.types import Benchmark, Query
from vrag_kit.workspace import Workspace

WHOLE = PROMPT_SETS["paper"]
SHORT = replace(WHOLE, read=PARSERS["short"])
LONG = replace(WHOLE, read=PARSERS["long"])


def ask(
    server: StrangeServer, benchmark: Benchmark, at: Workspace, prompts: PromptSet = WHOLE
) -> pd.DataFrame:
    model = {"model": f"teller@{server.url}", "decoding": {"temperature": 0}}
    contexts = contexts_of(benchmark)
    return ask_models([model], benchmark, contexts, at, prompts=prompts)


def test_both_answers_come_from_one_call(
    server: StrangeServer, tmp_path: Path, at: Workspace
) -> None:
    benchmark = make_conversations(tmp_path, {}, alone=["a", "b", "c"])
    server.plans = {
        "turn 0 of a?": ["say Short answer: red\nLong answer: It is red."],
        "turn 0 of b?": ["say It is blue."],
        "turn 0 of c?": ["say Short answer:\nLong answer: I cannot see it."],
    }
    short, long = (ask(server, benchmark, at, prompts) for prompts in (SHORT, LONG))
    assert short["status"].tolist() == ["ok", "unreadable", "empty"]
    assert short["answer"].dropna().tolist() == ["red", ""]
    assert short["detail"][1] == "no line begins with “Short answer:”"
    assert long["status"].tolist() == ["ok", "unreadable", "ok"]
    assert long["answer"].dropna().tolist() == ["It is red.", "I cannot see it."]
    assert long["answer_id"].tolist() == short["answer_id"].tolist()
    assert server.calls("turn 0") == 3


class World:
    """Asks for color, size and place, and makes a sentence of any reply but of an abstention."""

    @property
    def language(self) -> World:
        return self

    def sub_questions(self, query: Query) -> list[str]:
        name = query.text.split()[-1]
        return [f"Which color has {name}", f"Which size has {name}", f"Where is {name}"]

    def claims(self, question: str, reply: str) -> tuple[str, ...]:
        return () if is_abstention(reply) or not reply else (f"{question[:-3]}: {reply}.",)


def in_parts(benchmark: Benchmark) -> LongQuestions:
    return questions_in_parts(World(), benchmark, contexts_of(benchmark), WHOLE)


def test_a_long_answer_joins_short_ones(
    server: StrangeServer, tmp_path: Path, at: Workspace
) -> None:
    server.plans = {
        "Which color has a?": ["say red"],
        "Which size has a?": ["say I don't know."],
        "Where is a?": ["say here"],
        "has b?": ["say I don't know."],
        "Where is b?": ["empty"],
        "color has c?": ["refusal"],
        "color has d?": ["truncated"],
        "has d?": ["say big"],
        "Where is d?": ["say here"],
        "has e?": ["empty"],
        "Where is e?": ["empty"],
        "c?": ["say x"],
    }
    asked = in_parts(make_conversations(tmp_path, {}, alone=[*"abcde"]))
    assert [each.query_id for each in asked.contexts[:3]] == ["a-0~1", "a-0~2", "a-0~3"]
    model = f"teller@{server.url}"
    long = ask_long(asked, [model], at, decoding={"temperature": 0})
    assert long["query_id"].tolist() == ["a-0", "b-0", "c-0", "d-0", "e-0"]
    assert long["status"].tolist() == ["ok", "ok", "refused", "truncated", "empty"]
    said = long["answer"].tolist()
    assert said[:2] == ["Which color has: red. Where is: here.", "I don't know."]
    assert pd.isna(said[2])
    assert said[3].endswith("Which size has: big. Where is: here.")
    assert said[4] == ""
    assert long["group"].tolist() == [*"abcde"]
    assert long["parts"].map(len).eq(3).all()
    assert long["answer_id"].is_unique


@pytest.mark.parametrize(
    ("raw", "short", "long"),
    [
        ("**Short answer:** red\n\n**Long answer:** It is red.", "red", "It is red."),
        ("SHORT ANSWER:\nred\nlong answer:\nIt is.\nRed.\n", "red", "It is.\nRed."),
        ("Short answer: \nLong answer: It is red.", "", "It is red."),
        ("I look.\nShort answer: a: b\nLong answer: c.", "a: b", "c."),
    ],
)
def test_labels_are_read_in_any_case_and_in_bold(raw: str, short: str, long: str) -> None:
    assert (parse_short(raw)["answer"], parse_long(raw)["answer"]) == (short, long)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("red", "Short answer:"),
        ("Short answer: red", "Long answer:"),
        ("My short answer: red\nLong answer: x", "Short answer:"),
        ("Long answer: x\nShort answer: red", "before"),
        ("Short answer: a\nShort answer: b\nLong answer: x", "2 lines"),
        ("Short answer: red\nor blue\nLong answer: x", "longer"),
    ],
)
def test_no_other_form_is_read(raw: str, why: str) -> None:
    assert parse_short(raw) == parse_long(raw)
    assert why in str(parse_short(raw)["unreadable"])


def test_parts_are_asked_about_the_same_documents(tmp_path: Path) -> None:
    benchmark = make_conversations(tmp_path, {"a": 2})
    pools = {"a-0": ("x",), "a-1": ("y",)}
    labelled = replace(benchmark, qrels={"a-0": {"x": 1}}, pools=pools)
    questions = in_parts(labelled).questions
    assert questions.relevant("a-0~2") == ("x",)
    assert questions.candidates("a-1~3") == ("y",)
    assert questions.queries["a-0~1"].conversation_id is None
    assert questions.queries["a-0~1"].image == benchmark.queries["a-0"].image
    assert questions.fingerprint != labelled.fingerprint
