"""Look at wrong answers one by one: the question, the images with the clues marked, the
answer, what was accepted, and the verdict.
"""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets
import pandas as pd
from IPython.display import HTML

from vrag_kit.plotting.style import CLUE, GREY
from vrag_kit.types import Benchmark
from vrag_kit.widgets.pictures import thumbnail

ALL = "all"


class CaseBrowser(ipywidgets.VBox):
    """The browser.

    `model` and `kind` choose cases, `back` and `forward` turn pages; `place` is the
    case shown, from 0, among `chosen`.

    With the keyboard: Tab and Shift+Tab walk over the four; Space opens `model` or
    `kind`, the arrow keys choose there and Enter takes; Enter or Space turns the page
    and keeps the focus. Other keys are JupyterLab's.
    """

    def __init__(self, benchmark: Benchmark, cases: pd.DataFrame) -> None:
        """`cases` as `error_cases` gives them."""
        self.benchmark, self.cases, self.chosen, self.place = benchmark, cases, cases, 0
        self.model, self.kind = (
            ipywidgets.Dropdown(
                options=[ALL, *dict.fromkeys(cases[name])],
                description=name,
                style={"description_width": "initial"},
            )
            for name in ("model", "kind")
        )
        self.back, self.forward = (
            ipywidgets.Button(description=name, tooltip=f"to the case {where}")
            for name, where in (("back", "before"), ("forward", "after"))
        )
        self.count, self.card = ipywidgets.HTML(), ipywidgets.HTML()
        self.model.observe(self._choose, "value")
        self.kind.observe(self._choose, "value")
        self.back.on_click(lambda _: self._turn(-1))
        self.forward.on_click(lambda _: self._turn(1))
        super().__init__(
            [
                ipywidgets.HBox([self.model, self.kind]),
                ipywidgets.HBox([self.back, self.forward, self.count]),
                self.card,
            ]
        )
        self._choose()

    def __repr__(self) -> str:
        return f"case browser: {len(self.cases)} cases"

    def _choose(self, _: Any = None) -> None:
        wanted = {"model": self.model.value, "kind": self.kind.value}
        kept = [(self.cases[name] == value) for name, value in wanted.items() if value != ALL]
        self.chosen = self.cases[pd.concat(kept, axis=1).all(axis=1)] if kept else self.cases
        self.place = 0
        self._turn(0)

    def _turn(self, step: int) -> None:
        self.place = min(max(0, self.place + step), max(0, len(self.chosen) - 1))
        self.back.disabled, self.forward.disabled = (
            self.place == 0,
            self.place >= len(self.chosen) - 1,
        )
        self.count.value = (
            f"{self.place + 1} of {len(self.chosen)}" if len(self.chosen) else "no such case"
        )
        self.card.value = (
            _card(self.benchmark, self.chosen.iloc[self.place]) if len(self.chosen) else ""
        )


def browse_cases(benchmark: Benchmark, cases: pd.DataFrame) -> CaseBrowser:
    """A panel to turn over `cases` (from `error_cases`), of one model or kind or of
    all.
    """
    return CaseBrowser(benchmark, cases)


def cases_page(benchmark: Benchmark, cases: pd.DataFrame) -> HTML:
    """The cases below one another, to read without a kernel; all text is escaped."""
    return HTML(
        "<hr>".join(_card(benchmark, case) for _, case in cases.iterrows()) or "<p>no such case</p>"
    )


def _card(benchmark: Benchmark, case: pd.Series) -> str:
    clues = set(benchmark.relevant(case["query_id"]))
    pictures = "".join(
        thumbnail(
            benchmark,
            doc_id,
            caption="clue" if doc_id in clues else f"image {number}",
            frame=CLUE if doc_id in clues else GREY,
        )
        for number, doc_id in enumerate(case["doc_ids"], start=1)
    )
    rows = {
        "accepted": case["references"],
        "answer": case["answer"],
        "verdict": f"{case['verdict']} ({case['kind']})",
        "model": f"{case['model']}, draw {case['draw']}",
    }
    table = "".join(
        "<tr style='vertical-align:top'><td"
        f" style='text-align:left;padding-right:1em'>{name}</td><td style='text-align:left'><b"
        f" style='white-space:pre-wrap'>{escape(str(text))}</b></td></tr>"
        for name, text in rows.items()
    )
    return (
        "<div"
        f" style='line-height:1.5'><p><b>{escape(case['question'])}</b></p><div>{pictures}</div><table>{table}</table></div>"
    )
