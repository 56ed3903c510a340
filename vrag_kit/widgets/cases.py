"""Wrong answers one by one: question, images with the clues marked, answer, verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import pandas as pd

from vrag_kit.types import Benchmark
from vrag_kit.widgets.browsing import Browsing
from vrag_kit.widgets.cards import facts, page_of
from vrag_kit.widgets.pictures import thumbnail

if TYPE_CHECKING:
    from IPython.display import HTML

FILTERS = ("model", "kind")


class CaseBrowser(Browsing[int]):
    """A panel that shows one case at a time, of a model or kind or of all."""

    thing = "case"

    def __init__(self, benchmark: Benchmark, cases: pd.DataFrame) -> None:
        """`cases` as `error_cases` gives them."""
        self.benchmark = benchmark
        self.cases = cases
        super().__init__({name: list(dict.fromkeys(cases[name])) for name in FILTERS})

    def __repr__(self) -> str:
        return f"case browser: {len(self.cases)} cases"

    def matching(self, wanted: Mapping[str, str]) -> Sequence[int]:
        """The rows of such cases."""
        fits = pd.Series(True, index=self.cases.index)
        for name, value in wanted.items():
            fits &= self.cases[name] == value
        return [int(row) for row in fits.to_numpy().nonzero()[0]]

    def card_of(self, thing: int) -> str:
        """The case in that row."""
        return _card(self.benchmark, self.cases.iloc[thing])


def browse_cases(benchmark: Benchmark, cases: pd.DataFrame) -> CaseBrowser:
    """A panel to turn over `cases` (from `error_cases`), of a model or kind or of all."""
    return CaseBrowser(benchmark, cases)


def cases_page(benchmark: Benchmark, cases: pd.DataFrame) -> HTML:
    """The cases below one another, to read without a kernel; all text is escaped."""
    return page_of([_card(benchmark, case) for _, case in cases.iterrows()], "no such case")


def _card(benchmark: Benchmark, case: pd.Series) -> str:
    pictures = _pictures(benchmark, case["query_id"], case["doc_ids"])
    rows = {
        "accepted": case["references"],
        "answer": case["answer"],
        "verdict": f"{case['verdict']} ({case['kind']})",
        "model": f"{case['model']}, draw {case['draw']}",
    }
    return (
        f"<div style='line-height:1.5'><p><b>{escape(case['question'])}</b></p>"
        f"<div>{pictures}</div>{facts(rows)}</div>"
    )


def _pictures(benchmark: Benchmark, query_id: str, doc_ids: tuple[str, ...]) -> str:
    # imported here, for it brings the libraries that draw figures
    from vrag_kit.plotting.style import CLUE, GREY

    clues = set(benchmark.relevant(query_id))
    shown = []
    for number, doc_id in enumerate(doc_ids, start=1):
        if doc_id in clues:
            shown.append(thumbnail(benchmark, doc_id, caption="clue", frame=CLUE))
        else:
            shown.append(thumbnail(benchmark, doc_id, caption=f"image {number}", frame=GREY))
    return "".join(shown)
