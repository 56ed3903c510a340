"""Numbers in the paper's text and their values in its tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from vrag_kit.papers.text_numbers import TextNumber, TextNumberRow, collect_text_numbers

Tables = Mapping[int, pd.DataFrame]
_BASE = "LLaVa-v1.6-34B"
"""The main baseline; the text calls it LLaVA-2."""


def text_numbers(tables: Tables) -> list[TextNumber]:
    """Returns every number of the text that can be checked against the tables.

    If the text gives a mean over data sets, any weighting lies between the smallest and the largest
    published value; the found number is the nearest of these.
    """
    whole = [*_accuracy(tables), *_ranks(tables), *_claim_metrics(tables), *_prompts(tables)]
    return collect_text_numbers(whole)


def _accuracy(tables: Tables) -> list[TextNumberRow]:
    """Accuracy of the baseline (section 5.2)."""
    main = tables[2][tables[2]["model"] == _BASE]
    full = main[main["split"] == "full"].set_index("dataset")["value"]
    part = main[main["split"] == "filtered"].set_index("dataset")["value"]
    mean = "any mean over data sets lies between their least and most"
    told: list[TextNumberRow] = [
        ("overall, full", "5.2", 2, f"62.5% overall; {mean}", 62.5, _nearest(62.5, full)),
        ("overall, filtered", "5.2", 2, f"47.8% overall; {mean}", 47.8, _nearest(47.8, part)),
        ("drop by filtering", "5.2", "text", "–14.7 points", 14.7, 62.5 - 47.8),
    ]
    for name, says, printed in (
        ("WebQA", "52% on the filtered set", 52),
        ("Chart-MRAG", "low 30%s, here 30%", 30),
        ("Visual-RAG", "45%", 45),
    ):
        told.append((f"{name}, filtered", "5.2", 2, says, printed, part[name]))
    return told


def _ranks(tables: Tables) -> list[TextNumberRow]:
    """Which data sets are easiest, hardest, and lose most (sections 5.2 and 5.4)."""
    main = tables[2][(tables[2]["model"] == _BASE) & (tables[2]["split"] == "filtered")]
    easiest = main.set_index("dataset")["value"].rank(ascending=False)
    modes = tables[5].pivot(index=["dataset", "model"], columns="setting", values="value")
    drops = (modes["gt_only"] - modes["gt_plus_distractors"]).groupby("dataset").mean()
    ranks = drops.rank(ascending=False)
    largest = '"Chart-RAG and VisRAG-Doc exhibit the largest drops"; rank of GO less GPD'
    both = ranks[["Chart-MRAG", "VisRAG-Doc"]]
    return [
        ("WebQA, rank", "5.2", 2, "the easiest; rank among eight", 1, easiest["WebQA"]),
        ("Chart-MRAG, rank", "5.2", 2, "the hardest; rank among eight", 8, easiest["Chart-MRAG"]),
        ("the two largest drops, mean rank", "5.4", 5, largest, 1.5, both.mean()),
    ]


def _claim_metrics(tables: Tables) -> list[TextNumberRow]:
    """Claim metrics of the baseline (section 5.3)."""
    main = tables[3][tables[3]["model"] == _BASE]
    by_metric = main.groupby("metric")["value"]
    faithful, made_up = by_metric.get_group("faithfulness"), by_metric.get_group("hallucination")
    used = by_metric.get_group("context_precision")
    of_sets = main[main["metric"] == "faithfulness"].groupby("dataset")["value"].max()
    gold = pd.concat([tables[14], tables[15]]).query("setting == 'gt_only'")
    supported = gold[gold["metric"] == "faithfulness"]["value"]
    most = "highest of its values"
    return [
        ("claims supported", "5.3", 3, "68% of claims", 68, _nearest(68, faithful)),
        ("claims hallucinated", "5.3", 3, "hallucination 32%", 32, _nearest(32, made_up)),
        ("items used", "5.3", 3, "about 21% of retrieved items", 21, _nearest(21, used)),
        ("faithfulness, WebQA", "5.3", 3, f"∼72%; {most}", 72, of_sets["WebQA"]),
        ("faithfulness, Visual-RAG", "5.3", 3, f"∼60%; {most}", 60, of_sets["Visual-RAG"]),
        (
            "claims supported, gold evidence",
            "5.3",
            "14, 15",
            "about 90% with gold evidence only; any model, any data set",
            90,
            _nearest(90, supported),
        ),
    ]


def _prompts(tables: Tables) -> list[TextNumberRow]:
    """The prompts of the sweep (section 5.5)."""
    best = tables[6]["nickname"]
    first = '"top-1 on 3/6 datasets"; times that Table 6 has expert3 direct'
    known = {"expert1", "expert2", "expert3", "plain1", "plain2", "plain3"}
    named = best.str.split().str[0].isin(known)
    nicknames = "nicknames of Table 6 that Table 11 has"
    return [
        ("expert-ex3-direct is best", "5.5", 6, first, 3, (best == "expert3 direct").sum()),
        ("nicknames", "C", "6, 11", nicknames, len(best), named.sum()),
    ]


def _nearest(value: float, values: pd.Series) -> float:
    """The value nearest to `told` between the least and the most of `values`."""
    return float(min(max(value, values.min()), values.max()))
