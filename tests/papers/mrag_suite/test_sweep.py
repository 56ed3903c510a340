"""The prompt sweep: prompts with the paper's parts, selection on one half of the groups, and gains
over the mean of all prompts.
"""

from __future__ import annotations

import factories
import numpy as np
import pandas as pd
import pytest

from vrag_kit.errors import VragError
from vrag_kit.generation import build_prompt
from vrag_kit.generation.generators import prompt_text
from vrag_kit.papers import mrag_suite as mrag
from vrag_kit.papers.mrag_suite.prompts import (
    NO_EVIDENCE,
    TRAINED,
    prompt_gains,
    prompt_sweep,
    split_groups,
)
from vrag_kit.synthetic.mrag_suite import load_prompt_sweep, load_prompts_by_dataset
from vrag_kit.synthetic.mrag_suite.prompts import FIELD_GUIDE
from vrag_kit.types import Context, Document, Query


def swept(scores: dict[str, dict[str, float]], dataset: str = "x") -> pd.DataFrame:
    """Prompt → query → score; the query's first letter is its group."""
    tables = []
    for prompt, of in scores.items():
        groups = [name[0] for name in of]
        told = {"query_id": list(of), "score": list(of.values()), "group": groups}
        tables.append(factories.judged(**told, prompt=prompt))
    return pd.concat(tables, ignore_index=True).assign(dataset=dataset, metric="webqa_f1")


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """The means of a sweep: a row for each prompt."""
    return table.pivot(index="prompt", columns="half", values="value")


def selected(table: pd.DataFrame) -> list[str]:
    return list(table.loc[table["selected"], "prompt"].unique())


GROUPS = [chr(ord("a") + n) for n in range(20)]


def test_halves_are_of_groups_and_no_group_is_in_both() -> None:
    halves = split_groups(list("abcdeabcde"))
    assert sorted(halves.values()) == ["held_out"] * 3 + ["selection"] * 2
    assert halves == split_groups(list("edcba"))
    with pytest.raises(VragError, match="1 group cannot be halved"):
        split_groups(["a", "a"])


def test_the_best_prompt_is_selected_on_one_half_and_reported_on_the_other() -> None:
    halves = split_groups(GROUPS)
    lucky = {name: float(halves[name] == "selection") for name in GROUPS}
    table = prompt_sweep(swept({"lucky": lucky, "steady": dict.fromkeys(GROUPS, 0.75)}))
    assert selected(table) == ["lucky"]
    assert wide(table).loc["lucky", ["selection", "held_out"]].tolist() == [100, 0]
    assert (table["n"] == 10).all()


def test_a_control_is_never_selected_however_good_it_is() -> None:
    """By hand: means of 1 and 0.75 of the controls, 0.5 and 0.25 of the paper's; 0.5 is best."""
    means = {NO_EVIDENCE: 1.0, TRAINED: 0.75, "weak": 0.25, "good": 0.5}
    scores = {prompt: dict.fromkeys(GROUPS, mean) for prompt, mean in means.items()}
    assert selected(prompt_sweep(swept(scores))) == ["good"]


def test_a_control_is_found_in_each_stratum_and_moves_no_other() -> None:
    """Without evidence every learned question is right and no other; two prompts of the
    paper's get half of all, one up and one down by a tenth. Opposite effects, none pooled.
    """
    names = [f"{chr(ord('a') + n)}0" for n in range(24)]
    learned = dict.fromkeys(names[:12], 1.0) | dict.fromkeys(names[12:], 0.0)
    scores = {"one": dict.fromkeys(names, 0.6), "two": dict.fromkeys(names, 0.4)}
    table = swept({**scores, NO_EVIDENCE: learned})
    strata = table["query_id"].isin(names[:12]).map({True: "learned", False: "not learned"})
    apart = pd.concat([table.assign(stratum=strata), table.assign(stratum="all questions")])
    gains = prompt_gains(apart).set_index(["stratum", "prompt"])
    value = gains["value"].unstack("stratum").round(9)
    assert value.loc[NO_EVIDENCE].to_dict() == {
        "learned": 50,
        "not learned": -50,
        "all questions": 0,
    }
    assert (value.loc["one"] == 10).all()
    assert (
        gains.loc[["learned", "not learned"]].loc[(slice(None), NO_EVIDENCE), "p_holm"] < 0.05
    ).all()
    assert gains.loc[("all questions", NO_EVIDENCE), "p_holm"] == 1
    assert gains.loc["learned", "n"].tolist() == [12, 12, 12]


def test_a_question_counts_where_each_prompt_has_a_value() -> None:
    names = [f"{group}{n}" for group in "abcdefgh" for n in range(2)]
    scores = {prompt: dict.fromkeys(names, 0.5) for prompt in ("one", "two")}
    scores["two"]["a0"] = np.nan
    table = prompt_sweep(swept(scores))
    assert set(table["n_failed"]) == {1}
    assert table.groupby("prompt")["n"].sum().to_dict() == {"one": 15, "two": 15}
    assert selected(table) == ["one"]  # the first of equal ones


def test_the_papers_parts_follow_the_words_that_the_shipped_answerers_know() -> None:
    metadata = {"domain": "moths"}
    query = Query(query_id="q0", text="What is red?", answers=("it",), metadata=metadata)
    text = Document(doc_id="t", text="It is red.")
    suite = {"guide": factories.benchmark([query], [text], {"q0": {"t": 1}})}
    known = load_prompts_by_dataset(FIELD_GUIDE, suite)["guide"]
    prompts = load_prompt_sweep(FIELD_GUIDE, list(mrag.prompts.PROMPTS), suite)
    assert list(prompts) == list(mrag.prompts.PROMPTS)
    context = Context(query_id="q0", setting="both", k=1, doc_ids=("t",))
    plain = prompt_text(build_prompt(suite["guide"], context, known))
    for name, sets in prompts.items():
        words = prompt_text(build_prompt(suite["guide"], context, sets["guide"]))
        behind = words.removeprefix(plain)
        assert len(behind) + len(plain) == len(words)
        assert mrag.prompts.EXAMPLES[mrag.prompts.PROMPTS[name].example] in behind
        assert ("expert in moths" in behind) is (mrag.prompts.PROMPTS[name].init == "expert")
    own = load_prompt_sweep("paper", ["plain-ex1-direct"], suite)["plain-ex1-direct"]["guide"]
    assert "Short answer:" in prompt_text(build_prompt(suite["guide"], context, own))


def test_only_parts_that_a_prompt_has_are_shown() -> None:
    table = mrag.prompts.prompt_parts_table(["plain-ex1-direct", "expert-ex1-direct"])
    parts = [("opens", "plain"), ("opens", "expert"), ("style", "ex1"), ("reasoning", "direct")]
    assert table.index.tolist() == parts
    assert table.loc[("style", "ex1"), "words"] == mrag.prompts.EXAMPLES["ex1"]
