"""A setting of one's own goes where the kit's go: into prompts, tables, figures and
comparisons, under its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from vrag_kit.config import Workspace
from vrag_kit.errors import VragError
from vrag_kit.generation import ask_models, render
from vrag_kit.papers import mrag_bench
from vrag_kit.papers.crag_mm.prompts import load_prompts
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.types import Benchmark, Context, Document, Prompt, Query

QUERY = Query(query_id="q", text="Which colour?")


def asked_as(setting: str, k: int = 1) -> Context:
    return Context(query_id="q", setting=setting, k=k)


def few_texts() -> Benchmark:
    """One question over one text."""
    corpus = {"d": Document(doc_id="d", text="red")}
    return Benchmark(name="b", fingerprint="f", queries={"q": QUERY}, corpus=corpus, qrels={})


class Red:
    """Answers the same, always."""

    fingerprint = "1"

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        return ["Answer: red" for _ in prompts]


@pytest.mark.parametrize(
    "source",
    ["{{ task }}{% include images %}", "{% for each in history %}{{ each.answer }}{% endfor %}"],
)
def test_a_prompt_without_its_question_is_asked_of_nobody(source: str, tmp_path: Path) -> None:
    prompts = PROMPTS.with_templates({"mine": source}).with_settings({"mine": "mine"})
    with pytest.raises(VragError, match="setting 'mine': the question is not in its template"):
        ask_models(
            [Red()],
            few_texts(),
            [asked_as("mine")],
            Workspace(answers_dir=tmp_path),
            prompts=prompts,
        )


def test_contexts_that_are_there_twice_are_asked_and_counted_once(tmp_path: Path) -> None:
    twice = [asked_as("zero_shot"), asked_as("zero_shot", 2), asked_as("zero_shot")]
    table = ask_models(
        [Red()], few_texts(), twice, Workspace(answers_dir=tmp_path), prompts=PROMPTS
    )
    assert list(table["k"]) == [1, 2]


def test_a_setting_without_words_is_named_with_what_to_type(tmp_path: Path) -> None:
    few = Benchmark(name="b", fingerprint="f", queries={"q": QUERY}, corpus={}, qrels={})
    with pytest.raises(VragError, match=r"prompts.with_settings\(\{'clue_last': template\}\)"):
        ask_models(
            ["a-model-that-is-not-here"],
            few,
            [asked_as("clue_last")],
            Workspace(answers_dir=tmp_path),
            prompts=PROMPTS,
        )


def test_a_setting_takes_a_known_template_one_by_k_or_a_template_of_its_own() -> None:
    source = "{{ system }}You know moths.{{ user }}{{ task }} {{ question }}\nLook twice."
    prompts = PROMPTS.with_templates({"twice": source}).with_settings(
        {
            "like_one": "one_image",
            "by_k": {1: "one_image", "otherwise": "several_images"},
            "mine": "twice",
        }
    )
    assert prompts.template_for(asked_as("like_one")).name == "one_image"
    assert prompts.template_for(asked_as("by_k", 1)).name == "one_image"
    assert prompts.template_for(asked_as("by_k", 7)).name == "several_images"
    rendered = render(prompts.template_for(asked_as("mine")), QUERY)
    task = PROMPTS.template("no_image").values["task"]
    assert [(each.role, each.parts) for each in rendered] == [
        ("system", ("You know moths.",)),
        ("user", (f"{task} Which colour?\nLook twice.",)),
    ]
    assert prompts.template_for(asked_as("gt_clue")) == PROMPTS.template_for(asked_as("gt_clue"))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("sevral", "setting 'mine' names the template 'sevral'; expected one of no_image"),
        ({"one": "one_image"}, "setting 'mine': found 'one' as k; expected a number"),
        (["task"], r"setting 'mine' is \['task'\]; expected a template's name"),
    ],
)
def test_what_is_mistyped_in_the_words_of_a_setting_is_named(how: object, words: str) -> None:
    with pytest.raises(VragError, match=words):
        PROMPTS.with_settings({"mine": how})


def test_a_k_without_a_template_is_named() -> None:
    some = replace(PROMPTS, settings={**PROMPTS.settings, "mine": {5: "one_image"}})
    with pytest.raises(VragError, match="no template for the setting 'mine' at k = 3"):
        some.template_for(asked_as("mine", 3))


def test_what_names_no_wording_is_said(tmp_path: Path) -> None:
    with pytest.raises(
        VragError, match="prompt_set is 'papre'; expected paper, code, or a YAML file"
    ):
        mrag_bench.settings.load_prompts("papre")
    with pytest.raises(VragError, match="layout is 'papre'; expected paper, code, or a YAML file"):
        load_prompts("papre")
    for text, words in (("{", "no prompts can be read"), ("[]", "found no prompts; expected a")):
        file = tmp_path / "mine.yaml"
        file.write_text(text, encoding="utf-8")
        with pytest.raises(VragError, match=f"mine.yaml: {words}"):
            mrag_bench.settings.load_prompts(str(file))
