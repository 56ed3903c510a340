"""What the README shows in Python works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml
from conftest import ROOT
from strip_notebooks import PATHS

from vrag_kit.runner.params import PARTIAL, SERVES, declared_parameters

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks() -> list[str]:
    """The Python that the README shows, but for what asks a server."""
    shown = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    return [code for code in shown if "localhost" not in code]


@pytest.mark.slow
def test_the_readmes_python_runs_from_top_to_bottom_and_prints_its_numbers(
    guide_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # on the small guide, with folders of its own: nothing else is changed
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("OPENAI_API_KEY", "none")  # a judge is loaded, and not asked
    monkeypatch.setenv("COLUMNS", "80")  # a terminal's, in which pandas leaves columns out
    known: dict[str, object] = {}
    for code in blocks():
        small = code.replace('open_benchmark("field-guide")', 'open_benchmark("field-guide-small")')
        with pd.option_context("display.max_columns", 0):
            exec(small.replace('"runs/', f'"{tmp_path}/'), known)
    printed = capsys.readouterr().out.splitlines()
    heads = [line.split() for line in printed if "ci_low" in line]
    assert len(heads) == 2
    assert all({"k", "value", "ci_low", "ci_high", "n"} <= set(head) for head in heads)
    judged = known["judged"]
    assert isinstance(judged, pd.DataFrame)
    assert set(judged["setting"]) == {"zero_shot", "gt_clue", "top_k"}
    assert "clue_last" in set(known["means"]["setting"])


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(vrag_kit/[\w/.]+)`", README))))
def test_a_path_that_the_readme_names_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("text", re.findall(r"```yaml\n(.*?)```", README, re.DOTALL))
def test_the_parameters_that_the_readme_shows_are_those_of_a_notebook(text: str) -> None:
    known: dict[str, set[str]] = {SERVES: set()}
    for notebook in PATHS:
        for name, value in declared_parameters(notebook).items():
            known.setdefault(name, set()).update(value if isinstance(value, dict) else ())
    for name, value in yaml.safe_load(text).items():
        assert name in known
        if known[name] and isinstance(value, dict) and name not in PARTIAL:
            assert set(value) <= known[name]
