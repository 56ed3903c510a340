"""Conversations: whose answers a turn is told, in which order turns are asked, where a
conversation ends, and how much of an answer counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from conversation_data import contexts_of, make_conversations, question
from hypothesis import given, settings
from hypothesis import strategies as st
from strange_server import StrangeServer, text_in
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from vrag_kit.errors import VragError
from vrag_kit.generation import ConversationConfig, TokenLimit, ask_conversations
from vrag_kit.papers.crag_mm.conversations import early_stopping
from vrag_kit.papers.crag_mm.judge import load_truthfulness_judge
from vrag_kit.papers.crag_mm.parameters import PROMPT_SETS
from vrag_kit.types import Benchmark, Context
from vrag_kit.workspace import Workspace

PAPER = PROMPT_SETS["paper"]
OWN = ConversationConfig(prompts=PAPER)
Ask = Callable[..., pd.DataFrame]


@pytest.fixture
def ask(server: StrangeServer, at: Workspace) -> Callable[..., pd.DataFrame]:
    """Asks the served model the questions."""

    def ask(
        benchmark: Benchmark, how: ConversationConfig = OWN, contexts: Sequence[Context] = ()
    ) -> pd.DataFrame:
        model = {"model": f"talker@{server.url}", "decoding": {"temperature": 0}}
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


def test_a_turn_sees_one_of_three_histories(
    server: StrangeServer, ask: Ask, tmp_path: Path
) -> None:
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


def test_turns_are_asked_in_order(server: StrangeServer, ask: Ask, tmp_path: Path) -> None:
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


def early(talks: Benchmark) -> ConversationConfig:
    judge = load_truthfulness_judge("truth_rule")
    return ConversationConfig(prompts=PAPER, stop=early_stopping(judge, talks))


def test_an_early_stop_saves_calls(server: StrangeServer, ask: Ask, tmp_path: Path) -> None:
    plan = {"a": "RWWRR", "c": "MRMR", "d": "WWRR", "f": "RRMW"}  # right, wrong, missing
    talks = make_conversations(tmp_path, {talk: len(turns) for talk, turns in plan.items()})
    wrong = {"M": "say I don't know", "W": "say It is red."}
    for talk, turns in plan.items():
        for turn, letter in enumerate(turns):
            reply = wrong.get(letter, f"say It is {talk}{turn}.")
            server.plans = {f"Query: {question(talk, turn)}": [reply], **server.plans}
    table = ask(talks, early(talks))
    stopped = table[table["status"] == "early_stopped"]
    # a stops at its third turn and d at its second; f at its last
    assert stopped["query_id"].tolist() == ["a-3", "a-4", "d-2", "d-3"]
    assert stopped["answer"].isna().all()
    assert set(table["status"]) == {"ok", "early_stopped"}
    assert len(bodies(server)) == len(talks.queries) - 4


@pytest.mark.slow
def test_an_unparsed_verdict_stops_nothing_and_an_empty_answer_is_not_right(
    server: StrangeServer, ask: Ask, tmp_path: Path, at: Workspace
) -> None:
    talks = make_conversations(tmp_path, {"a": 3, "b": 4})
    said(server, ("b", 0, "empty"), ("b", 1, "empty"))
    server.plans["Ground Truth"] = ["say Both CORRECT and WRONG, I think."]
    judge = {"model": f"judge@{server.url}", "decoding": {"temperature": 0}}
    stop = early_stopping(load_truthfulness_judge(judge, at), talks)
    table = ask(talks, ConversationConfig(prompts=PAPER, stop=stop))
    assert table["status"].tolist() == [*("ok",) * 3, *("empty",) * 2, *("early_stopped",) * 2]


# how much of an answer counts


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
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
@settings(max_examples=60, deadline=None)
def test_an_answer_is_cut_to_its_first_tokens(
    tokenizer: str, words: list[str], tokens: int
) -> None:
    kept, enough = TokenLimit(tokens, tokenizer)("  ".join(words))
    assert kept == "  ".join(words[: tokens - 1])
    assert enough == (len(words) >= max(tokens - 1, 1))


def test_the_cut_text_is_the_answer_and_enters_the_history(
    server: StrangeServer, ask: Ask, tmp_path: Path, tokenizer: str
) -> None:
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


def test_a_failed_turn_ends_its_conversation(
    server: StrangeServer, ask: Ask, tmp_path: Path
) -> None:
    talks = make_conversations(tmp_path, {"a": 3, "b": 3})
    said(server, ("a", 1, "filtered"), ("b", 0, "say A car."), ("b", 1, "empty"))
    table = ask(talks)
    assert table["status"].tolist() == ["ok", "refused", "skipped", "ok", "empty", "ok"]
    assert table["answer"].isna().tolist() == [False, True, True, False, False, False]
    assert "User: turn 1 of b?\nAssistant: \nQuery: turn 2 of b?" in bodies(server)[-1]
