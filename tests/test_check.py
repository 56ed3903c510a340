"""`vrag check params/….yaml` counts what a run will ask and lists what it lacks, and
runs, asks and fetches nothing.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import yaml
from conftest import ROOT, WEIGHTS
from own_project import Write
from typer.testing import CliRunner

from vrag_kit.benchmarks import load_visual_rag
from vrag_kit.benchmarks.images import list_images
from vrag_kit.building.folders import read_folders
from vrag_kit.building.log import LogFile
from vrag_kit.building.questions import read_questions
from vrag_kit.errors import VragError
from vrag_kit.forecast import Same, forecasting, once, stand_in_words
from vrag_kit.generation import (
    AnswerStore,
    ask_models,
    ask_prompts,
    gt_clue,
    load_generator,
)
from vrag_kit.generation.wording import Wording
from vrag_kit.judging import load_judge
from vrag_kit.papers.visual_rag import RUBRIC, WORDING
from vrag_kit.retrieval import perfect_run, write_run
from vrag_kit.runner.at_hand import not_here, open_clip_models
from vrag_kit.runner.check import check_parameters
from vrag_kit.runner.cli import app
from vrag_kit.runner.foresight import Foresight, foresee
from vrag_kit.runner.notebooks import run_notebooks
from vrag_kit.runner.parameters import declared, read_parameters
from vrag_kit.runner.plan import Plan, all_notebooks, name_of, read_plan
from vrag_kit.types import Answer, Benchmark, Message

NOTHING = Foresight(models=[], stored=0, any_order=[], failed={}, partly={}, cut={})
ONE = ["visual_rag/03_baselines"]
SEARCHING = "visual_rag/02_retriever_comparison"
LARGE = ["visual_rag/07_easy_negatives"]


@pytest.fixture
def parameters(guide_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a parameter file over the small guide."""
    monkeypatch.chdir(ROOT)

    def write(**values: object) -> Path:
        data = {
            "notebooks": [
                "00_tour",
                "visual_rag/02_retriever_comparison",
                "visual_rag/03_baselines",
            ],
            "data": {
                "annotations": str(guide_folder / "annotations.jsonl"),
                "image_root": str(guide_folder / "images"),
                "name": "Field Guide (small)",
            },
            "answers_dir": str(tmp_path / "answers"),
            "models": [str(WEIGHTS / "field-guide-vlm-few")],
            **values,
        }
        how = ("device", "decoding", "samples")
        data["run_with"] = {name: data.pop(name) for name in how if name in data}
        for name in ("annotations", "image_root"):
            data["data"][name] = data.pop(name, data["data"][name])
        (tmp_path / "p.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
        return tmp_path / "p.yaml"

    return write


def forecast_calls(found: list[str]) -> int:
    return int("\n".join(found).split("forecast: ")[1].split(" calls")[0].replace(",", ""))


def test_a_run_asks_what_was_forecast_and_then_nothing_is_left_to_ask(
    parameters, tmp_path: Path
) -> None:
    file = parameters(notebooks=ONE)
    found, missing = check_parameters(file)
    assert (missing, list(tmp_path.iterdir())) == ([], [file])  # nothing was written
    assert "0 answers that the notebooks use are stored already" in found
    figures = tmp_path / "figures"
    (outcome,) = run_notebooks([parameters(notebooks=ONE, figures_dir=str(figures))])
    assert outcome.status == "done", outcome.detail
    with AnswerStore(tmp_path / "answers" / "answers.sqlite") as store:
        asked = int(re.search(r"([\d,]+) answers", repr(store))[1].replace(",", ""))
    assert forecast_calls(found) == asked > 100
    found, missing = check_parameters(file)
    assert "no model is asked anything" in found
    assert f"{asked:,} answers that the notebooks use are stored already" in found
    # as plain papermill and JupyterLab hand over a mapping that is given in part
    plan = read_plan(file)
    for part in ({"device": "cpu"}, {"retry_failures": True}):
        given = {book: {**values, "run_with": part} for book, values in plan.given.items()}
        foresight = foresee(replace(plan, given=given), {})
        assert (foresight.models, foresight.stored, foresight.failed) == ([], asked, {})


def test_notebooks_that_ask_the_same_ask_it_once(parameters) -> None:
    calls = []
    for notebooks in (ONE, ["visual_rag/11_judge_agreement"]):
        calls.append(forecast_calls(check_parameters(parameters(notebooks=notebooks))[0]))
    both = parameters(notebooks=[*ONE, "visual_rag/11_judge_agreement"])
    assert forecast_calls(check_parameters(both)[0]) == calls[0] == calls[1]


def test_a_judge_is_asked_about_every_answer_and_every_wording_counts(
    parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    judge = {"model": "o4-mini@openai", "max_cost": 500}
    file = parameters(notebooks=["visual_rag/05_gcue_curves"], judge=judge, judge_samples=2)
    found, missing = check_parameters(file)
    assert missing == []
    calls = re.findall(r"forecast: ([\d,]+) calls", "\n".join(found))
    answers, verdicts = sorted(int(each.replace(",", "")) for each in calls)
    assert verdicts == 2 * answers
    (again,) = [line for line in "\n".join(found).splitlines() if "cannot be read" in line]
    assert f"at most {verdicts:,} calls more" in again
    assert any("all models together: about" in line for line in found)


def test_hours_are_forecast_of_as_many_calls_at_once_as_the_run_will_make(
    parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    models = ["gpt-4o@openai", {"model": "gpt-4.1@openai", "concurrency": 1}]
    found = "\n".join(check_parameters(parameters(notebooks=ONE, models=models))[0])
    assert "if a call takes 5 seconds, 32 at once" in found  # the notebook's batch size
    assert "if a call takes 5 seconds, 1 at once" in found
    calls = forecast_calls([found])
    minutes = round(calls * 5 / 60 * (1 / 32 + 1))
    assert minutes >= 10
    assert f"one after another, {minutes} min" in found


def test_what_a_search_will_find_is_marked_as_an_estimate(parameters, tmp_path: Path) -> None:
    nothing_searched = str(tmp_path / "embeddings")
    file = parameters(notebooks=["visual_rag/08_inat24_corpus"], cache_dir=nothing_searched)
    found, _ = check_parameters(file)
    assert any("an estimate: not searched yet" in line for line in found)


def test_the_limit_of_a_models_images_lowers_its_calls(parameters) -> None:
    model = str(WEIGHTS / "field-guide-vlm-few")
    all_of_them, some = (
        check_parameters(parameters(notebooks=LARGE, models=[entry]))[0]
        for entry in (model, {"model": model, "max_images": 3})
    )
    assert forecast_calls(some) < forecast_calls(all_of_them) / 2
    images, most = (
        [
            int(re.search(r"calls, ([\d,]+) images", "\n".join(found))[1].replace(",", ""))
            for found in (all_of_them, some)
        ],
        3,
    )
    assert images[1] <= most * forecast_calls(some) < images[0]


def test_a_mistyped_folder_is_asked_about_before_a_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    for folder in ("notebooks", "params", "mymodels/tinyclip"):
        (project / folder).mkdir(parents=True)
    monkeypatch.chdir(project)
    told = not_here("mymodels/tinycli", "retriever")
    assert told.startswith("retriever 'mymodels/tinycli': there is no such folder. Did you mean")
    assert told.index("'mymodels/tinyclip'?") < told.index("hf download")


def test_what_is_missing_is_listed_all_at_once(parameters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    _, missing = check_parameters(
        parameters(
            annotations="nowhere.jsonl",
            models=["Qwen/Qwen2.5-VL-7B-Instruct", "gpt-4o@openai", "./nothing"],
            device="cuda:9",
            retrievers=["BAAI/BGE-VL-large"],
            judge={"model": "o4-mini@openai"},
        )
    )
    for words in (
        "device 'cuda:9' cannot be used",
        "retriever 'BAAI/BGE-VL-large' is not on this machine yet",
        "nowhere.jsonl: no such annotation file",
        (
            "model 'Qwen/Qwen2.5-VL-7B-Instruct' is not on this machine yet; the first run fetches"
            " it, or `hf download"
        ),
        "model 'gpt-4o': the key for",
        "there is no such folder",
        "judge 'o4-mini': the key for",
    ):
        assert sum(words in line for line in missing) == 1, (words, missing)
    assert len(missing) == 7


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"models": [3]}, "model: found 3, expected a name"),
        ({"models": [None]}, "model: found None"),
        ({"models": [{"model": "./x", "max_images": "15"}]}, "max_images is '15'"),
        ({"models": [{"model": "./x", "revision": date(2024, 1, 1)}]}, "revision is datetime.date"),
        ({"answerer": "typo@opnai"}, "unknown endpoint 'opnai'"),
        ({"retrievers": ["./nonsense"]}, "there is no such folder"),
        ({"retrievers": [{"model": "ViT-B-32/openai", "dtyp": 1}]}, "unknown option 'dtyp'"),
        ({"samples": 3, "decoding": "greedy"}, "samples is 3; expected 1, as it decodes greedily"),
        (
            {
                "models": [
                    str(WEIGHTS / "field-guide-vlm-few"),
                    {"model": str(WEIGHTS / "field-guide-vlm-few"), "max_images": 3},
                ]
            },
            "two are named 'field-guide-vlm-few'",
        ),
    ],
)
def test_what_the_run_would_refuse_is_missing_here(
    values: dict[str, object], words: str, parameters
) -> None:
    _, missing = check_parameters(parameters(**values))
    assert any(words in line for line in missing), missing


def test_a_run_from_elsewhere_is_checked_before_anything_runs(
    parameters, guide: Benchmark, tmp_path: Path
) -> None:
    run = tmp_path / "mine.run"
    some = {name: dict.fromkeys(guide.candidates(name)[:12], 1) for name in guide.queries}
    write_run(perfect_run(some), run, "mine")
    cache = {"cache_dir": str(tmp_path / "embeddings")}

    def checked(*retrievers: object) -> tuple[str, list[str]]:
        file = parameters(notebooks=[SEARCHING, *ONE], retrievers=list(retrievers), **cache)
        found, missing = check_parameters(file)
        return "\n".join(found), missing

    found, missing = checked(str(run), {"model": str(run), "name": "again"})
    assert missing == []
    assert "an estimate" not in found
    first = next(iter(guide.queries))
    words = f"k = 20, 30 is cut to 12: the run of mine holds 12 documents for query {first!r}"
    assert f"02_retriever_comparison: {words}" in found
    found, missing = checked(str(run), "field-guide-clip-32")
    assert missing == []
    assert "in their place, is what field-guide-clip-32 will find" in found
    text = run.read_text(encoding="utf-8")
    run.write_text(text.replace("Q0 ", "Q0 x", 1), encoding="utf-8")
    _, (told,) = checked(str(run))
    assert re.search(r"02_retriever_comparison: .*mine\.run line 1: document 'x.*mean", told)
    run.write_text(text + "one two\n", encoding="utf-8")
    found, (told,) = checked(str(run), "field-guide-clip-64")
    assert "an estimate" not in found  # nothing is searched for what no run takes
    assert f"mine.run line {12 * len(guide.queries) + 1}: 2 fields, expected 6" in told
    _, (told,) = checked(str(run.with_name("nine.run")))
    assert "there is no such file" in told
    assert "Did you mean 'mine.run'" in told


def test_retrievers_by_modality_are_looked_for_one_by_one(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    values = {
        "notebooks": ["mrag_suite/46_prompt_sweep"],
        "suite": {"mine": {"layout": "pages", "rows": str(tmp_path / "nowhere")}},
        "retrievers": {"image": ["bm25", "nobody/one"], "text": ["bm25", {"model": "./two"}]},
    }
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    _, missing = check_parameters(file)
    told = [line for line in missing if "retriever" in line or "two" in line]
    assert len(told) == 2, missing
    assert "retriever 'nobody/one' is not on this machine yet" in told[0]
    assert "two" in told[1]


@pytest.mark.parametrize("parameter", ["data", "webqa", "articles", "other_corpus"])
@pytest.mark.parametrize("models", [[], ["field-guide-vlm-few"]])
def test_data_that_are_not_drawn_are_refused_at_once_and_once_as_the_run_does(
    parameter: str, models: list[str], parameters
) -> None:
    path = parameters(notebooks=["visual_rag"], models=models)
    given = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({**given, parameter: "field-guide-medium"}), encoding="utf-8")
    for refuse in (check_parameters, lambda file: run_notebooks([file])):
        with pytest.raises(VragError, match=f"{parameter} is 'field-guide-medium'; expected 'fi"):
            refuse(path)


def test_data_a_judge_and_a_model_that_are_wrong_are_named_in_one_round(parameters) -> None:
    path = parameters(judge="ruel", models=["field-guide-vlm-man"])
    given = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({**given, "data": "field-guide-smal"}), encoding="utf-8")
    with pytest.raises(VragError) as refused:
        check_parameters(path)
    lines = str(refused.value).splitlines()
    assert len(lines) == 3
    for wrong, meant in (
        ("'field-guide-smal'", "'field-guide-small'"),
        ("'ruel'", "'rule'"),
        ("'field-guide-vlm-man'", "'field-guide-vlm-many'"),
    ):
        assert any(wrong in line and meant in line for line in lines)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gpt-4o", "gpt-4o@openai"),
        ("claude-3-5-sonnet-20241022", "claude-3-5-sonnet-20241022@anthropic"),
        ("gemini-1.5-pro", "gemini-1.5-pro@gemini"),
        ("o3", "o3@openai"),
    ],
)
def test_a_providers_model_without_its_endpoint_is_asked_about_and_no_hub_is_asked(
    typed: str, meant: str, parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vrag_kit.runner.check.foresee", lambda *_: NOTHING)
    asked = f"model '{typed}': .*Did you mean '{meant}'\\?"
    for given in ({"models": [typed]}, {"models": [{"model": typed, "max_cost": 5}]}):
        _, missing = check_parameters(parameters(**given))
        assert re.search(asked, missing[0])
    _, missing = check_parameters(parameters(judge=typed))
    assert re.search(asked, missing[0])
    with pytest.raises(VragError, match=asked):
        load_generator(typed)


def test_a_mistyped_rule_is_asked_about_and_no_hub_is_asked(
    parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "judge is 'ruel'; expected 'rule', "
    monkeypatch.setattr("vrag_kit.runner.check.foresee", lambda *_: NOTHING)
    _, missing = check_parameters(parameters(judge="ruel"))
    (told,) = missing
    assert told.startswith(words)
    assert told.endswith("Did you mean 'rule'?")
    with pytest.raises(VragError, match=words):
        load_judge("ruel", rubric=RUBRIC)


MISTYPED = {
    "guide": "field-guide-medium",
    "pictures": {"image": "x", "name": "y"},
    "data": {"name": "y", "annotations": "x"},
    "mrag_rows": "mrag-drwn",
    "mrag_texts": "mrag-drwn",
    "crag_mm_single": "worn-drawn-smal",
    "crag_mm_multi": "worn-drwn",
    "suite": "suite-drwn",
    "models": ["field-guide-vlm-fwe"],
    "answerer": "gpt-4o@opnai",
    "judge": "ruel",
    "checker": {"model": "field-guide-vlm-few", "dtyp": "float16"},
    "extractor": "rul",
    "assessors": ["./nowhere"],
    "rewriters": [{"model": "field-guide-vlm-few", "max_images": 0}],
    "writer": "templat",
    "coarse_filter": {"filter_model": "none"},
    "filter_models": [3],
    "retriever": "field-guide-clip-46",
    "text_retriever": "./nowhere",
    "retrievers": [{"model": "field-guide-clip-64", "querry": "image"}],
    "graph": {"image_service": "field-guide-wron"},
    "web": {"web_service": "bm52"},
    "run_with": {"decoding": "greddy"},
}
"""Parameter → a value that no notebook could run with."""


@pytest.mark.parametrize("parameter", MISTYPED)
def test_the_check_and_the_run_refuse_the_same_in_the_same_words_before_a_notebook_begins(
    parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("vrag_kit.runner.check.foresee", lambda *_: NOTHING)
    books = [book for book in all_notebooks() if parameter in declared(book)]
    file = tmp_path / "p.yaml"
    values = {parameter: MISTYPED[parameter], "notebooks": [name_of(books[0])]}
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    with pytest.raises(VragError) as refused:
        run_notebooks([file])
    words = str(refused.value)
    assert words.startswith(f"{file}: "), words
    try:
        _, missing = check_parameters(file)
    except VragError as error:
        missing = [str(error).removeprefix(f"{file}: ")]
    assert [words.removeprefix(f"{file}: ")] == missing


def test_a_mistyped_name_is_told_before_a_file_elsewhere_is_asked_for_its_notebooks(
    tmp_path: Path,
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("suite: suite-drwn\n", encoding="utf-8")
    with pytest.raises(VragError, match="suite is 'suite-drwn'"):
        check_parameters(file)


def test_what_several_notebooks_miss_is_one_line_with_all_their_names(
    parameters: Callable[..., Path],
) -> None:
    notebooks = ["visual_rag/03_baselines", "visual_rag/13_rouge"]
    _, missing = check_parameters(parameters(notebooks=notebooks, annotations="nowhere.jsonl"))
    (line,) = missing
    assert line.startswith("visual_rag/03_baselines, visual_rag/13_rouge: ")
    assert "nowhere.jsonl: no such annotation file" in line


def test_what_many_notebooks_miss_begins_with_the_file_and_counts_them(
    parameters: Callable[..., Path], tmp_path: Path
) -> None:
    annotations = tmp_path / "nowhere.jsonl"
    file = parameters(notebooks=["visual_rag"], annotations=str(annotations))
    (line,) = [line for line in check_parameters(file)[1] if "nowhere" in line]
    assert line.startswith(f"{annotations}: no such annotation file")
    assert re.search(r" \(1\d notebooks: 01, 02, 03, …\)$", line)


QUESTIONS = """species,question,feature,writer
moth,What color are its hindwings?,hindwings,me
anlo,What color is its throat fan?,throat fan,me
"""


def test_what_is_wrong_with_ones_own_pictures_and_questions_is_told_with_their_own_files(
    guide_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    things = tmp_path / "things"
    first, second, *_ = sorted((guide_folder / "images").iterdir())
    for name, folder in (("anole", first), ("moth", second)):
        shutil.copytree(folder, things / name)
    (tmp_path / "building").mkdir()
    questions = tmp_path / "building" / "questions.csv"
    questions.write_text(QUESTIONS, encoding="utf-8")
    values = {
        "notebooks": ["building"],
        "pictures": {"name": "My things", "images": str(things)},
        "coarse_filter": {"filter_model": ""},
        "building_dir": str(questions.parent),
        "built_dir": str(tmp_path / "built"),
        "annotations_made": [],
        "adjudicated": "",
    }
    file = tmp_path / "p.yaml"
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    (told,) = check_parameters(file)[1]
    assert f": {questions} line 3: found the species 'anlo'" in told
    (things / "anlo").mkdir()
    for number in range(3):
        (things / "anlo" / f"{number}.HEIC").write_bytes(b"heic")
    (things / "moth" / "4.heic").write_bytes(b"heic")
    told, (fault,) = check_parameters(file)
    words = "anlo/ has 3 files, none of them .jpg, .jpeg, .png, .webp (3 .heic)"
    assert f"line 3: found the species 'anlo', but {words}: convert them." in fault
    there = len(list((things / "moth").iterdir()))
    words = f"{words}; moth/ has {there} files, of which 1 .heic are passed over"
    assert any(words in line for line in told), told
    (things / "moth" / "bad.jpg").write_text("no picture", encoding="utf-8")
    told, _ = check_parameters(file)[1]
    assert f"{things / 'moth' / 'bad.jpg'}: no picture, though it is called like one" in told
    assert f"so are 1 of the {len(list(things.glob('*/*.jpg')))} files" in told


@pytest.fixture
def things(guide_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one's own: two classes of pictures, and a parameter file for 20."""
    monkeypatch.chdir(ROOT)
    first, second, *_ = sorted((guide_folder / "images").iterdir())
    for name, folder in (("anole", first), ("moth", second)):
        shutil.copytree(folder, tmp_path / "things" / name)
    values = {
        "notebooks": ["building"],
        "pictures": {"name": "My things", "images": str(tmp_path / "things")},
        "coarse_filter": {"filter_model": ""},
        "building_dir": str(tmp_path / "building"),
        "built_dir": str(tmp_path / "built"),
        "annotations_made": [str(tmp_path / "building" / "ada.jsonl")],
        "adjudicated": "",
    }
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    (tmp_path / "building").mkdir()
    return tmp_path


def test_a_class_without_ticks_is_named_before_the_benchmark_is_built_without_it(
    things: Path,
) -> None:
    questions = things / "building" / "questions.csv"
    questions.write_text(QUESTIONS.replace("anlo", "anole"), encoding="utf-8")
    read = read_questions(questions, read_folders(things / "things"))
    (moth,) = read.query("species == 'moth'").itertuples()
    log = LogFile(things / "building" / "ada.jsonl", "ada")
    told = {"species": "moth", "folder": "moth", "question": moth.question, "feature": "hindwings"}
    log.append(moth.question_id, "opened", told)
    images = [f"moth/{path.name}" for path in list_images(things / "things" / "moth")]
    log.append(moth.question_id, "seen", {"images": images, "unreadable": []})
    log.append(moth.question_id, "ticked", {"image": images[0]})
    log.append(moth.question_id, "answered", {"text": "red"})
    log.append(moth.question_id, "done", {"shown": len(images), "clues": 1})
    found, missing = check_parameters(things / "p.yaml")
    assert missing == []
    said = "of 1 of 2 species no question is kept: anole (not annotated: nobody has finished it)"
    assert any(line.endswith(said) for line in found), found


def test_own_classes_without_a_file_of_questions_are_told_where_it_belongs(things: Path) -> None:
    (told,) = check_parameters(things / "p.yaml")[1]
    assert f"{things}/building/questions.csv: " in told
    assert "the template writer knows organisms only, not anole, moth" in told
    assert "(columns species, question, feature, writer), or name a model as `writer`" in told
    assert "there was no such file" not in told  # after a run there is


def test_a_picture_of_ones_own_that_is_cut_off_is_told(things: Path) -> None:
    (picture, *_) = sorted((things / "things" / "moth").glob("*.jpg"))
    picture.write_bytes(picture.read_bytes()[:-500])
    told, *_ = check_parameters(things / "p.yaml")[1]
    assert told.startswith(f"{picture}: not a readable picture (image file is truncated")
    count = len(list((things / "things").glob("*/*.jpg")))
    assert f"So are 1 of {count} that were opened in {things / 'things'}." in told


def test_a_model_is_called_by_its_name_in_a_forecast(parameters: Callable[..., Path]) -> None:
    mine = {"model": str(WEIGHTS / "field-guide-vlm-few"), "name": "mine"}
    found, _ = check_parameters(parameters(notebooks=ONE, models=[mine]))
    assert any(line.startswith("mine\n  forecast: ") for line in found)


def test_without_models_what_is_wrong_with_data_is_still_missing(
    parameters: Callable[..., Path],
) -> None:
    mistyped = {"notebooks": ONE, "models": ["field-guide-vlm-fwe"]}
    _, missing = check_parameters(parameters(annotations="nowhere.jsonl", **mistyped))
    assert len(missing) == 2
    assert "nowhere.jsonl: no such annotation file" in missing[1]
    (told,) = check_parameters(parameters(**mistyped))[1]
    assert "'field-guide-vlm-fwe'" in told


def test_what_is_larger_than_a_pool_is_told_for_each_notebook(
    parameters: Callable[..., Path],
) -> None:
    notebook = "visual_rag/19_abstention_as_detection"
    few = {"models": ["field-guide-vlm-few"], "evidence": {"ks": [1, 999]}}
    found, missing = check_parameters(parameters(notebooks=[notebook], **few))
    (told,) = [line for line in found if " is cut to " in line]
    assert re.fullmatch(rf"{notebook}: k = 999 is cut to \d+: query .* that are no clue", told)
    assert missing == []


def test_a_notebook_is_no_parameter_file_and_what_runs_it_is_told() -> None:
    words = r"00_tour\.ipynb: this is a notebook; .* `papermill .*`notebooks: \[00_tour\]`"
    with pytest.raises(VragError, match=words):
        read_parameters(ROOT / "notebooks" / "00_tour.ipynb")


def test_a_name_that_is_given_twice_and_a_wrong_indentation_are_named_with_their_line(
    tmp_path: Path,
) -> None:
    path = tmp_path / "p.yaml"
    for text, words in (
        ("models: [a]\nseed: 1\nmodels: [b]\n", r"line 3: .*'models' is given twice"),
        ("models:\n  - a\n - b\n", r"line \d: not YAML .*Check the indentation"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(VragError, match=words):
            read_parameters(path)


def test_sampling_fields_may_stand_for_a_whole_file(parameters) -> None:
    assert check_parameters(parameters(decoding={"temperature": 0.7}, samples=3))[1] == []


@pytest.mark.parametrize(
    ("content", "words"), [(b"\xff\xfed\x00", "not UTF-8 text"), (None, "this is a folder")]
)
def test_a_file_that_holds_no_parameters_is_refused(
    content: bytes | None, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "p.yaml"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(VragError, match=words):
        check_parameters(path)


def test_outside_of_the_project_that_is_said(
    parameters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = parameters()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(VragError, match="Run this in the project's folder"):
        check_parameters(path)


def test_a_model_that_cannot_hold_the_images_or_costs_too_much_is_missing_something(
    parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    long = {"model": str(WEIGHTS / "field-guide-vlm-few"), "max_new_tokens": 1900}
    found, missing = check_parameters(
        parameters(
            notebooks=LARGE,
            models=[long, {"model": "gpt-4o@openai", "max_cost": 0.01}],
            decoding="greedy",
            judge="o4-mini@openai",
        )
    )
    assert any("prompts will not fit" in line for line in missing), missing
    assert any(
        "model 'gpt-4o': it will cost about" in line and "its max_cost is 0.01" in line
        for line in missing
    )
    assert any(line.startswith("all models together: about") for line in found)


def test_open_clips_models_are_known_without_importing_it() -> None:
    import open_clip

    assert open_clip_models() == set(open_clip.list_models())


def test_the_command_ends_with_1_when_something_is_missing_and_with_0_when_nothing_is(
    parameters,
) -> None:
    good = CliRunner().invoke(app, ["check", str(parameters())])
    assert (good.exit_code, good.output.splitlines()[-1]) == (0, "nothing is missing")
    bad = CliRunner().invoke(app, ["check", str(parameters(image_root="/nowhere"))])
    assert bad.exit_code == 1
    assert "missing: 00_tour, visual_rag/02_retriever_comparison, visual_rag/03" in bad.output


@pytest.mark.parametrize("only", [["--only", "02", "--only", "00"], ["--only", "02,00"]])
def test_some_notebooks_of_a_file_are_checked_alone(only: list[str], parameters) -> None:
    bad = CliRunner().invoke(app, ["check", str(parameters(image_root="/nowhere")), *only])
    assert bad.exit_code == 1
    assert "missing: 00_tour, visual_rag/02_retriever_comparison: " in bad.output
    assert "03_baselines" not in bad.output
    wrong = CliRunner().invoke(app, ["check", str(parameters()), *only, "--only", "07"])
    assert "no notebook '07'; found 00_tour, visual_rag/02" in str(wrong.exception)


def test_a_parameter_of_a_notebook_that_is_not_in_the_file_is_no_mistyped_one(
    parameters, tmp_path: Path
) -> None:
    ours = {"notebooks": [SEARCHING], "ks": [1, 3], "positions": {"ks": [3]}, "most_clues": 2}
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump({**ours, "run_with": {"samples": 2, "max_new_tokens": 8}}))
    with pytest.raises(VragError) as refused:
        check_parameters(path)
    told = [line.removeprefix(f"{path}: ") for line in str(refused.value).splitlines()]
    not_here = "which this file is not for. Name it under `notebooks`, or remove the line."
    assert f"most_clues is a parameter of 06_number_of_clues, {not_here}" in told
    assert f"positions is a parameter of 15_error_budget, {not_here}" in told
    assert any(
        re.match(r"ks is a parameter of \d\d_\w+, .* and \d+ more, which", line) for line in told
    )
    assert any(line.startswith("run_with: max_new_tokens is a key of 00_tour, ") for line in told)
    assert len(told) == 4
    assert "Did you mean" not in str(refused.value)


REAL = sorted(set((ROOT / "params").rglob("*.yaml")) - set((ROOT / "params").rglob("demo.yaml")))


@pytest.mark.parametrize("path", REAL, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_parameter_file_of_the_kit_can_be_checked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    found, missing = check_parameters(path)
    assert "every name is declared" in found[0]
    of_data = re.compile(r"[\w/, ]+: |.*notebooks: ")  # "visual_rag/12_webqa_captions: …"
    wrong = [line for line in missing if not of_data.match(line)]
    assert not any("unknown option" in line or "expected" in line for line in wrong), missing


def test_what_a_notebook_cannot_have_is_listed_beside_all_else(parameters, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    found, missing = check_parameters(
        parameters(
            notebooks=["visual_rag"],
            most_clues=99,
            other_corpus={"images": str(tmp_path / "empty"), "name": "plates"},
            articles={"pages": str(tmp_path / "nowhere"), "species_list": "nowhere.json"},
        )
    )
    assert [line.split(":")[0] for line in missing] == [
        "visual_rag/06_number_of_clues",
        "visual_rag/08_inat24_corpus",
        "visual_rag/09_wikipedia_text_rag",
    ]
    assert "the most are" in missing[0]
    assert forecast_calls(found) > 0


@pytest.mark.parametrize("paid", [True, False])
def test_a_sum_names_the_notebooks_that_are_not_in_it_and_the_forecast_ends_with_1(
    paid: bool, parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    models = {"models": ["gpt-4o@openai"]} if paid else {}
    names = ["visual_rag/03_baselines", "visual_rag/08_inat24_corpus", "visual_rag/09_wikipedia"]
    articles = {"pages": "/nowhere", "species_list": "nowhere.json"}
    plates = {"images": "/nowhere", "name": "plates"}
    given = {"other_corpus": plates, "articles": articles, **models}
    ended = CliRunner().invoke(app, ["forecast", str(parameters(notebooks=names, **given))])
    (line,) = [line for line in ended.output.splitlines() if line.startswith("all models together")]
    cost = re.fullmatch(r"all models together: so far about ([\d.]+) US dollars(.*)", line)
    assert (ended.exit_code, float(cost[1]) > 0) == (1, paid)
    assert "without 2 notebooks that cannot be counted yet: 08, 09 (" in cost[2]
    assert "`python -m tests.timing.costs visual_rag`" in cost[2]
    whole = parameters(notebooks=ONE, **models, judge="o4-mini@openai")
    ended = CliRunner().invoke(app, ["forecast", str(whole)])
    assert (ended.exit_code, "so far" in ended.output) == (0, False)


def test_a_sum_without_the_tokens_of_pictures_or_without_a_price_is_at_least_so_much(
    parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    fake = {"model": "fake@http://127.0.0.1:9/v1", "prices": [2.5, 10], "decoding": "greedy"}
    models = [fake, "gpt-0@openai"]
    found, _ = check_parameters(parameters(notebooks=ONE, models=models))
    told = "\n".join(found)
    assert re.search(r"\n  at least [\d.]+ US dollars at 2.5 for", told)
    assert re.search(r"\nall models together: at least 0\.\d\d US dollars", told)
    assert "; not counted: pictures of fake, calls of gpt-0" in told


def test_right_types_are_claimed_only_where_nothing_is_wrong(parameters) -> None:
    hot = {"model": str(WEIGHTS / "field-guide-vlm-few"), "decoding": {"temperature": "hot"}}
    found, missing = check_parameters(parameters(notebooks=ONE, models=[hot]))
    assert any("temperature is 'hot'" in line for line in missing)
    assert "right type" not in found[0]
    assert "right type" in check_parameters(parameters(notebooks=ONE))[0][0]


ASKING = """from pathlib import Path
from vrag_kit.generation import AnswerStore, ask_prompts, load_generator
from vrag_kit.types import Message
model = load_generator("gpt-4o@openai", decoding="greedy")
with AnswerStore(Path(folder) / "answers.sqlite") as store:
    ask_prompts(model, [(Message(role="user", parts=(words,)),)], store)"""


@pytest.fixture
def foresee_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Foresee a notebook with these cells after its parameters."""
    monkeypatch.setattr("vrag_kit.runner.foresight.name_of", lambda notebook: notebook.stem)
    return lambda *cells: _foresee_cells(tmp_path, *cells)


def _foresee_cells(tmp_path: Path, *cells: str) -> Foresight:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    given = {"answers_dir": str(tmp_path / "answers")}
    parameters = nbformat.v4.new_code_cell(f"answers_dir = {given['answers_dir']!r}")
    parameters.metadata["tags"] = ["parameters"]
    book.cells = [parameters, *(nbformat.v4.new_code_cell(cell) for cell in cells)]
    path = tmp_path / "asking.ipynb"
    nbformat.write(book, path)
    return foresee(Plan(file=path, given={path: given}, folder=tmp_path, cluster=""), {})


def test_a_cell_that_fails_keeps_no_later_one_from_asking_and_is_told(foresee_cells) -> None:
    first, second = "folder, words = answers_dir, 'a'", "words = 'b'"
    foresight = foresee_cells(first, ASKING, "1 / 0", second, ASKING)
    assert [asked.forecast.calls for asked in foresight.models] == [2]
    assert foresight.failed == {}
    (fault,) = foresight.partly.values()
    assert fault == "code cell 4 fails there: ZeroDivisionError: division by zero"


def test_an_error_that_no_answer_changes_is_missing_though_it_comes_late(foresee_cells) -> None:
    lacking = "from vrag_kit.frames import require_columns; import pandas as pd\n"
    lacking += "require_columns(pd.DataFrame(), ['score'], 'mine')"
    foresight = foresee_cells("folder, words = answers_dir, 'a'", ASKING, lacking)
    assert foresight.partly == {}
    assert "has no column 'score'" in foresight.failed["asking"]


def test_a_cell_that_may_fail_for_want_of_answers_is_told_last_and_is_nothing_missing(
    parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "code cell 4 fails there: KeyError: 'red'"
    told = replace(NOTHING, partly={"03_baselines": words})
    monkeypatch.setattr("vrag_kit.runner.check.foresee", lambda *_: told)
    ended = CliRunner().invoke(app, ["check", str(parameters())])
    last = "but: one cell fails in the rehearsal (above): look at it before you pay"
    assert (ended.exit_code, ended.output.splitlines()[-1]) == (0, last)
    assert words in ended.output


def test_a_store_whose_parameter_has_any_name_is_forecast_in_full_and_left_as_it_was(
    foresee_cells, tmp_path: Path
) -> None:
    path = tmp_path / "real" / "answers.sqlite"
    with AnswerStore(path) as store:
        store.write([Answer(answer_id="x", raw="Answer: red", sent={})], {"x": []})
    before = path.read_bytes()
    shown = "table = pd.DataFrame({'answer_id': ['x']})"
    first = f"import pandas as pd; {shown}; folder, words = {str(path.parent)!r}, 'a'"
    foresight = foresee_cells(first, ASKING, "words = 'b'", ASKING, ASKING)
    assert [asked.forecast.calls for asked in foresight.models] == [2]  # "b" once
    assert (foresight.stored, foresight.failed, foresight.partly) == (1, {}, {})
    assert path.read_bytes() == before
    foresee_cells(f"folder, words = {str(tmp_path / 'none')!r}, 'a'", ASKING)
    assert not (tmp_path / "none").exists()


def test_what_an_earlier_forecast_left_in_the_store_is_forecast_as_a_call(
    foresee_cells, tmp_path: Path
) -> None:
    path = tmp_path / "answers" / "answers.sqlite"
    with forecasting(path.parent), AnswerStore(path) as store:  # as it was done once
        model = load_generator("gpt-4o@openai", decoding="greedy")
        ask_prompts(model, [(Message(role="user", parts=("a",)),)], store)
    foresight = foresee_cells("folder, words = answers_dir, 'a'", ASKING)
    assert [asked.forecast.calls for asked in foresight.models] == [1]


def test_a_store_of_another_layout_is_named_where_it_lies(foresee_cells, tmp_path: Path) -> None:
    store = tmp_path / "answers" / "answers.sqlite"
    AnswerStore(store).close()
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("UPDATE about SET version = 3")
    foresight = foresee_cells("folder, words = answers_dir, 'a'", ASKING)
    (words,) = foresight.failed.values()
    assert str(store) in words
    assert "layout 3" in words


KILLED = """import os, signal, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size = 5")
db.execute("BEGIN IMMEDIATE")
for number in range(3000):
    row = (str(number), "x" * 500)
    db.execute("INSERT INTO answers (answer_id, status, raw) VALUES (?, 'ok', ?)", row)
os.kill(os.getpid(), signal.SIGKILL)"""


def test_a_store_whose_writer_was_killed_is_forecast_without_what_was_half_written(
    foresee_cells, tmp_path: Path
) -> None:
    store = tmp_path / "answers" / "answers.sqlite"
    AnswerStore(store).close()
    subprocess.run([sys.executable, "-c", KILLED, str(store)], check=False)
    assert store.with_name("answers.sqlite-journal").stat().st_size > 0
    foresight = foresee_cells("folder, words = answers_dir, 'a'", ASKING)
    assert [asked.forecast.calls for asked in foresight.models] == [1]
    assert (foresight.failed, foresight.partly) == ({}, {})
    with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as reader:
        assert reader.execute("SELECT count(*) FROM answers").fetchone() == (0,)


def test_one_k_alone_is_as_good_as_a_curve(parameters, tmp_path: Path) -> None:
    names = ("04_top_k_vs_one_in_k", "05_gcue_curves", "07_easy_negatives", "15_error_budget")
    books = [SEARCHING, *(f"visual_rag/{name}" for name in names)]
    one = {"ks": [5], "cutoffs": [5], "draws": 1, "positions": {"ks": [5], "draws": 1}}
    cache = str(tmp_path / "embeddings")
    found, missing = check_parameters(parameters(notebooks=books, **one, cache_dir=cache))
    assert missing == []
    assert not [line for line in found if "counted without" in line]
    assert any(re.search(r"with 5 images, takes", line) for line in found)


@pytest.mark.parametrize("ks", [[], [0, 5], ["5"], [2.5], [True], [1, 1, 3]])
def test_ks_that_are_no_numbers_of_images_are_refused_at_once(ks: list[object], parameters) -> None:
    words = r"ks is .* Its items are whole numbers from 1 on, each once, one at least"
    with pytest.raises(VragError, match=words):
        check_parameters(parameters(notebooks=LARGE, ks=ks))


@pytest.mark.parametrize("draws", [0, -1])
def test_numbers_of_which_there_is_one_at_least_are_refused_at_once(draws: int, parameters) -> None:
    words = f"draws is {draws}; expected a whole number from 1 on"
    with pytest.raises(VragError, match=words):
        check_parameters(parameters(notebooks=LARGE, draws=draws))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"ks": [1, "three"]}, "ks is [1, 'three'], and 'three' is no whole number from 1 on."),
        ({"ks": [1, 1, 3]}, "ks is [1, 1, 3], and 1 stands there more than once."),
        ({"models": []}, "models is [], but 04_top_k_vs_one_in_k.ipynb takes one at least"),
        ({"judge_samples": 0}, "judge_samples is 0; expected a whole number from 1 on."),
        ({"margin": -3}, "margin is -3; expected a number from 0 on."),
        ({"margin": float("nan")}, "margin is nan; expected a number from 0 on."),
        ({"run_with": {"batch_size": 0}}, "run_with: batch_size is 0; expected a whole number"),
        ({"run_with": {"samples": 0}}, "run_with: samples is 0; expected a whole number from 1"),
        ({"clue_position": 3}, "clue_position is 3; expected a whole number from -3 to 2"),
        ({"clue_position": -6, "ks": [1, 5]}, "clue_position is -6; expected a whole number from"),
    ],
)
def test_what_lies_outside_its_range_is_refused_by_check_and_run_in_the_same_words(
    values: dict[str, object], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    file = tmp_path / "p.yaml"
    file.write_text(yaml.safe_dump({"notebooks": ["04"], **values}), encoding="utf-8")
    told = []
    for refuse in (check_parameters, lambda file: run_notebooks([file])):
        with pytest.raises(VragError) as refused:
            refuse(file)
        told.append(str(refused.value))
    assert told[0] == told[1]
    assert told[0].startswith(f"{file}: {words}")


@pytest.mark.parametrize(
    "count", ["k: {image: 0}", "rules: {votes: 0}", "positions: {draws: 0}", "evidence: {draws: 0}"]
)
def test_a_number_within_a_mapping_is_one_at_least(count: str, tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(f"notebooks: [mrag_suite, visual_rag]\n{count}\n", encoding="utf-8")
    with pytest.raises(VragError, match="is 0; expected a whole number from 1 on"):
        read_plan(file)


def test_without_models_a_notebook_runs_that_shows_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    file = tmp_path / "p.yaml"
    file.write_text("notebooks: [33, 36, 37]\nmodels: []\n", encoding="utf-8")
    assert [given["models"] for given in read_plan(file).given.values()] == [[], [], []]
    file.write_text("notebooks: [37, 14]\nmodels: []\n", encoding="utf-8")
    words = r"14_error_cases\.ipynb takes one at least, .*: it shows what models answer, and"
    with pytest.raises(VragError, match=rf"{words} nothing else \(those that need none: 33_mrag"):
        read_plan(file)


def test_a_clue_may_lie_at_any_place_among_the_fewest_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    file = tmp_path / "p.yaml"
    for place in (-3, -1, 0, 2):
        file.write_text(f"notebooks: [4]\nclue_position: {place}\n", encoding="utf-8")
        (given,) = read_plan(file).given.values()
        assert given == {"clue_position": place}


def test_all_that_is_wrong_with_a_parameter_file_is_told_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    file = tmp_path / "p.yaml"
    lines = "notebooks: [03]\ndata: field-guide-smal\nmodls: [a]\ndraws: 0\n"
    file.write_text(f"{lines}run_with: {{devise: cpu, batch_size: 0}}\n", encoding="utf-8")
    with pytest.raises(VragError) as refused:
        read_plan(file)
    told = str(refused.value).splitlines()
    words = ["'field-guide-small'", "'modls'", "draws is 0", "'devise'", "batch_size is 0"]
    assert len(told) == len(words)
    for line, word in zip(told, words, strict=True):
        assert line.startswith(f"{file}: ")
        assert word in line


def test_a_forecast_reads_a_benchmark_once_and_anew_when_its_file_changes(
    guide_folder: Path, tmp_path: Path
) -> None:
    rows = (guide_folder / "annotations.jsonl").read_text(encoding="utf-8").splitlines()
    file = tmp_path / "annotations.jsonl"
    file.write_text("\n".join(rows[:2]), encoding="utf-8")
    with forecasting(tmp_path):
        first = load_visual_rag(file, guide_folder / "images")
        assert load_visual_rag(file, guide_folder / "images") is first
        assert load_visual_rag(file, guide_folder / "images", name="mine").name == "mine"
        file.write_text("\n".join(rows[:3]), encoding="utf-8")
        assert len(load_visual_rag(file, guide_folder / "images").queries) == 3
    read = load_visual_rag(file, guide_folder / "images")
    assert load_visual_rag(file, guide_folder / "images") is not read


def test_the_rule_says_of_words_that_stand_in_for_answers_what_it_always_said(
    guide: Benchmark, tmp_path: Path
) -> None:
    judge = load_judge("rule")
    words = [stand_in_words(number) for number in (1, 23, 456)]
    names = list(guide.queries)[:5]
    table = pd.DataFrame([(name, word) for name in names for word in words])
    table.columns = ["query_id", "answer"]
    with forecasting(tmp_path):
        quick = judge.judge(guide, table)
    assert quick == judge.judge(guide, table)


def test_a_filter_that_nobody_asked_drops_no_question_and_so_annotating_is_checked_too(
    parameters, guide_folder: Path, tmp_path: Path
) -> None:
    pictures = {
        "images": str(guide_folder / "images"),
        "name": "Field Guide (small)",
        "species_list": str(guide_folder / "categories.json"),
        "articles": str(guide_folder / "articles"),
    }
    books = ["building/20_build_a_benchmark", *ONE]
    mine = {"pictures": pictures, "building_dir": str(tmp_path / "building")}
    found, missing = check_parameters(parameters(notebooks=books, **mine))
    assert missing == []
    assert not [line for line in found if "counted without" in line]
    assert forecast_calls(found) > 0


def test_what_two_notebooks_ask_alike_is_one_question_and_another_wording_another(
    guide: Benchmark, tmp_path: Path
) -> None:
    contexts = gt_clue(guide, draws=1)
    few = [str(WEIGHTS / "field-guide-vlm-few")]
    with forecasting(tmp_path) as forecast:

        def ask(wording: Wording) -> pd.DataFrame:
            return ask_models(few, guide, contexts, tmp_path, wording=wording)

        first, again, other = ask(WORDING), ask(WORDING), ask(WORDING.only("several_images"))
        alike = forecast.models[:2]
    pd.testing.assert_frame_equal(first, again)
    assert [len(model.prompts) for model in alike] == [len(contexts), 0]
    assert not set(first["answer_id"]) & set(other["answer_id"])
    assert set(other["template"]) == {"several_images"}


def test_what_a_forecast_makes_once_is_of_the_very_same_thing_and_a_run_makes_it_anew(
    tmp_path: Path,
) -> None:
    made: list[int] = []

    def make() -> int:
        made.append(len(made))
        return made[-1]

    one, equal = [1], [1]
    with forecasting(tmp_path):
        things = [once(make, Same(one)), once(make, Same(one)), once(make, Same(equal))]
        assert things == [0, 0, 1]
    assert [once(make, Same(one)), once(make, Same(one))] == [2, 3]


def test_a_notebook_that_changes_declares_other_parameters_and_nobody_changes_them_by_mistake(
    tmp_path: Path,
) -> None:
    source = ROOT / "notebooks" / "visual_rag" / "04_top_k_vs_one_in_k.ipynb"
    mine = tmp_path / "mine.ipynb"
    shutil.copy(source, mine)
    declared(mine)["ks"].append(99)
    assert declared(mine) == declared(source)
    mine.write_text(source.read_text(encoding="utf-8").replace("draws = 5", "draws = 11"))
    assert declared(mine) == {**declared(source), "draws": 11}


@pytest.fixture
def empty_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the kit's notebooks in which nothing was drawn yet; the current one."""
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    (tmp_path / "params").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_the_run_draws_itself_is_told_with_what_it_takes_and_is_nothing_missing(
    empty_project: Path,
) -> None:
    file = empty_project / "p.yaml"
    values = {"notebooks": ["03", "04", "14", "16"], "data": "field-guide"}
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    ended = CliRunner().invoke(app, ["check", str(file)])
    *_, told, last = ended.output.splitlines()
    assert (ended.exit_code, last) == (0, "nothing is missing")
    names = ", ".join(
        f"visual_rag/{name}" for name in ("03_baselines", "04_top_k_vs_one_in_k", "14_error_cases")
    )
    words = r"data/field-guide is not drawn yet, .*\(\d+ MB; minutes .*The run draws it; `vrag draw"
    assert re.match(f"{names}: {words}", told)
    assert "no model is asked anything" not in ended.output  # that is not known
    assert not (empty_project / "data").exists()


def test_beside_what_the_run_draws_all_else_that_is_missing_is_missing(
    empty_project: Path,
) -> None:
    file = empty_project / "p.yaml"
    values = {"notebooks": ["03"], "data": "field-guide", "models": ["./nowhere"]}
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    found, (told,) = check_parameters(file)
    assert "./nowhere" in told
    assert any("The run draws it" in line for line in found)


SAYS_RED = """
class Says:
    def generate(self, prompts):
        return ["Answer: red" for _ in prompts]
"""


ASKING_ONE = """import pandas as pd
from pathlib import Path
from vrag_kit.generation import AnswerStore, ask_prompts, load_generator
from vrag_kit.types import Message
with AnswerStore(Path(answers_dir) / "answers.sqlite") as store:
    prompts = [(Message(role="user", parts=(words,)),)]
    answers = ask_prompts(load_generator("mine:Says"), prompts, store)
table = pd.DataFrame({"answer_id": [answer.answer_id for answer in answers]})"""


def test_of_a_notebook_that_the_run_would_skip_only_what_asks_is_rehearsed(
    mine: Write, tmp_path: Path
) -> None:
    for folder in ("notebooks/mine", "params/mine"):
        (tmp_path / folder).mkdir()
    mine(SAYS_RED)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    seen = tmp_path / "seen"
    cells = [
        'words = "a"\nanswers_dir = "answers"',
        ASKING_ONE,
        f"open({str(seen)!r}, 'a').write('x')",
    ]
    book.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    book.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(book, tmp_path / "notebooks" / "mine" / "01_asks.ipynb")
    file = tmp_path / "params" / "mine" / "p.yaml"
    file.write_text("words: b\n", encoding="utf-8")
    (outcome,) = run_notebooks([file])
    assert (outcome.status, seen.read_text(encoding="utf-8")) == ("done", "x"), outcome.detail
    finished = foresee(read_plan(file), {})
    assert (finished.stored, finished.models, finished.failed) == (1, [], {})
    assert seen.read_text(encoding="utf-8") == "x"
    file.write_text("words: c\n", encoding="utf-8")
    (asked,) = foresee(read_plan(file), {}).models
    assert asked.forecast.calls == 1
    assert seen.read_text(encoding="utf-8") == "xx"
