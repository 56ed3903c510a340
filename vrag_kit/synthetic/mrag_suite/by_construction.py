"""What true labels say of long answers over the synthetic suite, whatever these claim.

A distractor says nothing about the part in question; gold documents together entail every
gold claim. In WebQA and Visual-RAG each gold document tells the whole look of the part,
so that none is neutral about a claim.
"""

from __future__ import annotations

import pandas as pd

from vrag_kit.papers.mrag_suite.printed import MODES
from vrag_kit.synthetic.mrag_suite.opening import GroundTruth

_DISTRACTORS = {
    "claim_recall": 0.0,
    "evidence_utilization": 0.0,
    "entailed_share": 0.0,
    "neutral_share": 1.0,
}
_WHOLE_LOOK = {"claim_recall": 1.0, "neutral_share": 0.0}
_GOLD = {"WebQA": _WHOLE_LOOK, "Chart-MRAG": {"claim_recall": 1.0}, "Visual-RAG": _WHOLE_LOOK}


def fixed_means(world: GroundTruth | None) -> pd.DataFrame:
    """Means by true labels that no answer changes: dataset, setting, family, metric,
    modality, value, in [0, 1]; no row without a synthetic edition.

    Of the data sets whose questions are all about a part. A long answer makes no claim
    about anything else, as it is asked in parts.
    """
    rows: list[tuple[object, ...]] = []
    for dataset, gold in _GOLD.items() if world else ():
        for modality in ("all", "image", "text"):
            said = _DISTRACTORS.items()
            rows += [(dataset, MODES[0], metric, modality, value) for metric, value in said]
        for mode in MODES[1:]:
            rows += [(dataset, mode, metric, "all", value) for metric, value in gold.items()]
    columns = ["dataset", "setting", "metric", "modality", "value"]
    return pd.DataFrame(rows, columns=columns).assign(family="mm_ragchecker")
