"""Effect of ambiguity on answers: flagged questions compared with clear ones, and with their
rewritten versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from vrag_kit.analysis.comparisons import holm, paired_differences
from vrag_kit.analysis.means import per_query, to_percent
from vrag_kit.analysis.results import save_collection_answers
from vrag_kit.analysis.strata import sort_strata
from vrag_kit.papers.mrag_suite.ambiguity import AMBIGUOUS
from vrag_kit.papers.mrag_suite.ambiguous_pairs import ambiguous_minus_clear
from vrag_kit.papers.mrag_suite.rewriting import Statuses
from vrag_kit.types import Benchmark

LESS_CLEAR = "ambiguous − clear"
REWRITTEN_MINUS_CLEAR = "rewritten − clear"
REWRITTEN_MINUS_ORIGINAL = "rewritten − original"
"""The three contrasts: two over pairs of questions, one of each question with itself."""
CHECK = "check: oracle rewrite − clear"
"""Label of `REWRITTEN_MINUS_CLEAR` where questions were made ambiguous at random and then restored:
two random halves of the same questions, with expected difference 0.
"""
_ASKED, _ANEW = "original", "rewritten"
_CLEAR = "clear"
_NUMBERS = ["value", "ci_low", "ci_high", "n", "n_failed", "p", "unit", "baseline"]


def ambiguity_contrasts(
    statuses: Statuses,
    pairs: pd.DataFrame,
    as_asked: Mapping[str, pd.DataFrame],
    rewritten: Mapping[str, pd.DataFrame],
) -> pd.DataFrame:
    """Computes the three contrasts of every data set, stratum and model, in points. Columns:
    dataset, stratum, contrast, model, metric, value, ci_low, ci_high, n (pairs, or flagged
    questions), n_failed, p (of one test), unit, baseline.

    `pairs` come from `match_suite_questions`; `as_asked` and `rewritten` are judged answers
    (`judge_suite`, then `training_strata`) to the original and the rewritten questions, in one arm.
    The first two contrasts follow Table 8, over pairs of different questions; in the third a
    flagged question is compared with itself. A data set without a pair has no rows of the first
    two, one without a flagged question none at all.
    """
    tables = []
    by = ["stratum", "model"]
    for name, table in as_asked.items():
        metric = table["metric"].iloc[0]
        before, after = per_query(table, by=by), per_query(rewritten[name], by=by)
        own = pairs[pairs["dataset"] == name]
        for contrast, values in ((LESS_CLEAR, before), (REWRITTEN_MINUS_CLEAR, after)):
            if len(own):
                means = ambiguous_minus_clear(values, own, by=by)
                found = means[means["split"] == "difference"].drop(columns="split")
                told = {"dataset": name, "contrast": contrast, "metric": metric}
                tables.append(found.assign(**told, baseline=_CLEAR))
        flagged = statuses[name][statuses[name]["status"] == AMBIGUOUS]["query_id"]
        both = pd.concat([before.assign(version=_ASKED), after.assign(version=_ANEW)])
        both = both[both["query_id"].isin(flagged)]
        if len(both):
            found = paired_differences(both, arm="version", by=by, baseline=_ASKED)
            found = found[found["version"] == _ANEW]
            tables.append(
                found.assign(dataset=name, contrast=REWRITTEN_MINUS_ORIGINAL, metric=metric)
            )
    columns = ["dataset", "stratum", "contrast", "model", "metric", *_NUMBERS]
    if not tables:
        return pd.DataFrame(columns=columns)
    every = to_percent(pd.concat(tables, ignore_index=True))[columns]
    places = product(every["dataset"].unique(), sort_strata(every["stratum"]))
    keys = every.set_index(["dataset", "stratum"]).index
    return every.iloc[np.concatenate([np.flatnonzero(keys == place) for place in places])]


def oracle_rewrite_checks(contrasts: pd.DataFrame) -> pd.DataFrame:
    """Selects the rows of `contrasts` that are a `CHECK`: their keys, value, ci_low, ci_high, n, p,
    and p_holm, corrected for the number of checks. Empty if there are none.
    """
    checks = contrasts[contrasts["contrast"] == CHECK].dropna(subset="p")
    checks = checks.assign(p_holm=holm(checks["p"].to_numpy(float)))
    first = [name for name in ("evidence_source", "dataset", "stratum", "model") if name in checks]
    return checks[[*first, "value", "ci_low", "ci_high", "n", "p", "p_holm"]]


def save_question_versions(
    arms: Iterable[Sequence[Mapping[str, pd.DataFrame]]],
    versions: Sequence[Mapping[str, Benchmark]],
    folder: Path | str,
    name: str,
    answers_dir: Path | str,
) -> None:
    """Saves answers to original and rewritten questions by `save_collection_answers`; the first
    column, version, distinguishes them.

    `versions` are the data sets in both; `arms` have the judged answers of each version by data set
    (`SuiteEvaluation.evaluate`). Raises as `save_answers` does.
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
    save_collection_answers(judged, suite, folder, name, answers_dir)
