"""Conversations: whose answers a turn is told, in which order turns are asked, where a conversation
ends, and how much of an answer counts; and long answers joined from replies to short questions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pandas as pd
import pytest
from conversation_data import contexts_of, make_conversations, question
from hypothesis import given, settings
from hypothesis import strategies as st
from strange_server import StrangeServer, text_in
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from vrag_kit.errors import VragError
from vrag_kit.generation import ConversationConfig, TokenLimit, ask_conversations
from vrag_kit.generation.prompts import PARSERS, parse_long, parse_short
from vrag_kit.judging import is_abstention
from vrag_kit.papers.crag_mm.conversations import early_stopping
from vrag_kit.papers.crag_mm.judge import load_truthfulness_judge
from vrag_kit.papers.crag_mm.parameters import PROMPT_SETS
from vrag_kit.synthetic.mrag_suite.prompts import LongQuestions, ask_long, questions_in_parts
from vrag_kit.types import Benchmark, Context, Query

PAPER = PROMPT_SETS["paper"]
OWN = ConversationConfig(prompts=PAPER)
SHORT, LONG = (replace(PAPER, read=PARSERS[name]) for name in ("short", "long"))
Ask = Callable[..., pd.DataFrame]


@pytest.fixture
def model(server):
    return {"model": f"talker@{server.url}", "decoding": {"temperature": 0}}


@pytest.fixture
def ask(model, at):
    """Asks the served model the questions."""

    def ask(
        benchmark: Benchmark, how: ConversationConfig = OWN, contexts: Sequence[Context] = ()
    ) -> pd.DataFrame:
        contexts = contexts or contexts_of(benchmark)
        return ask_conversations([model], benchmark, contexts, at, conversation=how)

    return ask


def said(server: StrangeServer, *answers: tuple[str, int, str]) -> None:
    """What the model does at each turn; later turns hold earlier questions, and the
    first plan that fits counts.
    """
    late_first = sorted(answers, key=lambda answer: -answer[1])
    server.plans = {f"Query: {question(talk, turn)}": [what] for talk, turn, what in late_first}


def bodies(server: StrangeServer) -> list[str]:
    """The user's words of each question, in the order in which they came."""
    asked = []
    for body in server.requests:
        words = text_in({"messages": body["messages"][1:]})
        if "Query: " in words:
            asked.append(words)
    return asked


def test_a_turn_sees_one_of_3_histories(server, ask, tmp_path):
    talks = make_conversations(tmp_path, {"a": 3}, alone=["s"])
    said(server, ("a", 0, "say A car."), ("a", 1, "say Answer: blue"), ("a", 2, "say Old."))
    last = {}
    for history in ("generated", "reference", "none"):
        table = ask(talks, ConversationConfig(prompts=PAPER, history=history))
        assert table["answer"].tolist()[:3] == ["A car.", "Answer: blue", "Old."]  # read whole
        assert set(table["history"]) == {history}
        assert table["conversation_id"].tolist() == ["a", "a", "a", "s-0"]
        last[history] = bodies(server)[-1]
    told = (
        "Image: \nConversation history: User: turn 0 of a?\nAssistant: {}\n"
        "User: turn 1 of a?\nAssistant: {}\nQuery: turn 2 of a?"
    )
    assert last == {
        "generated": told.format("A car.", "Answer: blue"),
        "reference": told.format("It is a0.", "It is a1."),
        "none": "Image: \nQuery: turn 2 of a?",
    }
    # 4 with generated answers; the first turn and the question alone are the same in all three
    assert len(bodies(server)) == len(set(bodies(server))) == 4 + 2 + 2
    with pytest.raises(VragError, match=r"'own'.*'generated'"):
        ConversationConfig(prompts=PAPER, history="own")


def test_turns_are_asked_in_order(server, ask, tmp_path):
    talks = make_conversations(tmp_path, {"a": 3, "b": 2, "c": 4})
    contexts = contexts_of(talks)
    table = ask(talks, contexts=contexts[::-1])
    turns = [body.split("Query: turn ")[1][0] for body in bodies(server)]
    assert turns == sorted(turns) == list("000111223")
    pd.testing.assert_frame_equal(ask(talks), table[::-1].reset_index(drop=True))
    with pytest.raises(VragError, match=r"conversation 'a'.*'a-0'"):
        ask(talks, contexts=[contexts[0], contexts[2]])
    again = replace(talks.queries["a-1"], query_id="again")
    twice = replace(talks, queries={**talks.queries, "again": again})
    with pytest.raises(VragError, match=r"'a-1'.*'again'"):
        ask(twice, contexts=[*contexts[:2], replace(contexts[1], query_id="again")])
    assert len(bodies(server)) == 9


def test_an_early_stop_saves_calls(server, ask, tmp_path):
    plan = {"a": "RWWRR", "c": "MRMR", "d": "WWRR", "f": "RRMW"}  # right, wrong, missing
    talks = make_conversations(tmp_path, {talk: len(turns) for talk, turns in plan.items()})
    wrong = {"M": "say I don't know", "W": "say It is red."}
    for talk, turns in plan.items():
        for turn, letter in enumerate(turns):
            reply = wrong.get(letter, f"say It is {talk}{turn}.")
            server.plans = {f"Query: {question(talk, turn)}": [reply], **server.plans}
    stop = early_stopping(load_truthfulness_judge("truth_rule"), talks)
    table = ask(talks, ConversationConfig(prompts=PAPER, stop=stop))
    stopped = table[table["status"] == "early_stopped"]
    # a stops at its third turn and d at its second; f at its last
    assert stopped["query_id"].tolist() == ["a-3", "a-4", "d-2", "d-3"]
    assert stopped["answer"].isna().all()
    assert set(table["status"]) == {"ok", "early_stopped"}
    assert len(bodies(server)) == len(talks.queries) - 4


@pytest.mark.slow
def test_an_unparsed_verdict_stops_nothing_and_an_empty_answer_is_not_right(
    server, ask, model, tmp_path, at
):
    talks = make_conversations(tmp_path, {"a": 3, "b": 4})
    said(server, ("b", 0, "empty"), ("b", 1, "empty"))
    server.plans["Ground Truth"] = ["say Both CORRECT and WRONG, I think."]
    stop = early_stopping(load_truthfulness_judge(model, at), talks)
    table = ask(talks, ConversationConfig(prompts=PAPER, stop=stop))
    assert table["status"].tolist() == [*("ok",) * 3, *("empty",) * 2, *("early_stopped",) * 2]


# how much of an answer counts


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory):
    """A word is a token, and one stands before every text and one behind it."""
    folder = tmp_path_factory.mktemp("tokenizer")
    words = Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "?": 2}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    words.save(str(folder / "tokenizer.json"))
    return str(folder)


@given(st.lists(st.text("ab.", min_size=1, max_size=4), max_size=9), st.integers(1, 6))
@settings(max_examples=60)
def test_answers_are_cut_to_first_tokens(tokenizer, words, tokens):
    kept, enough = TokenLimit(tokens, tokenizer)("  ".join(words))
    assert kept == "  ".join(words[: tokens - 1])
    assert enough == (len(words) >= max(tokens - 1, 1))


def test_the_cut_text_is_the_answer_and_enters_the_history(server, ask, tmp_path, tokenizer):
    talks, first = make_conversations(tmp_path, {"a": 2, "b": 2, "c": 2}), ["a-0", "b-0", "c-0"]
    said(server, ("a", 0, "say one two three four"), ("b", 0, "truncated"), ("c", 0, "say one two"))
    how = ConversationConfig(prompts=PAPER, cut=TokenLimit(4, tokenizer))
    table = ask(talks, how).set_index("query_id").loc[first]
    # "Answer: the hindwings are" was cut off by its endpoint, with as many tokens as count
    assert table["answer"].tolist() == ["one two three", "Answer: the hindwings", "one two"]
    assert table["status"].tolist() == ["ok", "ok", "ok"]
    assert table["enough"].tolist() == [True, True, False]
    assert set(table["max_answer_tokens"]) == {4}
    assert set(table["answer_tokenizer"]) == {tokenizer}
    assert any("Assistant: one two three\n" in body for body in bodies(server))
    longer = ask(talks, ConversationConfig(prompts=PAPER, cut=TokenLimit(9, tokenizer)))
    assert longer["status"][2] == "truncated"  # fewer than count: it is as bad as cut off
    with pytest.raises(VragError, match=r"tokenizer\.json"):
        TokenLimit(75, str(tmp_path))("words")


def test_a_failed_turn_ends_conversations(server, ask, tmp_path):
    talks = make_conversations(tmp_path, {"a": 3, "b": 3})
    said(server, ("a", 1, "filtered"), ("b", 0, "say A car."), ("b", 1, "empty"))
    table = ask(talks)
    assert table["status"].tolist() == ["ok", "refused", "skipped", "ok", "empty", "ok"]
    assert table["answer"].isna().tolist() == [False, True, True, False, False, False]
    assert "User: turn 1 of b?\nAssistant: \nQuery: turn 2 of b?" in bodies(server)[-1]


def test_both_answers_come_from_one_call(server, ask, tmp_path):
    benchmark = make_conversations(tmp_path, {}, alone=["a", "b", "c"])
    server.plans = {
        "turn 0 of a?": ["say Short answer: red\nLong answer: It is red."],
        "turn 0 of b?": ["say It is blue."],
        "turn 0 of c?": ["say Short answer:\nLong answer: I cannot see it."],
    }
    short, long = (ask(benchmark, ConversationConfig(prompts=each)) for each in (SHORT, LONG))
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
    return questions_in_parts(World(), benchmark, contexts_of(benchmark), PAPER)


def test_a_long_answer_joins_short_ones(server, model, tmp_path, at):
    server.plans = {
        "Which color has a?": ["say red"],
        "Which size has a?": ["say I don't know."],
        "Where is a?": ["say here"],
        "has b?": ["say I don't know."],
        "Where is b?": ["empty"],
        "color has c?": ["refusal"],
        "color has d?": ["truncated"],
        "d?": ["say big"],
        "e?": ["empty"],
        "c?": ["say x"],
    }
    asked = in_parts(make_conversations(tmp_path, {}, alone=[*"abcde"]))
    assert [each.query_id for each in asked.contexts[:3]] == ["a-0~1", "a-0~2", "a-0~3"]
    long = ask_long(asked, [model], at, decoding={"temperature": 0})
    assert long["query_id"].tolist() == ["a-0", "b-0", "c-0", "d-0", "e-0"]
    assert long["status"].tolist() == ["ok", "ok", "refused", "truncated", "empty"]
    said = long["answer"].tolist()
    assert said[:2] == ["Which color has: red. Where is: here.", "I don't know."]
    assert pd.isna(said[2])
    assert said[3].endswith("Which size has: big. Where is: big.")
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
        ("red", "Short answer:", None),
        ("Short answer: red", "Long answer:", None),
        ("My short answer: red\nLong answer: x", "Short answer:", None),
        ("Long answer: x\nShort answer: red", "before", None),
        ("Short answer: a\nShort answer: b\nLong answer: x", "2 lines", None),
        ("Short answer: red\nor blue\nLong answer: x", "longer", None),
    ],
)
def test_labels_are_read_in_any_case_and_in_bold_and_no_other_form(raw, short, long):
    """Without a long answer there is none, for the reason in place of the short one."""
    if long is None:
        assert parse_short(raw) == parse_long(raw)
        assert short in str(parse_short(raw)["unreadable"])
    else:
        assert (parse_short(raw)["answer"], parse_long(raw)["answer"]) == (short, long)


def test_parts_are_asked_about_the_same_documents(tmp_path):
    benchmark = make_conversations(tmp_path, {"a": 2})
    pools = {"a-0": ("x",), "a-1": ("y",)}
    labelled = replace(benchmark, qrels={"a-0": {"x": 1}}, pools=pools)
    questions = in_parts(labelled).questions
    assert questions.relevant("a-0~2") == ("x",)
    assert questions.candidates("a-1~3") == ("y",)
    assert questions.queries["a-0~1"].conversation_id is None
    assert questions.queries["a-0~1"].image == benchmark.queries["a-0"].image
    assert questions.fingerprint != labelled.fingerprint
