"""Wording is data: what slots show, what they leave out and what a bad one is told. The
papers' own prompts are in the tests of frozen prompts.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from talks import entry as entity
from talks import page

from vrag_kit.benchmarks import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.generation import read_prompts, render
from vrag_kit.generation.prompts import Template
from vrag_kit.generation.rendering import render_with_documents
from vrag_kit.generation.slots import Slot
from vrag_kit.papers.crag_mm import PROMPT_SETS as WORDINGS_CRAG
from vrag_kit.papers.visual_rag.prompts import PROMPTS
from vrag_kit.types import Context, Document, Prompt, Query

CRAG = WORDINGS_CRAG["paper"]


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> ImageFile:
    path = tmp_path_factory.mktemp("photo") / "photo.png"
    Image.new("RGB", (4, 4)).save(path)
    return ImageFile(path)


@pytest.fixture(scope="module")
def car(photo: ImageFile) -> Query:
    return Query(query_id="q", text="How fast is {it}?", image=photo)


def text_of(prompt: Prompt) -> str:
    """The words of the user, pictures as <image>."""
    parts = [part for message in prompt if message.role == "user" for part in message.parts]
    return "".join(part if isinstance(part, str) else "<image>" for part in parts)


def test_a_slot_without_items_vanishes_with_its_header(car: Query) -> None:
    bare = "Image: <image>\nQuery: How fast is {it}?"
    assert text_of(render(CRAG.template("task_2"), car)) == bare
    assert text_of(render(CRAG.template("task_3"), car)) == bare
    nameless = render(CRAG.template("task_1"), car, [entity("a", ("Van", ""))])
    assert "Image search context" in text_of(nameless)
    assert "additional attributes" not in text_of(nameless)  # nobody has any


@given(
    st.lists(st.text(alphabet="ab{}\n ", min_size=1, max_size=40), max_size=8),
    st.integers(0, 150),
    st.sampled_from(["skip", "stop"]),
)
@settings(max_examples=200, deadline=None)
def test_a_budget_is_never_exceeded_and_the_order_is_kept(
    texts: list[str], budget: int, overflow: str
) -> None:
    slot = Slot(
        kind="documents",
        header="<h>",
        item="[{number}:{text}]",
        between=";",
        footer="</h>",
        budget=budget,
        overflow=overflow,
    )
    evidence = [Document(doc_id=str(n), text=text) for n, text in enumerate(texts)]
    prompt = render(Template("t", (slot,)), Query(query_id="q", text="?"), evidence)
    words = text_of(prompt)
    # the slow, obvious way: add one text after another, and look whether it still fits
    kept: list[str] = []
    for text in texts:
        tried = [f"[{n}:{each}]" for n, each in enumerate([*kept, text], start=1)]
        if len("<h>" + ";".join(tried) + "</h>") <= budget:
            kept.append(text)
        elif overflow == "stop":
            break
    expected = ";".join(f"[{n}:{text}]" for n, text in enumerate(kept, start=1))
    assert words == (f"<h>{expected}</h>" if kept else "")


def test_the_documents_sent_are_told_and_those_without_room_are_not() -> None:
    slot = Slot(kind="documents", item="{text};", budget=8)
    evidence = [Document(doc_id=text, text=text) for text in ("owl", "elephant", "elk")]
    sent = render_with_documents(Template("t", (slot,)), Query(query_id="q", text="?"), evidence)
    assert (text_of(sent.prompt), sent.doc_ids) == ("owl;elk;", ("owl", "elk"))


def test_a_document_that_repeats_another_is_not_told_as_sent(car: Query) -> None:
    evidence = [
        page("w", "Rovers", "slow"),
        entity("a", ("Rover", "")),
        entity("b", ("Rover", "")),
    ]
    sent = render_with_documents(CRAG.template("task_2"), car, evidence)
    assert sent.doc_ids == ("a", "w")  # the pages stand last, whatever was found first


def test_a_document_that_no_slot_shows_is_an_error(car: Query) -> None:
    with pytest.raises(VragError, match="document 'p' of query 'q' is shown by no slot"):
        render(PROMPTS.template("several_images"), car, [Document(doc_id="p", text="words")])


def test_one_wording_for_all_settings_that_show_documents() -> None:
    only = PROMPTS.use_template("several_images")
    names = {
        (setting, k): only.template_for(Context(query_id="q", setting=setting, k=k)).name
        for setting in only.settings
        for k in (0, 1, 5)
    }
    for k in (0, 1, 5):  # no image is no several images
        assert names.pop(("zero_shot", k)) == "no_image"
    assert set(names.values()) == {"several_images"}
    with pytest.raises(VragError, match="unknown template 'two_images'; expected one of no_image"):
        PROMPTS.use_template("two_images")


def test_a_wording_says_how_the_answers_to_it_are_read(tmp_path: Path) -> None:
    path = tmp_path / "prompts.json"
    templates = {"templates": {"plain": [{"kind": "question"}]}}
    for name, answer in (("tagged", "blue"), ("whole", "I see. Answer: blue")):
        path.write_text(json.dumps({"answer": name, **templates}), encoding="utf-8")
        assert read_prompts(path).read(" I see. Answer: blue\n")["answer"] == answer
    path.write_text(json.dumps({"answer": "letter", **templates}), encoding="utf-8")
    with pytest.raises(VragError, match="answer is 'letter'; expected one of tagged, whole"):
        read_prompts(path)
