"""A parameter file is checked, name by name, against what its notebooks declare."""

import ast
import re
from pathlib import Path

import papermill
import pytest
import yaml
from commands import P, said
from conftest import ROOT
from own_project import notebook
from strip_notebooks import PATHS

from vrag_kit.checkpoints import shipped_models
from vrag_kit.errors import RENAMED, VragError, did_you_mean
from vrag_kit.generation.conversation import HISTORIES
from vrag_kit.papers.crag_mm.parameters import REWRITING
from vrag_kit.papers.crag_mm.search import NOT_REWRITTEN
from vrag_kit.runner.params import declared_parameters
from vrag_kit.runner.plan import read_plan
from vrag_kit.synthetic.crag_mm.opening import WEBS
from vrag_kit.synthetic.editions import CRAG_MM_EDITIONS, DRAWN, DRAWN_MRAG, DRAWN_SUITE


def plan_of(folder: Path, content: str) -> list[dict[str, object]]:
    """What each notebook of a parameter file is given."""
    file = folder / "p.yaml"
    file.write_text(content, encoding="utf-8")
    return [task.given for task in read_plan(file).tasks]


def test_a_bad_parameter_file_is_refused_before_anything_runs(here):
    """More in `bad_inputs.csv`."""
    (here / P).write_text("kk: 2\n", encoding="utf-8")
    status, refused = said("run", P)
    assert status == 2
    for word in ("no notebook declares 'kk'", "k, notebooks, share, source"):
        assert word in refused
    assert not list((here / "figures" / "guide").iterdir())


@pytest.mark.parametrize("entry", ["02", '"02"', "2", "guide/02", "02_two"])
def test_a_notebook_may_be_called_by_its_number_or_the_beginning_of_its_name(here, entry):
    Path("mine.yaml").write_text(f"notebooks: [{entry}]\n", encoding="utf-8")
    plan = read_plan(Path("mine.yaml"))
    assert [task.notebook.stem for task in plan.tasks] == ["02_two"]
    assert plan.folder == here / "runs" / "mine"


def test_a_file_outside_of_the_project_is_refused_with_where_to_run(
    here, tmp_path_factory, monkeypatch
):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(VragError, match="notebooks is None; expected a list"):
        read_plan(here / P)


def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(here):
    (here / "rows.txt").write_text("in the way", encoding="utf-8")
    (here / P).write_text("figures_dir: rows.txt/deeper/figures\n", encoding="utf-8")
    for command in (["run", "--dry-run"], ["run"]):
        ended, told = said(*command, P)
        assert (ended, "figures_dir is 'rows.txt/deeper/figures'" in told) == (2, True)
        assert "rows.txt takes no file" in told
    assert not (here / "runs").exists()


def test_null_means_all_and_0_or_an_empty_list_none(tmp_path):
    for number, line, nothing in (
        (34, "questions_per_scenario: {}", "0"),
        (43, "max_questions: {{per_dataset: {}}}", "0"),
        (42, "datasets: {}", "[]"),
    ):
        start, whole = f"notebooks: [{number}]\n", line.format("null")
        assert plan_of(tmp_path, start + whole) == [yaml.safe_load(whole)]
        with pytest.raises(VragError, match=rf"is {re.escape(nothing)}"):
            plan_of(tmp_path, start + line.format(nothing))


def test_decoding_and_hardware_may_be_given_in_part(tmp_path):
    part = {"hardware": {"batch_size": 4}, "decoding": {"samples": 2}}
    assert plan_of(tmp_path, yaml.safe_dump({"notebooks": [4], **part})) == [part]


def test_parameters_are_those_that_papermill_finds():
    for path in PATHS:
        found = papermill.inspect_notebook(str(path))
        assert declared_parameters(path) == {
            name: ast.literal_eval(each["default"]) for name, each in found.items()
        }


@pytest.mark.parametrize("source", ["k = range(3)", "k = 1\nj = = 2"])
def test_parameters_that_are_no_plain_values_and_files_that_are_no_notebook_are_named(
    tmp_path, source
):
    path = tmp_path / "a.ipynb"
    notebook(path, source)
    for content in (path.read_text(encoding="utf-8"), "", '{"nbformat": 3}'):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(VragError, match=r"a\.ipynb"):
            declared_parameters(path)


def test_an_old_name_leads_to_one_in_use():
    used = {*DRAWN, *DRAWN_MRAG, *CRAG_MM_EDITIONS, *DRAWN_SUITE, *shipped_models()}
    used |= {*HISTORIES, *NOT_REWRITTEN, *REWRITING.templates, *WEBS}
    for path in PATHS:
        for name, default in declared_parameters(path).items():
            used |= {name, *(default if isinstance(default, dict) else ())}
    assert {name for names in RENAMED.values() for name in names} - used == set()
    assert [old for old, names in RENAMED.items() if old in names] == []
    known = ["companies", "distractor_ks"]
    assert did_you_mean("company_ks", known) == " Did you mean 'distractor_ks'?"
    assert did_you_mean("company_ks", known[:1]) == " Did you mean 'companies'?"
    assert did_you_mean("margin", ["ks", "region_margin"]) == " Did you mean 'region_margin'?"
    assert did_you_mean("x", ["ks"]) == ""


@pytest.mark.parametrize(
    "file", sorted((ROOT / "params").rglob("*.yaml")), ids=lambda p: f"{p.parent.name}/{p.stem}"
)
def test_plain_papermill_means_what_a_run_makes_of_a_parameter_file(file):
    raw = yaml.safe_load(file.read_text(encoding="utf-8"))
    for task in read_plan(file).tasks:
        assert task.given
        assert {name: raw[name] for name in task.given} == task.given
        assert set(task.given) == set(raw) & set(declared_parameters(task.notebook))
