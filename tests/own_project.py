"""A project with somebody's own code, for the tests of classes, metrics and rubrics."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from readme_pages import README

from vrag_kit.runner.dry_run import describe, dry_run_notebooks
from vrag_kit.runner.plan import read_plan

ROOT = Path(__file__).parents[1]
Write = Callable[[str], Path]
QUESTIONS_ASKED = 3
DECLARED = """data = "field-guide-small"
models = ["field-guide-vlm-few"]
judge = "rule"
judge_samples = 1
answers_dir = "runs/answers"
decoding = {"temperature": 0, "max_new_tokens": 16}
hardware = {"device": "cpu", "batch_size": 32}"""
OPENS = """from vrag_kit.open import open_benchmark
from vrag_kit.generation import ask_models, gt_clue, top_k, zero_shot
from vrag_kit.judging import judge_answers, load_judge
from vrag_kit.papers.visual_rag.judge import RUBRIC, PROMPTS
from vrag_kit.retrieval import score_runs, search_all
from vrag_kit import Workspace
benchmark = open_benchmark(data)"""
CLUES = "contexts = zero_shot(benchmark) + gt_clue(benchmark, draws=1)"
FINDS = """at = Workspace(cache_dir=cache_dir)
runs = search_all(benchmark, retrievers, k=max(ks), at=at)
scores = score_runs(benchmark, runs, cutoffs=[1], metrics=metrics)
first, *_ = runs.values()
contexts = top_k(benchmark, first, ks=ks, full_depth=True)"""
ASKS = """at = Workspace(answers_dir=answers_dir, **hardware)
scorer = load_judge(judge, at, rubric=RUBRIC, samples=judge_samples)
answers = ask_models(models, benchmark, contexts, at, prompts=PROMPTS, decoding=decoding)
judged = judge_answers(scorer, benchmark, answers)"""
SEARCHING = """cache_dir = "runs/embeddings"
ks = [1, 2]
retrievers = ["field-guide-clip-64"]
metrics = []"""
ASKING_BOOK, FINDING_BOOK = "mine/01_asks", "mine/03_finds"


def notebook(path: Path, parameters: str, *cells: str, kernel: str = "python3") -> None:
    """Write a notebook; a cell is Markdown if it begins with a heading: "# What" or "## "."""
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})]
    for text in cells:
        is_heading = text.startswith(("# What", "## "))
        new = nbformat.v4.new_markdown_cell if is_heading else nbformat.v4.new_code_cell
        book.cells.append(new(text))
    book.metadata["kernelspec"] = {"name": kernel, "display_name": kernel, "language": "python"}
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(book, path)


def small_data(guide: Path) -> dict[str, object]:
    """The `data` of a small project: three questions of the small guide."""
    images = str(guide / "images")
    return {"annotations": "annotations.jsonl", "image_root": images, "name": "three questions"}


def small_project(folder: Path, guide: Path) -> None:
    """Make a folder a project of two notebooks: one asks about clues, one searches and asks
    about what it finds.
    """
    books = folder / "notebooks"
    notebook(books / f"{ASKING_BOOK}.ipynb", DECLARED, OPENS, CLUES, ASKS)
    notebook(books / f"{FINDING_BOOK}.ipynb", f"{DECLARED}\n{SEARCHING}", OPENS, FINDS, ASKS)
    (folder / "params" / "mine").mkdir(parents=True)
    rows = (guide / "annotations.jsonl").read_text(encoding="utf-8").splitlines()
    few = "\n".join(rows[:QUESTIONS_ASKED])
    (folder / "annotations.jsonl").write_text(few, encoding="utf-8")


def check_parameters(file: Path) -> tuple[list[str], list[str]]:
    """What a dry run of a parameter file finds, and what it misses, as lines."""
    plan = read_plan(file)
    return describe(plan, dry_run_notebooks(plan))


def shown(words: str) -> str:
    """The pages' Python that holds these words, such as "class FirstOption"."""
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
