"""`vrag check params/….yaml` counts what a run will ask and lists what it lacks, and
runs, asks and fetches nothing.

Small notebooks of a project of its own are rehearsed here; those of the kit where a claim is
about them.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import yaml
from conftest import ROOT, WEIGHTS
from own_project import (
    ASKING_BOOK,
    ASKS,
    CLUES,
    DECLARED,
    FINDING_BOOK,
    OPENS,
    QUESTIONS_ASKED,
    notebook,
    small_data,
    small_project,
)
from test_runner import said

from vrag_kit.benchmarks.images import list_images
from vrag_kit.building.annotations import AnnotationFile, Vote
from vrag_kit.building.questions import read_questions
from vrag_kit.building.species import read_species_folders
from vrag_kit.dry_run import dry_run
from vrag_kit.errors import VragError
from vrag_kit.generation import (
    AnswerStore,
    ask_models,
    gt_clue,
    load_generator,
)
from vrag_kit.generation.prompts import PromptSet
from vrag_kit.papers.visual_rag.judge import PROMPTS
from vrag_kit.retrieval import write_run
from vrag_kit.retrieval.encoders.loading import open_clip_models, open_encoder
from vrag_kit.retrieval.metrics import oracle_run
from vrag_kit.runner.check import check_parameters
from vrag_kit.runner.dry_run import DryRunReport, dry_run_notebooks
from vrag_kit.runner.params import declared_parameters
from vrag_kit.runner.plan import Plan, read_plan
from vrag_kit.runner.run import run_notebooks
from vrag_kit.types import Answer, Benchmark

FEW = str(WEIGHTS / "field-guide-vlm-few")
SAYS_RED = """class Says:
    def generate(self, prompts):
        return ["Answer: red" for _ in prompts]
"""
BOOKS = [ASKING_BOOK, "mine/02_asks_too", FINDING_BOOK]
SEES = "with open('seen', 'a') as file:\n    file.write('x')"


@pytest.fixture
def parameters(guide_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a parameter file of a project with three notebooks: two ask about the same
    contexts of three questions, one about what it finds.
    """
    small_project(tmp_path, guide_folder)
    asks = Path(tmp_path, f"notebooks/{BOOKS[0]}.ipynb")
    notebook(asks, DECLARED, OPENS, CLUES, ASKS, SEES)
    shutil.copy(asks, asks.with_name("02_asks_too.ipynb"))
    monkeypatch.chdir(tmp_path)

    def write(**values: object) -> Path:
        data = small_data(guide_folder)
        data |= {name: values.pop(name) for name in data if name in values}
        whole = {"notebooks": BOOKS[:1], "data": data, "models": [FEW], **values}
        Path("p.yaml").write_text(yaml.safe_dump(whole), encoding="utf-8")
        return Path("p.yaml")

    return write


def forecast_calls(found: list[str]) -> int:
    return int("\n".join(found).split("forecast: ")[1].split(" calls")[0].replace(",", ""))


@pytest.mark.slow
def test_a_run_asks_what_was_forecast_and_then_nothing_is_left_to_ask(
    parameters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "mine.py").write_text(SAYS_RED, encoding="utf-8")
    file, before = parameters(models=["mine:Says"]), sorted(tmp_path.rglob("*"))
    found, missing = check_parameters(file)
    assert (missing, sorted(tmp_path.rglob("*"))) == ([], [*before, tmp_path / "seen"])
    assert "0 answers that the notebooks use are stored already" in found
    asked = forecast_calls(found)
    assert asked == 2 * QUESTIONS_ASKED
    # notebooks that ask the same ask it once
    both = parameters(notebooks=BOOKS[:2], models=["mine:Says"])
    assert forecast_calls(check_parameters(both)[0]) == asked
    (outcome,) = run_notebooks([parameters(models=["mine:Says"])])
    assert outcome.status == "done", outcome.detail
    with AnswerStore(Path("runs/answers/answers.sqlite")) as store:
        assert f"{asked} answers" in repr(store)
    found, missing = check_parameters(file)
    assert "no model is asked anything" in found
    assert f"{asked} answers that the notebooks use are stored already" in found
    sys.modules.pop("mine", None)


@pytest.mark.slow
def test_a_judge_is_asked_about_every_answer_and_every_wording_counts(
    parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    judge = {"model": "o4-mini@openai", "max_cost": 500}
    found, missing = check_parameters(parameters(judge=judge, judge_samples=2))
    assert missing == []
    calls = re.findall(r"forecast: ([\d,]+) calls", "\n".join(found))
    answers, verdicts = sorted(int(each.replace(",", "")) for each in calls)
    assert verdicts == 2 * answers
    (again,) = [line for line in "\n".join(found).splitlines() if "unreadable replies" in line]
    assert f"at most {verdicts:,} calls more" in again
    assert any("all models together: about" in line for line in found)


def test_hours_are_forecast_of_as_many_calls_at_once_as_the_run_will_make(
    parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    models = ["gpt-4o@openai", {"model": "gpt-4.1@openai", "concurrency": 1}]
    found = "\n".join(check_parameters(parameters(models=models))[0])
    assert "if a call takes 5 seconds, 32 at once" in found  # the notebook's batch size
    assert "if a call takes 5 seconds, 1 at once" in found
    seconds = forecast_calls([found]) * 5 * (1 / 32 + 1)
    assert f"one after another, {seconds:.0f} s" in found


@pytest.mark.slow
def test_the_limit_of_a_models_images_lowers_its_calls_and_what_will_be_found_is_an_estimate(
    parameters,
) -> None:
    mine = {"model": FEW, "max_images": 3, "name": "mine"}
    finds = {"notebooks": [BOOKS[2]], "ks": [1, 3, 5]}
    all_of_them, some = (
        check_parameters(parameters(models=[entry], **finds))[0] for entry in (FEW, mine)
    )
    for found, shown in ((all_of_them, [1, 3, 5]), (some, [1, 3])):
        calls, images = QUESTIONS_ASKED * len(shown), QUESTIONS_ASKED * sum(shown)
        assert f"forecast: {calls} calls, {images} images" in "\n".join(found)
        assert any("an estimate: not searched yet" in line for line in found)
    assert any(line.startswith("mine\n  forecast: ") for line in some)


def test_a_mistyped_folder_is_asked_about_before_a_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    for folder in ("notebooks", "params", "mymodels/tinyclip"):
        (project / folder).mkdir(parents=True)
    monkeypatch.chdir(project)
    with dry_run(tmp_path) as recorded:
        open_encoder("mymodels/tinycli")
    (told,) = recorded.missing
    assert "Did you mean 'mymodels/tinyclip'?" in told


def test_what_is_missing_is_listed_all_at_once(parameters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    models = ["Qwen/Qwen2.5-VL-7B-Instruct", "gpt-4o@openai", "./nothing", FEW]
    values = {"models": models, "retrievers": ["BAAI/BGE-VL-large"]}
    judge = {"model": "o4-mini@openai"}
    _, missing = check_parameters(parameters(notebooks=BOOKS, judge=judge, **values))
    for words in (
        "retrievers: checkpoint 'BAAI/BGE-VL-large' is not on this machine yet",
        "models: checkpoint 'Qwen/Qwen2.5-VL-7B-Instruct' is not on this machine yet; the first"
        " run fetches it, or `hf download",
        "models: model 'gpt-4o': the key for",
        "there is no such folder",
        "judge: model 'o4-mini': the key for",
    ):
        assert sum(words in line for line in missing) == 1, (words, missing)
    assert len(missing) == 5


def test_samples_need_a_temperature_and_names_are_unique(parameters) -> None:
    greedy = {"temperature": 0, "samples": 3}
    (told,) = check_parameters(parameters(decoding=greedy))[1]
    assert "decodes greedily" in told
    (told,) = check_parameters(parameters(models=[FEW, {"model": FEW, "max_images": 3}]))[1]
    assert "two models are named 'field-guide-vlm-few'" in told
    sampled = parameters(decoding={"temperature": 0.7, "samples": 3})
    assert check_parameters(sampled)[1] == []


@pytest.mark.slow
def test_a_run_from_elsewhere_is_checked_before_anything_runs(
    parameters, guide: Benchmark, tmp_path: Path
) -> None:
    run = tmp_path / "mine.run"
    asked = list(guide.queries)[:QUESTIONS_ASKED]
    some = {name: dict.fromkeys(guide.candidates(name)[:12], 1) for name in asked}
    write_run(oracle_run(some), run, "mine")

    def checked(*retrievers: object) -> tuple[str, list[str]]:
        values = {"notebooks": [BOOKS[2]], "ks": [1, 20], "retrievers": list(retrievers)}
        found, missing = check_parameters(parameters(**values))
        return "\n".join(found), missing

    found, missing = checked(str(run), {"model": str(run), "name": "again"})
    assert missing == []
    assert "an estimate" not in found
    words = f"k = 20 is cut to 12: the run holds 12 documents for query {asked[0]!r}"
    assert f"03_finds: {words}" in found
    found, missing = checked(str(run), "field-guide-clip-32")
    assert missing == []
    assert "in their place, is what field-guide-clip-32 will find" in found
    text = run.read_text(encoding="utf-8")
    run.write_text(text.replace("Q0 ", "Q0 x", 1), encoding="utf-8")
    _, (told,) = checked(str(run))
    assert re.search(r"03_finds: .*mine\.run line 1: document 'x.*such as", told)
    run.write_text(text + "one two\n", encoding="utf-8")
    found, (told,) = checked(str(run), "field-guide-clip-64")
    assert "an estimate" not in found  # nothing is searched for what no run takes
    assert f"mine.run line {12 * QUESTIONS_ASKED + 1}: 2 fields, expected 6" in told
    _, (told,) = checked(str(run.with_name("nine.run")))
    assert "no such file" in told
    assert "Did you mean 'mine.run'" in told


def test_retrievers_by_modality_are_looked_for_one_by_one(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    values = {
        "notebooks": ["mrag_suite/46_prompt_sweep"],
        "mrag_suite": {"mine": {"layout": "pages", "rows": str(tmp_path / "nowhere")}},
        "retrievers": {"image": ["bm25", "nobody/one"], "text": ["bm25", {"model": "./two"}]},
    }
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    _, missing = check_parameters(file)
    told = [line for line in missing if "retriever" in line or "two" in line]
    assert len(told) == 2, missing
    assert "'nobody/one' is not on this machine yet" in told[0]
    assert "./two" in told[1]


def test_data_and_a_model_that_are_wrong_are_named_in_one_round(parameters) -> None:
    path = parameters(models=["field-guide-vlm-man"])
    given = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({**given, "data": "field-guide-smal"}), encoding="utf-8")
    lines = check_parameters(path)[1]
    for wrong, meant in (
        ("'field-guide-smal'", "'field-guide-small'"),
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
    typed: str, meant: str, parameters
) -> None:
    asked = f"model '{typed}': .*Did you mean '{meant}'\\?"
    for given in ({"models": [typed]}, {"models": [{"model": typed, "max_cost": 5}]}):
        _, missing = check_parameters(parameters(**given))
        assert re.search(asked, missing[0])
    with pytest.raises(VragError, match=asked):
        load_generator(typed)


def test_what_several_notebooks_miss_is_one_line_with_their_names_or_their_count(
    parameters,
) -> None:
    values = {"annotations": "nowhere.jsonl", "models": ["field-guide-vlm-fwe"]}
    wrong, line = check_parameters(parameters(notebooks=BOOKS, **values))[1]
    assert "'field-guide-vlm-fwe'" in wrong
    assert line.startswith(f"{', '.join(BOOKS)}: ")
    assert "nowhere.jsonl: no such annotation file" in line
    shutil.copy(f"notebooks/{BOOKS[0]}.ipynb", "notebooks/mine/04_asks_again.ipynb")
    (line,) = check_parameters(parameters(notebooks=["mine"], annotations="nowhere.jsonl"))[1]
    assert line.startswith(f"{Path.cwd()}/nowhere.jsonl: no such annotation file")
    assert line.endswith(" (4 notebooks: 01, 02, 03, …)")


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
        "image_source": {"name": "My things", "images": str(things)},
        "coarse_filter": {"filter_model": "", "prompt": "question"},
        "building_dir": str(questions.parent),
        "benchmark_dir": str(tmp_path / "built"),
        "annotation_files": [],
        "adjudication_file": "",
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
    assert "line 3: found the species 'anlo'" in fault
    assert any("Convert 4 .heic to .jpg" in line for line in told), told
    (things / "moth" / "bad.jpg").write_text("no picture", encoding="utf-8")
    (told,) = check_parameters(file)[1]
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
        "image_source": {"name": "My things", "images": str(tmp_path / "things")},
        "coarse_filter": {"filter_model": "", "prompt": "question"},
        "building_dir": str(tmp_path / "building"),
        "benchmark_dir": str(tmp_path / "built"),
        "annotation_files": [str(tmp_path / "building" / "ada.jsonl")],
        "adjudication_file": "",
    }
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    (tmp_path / "building").mkdir()
    return tmp_path


@pytest.mark.slow
def test_a_class_without_ticks_is_named_before_the_benchmark_is_built_without_it(
    things: Path,
) -> None:
    questions = things / "building" / "questions.csv"
    questions.write_text(QUESTIONS.replace("anlo", "anole"), encoding="utf-8")
    read = read_questions(questions, read_species_folders(things / "things"))
    (moth,) = read.query("species == 'moth'").itertuples()
    first, *others = [f"moth/{path.name}" for path in list_images(things / "things" / "moth")]
    vote = Vote(
        question_id=moth.question_id,
        species="moth",
        folder="moth",
        question=moth.question,
        feature="hindwings",
        status="done",
        images={first: 1, **dict.fromkeys(others, 0)},
        answer="red",
    )
    AnnotationFile(things / "building" / "ada.jsonl", "ada").save(vote)
    found, missing = check_parameters(things / "p.yaml")
    assert missing == []
    said = "of 1 of 2 species no question is kept: anole (not annotated: nobody has finished it)"
    assert any(line.endswith(said) for line in found), found


def test_own_classes_without_a_file_of_questions_are_told_where_it_belongs(things: Path) -> None:
    (told,) = check_parameters(things / "p.yaml")[1]
    assert f"{things}/building/questions.csv: " in told
    assert "the template writer knows no parts of anole" in told
    assert "(columns species, question, feature, writer), or name a model as `writer`" in told


def test_a_picture_of_ones_own_that_is_cut_off_is_told(things: Path) -> None:
    (picture, *_) = sorted((things / "things" / "moth").glob("*.jpg"))
    picture.write_bytes(picture.read_bytes()[:-500])
    told, *_ = check_parameters(things / "p.yaml")[1]
    assert f"{picture}: not a readable picture (image file is truncated" in told
    count = len(list((things / "things").glob("*/*.jpg")))
    assert f"So are 1 of {count} that were opened in {things / 'things'}." in told


@pytest.mark.slow
def test_a_filter_that_nobody_asked_drops_no_question_and_so_annotating_is_checked_too(
    guide_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    pictures = {
        "images": str(guide_folder / "images"),
        "name": "Field Guide (small)",
        "species_list": str(guide_folder / "categories.json"),
        "articles": str(guide_folder / "articles"),
    }
    values = {"notebooks": ["building"], "image_source": pictures}
    values |= {name: str(tmp_path / name) for name in ("building_dir", "answers_dir")}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    found, missing = check_parameters(tmp_path / "p.yaml")
    assert missing == []
    assert forecast_calls(found) > 0


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
    parameters, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = parameters().absolute()
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(VragError, match="Run this in the project's folder"):
        check_parameters(path)


def test_a_model_that_cannot_hold_the_images_or_costs_too_much_is_missing_something(
    parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    long = {"model": FEW, "max_new_tokens": 1900}
    models = [long, {"model": "gpt-4o@openai", "max_cost": 0.01}]
    values = {"notebooks": [BOOKS[2]], "ks": [20], "judge": "o4-mini@openai"}
    found, missing = check_parameters(
        parameters(models=models, decoding={"temperature": 0}, **values)
    )
    assert any("prompts will not fit" in line for line in missing), missing
    assert any(
        "model 'gpt-4o': it will cost about" in line and "its max_cost is 0.01" in line
        for line in missing
    )
    assert any(line.startswith("all models together: about") for line in found)


def test_open_clips_models_are_known_without_importing_it() -> None:
    import open_clip

    assert open_clip_models() == sorted(open_clip.list_models())


def test_the_command_ends_with_1_when_something_is_missing_and_with_0_when_nothing_is(
    parameters,
) -> None:
    status, told = said("check", str(parameters()))
    assert (status, told.splitlines()[-1]) == (0, "nothing is missing")
    file = str(parameters(notebooks=BOOKS, image_root="/nowhere"))
    for only in (["--only", "01", "--only", "03"], ["--only", "01,03"]):
        status, told = said("check", file, *only)
        assert (status, f"missing: {BOOKS[0]}, {BOOKS[2]}: " in told) == (1, True)
        assert "02_asks_too" not in told
    assert "no notebook '07'; found mine/01_asks, mine/02" in said("check", file, "--only=07")[1]


def test_a_parameter_of_a_notebook_that_is_not_in_the_file_is_no_mistyped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    ours = {"notebooks": [2], "ks": [1, 3], "clue_positions": {"ks": [3]}, "max_clues": 2}
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump({**ours, "decoding": {"samples": 2}}))
    with pytest.raises(VragError) as refused:
        check_parameters(path)
    told = [line.removeprefix(f"{path}: ") for line in str(refused.value).splitlines()]
    not_here = "which this file is not for. Name it under `notebooks`, or remove the line."
    assert f"max_clues is a parameter of 06_number_of_clues, {not_here}" in told
    assert f"clue_positions is a parameter of 15_error_budget, {not_here}" in told
    assert any(
        re.match(r"ks is a parameter of \d\d_\w+, .* and \d+ more, which", line) for line in told
    )
    assert any(line.startswith("decoding is a parameter of 00_tour, ") for line in told)
    assert len(told) == 4


@pytest.mark.slow
def test_what_a_notebook_cannot_have_is_missing_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    (tmp_path / "empty").mkdir()
    values = {
        "notebooks": [6, 8, 9],
        "answers_dir": str(tmp_path / "answers"),
        "max_clues": 99,
        "second_corpus": {"images": str(tmp_path / "empty"), "name": "plates"},
        "articles": {"pages": str(tmp_path / "nowhere"), "species_list": "nowhere.json"},
    }
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    _, missing = check_parameters(tmp_path / "p.yaml")
    assert [line.split(":")[0] for line in missing] == [
        "visual_rag/06_number_of_clues",
        "visual_rag/08_inat24_corpus",
        "visual_rag/09_wikipedia_text_rag",
    ]
    assert "found at most" in missing[0]


@pytest.mark.slow
@pytest.mark.parametrize("paid", [True, False])
def test_a_sum_names_the_notebooks_that_are_not_in_it_and_the_forecast_ends_with_1(
    paid: bool, parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    models = {"models": ["gpt-4o@openai"]} if paid else {}
    for number in (4, 5):
        wrong = f"open_benchmark(data | {{'name': {number}}})"
        notebook(Path(f"notebooks/mine/0{number}_fails.ipynb"), DECLARED, OPENS, wrong)
    status, told = said("forecast", str(parameters(notebooks=["mine"], **models)))
    (line,) = [line for line in told.splitlines() if line.startswith("all models together")]
    cost = re.fullmatch(r"all models together: so far about ([\d.]+) US dollars(.*)", line)
    assert (status, float(cost[1]) > 0) == (1, paid)
    assert "without 2 notebooks that cannot be counted yet: 04, 05" in cost[2]
    status, told = said("forecast", str(parameters(**models, judge="o4-mini@openai")))
    assert (status, "so far" in told) == (0, False)


def test_a_sum_without_the_tokens_of_pictures_or_without_a_price_is_at_least_so_much(
    parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    fake = {
        "model": "fake@http://127.0.0.1:9/v1",
        "prices": [250, 1000],
        "decoding": {"temperature": 0},
    }
    found, _ = check_parameters(parameters(models=[fake, "gpt-0@openai"]))
    told = "\n".join(found)
    assert re.search(r"\n  at least [\d.]+ US dollars at 250 for", told)
    assert re.search(r"\nall models together: at least \d\.\d\d US dollars", told)
    assert "; not counted: pictures of fake, calls of gpt-0" in told


ASKING = """from pathlib import Path
from vrag_kit.generation import AnswerStore, ask_prompts, load_generator
from vrag_kit.types import Message
model = load_generator("gpt-4o@openai", decoding={"temperature": 0})
with AnswerStore(Path(folder) / "answers.sqlite") as store:
    ask_prompts(model, [(Message(role="user", parts=(words,)),)], store)"""


@pytest.fixture
def foresee_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Foresee a notebook with these cells after its parameters."""
    monkeypatch.setattr("vrag_kit.runner.dry_run.notebook_name", lambda notebook: notebook.stem)
    return lambda *cells: _foresee_cells(tmp_path, *cells)


def _foresee_cells(tmp_path: Path, *cells: str) -> DryRunReport:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    given = {"answers_dir": str(tmp_path / "answers")}
    parameters = nbformat.v4.new_code_cell(f"answers_dir = {given['answers_dir']!r}")
    parameters.metadata["tags"] = ["parameters"]
    book.cells = [parameters, *(nbformat.v4.new_code_cell(cell) for cell in cells)]
    path = tmp_path / "asking.ipynb"
    nbformat.write(book, path)
    return dry_run_notebooks(Plan(file=path, given={path: given}, folder=tmp_path, cluster=""))


def test_a_cell_that_fails_keeps_no_later_one_from_asking_and_is_named(foresee_cells) -> None:
    first, second = "folder, words = answers_dir, 'a'", "words = 'b'"
    foresight = foresee_cells(first, ASKING, "1 / 0", second, ASKING)
    assert [asked.forecast.calls for asked in foresight.models] == [2]
    (fault,) = foresight.failed.values()
    assert "up to code cell 4" in fault
    assert "ZeroDivisionError: division by zero" in fault


def test_an_error_that_no_answer_changes_is_missing_though_it_comes_late(foresee_cells) -> None:
    lacking = "from vrag_kit.tables import require_columns; import pandas as pd\n"
    lacking += "require_columns(pd.DataFrame(), ['score'], 'mine')"
    foresight = foresee_cells("folder, words = answers_dir, 'a'", ASKING, lacking)
    assert "has no column 'score'" in foresight.failed["asking"]


@pytest.mark.parametrize("command", ["check", "forecast"])
def test_a_count_that_does_not_reach_a_notebooks_end_exits_with_1(
    command: str, parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "counted up to code cell 4, which fails: KeyError: 'red'"
    report = DryRunReport(failed={"01_asks": words})
    monkeypatch.setattr("vrag_kit.runner.dry_run.dry_run_notebooks", lambda *_: report)
    status, printed = said(command, str(parameters()))
    assert status == 1
    assert words in printed


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
    assert (foresight.stored, foresight.failed) == (1, {})
    assert path.read_bytes() == before
    foresee_cells(f"folder, words = {str(tmp_path / 'none')!r}, 'a'", ASKING)
    assert not (tmp_path / "none").exists()


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
    assert foresight.failed == {}
    with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as reader:
        assert reader.execute("SELECT count(*) FROM answers").fetchone() == (0,)


@pytest.mark.slow
def test_one_k_alone_is_as_good_as_a_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    values = {
        "notebooks": [2, 4, 5, 7, 15],
        "models": [FEW],
        **{"ks": [5], "cutoffs": [5], "draws": 1, "clue_positions": {"ks": [5], "draws": 1}},
        **{name: str(tmp_path / name) for name in ("answers_dir", "cache_dir")},
    }
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    found, missing = check_parameters(tmp_path / "p.yaml")
    assert missing == []
    assert any(re.search(r"with 5 images, takes", line) for line in found)


@pytest.mark.parametrize(
    "count",
    [
        "k: {image: 0}",
        "filter_rules: {min_votes: 0}",
        "clue_positions: {draws: 0}",
        "paired_contexts: {draws: 0}",
    ],
)
def test_a_number_within_a_mapping_is_one_at_least(count: str, tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(f"notebooks: [mrag_suite, visual_rag]\n{count}\n", encoding="utf-8")
    with pytest.raises(VragError, match="is 0; expected a whole number from 1 on"):
        read_plan(file)


@pytest.mark.parametrize(
    ("notebook", "line"),
    [
        ("34", "questions_per_scenario: {}"),
        ("43", "max_questions: {{per_dataset: {}}}"),
        ("58", "oracles: {{max_questions: {}, region_margin: 0}}"),
        ("42", "datasets: {}"),
    ],
)
def test_null_means_all_and_0_or_an_empty_list_none(
    notebook: str, line: str, tmp_path: Path
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(f"notebooks: [{notebook}]\n{line.format('null')}\n", encoding="utf-8")
    assert [yaml.safe_load(line.format("null"))] == list(read_plan(file).given.values())
    nothing = "[]" if "datasets" in line else "0"
    file.write_text(f"notebooks: [{notebook}]\n{line.format(nothing)}\n", encoding="utf-8")
    with pytest.raises(VragError, match=r"is (0|\[\]); .*whole number from 1 on|or null for all"):
        read_plan(file)


def test_decoding_and_hardware_may_be_given_in_part(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        "notebooks: [4]\nhardware: {batch_size: 4}\ndecoding: {samples: 2}\n", encoding="utf-8"
    )
    (given,) = read_plan(file).given.values()
    assert given == {"hardware": {"batch_size": 4}, "decoding": {"samples": 2}}
    code = "".join(file.read_text(encoding="utf-8") for file in ROOT.glob("notebooks/**/*.ipynb"))
    assert not re.search(r"(hardware|decoding)\[", code), "a key that papermill's value may lack"


def test_without_models_a_notebook_runs_that_shows_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    file = tmp_path / "p.yaml"
    file.write_text("notebooks: [33, 36, 37]\nmodels: []\n", encoding="utf-8")
    assert [given["models"] for given in read_plan(file).given.values()] == [[], [], []]
    file.write_text(f"notebooks: [14]\nmodels: []\nanswers_dir: {tmp_path}\n", encoding="utf-8")
    (told,) = check_parameters(file)[1]
    assert "models is []" in told


def test_a_clue_may_lie_at_any_place_among_the_fewest_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    file = tmp_path / "p.yaml"
    for place in (-3, -1, 0, 2):
        file.write_text(f"notebooks: [4]\nclue_position: {place}\n", encoding="utf-8")
        (given,) = read_plan(file).given.values()
        assert given == {"clue_position": place}


def test_what_two_notebooks_ask_alike_is_one_question_and_another_wording_another(
    guide: Benchmark, tmp_path: Path
) -> None:
    contexts = gt_clue(guide, draws=1)
    few = [str(WEIGHTS / "field-guide-vlm-few")]
    with dry_run(tmp_path) as forecast:

        def ask(prompts: PromptSet) -> pd.DataFrame:
            return ask_models(few, guide, contexts, tmp_path, prompts=prompts)

        first, again, other = (
            ask(PROMPTS),
            ask(PROMPTS),
            ask(PROMPTS.use_template("several_images")),
        )
        alike = forecast.models[:2]
    pd.testing.assert_frame_equal(first, again)
    assert [len(model.prompts) for model in alike] == [len(contexts), 0]
    assert not set(first["answer_id"]) & set(other["answer_id"])
    assert set(other["template"]) == {"several_images"}


def test_a_notebook_that_changes_declares_other_parameters_and_nobody_changes_them_by_mistake(
    tmp_path: Path,
) -> None:
    source = ROOT / "notebooks" / "visual_rag" / "04_top_k_vs_one_in_k.ipynb"
    mine = tmp_path / "mine.ipynb"
    shutil.copy(source, mine)
    declared_parameters(mine)["ks"].append(99)
    assert declared_parameters(mine) == declared_parameters(source)
    mine.write_text(source.read_text(encoding="utf-8").replace("draws = 5", "draws = 11"))
    assert declared_parameters(mine) == {**declared_parameters(source), "draws": 11}


def test_what_the_run_draws_itself_is_told_with_what_it_takes_and_is_nothing_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    (tmp_path / "params").mkdir()
    monkeypatch.chdir(tmp_path)
    file = Path("p.yaml")
    values = {"notebooks": ["03", "14"], "data": "field-guide"}
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    status, printed = said("check", str(file))
    *_, told, last = printed.splitlines()
    assert (status, last) == (0, "nothing is missing")
    names = "visual_rag/03_baselines, visual_rag/14_error_cases"
    words = r"data/field-guide is not drawn yet, .*\(\d+ MB; minutes .*The run draws it; `vrag draw"
    assert re.match(f"{names}: {words}", told)
    assert "no model is asked anything" not in printed  # that is not known
    assert not Path("data").exists()
    values = {"notebooks": ["03"], "data": "field-guide", "models": ["./nowhere"]}
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    found, (told,) = check_parameters(file)  # all else that is missing is missing
    assert "./nowhere" in told
    assert any("The run draws it" in line for line in found)
