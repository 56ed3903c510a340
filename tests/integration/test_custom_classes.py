"""A custom class, named in a parameter or given as an object, is used as the kit's are."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from own_project import FINDING_BOOK, Checked, Write

from vrag_kit.analysis import trained_groups
from vrag_kit.config import Workspace
from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.generation import ask_models, load_generator, zero_shot
from vrag_kit.judging import load_judge
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.retrieval import evaluate, load_encoder, make_run, search_all
from vrag_kit.types import Benchmark, Document, Query

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
from vrag_kit.generation import Failure, Reply, Status

class Says:
    def __init__(self, word: str = "red", max_new_tokens: int = 1) -> None:
        self.word, self.most = word, max_new_tokens
    def generate(self, prompts):
        return [f"Answer: {self.word} {self.most}" for _ in prompts]

class Gives:
    def __init__(self, what) -> None:
        failed = Reply(raw=None, failure=Failure(Status.ERROR, "too foggy"))
        self.found = {
            "fewer": [], "none": [None], "text": "x", "mapping": {"q1": "red"},
            "lazy": (each for each in ["red"]), "late": (int("four") for _ in "x"),
            "empty": [""], "failed": [failed],
        }[what]
    def generate(self, prompts):
        return ["1"] if "c c" in prompts[0][-1].parts[0] else self.found

class Fails:
    def generate(self, prompts):
        return [{}["colour"] for _ in prompts]

class Coin:
    deterministic = False
    def generate(self, prompts, sample):
        return [f"Answer: {sample}" for _ in prompts]
"""


@pytest.fixture
def texts() -> Benchmark:
    """Two questions over three texts; `Letters` counts the letters a, b and c."""
    said = {"a": "a aa", "b": "b b a", "c": "c"}
    asked = {"q1": "a", "q2": "c c"}
    return Benchmark(
        name="letters",
        fingerprint="",
        queries={
            key: Query(query_id=key, text=text, group=key, answers=("1",))
            for key, text in asked.items()
        },
        corpus={key: Document(doc_id=key, text=text) for key, text in said.items()},
        qrels={},
    )


def in_a_cell(code: str) -> dict[str, Any]:
    """The classes that a notebook's cell would define."""
    cell: dict[str, Any] = {}
    exec(code, cell)
    return cell


def asked(models: list[object], benchmark: Benchmark, folder: Path, **decoding: object):
    """The table of their answers without any document."""
    contexts = zero_shot(benchmark)
    return ask_models(
        models,
        benchmark,
        contexts,
        Workspace(answers_dir=folder),
        prompts=PROMPTS,
        decoding=decoding,
    )


def test_a_search_is_made_once_and_again_when_the_class_or_an_option_changes(
    mine: Write, texts: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def encoded(entry: object) -> bool:
        search_all(texts, [entry], at=Workspace(cache_dir=tmp_path / "kept"), k=2)
        return "encoding" in capsys.readouterr().out

    mine(LETTERS)
    with dry_run(tmp_path / "scratch") as forecast:
        encoded("mine:Letters")  # one text, to see what it gives
    assert forecast.any_order == {"Letters"}
    assert encoded("mine:Letters")
    with dry_run(tmp_path / "scratch") as forecast:
        assert not encoded("mine:Letters")
    assert not forecast.any_order
    assert encoded({"model": "mine:Letters", "bonus": 1.0})
    mine(LETTERS.replace('"abc"', '"cba"'))
    assert encoded("mine:Letters")
    mine(VERSIONED)
    assert encoded("mine:Letters")
    mine(f"{VERSIONED}# what a fingerprint says counts, not the file\n")
    assert not encoded("mine:Letters")
    assert encoded({"model": "mine:Letters", "bonus": 1.0})


def test_the_key_of_a_class_is_that_of_its_stored_results(mine: Write) -> None:
    mine(LETTERS)
    found = load_encoder({"model": "mine:Letters", "bonus": 1.0, "name": "any"}).fingerprint
    assert found == "ea22a2098ba181594fa67d7d7101e1e51323696692c6b5cc5595fff61296ed96"
    mine(VERSIONED)
    found = load_encoder("mine:Letters").fingerprint
    assert found == "b2bbf3eed5f3a737a8d393d33fb989f2aca54c3b81db5294e3368b14a2c7d631"


def test_an_object_is_a_retriever_too_once_it_says_what_its_vectors_are_kept_under(
    texts: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def encoded(own: object) -> bool:
        search_all(texts, [own], at=Workspace(cache_dir=tmp_path / "kept"), k=1)
        return "encoding" in capsys.readouterr().out

    with pytest.raises(VragError, match="fingerprint is None; expected a text that changes"):
        encoded(in_a_cell(LETTERS)["Letters"]())
    Letters = in_a_cell(VERSIONED)["Letters"]
    with pytest.raises(VragError, match=r"found the class; expected an object of it, Letters\(…\)"):
        encoded(Letters)
    assert [encoded(Letters(bonus)) for bonus in (1.0, 1.0, -5.0)] == [True, False, True]


def test_one_is_no_list(texts: Benchmark, tmp_path: Path) -> None:
    given: Any = {"model": "mine:Says"}
    words = r"is .*; expected a list, such as \[.*\]"
    with pytest.raises(VragError, match=f"models {words}"):
        ask_models(given, texts, zero_shot(texts), Workspace(answers_dir=tmp_path), prompts=PROMPTS)
    with pytest.raises(VragError, match=f"models {words}"):
        trained_groups(given, texts)
    with pytest.raises(VragError, match=f"retrievers {words}"):
        search_all(texts, given, at=Workspace(cache_dir=tmp_path), k=1)
    with pytest.raises(VragError, match=f"metrics {words}"):
        evaluate(make_run([("q1", "a", 1.0)]), {"q1": {"a": 1}}, metrics=given)


def test_two_objects_of_one_class_want_an_attribute_name(texts: Benchmark, tmp_path: Path) -> None:
    cell = in_a_cell(LETTERS + SAYS)
    two = [cell["Letters"](), cell["Letters"](1.0)]
    models = [cell["Says"]("red", 1), cell["Says"]("blue", 1)]
    for each in (*two, *models):
        each.fingerprint = "1"
    with pytest.raises(VragError, match=r"named 'Letters'.*a `name`"):
        search_all(texts, two, at=Workspace(cache_dir=tmp_path), k=1)
    with pytest.raises(VragError, match=r"named 'Says'.* object a `name`"):
        asked(models, texts, tmp_path)
    two[1].name, models[1].name = "bonus", "blue"
    assert set(search_all(texts, two, at=Workspace(cache_dir=tmp_path), k=1)) == {
        "Letters",
        "bonus",
    }
    answers = asked(models, texts, tmp_path)
    assert trained_groups(models, texts) == {}
    assert set(zip(answers["model"], answers["answer"], strict=True)) == {
        ("Says", "red 1"),
        ("blue", "blue 1"),
    }


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("self._count([q", "1 / 0 * ([q", r"encode_queries failed with Zero.* \(mine.py:10\)"),
        ("return np.array(", "return str(", "encode_documents returned str .* numbers"),
        ("in texts])", r"in texts][1:])", r"shape \(2, 3\) for 3 documents; .*\(3, d\)"),
        (
            "[query.text for query in queries])",
            "'aa')[:, :2]",
            "questions have 2 .* 3; expected as",
        ),
    ],
)
def test_a_failure_and_rows_that_do_not_fit_are_said_with_retriever_and_line(
    old: str, new: str, words: str, mine: Write, texts: Benchmark, tmp_path: Path
) -> None:
    mine(LETTERS.replace(old, new))
    with pytest.raises(VragError, match=f"^retriever '?Letters'?.*{words}"):
        search_all(texts, ["mine:Letters"], at=Workspace(cache_dir=tmp_path), k=1)


@pytest.mark.parametrize("load", [load_encoder, load_judge, load_generator])
def test_a_parameter_file_starts_no_program(load: Callable[..., object], tmp_path: Path) -> None:
    started = tmp_path / "started"
    entry = {"model": "subprocess:Popen", "args": ["touch", str(started)]}
    with pytest.raises(VragError, match="found Popen with"):
        load(entry)
    time.sleep(0.2)
    assert not started.exists()


def test_options_reach_the_class_and_make_other_answers(
    mine: Write, texts: Benchmark, tmp_path: Path
) -> None:
    mine(SAYS)
    entries = [{"model": "mine:Says", "word": word, "name": word} for word in ("red", "blue")]
    answers = asked(entries, texts, tmp_path, max_new_tokens=9)
    assert list(zip(answers["model"], answers["answer"], strict=True)) == [
        *[("red", "red 9")] * 2,
        *[("blue", "blue 9")] * 2,
    ]
    again = asked(entries[:1], texts, tmp_path, max_new_tokens=8)
    assert set(again["answer"]) == {"red 8"}


def test_samples_of_a_class_that_decodes_by_chance_are_told_apart(
    mine: Write, texts: Benchmark, tmp_path: Path
) -> None:
    mine(SAYS)
    answers = asked(["mine:Coin"], texts, tmp_path, samples=2)
    assert sorted(answers["answer"]) == ["0", "0", "1", "1"]
    with pytest.raises(VragError, match=r"2 samples .* decodes greedily"):
        asked(["mine:Says"], texts, tmp_path, samples=2)


def test_an_object_answers_too_once_it_says_what_its_answers_are_kept_under(
    texts: Benchmark, tmp_path: Path
) -> None:
    model = in_a_cell(SAYS)["Says"]("green", 5)
    with pytest.raises(VragError, match="its fingerprint is None"):
        asked([model], texts, tmp_path)
    model.fingerprint = "green, first version"
    assert set(asked([model], texts, tmp_path)["answer"]) == {"green 5"}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"model": "mine:Gives", "what": "fewer"}, r"generate returned \[\] for 1 prompts"),
        ({"model": "mine:Gives", "what": "none"}, "returned None for a prompt; expected a text"),
        ({"model": "mine:Gives", "what": "text"}, "generate returned 'x' for 1 prompts"),
        ({"model": "mine:Gives", "what": "mapping"}, r"generate returned \{.*\} for 1 prompts"),
        ({"model": "mine:Gives", "what": "late"}, r"failed with ValueError: .* \(mine.py:\d+\)"),
        ("mine:Fails", r"failed with KeyError: 'colour' \(mine.py:\d+\)\. To record a failed call"),
    ],
)
def test_what_is_wrong_with_a_model_is_said(
    mine: Write, texts: Benchmark, tmp_path: Path, entry: object, words: str
) -> None:
    mine(SAYS)
    with pytest.raises(VragError, match=f"^model .*{words}"):
        asked([entry], texts, tmp_path)


def test_vrag_check_misses_an_encoder_whose_vectors_no_search_takes(checked: Checked) -> None:
    code = LETTERS.replace("in texts])", "in texts][1:])")
    (checked.folder / "my_model.py").write_text(code, encoding="utf-8")
    _, (fault,) = checked.check(FINDING_BOOK, retrievers=["my_model:Letters"])
    assert "returned shape (0,) for 1 queries; expected numbers of shape (1, d)" in fault
