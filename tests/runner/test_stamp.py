"""What a finished run is known by: code as Python understands it, and the data it names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from own_project import Write, notebook

from vrag_kit.runner.stamp import custom_files, run_fingerprint

CLASS = "class Letters:\n    bonus = 0\n"


@pytest.mark.slow
def test_changed_code_of_the_package_runs_the_notebook_again(project: Path) -> None:
    """What a notebook is known by, told by a copy of the package before and after a change."""
    package = project / "copy" / "vrag_kit"
    ignored = shutil.ignore_patterns("weights", "tables", "__pycache__")
    shutil.copytree(ROOT / "vrag_kit", package, ignore=ignored)
    known_by = (
        "from pathlib import Path; from vrag_kit.runner.stamp import run_fingerprint;"
        "print(run_fingerprint(Path('notebooks/guide/01_one.ipynb').absolute(), {}, {})['code'])"
    )

    def code() -> str:
        environment = {**os.environ, "PYTHONPATH": str(package.parent)}
        command = [sys.executable, "-c", known_by]
        return subprocess.check_output(command, cwd=project, env=environment, text=True)

    before = code()
    assert before == code()
    for more, same in (("\n# why\n", True), ("\nANOTHER = 1\n", False)):
        with (package / "errors.py").open("a", encoding="utf-8") as file:
            file.write(more)
        assert (before == code()) is same


def test_a_rerun_sees_that_the_classs_file_changed_or_one_that_it_imports(mine: Write) -> None:
    file = mine(f"import json\n\nfrom halves import HALF\n{CLASS}")
    helper = file.with_name("halves.py")
    helper.write_text("from vrag_kit.types import Query\n\nHALF = 0.5", encoding="utf-8")
    assert custom_files("mine:Letters") == sorted([file, helper])
    own = Path("notebooks", "own.ipynb").absolute()
    notebook(own, "")
    settings = {"retrievers": [{"model": "mine:Letters", "bonus": 1}], "metrics": ["mine:rbp"]}

    def keys() -> dict[str, str]:
        return run_fingerprint(own, {}, settings)["data"]

    first = keys()
    assert first == keys()
    helper.write_text("HALF = 0.25", encoding="utf-8")
    second = keys()
    assert all(second[name] != key for name, key in first.items())
    file.write_text(f"{CLASS}\n# another", encoding="utf-8")
    assert all(keys()[name] not in (first[name], second[name]) for name in first)
    file.write_text("def broken(:", encoding="utf-8")
    assert custom_files("mine:Letters") == [file]
