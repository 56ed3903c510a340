"""The models of MRAG-Bench's Table 3: what each is called on the hub, and whether it runs
here.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd


def paper_models() -> pd.DataFrame:
    """One row for each of the 14 models, by the name that Table 3 prints.

    `checkpoint` is its name on the hub, or at an endpoint; `read_by` the class of
    transformers, or what else reads it; `loads` "yes" when transformers loads it without
    remote code, "no", or "endpoint"; `instead` the same weights in transformers' layout
    with their class, or "printed numbers only". The paper names versions of GPT-4o and
    DeepSeek-VL only; the others are those that were current when it was written.
    """
    table = pd.read_csv(Path(__file__).with_name("models.csv"), keep_default_na=False)
    return table.astype(str)
