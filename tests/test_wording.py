"""Wording is data: the prompts of three protocols come out of JSON files alone, as they
are printed.

CRAG-MM's are in its appendix A.4, those of MRAG-Bench in B.1.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from vrag_kit.benchmarks import ImageFile
from vrag_kit.errors import VragError
from vrag_kit.generation import read_wording, render
from vrag_kit.generation.rendering import rendered
from vrag_kit.generation.slots import Slot
from vrag_kit.generation.wording import Template
from vrag_kit.papers.crag_mm import WORDINGS as WORDINGS_CRAG
from vrag_kit.papers.mrag_bench import WORDINGS
from vrag_kit.papers.visual_rag.wording import WORDING
from vrag_kit.types import Context, Evidence, Message, Prompt, Query, Turn

CRAG = WORDINGS_CRAG["paper"]
SYSTEM = """\
You are a helpful assistant that truthfully answers the user question given an image.
Please follow these guidelines when formulating your response:
1. Your response must be grounded in the image and based on factual information.
2. Keep your response concise and to the point. Strive to answer in one sentence.
3. If you are uncertain or don't know the answer, respond with "I don't know"."""


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> ImageFile:
    path = tmp_path_factory.mktemp("photo") / "photo.png"
    Image.new("RGB", (4, 4)).save(path)
    return ImageFile(path)


@pytest.fixture(scope="module")
def car(photo: ImageFile) -> Query:
    return Query(query_id="q", text="How fast is {it}?", image=photo)


def entity(doc_id: str, *entities: tuple[str, object]) -> Evidence:
    listed = [{"entity_name": name, "entity_attributes": about} for name, about in entities]
    return Evidence(doc_id=doc_id, metadata={"source": "image_search", "entities": listed})


def page(doc_id: str, title: str, snippet: str) -> Evidence:
    return Evidence(
        doc_id=doc_id, text=snippet, metadata={"source": "web_search", "page_name": title}
    )


def text_of(prompt: Prompt, role: str = "user") -> str:
    """The words of one role, pictures as <image>."""
    return "".join(
        part if isinstance(part, str) else "<image>"
        for message in prompt
        if message.role == role
        for part in message.parts
    )


def test_crag_mm_with_both_searches_reads_as_the_paper_prints_it(car: Query) -> None:
    evidence = [
        entity("a", ("Rover {1}", {"top speed": "9 km/h"}), ("Van", None)),
        entity("b", ("Rover {1}", {"top speed": "10 km/h"})),
        page("w1", "Rovers", "They are {slow}."),
        page("w2", "Vans", "They are not."),
    ]
    prompt = render(CRAG.template("task_2"), car, evidence)
    assert [message.role for message in prompt] == ["system", "user"]
    assert prompt[0].parts == (SYSTEM,)
    assert (
        text_of(prompt)
        == """\
Image: <image>
Image search context:
Here is a list of entity names retrieved based on visual similarity to the provided image:
Rover {1}, Van
Here are some additional attributes for some of the entities. Only incorporate this information \
into your answer ONLY IF you are confident the referenced entity is in the provided image.
Entity 1: Rover {1}
Entity attributes: {
  "top speed": "9 km/h"
}
Incorporate these image entity information into your answer ONLY IF you are confident they refer \
to the exact same entity. Disregard them otherwise.
You are given snippets from web page search results based on this question: "How fast is {it}?". \
These page snippets may or may not contain relevant or truthful information about the question. \
Incorporate these information into your answer ONLY IF you are confident they address the \
question. Disregard them otherwise.
Web search context:
<DOC>
Webpage ID: 1
Title: Rovers
Web content snippet: They are {slow}.
</DOC>
<DOC>
Webpage ID: 2
Title: Vans
Web content snippet: They are not.
</DOC>
Incorporate these web search results into your answer ONLY IF you are confident they contain \
relevant or truthful information about the question. Disregard them otherwise.
Query: How fast is {it}?"""
    )


def test_a_slot_without_items_vanishes_with_its_header(car: Query) -> None:
    bare = "Image: <image>\nQuery: How fast is {it}?"
    assert text_of(render(CRAG.template("task_2"), car)) == bare
    assert text_of(render(CRAG.template("task_3"), car)) == bare
    nameless = render(CRAG.template("task_1"), car, [entity("a", ("Van", ""))])
    assert "Image search context" in text_of(nameless)
    assert "additional attributes" not in text_of(nameless)  # nobody has any


def test_earlier_turns_stand_as_text_or_as_messages(car: Query) -> None:
    said = [Turn("What is it?", "A car."), Turn("Whose?", "Mine.")]
    turn = replace(car, conversation_id="c", turn=2)
    prompt = render(CRAG.template("mm_llm"), turn, history=said)
    assert text_of(prompt) == (
        "Image: <image>\nConversation history: User: What is it?\nAssistant: A car.\n"
        "User: Whose?\nAssistant: Mine.\nQuery: How fast is {it}?"
    )
    assert "multi-turn conversations" in text_of(prompt, "system")
    spoken = render(CRAG.template("task_3 as the code"), turn, [page("w", "T", "s")], said)
    assert [message.role for message in spoken] == [
        *("system", "user", "user"),
        *("user", "assistant", "user", "assistant"),
        "user",
    ]
    assert spoken[1].parts == (car.image,)
    assert spoken[4] == Message(role="assistant", parts=("A car.",))
    assert spoken[-1].parts == ("How fast is {it}?",)


def test_mrag_bench_shows_the_asked_picture_first_then_the_retrieved_ones(
    photo: ImageFile, tmp_path: Path
) -> None:
    Image.new("RGB", (2, 2)).save(tmp_path / "other.png")
    other = ImageFile(tmp_path / "other.png")
    query = Query(query_id="q", text="What is it?", image=photo, choices=("a hare", "a rabbit"))
    shown = [Evidence(doc_id="d", image=other), Evidence(doc_id="e", image=other)]
    (message,) = render(WORDINGS["paper"].template("examples"), query, shown)
    assert message.parts[1:4] == (photo, other, other)
    assert message.parts[4] == (
        "\nQuestion: What is it?\nChoices:\n(A) a hare\n(B) a rabbit\nAnswer:"
    )
    (message,) = render(WORDINGS["code"].template("alone"), query)
    assert message.parts == (
        "Answer with the option's letter from the given choices directly. ",
        photo,
        "\nWhat is it?\n Choices:\nA: a hare\nB: a rabbit",
    )


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
    evidence = [Evidence(doc_id=str(n), text=text) for n, text in enumerate(texts)]
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
    evidence = [Evidence(doc_id=text, text=text) for text in ("owl", "elephant", "elk")]
    sent = rendered(Template("t", (slot,)), Query(query_id="q", text="?"), evidence)
    assert (text_of(sent.prompt), sent.doc_ids) == ("owl;elk;", ("owl", "elk"))


def test_a_document_that_repeats_another_is_not_told_as_sent(car: Query) -> None:
    evidence = [
        page("w", "Rovers", "slow"),
        entity("a", ("Rover", "")),
        entity("b", ("Rover", "")),
    ]
    sent = rendered(CRAG.template("task_2"), car, evidence)
    assert sent.doc_ids == ("a", "w")  # the pages stand last, whatever was found first


def test_a_sections_budget_covers_all_that_is_in_it(car: Query) -> None:
    long = [(f"Entity {n}", {"about": "x" * 1500}) for n in range(20)]
    words = text_of(render(CRAG.template("task_1"), car, [entity("a", *long)]))
    context = words[words.index("Image search context") : words.index("Query:")]
    assert 6_000 < len(context) <= 8_000
    assert context.count("Entity attributes") == 4
    assert "Entity 19" in context  # every name is there


def test_a_document_that_no_slot_shows_is_an_error(car: Query) -> None:
    with pytest.raises(VragError, match="document 'p' of query 'q' is shown by no slot"):
        render(WORDING.template("several_images"), car, [Evidence(doc_id="p", text="words")])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "pictures"}, "kind is 'pictures'; expected one of text, question"),
        ({"kind": "documents", "itme": "{text}"}, "unknown field 'itme'; expected kind, role"),
        ({"kind": "documents"}, "its item shows nothing"),
        ({"kind": "question", "header": "{number}"}, "header or footer holds {number}"),
        ({"kind": "question", "role": "assistant"}, "role is 'assistant'"),
        ({"kind": "question", "when": "never"}, "when is 'never'; expected one of alone, talk"),
        ({"like": "picture", "item": "{image}"}, "no slot 'picture'; expected a mapping"),
        ("picture", "no slot 'picture'; expected a mapping, or one of"),
    ],
)
def test_a_slot_that_makes_no_sense_is_named(change: object, words: str, tmp_path: Path) -> None:
    path = tmp_path / "wording.json"
    path.write_text(json.dumps({"templates": {"mine": [change]}}), encoding="utf-8")
    with pytest.raises(VragError) as caught:
        read_wording(path)
    assert f"{path}: template 'mine': {words}" in str(caught.value)


def test_one_wording_for_all_settings_that_show_documents() -> None:
    only = WORDING.only("several_images")
    names = {
        (setting, k): only.template_of(Context(query_id="q", setting=setting, k=k)).name
        for setting in only.settings
        for k in (0, 1, 5)
    }
    for k in (0, 1, 5):  # no image is no several images
        assert names.pop(("zero_shot", k)) == "no_image"
    assert set(names.values()) == {"several_images"}
    with pytest.raises(VragError, match="unknown template 'two_images'; expected one of no_image"):
        WORDING.only("two_images")


def test_a_wording_says_how_the_answers_to_it_are_read(tmp_path: Path) -> None:
    path = tmp_path / "wording.json"
    templates = {"templates": {"plain": [{"kind": "question"}]}}
    for name, answer in (("tagged", "blue"), ("whole", "I see. Answer: blue")):
        path.write_text(json.dumps({"answer": name, **templates}), encoding="utf-8")
        assert read_wording(path).read(" I see. Answer: blue\n")["answer"] == answer
    path.write_text(json.dumps({"answer": "letter", **templates}), encoding="utf-8")
    with pytest.raises(VragError, match="answer is 'letter'; expected one of tagged, whole"):
        read_wording(path)
