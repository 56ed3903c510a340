"""Numbers in the paper's text and their values in its tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from vrag_kit.papers.text_numbers import TextNumber, TextNumberRow, collect_text_numbers

_LLAVA = "LLaVA-NeXT-Interleave-7B"
_GPT = "GPT-4-Turbo"


def text_numbers(
    tables: Mapping[int | str, pd.DataFrame], aspects: Mapping[str, int]
) -> list[TextNumber]:
    """Returns every number of the text that can be computed from the tables; `aspects` maps each
    aspect to its number of questions.
    """
    return [
        *_gains(tables[3]),
        *_open_models(tables[3]),
        *_text_or_image(tables[4]),
        *_retrievers(tables),
        TextNumber(
            name="questions of perspective and others",
            section="4.3",
            table="figure 2",
            says='"perspective and others aspects, covering a total of 892 questions"',
            printed=892,
            found=aspects["perspective"] + aspects["others"],
        ),
    ]


def retriever_correlations(tables: Mapping[int | str, pd.DataFrame]) -> pd.DataFrame:
    """Correlates recall@5 (Table 6) with accuracy (Table 7) over the four retrievers: scenario
    ("overall" too), n, pearson, spearman. Four points each.
    """
    both = tables[6].merge(tables[7], on=["retriever", "scenario"], suffixes=("_recall", "_right"))
    rows = []
    for scenario, part in both.groupby("scenario", sort=False):
        recall, right = part["value_recall"], part["value_right"]
        rows.append(
            {
                "scenario": scenario,
                "n": len(part),
                "pearson": recall.corr(right),
                "spearman": recall.rank().corr(right.rank()),
            }
        )
    return pd.DataFrame(rows)


def _overall(table: pd.DataFrame, setting: str, of: str | None = None) -> pd.Series:
    """Overall values of a setting by model; `of` names one modality."""
    rows = table[(table["scenario"] == "overall") & (table["setting"] == setting)]
    if of is not None:
        rows = rows[rows["modality"] == of]
    return rows.set_index("model")["value"]


def _gains(main: pd.DataFrame) -> list[TextNumber]:
    """Gains over no RAG (section 3.2)."""
    alone, truth = _overall(main, "no_rag"), _overall(main, "gt_rag")
    found = _overall(main, "retrieved_rag")
    groups = main.drop_duplicates("model").set_index("model")["model_group"]
    gain = (truth - alone).dropna()
    proprietary = gain[groups[gain.index] == "proprietary"]
    free = gain[groups[gain.index] == "open_source"]
    better = "improvements with ground-truth examples"
    values = [
        ("smallest proprietary gain", f"5.64% to 9.69% {better}", 5.64, proprietary.min()),
        ("largest proprietary gain", f"5.64% to 9.69% {better}", 9.69, proprietary.max()),
        ("smallest open gain", f"2.07% to 11.31% {better}", 2.07, free.min()),
        ("largest open gain", f"2.07% to 11.31% {better}", 11.31, free.max()),
    ]
    people = {"GPT-4o": (0.28, 5.82), "Human performance": (22.91, 33.16)}
    for model, (retrieved, ground) in people.items():
        says = f"{model} gains {retrieved}% with retrieved, {ground}% with ground-truth examples"
        values.append((f"{model}, retrieved", says, retrieved, found[model] - alone[model]))
        values.append((f"{model}, ground truth", says, ground, truth[model] - alone[model]))
    told = [(name, "3.2", 3, says, number, own) for name, says, number, own in values]
    return collect_text_numbers(told, unit=0.01)


def _open_models(main: pd.DataFrame) -> list[TextNumber]:
    """How far the open models reach, and how far GPT-4o is ahead (sections 1 and 3.2)."""
    free = main[main["model_group"] == "open_source"]
    alone, truth = _overall(free, "no_rag"), _overall(free, "gt_rag")
    ahead = {
        setting: _overall(main, setting)["GPT-4o"] - _overall(free, setting).max()
        for setting in ("no_rag", "gt_rag")
    }
    lead = 'GPT-4o ahead of "the best open-source model LLaVA-OneVision by 15.39% and 15.52%"'
    values = [
        ("lowest open model", "3.2", "open models from 26.83% without RAG", 26.83, alone.min()),
        ("highest open model", "3.2", "open models to 53.29% without RAG", 53.29, alone.max()),
        ("lowest open model, GT", "3.2", "open models from 28.90% with GT", 28.90, truth.min()),
        ("highest open model, GT", "3.2", "open models to 59.28% with GT", 59.28, truth.max()),
        ("lead of GPT-4o", "1", lead, 15.39, ahead["no_rag"]),
        ("lead of GPT-4o, GT", "1", lead, 15.52, ahead["gt_rag"]),
    ]
    told = [(name, section, 3, says, number, own) for name, section, says, number, own in values]
    return collect_text_numbers(told, unit=0.01)


def _text_or_image(table: pd.DataFrame) -> list[TextNumber]:
    """What pictures gain over text (section 4.1)."""

    def ahead(setting: str, model: str) -> float:
        own = _overall(table, setting, "image")[model] - _overall(table, setting, "text")[model]
        return float(own)

    values = [
        (f"retrieved, {_LLAVA}", "2.36% with image over text", 2.36, "retrieved_rag", _LLAVA),
        (f"retrieved, {_GPT}", "2.34% with image over text", 2.34, "retrieved_rag", _GPT),
        (f"ground truth, {_LLAVA}", "11.90% with image over text", 11.90, "gt_rag", _LLAVA),
        (f"ground truth, {_LLAVA}, preprint", "11.09%, in the preprint", 11.09, "gt_rag", _LLAVA),
        (f"ground truth, {_GPT}", "3.87% with image over text", 3.87, "gt_rag", _GPT),
    ]
    told: list[TextNumberRow] = []
    for name, says, printed, setting, model in values:
        told.append((name, "4.1", 4, says, printed, ahead(setting, model)))
    return collect_text_numbers(told, unit=0.01)


def _retrievers(tables: Mapping[int | str, pd.DataFrame]) -> list[TextNumber]:
    """Recall and accuracy of the retrievers (section 4.2)."""
    right = tables[7][tables[7]["scenario"] == "overall"].set_index("retriever")["value"]
    together = retriever_correlations(tables).set_index("scenario")["pearson"]
    return [
        TextNumber(
            name="gap of CLIP and VISTA",
            section="4.2",
            table=7,
            says='"a 2.07% gap in overall accuracy"',
            printed=2.07,
            found=float(right["VISTA"] - right["CLIP"]),
            unit=0.01,
        ),
        TextNumber(
            name="recall@5 and accuracy",
            section="4.2",
            table="6, 7",
            says='"a strong 95% positive correlation" (Pearson, over four retrievers)',
            printed=95,
            found=float(100 * together["overall"]),
        ),
    ]
