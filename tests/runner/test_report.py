"""The report: one page with every table and figure, that loads nothing, runs nothing,
and says what is missing, failed or old.
"""

from __future__ import annotations

import base64
import contextlib
import re
import shutil
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from commands import said, vrag
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from vrag_kit.papers.sources import DataSource
from vrag_kit.papers.visual_rag.statements import STATEMENTS, save_checks
from vrag_kit.runner.report import write_report

pytestmark = pytest.mark.slow
P = Path("params/guide/p.yaml")
PARAMETERS = (
    'data = {"name": "Little guide"}  # in titles\nfigures_dir = "figures"          # PNG, SVG and'
    " CSV go here\nk = 1                            # images & more"
)
GOOD = [
    ("# What it asks (Table 1)\n\nWhy: `p_holm`, see [the paper](https://example.org/x)."),
    (
        "import sys\nimport pandas as pd\nimport ipywidgets\nfrom IPython.display import SVG\n"
        "from vrag_kit.plotting import save_figure\nfrom vrag_kit.plotting.style import new_figure"
        "\nfrom vrag_kit.tables import style_table"
    ),
    "## Progress only\n",
    "sys.stdout.write('embedding: 3 of 9\\n'); sys.stderr.write('a warning\\n');",
    "## A table\n\nOf $x_1^2$ images.",
    "# NBVAL_CHECK_OUTPUT\nprint(k, 'images')",
    "pd.DataFrame({'answer': ['<script>alert(2)</script>', 'red'], 'value': [1.5, -2.0]})",
    (
        "style_table(pd.DataFrame({'answer': ['<script>alert(3)</script>', '<img"
        " src=http://example.org/x.png onerror=alert(4)>']}))"
    ),
    "## A figure",
    (
        'figure, _ = new_figure(1, 2, height=2)\nsave_figure(figure, figures_dir, "guide/01_good",'
        " pd.DataFrame({'value': [1]}))"
    ),
    "ipywidgets.IntSlider()",
    "## What to notice\n\n* A thing.",
]
BAD = [
    "# What fails",
    "print('before')",
    "## Here",
    "ratio = 1 / 0",
    "print('after')",
    "## What to notice\n\nNothing that holds.",
]
DYING = ["# What dies", "import os\nos._exit(9)", "## What to notice\n\nNothing that lives."]


def save(path: Path, cells: list[str], parameters: str = PARAMETERS) -> None:
    made = [
        new_markdown_cell(text) if text.startswith(("# W", "## ")) else new_code_cell(text)
        for text in cells
    ]
    made.insert(1, new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(new_notebook(cells=made, metadata={"kernelspec": kernel}), path)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project after a run of three notebooks: one that ends well, one that fails, one
    whose kernel dies.
    """
    project = tmp_path_factory.mktemp("project")
    for name in ("notebooks", "params", "figures"):
        (project / name / "guide").mkdir(parents=True)
    for name, cells in (("01_good", GOOD), ("02_bad", BAD), ("03_dying", DYING)):
        save(project / "notebooks" / "guide" / f"{name}.ipynb", cells)
    (project / "params" / "guide" / "p.yaml").write_text("k: 20\n", encoding="utf-8")
    vrag(project, "run", str(P), "--jobs", "3")
    return project


@pytest.fixture
def project(ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to change, as the current folder."""
    shutil.copytree(ran, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


class Page(HTMLParser):
    """A page's tags with their attributes, and the text that a reader sees."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.inside = ""
        self.html = html
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self.inside = tag

    def handle_data(self, data: str) -> None:
        self.text += "" if self.inside == "style" else data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]


def report() -> str:
    return write_report([P])[0].read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(ran: Path) -> Page:
    """The report of that run, to read."""
    with contextlib.chdir(ran):
        return Page(write_report([P])[0].read_text(encoding="utf-8"))


def article(html: str, stem: str) -> str:
    return html.split(f'<article id="{stem}">')[1].split("</article>")[0]


@pytest.mark.slow
def test_the_page_loads_nothing_and_runs_nothing(page: Page) -> None:
    html = page.html
    assert not {"script", "link", "iframe", "object", "embed", "base", "svg", "form"} & {
        tag for tag, _ in page.tags
    }
    for tag, attributes in page.tags:
        assert not [
            name
            for name in attributes
            if name.startswith("on") or name in ("srcset", "background", "data", "action", "poster")
        ], tag
        assert attributes.get("src", "data:image/").startswith("data:image/")
        assert attributes.get("href", "#").startswith(("#", "https://example.org"))
    assert "@import" not in html
    assert "url(" not in html
    assert any("default-src 'none'" in meta.get("content", "") for meta in page.all("meta"))
    names = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(names) == len(set(names))
    inside = [link["href"][1:] for link in page.all("a") if link["href"].startswith("#")]
    assert set(inside) <= set(names)


def test_what_data_hold_is_shown_as_text_and_a_figure_is_the_notebooks_with_a_description(
    page: Page, ran: Path
) -> None:
    for text in ("<script>alert(2)</script>", "<script>alert(3)</script>", "onerror=alert(4)>"):
        assert text in page.text.split("code of this notebook")[0]
    book = nbformat.read(ran / "runs" / "guide" / "p" / "guide" / "01_good.ipynb", as_version=4)
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    (png,) = [each.data["image/png"] for each in outputs if "image/png" in each.get("data", {})]
    (shown,) = [image for image in page.all("img") if image["src"].startswith("data:image/png")]
    assert base64.b64decode(shown["src"].split(",")[1]) == base64.b64decode(png)
    assert shown["alt"] == "A figure"


def test_text_tables_and_figures_stand_in_the_order_of_the_notebook(page: Page) -> None:
    body = article(page.html, "guide/01_good")
    marks = [
        ">What it asks (Table 1)</h2>",
        "<code>p_holm</code>",
        ">A table</h3>",
        "20 images",
        "&lt;script&gt;alert(2)",
        ">A figure</h3>",
        "data:image/png",
        "<li>A thing.</li>",
        "code of this notebook",
    ]
    places = [body.index(mark) for mark in marks]
    assert places == sorted(places)
    assert "embedding: 3 of 9" not in body.split("code of this notebook")[0]
    assert "a warning" not in body.split("code of this notebook")[0]


def test_the_top_names_benchmark_parameter_file_dates_versions_and_states(
    page: Page, ran: Path
) -> None:
    html = page.html
    top = html.split("<main>")[0]
    end = nbformat.read(
        ran / "runs" / "guide" / "p" / "guide" / "01_good.ipynb", as_version=4
    ).metadata.papermill.end_time
    for word in (
        "<code>params/guide/p.yaml</code>",
        f"{end[:10]} {end[11:16]} UTC",
    ):
        assert word in top
    for name in ("vrag_kit", "torch", "transformers"):
        assert f"{name} {version(name)}" in top
    states = re.findall(r'<td class="state [^"]*">([^<]*)<', top)
    failed, died = "failed: ZeroDivisionError: division by zero", "failed: the kernel died"
    assert states == ["done", failed, died]


def test_a_failure_is_shown_where_it_happened_and_nothing_below_it(page: Page) -> None:
    html = page.html
    failed, died = article(html, "guide/02_bad"), article(html, "guide/03_dying")
    assert "failed: ZeroDivisionError: division by zero" in failed
    assert "before" in failed.split("Traceback")[0]
    assert "\x1b" not in failed
    assert "the kernel died" in died
    assert "Nothing that" not in html  # what the notebooks conclude


def test_an_old_a_damaged_and_a_missing_run_are_named_as_such(project: Path) -> None:
    save(project / "notebooks" / "guide" / "01_good.ipynb", [*GOOD, "## More"])
    (project / "runs" / "guide" / "p" / "guide" / "02_bad.ipynb").write_text(
        '{"cells": [', encoding="utf-8"
    )
    (project / "runs" / "guide" / "p" / "guide" / "03_dying.ipynb").unlink()
    states = [section.state for section in write_report([P])[1]]
    found = zip(states, ("out of date", "cannot be read", "not run"), strict=True)
    assert [state for state, words in found if words not in state] == []


@pytest.mark.slow
def test_what_the_paper_says_stands_first_where_results_can_tell(project: Path) -> None:
    before = report()
    assert "What the paper says" not in before  # notebooks of no paper, or no claims yet
    for place in ("notebooks/guide", "params/guide", "runs/guide/p/guide", "runs/guide"):
        (project / place).rename((project / place).with_name("visual_rag"))
    arms = {("zero_shot", 0): 0.0, ("gt_clue", 1): 1.0}
    rows = [
        ("own", setting, k, 0, f"q{i}", f"g{i}", score, 0.0)
        for (setting, k), score in arms.items()
        for i in range(30)
    ]
    columns = ["model", "setting", "k", "draw", "query_id", "group", "score", "abstained"]
    source = DataSource("Guide", "Visual-RAG v1, first upload")
    save_checks("03", pd.DataFrame(rows, columns=columns), source, project / "figures")
    written, _ = write_report([Path("params/visual_rag/p.yaml")])
    html = written.read_text(encoding="utf-8")
    head = html.split('<nav id="contents"')[0]
    assert head.count("What the paper says, on these results") == 1  # for three notebooks
    cells = re.findall(r"<tr><td>(.*?)</td>.*?>([^<]+)</td><td>(.*?)</td>", head)
    verdicts = {says: verdict for says, verdict, _ in cells}
    assert len(verdicts) == len(STATEMENTS)
    lifts = next(row for row in cells if row[0].startswith("a clue lifts every model"))
    assert lifts[1] == "supported"
    assert lifts[2].startswith("own: 100.00 [")
    assert list(verdicts.values()).count("not run") == len(STATEMENTS) - 1


def test_several_files_are_reported_on_one_page(project: Path) -> None:
    (project / "params" / "guide" / "q.yaml").write_text("k: 2\n", encoding="utf-8")
    status, told = said("report", "params/guide/q.yaml", str(P))
    assert (status, "guide/01_good: done\nguide/02_bad: failed: Zero" in told) == (0, True)
    assert "guide/01_good: not run with this parameter file" in told
    assert told.endswith("the report is in runs/report.html\n")
    status, told = said("report", "params/guide/q.yaml")
    assert (status, "`vrag run params/guide/q.yaml`" in told) == (2, True)
    status, told = said("report", str(P), "--to", "sent/page.html")
    assert (status, (project / "sent" / "page.html").read_text() == report()) == (0, True)
