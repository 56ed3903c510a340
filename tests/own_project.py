"""A project with somebody's own code, for the tests of classes, metrics and rubrics."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from vrag_kit.runner.check import check_parameters

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
Write = Callable[[str], Path]


def shown(words: str) -> str:
    """The README's Python that holds these words, such as "class FirstOption"."""
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (code,) = [block for block in blocks if words in block]
    return code


def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Makes a folder a project, and the current one; what it gives writes `mine.py`, also
    over what was imported, as in a kernel.
    """
    for part in ("notebooks", "params"):
        (folder / part).mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(code: str) -> Path:
        (folder / "mine.py").write_text(code, encoding="utf-8")
        return folder / "mine.py"

    return write


@dataclass(frozen=True)
class Checked:
    """A module of one's own, seen as an installed package's, and parameters that name it."""

    folder: Path
    guide: Path

    def check(self, notebook: str, **values: object) -> tuple[list[str], list[str]]:
        """What `vrag check` finds, and what it misses, on the small guide."""
        data = {"annotations": str(self.guide / "annotations.jsonl"), "name": "small"}
        data["image_root"] = str(self.guide / "images")
        whole = {"notebooks": [notebook], "data": data, **values}
        file = self.folder / "p.yaml"
        file.write_text(yaml.safe_dump(whole), encoding="utf-8")
        return check_parameters(file)
