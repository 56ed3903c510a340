"""What ambiguity costs answers: flagged questions beside clear ones, and beside themselves
said anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.analysis.accuracy import per_query
from vrag_kit.analysis.comparison import compare, holm
from vrag_kit.analysis.percent import in_percent
from vrag_kit.analysis.saved_answers import save_suite_answers
from vrag_kit.analysis.strata import strata_in_order
from vrag_kit.papers.mrag_suite.ambiguity import AMBIGUOUS
from vrag_kit.papers.mrag_suite.ambiguous_pairs import ambiguous_less_clear
from vrag_kit.papers.mrag_suite.said_anew import Statuses
from vrag_kit.types import Benchmark

LESS_CLEAR = "ambiguous less clear"
ANEW_LESS_CLEAR = "the same, said anew, less clear"
ANEW_LESS_ASKED = "said anew less as asked"
"""The three contrasts: two of pairs of questions, one of each question with itself."""
CHECK = "check: put back less clear"
"""What `ANEW_LESS_CLEAR` is where a lot chose the questions that were made ambiguous, and they
have their words back: two random halves of the same questions, of which 0 is expected.
"""
_ASKED, _ANEW = "as asked", "said anew"
_CLEAR = "clear questions"
_NUMBERS = ["value", "ci_low", "ci_high", "n", "n_failed", "p", "unit", "baseline"]


def ambiguity_contrasts(
    statuses: Statuses,
    pairs: pd.DataFrame,
    as_asked: Mapping[str, pd.DataFrame],
    anew: Mapping[str, pd.DataFrame],
) -> pd.DataFrame:
    """The three contrasts of every data set, stratum and model, in points: dataset,
    stratum, contrast, model, metric, value, ci_low, ci_high, n (pairs, or flagged
    questions), n_failed, p (of one test), unit, baseline.

    `pairs` come from `pairs_of_suite`; `as_asked` and `anew` are judged answers
    (`judged_by_own`, then `by_training`) to the questions as they were asked and as they
    were said anew, in one arm. The first two contrasts are Table 8's way, over pairs of
    unlike questions; in the third a flagged question is compared with itself. A data set
    without a pair has no rows of the first two, one without a flagged question none at all.
    """
    tables = []
    by = ["stratum", "model"]
    for name, table in as_asked.items():
        metric = table["metric"].iloc[0]
        before, after = per_query(table, by=by), per_query(anew[name], by=by)
        own = pairs[pairs["dataset"] == name]
        for contrast, values in ((LESS_CLEAR, before), (ANEW_LESS_CLEAR, after)):
            if len(own):
                means = ambiguous_less_clear(values, own, by=by)
                found = means[means["split"] == "difference"].drop(columns="split")
                told = {"dataset": name, "contrast": contrast, "metric": metric}
                tables.append(found.assign(**told, baseline=_CLEAR))
        flagged = statuses[name][statuses[name]["status"] == AMBIGUOUS]["query_id"]
        both = pd.concat([before.assign(version=_ASKED), after.assign(version=_ANEW)])
        both = both[both["query_id"].isin(flagged)]
        if len(both):
            found = compare(both, arm="version", by=by, baseline=_ASKED)
            found = found[found["version"] == _ANEW]
            tables.append(found.assign(dataset=name, contrast=ANEW_LESS_ASKED, metric=metric))
    columns = ["dataset", "stratum", "contrast", "model", "metric", *_NUMBERS]
    if not tables:
        return pd.DataFrame(columns=columns)
    every = in_percent(pd.concat(tables, ignore_index=True))[columns]
    places = product(every["dataset"].unique(), strata_in_order(every["stratum"]))
    keys = every.set_index(["dataset", "stratum"]).index
    return every.iloc[np.concatenate([np.flatnonzero(keys == place) for place in places])]


def checks_of(contrasts: pd.DataFrame) -> pd.DataFrame:
    """The lines of `contrasts` that are a `CHECK`, one each: what they are about, value,
    ci_low, ci_high, n, p, and p_holm, corrected for the number of checks. Empty where
    there is none.
    """
    checks = contrasts[contrasts["contrast"] == CHECK].dropna(subset="p")
    checks = checks.assign(p_holm=holm(checks["p"].to_numpy(float)))
    first = [name for name in ("arm", "dataset", "stratum", "model") if name in checks]
    return checks[[*first, "value", "ci_low", "ci_high", "n", "p", "p_holm"]]


def save_versions(
    arms: Iterable[Sequence[Mapping[str, pd.DataFrame]]],
    versions: Sequence[Mapping[str, Benchmark]],
    folder: Path | str,
    name: str,
    answers_dir: Path | str,
) -> None:
    """`save_suite_answers` of questions as asked and as said anew, which the first column,
    version, tells apart.

    `versions` are the data sets in both; `arms` have of each version the judged answers
    by data set (`Asker.judged`). Raises as `save_answers` does.
    """
    judged: dict[str, pd.DataFrame] = {}
    suite: dict[str, Benchmark] = {}
    for arm, tables in enumerate(arms):
        for version, benchmarks, told in zip((_ASKED, _ANEW), versions, tables, strict=True):
            for dataset, table in told.items():
                one = f"{dataset}, {version}, {arm}"
                judged[one] = table.copy()
                judged[one].insert(0, "version", version)
                suite[one] = benchmarks[dataset]
    save_suite_answers(judged, suite, folder, name, answers_dir)
