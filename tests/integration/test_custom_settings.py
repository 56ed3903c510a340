"""A setting of one's own goes where the kit's go: into prompts, tables, figures and
comparisons, under its name.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from factories import benchmark
from model_stub import ModelStub

from vrag_kit.errors import VragError
from vrag_kit.generation import ask_models, render
from vrag_kit.generation.prompts import PromptSet
from vrag_kit.papers import mrag_bench
from vrag_kit.papers.crag_mm.parameters import load_prompts
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.types import Context, Document, Query
from vrag_kit.workspace import Workspace

QUERY = Query(query_id="q", text="Which colour?")
ONE_TEXT = benchmark([QUERY], [Document(doc_id="d", text="red")])


def context(setting: str, k: int = 1) -> Context:
    return Context(query_id="q", setting=setting, k=k)


def ask(at: Workspace, prompts: PromptSet, *contexts: Context) -> pd.DataFrame:
    return ask_models([ModelStub({"": "red"})], ONE_TEXT, contexts, at, prompts=prompts)


@pytest.mark.parametrize(
    "source",
    ["{{ task }}{% include images %}", "{% for each in history %}{{ each.answer }}{% endfor %}"],
)
def test_a_prompt_without_its_question_is_asked_of_nobody(source: str, at: Workspace) -> None:
    prompts = PROMPTS.with_templates({"mine": source}).with_settings({"mine": "mine"})
    with pytest.raises(VragError, match="setting 'mine': the question is not in its template"):
        ask(at, prompts, context("mine"))


def test_contexts_that_are_there_twice_are_asked_and_counted_once(at: Workspace) -> None:
    twice = [context("zero_shot"), context("zero_shot", 2), context("zero_shot")]
    assert list(ask(at, PROMPTS, *twice)["k"]) == [1, 2]


def test_a_setting_takes_a_known_template_one_by_k_or_a_template_of_its_own() -> None:
    source = "{{ system }}You know moths.{{ user }}{{ task }} {{ question }}\nLook twice."
    templates = {
        "like_one": "one_image",
        "by_k": {1: "one_image", "otherwise": "several_images"},
        "mine": "twice",
    }
    prompts = PROMPTS.with_templates({"twice": source}).with_settings(templates)
    assert prompts.template_for(context("like_one")).name == "one_image"
    assert prompts.template_for(context("by_k", 1)).name == "one_image"
    assert prompts.template_for(context("by_k", 7)).name == "several_images"
    rendered = render(prompts.template_for(context("mine")), QUERY)
    task = PROMPTS.template("no_image").values["task"]
    assert [(each.role, each.parts) for each in rendered] == [
        ("system", ("You know moths.",)),
        ("user", (f"{task} Which colour?\nLook twice.",)),
    ]
    assert prompts.template_for(context("gt_clue")) == PROMPTS.template_for(context("gt_clue"))


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("sevral", "setting 'mine' names the template 'sevral'; expected one of no_image"),
        ({"one": "one_image"}, "setting 'mine': found 'one' as k; expected a number"),
        (["task"], r"setting 'mine' is \['task'\]; expected a template's name"),
        ({5: "one_image"}, "no template for the setting 'mine' at k = 3"),
    ],
)
def test_a_setting_without_template_is_named(template: object, words: str, at: Workspace) -> None:
    with pytest.raises(VragError, match=words):
        PROMPTS.with_settings({"mine": template}).template_for(context("mine", 3))
    with pytest.raises(VragError, match=r"prompts.with_settings\(\{'clue_last': template\}\)"):
        ask(at, PROMPTS, context("clue_last"))


def test_a_prompt_set_that_is_not_known_or_cannot_be_read_is_named(tmp_path: Path) -> None:
    for load in (mrag_bench.settings.load_prompts, load_prompts):
        with pytest.raises(VragError, match="prompt_set is 'papre'; expected paper, code, or a Y"):
            load("papre")
    file = tmp_path / "mine.yaml"
    for text, words in (("{", "no prompts can be read"), ("[]", "found no prompts; expected a")):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(VragError, match=f"mine.yaml: {words}"):
            mrag_bench.settings.load_prompts(str(file))
