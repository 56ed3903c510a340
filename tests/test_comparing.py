"""Two runs side by side: who flipped, in both directions, with the pictures that each
prompt held; a run beside itself claims nothing; what fits nothing is said.
"""

from __future__ import annotations

import gzip
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
import yaml
from IPython.core.interactiveshell import InteractiveShell
from statsmodels.stats.contingency_tables import mcnemar
from strange_server import StrangeServer
from typer.testing import CliRunner

from vrag_kit.analysis import (
    add_questions,
    assign_stratum,
    cluster_means,
    config_diff,
    flips,
    load_answers,
    load_results,
    mean_scores,
    name_paired_tests,
    paired_answers,
    paired_differences,
    paired_tests,
    paired_tests_table,
    per_query,
    save_answers,
    save_collection_answers,
    to_percent,
)
from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.generation import ask_models, gt_clue, non_clue
from vrag_kit.judging import RuleJudge, judge_answers, load_judge
from vrag_kit.papers.mrag_suite.modes import ask_suite
from vrag_kit.papers.visual_rag.judge import PROMPTS, RUBRIC
from vrag_kit.plotting.save import plain_cells
from vrag_kit.runner.check import check_parameters
from vrag_kit.runner.cli import app
from vrag_kit.runner.compare import comparison_folder
from vrag_kit.types import Benchmark
from vrag_kit.widgets import flips_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PARTS = {"back": "rr", "beak": "rw", "feet": "wr", "tail": "wr", "eyes": "wr", "neck": "r-"}
"""What the goose and the gander say of each: right, wrong, or refused."""
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
            tables.append(ask_models([entry], birds, contexts, store, prompts=PROMPTS))
    return judge_answers(RuleJudge(), birds, pd.concat(tables, ignore_index=True))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("answers")


@pytest.fixture
def figures(birds: Benchmark, judged: pd.DataFrame, tmp_path: Path, store: Path) -> Path:
    folder = tmp_path / "figures"
    save_answers(judged, birds, folder, "birds/03_birds", store)
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


def test_a_run_beside_itself_claims_nothing(figures: Path) -> None:
    answers = load_answers(figures)
    differences = paired_tests(paired_answers(answers, answers))
    assert len(differences) == 3
    assert set(differences["verdict"]) == {"not significant"}
    assert set(differences["value"]) == {0.0}
    assert set(differences["p"]) == {1.0}
    assert flips(paired_answers(answers, answers)).empty
    table = paired_tests_table(to_percent(differences), paired_answers(answers, answers))
    assert [name for name in table if name[0] in "AB"][:2] == ["A", "B"]


def noisy(seed: int, n: int = 60) -> pd.DataFrame:
    """Answers of one model, sampled: which questions it gets right is half chance."""
    names = [f"q{number}" for number in range(n)]
    often = np.random.default_rng(99).random(n)
    score = (np.random.default_rng(seed).random(n) < often).astype(float)
    asked = {"benchmark": "toy", "model": "m", "setting": "s", "k": 1, "draw": 0, "sample": 0}
    given = {"doc_ids": [()] * n, "answer": score.astype(str), "status": "ok"}
    return pd.DataFrame({**asked, "query_id": names, "group": names, **given, "score": score})


def opposite() -> list[pd.DataFrame]:
    """Two sides: of each 20 questions the told ones all lose, and the others all gain."""
    a, b = noisy(0, n=40), noisy(0, n=40)
    told = np.arange(40) < 20
    strata = np.where(told, "in training data", "not in training data")
    sides = [a.assign(score=told.astype(float)), b.assign(score=1.0 - told)]
    return [side.assign(stratum=strata, answer=side["score"].astype(str)) for side in sides]


def test_opposite_effects_stand_apart_before_they_are_pooled_to_nothing() -> None:
    pairs = paired_answers(*opposite())
    found = paired_tests(pairs).set_index("stratum")
    assert list(found.index) == ["in training data", "not in training data", "all questions"]
    assert found["value"].tolist() == [-1.0, 1.0, 0.0]
    assert found["verdict"].tolist() == ["lower", "higher", "not significant"]
    assert found["n"].tolist() == [20, 20, 40]
    assert found["n_improved"].tolist() == [0, 20, 20]
    # two exact p-values of 2 / 2**20, and that of 20 against 20, which is 1; each a family
    assert found["p_holm"].tolist() == pytest.approx([2 / 2**20, 2 / 2**20, 1.0])
    flipped = flips(pairs)[["direction", "stratum"]].drop_duplicates()
    assert flipped.to_numpy().tolist() == [
        ["n_improved", "not in training data"],
        ["n_worsened", "in training data"],
    ]


def test_each_sides_mean_has_the_interval_that_it_has_elsewhere() -> None:
    a, b = opposite()
    a["group"] = b["group"] = [f"g{number % 7}" for number in range(40)]
    b["score"] = noisy(5, n=40)["score"]
    found = to_percent(paired_tests(paired_answers(a, b)))
    for side, table in (("a", a), ("b", b)):
        means = pd.concat([table, table.assign(stratum="all questions")])
        expected = to_percent(
            cluster_means(means.assign(value=means["score"], metric="x"), ["stratum", "metric"])
        )
        for name in ("value", "ci_low", "ci_high"):
            assert found[f"{name}_{side}"].tolist() == pytest.approx(expected[name].tolist())
    cell = paired_tests_table(found, paired_answers(a, b))["A"].iloc[2]
    assert re.fullmatch(r"50\.0 \[\d+\.\d, \d+\.\d\]", cell)


def test_strata_that_the_sides_do_not_share_are_named_and_what_has_none_is_only_pooled() -> None:
    a, b = opposite()
    b["stratum"] = ["in training data"] * 30 + ["not in training data"] * 5 + [""] * 5
    found = paired_tests(paired_answers(a, b))
    mixed = "A: not in training data, B: in training data"
    assert found["stratum"].tolist() == [
        "in training data",
        "not in training data",
        mixed,
        "all questions",
    ]
    assert found["n"].tolist() == [20, 5, 10, 40]
    without = paired_tests(paired_answers(a, b.drop(columns="stratum")))
    assert without["stratum"].tolist() == ["all questions"]


@pytest.mark.slow
def test_where_no_exact_p_can_be_had_it_is_the_intervals_and_marked() -> None:
    a, b = noisy(0), noisy(1)
    for seed, side in enumerate((a, b)):
        side["score"] = np.random.default_rng(seed).random(len(side))
    pairs = paired_answers(a, b)
    differences = paired_tests(pairs)
    assert differences["test"].tolist() == ["t"]
    assert (differences["p"][0] < 0.05) == (
        differences["ci_low"][0] * differences["ci_high"][0] > 0
    )
    assert paired_tests_table(to_percent(differences), pairs)["p"][0].endswith(" (t)")


@pytest.mark.slow
def test_two_samples_of_one_model_are_not_called_different() -> None:
    settings = [f"s{number}" for number in range(40)]
    sides = [
        pd.concat([noisy(2 * at + side).assign(setting=name) for at, name in enumerate(settings)])
        for side in (0, 1)
    ]
    found = paired_tests(paired_answers(*sides))
    assert (found["p"] < 0.05).sum() <= 5  # 2 of 40 are expected
    assert set(found["verdict"]) == {"not significant"}


def test_a_difference_of_most_questions_is_found_and_holm_counts_every_row_shown() -> None:
    a, b = noisy(0), noisy(1)
    ten = [f"q{number}" for number in range(10)]
    b["score"] = np.where(b["query_id"].isin(ten), 1.0, a["score"])
    a["score"] = np.where(a["query_id"].isin(ten), 0.0, a["score"])
    settings = [f"s{number}" for number in range(30)]
    alone = paired_tests(paired_answers(a, b))
    assert alone["verdict"].tolist() == ["higher"]
    assert alone["p"][0] == alone["p_holm"][0] == pytest.approx(2 / 2**10)
    many = [pd.concat([side.assign(setting=name) for name in settings]) for side in (a, b)]
    shown = paired_tests(paired_answers(*many))
    assert shown["p_holm"].tolist() == pytest.approx([min(1.0, 30 * 2 / 2**10)] * 30)
    assert set(shown["verdict"]) == {"not significant"}
    assert alone["mde"].notna().all()
    assert shown["mde"].isna().all()  # ten changed questions are no surprise among thirty rows


def test_a_stratum_and_all_questions_are_families_of_their_own() -> None:
    """By hand: all 12 of q0 to q11 gained in three ways of asking, half of them a stratum."""
    settings, names = ["s0", "s1", "s2"], [f"q{number}" for number in range(12)]
    sides = []
    for score in (0.0, 1.0):
        side = noisy(0, n=12).assign(score=score)
        side["stratum"] = side["query_id"].isin(names[:6]).map({True: "first", False: "second"})
        sides.append(pd.concat([side.assign(setting=name) for name in settings]))
    found = paired_tests(paired_answers(*sides)).set_index("stratum")
    assert found.loc["first", "p"].tolist() == pytest.approx([2 / 2**6] * 3)
    assert found.loc["first", "p_holm"].tolist() == pytest.approx([3 * 2 / 2**6] * 3)
    assert found.loc["all questions", "p_holm"].tolist() == pytest.approx([3 * 2 / 2**12] * 3)


def test_one_answer_a_question_stands_beside_each_draw_of_the_other() -> None:
    a = noisy(0).assign(setting="zero_shot")
    b = pd.concat([noisy(seed).assign(setting="gt_clue", draw=seed) for seed in (1, 2, 3)])
    chosen = {"choose_a": {"setting": "zero_shot"}, "choose_b": {"setting": "gt_clue"}}
    pairs = paired_answers(a, b, **chosen)
    assert len(pairs) == 3 * len(a)
    assert set(pairs["draw"]) == {1, 2, 3}
    (row,) = paired_tests(pairs).to_dict("records")
    assert row["n"] == len(a)
    assert row["value"] == pytest.approx(b["score"].mean() - a["score"].mean())


def test_what_stands_in_two_experiments_is_taken_once(
    birds: Benchmark, judged: pd.DataFrame, figures: Path, store: Path
) -> None:
    once = paired_tests(both(figures))
    save_answers(judged, birds, figures, "birds/04_again", store)
    assert len(load_answers(figures)) == 2 * len(judged)
    pd.testing.assert_frame_equal(paired_tests(both(figures)), once)


def test_answers_of_two_data_sets_lie_in_one_file_and_are_paired_each_with_its_own(
    birds: Benchmark, judged: pd.DataFrame, tmp_path: Path, store: Path
) -> None:
    suite = {"wild": birds, "tame": replace(birds, name="tame birds")}
    tables = {name: judged.assign(benchmark=suite[name].name) for name in suite}
    save_collection_answers(tables, suite, tmp_path, "02_birds", store)
    pairs = both(tmp_path)
    assert pairs.groupby("benchmark").size().to_dict() == {birds.name: 6, "tame birds": 6}
    with pytest.raises(VragError, match="no column 'score'"):
        save_collection_answers({"wild": judged.drop(columns="score")}, suite, tmp_path, "x", store)


def test_what_was_asked_over_another_corpus_is_compared_question_by_question(
    birds: Benchmark, judged: pd.DataFrame, tmp_path: Path, store: Path
) -> None:
    passages = judged["setting"] == "non_clue"
    told = judged.assign(benchmark=np.where(passages, "birds, articles", judged["benchmark"]))
    save_answers(told, birds, tmp_path, "09_birds", store)
    answers = load_answers(tmp_path).query("model == 'gander'")
    chosen = [{"setting": setting} for setting in ("gt_clue", "non_clue")]
    pairs = paired_answers(answers, answers, choose_a=chosen[0], choose_b=chosen[1])
    assert len(pairs) == len(PARTS)


def test_prompts_are_told_apart_when_their_answers_are_compared(
    birds: Benchmark, tmp_path: Path
) -> None:
    suite, contexts = {"birds": birds}, {"birds": gt_clue(birds, draws=1)}
    with StrangeServer({"goose": ["say Answer: black"]}) as server:
        entry = {"model": f"goose@{server.url}", "decoding": {"temperature": 0}}
        asked = {
            prompt: ask_suite([entry], suite, contexts, {"birds": PROMPTS}, tmp_path)
            for prompt in ("plain", "expert")
        }
    every = pd.concat(asked, names=["prompt"]).reset_index("prompt")
    judged = judge_answers(RuleJudge(), birds, every.reset_index(drop=True))
    save_collection_answers({"birds": judged}, suite, tmp_path, "46_birds", tmp_path)
    answers = load_answers(tmp_path)
    chosen = [{"prompt": prompt} for prompt in ("plain", "expert")]
    pairs = paired_answers(answers, answers, choose_a=chosen[0], choose_b=chosen[1])
    assert set(pairs["a"] + " " + pairs["b"]) == {"plain expert"}


def test_two_experiments_are_called_by_their_names(
    birds: Benchmark, judged: pd.DataFrame, figures: Path, store: Path
) -> None:
    changed = judged.assign(answer=judged["answer"] + ".")
    save_answers(changed, birds, figures, "birds/04_again", store)
    answers = load_answers(figures)
    names = ("birds/03_birds", "birds/04_again")
    chosen = [{"experiment": name} for name in names]
    pairs = paired_answers(answers, answers, choose_a=chosen[0], choose_b=chosen[1])
    assert (pairs["a"].iloc[0], pairs["b"].iloc[0]) == names


@pytest.mark.slow
def test_the_page_shows_the_pictures_of_both_prompts_and_loads_and_runs_nothing(
    figures: Path, tmp_path: Path
) -> None:
    chosen = ["--a", "setting=gt_clue", "--b", "setting=non_clue", "--only", "03"]
    to = tmp_path / "out"
    sides = [str(figures), "--a", "model=gander", "--b", "model=gander"]
    done = CliRunner().invoke(app, ["compare", *sides, *chosen, "--to", str(to)])
    assert done.exit_code == 0, done.output
    assert "No score differs." in (to / "compare.html").read_text(encoding="utf-8")
    sides = [str(figures), "--a", "model=goose", "--b", "model=gander"]
    done = CliRunner().invoke(app, ["compare", *sides, *chosen, "--to", str(to)])
    assert done.exit_code == 0, done.output
    page = (to / "compare.html").read_text(encoding="utf-8")
    # four flips with a clue before the goose, and another picture before the gander
    assert page.count("<img") == 8
    assert page.count(">relevant<") == 4
    assert len(set(re.findall(r'src="data:image/jpeg;base64,([^"]+)"', page))) >= 2
    assert "<script" not in page
    assert "<b>red" not in page
    assert "&lt;b&gt;red&lt;/b&gt;" in page
    assert not re.search(r"(?:src|href)=['\"](?!data:|#)", page)
    assert "3 answers higher in B" in page
    assert "1 answer higher in A" in page
    assert len(pd.read_csv(to / "flips.csv")) == 4
    assert (to / "compare.tex").read_text(encoding="utf-8").count(r" \\") == 2


def compared(to: Path, *words: str) -> str:
    """What `vrag compare` prints."""
    done = CliRunner().invoke(app, ["compare", *words, *(["--to", str(to)] if to.name else [])])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_tables_name_both_sides_and_hold_no_lists_and_no_absolute_paths(
    figures: Path, tmp_path: Path
) -> None:
    compared(tmp_path, str(figures), "--a", "model=goose", "--b", "model=gander")
    (row,) = pd.read_csv(tmp_path / "compare.csv").to_dict("records")
    assert (row["a"], row["b"], row["baseline"]) == ("goose", "gander", "goose")
    assert (row["metric"], row["unit"]) == ("difference in score", "points")
    text = (tmp_path / "flips.csv").read_text(encoding="utf-8")
    assert not re.search(r"[\[(]'|(?:^|[,|\"] ?)/", text, re.MULTILINE)
    flipped = pd.read_csv(tmp_path / "flips.csv")
    assert set(flipped["a"] + " " + flipped["b"]) == {"goose gander"}
    # the clue that both saw is the one relevant picture, whose file is called as it is
    for clue, relevant in zip(flipped["doc_ids_a"], flipped["relevant_a"], strict=True):
        assert relevant.endswith(clue)


def test_several_documents_of_a_prompt_stand_in_one_cell() -> None:
    told = plain_cells(
        pd.DataFrame({"doc_ids": [("a b", "c"), ()], "place": [["/x/y.png"], ("z",)]})
    )
    assert told.to_numpy().tolist() == [["a b | c", "y.png"], ["", "z"]]


@pytest.mark.slow
def test_each_comparison_has_a_folder_of_its_own(
    figures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = ["--a", "model=goose", "--b", "model=gander"]
    first = compared(Path(), "figures", *chosen)
    again = compared(Path(), "figures")
    assert "figures_model-goose_vs_model-gander/compare.html" in first
    assert "the page is runs/compare/figures/compare.html" in again
    compared(Path(), "figures", *chosen, "--only", "03")
    assert len(list(tmp_path.glob("runs/compare/*/compare.html"))) == 3
    page = tmp_path / "runs/compare/figures_model-goose_vs_model-gander/compare.html"
    assert "goose" in page.read_text(encoding="utf-8")
    long = ["--a", f"model={'goose' * 60}", *chosen[2:]]
    named = comparison_folder(figures, figures, long[1:2], long[3:], "")
    assert len(named.name) < 120


def test_two_folders_are_called_by_what_differs(figures: Path, tmp_path: Path) -> None:
    other = tmp_path / "later" / "figures"
    shutil.copytree(figures, other)
    compared(tmp_path / "out", str(figures), str(other))
    (names,) = pd.read_csv(tmp_path / "out/compare.csv")[["a", "b"]].drop_duplicates().to_numpy()
    assert list(names) == [f"{tmp_path.name}/figures", "later/figures"]


def saved(place: Path, *tables: pd.DataFrame) -> Path:
    """A folder of answers: of each table a notebook, 03 and those after it."""
    few: dict[str, object] = {"question": "Which?", "references": "this", "store": "none"}
    few |= dict.fromkeys(["parameters", "judge_prompt"], "")
    place.mkdir(parents=True)
    for number, table in enumerate(tables, start=3):
        lines = table.assign(answer_id="x", verdict="", relevant=[[]] * len(table), **few)
        text = lines.to_json(orient="records", lines=True)
        (place / f"0{number}_x.answers.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    return place


@pytest.mark.slow
def test_where_only_the_judge_differs_nothing_is_claimed_of_the_answers(tmp_path: Path) -> None:
    a = noisy(0).assign(judge="rule")
    b = a.assign(judge="mine:Generous", score=1.0)
    folders = [str(saved(tmp_path / name, table)) for name, table in (("a", a), ("b", b))]
    printed = compared(tmp_path / "out", *folders)
    page = (tmp_path / "out/compare.html").read_text(encoding="utf-8")
    for shown in (printed, page):
        assert "Scored by different judges (rule / mine:Generous)" in shown
    (row,) = pd.read_csv(tmp_path / "out/compare.csv").to_dict("records")
    assert (row["judge_a"], row["judge_b"]) == ("rule", "mine:Generous")
    assert row["verdict"] == "different judges"  # the p-value is below 0.001
    assert row["p_holm"] < 0.001
    alike = paired_answers(a, b.assign(judge="rule"))
    assert paired_tests(alike)["verdict"].iloc[-1] == "higher"


@pytest.mark.slow
def test_judges_of_one_name_with_another_rubric_are_not_compared_as_one(tmp_path: Path) -> None:
    given = '{"judge": "o4-mini", "seed": 0}'
    a = noisy(0).assign(judge="o4-mini", judge_id="1f0c", parameters=given)
    b = a.assign(judge_id="77ab", parameters=given.replace("o4-mini", "mine"))
    folders = [str(saved(tmp_path / name, table)) for name, table in (("a", a), ("b", b))]
    printed = compared(tmp_path / "out", *folders)
    assert "Scored by different judges (o4-mini (1f0c) / o4-mini (77ab))" in printed
    assert "No score differs" not in printed
    (row,) = pd.read_csv(tmp_path / "out/compare.csv").to_dict("records")
    assert (row["judge_a"], row["judge_b"]) == ("o4-mini (1f0c)", "o4-mini (77ab)")
    assert row["verdict"] == "different judges"
    differs = pd.read_csv(tmp_path / "out/what_differs.csv")
    assert differs["setting"].tolist() == ["judge_id"]  # the judge that scored, named once
    alike = [str(saved(tmp_path / name, table)) for name, table in (("c", a), ("d", a))]
    printed = compared(tmp_path / "same", *alike)
    assert "Scored by o4-mini, A and B alike.\nNo score differs." in printed


def test_judge_all_says_who_judged_and_a_comparison_names_that_judge(
    judged: pd.DataFrame, figures: Path, tmp_path: Path
) -> None:
    assert set(judged["judge"]) == {"rule"}
    printed = compared(tmp_path / "out", str(figures), "--a", "model=goose", "--b", "model=gander")
    assert "Scored by rule, A and B alike." in printed


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


PARAMETERS = """clue_position = 0  # of the clue
ks = [1, 5]
seed = 0
judge = "rule"
decoding = {"temperature": 0, "max_new_tokens": 16}
figures_dir = "here"
"""


@pytest.mark.slow
def test_which_parameters_of_the_notebooks_differ_is_told_and_only_these(
    birds: Benchmark, judged: pd.DataFrame, tmp_path: Path, store: Path
) -> None:
    """The first as its cell of parameters says, the second as papermill puts it below."""
    given = ['ks = [1, 5]\nclue_position = -1\ndecoding = {"temperature": 0}', "import math"]
    for name, cells in (("a", []), ("b", given)):
        with notebook(PARAMETERS, *cells, "clue_position * 2", "again = math.pi" if cells else ""):
            for number in ("03", "04"):
                save_answers(judged, birds, tmp_path / name, f"{number}_birds", store)
    printed = compared(tmp_path / "out", str(tmp_path / "a"), str(tmp_path / "b"))
    page = (tmp_path / "out/compare.html").read_text(encoding="utf-8")
    rows = pd.read_csv(tmp_path / "out/what_differs.csv", dtype=str)
    assert rows[["setting", "A", "B"]].to_numpy().tolist() == [
        ["clue_position", "0", "-1"],
        ["decoding.max_new_tokens", "16", "–"],
    ]
    assert rows["experiment"].isna().all()  # all of them
    assert re.search(r"clue_position +0 +-1 *\n", printed)
    assert re.search(r"clue_position</th><td>0</td><td>-1</td>", page)
    alike = compared(tmp_path / "same", str(tmp_path / "a"), str(tmp_path / "a"))
    assert "clue_position" not in alike
    assert "What differs" not in (tmp_path / "same/compare.html").read_text(encoding="utf-8")


def test_a_parameter_that_differs_in_one_experiment_alone_names_it(
    birds: Benchmark, judged: pd.DataFrame, tmp_path: Path, store: Path
) -> None:
    for name, number, seed in (("a", "03", 0), ("a", "04", 0), ("b", "03", 0), ("b", "04", 7)):
        with notebook(f"seed = {seed}"):
            save_answers(judged, birds, tmp_path / name, f"{number}_birds", store)
    table = config_diff(load_answers(tmp_path / "a"), load_answers(tmp_path / "b"))
    assert table.to_numpy().tolist() == [["seed", "0", "7", "04_birds"]]


@pytest.mark.slow
def test_the_words_of_both_rubrics_are_told_whole_where_they_differ(
    birds: Benchmark, judged: pd.DataFrame, tmp_path: Path
) -> None:
    """A rubric of a parameter file beside the paper's: the page has both to the last word,
    the terminal their beginning.
    """
    mine = "Question: {question}\nAnswer: {answer}\n" + "How well? " * 30 + "<End> of mine."
    asked = judged[judged["setting"] == "gt_clue"].query("model == 'goose'")
    with StrangeServer({"e": ["say Score: 1"]}) as server:
        entry = {"model": f"judge@{server.url}", "decoding": {"temperature": 0}}
        for name, judge in (("a", {**entry, "rubric": mine}), ("b", entry)):
            scorer = load_judge(judge, tmp_path, rubric=RUBRIC)
            scored = judge_answers(scorer, birds, asked)
            save_answers(scored, birds, tmp_path / name, "03_birds", tmp_path)
    printed = compared(tmp_path / "out", str(tmp_path / "a"), str(tmp_path / "b"))
    page = (tmp_path / "out/compare.html").read_text(encoding="utf-8")
    assert mine.replace("<End>", "&lt;End&gt;") in page
    told = pd.read_csv(tmp_path / "out/what_differs.csv").set_index("setting")
    words = told.loc["judge_prompt"]
    assert words["A"] == mine
    assert "Likely Hallucination" in words["B"]
    assert {"{question}", "{references}", "{answer}"} <= set(re.findall(r"{\w+}", words["B"]))
    assert "Question: {question} Answer: {answer} How well?" in printed
    assert "of mine." not in printed


def test_what_differs_is_told_in_a_notebook_without_saving(
    birds: Benchmark, judged: pd.DataFrame, tmp_path: Path, store: Path
) -> None:
    with notebook("clue_position = 0"):
        save_answers(judged, birds, tmp_path, "03_birds", store)
    with notebook("clue_position = 1"):
        now = add_questions(judged, birds, store)
    table = config_diff(load_answers(tmp_path), now)
    assert table.to_numpy().tolist() == [["clue_position", "0", "1", ""]]


@pytest.mark.slow
def test_which_models_an_endpoint_served_is_told_where_they_differ(
    birds: Benchmark, tmp_path: Path
) -> None:
    contexts = gt_clue(birds, draws=1)
    for name, other in (("a", "say Answer: black"), ("b", "as goose-2027"), ("c", "as goose-2027")):
        with StrangeServer({"the back": [other]}) as server:
            entry = {"model": f"goose@{server.url}", "decoding": {"temperature": 0}}
            asked = ask_models([entry], birds, contexts, tmp_path / name, prompts=PROMPTS)
        rows = judge_answers(RuleJudge(), birds, asked)
        save_answers(rows, birds, tmp_path / name, "03_birds", tmp_path / name)
    compared(tmp_path / "out", str(tmp_path / "a"), str(tmp_path / "b"))
    told = pd.read_csv(tmp_path / "out/what_differs.csv").set_index("setting")
    served = ["strange-2026", "goose-2027, strange-2026"]
    assert told.loc["served_model", ["A", "B"]].tolist() == served
    compared(tmp_path / "same", str(tmp_path / "b"), str(tmp_path / "c"))
    assert "served_model" not in (tmp_path / "same/what_differs.csv").read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_only_one_side_has_is_said(tmp_path: Path) -> None:
    steady, moody = (noisy(seed).assign(model=name) for seed, name in ((0, "steady"), (1, "moody")))
    a = saved(tmp_path / "a", pd.concat([steady, moody]), pd.concat([steady, moody]).assign(k=2))
    b = saved(tmp_path / "b", steady[:59])
    printed = compared(tmp_path / "out", str(a), str(b))
    words = "Not compared: 181 answers only in A, 0 only in B."
    assert words in printed
    assert words in (tmp_path / "out/compare.html").read_text(encoding="utf-8")
    assert "only in" not in compared(tmp_path / "same", str(b), str(b))


@pytest.mark.slow
def test_61_refuses_what_it_cannot_compare_before_it_asks(
    guide_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[1])
    pictures = {"annotations": guide_folder / "annotations.jsonl", "name": "Field Guide (small)"}
    pictures["image_root"] = guide_folder / "images"
    told = {
        "notebooks": ["across/61_compare"],
        "data": {name: str(value) for name, value in pictures.items()},
        "a": {"model": "vlm-few"},
        "ks": [1, 500],
        **{f"{name}_dir": str(tmp_path / name) for name in ("answers", "figures", "cache")},
    }
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(told), encoding="utf-8")
    found, missing = check_parameters(tmp_path / "p.yaml")
    (line,) = missing
    assert "A has no model = 'vlm-few'; found field-guide-vlm-few, field-guide-vlm-many" in line
    assert any("500" in each and "61_compare" in each for each in found)  # k, which is cut


@pytest.mark.slow
def test_settings_are_called_by_their_names(figures: Path, tmp_path: Path) -> None:
    sides = ["--a", "setting=gt_clue", "--b", "setting=non_clue"]
    compared(tmp_path, str(figures), "--a", "model=gander", "--b", "model=gander", *sides)
    page = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert "A: clue (1 image)" in page
    assert "B: non-clue (1 image)" in page
    compared(tmp_path, str(figures), "--a", "model=gander", "--b", "model=gander")
    page = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert re.search("<td[^>]*>clue \\(1 image\\)</td>", page)
    assert not re.search("gt_clue|non_clue", page)


def test_questions_and_answers_are_counted_by_their_names(
    birds: Benchmark, judged: pd.DataFrame, tmp_path: Path, store: Path
) -> None:
    """Each of five questions has two draws: four flipped questions are eight answers."""
    asked = judged[judged["setting"] == "gt_clue"]
    twice = asked.assign(draw=1, answer_id=asked["answer_id"].str[::-1], answer="again")
    save_answers(pd.concat([asked, twice]), birds, tmp_path, "03_birds", store)
    compared(tmp_path, str(tmp_path), "--a", "model=goose", "--b", "model=gander")
    page = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert "<td>+3 −1</td>" in page
    assert "6 answers to 3 questions higher in B" in page
    assert "2 answers to 1 question higher in A" in page


def test_the_page_tells_who_flipped_in_each_stratum(
    birds: Benchmark, judged: pd.DataFrame, tmp_path: Path, store: Path
) -> None:
    known = [query.query_id for query in birds.queries.values() if "feet" in query.text]
    species = judged.assign(group=judged["query_id"])
    placed = assign_stratum(species, dict.fromkeys(MODELS, known))
    save_answers(placed, birds, tmp_path, "03_birds", store)
    chosen = [
        word
        for side, model in zip("ab", MODELS, strict=True)
        for word in (f"--{side}", f"model={model}")
    ]
    done = CliRunner().invoke(app, ["compare", str(tmp_path), *chosen, "--to", str(tmp_path)])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "compare.html").read_text(encoding="utf-8")
    counts = [
        "1 answer higher in B (in training data)",
        "2 answers higher in B (not in training data)",
    ]
    for words in (*counts, "1 answer higher in A (not in training data)"):
        assert f"{words}</h2>" in page
    strata = pd.read_csv(tmp_path / "compare.csv")["stratum"]
    assert strata.tolist() == ["in training data", "not in training data", "all questions"]
    flipped = pd.read_csv(tmp_path / "flips.csv")["stratum"]
    assert flipped.value_counts().to_dict() == {"not in training data": 3, "in training data": 1}


def test_a_prompt_of_the_same_pictures_is_shown_once(figures: Path) -> None:
    page = str(flips_page(flips(both(figures))).data)
    assert page.count("both prompts, images: 1") == 4
    assert page.count("<img") == 4


def test_pictures_are_found_again_in_a_project_that_has_moved(
    write_annotations: Callable[..., Path], tree: Path, tmp_path: Path
) -> None:
    annotations = write_annotations({})
    tables = []
    for say in ("say Answer: black", "say Answer: red"):
        benchmark = load_visual_rag(annotations, tree)
        with StrangeServer({"goose": [say]}) as server:
            entry = {"model": f"m@{server.url}", "name": say[-3:], "decoding": {"temperature": 0}}
            asked = ask_models([entry], benchmark, gt_clue(benchmark), tmp_path, prompts=PROMPTS)
        name = f"0{len(tables)}_m"
        judged = judge_answers(RuleJudge(), benchmark, asked)
        save_answers(judged, benchmark, tmp_path / "f", name, tmp_path)
        tables.append(load_answers(tmp_path / "f", only=name))
        tree = tree.rename(tmp_path / f"moved{len(tables)}")
    one, other = ({"experiment": f"0{n}_m", "model": name} for n, name in enumerate(["ack", "red"]))
    flipped = flips(paired_answers(*tables, choose_a=one, choose_b=other))
    assert "cannot be read" in str(flips_page(flipped).data)
    (tmp_path / "moved2").rename(tmp_path / "moved1")
    page = str(flips_page(flipped).data)
    assert page.count("<img") == 1
    assert "both prompts, images: 1" in page


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        ((["model=swan"], ["model=gander"]), "A has no model = 'swan'; found goose, gander"),
        ((["colour=red"], ["model=gander"]), "A has no column 'colour'; found "),
        ((["modl=goose"], ["model=gander"]), "Did you mean 'model'?"),
        ((["goose"], ["model=gander"]), "found 'goose', expected column=value"),
        ((["model=goose"], []), "Name one value, as in --a model=goose --b model=gander"),
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


def test_where_nothing_is_asked_alike_it_says_what_each_side_has() -> None:
    b = pd.concat([noisy(1).assign(k=k) for k in (1, 5)])
    with pytest.raises(VragError, match=r"k is 0 in A and 1, 5 in B. Name .* --b k=1"):
        paired_answers(noisy(0).assign(k=0), b)
    with pytest.raises(VragError, match="benchmark is toy in A and other in B"):
        paired_answers(noisy(0), noisy(1).assign(benchmark="other"))


def test_nothing_is_guessed_a_column_that_is_not_named_has_to_be_equal() -> None:
    a, b = noisy(0).assign(setting="zero_shot", k=0), noisy(1).assign(setting="gold", k=3)
    named = {"choose_a": {"setting": "zero_shot"}, "choose_b": {"setting": "gold"}}
    with pytest.raises(VragError, match=r"k is 0 in A and 3 in B.*--a k=0 --b k=3"):
        paired_answers(a, b, **named)
    named = {"choose_a": named["choose_a"] | {"k": 0}, "choose_b": named["choose_b"]}
    pairs = paired_answers(a, b, **named)
    assert set(pairs["a"] + " / " + pairs["b"]) == {"zero-shot (no image), k = 0 / gold, k = 3"}


def test_a_side_with_two_answers_of_one_kind_is_refused() -> None:
    twice = pd.concat([noisy(0), noisy(1)])
    with pytest.raises(VragError, match="A has two answers to one query_id"):
        paired_answers(twice, twice)


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


def test_a_forecast_saves_no_answers(
    birds: Benchmark, judged: pd.DataFrame, tmp_path: Path
) -> None:
    with dry_run(tmp_path):
        save_answers(judged, birds, tmp_path / "f", "03_birds", tmp_path)
    assert not (tmp_path / "f").exists()


def test_saved_answers_are_no_results(figures: Path) -> None:
    with pytest.raises(VragError, match="holds no results"):
        load_results(figures)


def test_rows_of_the_figure_say_how_both_were_asked_and_what_changed(figures: Path) -> None:
    (row,) = name_paired_tests(to_percent(paired_tests(both(figures)))).to_dict("records")
    assert row["changed"].endswith(": +3 −1")
    assert row["value"] == pytest.approx(40.0)  # 80 less 40 percent


def test_the_table_reads_as_people_say_it(figures: Path) -> None:
    pairs = both(figures)
    (row,) = paired_tests_table(to_percent(paired_tests(pairs)), pairs).to_dict("records")
    assert (row["A: goose"], row["B: gander"]) == ("40.0 [2.4, 94.8]", "80.0 [10.3, 99.3]")
    assert row["changed (+ / −)"] == "+3 −1"
    assert row["n_groups"] == 3  # the fourth is that of the refused answer
    assert row["failed"] == 1
    assert row["verdict (B against A)"] == "not significant"


@pytest.mark.slow
def test_the_page_is_read_offline_by_keyboard_and_in_a_narrow_window(
    figures: Path, tmp_path: Path, chromium: Browser
) -> None:
    chosen = ["--a", "model=goose", "--b", "model=gander", "--a", "setting=gt_clue"]
    to = tmp_path / "out"
    sides = [str(figures), *chosen, "--b", "setting=non_clue", "--to", str(to)]
    assert CliRunner().invoke(app, ["compare", *sides]).exit_code == 0
    page = chromium.new_page(viewport={"width": 360, "height": 640})
    page.context.set_offline(True)
    page.goto((to / "compare.html").as_uri())
    # only the table scrolls sideways, and the keyboard reaches it, the links and the prompts
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    reached = []
    for _ in range(4):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.tagName"))
    assert reached == ["DIV", "A", "A", "SUMMARY"]
    page.keyboard.press("Enter")
    assert page.locator("details[open]").count() == 1
    assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
    page.close()
