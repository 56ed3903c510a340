"""Names, questions and answers are data: a notebook shows their signs and runs none of them,
in tables, in sentences and on pages.
"""

from __future__ import annotations

import re

import factories
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from conftest import ROOT
from factories import judged_arms

from vrag_kit.analysis import mean_scores, to_percent
from vrag_kit.papers.visual_rag import check_statements
from vrag_kit.plotting import style_table
from vrag_kit.widgets import choices_page, labels_table
from vrag_kit.workspace import Workspace

HOSTILE = "<img src=x onerror=alert(1)> [x](javascript:alert(2)) | *a* `b` ~~c~~ \\ &lt;"
EACH = [HOSTILE, "![x](http://example.org/x.png)<script>alert(3)</script>", "a\n\n# b _a_"]


def runs(html: str) -> list[str]:
    """The elements that data made of themselves: ours hold no script, and pictures as data."""
    page = BeautifulSoup(html, "html.parser")
    pictures = [each for each in page("img") if not str(each.get("src")).startswith("data:")]
    links = [each for each in page("a") if not str(each.get("href")).startswith("#")]
    found = [*pictures, *links, *page(["script", "svg", "iframe", "em", "del", "h1"])]
    return [str(each) for each in found]


def words(html: str) -> str:
    return " ".join(BeautifulSoup(html, "html.parser").get_text().split())


def judged(name: str) -> pd.DataFrame:
    """Answers of two models whose names, and all else that is text, is this."""
    scores = {}
    for model in (name, f"{name} 2"):
        scores[model, "zero_shot", 0], scores[model, "gt_clue", 1] = [0.0] * 20, [1.0] * 20
    return judged_arms(scores, stratum=name)


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_tables_show_names_in_cells_labels_and_captions(name, tmp_path):
    table = judged(name)
    means = to_percent(mean_scores(table, by=["model", "setting", "k"]))
    wide = pd.DataFrame([[name]], pd.Index([name], name=name), pd.Index([name], name=name))
    at = Workspace(figures_dir=tmp_path)
    pages = [
        check_statements("03", table, factories.benchmark(name=name), at).to_html(),
        style_table(wide, caption=name, precision=1).to_html(),
        style_table(means).hide(axis="index").to_html(),
        wide.to_html(notebook=True),
    ]
    for html in pages:
        assert not runs(html)
    assert words(pages[1]).count(" ".join(name.split())) == 6
    assert name.split()[0] in words(pages[0])


def test_pages_show_answers_and_people_by_their_names(guide):
    query_id = next(iter(guide.queries))
    labels = pd.DataFrame(
        [(query_id, HOSTILE, "correct", HOSTILE), ("gone", "x", "false", "me")],
        columns=["query_id", "answer", "label", "annotator"],
    )
    said = pd.DataFrame(
        [(query_id, HOSTILE, HOSTILE, "A", 1.0, ())],
        columns=["query_id", "setting", "model", "answer", "seconds", "doc_ids"],
    )
    table = labels_table(guide, labels).to_html()
    assert "gone, which small guide does not have" in table
    for page in (table, choices_page(guide, said).data):
        assert not runs(page)
        assert HOSTILE in words(page)


MAKERS = re.compile(
    r"\b(?:HTML|Markdown)\((?!\\?[\"')])[^)]*"
    r"|\b(?!(?:plt|plotting|formats)\b)\w+\.style\b"
)
MADE = {
    'vrag_kit/plotting/save.py: HTML(f"<small>{escape(caption',
    "vrag_kit/plotting/save_table.py: table.style",  # `style_table` itself
}
"""Places where HTML is made of data."""


@pytest.mark.slow
def test_html_and_markdown_are_made_of_data_in_a_few_places_alone():
    """A table is styled by `style_table`."""
    found = set()
    for file in [*ROOT.glob("vrag_kit/**/*.py"), *ROOT.glob("notebooks/**/*.ipynb")]:
        for made in MAKERS.findall(file.read_text(encoding="utf-8")):
            found.add(f"{file.relative_to(ROOT).as_posix()}: {made}")
    assert found == MADE
