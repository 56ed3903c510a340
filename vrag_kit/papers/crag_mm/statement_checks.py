"""Checks of the paper's statements against measured results; verdicts on the paper's data only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from vrag_kit.analysis.strata import ALL
from vrag_kit.papers.crag_mm.audit import CONVERSATIONS
from vrag_kit.papers.crag_mm.statements import STATEMENTS
from vrag_kit.papers.sources import DataSource, make_data_source
from vrag_kit.papers.statements import save_statement_checks, tabulate_statements
from vrag_kit.types import Benchmark

_FOLDER = "crag_mm"
_EDITION = "CRAG-MM, public test, told by name and count; release not known"
_SESSIONS = {
    "crag-mm-single-turn-public-test": 1938,  # 30 % of 6,462
    "crag-mm-multi-turn-public-test": CONVERSATIONS,
}
_FEWEST, _MOST = 0.95, 1.01  # of these: pictures may be missing; neither count is printed


def data_source(benchmark: Benchmark) -> DataSource:
    """Returns the data source of statement checks: the paper's public test set, on which all its
    tables are based, or data without a verdict. The released files' hashes are unknown here. It is
    identified by its loader's name, which any rows in this layout get, and its approximate number
    of questions or conversations.
    """
    count = len({query.group for query in benchmark.queries.values()})
    share = count / _SESSIONS.get(benchmark.name, math.inf)
    return make_data_source(benchmark, _EDITION if _FEWEST <= share <= _MOST else "")


def check_statements(
    notebook: str,
    differences: pd.DataFrame,
    source: DataSource | Mapping[str, DataSource],
    folder: Path,
) -> pd.DataFrame:
    """Checks the paper's statements that a notebook's differences can test, one row per statement
    and model. Columns are `STATEMENT_COLUMNS` of `papers.statements`; the file is NN_claims.csv
    below `folder`, a notebook's `figures_dir`.

    `notebook` is its number ("52"); `differences` are `to_percent(truthfulness_gains(…))` for each
    baseline, or rows of slices in the same columns: model, metric, setting, baseline, value,
    ci_low, ci_high, n, in points. `source` is the `data_source(benchmark)`, or maps a statement's
    name to its own: verdicts are given on the paper's own data only (`save_statement_checks`). The
    returned table has a row without numbers for each statement without results. Raises `VragError`
    if the folder cannot be written.
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
    return save_statement_checks(rows, asked, source, folder / _FOLDER / f"{notebook}_claims.csv")


def statements_table(folder: Path) -> pd.DataFrame:
    """Summarises the checks saved below `folder` for all `STATEMENTS`. Columns: statement, section,
    verdict, numbers, source, reported (see `tabulate_statements`).
    """
    return tabulate_statements(
        folder / _FOLDER, STATEMENTS, lambda statement: statement.published_verdicts()
    )
