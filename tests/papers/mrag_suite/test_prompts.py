"""MRAG-Suite's prompts, laid out: pictures before texts, nothing announced that is not shown; and
their sweep: selection on one half of the groups, and gains over the mean of all prompts.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from string import ascii_letters

import factories
import numpy as np
import pandas as pd
import pytest
from suite_questions import guide

from vrag_kit.benchmarks import ImageFile
from vrag_kit.benchmarks.transforms import restrict_to_modality
from vrag_kit.errors import VragError
from vrag_kit.generation import build_prompt
from vrag_kit.generation.evidence_modes import MODES
from vrag_kit.generation.generators import prompt_text
from vrag_kit.papers.mrag_suite import prompts as paper
from vrag_kit.synthetic.mrag_suite import load_prompt_sweep, load_prompts_by_dataset
from vrag_kit.synthetic.mrag_suite.prompts import FIELD_GUIDE
from vrag_kit.types import Benchmark, Context, Document, Query

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


def worded(setting: str = "both", *doc_ids: str, **options: bool) -> str:
    prompts = paper.suite_prompts(domain="moths", **options)
    context = Context(query_id="q", setting=setting, k=len(doc_ids), doc_ids=doc_ids)
    parts = chain.from_iterable(each.parts for each in build_prompt(BENCHMARK, context, prompts))
    return "".join(part if isinstance(part, str) else "<image>" for part in parts)


def test_pictures_precede_texts_and_an_expert_says_two_answers():
    prompt = worded("both", "t1", "p1", "p2")
    assert prompt.startswith("You are an expert in moths. Analyze the question")
    assert prompt.endswith(
        "<image><image>Passages:\nPassage 1: It lives in Norland.\n"
        "Style of an answer:\nQuestion + brief Explanation + Final Answer\n"
        "Answer directly without explaining your reasoning.\n"
        "Question: Where does it live?\n" + FORM
    )


def test_captions_and_options_are_shown_when_they_are_asked_for():
    said = worded("image", "p1", captions=True, options=True)
    assert "<image>\nText: A red moth\nStyle of an answer:" in said
    assert "Question: Where does it live?\nOptions:\n(A) Norland\n(B) Osland\nEnd with" in said
    bare = replace(BENCHMARK, corpus={"p1": Document(doc_id="p1", image=PHOTO)})
    context = Context(query_id="q", setting="image", k=1, doc_ids=("p1",))
    with pytest.raises(VragError, match="document 'p1' of query 'q'"):
        build_prompt(bare, context, paper.suite_prompts(domain="moths", captions=True))


def test_twelve_prompts_differ_and_word_every_setting():
    said = set()
    for name in paper.PROMPTS:
        prompts = paper.suite_prompts(name, domain=paper.domain_of("WebQA"))
        for setting in ("zero_shot", "top_k", *MODES):
            context = Context(query_id="q", setting=setting, k=0)
            said.add(prompt_text(build_prompt(BENCHMARK, context, prompts)))
    assert len(said) == len(paper.PROMPTS) == 12


@pytest.mark.parametrize("name", ["best", "expert3", "expert-ex2-direct", ""])
def test_another_prompt_is_refused(name):
    with pytest.raises(VragError, match=f"prompt is '{name}'; expected one of plain-ex1-direct"):
        paper.suite_prompts(name, domain="moths")


def test_the_documents_of_a_modality_are_searched_and_labelled_alone():
    pools = replace(BENCHMARK, pools={"q": ("p2", "t1")})
    texts, pictures = restrict_to_modality(pools, "text"), restrict_to_modality(pools, "image")
    assert (set(texts.corpus), set(pictures.corpus)) == ({"t1"}, {"p1", "p2"})
    assert (texts.qrels, pictures.qrels) == ({"q": {"t1": 1}}, {"q": {"p1": 0}})
    assert (texts.candidates("q"), pictures.candidates("q")) == (("t1",), ("p2",))
    assert len({each.fingerprint for each in (pools, texts, pictures)}) == 3
    with pytest.raises(VragError, match="modality 'image'"):
        restrict_to_modality(texts, "image")
    with pytest.raises(VragError, match="modality 'sound'"):
        restrict_to_modality(texts, "sound")


def swept(names: list[str], **scores: list[float] | np.ndarray) -> pd.DataFrame:
    """Scores of prompts; the first letter of a query is its group."""
    groups = [name[0] for name in names]
    table = factories.judged_arms(scores, ["prompt"], query_id=names, group=groups)
    return table.assign(dataset="x", metric="webqa_f1")


def selected(table: pd.DataFrame) -> list[str]:
    return list(table.loc[table["selected"], "prompt"].unique())


def test_halves_are_of_groups_and_no_group_is_in_both():
    halves = paper.split_groups(list("abcdeabcde"))
    assert sorted(halves.values()) == ["held_out"] * 3 + ["selection"] * 2
    assert halves == paper.split_groups(list("edcba"))
    with pytest.raises(VragError, match="found 1 group"):
        paper.split_groups(["a", "a"])


def test_the_best_prompt_is_selected_on_one_half_and_reported_on_the_other():
    groups = list(ascii_letters[:20])
    halves = paper.split_groups(groups)
    lucky = [float(halves[name] == "selection") for name in groups]
    table = paper.prompt_sweep(swept(groups, lucky=lucky, steady=[0.75] * 20))
    assert selected(table) == ["lucky"]
    lucky_means = table[table["prompt"] == "lucky"].set_index("half")["value"]
    assert lucky_means.to_dict() == {"selection": 100, "held_out": 0}
    assert (table["n"] == 10).all()


def test_a_control_is_found_in_each_stratum_and_moves_no_other():
    """Without evidence every learned question is right and no other; two prompts get 0.6 and 0.4
    of all questions.
    """
    names = list(ascii_letters[:24])
    scores = {"one": [0.6] * 24, "two": [0.4] * 24, paper.NO_EVIDENCE: [1.0] * 12 + [0.0] * 12}
    table = swept(names, **scores)
    strata = table["query_id"].isin(names[:12]).map({True: "learned", False: "others"})
    both = pd.concat([table.assign(stratum=strata), table.assign(stratum="all")])
    gains = paper.prompt_gains(both)
    value = gains.pivot(index="prompt", columns="stratum", values="value").round(9)
    assert value.loc[paper.NO_EVIDENCE].to_dict() == {"learned": 50, "others": -50, "all": 0}
    assert (value.loc["one"] == 10).all()
    p = gains[gains["prompt"] == paper.NO_EVIDENCE].set_index("stratum")["p_holm"]
    assert (p[["learned", "others"]] < 0.05).all()
    assert p["all"] == 1


def test_a_question_counts_where_each_prompt_has_a_value():
    names = [f"{group}{n}" for group in "abcdefgh" for n in range(2)]
    table = paper.prompt_sweep(swept(names, one=[0.5] * 16, two=[np.nan] + [0.5] * 15))
    assert set(table["n_failed"]) == {1}
    assert table.groupby("prompt")["n"].sum().to_dict() == {"one": 15, "two": 15}
    assert selected(table) == ["one"]  # the first of equal ones


def test_the_papers_parts_follow_the_words_that_the_shipped_answerers_know():
    suite = {"guide": guide(1)}
    context = Context(query_id="q0", setting="both", k=1, doc_ids=("t",))
    known = load_prompts_by_dataset(FIELD_GUIDE, suite)["guide"]
    plain = prompt_text(build_prompt(suite["guide"], context, known))
    for name, sets in load_prompt_sweep(FIELD_GUIDE, paper.PROMPTS, suite).items():
        words = prompt_text(build_prompt(suite["guide"], context, sets["guide"]))
        assert words.startswith(plain)
        parts = name.split("-")
        assert paper.EXAMPLES[parts[1]] in words
        assert ("expert in moths" in words) is (parts[0] == "expert")
