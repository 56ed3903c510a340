"""`vrag run --dry-run` counts what a run will ask and lists what it lacks, and runs, asks and
fetches nothing; `vrag embed` embeds what the notebooks search, in parts.

Small notebooks of a project of its own are rehearsed here; those of the kit where a claim is
about them.
"""

import re
import shutil
from pathlib import Path

import pytest
import yaml
from commands import said
from conftest import WEIGHTS
from own_project import (
    ASKING_BOOK,
    ASKS,
    CLUES,
    DECLARED,
    FINDING_BOOK,
    OPENS,
    QUESTIONS_ASKED,
    check_parameters,
    notebook,
    small_data,
    small_project,
)

from vrag_kit.generation import AnswerStore
from vrag_kit.runner.run import run_notebooks

FEW = str(WEIGHTS / "field-guide-vlm-few")
BOOKS = [ASKING_BOOK, "mine/02_asks_too", FINDING_BOOK]
SEES = "with open('seen', 'a') as file:\n    file.write('x')"


@pytest.fixture
def parameters(guide_folder, tmp_path, monkeypatch):
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
def test_a_run_asks_what_was_forecast_and_then_nothing_is_left_to_ask(parameters, tmp_path):
    file, before = parameters(), sorted(tmp_path.rglob("*"))
    found, missing = check_parameters(file)
    assert (missing, sorted(tmp_path.rglob("*"))) == ([], [*before, tmp_path / "seen"])
    assert found[0] == "p.yaml: 0 answers that it uses are stored already"
    asked = forecast_calls(found)
    assert asked == 2 * QUESTIONS_ASKED
    # notebooks that ask the same ask it once
    both = parameters(notebooks=BOOKS[:2])
    assert forecast_calls(check_parameters(both)[0]) == asked
    (outcome,) = run_notebooks([parameters()])
    assert outcome.status == "done", outcome.detail
    with AnswerStore(Path("runs/answers/answers.sqlite")) as store:
        assert store.table()["status"].eq("ok").sum() == asked
    found, missing = check_parameters(file)
    assert "no model is asked anything" in found
    assert found[0] == f"p.yaml: {asked} answers that it uses are stored already"


@pytest.mark.slow
def test_a_judge_is_asked_about_every_answer_and_every_wording_counts(parameters, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    judge = {"model": "o4-mini@openai", "max_cost": 500}
    found, missing = check_parameters(parameters(judge=judge, judge_samples=2))
    assert missing == []
    calls = re.findall(r"forecast: ([\d,]+) calls", "\n".join(found))
    answers, verdicts = sorted(int(each.replace(",", "")) for each in calls)
    assert verdicts == 2 * answers
    assert any("all models together: about" in line for line in found)


@pytest.mark.slow
def test_the_limit_of_a_models_images_lowers_its_calls_and_what_will_be_found_is_an_estimate(
    parameters,
):
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


def test_what_is_missing_is_listed_all_at_once(parameters, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    models = ["Qwen/Qwen2.5-VL-7B-Instruct", "gpt-4o@openai", "./nothing", FEW]
    values = {"models": models, "retrievers": ["BAAI/BGE-VL-large"]}
    judge = {"model": "o4-mini@openai"}
    _, missing = check_parameters(parameters(notebooks=BOOKS, judge=judge, **values))
    for words in (
        "checkpoint 'BAAI/BGE-VL-large' is not on this machine yet",
        "checkpoint 'Qwen/Qwen2.5-VL-7B-Instruct' is not on this machine yet. `hf download",
        "model 'gpt-4o': the key for",
        "there is no such folder",
        "model 'o4-mini': the key for",
    ):
        assert sum(words in line for line in missing) == 1, (words, missing)
    assert len(missing) == 5


def test_a_model_that_cannot_hold_the_images_or_costs_too_much_is_missing_something(
    parameters, monkeypatch
):
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


def test_the_command_ends_with_1_when_something_is_missing_and_with_0_when_nothing_is(parameters):
    status, told = said("run", "--dry-run", str(parameters()))
    assert (status, told.splitlines()[-1]) == (0, "nothing is missing")
    file = str(parameters(notebooks=BOOKS, image_root="/nowhere"))
    for only in (["--only", "01", "--only", "03"], ["--only", "01,03"]):
        status, told = said("run", "--dry-run", file, *only)
        assert (status, f"missing: {BOOKS[0]}, {BOOKS[2]}: " in told) == (1, True)
        assert "02_asks_too" not in told
    _, told = said("run", "--dry-run", file, "--only=07")
    assert "no notebook '07'; found mine/01_asks, mine/02" in told


def test_a_cell_that_fails_keeps_no_later_one_from_asking_and_is_named(parameters):
    asks = Path(f"notebooks/{BOOKS[0]}.ipynb")
    notebook(asks, DECLARED, OPENS, CLUES, ASKS, "1 / 0", "models = ['field-guide-vlm-many']", ASKS)
    found, (fault,) = check_parameters(parameters())
    assert "\n".join(found).count("forecast: ") == 2
    assert "counted up to code cell 5, which fails: ZeroDivisionError" in fault


def test_data_that_the_run_draws_itself_are_told_and_are_nothing_missing(parameters):
    status, printed = said("run", "--dry-run", str(parameters(data="field-guide")))
    assert (status, printed.splitlines()[-1]) == (0, "nothing is missing")
    assert re.search(f"{BOOKS[0]}: data/field-guide .*`vrag data generate", printed)
    assert not Path("data").exists()


@pytest.mark.slow
def test_parts_that_overlap_embed_each_document_once(guide_folder, tmp_path, monkeypatch):
    """The notebook searches 105 images, which are four shards."""
    small_project(tmp_path, guide_folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("vrag_kit.retrieval.embedding_cache.SHARD", 30)
    for name, book in (("finds", FINDING_BOOK), ("asks", ASKING_BOOK)):
        content = {"notebooks": [book], "data": small_data(guide_folder)}
        Path(f"{name}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    for part, new in (("1/4", 30), ("3/4", 30), ("2/2", 45), ("5/6", 0), ("1/1", 0)):
        status, printed = said("embed", "finds.yaml", "--part", part)
        assert (status, f" {new} new" in printed) == (0, True), printed
    assert len(list(Path("runs/embeddings").glob("*/shard-*.npy"))) == 4
    status, printed = said("embed", "asks.yaml")
    assert (status, "no notebook of it comes to a search by vectors" in printed) == (2, True)
