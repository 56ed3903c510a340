"""A custom class, named in a parameter or given as an object, is used as the kit's are."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from factories import benchmark
from own_project import Write

from vrag_kit.claims import forbid_self_check
from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.generation import ask_models, load_generator, zero_shot
from vrag_kit.judging import load_judge
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.retrieval import evaluate, load_encoder, make_run, search_all
from vrag_kit.types import Benchmark, Document, Query
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
def texts() -> Benchmark:
    """Two questions over three texts; `Letters` counts the letters a, b and c."""
    questions = {"q1": "a", "q2": "c c"}
    queries = [Query(query_id=q, text=t, group=q, answers=("1",)) for q, t in questions.items()]
    documents = {"a": "a aa", "b": "b b a", "c": "c"}
    corpus = [Document(doc_id=name, text=text) for name, text in documents.items()]
    return benchmark(queries, corpus)


def in_a_cell(code: str) -> dict[str, Any]:
    """The classes that a notebook's cell would define."""
    cell: dict[str, Any] = {}
    exec(code, cell)
    return cell


def ask(models: Any, texts: Benchmark, at: Workspace, **decoding: object) -> pd.DataFrame:
    """Their answers without any document."""
    return ask_models(models, texts, zero_shot(texts), at, prompts=PROMPTS, decoding=decoding)


@pytest.fixture
def encodes(texts: Benchmark, at: Workspace, capsys: pytest.CaptureFixture[str]) -> Encodes:
    """Whether a search by a retriever encodes the documents, and not those of before."""

    def encodes(entry: object) -> bool:
        search_all(texts, [entry], at=at, k=2)
        return "encoding" in capsys.readouterr().out

    return encodes


def test_a_search_is_made_once_and_again_when_the_class_or_an_option_changes(
    mine: Write, encodes: Encodes, tmp_path: Path
) -> None:
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


def test_the_key_of_a_class_is_that_of_its_stored_results(mine: Write) -> None:
    mine(LETTERS)
    found = load_encoder({"model": "mine:Letters", "bonus": 1.0, "name": "any"}).fingerprint
    assert found == "ea22a2098ba181594fa67d7d7101e1e51323696692c6b5cc5595fff61296ed96"
    mine(VERSIONED)
    found = load_encoder("mine:Letters").fingerprint
    assert found == "b2bbf3eed5f3a737a8d393d33fb989f2aca54c3b81db5294e3368b14a2c7d631"


def test_an_object_with_a_fingerprint_is_a_retriever(encodes: Encodes) -> None:
    with pytest.raises(VragError, match="fingerprint is None; expected a text that changes"):
        encodes(in_a_cell(LETTERS)["Letters"]())
    Letters = in_a_cell(VERSIONED)["Letters"]
    with pytest.raises(VragError, match=r"found the class; expected an object of it, Letters\(…\)"):
        encodes(Letters)
    assert [encodes(Letters(bonus)) for bonus in (1.0, 1.0, -5.0)] == [True, False, True]


def test_one_is_no_list(texts: Benchmark, at: Workspace) -> None:
    one: Any = {"model": "mine:Says"}
    run = make_run([("q1", "a", 1.0)])
    with pytest.raises(VragError, match=r"models is .*; expected a list, such as \[.*\]"):
        ask(one, texts, at)
    with pytest.raises(VragError, match=r"retrievers is .*; expected a list"):
        search_all(texts, one, at=at, k=1)
    with pytest.raises(VragError, match=r"metrics is .*; expected a list"):
        evaluate(run, {"q1": {"a": 1}}, metrics=one)


def test_two_objects_of_one_class_want_an_attribute_name(texts: Benchmark, at: Workspace) -> None:
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
    old: str, new: str, words: str, mine: Write, texts: Benchmark, at: Workspace
) -> None:
    mine(LETTERS.replace(old, new))
    with pytest.raises(VragError, match=f"^retriever '?Letters'?.*{words}"):
        search_all(texts, ["mine:Letters"], at=at, k=1)


@pytest.mark.parametrize("load", [load_encoder, load_judge, load_generator])
def test_a_parameter_file_starts_no_program(load: Callable[..., object], tmp_path: Path) -> None:
    started = tmp_path / "started"
    entry = {"model": "subprocess:Popen", "args": ["touch", str(started)]}
    with pytest.raises(VragError, match="found Popen with"):
        load(entry)
    time.sleep(0.2)
    assert not started.exists()


def test_options_make_other_answers(mine: Write, texts: Benchmark, at: Workspace) -> None:
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


def test_an_object_with_a_fingerprint_answers(texts: Benchmark, at: Workspace) -> None:
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
def test_what_is_wrong_with_a_model_is_said(
    model: str, words: str, mine: Write, texts: Benchmark, at: Workspace
) -> None:
    mine(SAYS)
    name, what = model.split(":")
    with pytest.raises(VragError, match=f"^model .*{words}"):
        ask([{"model": f"mine:{name}", "what": what}], texts, at)


def same(words: str, name: str = "same") -> dict[str, object]:
    """The entry of a class that always answers the same."""
    return {"model": "model_stub:ModelStub", "answers": {"": words}, "name": name}


def test_a_checker_is_another_model_where_options_of_a_class_differ() -> None:
    forbid_self_check(same("this"), [same("that")])
    with pytest.raises(VragError, match="it is an answerer too"):
        forbid_self_check(same("this", name="other"), [same("this")])
