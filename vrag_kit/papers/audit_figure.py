"""Figure of an audit's findings, shared by all papers."""

from __future__ import annotations

from textwrap import shorten

import pandas as pd
from matplotlib.figure import Figure

from vrag_kit.papers.audit import AGREES, CONTRADICTS, FINDINGS, audit_summary, contradictions
from vrag_kit.plotting.style import DARK, OUTCOME, SMALL, fit, new_figure, set_caption


def audit_figure(checks: pd.DataFrame) -> Figure:
    """Draws how many numbers of each check contradict another, the most first, and beside each
    bar the largest contradiction. `checks` are the rows of `audit_rows`.
    """
    summary = audit_summary(checks)
    counts = summary[list(FINDINGS)].sum(axis=1)
    found = summary[summary[CONTRADICTS] > 0].sort_values(
        CONTRADICTS, ascending=False, kind="stable"
    )
    rows = contradictions(checks)
    size = (rows["reported"] - rows["recomputed"]).abs().fillna(0.0)
    largest = rows.loc[size.groupby(rows["check"]).idxmax()].set_index("check").loc[found.index]
    figure, ((axis, words),) = new_figure(
        1, 2, height=0.27 * len(found) + 1, width_ratios=(1, 2.6), sharey=True
    )
    axis.barh(range(len(found)), found[CONTRADICTS], color=OUTCOME["incorrect"], linewidth=0)
    ends = zip(found[CONTRADICTS], counts[found.index], _words(largest), strict=True)
    for at, (number, every, example) in enumerate(ends):
        text = f" {number} of {every:,}"
        axis.text(number, at, text, va="center", fontsize=SMALL, color=DARK)
        words.text(0, at, fit(example, 3.5), va="center", fontsize=SMALL)
    labels = [fit(f"{check} ({tables})", 2.2) for check, tables in found["tables"].items()]
    axis.set_yticks(range(len(found)), labels, fontsize=SMALL)
    axis.set(ylim=(len(found) - 0.4, -0.6), xlim=(0, 1.5 * found[CONTRADICTS].max()), xticks=[])
    axis.grid(visible=False)
    axis.set_title("Contradictions")
    words.set_title("Largest contradiction")
    words.axis("off")
    clean = len(summary) - len(found)
    set_caption(
        figure,
        f"Of {len(checks):,} recomputed numbers {summary[AGREES].sum():,} agree with the paper and"
        f" {found[CONTRADICTS].sum()} contradict it",
        f"""In brackets: the paper's tables and figures. The other numbers are consistent with
        rounding or not comparable. Not drawn: {clean} checks, of
        {counts.drop(found.index).sum():,} numbers, without a contradiction.""",
    )
    return figure


def _words(rows: pd.DataFrame) -> list[str]:
    """Contradictions in words: where, the reported and the recomputed number; of a sentence, which
    reports none, its beginning.
    """
    texts = []
    for row in rows.to_dict("records"):
        said = f"{row['reported']:,.4g} reported, {row['recomputed']:,.4g} recomputed"
        if pd.isna(row["reported"]):
            sentence = shorten(str(row["note"]), 60, placeholder=" …")
            said = f"{row['recomputed']:,.4g} recomputed; {sentence}"
        texts.append(f"{row['cell']}: {said}".replace("_", " ").replace(" -", " −"))
    return texts
