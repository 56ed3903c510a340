"""What the papers' main experiments take, by the forecast: `python -m tests.timing.costs`.

Each paper's own file, params/<paper>/paper.yaml, is forecast on a few questions of each
kind in the data's own layout (`paper_data`), and multiplied by the published number of
such questions. In the place of its models stand two whose prices the kit knows, and one of
them where a local model writes queries; eight calls run at once. A test compares
the table of params/README.md with this one.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

import yaml

from vrag_kit.files import project_root
from vrag_kit.generation.generators import CostEstimate
from vrag_kit.papers.mrag_suite.datasets import DATASETS
from vrag_kit.runner.dry_run import ModelCost, dry_run_notebooks
from vrag_kit.runner.params import declared_parameters
from vrag_kit.runner.plan import read_plan

from . import paper_data

ANSWERERS = ("gpt-4o@openai", "gemini-2.5-flash@gemini")
NUMBERS = ("calls", "images", "tokens", "answer_tokens", "cost", "hours")
ROOT = Path(__file__).parents[2]
QUESTIONS = 8
"""Of a kind that are written and forecast."""
TURNS = [5] * 9 + [4]
"""Of ten conversations, 4.9 on the average."""
Values = dict[str, Any]  # a parameter file's, of any type
Write = Callable[[Path, Values], Values]
"""Writes questions into a folder; the parameters that name them, given the file's own."""


def _visual_rag(folder: Path, values: Values) -> Values:
    return {"data": {**values["data"], **paper_data.visual_rag(folder, QUESTIONS)}}


def _mrag(scenario: str) -> Write:
    return lambda folder, _: {
        "mrag_rows": paper_data.mrag_bench(folder, QUESTIONS, scenario),
        "mrag_corpus": "",
    }


def _crag(questions: int) -> Write:
    def write(folder: Path, values: Values) -> Values:
        indexes = paper_data.crag_indexes(folder / "indexes")
        return {
            "crag_mm_single": paper_data.crag_mm(folder / "single", [1] * questions),
            "crag_mm_multi": paper_data.crag_mm(folder / "multi", TURNS),
            "crag_mm": {**values["crag_mm"], "indexes": indexes},
            "conversation": {**values["conversation"], "answer_tokenizer": ""},
        }

    return write


def _suite(name: str) -> tuple[str, float, Write]:
    def write(folder: Path, values: Values) -> Values:
        entry = paper_data.suite_entry(name, values["mrag_suite"][name], folder, QUESTIONS)
        return {"mrag_suite": {name: entry}}

    times = paper_data.printed(name)["n_full"] / QUESTIONS
    return "mrag_suite/41_difficulty_filter", times, write


_MANY = (1_938 - QUESTIONS * 586 / len(TURNS)) / (4 * QUESTIONS)
"""Times CRAG-MM's second part, so that both make 1,938 questions and 586 conversations."""
PAPERS: dict[str, list[tuple[str, float, Write]]] = {
    "Visual-RAG": [("visual_rag/04_top_k_vs_one_in_k", 374 / QUESTIONS, _visual_rag)],
    "MRAG-Bench": [
        ("mrag_bench/31_mrag_main", 1_251 / QUESTIONS, _mrag("Angle")),
        ("mrag_bench/31_mrag_main", 102 / QUESTIONS, _mrag("Incomplete")),
    ],
    "CRAG-MM": [
        ("crag_mm/52_crag_mm_answers", 586 / len(TURNS) - _MANY, _crag(QUESTIONS)),
        ("crag_mm/52_crag_mm_answers", _MANY, _crag(5 * QUESTIONS)),
    ],
    "MRAG-Suite": [_suite(name) for name in DATASETS],
}
"""Parts of questions that are alike: notebook, how many times those written there are, and what
writes them. They are what Tables 3, 3, 8 and 9, and 2 print, as the notebooks ask it: with
another question's examples in MRAG-Bench, and another's picture in CRAG-MM, beside the papers'.
"""


def costs(paper: str, folder: Path) -> dict[str, CostEstimate]:
    """Who is asked → what it takes; `folder` is empty, and becomes a project. Of verdicts, which
    are on the answers of both models, half.
    """
    for name in ("notebooks", "params"):  # what is read on the way is kept in this project
        (folder / name).symlink_to(ROOT / name)
    sums: dict[str, Counter[str]] = {}
    with chdir(folder):
        for number, (notebook, times, write) in enumerate(PAPERS[paper]):
            for each in _forecasts(notebook, write, folder / str(number)):
                half = len(ANSWERERS) if "verdicts" in each.name else 1
                for key in NUMBERS:
                    told = times / half * getattr(each.forecast, key)
                    sums.setdefault(each.name, Counter())[key] += told
    return {name: CostEstimate(**told) for name, told in sums.items()}


def _forecasts(notebook: str, write: Write, folder: Path) -> Sequence[ModelCost]:
    """What the written questions take of everyone who is asked."""
    paper = notebook.partition("/")[0]
    values = yaml.safe_load((ROOT / "params" / paper / "paper.yaml").read_text(encoding="utf-8"))
    values = {**values, **write(folder, values), **_models(values)}
    for name in ("answers_dir", "cache_dir", "figures_dir"):
        values[name] = str(folder / name)
    names = declared_parameters(project_root() / "notebooks" / f"{notebook}.ipynb")
    chosen = {name: value for name, value in values.items() if name in names}
    file = folder / "p.yaml"
    file.write_text(yaml.safe_dump({"notebooks": [notebook], **chosen}), encoding="utf-8")
    found = dry_run_notebooks(read_plan(file))
    if found.failed:
        raise RuntimeError(str(found.failed))
    return found.models


def _models(values: Mapping[str, Any]) -> Values:
    """Those who are asked, each named by what for."""
    asked: Values = {"models": [_named(each, "answers") for each in ANSWERERS]}
    if "judge" in values:
        asked["judge"] = _named(values["judge"], "half of the verdicts")
    if "web_search" in values:
        asked["web_search"] = {**values["web_search"], "rewriter": _named(ANSWERERS[0], "queries")}
    if "filter_models" in values:
        asked["filter_models"] = [_named(each, "closed book") for each in values["filter_models"]]
    return asked


def _named(entry: str | Mapping[str, Any], what: str) -> Values:
    entry = {"model": entry} if isinstance(entry, str) else dict(entry)
    name = f"{what}: {entry['model'].partition('@')[0]}"
    return {**entry, "name": name, "concurrency": 8}


def line(paper: str, name: str, forecast: CostEstimate) -> str:
    """A line of the table in params/README.md."""
    counts = [f"{forecast.calls:,.0f}", f"{forecast.images:,.0f}"]
    tokens = [forecast.tokens / 1e6, forecast.answer_tokens / 1e6]
    cells = [*counts, *(f"{each:,.1f}" for each in tokens), f"{forecast.cost:,.0f}"]
    return f"| {paper}'s {name} | {' | '.join(cells)} | {forecast.hours:,.1f} |"


def main() -> None:
    print("| by the forecast | calls | images | million tokens | of answers | dollars | hours |")
    print("|---|---|---|---|---|---|---|")
    for paper in sys.argv[1:] or PAPERS:
        with tempfile.TemporaryDirectory() as folder:
            for name, forecast in costs(paper, Path(folder)).items():
                print(line(paper, name, forecast), flush=True)


if __name__ == "__main__":
    main()
