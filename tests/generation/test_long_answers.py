"""Short and long answers: two labelled lines, read strictly, and long answers joined from
replies to short questions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strange_server import StrangeServer
from talks import contexts_of, make_talks
from vrag_kit.synthetic.mrag_suite.sub_questions import DecomposedBenchmark, SubQuestion

from vrag_kit.errors import VragError
from vrag_kit.generation import ask_models
from vrag_kit.generation.prompts import PARSERS, PromptSet, parse_long, parse_short
from vrag_kit.judging import is_abstention
from vrag_kit.papers.crag_mm.prompts import PROMPT_SETS
from vrag_kit.types import Benchmark, Query

WHOLE = PROMPT_SETS["paper"]
SHORT = replace(WHOLE, read=PARSERS["short"])
LONG = replace(WHOLE, read=PARSERS["long"])
words = st.text("abc .:", min_size=1).map(str.strip).filter(bool)


@pytest.fixture
def server() -> Iterator[StrangeServer]:
    with StrangeServer() as server:
        yield server


def ask(
    server: StrangeServer, benchmark: Benchmark, folder: Path, prompts: PromptSet = WHOLE
) -> pd.DataFrame:
    model = {"model": f"teller@{server.url}", "decoding": {"temperature": 0}}
    contexts = contexts_of(benchmark)
    return ask_models([model], benchmark, contexts, folder, prompts=prompts)


@given(short=words, long=words, before=st.sampled_from(["", "I look at it.\n", "Short it is.\n\n"]))
def test_two_labelled_lines_give_a_short_and_a_long_answer(
    short: str, long: str, before: str
) -> None:
    raw = f"{before}Short answer: {short}\nLong answer: {long}"
    assert parse_short(raw) == {"answer": short, "enough": True}
    assert parse_long(raw) == {"answer": long}


def test_both_answers_come_from_one_call_and_a_miss_is_a_failure_that_is_counted(
    server: StrangeServer, tmp_path: Path
) -> None:
    benchmark = make_talks(tmp_path, {}, alone=["a", "b", "c"])
    server.plans = {
        "turn 0 of a?": ["say Short answer: red\nLong answer: It is red."],
        "turn 0 of b?": ["say It is blue."],
        "turn 0 of c?": ["say Short answer:\nLong answer: I cannot see it."],
    }
    short = ask(server, benchmark, tmp_path, SHORT)
    assert short["status"].tolist() == ["ok", "unreadable", "empty"]
    assert short["answer"].dropna().tolist() == ["red", ""]
    assert short["detail"][1] == "no line begins with “Short answer:”"
    long = ask(server, benchmark, tmp_path, LONG)
    assert long["status"].tolist() == ["ok", "unreadable", "ok"]
    assert long["answer"].dropna().tolist() == ["It is red.", "I cannot see it."]
    assert long["answer_id"].tolist() == short["answer_id"].tolist()
    assert len([each for each in server.requests if "turn 0" in str(each)]) == 3


def parts(query: Query) -> list[SubQuestion]:
    name = query.text.split()[-1].strip("?")

    def sentence(trait: str) -> SubQuestion:
        def said(reply: str) -> str:
            return "" if is_abstention(reply) else f"The {trait} is {reply}."

        return SubQuestion(f"Which {trait} has {name}?", said)

    return [sentence("color"), sentence("size"), SubQuestion(f"Where is {name}?")]


def test_replies_to_short_questions_are_joined_to_a_long_answer(
    server: StrangeServer, tmp_path: Path
) -> None:
    benchmark = make_talks(tmp_path, {}, alone=["a", "b"])
    asked = DecomposedBenchmark(benchmark, parts)
    server.plans = {
        "Which color has a?": ["say red"],
        "Which size has a?": ["say I don't know."],
        "Where is a?": ["say It is here."],
        "has b?": ["say I don't know."],
        "Where is b?": ["empty"],
    }
    contexts = asked.contexts(contexts_of(benchmark))
    assert [each.query_id for each in contexts[:3]] == ["a-0~1", "a-0~2", "a-0~3"]
    model = {"model": f"teller@{server.url}", "decoding": {"temperature": 0}}
    replies = ask_models([model], asked.questions, contexts, tmp_path, prompts=WHOLE)
    long = asked.join_answers(replies)
    assert long["query_id"].tolist() == ["a-0", "b-0"]
    assert long["answer"].tolist() == ["The color is red. It is here.", "I don't know."]
    assert long["status"].tolist() == ["ok", "ok"]
    assert long["group"].tolist() == ["a", "b"]
    assert long["parts"][0] == tuple(replies["answer_id"][:3])
    assert long["answer_id"].is_unique
    assert asked.join_answers(replies.sample(frac=1, random_state=1)).sort_values("query_id")[
        "answer"
    ].tolist() == ["The color is red. It is here.", "I don't know."]


def test_a_long_answer_fails_with_its_parts_and_lacks_none(
    server: StrangeServer, tmp_path: Path
) -> None:
    benchmark = make_talks(tmp_path, {}, alone=["a", "b", "c"])
    asked = DecomposedBenchmark(benchmark, parts)
    server.plans = {
        "color has a?": ["refusal"],
        "color has b?": ["truncated"],
        "has b?": ["say big"],
        "Where is b?": ["say here"],
        "has c?": ["empty"],
        "Where is c?": ["empty"],
        "a?": ["say x"],
    }
    replies = ask(server, asked.questions, tmp_path)
    long = asked.join_answers(replies)
    assert long["status"].tolist() == ["refused", "truncated", "empty"]
    assert pd.isna(long["answer"][0])
    assert long["answer"][1].endswith("The size is big. here")
    assert long["answer"][2] == ""
    with pytest.raises(VragError, match=r"3 parts.*'c-0'"):
        asked.join_answers(replies[:-1])
    with pytest.raises(VragError, match="'a-0'"):
        asked.join_answers(long)
    with pytest.raises(VragError, match="'a-0'"):
        _ = DecomposedBenchmark(benchmark, lambda query: []).questions


@pytest.mark.parametrize(
    ("raw", "short", "long"),
    [
        ("**Short answer:** red\n\n**Long answer:** It is red.", "red", "It is red."),
        ("SHORT ANSWER:\nred\nlong answer:\nIt is.\nRed.\n", "red", "It is.\nRed."),
        ("Short answer: red", None, "Long answer:"),
        ("Long answer: x\nShort answer: red", None, "before"),
        ("Short answer: a\nShort answer: b\nLong answer: x", None, "2 lines"),
        ("Short answer: red\nor blue\nLong answer: x", None, "longer"),
    ],
)
def test_two_labelled_lines_in_any_case_are_read_and_no_other_form(
    raw: str, short: str | None, long: str
) -> None:
    found, whole = parse_short(raw), parse_long(raw)
    if short is None:
        assert found == whole
        assert long in str(found["unreadable"])
    else:
        assert (found["answer"], whole["answer"]) == (short, long)
