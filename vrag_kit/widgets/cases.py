"""Wrong answers one by one: question, images with the clues marked, answer, verdict."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import pandas as pd

from vrag_kit.types import Benchmark
from vrag_kit.widgets.panel import Panel
from vrag_kit.widgets.pictures import thumbnail

if TYPE_CHECKING:
    from IPython.display import HTML

ALL = "all"


class CaseBrowser(Panel):
    """A panel that shows one case at a time.

    `model` and `kind` choose cases, `back` and `forward` turn pages; `place` is the
    case shown, from 0, among `chosen`.

    With the keyboard: Tab and Shift+Tab walk over the four; Space opens `model` or
    `kind`, the arrow keys choose there and Enter takes; Enter or Space turns the page
    and keeps the focus. Other keys are JupyterLab's.
    """

    def __init__(self, benchmark: Benchmark, cases: pd.DataFrame) -> None:
        """`cases` as `error_cases` gives them."""
        from ipywidgets import HTML, Button, Dropdown, HBox, VBox

        self.benchmark = benchmark
        self.cases = cases
        self.chosen = cases
        self.place = 0
        whole = {"description_width": "initial"}
        models, kinds = ([ALL, *dict.fromkeys(cases[name])] for name in ("model", "kind"))
        self.model = Dropdown(options=models, description="model", style=whole)
        self.kind = Dropdown(options=kinds, description="kind", style=whole)
        self.back = Button(description="back", tooltip="to the case before")
        self.forward = Button(description="forward", tooltip="to the case after")
        self.count = HTML()
        self.card = HTML()
        choosing = HBox([self.model, self.kind])
        turning = HBox([self.back, self.forward, self.count])
        self.box = VBox([choosing, turning, self.card])

        self.model.observe(self._choose, "value")
        self.kind.observe(self._choose, "value")
        self.back.on_click(lambda _: self._turn(-1))
        self.forward.on_click(lambda _: self._turn(1))
        self._choose()

    def __repr__(self) -> str:
        return f"case browser: {len(self.cases)} cases"

    def _choose(self, _: object = None) -> None:
        self.chosen = self.cases
        for column, wanted in (("model", self.model.value), ("kind", self.kind.value)):
            if wanted != ALL:
                self.chosen = self.chosen[self.chosen[column] == wanted]
        self.place = 0
        self._turn(0)

    def _turn(self, step: int) -> None:
        last = len(self.chosen) - 1
        self.place = min(max(0, self.place + step), max(0, last))
        self.back.disabled = self.place == 0
        self.forward.disabled = self.place >= last
        if self.chosen.empty:
            self.count.value = "no such case"
            self.card.value = ""
        else:
            self.count.value = f"{self.place + 1} of {len(self.chosen)}"
            self.card.value = _card(self.benchmark, self.chosen.iloc[self.place])


def browse_cases(benchmark: Benchmark, cases: pd.DataFrame) -> CaseBrowser:
    """A panel to turn over `cases` (from `error_cases`), of a model or kind or of all."""
    return CaseBrowser(benchmark, cases)


def cases_page(benchmark: Benchmark, cases: pd.DataFrame) -> HTML:
    """The cases below one another, to read without a kernel; all text is escaped."""
    from IPython.display import HTML

    cards = [_card(benchmark, case) for _, case in cases.iterrows()]
    page = "<hr>".join(cards) or "<p>no such case</p>"
    return HTML(page)  # type: ignore[no-untyped-call]  # IPython's own lacks types


def _card(benchmark: Benchmark, case: pd.Series) -> str:
    pictures = _pictures(benchmark, case["query_id"], case["doc_ids"])
    rows = {
        "accepted": case["references"],
        "answer": case["answer"],
        "verdict": f"{case['verdict']} ({case['kind']})",
        "model": f"{case['model']}, draw {case['draw']}",
    }
    table = "".join(
        "<tr style='vertical-align:top'>"
        f"<td style='text-align:left;padding-right:1em'>{name}</td>"
        f"<td style='text-align:left'><b style='white-space:pre-wrap'>{escape(str(text))}</b></td>"
        "</tr>"
        for name, text in rows.items()
    )
    return (
        f"<div style='line-height:1.5'><p><b>{escape(case['question'])}</b></p>"
        f"<div>{pictures}</div><table>{table}</table></div>"
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
