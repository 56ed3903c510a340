"""Answer quality in the layout of the paper's Table 3: settings down, models across."""

from __future__ import annotations

import pandas as pd

from vrag_kit.analysis.published import printed

SETTING_NAMES = {"zero_shot": "zero-shot (no image)", "gt_clue": "GT clue (1 image)", "non_clue": "non-clue (1 image)", "top_k": "top-k", "one_in_k": "1-in-k"}


def settings_table(results: pd.DataFrame, paper: pd.DataFrame | None = None) -> pd.DataFrame:
    """Rows (setting, k), columns models; our cells read "mean [low, high]", with n where answers failed; the paper's, below the same rows, are marked as on other data.

    Both in percent: `results` as `in_percent(accuracy(…))` of one metric, `paper` as `published("visual_rag", table=3)` or `table=8`.
    """
    ours = results.assign(cell=[f"{value:.1f} [{low:.1f}, {high:.1f}]" + (f" (n = {n}, {failed} failed)" if failed else "")
                                for value, low, high, n, failed in results[["value", "ci_low", "ci_high", "n", "n_failed"]].itertuples(index=False)])
    tables = [ours]
    if paper is not None:
        rows = ours[["setting", "k"]].drop_duplicates()
        tables.append(printed(paper).assign(model=paper["model"] + " (paper, other data)", cell=paper["value"].map("{:.2f}".format)).merge(rows, on=["setting", "k"]))
    both = pd.concat(tables, ignore_index=True)
    both = both.assign(setting=both["setting"].map(SETTING_NAMES))
    return both.pivot_table(index=["setting", "k"], columns="model", values="cell", aggfunc="first", sort=False).fillna("")
