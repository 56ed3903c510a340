"""A custom class, judge, rubric or setting, named in a parameter or given as an object, is used as
the kit's are.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import factories
import numpy as np
import pandas as pd
import pytest
import yaml
from model_stub import ModelStub
from own_project import shown
from readme_pages import README

from vrag_kit.claims import forbid_self_check
from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.generation import ask_models, load_generator, render, zero_shot
from vrag_kit.generation.prompts import PromptSet
from vrag_kit.judging import SHARES, Rubric, Scale, judge_answers, load_judge, scale_of
from vrag_kit.papers import mrag_bench
from vrag_kit.papers.crag_mm.parameters import load_prompts
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.retrieval import evaluate, load_encoder, make_run, search_all
from vrag_kit.types import Benchmark, Context, Document, Query
from vrag_kit.workspace import Workspace

Encodes = Callable[[object], bool]
LETTERS = """
import numpy as np

class Letters:
    def __init__(self, bonus: float = 0.0) -> None:
        self.bonus = bonus
    def _count(self, texts):
        return np.array([[text.count(each) + self.bonus for each in "abc"] for text in texts])
    def encode_queries(self, queries):
        return self._count([query.text for query in queries])
    def encode_documents(self, documents):
        print("encoding")
        return self._count([document.text for document in documents])
"""
VERSIONED = LETTERS.replace("    def __init__", '    fingerprint = "1"\n    def __init__')
SAYS = """
class Says:
    def __init__(self, word: str = "red", max_new_tokens: int = 1) -> None:
        self.word, self.most = word, max_new_tokens
    def generate(self, prompts):
        return [f"Answer: {self.word} {self.most}" for _ in prompts]

class Gives:
    def __init__(self, what) -> None:
        self.found = {
            "fewer": [], "none": [None], "mapping": {"q1": "red"},
            "late": (int("four") for _ in "x"),
        }[what]
    def generate(self, prompts):
        return ["1"] if "c c" in prompts[0][-1].parts[0] else self.found

class Coin:
    deterministic = False
    def generate(self, prompts, sample):
        return [f"Answer: {sample}" for _ in prompts]
"""


@pytest.fixture
def texts():
    """Two questions over three texts; `Letters` counts the letters a, b and c."""
    questions = {"q1": "a", "q2": "c c"}
    queries = [Query(query_id=q, text=t, group=q, answers=("1",)) for q, t in questions.items()]
    documents = {"a": "a aa", "b": "b b a", "c": "c"}
    corpus = [Document(doc_id=name, text=text) for name, text in documents.items()]
    return factories.benchmark(queries, corpus)


def in_a_cell(code: str) -> dict[str, Any]:
    """The classes that a notebook's cell would define."""
    cell: dict[str, Any] = {}
    exec(code, cell)
    return cell


def ask(models: Any, texts: Benchmark, at: Workspace, **decoding: object) -> pd.DataFrame:
    """Their answers without any document."""
    return ask_models(models, texts, zero_shot(texts), at, prompts=PROMPTS, decoding=decoding)


@pytest.fixture
def encodes(texts, at, capsys):
    """Whether a search by a retriever encodes the documents, and not those of before."""

    def encodes(entry: object) -> bool:
        search_all(texts, [entry], at=at, k=2)
        return "encoding" in capsys.readouterr().out

    return encodes


def test_a_changed_class_is_searched_again(mine, encodes, tmp_path):
    mine(LETTERS)
    with dry_run(tmp_path / "scratch") as forecast:
        encodes("mine:Letters")  # one text, to see what it gives
    assert forecast.any_order == {"Letters"}
    assert encodes("mine:Letters")
    with dry_run(tmp_path / "scratch") as forecast:
        assert not encodes("mine:Letters")
    assert not forecast.any_order
    assert encodes({"model": "mine:Letters", "bonus": 1.0})
    mine(LETTERS.replace('"abc"', '"cba"'))
    assert encodes("mine:Letters")
    mine(VERSIONED)
    assert encodes("mine:Letters")
    mine(f"{VERSIONED}# what a fingerprint says counts, not the file\n")
    assert not encodes("mine:Letters")


def test_the_key_of_a_class_is_that_of_its_stored_results(mine):
    mine(LETTERS)
    found = load_encoder({"model": "mine:Letters", "bonus": 1.0, "name": "any"}).fingerprint
    assert found == "ea22a2098ba181594fa67d7d7101e1e51323696692c6b5cc5595fff61296ed96"
    mine(VERSIONED)
    found = load_encoder("mine:Letters").fingerprint
    assert found == "b2bbf3eed5f3a737a8d393d33fb989f2aca54c3b81db5294e3368b14a2c7d631"


def test_an_object_with_a_fingerprint_is_a_retriever(encodes):
    with pytest.raises(VragError, match="fingerprint is None; expected a text that changes"):
        encodes(in_a_cell(LETTERS)["Letters"]())
    Letters = in_a_cell(VERSIONED)["Letters"]
    with pytest.raises(VragError, match=r"found the class; expected an object of it, Letters\(…\)"):
        encodes(Letters)
    assert [encodes(Letters(bonus)) for bonus in (1.0, 1.0, -5.0)] == [True, False, True]


def test_one_is_no_list(texts, at):
    one: Any = {"model": "mine:Says"}
    run = make_run([("q1", "a", 1.0)])
    with pytest.raises(VragError, match=r"models is .*; expected a list, such as \[.*\]"):
        ask(one, texts, at)
    with pytest.raises(VragError, match=r"retrievers is .*; expected a list"):
        search_all(texts, one, at=at, k=1)
    with pytest.raises(VragError, match=r"metrics is .*; expected a list"):
        evaluate(run, {"q1": {"a": 1}}, metrics=one)


def test_two_objects_of_one_class_want_an_attribute_name(texts, at):
    cell = in_a_cell(VERSIONED + SAYS)
    two = [cell["Letters"](), cell["Letters"](1.0)]
    models = [cell["Says"]("red", 1), cell["Says"]("blue", 1)]
    for each in models:
        each.fingerprint = "1"
    with pytest.raises(VragError, match=r"named 'Letters'.*a `name`"):
        search_all(texts, two, at=at, k=1)
    with pytest.raises(VragError, match=r"named 'Says'.* object a `name`"):
        ask(models, texts, at)
    two[1].name, models[1].name = "bonus", "blue"
    assert set(search_all(texts, two, at=at, k=1)) == {"Letters", "bonus"}
    answers = ask(models, texts, at).groupby("model")["answer"].unique().str[0]
    assert answers.to_dict() == {"Says": "red 1", "blue": "blue 1"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("self._count([q", "1 / 0 * ([q", r"encode_queries failed with Zero.* \(mine.py:10\)"),
        ("return np.array(", "return str(", "encode_documents returned str .* numbers"),
        ("in texts])", r"in texts][1:])", r"shape \(2, 3\) for 3 documents; .*\(3, d\)"),
        ("[query.text for query in queries])", "'aa')[:, :2]", "questions have 2 .* 3; expected"),
    ],
)
def test_a_failure_and_rows_that_do_not_fit_are_said_with_retriever_and_line(
    old, new, words, mine, texts, at
):
    mine(LETTERS.replace(old, new))
    with pytest.raises(VragError, match=f"^retriever '?Letters'?.*{words}"):
        search_all(texts, ["mine:Letters"], at=at, k=1)


@pytest.mark.parametrize("load", [load_encoder, load_judge, load_generator])
def test_a_parameter_file_starts_no_program(load, tmp_path):
    started = tmp_path / "started"
    entry = {"model": "subprocess:Popen", "args": ["touch", str(started)]}
    with pytest.raises(VragError, match="found Popen with"):
        load(entry)
    time.sleep(0.2)
    assert not started.exists()


def test_options_make_other_answers(mine, texts, at):
    mine(SAYS)
    entries = [{"model": "mine:Says", "word": word, "name": word} for word in ("red", "blue")]
    answers = ask(entries, texts, at, max_new_tokens=9)
    assert answers["answer"].tolist() == ["red 9", "red 9", "blue 9", "blue 9"]
    again = ask(entries[:1], texts, at, max_new_tokens=8)
    assert again["answer"].tolist() == ["red 8", "red 8"]
    samples = ask(["mine:Coin"], texts, at, samples=2)
    assert sorted(samples["answer"]) == ["0", "0", "1", "1"]
    with pytest.raises(VragError, match=r"2 samples .* decodes greedily"):
        ask(["mine:Says"], texts, at, samples=2)


def test_an_object_with_a_fingerprint_answers(texts, at):
    model = in_a_cell(SAYS)["Says"]("green", 5)
    with pytest.raises(VragError, match="its fingerprint is None"):
        ask([model], texts, at)
    model.fingerprint = "green, first version"
    assert set(ask([model], texts, at)["answer"]) == {"green 5"}


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("Gives:fewer", r"generate returned \[\] for 1 prompts"),
        ("Gives:none", "returned None for a prompt; expected a text"),
        ("Gives:mapping", r"generate returned \{.*\} for 1 prompts"),
        ("Gives:late", r"failed with ValueError: .* \(mine.py:\d+\)\. To record a failed call"),
    ],
)
def test_what_is_wrong_with_a_model_is_said(model, words, mine, texts, at):
    mine(SAYS)
    name, what = model.split(":")
    with pytest.raises(VragError, match=f"^model .*{words}"):
        ask([{"model": f"mine:{name}", "what": what}], texts, at)


def same(words: str, name: str = "same") -> dict[str, object]:
    """The entry of a class that always answers the same."""
    return {"model": "model_stub:ModelStub", "answers": {"": words}, "name": name}


def test_a_checker_is_another_model_where_options_of_a_class_differ():
    forbid_self_check(same("this"), [same("that")])
    with pytest.raises(VragError, match="it is an answerer too"):
        forbid_self_check(same("this", name="other"), [same("this")])


ONE = factories.benchmark(
    [Query(query_id="q0", text="Which colour?", answers=("red", "crimson"), group="g")]
)
JUDGES = """
class Scorer:
    scale = (-1, 1)
    def score(self, query, answer):
        return {"one": -1, "two": 0.5}.get(answer)

class Grades:
    scale = (1, 5)
    def score(self, query, answer):
        return {"one": 1, "two": 4, "three": 5}[answer]

class Beyond:
    def score(self, query, answer):
        return 2

class Fails:
    def score(self, query, answer):
        return {}[answer]

class Nothing:
    pass
"""
SPEAKER = """
from model_stub import ModelStub

speakers = []

class Speaker(ModelStub):
    def __init__(self):
        super().__init__({"pink": "-2", "": "Nearly.\\nScore: 0.75"})
        speakers.append(self)
"""


@pytest.fixture(scope="module")
def readme_rubric():
    """The rubric that the README shows."""
    known: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-x")  # its judge is an endpoint's, loaded and not asked
        exec(shown("share = Rubric"), known)
    rubric = known["share"]
    return rubric


def answers(*texts: str) -> pd.DataFrame:
    """Answers to the one question."""
    return factories.answers(query_id="q0", answer=list(texts))


def judged(rubric: Rubric, reply: str, folder: Path) -> pd.DataFrame:
    """An answer as a model that always replies so judges it."""
    judge = ModelStub({"": reply})
    judge.fingerprint = reply
    by = load_judge(judge, Workspace(answers_dir=folder), rubric=rubric)
    return judge_answers(by, ONE, answers("pink"))


def test_what_a_rubrics_functions_do_wrong_is_said(readme_rubric, tmp_path):
    rubric = replace(readme_rubric, fields=lambda query, answer: {}[answer])
    with pytest.raises(VragError, match=r"rubric: its fields failed with KeyError: .*custom.py:"):
        judged(rubric, "well", tmp_path)


def test_judges_of_one_name_have_keys_of_their_own(readme_rubric, tmp_path):
    other = replace(readme_rubric, template="Is {answer} any of {references}?")
    wide, same = replace(readme_rubric, scale=Scale(0.0, 2.0)), (readme_rubric, "1")
    keys = []
    for judge in (same, (other, "1"), (wide, "1"), (readme_rubric, "0.5"), same):
        table = judged(*judge, tmp_path / str(len(keys)))
        keys.append(table["judge_id"].item())
    assert len(set(keys)) == 4
    assert keys[4] == keys[0]


def test_a_rubric_of_a_parameter_file(mine, readme_rubric, tmp_path):
    """By the entry that the README shows, of another model."""
    blocks = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    (block,) = [code for code in blocks if "rubric:" in code]
    mine(SPEAKER)
    entry = {**yaml.safe_load(block)["judge"], "model": "mine:Speaker"}
    rubric = replace(readme_rubric, scale=Scale(-1, 1))
    judge = load_judge(entry, Workspace(answers_dir=tmp_path), rubric=rubric)
    table = judge_answers(judge, ONE, answers("{question}", "pink"), partial=True)
    np.testing.assert_array_equal(table["score"], [0.75, np.nan])
    first, _, again = sys.modules["mine"].speakers[-1].prompts
    assert first.startswith(
        "Question: Which colour?\nAccepted: red | crimson\nAnswer: {question}\nHow well does"
    )
    assert "Reply with a number from -1 to 1 alone." in again


def test_a_judge_takes_no_rubric(mine, readme_rubric):
    mine(JUDGES)
    with pytest.raises(VragError, match="'Scorer' scores by itself; expected no rubric beside it"):
        load_judge({"model": "mine:Scorer", "rubric": "{answer}"}, rubric=readme_rubric)


@pytest.mark.parametrize(
    ("name", "scores", "raw"),
    [("Scorer", [0, 0.75, np.nan, 0], "Scorer: 0.5"), ("Grades", [0, 0.75, 1, 0], "Grades: 4")],
)
def test_scores_go_from_0_to_1(name, scores, raw, mine):
    mine(JUDGES)
    rows = answers("one", "two", "three", "").assign(status=["ok"] * 3 + ["empty"])
    table = judge_answers(load_judge(f"mine:{name}"), ONE, rows)
    np.testing.assert_array_equal(table["score"], scores)
    assert scale_of(table) == SHARES
    assert table["verdict"][1] == raw


def test_an_object_judges_and_needs_no_fingerprint(mine):
    mine(JUDGES)
    own = in_a_cell(JUDGES)
    by_name = judge_answers(load_judge("mine:Grades"), ONE, answers("one", "two"))
    table = judge_answers(own["Grades"](), ONE, answers("one", "two"))
    assert set(table["judge_id"]) == {""}  # nobody knows whether it is the same class
    assert table.drop(columns="judge_id").equals(by_name.drop(columns="judge_id"))
    with pytest.raises(VragError, match=r"judge Nothing\(…\): found Nothing without score"):
        judge_answers(own["Nothing"](), ONE, answers("one"))
    with pytest.raises(VragError, match="found 'rule'; expected a judge"):
        judge_answers("rule", ONE, answers("one"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Beyond", r"score returned 2 for 'one' .*a number from 0 to 1"),
        ("Fails", r"judge Fails: .* KeyError: 'one' \(mine.py:18\)"),
    ],
)
def test_what_a_judge_gives_off_its_scale_is_said(name, words, mine):
    mine(JUDGES)
    with pytest.raises(VragError, match=words):
        judge_answers(load_judge(f"mine:{name}"), ONE, answers("one"))


QUERY = Query(query_id="q", text="Which colour?")
ONE_TEXT = factories.benchmark([QUERY], [Document(doc_id="d", text="red")])


def context(setting: str, k: int = 1) -> Context:
    return Context(query_id="q", setting=setting, k=k)


def ask_one(at: Workspace, prompts: PromptSet, *contexts: Context) -> pd.DataFrame:
    return ask_models([ModelStub({"": "red"})], ONE_TEXT, contexts, at, prompts=prompts)


@pytest.mark.parametrize(
    "source",
    ["{{ task }}{% include images %}", "{% for each in history %}{{ each.answer }}{% endfor %}"],
)
def test_a_prompt_without_its_question_is_asked_of_nobody(source, at):
    prompts = PROMPTS.with_templates({"mine": source}).with_settings({"mine": "mine"})
    with pytest.raises(VragError, match="setting 'mine': the question is not in its template"):
        ask_one(at, prompts, context("mine"))


def test_contexts_that_are_there_twice_are_asked_and_counted_once(at):
    twice = [context("zero_shot"), context("zero_shot", 2), context("zero_shot")]
    assert list(ask_one(at, PROMPTS, *twice)["k"]) == [1, 2]


def test_a_setting_takes_a_known_template_one_by_k_or_a_template_of_its_own():
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
    system, user = render(prompts.template_for(context("mine")), QUERY)
    task = PROMPTS.template("no_image").values["task"]
    assert (system.role, system.parts) == ("system", ("You know moths.",))
    assert (user.role, user.parts) == ("user", (f"{task} Which colour?\nLook twice.",))
    assert prompts.template_for(context("gt_clue")) == PROMPTS.template_for(context("gt_clue"))


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (["task"], r"setting 'mine' is \['task'\]; expected a template's name"),
        ({5: "one_image"}, "no template for the setting 'mine' at k = 3"),
    ],
)
def test_a_setting_without_template_is_named(template, words, at):
    with pytest.raises(VragError, match=words):
        PROMPTS.with_settings({"mine": template}).template_for(context("mine", 3))
    with pytest.raises(VragError, match=r"prompts.with_settings\(\{'clue_last': template\}\)"):
        ask_one(at, PROMPTS, context("clue_last"))


def test_a_prompt_set_that_is_not_known_is_named():
    for load in (mrag_bench.settings.load_prompts, load_prompts):
        with pytest.raises(VragError, match="prompt_set is 'papre'; expected paper, code, or a Y"):
            load("papre")
