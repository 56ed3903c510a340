"""MRAG-Suite's prompts, laid out: pictures before texts, nothing announced that is not
shown, and documents by what they are.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vrag_kit.benchmarks import ImageFile
from vrag_kit.benchmarks.transforms import restrict_to_modality
from vrag_kit.errors import VragError
from vrag_kit.generation import build_prompt, zero_shot
from vrag_kit.generation.evidence_modes import MODES
from vrag_kit.papers import mrag_suite as paper
from vrag_kit.papers.mrag_suite.prompts import domain_of
from vrag_kit.types import Benchmark, Context, Document, Prompt, Query

PHOTO = ImageFile(Path("photo.png"))
DOCUMENTS = [
    Document(doc_id="t1", text="It lives in Norland."),
    Document(doc_id="p1", image=PHOTO, text="A red moth"),
    Document(doc_id="p2", image=PHOTO, text="A moth at rest"),
]
BENCHMARK = Benchmark(
    name="small",
    fingerprint="small",
    queries={"q": Query(query_id="q", text="Where does it live?", choices=("Norland", "Osland"))},
    corpus={each.doc_id: each for each in DOCUMENTS},
    qrels={"q": {"t1": 1, "p1": 0}},
)
FORM = (
    "End with exactly two lines:\n"
    "Short answer: a word or a phrase, or one sentence where the question needs it\n"
    "Long answer: what the answer rests on, in full sentences, one fact each\n"
)


def words(prompt: Prompt, role: str) -> str:
    said = [each for message in prompt if message.role == role for each in message.parts]
    return "".join(each if isinstance(each, str) else "<image>" for each in said)


def worded(setting: str = "both", *doc_ids: str, **options: bool) -> Prompt:
    prompts = paper.prompts.suite_prompts(domain="moths", **options)
    context = Context(query_id="q", setting=setting, k=len(doc_ids), doc_ids=doc_ids)
    return build_prompt(BENCHMARK, context, prompts)


def test_pictures_precede_texts_and_an_expert_says_two_answers() -> None:
    prompt = worded("both", "t1", "p1", "p2")
    assert words(prompt, "system").startswith("You are an expert in moths. Analyze the question")
    assert words(prompt, "user") == (
        "<image><image>Passages:\nPassage 1: It lives in Norland.\n"
        "Style of an answer:\nQuestion + brief Explanation + Final Answer\n"
        "Answer directly without explaining your reasoning.\n"
        "Question: Where does it live?\n" + FORM
    )


def test_captions_and_options_are_shown_when_they_are_asked_for() -> None:
    said = words(worded("image", "p1", captions=True, options=True), "user")
    assert said.startswith("<image>\nText: A red moth\nStyle of an answer:")
    assert "Question: Where does it live?\nOptions:\n(A) Norland\n(B) Osland\nEnd with" in said
    bare = replace(BENCHMARK, corpus={"p1": Document(doc_id="p1", image=PHOTO)})
    context = Context(query_id="q", setting="image", k=1, doc_ids=("p1",))
    with pytest.raises(VragError, match="document 'p1' of query 'q'"):
        build_prompt(bare, context, paper.prompts.suite_prompts(domain="moths", captions=True))


def test_without_evidence_none_is_announced() -> None:
    (context,) = zero_shot(BENCHMARK)
    prompt = build_prompt(BENCHMARK, context, paper.prompts.suite_prompts(domain="moths"))
    assert words(prompt, "user").startswith("Style of an answer:")
    alone = worded("gt_only", "t1")
    assert words(alone, "user").startswith("Passages:\nPassage 1: It lives in Norland.\nStyle")


def test_twelve_prompts_differ_and_word_every_setting() -> None:
    assert set(MODES) < set(paper.prompts.SETTINGS)
    said = set()
    for name in paper.prompts.PROMPTS:
        prompts = paper.prompts.suite_prompts(name, domain=domain_of("WebQA"))
        for setting in paper.prompts.SETTINGS:
            context = Context(query_id="q", setting=setting, k=0)
            assert prompts.template_for(context).name == name
        prompt = build_prompt(BENCHMARK, Context(query_id="q", setting="text", k=0), prompts)
        said.add(words(prompt, "system") + words(prompt, "user"))
    assert len(said) == len(paper.prompts.PROMPTS) == 12


@pytest.mark.parametrize("name", ["best", "expert3", "expert-ex2-direct", ""])
def test_another_prompt_is_refused(name: str) -> None:
    with pytest.raises(VragError, match=f"prompt is '{name}'; expected one of plain-ex1-direct"):
        paper.prompts.suite_prompts(name, domain="moths")


def test_short_and_long_answers_are_read_of_the_same_prompt() -> None:
    raw = "It says so.\nShort answer: Norland\nLong answer: The moth lives in Norland."
    short, long = (
        paper.prompts.suite_prompts(domain="moths", answer=each) for each in ("short", "long")
    )
    assert short.templates == long.templates
    assert short.read(raw)["answer"] == "Norland"
    assert long.read(raw)["answer"] == "The moth lives in Norland."


def test_the_documents_of_a_modality_are_searched_and_labelled_alone() -> None:
    pools = replace(BENCHMARK, pools={"q": ("p2", "t1")})
    texts, pictures = restrict_to_modality(pools, "text"), restrict_to_modality(pools, "image")
    assert (set(texts.corpus), set(pictures.corpus)) == ({"t1"}, {"p1", "p2"})
    assert (texts.qrels, pictures.qrels) == ({"q": {"t1": 1}}, {"q": {"p1": 0}})
    assert (texts.candidates("q"), pictures.candidates("q")) == (("t1",), ("p2",))
    assert restrict_to_modality(BENCHMARK, "text").candidates("q") is None
    assert len({each.fingerprint for each in (pools, texts, pictures)}) == 3
    with pytest.raises(VragError, match="modality 'image'"):
        restrict_to_modality(texts, "image")
    with pytest.raises(VragError, match="modality 'sound'"):
        restrict_to_modality(texts, "sound")
