"""Two runs side by side: who flipped, in both directions, with the pictures that each
prompt held; a run beside itself claims nothing; what fits nothing is said.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from statsmodels.stats.contingency_tables import mcnemar
from strange_server import StrangeServer
from typer.testing import CliRunner

from vrag_kit.analysis import (
    assign_stratum,
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
from vrag_kit.config import Workspace
from vrag_kit.errors import VragError
from vrag_kit.generation import ask_models, gt_clue, non_clue
from vrag_kit.judging import RuleJudge, judge_answers, load_judge
from vrag_kit.papers.visual_rag.judge import PROMPTS, RUBRIC
from vrag_kit.plotting.save_table import plain_cells
from vrag_kit.runner.cli import app
from vrag_kit.types import Benchmark

if TYPE_CHECKING:
    pass

PARTS = {"back": "rr", "beak": "rw", "feet": "wr", "tail": "wr", "eyes": "wr", "neck": "r-"}


SAY = {"r": "say Answer: black", "w": "say Answer: <b>red</b>", "-": "filtered"}


NASTY = "<script>alert(1)</script>"


MODELS = ("goose", "gander")


@pytest.fixture(scope="module")
def birds(guide: Benchmark) -> Benchmark:
    """Six questions on pictures of the small guide, whose right answer is black."""
    asked = {}
    for part, query_id in zip(PARTS, guide.queries, strict=False):
        text = f"What color is the {part}? {NASTY}"
        asked[query_id] = replace(guide.queries[query_id], text=text, answers=("black",))
    return replace(guide.subset(list(asked)), queries=asked)


@pytest.fixture(scope="module")
def judged(birds: Benchmark, store: Path) -> pd.DataFrame:
    """Both models, each with a clue, and the gander with none instead."""
    tables = []
    for side, model in enumerate(MODELS):
        plans = {f"the {part}": [SAY[said[side]]] for part, said in PARTS.items()}
        contexts = gt_clue(birds, draws=1) + (non_clue(birds, draws=1) if side else [])
        with StrangeServer(plans) as server:
            entry = {"model": f"{model}@{server.url}", "decoding": {"temperature": 0}}
            tables.append(
                ask_models([entry], birds, contexts, Workspace(answers_dir=store), prompts=PROMPTS)
            )
    return judge_answers(RuleJudge(), birds, pd.concat(tables, ignore_index=True))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("answers")


@pytest.fixture
def figures(birds: Benchmark, judged: pd.DataFrame, tmp_path: Path, store: Path) -> Path:
    folder = tmp_path / "figures"
    save_answers(judged, birds, Workspace(figures_dir=folder, answers_dir=store), "birds/03_birds")
    return folder


def both(figures: Path) -> pd.DataFrame:
    answers = load_answers(figures)
    chosen = [{"model": model, "setting": "gt_clue"} for model in MODELS]
    return paired_answers(answers, answers, choose_a=chosen[0], choose_b=chosen[1])


@pytest.mark.slow
def test_saved_answers_are_read_back_with_question_and_what_is_accepted(
    birds: Benchmark, judged: pd.DataFrame, figures: Path
) -> None:
    answers = load_answers(figures)
    assert set(answers["experiment"]) == {"birds/03_birds"}
    for name in judged:
        assert answers[name].dropna().tolist() == judged[name].dropna().tolist(), name
        assert answers[name].isna().tolist() == judged[name].isna().tolist(), name
    asked = [birds.queries[query_id] for query_id in answers["query_id"]]
    assert answers["question"].tolist() == [query.text for query in asked]
    assert set(answers["references"]) == {"black"}
    with_clue = answers["setting"] == "gt_clue"
    assert [len(each) for each in answers["relevant"]] == with_clue.astype(int).tolist()
    pd.testing.assert_frame_equal(mean_scores(answers), mean_scores(judged))


def test_who_flipped_is_told_in_both_directions(birds: Benchmark, figures: Path) -> None:
    flipped = flips(both(figures))
    words = [re.sub(r".*the (\w+)\?.*", r"\1", question) for question in flipped["question"]]
    found = dict(zip(words, flipped["direction"], strict=True))
    # neck was refused on one side: that is no flip
    assert found == {
        "feet": "n_improved",
        "tail": "n_improved",
        "eyes": "n_improved",
        "beak": "n_worsened",
    }
    assert set(flipped["a"] + " " + flipped["b"]) == {"goose gander"}


def test_the_difference_is_that_of_compare_and_the_test_mcnemars(figures: Path) -> None:
    answers = load_answers(figures)
    answers["group"] = answers["query_id"]
    answers = answers[answers["setting"] == "gt_clue"]
    pairs = paired_answers(
        answers, answers, choose_a={"model": "goose"}, choose_b={"model": "gander"}
    )
    (row,) = paired_tests(pairs).to_dict("records")
    # of five questions the goose has back and beak, the gander back, feet, tail and eyes
    assert (row["value_a"], row["value_b"], row["n"], row["n_failed"]) == (0.4, 0.8, 5, 1)
    assert (row["n_improved"], row["n_worsened"]) == (3, 1)
    assert row["p"] == pytest.approx(mcnemar([[1, 1], [3, 0]], exact=True).pvalue)
    values = per_query(answers, by=["model", "setting"])
    (kits,) = paired_differences(values, arm="model", by=["setting"], baseline="goose").to_dict(
        "records"
    )
    for name in ("value", "ci_low", "ci_high", "n", "n_failed"):
        assert row[name] == pytest.approx(kits[name])
    assert row["verdict"] == "not significant"


def test_answers_of_two_data_sets_lie_in_one_file_and_are_paired_each_with_its_own(
    birds: Benchmark, judged: pd.DataFrame, tmp_path: Path, store: Path
) -> None:
    suite = {"wild": birds, "tame": replace(birds, name="tame birds")}
    tables = {name: judged.assign(benchmark=suite[name].name) for name in suite}
    save_collection_answers(
        tables, suite, Workspace(figures_dir=tmp_path, answers_dir=store), "02_birds"
    )
    pairs = both(tmp_path)
    assert pairs.groupby("benchmark").size().to_dict() == {birds.name: 6, "tame birds": 6}
    with pytest.raises(VragError, match="no column 'score'"):
        save_collection_answers(
            {"wild": judged.drop(columns="score")},
            suite,
            Workspace(figures_dir=tmp_path, answers_dir=store),
            "x",
        )


@contextmanager
def notebook(*cells: str) -> Iterator[None]:
    """While the block lasts, a notebook is at work here that has run these cells."""
    main = sys.modules["__main__"]
    shell = InteractiveShell.instance()
    try:
        for cell in cells:
            assert shell.run_cell(cell, store_history=True).success
        yield
    finally:
        InteractiveShell.clear_instance()
        sys.modules["__main__"] = main


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        ((["model=swan"], ["model=gander"]), "A has no model = 'swan'; found goose, gander"),
        ((["modl=goose"], ["model=gander"]), "Did you mean 'model'?"),
        ((["goose"], ["model=gander"]), "found 'goose', expected column=value"),
        (([], ["model=goose"]), "model has several values on one side"),
    ],
)
def test_what_cannot_be_compared_is_said_with_what_there_is(
    figures: Path, sides: tuple[list[str], list[str]], words: str, tmp_path: Path
) -> None:
    chosen = [word for each in sides[0] for word in ("--a", each)]
    chosen += [word for each in sides[1] for word in ("--b", each)]
    done = CliRunner().invoke(app, ["compare", str(figures), *chosen, "--to", str(tmp_path / "o")])
    assert isinstance(done.exception, VragError)
    assert words in str(done.exception)


def test_damaged_and_missing_answers_are_named(figures: Path, tmp_path: Path) -> None:
    (file,) = figures.rglob("*.gz")
    with pytest.raises(VragError, match="found birds/03_birds"):
        load_answers(figures, only="04")
    file.write_bytes(gzip.compress(b'{"query_id": "q"}\n{"query_'))
    with pytest.raises(VragError, match=r"03_birds.answers.jsonl.gz line 2: not a table"):
        load_answers(figures)
    file.write_bytes(b"no archive")
    with pytest.raises(VragError, match=r"03_birds.answers.jsonl.gz: not a table of answers"):
        load_answers(file)
    with pytest.raises(VragError, match="no answers to compare"):
        load_answers(tmp_path / "nowhere")


def test_saved_answers_are_no_results(figures: Path) -> None:
    with pytest.raises(VragError, match="holds no results"):
        load_results(figures)


@pytest.mark.slow
def test_the_page_has_every_changed_answer_with_both_prompts_images_and_loads_nothing(
    birds: Benchmark, judged: pd.DataFrame, figures: Path, tmp_path: Path, store: Path
) -> None:
    """By one run of notebook 61: two folders, with a clue before the goose, and another image
    before the gander.
    """
    other, to = tmp_path / "later" / "figures", tmp_path / "out"
    save_answers(judged, birds, Workspace(figures_dir=other, answers_dir=store), "birds/03_birds")
    sides = ["--a", "model=goose", "--a", "setting=gt_clue"]
    sides += ["--b", "model=gander", "--b", "setting=non_clue", "--only", "03", "--to", str(to)]
    done = CliRunner().invoke(app, ["compare", str(figures), str(other), *sides])
    assert done.exit_code == 0, done.output
    assert "6 pairs of answers to 6 questions" in done.output
    assert "0 answers only in A, 6 only in B" not in done.output
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


def test_several_documents_of_a_prompt_stand_in_one_cell() -> None:
    cells = pd.DataFrame({"doc_ids": [("a b", "c"), ()], "place": [["/x/y.png"], ("z",)]})
    assert plain_cells(cells).to_numpy().tolist() == [["a b | c", "y.png"], ["", "z"]]


def test_flips_are_counted_by_direction_and_stratum(birds: Benchmark, judged: pd.DataFrame) -> None:
    known = [query.query_id for query in birds.queries.values() if "feet" in query.text]
    placed = assign_stratum(judged.assign(group=judged["query_id"]), dict.fromkeys(MODELS, known))
    chosen = [{"model": model, "setting": "gt_clue"} for model in MODELS]
    pairs = paired_answers(placed, placed, choose_a=chosen[0], choose_b=chosen[1])
    found = flips(pairs).groupby(["direction", "stratum"]).size().to_dict()
    assert found == {
        ("n_improved", "in training data"): 1,
        ("n_improved", "not in training data"): 2,
        ("n_worsened", "not in training data"): 1,
    }


def test_parameters_of_notebooks_that_differ_are_listed_key_by_key(
    birds: Benchmark, judged: pd.DataFrame, tmp_path: Path, store: Path
) -> None:
    """The first as its cell of parameters says, the second as papermill puts it below."""
    cell = 'clue_position = 0\nks = [1, 5]\ndecoding = {"temperature": 0, "max_new_tokens": 16}'
    given = 'ks = [1, 5]\nclue_position = -1\ndecoding = {"temperature": 0}'
    for name, cells in (("a", []), ("b", [given])):
        with notebook(cell, *cells, "clue_position * 2"):
            save_answers(
                judged, birds, Workspace(figures_dir=tmp_path / name, answers_dir=store), "03_birds"
            )
    table = config_diff(load_answers(tmp_path / "a"), load_answers(tmp_path / "b"))
    assert table.to_numpy().tolist() == [
        ["clue_position", "0", "-1", ""],
        ["decoding.max_new_tokens", "16", "–", ""],
    ]


@pytest.mark.slow
def test_rubrics_that_differ_are_given_in_full(
    birds: Benchmark, judged: pd.DataFrame, tmp_path: Path
) -> None:
    mine = "Question: {question}\nAnswer: {answer}\n" + "How well? " * 30 + "<End> of mine."
    asked = judged[judged["setting"] == "gt_clue"].query("model == 'goose'")
    with StrangeServer({"e": ["say Score: 1"]}) as server:
        entry = {"model": f"judge@{server.url}", "decoding": {"temperature": 0}}
        for name, judge in (("a", {**entry, "rubric": mine}), ("b", entry)):
            scorer = load_judge(judge, Workspace(answers_dir=tmp_path), rubric=RUBRIC)
            scored = judge_answers(scorer, birds, asked)
            save_answers(
                scored,
                birds,
                Workspace(figures_dir=tmp_path / name, answers_dir=tmp_path),
                "03_birds",
            )
    sides = [load_answers(tmp_path / name) for name in "ab"]
    found = config_diff(*sides).set_index("setting")
    assert found.loc["judge_prompt", "A"] == mine
    assert {"{question}", "{references}", "{answer}"} <= set(
        re.findall(r"{\w+}", found.loc["judge_prompt", "B"])
    )


@pytest.mark.slow
def test_models_that_an_endpoint_served_differ(birds: Benchmark, tmp_path: Path) -> None:
    contexts = gt_clue(birds, draws=1)
    for name, other in (("a", "say Answer: black"), ("b", "as goose-2027")):
        with StrangeServer({"the back": [other]}) as server:
            entry = {"model": f"goose@{server.url}", "decoding": {"temperature": 0}}
            asked = ask_models(
                [entry], birds, contexts, Workspace(answers_dir=tmp_path / name), prompts=PROMPTS
            )
        rows = judge_answers(RuleJudge(), birds, asked)
        save_answers(
            rows,
            birds,
            Workspace(figures_dir=tmp_path / name, answers_dir=tmp_path / name),
            "03_birds",
        )
    sides = [load_answers(tmp_path / name) for name in "aab"]
    found = config_diff(*sides[1:]).set_index("setting")
    served = ["strange-2026", "goose-2027, strange-2026"]
    assert found.loc["served_model", ["A", "B"]].tolist() == served
    assert config_diff(*sides[:2]).empty
