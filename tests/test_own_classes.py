"""Somebody's own class, named in a parameter or given as an object, is used as ours are."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml
from own_project import README, Checked, Write, shown

from vrag_kit.analysis import accuracy
from vrag_kit.errors import VragError
from vrag_kit.forecast import forecasting
from vrag_kit.generation import ask_models, load_generator, told_facts, zero_shot
from vrag_kit.judging import SHARES, TRUTH, Rubric, judge_all, load_judge, scale_of
from vrag_kit.own_modules import own_file, own_files, own_spec
from vrag_kit.papers import mrag_bench
from vrag_kit.papers.crag_mm.judges import load_truth_judge
from vrag_kit.papers.visual_rag import WORDING
from vrag_kit.retrieval import evaluate, load_encoder, make_run, search_all
from vrag_kit.runner.check import check_parameters
from vrag_kit.runner.finished import ingredients
from vrag_kit.runner.notebooks import run_notebooks
from vrag_kit.types import Benchmark, Evidence, Query


@pytest.fixture
def texts() -> Benchmark:
    """Two questions over three texts; the class below counts the letters a, b and c."""
    said = {"a": "a aa", "b": "b b a", "c": "c"}
    asked = {"q1": "a", "q2": "c c"}
    return Benchmark(
        name="letters",
        fingerprint="",
        queries={key: Query(query_id=key, text=text, group=key) for key, text in asked.items()},
        corpus={key: Evidence(doc_id=key, text=text) for key, text in said.items()},
        qrels={},
    )


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


def test_the_readmes_retriever_finds_what_has_the_colour_that_is_asked_for(
    mine: Write, guide: Benchmark, tmp_path: Path
) -> None:
    mine(shown("class ColourWords"))
    entry = yaml.safe_load(re.search(r"retrievers: (\[\{.*mine:.*\}\])", README)[1])[0]
    ((name, run),) = search_all(guide, [entry], k=3, cache_dir=tmp_path / "kept").items()
    assert name == "colours"
    query = next(iter(guide.queries.values()))
    words = np.array([np.ones(3)])
    for word, axis in (("red", 0), ("green", 1), ("blue", 2)):
        words[0, axis] += 2 * query.text.split().count(word)
    pool = guide.candidates(query.query_id) or tuple(guide.corpus)
    pictures = {each: np.asarray(guide.corpus[each].image.open()) for each in pool}
    means = {each: 1 + seen.mean((0, 1)) / 255 for each, seen in pictures.items()}
    scores = {each: (words @ mean).item() for each, mean in means.items()}
    best = sorted(scores, key=scores.get, reverse=True)[:3]
    found = run[run["query_id"] == query.query_id]
    assert list(found["doc_id"]) == best
    assert np.allclose(found["score"], [scores[each] for each in best], rtol=1e-5)


def test_a_search_is_made_once_and_again_when_the_class_or_an_option_changes(
    mine: Write, texts: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def encoded(entry: object) -> bool:
        search_all(texts, [entry], k=2, cache_dir=tmp_path / "kept")
        return "encoding" in capsys.readouterr().out

    mine(LETTERS)
    assert encoded("mine:Letters")
    assert not encoded("mine:Letters")
    assert encoded({"model": "mine:Letters", "bonus": 1.0})
    mine(LETTERS.replace('"abc"', '"cba"'))
    assert encoded("mine:Letters")
    for version in ("1", "2"):
        mine(
            LETTERS.replace("    def __init__", f'    fingerprint = "{version}"\n    def __init__')
        )
        assert encoded("mine:Letters")
        assert encoded({"model": "mine:Letters", "bonus": 1.0})
        assert not encoded({"model": "mine:Letters", "bonus": 1.0})


def test_an_object_is_a_retriever_too_once_it_says_what_its_vectors_are_kept_under(
    mine: Write, texts: Benchmark, tmp_path: Path
) -> None:
    mine(LETTERS)
    notebook: dict[str, type] = {}
    exec(LETTERS, notebook)  # as a cell would define it
    Letters = notebook["Letters"]
    with pytest.raises(VragError, match="fingerprint is None; expected a text that changes"):
        search_all(texts, [Letters()], k=1, cache_dir=tmp_path / "kept")
    own = Letters()
    own.fingerprint = "1"
    runs = search_all(texts, [own], k=1, cache_dir=tmp_path / "kept")
    by_name = search_all(texts, ["mine:Letters"], k=1, cache_dir=tmp_path / "kept")
    assert dict(zip(runs["Letters"]["query_id"], runs["Letters"]["doc_id"], strict=True)) == {
        "q1": "a",
        "q2": "c",
    }
    assert runs["Letters"].equals(by_name["Letters"])


def test_arguments_that_an_object_keeps_under_their_names_count_with_its_fingerprint(
    texts: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook: dict[str, type] = {}
    exec(LETTERS.replace("    def __init__", '    fingerprint = "1"\n    def __init__'), notebook)
    Letters = notebook["Letters"]

    def encoded(bonus: float) -> bool:
        search_all(texts, [Letters(bonus)], k=1, cache_dir=tmp_path)
        return "encoding" in capsys.readouterr().out

    assert [encoded(bonus) for bonus in (1.0, 1.0, -5.0, 1.0)] == [True, False, True, False]


def test_a_class_is_no_object_of_it(mine: Write, texts: Benchmark, tmp_path: Path) -> None:
    notebook: dict[str, type] = {}
    exec(LETTERS, notebook)
    with pytest.raises(VragError, match=r"found the class; expected an object of it, Letters\(…\)"):
        search_all(texts, [notebook["Letters"]], k=1, cache_dir=tmp_path)


def test_questions_and_documents_in_spaces_of_two_sizes_are_said(
    mine: Write, texts: Benchmark, tmp_path: Path
) -> None:
    mine(LETTERS.replace("[query.text for query in queries])", "['a' for _ in queries])[:, :2]"))
    words = r"retriever 'Letters': its vectors of questions have 2 .*kept/.* 3; expected as many"
    with pytest.raises(VragError, match=words):
        search_all(texts, ["mine:Letters"], k=1, cache_dir=tmp_path / "kept")


@pytest.mark.parametrize("given", ["mine:Says", {"model": "mine:Says"}, object()])
def test_one_is_no_list(given: object, texts: Benchmark, tmp_path: Path) -> None:
    words = r"is .*; expected a list, such as \[.*\]"
    with pytest.raises(VragError, match=f"models {words}"):
        ask_models(given, texts, zero_shot(texts), tmp_path, wording=WORDING)
    with pytest.raises(VragError, match=f"models {words}"):
        told_facts(given, texts)
    with pytest.raises(VragError, match=f"retrievers {words}"):
        search_all(texts, given, k=1, cache_dir=tmp_path)
    with pytest.raises(VragError, match=f"metrics {words}"):
        evaluate(make_run([("q1", "a", 1.0)]), {"q1": {"a": 1}}, metrics=given)


def test_two_objects_of_one_class_want_an_attribute_name(texts: Benchmark, tmp_path: Path) -> None:
    cell: dict[str, type] = {}
    exec(LETTERS + SAYS, cell)
    two = [cell["Letters"](), cell["Letters"](1.0)]
    models = [cell["Says"]("red", 1), cell["Says"]("blue", 1)]
    for each in (*two, *models):
        each.fingerprint = "1"
    with pytest.raises(VragError, match=r"named 'Letters'.*your object an attribute `name`"):
        search_all(texts, two, k=1, cache_dir=tmp_path)
    with pytest.raises(VragError, match=r"named 'Says'.*as an attribute of your own object"):
        asked(models, texts, tmp_path)
    two[1].name, models[1].name = "bonus", "blue"
    assert set(search_all(texts, two, k=1, cache_dir=tmp_path)) == {"Letters", "bonus"}
    answers = asked(models, texts, tmp_path)
    assert told_facts(models, texts) == {}
    assert set(zip(answers["model"], answers["answer"], strict=True)) == {
        ("Says", "red 1"),
        ("blue", "blue 1"),
    }


def test_two_of_one_class_want_names_of_their_own(
    mine: Write, texts: Benchmark, tmp_path: Path
) -> None:
    mine(LETTERS)
    other = {"model": "mine:Letters", "bonus": 1.0}
    with pytest.raises(VragError, match=r"two retrievers are named 'Letters'.*a `name` in its"):
        search_all(texts, ["mine:Letters", other], k=1, cache_dir=tmp_path)
    named = {**other, "name": "with-bonus"}
    assert set(search_all(texts, ["mine:Letters", named], k=1, cache_dir=tmp_path)) == {
        "Letters",
        "with-bonus",
    }


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("mein:Letters", r"no module 'mein'; in .* there is mine. Did you mean 'mine:Letters'\?"),
        ("other.part:Letters", "no module 'other'; .*Write it as .*other.py, or install it"),
        ("vrag_kit.retrival:Letters", "no module 'vrag_kit.retrival'; in .*vrag_kit there is"),
        (
            "mine:Leters",
            r"has no class 'Leters'; it has Letters, Half. Did you mean 'mine:Letters'",
        ),
        ({"model": "mine:Letters", "bonnus": 1}, "'bonnus'; its class takes bonus"),
        ("mine:Half", "found Half without encode_documents; expected the methods encode_queries"),
        ({"model": "mine:Letters", "bonus": "two"}, "bonus is 'two'; expected a number, such as"),
        ({"model": "mine:Letters", "bonus": True}, "bonus is True; expected a number"),
        ({"model": "mine:Letters", "name": "a/b"}, "its name is 'a/b'; expected a text without"),
    ],
)
def test_what_is_mistyped_is_named_with_what_there_is_and_what_to_type(
    mine: Write, entry: object, words: str
) -> None:
    mine(f"{LETTERS}\nclass Half:\n    def encode_queries(self, queries): ...\n")
    with pytest.raises(VragError, match=words):
        load_encoder(entry)


FAILING = """
import numpy as np

class Narrow:
    def prepare(self, document):
        return [np.uint8(len(each)) + 256 for each in document.text.split()]{prepare}
    def encode_queries(self, queries):
        return [[{query}] for query in queries]
    def encode_documents(self, prepared):
        return [[{document}] for each in prepared]
"""


@pytest.mark.parametrize(
    ("where", "code", "words"),
    [
        ("prepare", "", r"document 'a': prepare failed with OverflowError: .* \(mine.py:6\)"),
        ("query", "1 / (query.text != 'c c')", r"query 'q2': encode_queries .*Zero.*mine.py:8\)"),
        ("document", "1 / (each != 'b b a')", r"document 'b': encode_documents .*mine.py:10\)"),
        ("document", "1 / (len(prepared) - 3)", r"3 together, .*'a' to 'c', though not one alone"),
    ],
)
def test_a_failure_names_retriever_what_it_was_about_and_the_line(
    where: str, code: str, words: str, mine: Write, texts: Benchmark, tmp_path: Path
) -> None:
    fields = {"prepare": "", "query": "1", "document": "1"} | {where: code}
    text = FAILING.format(**fields)
    if where != "prepare":
        text = text.replace(
            "[np.uint8(len(each)) + 256 for each in document.text.split()]", "document.text"
        )
    mine(text)
    with pytest.raises(VragError, match=f"^retriever 'narrow', .*{words}"):
        search_all(texts, [{"model": "mine:Narrow", "name": "narrow"}], k=1, cache_dir=tmp_path)


@pytest.mark.parametrize("later", ["", "from __future__ import annotations\n"])
def test_an_option_of_the_type_that_its_class_says_is_taken(mine: Write, later: str) -> None:
    mine(f"{later}{LETTERS}".replace("bonus: float = 0.0", "bonus: float = 0.0, name: str = None"))
    load_encoder({"model": "mine:Letters", "bonus": 2})
    with pytest.raises(VragError, match="bonus is '2'; expected a number"):
        load_encoder({"model": "mine:Letters", "bonus": "2"})


def test_a_module_that_fails_says_with_what(mine: Write) -> None:
    mine("import nothing_of_that_name")
    with pytest.raises(VragError, match="importing mine needs 'nothing_of_that_name'"):
        load_encoder("mine:Letters")
    mine("1 / 0")
    with pytest.raises(VragError, match="importing mine failed with ZeroDivisionError"):
        load_encoder("mine:Letters")


def test_rows_that_do_not_fit_are_refused_by_their_shape(
    mine: Write, texts: Benchmark, tmp_path: Path
) -> None:
    mine(LETTERS.replace("return np.array(", "return str("))
    with pytest.raises(VragError, match="encode_documents returned str, which is no array"):
        search_all(texts, ["mine:Letters"], k=1, cache_dir=tmp_path)
    trained = LETTERS.replace("return np.array(", "import torch; return torch.tensor(")
    mine(trained.replace("for text in texts])", "for text in texts], requires_grad=True)"))
    with pytest.raises(VragError, match=r"returned Tensor, which is no array .*requires grad"):
        search_all(texts, ["mine:Letters"], k=1, cache_dir=tmp_path)
    mine(LETTERS.replace("for text in texts])", "for text in texts][1:])"))
    with pytest.raises(VragError, match=r"shape \(2, 3\) for 3 documents; expected \(3, d\)"):
        search_all(texts, ["mine:Letters"], k=1, cache_dir=tmp_path)


def test_rows_may_come_one_after_the_other_and_what_fails_is_named(
    mine: Write, texts: Benchmark, tmp_path: Path
) -> None:
    mine(LETTERS)
    (usual,) = search_all(texts, ["mine:Letters"], k=2, cache_dir=tmp_path / "usual").values()
    mine(LETTERS.replace("return np.array(", "return iter("))
    (run,) = search_all(texts, ["mine:Letters"], k=2, cache_dir=tmp_path / "lazy").values()
    assert run.equals(usual)
    mine(LETTERS.replace('print("encoding")', '{}["colour"]'))
    words = r"retriever 'Letters', document .* failed with KeyError: 'colour' \(mine.py:12\)"
    with pytest.raises(VragError, match=words):
        search_all(texts, ["mine:Letters"], k=1, cache_dir=tmp_path / "failing")


def test_a_forecast_knows_what_was_searched_and_encodes_nothing(
    mine: Write, texts: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine(LETTERS)
    with forecasting(tmp_path / "scratch") as forecast:
        search_all(texts, ["mine:Letters"], k=1, cache_dir=tmp_path / "kept")
    assert forecast.any_order == {"Letters"}
    searched = search_all(texts, ["mine:Letters"], k=1, cache_dir=tmp_path / "kept")
    capsys.readouterr()
    with forecasting(tmp_path / "scratch") as forecast:
        again = search_all(texts, ["mine:Letters"], k=1, cache_dir=tmp_path / "kept")
    assert not forecast.any_order
    assert again["Letters"].equals(searched["Letters"])
    assert "encoding" not in capsys.readouterr().out


@pytest.mark.parametrize("load", [load_encoder, load_judge, load_generator])
def test_a_parameter_file_starts_no_program(load: Callable[..., object], tmp_path: Path) -> None:
    started = tmp_path / "started"
    entry = {"model": "subprocess:Popen", "args": ["touch", str(started)]}
    with pytest.raises(VragError, match="found Popen with"):
        load(entry)
    time.sleep(0.2)
    assert not started.exists()


def test_vrag_check_opens_such_a_class_and_says_what_is_wrong_with_it(
    checked: Checked,
) -> None:
    (checked.folder / "my_letters.py").write_text(LETTERS, encoding="utf-8")
    how = {"notebook": "visual_rag/02_retriever_comparison", "cache_dir": str(checked.folder)}
    assert checked.check(**how, retrievers=["my_letters:Letters"])[1] == []
    missing = checked.check(**how, retrievers=["my_letters:Leters"])[1]
    assert any("Did you mean 'my_letters:Letters'?" in line for line in missing), missing


def test_a_rerun_sees_that_the_classs_file_changed(mine: Write) -> None:
    file = mine(LETTERS)
    notebook = Path("notebooks", "own.ipynb").absolute()
    nbformat.write(nbformat.v4.new_notebook(), notebook)
    settings = {"retrievers": [{"model": "mine:Letters", "bonus": 1}]}
    assert own_file("mine:Letters") == file
    before = ingredients(notebook, {}, settings)["data"]
    assert before == ingredients(notebook, {}, settings)["data"]
    file.write_text(f"{LETTERS}\n# another", encoding="utf-8")
    assert before != ingredients(notebook, {}, settings)["data"]


def test_a_rerun_sees_that_a_module_changed_which_the_classs_file_imports(mine: Write) -> None:
    file = mine(f"import json\n\nfrom halves import HALF\n{LETTERS}")
    helper = file.with_name("halves.py")
    helper.write_text("from vrag_kit.types import Query\n\nHALF = 0.5", encoding="utf-8")
    assert own_files("mine:Letters") == sorted([file, helper])
    notebook = Path("notebooks", "own.ipynb").absolute()
    nbformat.write(nbformat.v4.new_notebook(), notebook)
    before = ingredients(notebook, {}, {"metrics": ["mine:Letters"]})["data"]
    helper.write_text("HALF = 0.25", encoding="utf-8")
    assert before != ingredients(notebook, {}, {"metrics": ["mine:Letters"]})["data"]
    file.write_text("def broken(:", encoding="utf-8")
    assert own_files("mine:Letters") == [file]


@pytest.mark.parametrize(
    "name", ["ViT-L-14/openai", "a:b@ollama", "gpt-4o@openai", "field-guide-clip-64", "x:7b"]
)
def test_other_names_are_no_classes(name: str) -> None:
    assert own_spec(name) is None
    assert own_spec({"model": name}) is None


def asked(models: list[object], benchmark: Benchmark, folder: Path, **run_with: object):
    """The table of their answers without any document."""
    contexts = zero_shot(benchmark)
    return ask_models(models, benchmark, contexts, folder, wording=WORDING, run_with=run_with)


def test_the_readmes_model_is_asked_once_and_the_readmes_judge_reads_it(
    mine: Write, guide: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine(shown("class FirstOption") + shown("class Contained"))
    answers = asked(["mine:FirstOption"], guide, tmp_path)
    assert set(answers["model"]) == {"FirstOption"}
    assert set(answers["status"]) == {"ok"}
    assert all("seen in 0 pictures" in answer for answer in answers["answer"])
    capsys.readouterr()
    assert asked(["mine:FirstOption"], guide, tmp_path).equals(answers)
    assert f"{len(guide.queries)} from the store; " in capsys.readouterr().out
    judged = judge_all(load_judge("mine:Contained"), guide, answers)
    for row in judged.itertuples():
        accepted = guide.queries[row.query_id].answers
        assert row.score == any(each.lower() in row.answer.lower() for each in accepted)


def test_who_changes_a_class_is_told_why_it_is_asked_again(
    mine: Write, guide: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = [{"model": "mine:Says", "word": "red"}]
    mine(SAYS)
    asked(models, guide, tmp_path)
    asked(models, guide, tmp_path)
    assert "by other code" not in capsys.readouterr().out
    mine(SAYS + "# and a remark\n")
    asked(models, guide, tmp_path)
    told = [line for line in capsys.readouterr().out.splitlines() if "by other code" in line]
    (line,) = told
    assert line.startswith(f"note: model 'Says': to {len(guide.queries)} of these calls there are")
    assert line.endswith("They are asked again")
    asked(models, guide, tmp_path)
    assert "by other code" not in capsys.readouterr().out


def test_the_readmes_model_chooses_an_option_where_there_are_some_and_what_cannot_be_read_is_said(
    mine: Write, drawn: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine(shown("class FirstOption") + SAYS)
    contexts = mrag_bench.no_rag(drawn)
    models = ["mine:FirstOption", {"model": "mine:Says", "word": "Instruction"}]
    wording = mrag_bench.WORDINGS["paper"]
    answers = ask_models(models, drawn, contexts, tmp_path, wording=wording)
    judged = judge_all(mrag_bench.ChoiceJudge(), drawn, answers)
    first = judged[judged["model"] == "FirstOption"]
    assert len(first) == len(drawn.queries)
    for row in first.itertuples():
        query = drawn.queries[row.query_id]
        assert row.verdict.startswith("A ")
        assert row.score == (query.choices[0] in query.answers)
    notes = [line for line in capsys.readouterr().out.splitlines() if "unreadable" in line]
    count = len(drawn.queries)
    assert notes == [
        f"note: Says: {count} of {count} answers are unreadable and earn the worst, such as"
        " 'Answer: Instruction 128'. See whether it says what is asked for, such as an option's"
        " letter."
    ]


SAYS = """
class Says:
    def __init__(self, word: str, max_new_tokens: int) -> None:
        self.word, self.most = word, max_new_tokens
    def generate(self, prompts):
        return [f"Answer: {self.word} {self.most}" for _ in prompts]

class Silent:
    def generate(self, prompts):
        return []

class Wrong:
    def generate(self, prompts):
        return [None for _ in prompts]

class Text:
    def generate(self, prompts):
        return "x"  # as long as the batch

class Mapped:
    def generate(self, prompts):
        return {"q1": "Answer: red"}

class Lazy:
    def generate(self, prompts):
        return (f"Answer: red" for _ in prompts)

class Fails:
    def generate(self, prompts):
        return [{}["colour"] for _ in prompts]

class FailsLate:
    def generate(self, prompts):
        return (int("four") for _ in prompts)

class Coin:
    deterministic = False
    def generate(self, prompts, sample):
        return [f"Answer: {sample}" for _ in prompts]
"""


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
    with pytest.raises(VragError, match="it decodes greedily"):
        asked([{"model": "mine:Says", "word": "red"}], texts, tmp_path, samples=2)


def test_an_object_answers_too_once_it_says_what_its_answers_are_kept_under(
    mine: Write, texts: Benchmark, tmp_path: Path
) -> None:
    notebook: dict[str, type] = {}
    exec(SAYS, notebook)  # as a cell would define it
    model = notebook["Says"]("green", 5)
    with pytest.raises(VragError, match="its fingerprint is None"):
        asked([model], texts, tmp_path)
    model.fingerprint = "green, first version"
    assert set(asked([model], texts, tmp_path)["answer"]) == {"green 5"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Silent", "generate returned 0 replies for 1 prompts; expected one for each"),
        ("Wrong", "generate returned None for a prompt; expected a text, or Reply"),
        ("Text", r"model Text: generate returned a text \('x'\); expected a list of texts"),
        ("Mapped", r"generate returned a dict \(.*\); expected a list of texts"),
        ("Fails", r"model Fails: its class Fails failed with KeyError: 'colour' \(mine.py:\d"),
        ("FailsLate", r"class FailsLate failed with ValueError: .* \(mine.py:3\d\)\."),
        ("Fails", r"Asked was ….*To record a failed call and go on, return Reply\(raw=None, fail"),
        ("Sayz", "no class 'Sayz'; it has Says, Silent, .*, Coin. Did you mean 'mine:Says'"),
    ],
)
def test_what_is_wrong_with_a_model_is_said(
    mine: Write, texts: Benchmark, tmp_path: Path, name: str, words: str
) -> None:
    mine(SAYS)
    with pytest.raises(VragError, match=words):
        asked([f"mine:{name}"], texts, tmp_path)


def test_replies_may_come_one_after_the_other(
    mine: Write, texts: Benchmark, tmp_path: Path
) -> None:
    mine(SAYS)
    assert set(asked(["mine:Lazy"], texts, tmp_path)["answer"]) == {"red"}


MUTE = """
from vrag_kit.generation import Reply

class Mute:
    def __init__(self, silence: str) -> None:
        self.silence = {"text": "", "blank": " ", "reply": Reply(raw=None)}[silence]
    def generate(self, prompts):
        return ["1" if "c c" in prompt[-1].parts[0] else self.silence for prompt in prompts]
"""


@pytest.fixture
def known(texts: Benchmark) -> Benchmark:
    """The same questions; "1" is accepted."""
    return replace(
        texts, queries={key: replace(each, answers=("1",)) for key, each in texts.queries.items()}
    )


@pytest.mark.parametrize("silence", ["text", "blank", "reply"])
def test_what_a_model_leaves_empty_is_its_answer_and_a_bad_one(
    silence: str, mine: Write, known: Benchmark, tmp_path: Path
) -> None:
    mine(MUTE)
    answers = asked([{"model": "mine:Mute", "silence": silence}], known, tmp_path)
    assert list(answers["status"]) == ["empty", "ok"]
    row = accuracy(judge_all(load_judge("normalised_em"), known, answers)).iloc[0]
    assert (row["value"], row["n"], row["n_empty"], row["n_failed"]) == (0.5, 2, 1, 0)


FOGGY = """
from vrag_kit.generation import Failure, Reply, Status

class Foggy:
    def generate(self, prompts):
        failed = Reply(raw=None, failure=Failure(Status.ERROR, "too foggy"))
        return ["1" if "c c" in prompt[-1].parts[0] else failed for prompt in prompts]
"""


def test_a_call_that_a_class_says_failed_is_recorded_and_left_out(
    mine: Write, known: Benchmark, tmp_path: Path
) -> None:
    mine(FOGGY)
    answers = asked(["mine:Foggy"], known, tmp_path)
    assert list(answers["detail"]) == ["too foggy", ""]
    row = accuracy(judge_all(load_judge("normalised_em"), known, answers)).iloc[0]
    assert (row["value"], row["n"], row["n_failed"]) == (1, 1, 1)


def test_of_a_judge_an_empty_reply_is_no_verdict_and_is_counted(
    mine: Write, known: Benchmark, tmp_path: Path
) -> None:
    mine(MUTE)
    rubric = Rubric(scale=SHARES, prompt=lambda query, _: query.text, read=float, repair=str)
    judge = load_judge({"model": "mine:Mute", "silence": "text"}, tmp_path, rubric=rubric)
    answers = asked([{"model": "mine:Mute", "silence": "reply"}], known, tmp_path)
    answers = answers.assign(answer="red", status="ok")
    judged = judge_all(judge, known, answers)
    np.testing.assert_array_equal(judged["score"], [np.nan, 1])
    assert judged["verdict"][0] == "empty: the model ended without a word"
    row = accuracy(judged).iloc[0]
    assert (row["value"], row["n"], row["n_failed"]) == (1, 1, 1)


JUDGES = """
class Long:
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

class Texts:
    def score(self, query, answer):
        return "0.5"

class Fails:
    def score(self, query, answer):
        return {}[answer]

class Backward:
    scale = (1, 0)
    def score(self, query, answer):
        return 1

class Nothing:
    pass
"""


def answers_to_q1(*said: str) -> pd.DataFrame:
    """These answers, one of which the model left empty."""
    rows = [{"query_id": "q1", "answer": each, "status": "ok"} for each in said]
    rows.append({"query_id": "q1", "answer": "", "status": "empty"})
    return pd.DataFrame(rows).assign(detail="")


@pytest.mark.parametrize(
    ("name", "scores"), [("Long", [0, 0.75, np.nan, 0]), ("Grades", [0, 0.75, 1, 0])]
)
def test_scores_are_brought_to_the_scale_of_accuracy_and_words_stay(
    name: str, scores: list[float], mine: Write, texts: Benchmark
) -> None:
    mine(JUDGES)
    benchmark = replace(texts, queries={"q1": replace(texts.queries["q1"], answers=("two",))})
    judged = judge_all(load_judge(f"mine:{name}"), benchmark, answers_to_q1("one", "two", "three"))
    np.testing.assert_array_equal(judged["score"], scores)
    assert scale_of(judged) == SHARES
    raw = {"Long": ["Long: -1", "Long: 0.5"], "Grades": ["Grades: 1", "Grades: 4"]}
    assert list(judged["verdict"][:2]) == raw[name]


def test_where_truthfulness_is_asked_for_what_costs_stays_below_0(
    mine: Write, texts: Benchmark
) -> None:
    mine(JUDGES)
    judged = judge_all(load_truth_judge("mine:Long"), texts, answers_to_q1("one", "two")[:2])
    assert list(judged["score"]) == [-1, 0.5]
    assert scale_of(judged) == TRUTH


@pytest.mark.parametrize("name", ["mine:Grades", "mine:Beyond", "rule", "normalised_em"])
def test_a_judge_that_cannot_tell_wrong_from_missing_is_refused_where_truthfulness_is_asked_for(
    name: str, mine: Write
) -> None:
    mine(JUDGES)
    ends = "1 to 5" if name == "mine:Grades" else "0 to 1"
    with pytest.raises(VragError, match=f"^judge '{name}': its scale is {ends}") as refused:
        load_truth_judge(name)
    assert "give a judge with scale (-1, 1)" in str(refused.value)


@pytest.mark.parametrize("name", ["my_model:Grades", "my_model:Beyond", "my_model:Late", "rule"])
def test_the_check_and_the_run_refuse_such_a_judge_before_anything_is_asked(
    name: str, checked: Checked
) -> None:
    late = "class Late:\n    def __init__(self):\n        self.scale = (0, 2)\n"
    late = f"{late}    def score(self, query, answer):\n        return 1\n"
    (checked.folder / "my_model.py").write_text(f"{JUDGES}{late}", encoding="utf-8")
    file = checked.folder / "p.yaml"
    values = {"notebooks": ["crag_mm/52_crag_mm_single_turn"], "judge": name}
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    _, missing = check_parameters(file)
    with pytest.raises(VragError) as refused:
        run_notebooks([file])
    told = str(refused.value).removeprefix(f"{file}: ")
    assert told.startswith(f"judge {name!r}: its scale is ")
    assert missing == [told]


def test_a_scale_from_best_to_worst_is_refused_by_the_run_with_class_and_file(
    checked: Checked,
) -> None:
    (checked.folder / "my_model.py").write_text(JUDGES, encoding="utf-8")
    _, (told,) = checked.check("visual_rag/03_baselines", judge="my_model:Backward")
    assert re.match(r"judge 'my_model:Backward': the scale of Backward \(my_model\.py\) is", told)
    with pytest.raises(VragError, match=re.escape(told)):
        run_notebooks([checked.folder / "p.yaml"])


def test_an_object_judges_and_needs_no_fingerprint(mine: Write, texts: Benchmark) -> None:
    mine(JUDGES)
    own: dict[str, type] = {}
    exec(JUDGES, own)  # as a cell would define them
    answers = answers_to_q1("one", "two")[:2]
    by_name = judge_all(load_judge("mine:Grades"), texts, answers)
    judged = judge_all(own["Grades"](), texts, answers)
    assert set(judged["judge_key"]) == {""}  # whether it is the same class nobody knows
    assert judged.drop(columns="judge_key").equals(by_name.drop(columns="judge_key"))
    assert judge_all(load_judge(own["Grades"]()), texts, answers).equals(judged)
    with pytest.raises(
        VragError, match=r"judge Nothing\(…\): found Nothing with neither score nor"
    ):
        judge_all(own["Nothing"](), texts, answers)
    with pytest.raises(VragError, match="'rule', which scores nothing; expected a judge, as load"):
        judge_all("rule", texts, answers)


def test_what_a_judge_gives_off_its_scale_is_said(mine: Write, texts: Benchmark) -> None:
    mine(JUDGES)
    answers = answers_to_q1("one")[:1]
    with pytest.raises(VragError, match=r"score returned 2 for 'one' .*a number from 0 to 1"):
        judge_all(load_judge("mine:Beyond"), texts, answers)
    with pytest.raises(VragError, match=r"score returned '0.5' for 'one' .*a number from 0 to 1"):
        judge_all(load_judge("mine:Texts"), texts, answers)
    with pytest.raises(VragError, match=r"judge Fails: .* KeyError: 'one' \(mine.py:22\)"):
        judge_all(load_judge("mine:Fails"), texts, answers)
    with pytest.raises(
        VragError, match=r"scale of Backward \(mine.py\) is \(1, 0\).* the worst first"
    ):
        load_judge("mine:Backward")
    with pytest.raises(VragError, match="found Nothing with neither score nor generate"):
        load_judge("mine:Nothing")


def test_vrag_check_counts_what_such_a_model_would_be_asked_and_asks_nobody(
    checked: Checked,
) -> None:
    never = "def {}(self, *given): raise AssertionError"
    code = (
        f"class Model:\n    {never.format('generate')}\nclass Judge:\n    {never.format('score')}\n"
    )
    (checked.folder / "my_model.py").write_text(code, encoding="utf-8")
    how = {"notebook": "visual_rag/03_baselines", "answers_dir": str(checked.folder)}
    named = {"models": ["my_model:Model"], "judge": "my_model:Judge"}
    found, missing = checked.check(**how, **named)
    assert missing == []
    assert any("forecast: " in line for line in found)
    named = {"models": ["my_model:Modell"], "judge": "my_model:Jugde"}
    missing = checked.check(**how, **named)[1]
    for right in ("my_model:Model", "my_model:Judge"):
        assert any(f"Did you mean '{right}'?" in line for line in missing), missing


@pytest.mark.parametrize(("name", "returned"), [("Beyond", "2"), ("Texts", "'0.5'")])
def test_vrag_check_misses_a_judge_whose_score_is_off_its_scale(
    name: str, returned: str, checked: Checked
) -> None:
    (checked.folder / "my_model.py").write_text(f"{JUDGES}{REDDISH}", encoding="utf-8")
    how = {"answers_dir": str(checked.folder), "models": ["my_model:Says"]}
    _, missing = checked.check("visual_rag/03_baselines", **how, judge=f"my_model:{name}")
    (told,) = missing
    assert f"judge {name}: score returned {returned} for " in told


REDDISH = """
class Says:
    def generate(self, prompts):
        return ["Answer: red" for _ in prompts]
"""
VECTORS = """
import numpy as np

class Good:
    rows, d, value = 0, 3, 1.0
    def encode_queries(self, queries):
        return np.ones((len(queries), 3))
    def encode_documents(self, documents):
        return np.full((len(documents) + self.rows, self.d), self.value)

class Fewer(Good):
    rows = -1

class Other(Good):
    d = 4

class Nan(Good):
    value = np.nan
"""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Good", None),
        ("Fewer", "encode_documents returned shape (0, 3) for 1 documents"),
        ("Other", "its vectors of questions have 3 components, those of documents 4"),
        ("Nan", "has length nan, expected a finite number above 0"),
    ],
)
def test_vrag_check_misses_an_encoder_whose_vectors_no_search_takes(
    name: str, words: str | None, checked: Checked
) -> None:
    (checked.folder / "my_model.py").write_text(VECTORS, encoding="utf-8")
    how = {"retrievers": [f"my_model:{name}"], "cache_dir": str(checked.folder)}
    _, missing = checked.check("visual_rag/02_retriever_comparison", **how)
    assert len(missing) == (words is not None), missing
    assert words is None or words in missing[0]
