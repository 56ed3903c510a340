"""Browse incorrect answers: question, images with the clues marked, answer, verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import pandas as pd

from vrag_kit.types import Benchmark
from vrag_kit.widgets.browser import Browser
from vrag_kit.widgets.cards import definition_list, page_html
from vrag_kit.widgets.images import document_thumbnail

if TYPE_CHECKING:
    from IPython.display import HTML

FILTERS = ("model", "outcome")


class CaseBrowser(Browser[int]):
    """Panel that browses cases, filtered by model and outcome."""

    thing = "case"

    def __init__(self, benchmark: Benchmark, cases: pd.DataFrame) -> None:
        """`cases` is the result of `error_cases`."""
        self.benchmark = benchmark
        self.cases = cases
        super().__init__({name: list(dict.fromkeys(cases[name])) for name in FILTERS})

    def __repr__(self) -> str:
        return f"case browser: {len(self.cases)} cases"

    def matching(self, wanted: Mapping[str, str]) -> Sequence[int]:
        """Return the row numbers of matching cases."""
        fits = pd.Series(True, index=self.cases.index)
        for name, value in wanted.items():
            fits &= self.cases[name] == value
        return [int(row) for row in fits.to_numpy().nonzero()[0]]

    def render_card(self, thing: int) -> str:
        """Return the case in row `thing` as HTML."""
        return _card(self.benchmark, self.cases.iloc[thing])


def browse_cases(benchmark: Benchmark, cases: pd.DataFrame) -> CaseBrowser:
    """Return a panel to browse `cases` (`error_cases`), filtered by model and outcome."""
    return CaseBrowser(benchmark, cases)


def cases_page(benchmark: Benchmark, cases: pd.DataFrame) -> HTML:
    """Return the cases as static HTML, one below another; all text is escaped."""
    return page_html([_card(benchmark, case) for _, case in cases.iterrows()], "no such case")


def _card(benchmark: Benchmark, case: pd.Series) -> str:
    pictures = _pictures(benchmark, case["query_id"], case["doc_ids"])
    rows = {
        "accepted answers": case["references"],
        "answer": case["answer"],
        "verdict": f"{case['verdict']} ({case['outcome']})",
        "model": f"{case['model']}, draw {case['draw']}",
    }
    return (
        f"<div style='line-height:1.5'><p><b>{escape(case['question'])}</b></p>"
        f"<div>{pictures}</div>{definition_list(rows)}</div>"
    )


def _pictures(benchmark: Benchmark, query_id: str, doc_ids: tuple[str, ...]) -> str:
    # imported here, for it brings the libraries that draw figures
    from vrag_kit.plotting.style import CLUE, GREY

    clues = set(benchmark.relevant(query_id))
    shown = []
    for number, doc_id in enumerate(doc_ids, start=1):
        if doc_id in clues:
            shown.append(document_thumbnail(benchmark, doc_id, caption="clue", frame=CLUE))
        else:
            shown.append(
                document_thumbnail(benchmark, doc_id, caption=f"image {number}", frame=GREY)
            )
    return "".join(shown)
