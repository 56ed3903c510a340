"""CRAG-MM's prompts are the paper's, word for word: `tests/data/crag_mm_prompts.md` holds what
it prints; what it leaves open reads as the example beside it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import ROOT
from conversation_data import entry, make_conversations, page

from vrag_kit.generation import render
from vrag_kit.papers.crag_mm.parameters import PROMPT_SETS, load_prompts
from vrag_kit.types import Prompt, Turn

PRINTED = (ROOT / "tests" / "data" / "crag_mm_prompts.md").read_text(encoding="utf-8")


SINGLE, MULTI, MM_LLM, TASK_1, WEB = [
    part.split("\n```")[0] for part in PRINTED.split("```text\n")[1:]
]


FOUND = (entry("kg", ("<entity_name>", "<meta_data>")), page("w", "<page_name>", "<snippet>"))


SAID = (Turn("Whose?", "Mine."), Turn("And this?", ""))


HISTORY = "User: Whose?\nAssistant: Mine.\nUser: And this?\nAssistant: "


@pytest.fixture(scope="module")
def query(tmp_path_factory):
    """A question alone."""
    talks = make_conversations(tmp_path_factory.mktemp("photo"), {}, alone=["s"])
    return replace(talks.queries["s-0"], text="<query>")


def read(prompt: Prompt, role: str = "user") -> str:
    words = ""
    for message in prompt:
        if message.role == role:
            parts = [part if isinstance(part, str) else "<image>" for part in message.parts]
            words += "".join(parts)
    return words


def one_of_each(printed: str) -> str:
    """The printed form with one entity and one page, counted from 1, and the question."""
    lines = printed.split("\n")
    if ". . ." in lines:
        dots = lines.index(". . .")
        more = 3 if lines[dots + 1].startswith("Entity <n>") else 1
        del lines[dots : dots + more]
    words = "\n".join(lines).replace("<list_of_entity_names>", "<entity_name>")
    return words.replace("<i>", "1").replace("{query}", "<query>")


def test_single_turn_prompts_are_as_printed(query):
    paper = PROMPT_SETS["paper"]
    alone = "\n".join(line for line in MM_LLM.split("\n") if "history" not in line)
    task_1 = one_of_each(TASK_1)
    before, last = task_1.rsplit("\n", 1)
    printed = {
        "mm_llm": (alone, ()),
        "task_1": (task_1, FOUND[:1]),
        "task_2": (f"{before}\n{one_of_each(WEB)}\n{last}", FOUND),
    }
    for arm, (words, found) in printed.items():
        prompt = render(paper.template(arm), query, found)
        assert [message.role for message in prompt] == ["system", "user"]
        assert read(prompt, "system") == SINGLE
        assert read(prompt) == words


def test_multi_turn_prompts_are_as_printed_and_task_3_is_task_2_with_the_history(query):
    turn = replace(query, conversation_id="c", turn=2)
    prompt = render(PROMPT_SETS["paper"].template("mm_llm"), turn, (), SAID)
    assert read(prompt, "system") == MULTI
    assert read(prompt) == MM_LLM.replace("<conversation_history>", HISTORY)
    task_3 = read(render(PROMPT_SETS["paper"].template("task_3"), turn, FOUND, SAID))
    line = f"Conversation history: {HISTORY}\n"
    assert line in task_3
    task_2 = read(render(PROMPT_SETS["paper"].template("task_2"), turn, FOUND, SAID))
    assert task_3.replace(line, "") == task_2


def test_the_codes_layout_has_a_message_a_part_and_the_multi_turn_text_from_turn_2(query):
    turn = replace(query, conversation_id="c", turn=2)
    template = PROMPT_SETS["code"].template("task_3, code")
    assert read(render(template, replace(turn, turn=0), FOUND), "system") == SINGLE
    later = render(template, turn, FOUND, SAID)
    assert [message.parts for message in later[:2]] == [(MULTI,), (query.image,)]
    assert one_of_each(WEB) in read(later[2:3])
    assert [(message.role, *message.parts) for message in later[3:]] == [
        ("user", "Whose?"), ("assistant", "Mine."), ("user", "And this?"),
        ("assistant", "(no answer)"), ("user", "<query>"),
    ]  # fmt: skip


def contexts_of(prompt: Prompt) -> tuple[str, str]:
    """(image context, web context), each with its headings."""
    words = read(prompt)
    begin, middle = words.index("Image search context"), words.index("You are given snippets")
    return words[begin:middle], words[middle : words.index("Query: <query>")]


def test_budgets_are_in_characters_names_first_then_attributes_that_fit(query):
    about = {"a": {"x": "y" * 900}, "b": {"x": "y" * 5000}, "c": {"x": "z" * 300}}
    entries = [entry(f"kg-{name}", (name, about[name])) for name in "abc"]
    pages = [page(f"w{n}", f"T{n}", "w" * size) for n, size in enumerate((900, 2000, 10))]
    chosen = load_prompts("paper", 2000, 2500)
    prompt = render(chosen.template("task_2"), query, [*entries, *pages])
    image, web = contexts_of(prompt)
    assert "a, b, c\n" in image  # every name, each once
    assert ("Entity 1: a\n" in image, "y" * 901 in image) == (True, False)
    assert "Entity 2: c\n" in image  # b is too long and passed over
    assert len(image) <= 2000
    assert ("T0" in web, "T1" in web, "T2" in web) == (True, False, False)  # it ends there
    assert len(web) <= 2500
    default = render(load_prompts("code").template("task_2, code"), query, [*entries, *pages])
    assert all(title in read(default) for title in ("T0", "T1", "T2", "Entity 2: b"))
