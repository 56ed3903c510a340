"""What the pages for users show works as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
import typer
import yaml
from conftest import ROOT
from readme_pages import PAGES, README
from strip_notebooks import PATHS

from vrag_kit.runner.cli import app
from vrag_kit.runner.params import PARTIAL, SERVES, declared_parameters

LINKS = re.compile(r"\]\(([^)\s]+)\)")


def blocks() -> list[str]:
    """Return the Python of the pages, without blocks that query a server."""
    shown = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    return [code for code in shown if "localhost" not in code]


@pytest.mark.slow
def test_the_python_of_the_pages_runs_from_top_to_bottom_and_prints_its_numbers(
    guide_folder, tmp_path, monkeypatch, capsys
):
    # with folders of its own: nothing else is changed
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("OPENAI_API_KEY", "none")  # a judge is loaded, and not asked
    monkeypatch.setenv("COLUMNS", "80")  # a terminal's, in which pandas leaves columns out
    known: dict[str, object] = {}
    for code in blocks():
        with pd.option_context("display.max_columns", 0):
            exec(code.replace('"runs/', f'"{tmp_path}/'), known)
    printed = capsys.readouterr().out.splitlines()
    heads = [line.split() for line in printed if "ci_low" in line]
    assert len(heads) == 2
    assert all({"k", "value", "ci_low", "ci_high", "n"} <= set(head) for head in heads)
    judged = known["judged"]
    assert set(judged["setting"]) == {"zero_shot", "gt_clue", "top_k"}
    assert "clue_last" in set(known["means"]["setting"])


def test_a_path_that_a_page_names_is_there():
    for path in re.findall(r"`(vrag_kit/[\w/.]+)`", README):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("text", re.findall(r"```yaml\n(.*?)```", README, re.DOTALL))
def test_the_parameters_that_a_page_shows_are_those_of_a_notebook(text):
    known: dict[str, set[str]] = {SERVES: set()}
    for notebook in PATHS:
        for name, value in declared_parameters(notebook).items():
            known.setdefault(name, set()).update(value if isinstance(value, dict) else ())
    for name, value in yaml.safe_load(text).items():
        assert name in known
        if known[name] and isinstance(value, dict) and name not in PARTIAL:
            assert set(value) <= known[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_what_a_page_links_to_is_there(page):
    for link in LINKS.findall(page.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name) if name else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_notebook_has_a_line_on_the_page_of_notebooks():
    rows = re.findall(r"^\| `(\d\w+)` \|", PAGES[1].read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(Path(path).stem for path in PATHS)


def commands() -> list[list[str]]:
    """Return the words of each `vrag` command that the pages show."""
    shell = "".join(re.findall(r"```sh\n(.*?)```", README, re.DOTALL)).replace("\\\n", " ")
    lines = [line for line in shell.splitlines() if line.startswith(".venv/bin/vrag")]
    quoted = re.findall(r"`vrag ([a-z].*?)`", README)
    return [shlex.split(line, comments=True)[1:] for line in lines] + [
        shlex.split(line) for line in quoted if "…" not in line
    ]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_a_command_of_the_pages_has_the_options_that_are_shown(words):
    command = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    known = {name for each in command.params for name in each.opts} | {"--help"}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known
    for file in words:
        if file.startswith(("params/", "notebooks/")):
            assert list(ROOT.glob(file)), file
