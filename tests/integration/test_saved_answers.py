"""Saved answers stand on their own: a table for any program, whose relevant documents are
among those that were shown, and whose pictures are known wherever the project lies.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest
from strange_server import StrangeServer

from vrag_kit.analysis import flips, load_answers, paired_answers, save_answers
from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.errors import VragError
from vrag_kit.generation import ask_models, gt_clue, one_in_k, zero_shot
from vrag_kit.judging import RuleJudge, judge_answers
from vrag_kit.papers.mrag_suite.modes import SuiteEvidence
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.synthetic.mrag_suite import open_suite
from vrag_kit.types import Benchmark, Context
from vrag_kit.widgets import flips_page


def judged(benchmark: Benchmark, shown: Sequence[Context] | pd.DataFrame) -> pd.DataFrame:
    """A judged answer to each context."""
    if not isinstance(shown, pd.DataFrame):
        shown = pd.DataFrame({"query_id": each.query_id, "doc_ids": each.doc_ids} for each in shown)
    groups = [benchmark.queries[each].group for each in shown["query_id"]]
    return shown.assign(group=groups, answer="red", status="ok", score=1.0)


def checked(benchmark: Benchmark, table: pd.DataFrame, folder: Path) -> int:
    """How many saved answers were shown a document that answers their question."""
    save_answers(table, benchmark, folder, "01_mine", folder)
    saved = pd.read_json(folder / "01_mine.answers.jsonl.gz", lines=True)
    assert len(saved) == len(table)
    with_gold = 0
    for row in saved.to_dict("records"):
        gold = set(row["doc_ids"]) & set(benchmark.relevant(str(row["query_id"])))
        assert set(row["relevant"]) == gold
        assert gold <= set(benchmark.corpus)
        with_gold += bool(gold)
    return with_gold


def test_relevant_are_the_shown_ids_that_answer_in_visual_rag(
    guide: Benchmark, tmp_path: Path
) -> None:
    gold = gt_clue(guide, draws=1) + one_in_k(guide, ks=[5], draws=1)
    assert checked(guide, judged(guide, zero_shot(guide) + gold), tmp_path) == len(gold)


@pytest.mark.slow
def test_relevant_are_the_shown_ids_that_answer_in_mrag_suite(tmp_path: Path) -> None:
    benchmark = open_suite("field-guide-mrag-suite-small", ["Chart-MRAG"])["Chart-MRAG"]
    each = {"retrievers": {"image": ["bm25"], "text": ["bm25"]}, "k": {"image": 3, "text": 3}}
    modes = SuiteEvidence(**each, questions=8, cache_dir=tmp_path)
    contexts = modes.modes(benchmark)
    gold = [each for each in contexts if each.setting != "distractors_only"]
    assert 0 < len(gold) < len(contexts)
    assert checked(benchmark, judged(benchmark, contexts), tmp_path) == len(gold)


Project = Callable[[str], Path]


@pytest.fixture
def goose(
    write_annotations: Callable[..., Path],
    tree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A project, now the current folder, in which two models were asked about a goose."""
    place = tmp_path / "a"
    for folder in ("notebooks", "params"):
        (place / folder).mkdir(parents=True)
    shutil.copytree(tree, place / "data" / "images")
    shutil.copy(write_annotations({}), place / "data")
    monkeypatch.chdir(place)
    tables = []
    for name, said in (("goose", "black"), ("gander", "red")):
        with StrangeServer({"goose": [f"say Answer: {said}"]}) as server:
            model = {"model": f"m@{server.url}", "name": name, "decoding": {"temperature": 0}}
            benchmark, contexts = asked(place)
            answers = place / "runs" / "answers"
            tables.append(ask_models([model], benchmark, contexts, answers, prompts=PROMPTS))
    table = judge_answers(RuleJudge(), benchmark, pd.concat(tables, ignore_index=True))
    save_answers(table, benchmark, place / "runs" / "figures", "01_goose", answers)
    return place


def asked(place: Path) -> tuple[Benchmark, list[Context]]:
    """The question of a project, with its clue before three other pictures."""
    benchmark = load_visual_rag(place / "data" / "annotations.jsonl", place / "data" / "images")
    ((clue,),) = (context.doc_ids for context in gt_clue(benchmark, draws=1))
    (query_id,) = benchmark.queries
    others = [doc_id for doc_id in benchmark.corpus if doc_id != clue]
    shown = (*others[:2], clue, others[2])
    return benchmark, [Context(query_id=query_id, setting="top_k", k=4, doc_ids=shown)]


def pictures(page: str) -> tuple[int, int]:
    """How many pictures a page has, and how many of them a frame."""
    return page.count("<img"), page.count(">relevant<")


def compared() -> str:
    """The page of the answers that differ."""
    saved = load_answers("runs/figures")
    chosen = {"choose_a": {"model": "goose"}, "choose_b": {"model": "gander"}}
    return str(flips_page(flips(paired_answers(saved, saved, **chosen))).data)


@pytest.mark.slow
def test_a_moved_project_shows_the_same_images(
    goose: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pictures(compared()) == (4, 1)
    monkeypatch.chdir(goose.rename(tmp_path / "gone"))
    assert pictures(compared()) == (4, 1)


def test_a_picture_that_is_another_now_is_not_shown_for_the_one_that_was_asked_about(
    goose: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = goose.rename(tmp_path / "b")
    for image in other.rglob("a.jpg"):
        shutil.copyfile(image.with_name("b.jpg"), image)
    monkeypatch.chdir(other)
    assert pictures(compared()) == (3, 0)
    assert "cannot be read" in compared()


def test_saved_answers_are_a_table_for_any_program(goose: Path) -> None:
    plain = pd.read_json(goose / "runs/figures/01_goose.answers.jsonl.gz", lines=True)
    needed = ["model", "query_id", "doc_ids", "relevant", "answer", "score", "score_min"]
    assert plain[needed].notna().all(axis=None)
    loaded = load_answers(goose / "runs/figures")
    assert set(loaded) == {*plain, "experiment"}
    assert {"parameters", "judge_prompt"} <= set(plain)


def test_answers_that_an_earlier_version_saved_are_refused(goose: Path) -> None:
    file = goose / "runs/figures/01_goose.answers.jsonl.gz"
    (first, *_) = gzip.decompress(file.read_bytes()).splitlines()
    row = json.loads(first)
    for name in ("parameters", "judge_prompt"):
        former = json.dumps({key: value for key, value in row.items() if key != name})
        file.write_bytes(gzip.compress(former.encode(), mtime=0))
        refused = rf"jsonl\.gz line 1: found 'benchmark'.* expected .*{name}.* notebook again"
        with pytest.raises(VragError, match=refused):
            load_answers(goose / "runs/figures")
