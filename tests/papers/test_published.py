"""Every published number is the one that was read off the papers and checked against them.

`tests/data/frozen_tables.csv` holds a hash of each table, written again by
`python tests/papers/test_published.py` after a number was corrected.
"""

from __future__ import annotations

import hashlib

import pandas as pd
from conftest import ROOT

from vrag_kit.papers import published

DATA = ROOT / "tests" / "data"
FROZEN = DATA / "frozen_tables.csv"


def test_no_published_number_has_changed_since_it_was_checked():
    frozen = pd.read_csv(FROZEN, dtype=str)
    assert frozen.to_dict("records") == table_hashes().to_dict("records")


def table_hashes() -> pd.DataFrame:
    """One row a table: paper, table, sha256 of its rows as CSV."""
    rows = []
    for file in sorted((ROOT / "vrag_kit" / "papers").glob("*/tables/*.csv")):
        paper = file.parents[1].name
        table = published(paper, file.stem).to_csv(index=False, lineterminator="\n")
        rows.append((paper, file.stem, hashlib.sha256(table.encode()).hexdigest()))
    return pd.DataFrame(rows, columns=["paper", "table", "sha256"])


if __name__ == "__main__":
    table_hashes().to_csv(FROZEN, index=False)
