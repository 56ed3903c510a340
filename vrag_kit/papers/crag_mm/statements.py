"""Statements of the CRAG-MM paper about results, checked against measured differences between two
settings or slices; verdicts on the paper's data only.
"""

from __future__ import annotations

import math

import pandas as pd

from vrag_kit.config import Workspace
from vrag_kit.papers.crag_mm.audit import CONVERSATIONS
from vrag_kit.papers.crag_mm.conversations import NEEDS_HISTORY
from vrag_kit.papers.sources import DataSource, make_data_source
from vrag_kit.papers.statements import (
    load_statements,
    save_statement_checks,
    select_differences,
)
from vrag_kit.types import Benchmark

PAPER = "crag_mm"
STATEMENTS = load_statements(PAPER)
"""The statements, in the order of the paper."""
OF_CONVERSATIONS = ("task_3", NEEDS_HISTORY)
"""Settings and slices of which statements are about conversations."""
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
    single: Benchmark,
    multi: Benchmark,
    at: Workspace,
) -> pd.DataFrame:
    """Checks the paper's statements that a notebook's differences can test, one row per statement
    and model, and saves them as NN_claims.csv below the workspace's `figures_dir`. Columns
    are `STATEMENT_COLUMNS` of `papers.statements`.

    `notebook` is its number ("52"); `differences` are `truthfulness_gains` or `slice_contrast`:
    model, metric, setting, baseline, value, ci_low, ci_high, n, in points. Statements about
    task_3 or history are about `multi`, the others about `single`; a verdict is given on the
    paper's own data only (`save_statement_checks`). Raises `VragError` if the folder cannot be
    written.
    """
    statements = [each for each in STATEMENTS if each.notebook == notebook]
    sources = {
        each.name: data_source(multi if each.setting in OF_CONVERSATIONS else single)
        for each in statements
    }
    numbers = select_differences(statements, differences)
    return save_statement_checks(PAPER, notebook, numbers, sources, at)
