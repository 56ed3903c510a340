"""The report: one page with every table and figure, that loads nothing, runs nothing,
and says what is missing, failed or old.
"""

import contextlib
import re
import shutil
from pathlib import Path

import factories
import pytest
from bs4 import BeautifulSoup
from commands import said, vrag
from factories import judged_arms
from markupsafe import escape
from own_project import notebook

from vrag_kit.papers.visual_rag import check_statements
from vrag_kit.papers.visual_rag.published import EDITIONS
from vrag_kit.runner.report import write_report
from vrag_kit.workspace import Workspace

pytestmark = pytest.mark.slow
P = Path("params/guide/p.yaml")
PARAMETERS = 'figures_dir = "figures"\nk = 1  # images & more'
GOOD = [
    "# What it asks (Table 1)\n\nWhy: `p_holm`, see [the paper](https://example.org/x).",
    "import sys\nimport pandas as pd\nimport ipywidgets\nfrom vrag_kit.plotting import style_table",
    "sys.stdout.write('embedding: 3 of 9\\n'); sys.stderr.write('a warning\\n');",
    "## A table\n\nOf $x_1^2$ images.",
    "print(k, 'images')",
    "pd.DataFrame({'answer': ['<script>alert(2)</script>', 'red'], 'value': [1.5, -2.0]})",
    "style_table(pd.DataFrame({'answer': ['<img src=http://x.org/x.png onerror=alert(4)>']}))",
    "## A figure",
    "from vrag_kit.plotting.style import new_figure\nnew_figure(1, 2, height=2)[0]",
    "ipywidgets.IntSlider()",
    "## What to notice\n\n* A thing.",
]
BAD = ["# What fails", "print('before')", "## Here", "ratio = 1 / 0", "## Nothing that holds."]
DYING = ["# What dies", "import os\nos._exit(9)", "## Nothing that lives."]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A project after a run of three notebooks: one that ends well, one that fails, one
    whose kernel dies.
    """
    project = tmp_path_factory.mktemp("project")
    for name in ("notebooks", "params", "figures"):
        (project / name / "guide").mkdir(parents=True)
    for name, cells in (("01_good", GOOD), ("02_bad", BAD), ("03_dying", DYING)):
        notebook(project / "notebooks" / "guide" / f"{name}.ipynb", PARAMETERS, *cells)
    (project / "params" / "guide" / "p.yaml").write_text("k: 20\n", encoding="utf-8")
    vrag(project, "run", str(P), "--jobs", "3")
    return project


@pytest.fixture
def project(ran, tmp_path, monkeypatch):
    """A copy of it to change, as the current folder."""
    shutil.copytree(ran, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture(scope="module")
def page(ran):
    """The report of that run, to read."""
    with contextlib.chdir(ran):
        return write_report([P])[0].read_text(encoding="utf-8")


def article(html: str, stem: str) -> str:
    return html.split(f'<article id="guide/p/{stem}">')[1].split("</article>")[0]


def test_the_page_loads_nothing_and_runs_nothing(page):
    active = {"script", "link", "iframe", "object", "embed", "base", "svg", "form"}
    tags = BeautifulSoup(page, "html.parser").find_all(True)
    assert not active & {tag.name for tag in tags}
    for tag in tags:
        assert not [name for name in tag.attrs if name.startswith("on") or name == "srcset"], tag
        assert tag.get("src", "data:image/").startswith("data:image/")
        assert tag.get("href", "#").startswith(("#", "https://example.org"))
    assert "@import" not in page
    assert "url(" not in page
    assert "default-src 'none'" in page
    for text in ("<script>alert(2)</script>", "onerror=alert(4)>"):
        assert escape(text) in page


def test_text_tables_and_figures_stand_in_the_order_of_the_notebook(page):
    body = article(page, "guide/01_good").split("code of this notebook")[0]
    marks = [
        ">What it asks (Table 1)</h2>",
        "<code>p_holm</code>",
        ">A table</h3>",
        "20 images",
        "&lt;script&gt;alert(2)",
        ">A figure</h3>",
        "data:image/png",
        "<li>A thing.</li>",
    ]
    places = [body.index(mark) for mark in marks]
    assert places == sorted(places)
    assert "embedding: 3 of 9" not in body
    assert "a warning" not in body
    (image,) = BeautifulSoup(page, "html.parser").find_all("img")
    assert image["alt"] == "A figure"


def test_a_failure_is_named_and_shown_where_it_happened_and_nothing_below_it(page):
    failed = "failed: ZeroDivisionError: division by zero"
    states = re.findall(r'<td class="state [^"]*">([^<]*)<', page)
    assert states == ["done", failed, "failed: the kernel died"]
    body = article(page, "guide/02_bad")
    assert "before" in body.split("Traceback")[0]
    assert "\x1b" not in body
    assert "Nothing that" not in page  # what the notebooks conclude


def test_an_old_a_damaged_and_a_missing_run_are_named_as_such(project):
    notebook(project / "notebooks/guide/01_good.ipynb", PARAMETERS, *GOOD, "## More")
    copies = project / "runs" / "guide" / "p" / "guide"
    (copies / "02_bad.ipynb").write_text('{"cells": [', encoding="utf-8")
    (copies / "03_dying.ipynb").unlink()
    states = [section.state for section in write_report([P])[1]]
    found = zip(states, ("have changed since", "cannot be read", "not run"), strict=True)
    assert [state for state, words in found if words not in state] == []


def test_what_the_paper_says_stands_first_where_results_can_tell(project):
    for place in ("notebooks/guide", "params/guide", "runs/guide/p/guide", "runs/guide"):
        (project / place).rename((project / place).with_name("visual_rag"))
    judged = judged_arms({("own", "zero_shot", 0): [0.0] * 30, ("own", "gt_clue", 1): [1.0] * 30})
    data = factories.benchmark(name="Guide", blob=next(iter(EDITIONS)))
    check_statements("03", judged, data, Workspace(figures_dir=project / "figures"))
    written, _ = write_report([Path("params/visual_rag/p.yaml")])
    head = written.read_text(encoding="utf-8").split('<nav id="contents"')[0]
    assert head.count("What the paper says, on these results") == 1  # for three notebooks
    cells = re.findall(r"<tr><td>(.*?)</td>.*?>([^<]+)</td><td>(.*?)</td>", head)
    assert len(cells) == 1
    assert "<td>Guide (Visual-RAG v1, first upload)</td>" in head
    lifts = next(row for row in cells if row[0].startswith("a clue lifts every model"))
    assert lifts[1] == "supported"
    assert lifts[2].startswith("own: 100.00 [")


def test_several_files_are_reported_on_one_page(project):
    (project / "params" / "guide" / "q.yaml").write_text("k: 2\n", encoding="utf-8")
    status, told = said("report", "params/guide/q.yaml", str(P))
    assert (status, "guide/01_good: done\nguide/02_bad: failed: Zero" in told) == (0, True)
    assert "guide/01_good: not run with this parameter file" in told
    assert told.endswith("the report is in runs/report.html\n")
    status, told = said("report", "params/guide/q.yaml")
    assert (status, "`vrag run params/guide/q.yaml`" in told) == (2, True)
    assert said("report", str(P), "--to", "sent/page.html")[0] == 0
    assert (project / "sent" / "page.html").is_file()
