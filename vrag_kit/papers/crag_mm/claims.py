"""The paper's sentences beside results of one's own; verdicts on the paper's data alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from vrag_kit.analysis.strata import ALL
from vrag_kit.papers.claim_rows import save_claims, table_of
from vrag_kit.papers.crag_mm.audit_counts import CONVERSATIONS
from vrag_kit.papers.crag_mm.statements import STATEMENTS
from vrag_kit.papers.sources import Source, source_in
from vrag_kit.types import Benchmark

_FOLDER = "crag_mm"
_EDITION = "CRAG-MM, public test, told by name and count; release not known"
_SESSIONS = {
    "crag-mm-single-turn-public-test": 1938,  # 30 % of 6,462
    "crag-mm-multi-turn-public-test": CONVERSATIONS,
}
_FEWEST, _MOST = 0.95, 1.01  # of these: pictures may be missing; neither count is printed


def source_of(benchmark: Benchmark) -> Source:
    """What statements of the paper are held against: its public test, of which all its
    tables are, or data on which there is no verdict. The released files' hashes are not
    known here: its loader's name tells, which any rows in this layout get, with about as
    many questions, or conversations.
    """
    count = len({query.group for query in benchmark.queries.values()})
    share = count / _SESSIONS.get(benchmark.name, math.inf)
    return source_in(benchmark, _EDITION if _FEWEST <= share <= _MOST else "")


def claims_on(
    notebook: str,
    differences: pd.DataFrame,
    source: Source | Mapping[str, Source],
    folder: Path,
) -> pd.DataFrame:
    """What the paper says that the differences of a notebook can decide, one row a
    sentence and model: `COLUMNS` of `claim_rows`; saved below `folder`, a notebook's
    `figures_dir`, as NN_claims.csv.

    `notebook` is its number ("52"); `differences` are `in_percent(truth_gains(…))` for
    each baseline, or rows of slices in the same columns: model, metric, setting,
    baseline, value, ci_low, ci_high, n, in points. `source` is that of
    `source_of(benchmark)`, or name of a sentence → its own: there are verdicts on the
    paper's own data alone (`save_claims`). A sentence without such a row has one without
    numbers in what is returned. Raises `VragError` when the folder cannot be written.
    """
    asked = [statement for statement in STATEMENTS if statement.notebook == notebook]
    rows = []
    for statement in asked:
        arm = differences["setting"].eq(statement.setting)
        arm &= differences["baseline"].eq(statement.baseline)
        arm &= differences["metric"].eq(statement.metric)
        for row in differences[arm].to_dict("records"):
            number = (row["value"], row["ci_low"], row["ci_high"])
            verdict = statement.range.verdict(*number)
            first = (statement.name, row["model"], ALL)
            rows.append((*first, *number, row["n"], verdict))
    return save_claims(rows, asked, source, folder / _FOLDER / f"{notebook}_claims.csv")


def claims_table(folder: Path) -> pd.DataFrame:
    """Every sentence of `STATEMENTS` with what the claims saved below `folder` say of
    it: says, section, verdict, numbers, source, printed (see `table_of`).
    """
    return table_of(folder / _FOLDER, STATEMENTS, lambda statement: statement.printed())
