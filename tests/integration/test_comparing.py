"""Saved answers stand on their own, and two runs are compared by them: who flipped, in both
directions, with the images that each prompt held; what cannot be compared is refused.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands import said
from IPython.core.interactiveshell import InteractiveShell
from model_stub import ModelStub

from vrag_kit.analysis import (
    config_diff,
    flips,
    load_answers,
    load_results,
    mean_scores,
    paired_answers,
    paired_differences,
    paired_tests,
    per_query,
    save_answers,
    save_collection_answers,
)
from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.errors import VragError
from vrag_kit.generation import Reply, Status, ask_models, gt_clue, non_clue
from vrag_kit.judging import RuleJudge, judge_answers, load_judge
from vrag_kit.papers.visual_rag.judge import PROMPTS, RUBRIC
from vrag_kit.types import Benchmark, Context, Prompt
from vrag_kit.widgets import flips_page
from vrag_kit.workspace import Workspace

Table = pd.DataFrame
RIGHT, WRONG = "Answer: black", "Answer: <b>red</b>"
ANSWERS = {
    "goose": {"back": RIGHT, "beak": RIGHT, "neck": RIGHT, "": WRONG},
    "gander": {"beak": WRONG, "neck": Status.REFUSED, "": RIGHT},
}
"""Model → its answers about parts: one improved in three, worsened in one and failed in one."""
PARTS = ("back", "beak", "feet", "tail", "eyes", "neck")
CHOSEN = {
    f"choose_{letter}": {"model": model, "setting": "gt_clue"}
    for letter, model in zip("ab", ANSWERS, strict=True)
}


@pytest.fixture(scope="module")
def birds(guide):
    """Six questions on images of the small guide, whose correct answer is black."""
    queries = {
        query_id: replace(
            guide.queries[query_id],
            text=f"What color is the {part}? <script>alert(1)</script>",
            answers=("black",),
        )
        for part, query_id in zip(PARTS, guide.queries, strict=False)
    }
    return replace(guide.subset(list(queries)), queries=queries)


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    return Workspace(answers_dir=tmp_path_factory.mktemp("answers"))


def ask(models: list[Any], benchmark: Benchmark, contexts: list[Context], at: Workspace) -> Table:
    """Judged answers; black is correct."""
    answers = ask_models(models, benchmark, contexts, at, prompts=PROMPTS)
    return judge_answers(RuleJudge(), benchmark, answers)


def save(table: Table, benchmark: Benchmark, at: Workspace, folder: Path) -> Path:
    """The folder in which a notebook saves its answers."""
    there = at.model_copy(update={"figures_dir": folder})
    save_answers(table, benchmark, there, "birds/03_birds")
    return folder


@pytest.fixture(scope="module")
def judged(birds, at):
    """Judged answers of both models to a clue, and to a non-clue."""
    models = [ModelStub(answers, name) for name, answers in ANSWERS.items()]
    return ask(models, birds, gt_clue(birds, draws=1) + non_clue(birds, draws=1), at)


@pytest.fixture
def figures(birds, judged, tmp_path, at):
    return save(judged, birds, at, tmp_path / "figures")


def both(answers: Table) -> Table:
    return paired_answers(answers, answers, **CHOSEN)


def test_saved_answers_are_plain(birds, judged, figures):
    answers = load_answers(figures)
    plain = pd.read_json(figures / "birds/03_birds.answers.jsonl.gz", lines=True)
    assert set(answers) == {*plain, "experiment"}
    assert set(answers["experiment"]) == {"birds/03_birds"}
    for name in judged:
        assert answers[name].dropna().tolist() == judged[name].dropna().tolist(), name
    queries = [birds.queries[query_id] for query_id in answers["query_id"]]
    assert answers["question"].tolist() == [query.text for query in queries]
    assert set(answers["references"]) == {"black"}
    for row in answers.itertuples():
        assert set(row.relevant) == set(row.doc_ids) & set(birds.relevant(row.query_id))
        assert len(row.relevant) == (row.setting == "gt_clue")
    pd.testing.assert_frame_equal(mean_scores(answers), mean_scores(judged))


def test_changes_are_listed_in_both_directions_and_a_refusal_is_none(figures):
    answers = load_answers(figures).query("setting == 'gt_clue'")
    answers = answers.assign(group=answers["query_id"])
    flipped = flips(both(answers))
    parts = flipped["question"].str.extract(r"the (\w+)\?")[0]
    directions = dict(zip(parts, flipped["direction"], strict=True))
    improved = dict.fromkeys(("feet", "tail", "eyes"), "n_improved")
    assert directions == {**improved, "beak": "n_worsened"}
    # of five questions the goose has back and beak, the gander back, feet, tail and eyes
    (row,) = paired_tests(both(answers)).to_dict("records")
    assert (row["value_a"], row["value_b"], row["n"], row["n_failed"]) == (0.4, 0.8, 5, 1)
    values = per_query(answers, by=["model", "setting"])
    found = paired_differences(values, arm="model", by=["setting"], baseline="goose")
    for name in ("value", "ci_low", "ci_high", "n", "n_failed"):
        assert row[name] == pytest.approx(found[name].item())


def test_answers_of_two_data_sets_lie_in_one_file_and_are_paired_each_with_its_own(
    birds, judged, tmp_path, at
):
    suite = {"wild": birds, "tame": replace(birds, name="tame birds")}
    there = at.model_copy(update={"figures_dir": tmp_path})
    tables = {name: judged.assign(benchmark=suite[name].name) for name in suite}
    save_collection_answers(tables, suite, there, "02_birds")
    pairs = both(load_answers(tmp_path))
    assert pairs.groupby("benchmark").size().to_dict() == {birds.name: 6, "tame birds": 6}
    tables["wild"] = judged.drop(columns="score")
    with pytest.raises(VragError, match="no column 'score'"):
        save_collection_answers(tables, suite, there, "x")


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        ("--a model=swan --b model=gander", "A has no model = 'swan'; found goose, gander"),
        ("--a modl=goose --b model=gander", "Did you mean 'model'?"),
        ("--a goose --b model=gander", "found 'goose', expected column=value"),
        ("--b model=goose", "model has several values on one side"),
    ],
)
def test_no_other_sides_are_compared(figures, sides, words, tmp_path):
    status, told = said("compare", str(figures), *sides.split(), "--to", str(tmp_path / "o"))
    assert (status, words in told) == (2, True), told


def test_damaged_missing_and_former_answers_are_named(figures, tmp_path):
    (file,) = figures.rglob("*.gz")
    (first, *_) = gzip.decompress(file.read_bytes()).splitlines()
    with pytest.raises(VragError, match="holds no results"):
        load_results(figures)
    with pytest.raises(VragError, match="found birds/03_birds"):
        load_answers(figures, only="04")
    with pytest.raises(VragError, match="no answers to compare"):
        load_answers(tmp_path / "nowhere")
    for name in ("parameters", "judge_prompt"):
        former = {key: value for key, value in json.loads(first).items() if key != name}
        file.write_bytes(gzip.compress(json.dumps(former).encode()))
        with pytest.raises(VragError, match=rf"jsonl\.gz line 1: .* expected .*{name}.* again"):
            load_answers(figures)
    file.write_bytes(gzip.compress(b'{"query_id": "q"}\n{"query_'))
    with pytest.raises(VragError, match=r"03_birds.answers.jsonl.gz line 2: not a table"):
        load_answers(figures)
    file.write_bytes(b"no archive")
    with pytest.raises(VragError, match=r"03_birds.answers.jsonl.gz: not a table of answers"):
        load_answers(file)


@pytest.mark.slow
def test_the_page_has_every_changed_answer_with_both_prompts_images_and_loads_nothing(
    birds, judged, figures, tmp_path, at
):
    """By one run of notebook 61: two folders, with a clue before the goose, and another image
    before the gander.
    """
    other, to = save(judged, birds, at, tmp_path / "later" / "figures"), tmp_path / "out"
    sides = ["--a", "model=goose", "--a", "setting=gt_clue"]
    sides += ["--b", "model=gander", "--b", "setting=non_clue", "--only", "03", "--to", str(to)]
    status, told = said("compare", str(figures), str(other), *sides)
    assert (status, "6 pairs of answers to 6 questions" in told) == (0, True), told
    page = (to / "compare.html").read_text(encoding="utf-8")
    assert page.count(">relevant<") == 4
    assert page.count("<img") == 1 + 8  # the figure, and two for each flip
    assert "<script" not in page
    assert "<b>red" not in page
    assert "&lt;b&gt;red&lt;/b&gt;" in page
    assert not re.search(r"(?:src|href)=['\"](?!data:|#)", page)
    assert str(tmp_path) not in page
    (row,) = pd.read_csv(to / "across/61_compare.csv").to_dict("records")
    assert (row["a"], row["b"]) == ("goose, clue (1 image)", "gander, non-clue (1 image)")
    assert (row["metric"], row["unit"]) == ("difference in score", "points")
    assert len(pd.read_csv(to / "across/61_flips.table.csv")) == 4
    for file in (to / "across").glob("*.table.csv"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"[\[(]'|(?:^|[,|\"] ?)/", text, re.MULTILINE), file


@contextmanager
def notebook(*cells: str) -> Iterator[None]:
    """While the block lasts, a notebook runs here that has executed these cells."""
    main = sys.modules["__main__"]
    shell = InteractiveShell.instance()
    try:
        for cell in cells:
            assert shell.run_cell(cell, store_history=True).success
        yield
    finally:
        InteractiveShell.clear_instance()
        sys.modules["__main__"] = main


def test_differing_settings_are_listed(birds, judged, tmp_path):
    """The parameters of A as its cell says, those of B as papermill puts them below it."""
    cell = 'clue_position = 0\nks = [1, 5]\ndecoding = {"temperature": 0, "max_new_tokens": 16}'
    injected = 'ks = [1, 5]\nclue_position = -1\ndecoding = {"temperature": 0}'
    template = "Question: {question}\nAnswer: {answer}\n" + "How well? " * 30
    here = Workspace(answers_dir=tmp_path)
    runs = {"a": ([cell], replace(RUBRIC, template=template)), "b": ([cell, injected], RUBRIC)}
    for name, (cells, rubric) in runs.items():
        judge = load_judge(ModelStub({"": "Score: 1"}), here, rubric=rubric)
        with notebook(*cells, "clue_position * 2"):
            save(judge_answers(judge, birds, judged[:2]), birds, here, tmp_path / name)
    table = config_diff(load_answers(tmp_path / "a"), load_answers(tmp_path / "b"))
    found = table.set_index("setting")[["A", "B"]]
    assert found.loc["clue_position"].tolist() == ["0", "-1"]
    assert found.loc["decoding.max_new_tokens"].tolist() == ["16", "–"]
    assert found.loc["judge_prompt", "A"] == template
    assert "{references}" in found.loc["judge_prompt", "B"]
    assert set(found.index.drop(["judge_id", "judge_prompt"])) == {
        *("clue_position", "decoding.max_new_tokens")
    }


class Served(ModelStub):
    """Its answers are what its endpoint calls it."""

    def generate(self, prompts: Sequence[Prompt]) -> list[str | Reply]:
        return [Reply(raw=RIGHT, fields={"served": each}) for each in super().generate(prompts)]


def test_models_that_an_endpoint_served_differ(birds, tmp_path):
    few, tables = birds.subset(list(birds.queries)[:2]), []
    for served in ({"": "2026"}, {"the back": "2027", "": "2026"}):
        here = Workspace(answers_dir=tmp_path / str(len(served)))
        rows = ask([Served(served, "goose")], few, gt_clue(few, draws=1), here)
        tables.append(load_answers(save(rows, few, here, tmp_path / str(len(served)))))
    found = config_diff(*tables).set_index("setting")
    assert found.loc["served_model", ["A", "B"]].tolist() == ["2026", "2026, 2027"]
    assert config_diff(tables[0], tables[0]).empty


def test_a_moved_project_shows_its_images_and_none_that_has_changed(
    write_annotations, tree, tmp_path, monkeypatch
):
    place = tmp_path / "a"
    for folder in ("notebooks", "params"):
        (place / folder).mkdir(parents=True)
    shutil.copytree(tree, place / "data" / "images")
    shutil.copy(write_annotations({}), place / "data")
    monkeypatch.chdir(place)
    geese = load_visual_rag(place / "data" / "annotations.jsonl", place / "data" / "images")
    (query_id,) = geese.queries
    contexts = [Context(query_id=query_id, setting="gt_clue", k=4, doc_ids=tuple(geese.corpus))]
    models = [ModelStub({"": RIGHT}, "goose"), ModelStub({"": WRONG}, "gander")]
    here = Workspace(answers_dir=place / "runs/answers")
    save(ask(models, geese, contexts, here), geese, here, place / "runs/figures")

    def counts() -> tuple[int, int]:
        page = str(flips_page(flips(both(load_answers("runs/figures")))).data)
        return page.count("<img"), page.count(">relevant<")

    monkeypatch.chdir(place.rename(tmp_path / "b"))
    assert counts() == (4, 1)
    for image in Path("data").rglob("a.jpg"):  # the clue
        shutil.copyfile(image.with_name("b.jpg"), image)
    assert counts() == (3, 0)
