"""What ambiguity costs (Tables 7 and 8): agreement of detectors, ambiguous questions against clear
ones, and rewritten questions against themselves.

A table of detections has dataset, detector, query_id, group and status ("AMBIGUOUS", "CLEAR"; ""
if a reply could not be parsed).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd

from vrag_kit.analysis.agreement import association
from vrag_kit.analysis.comparisons import cluster_difference, holm, paired_differences
from vrag_kit.analysis.estimates import Estimate
from vrag_kit.analysis.means import per_query, to_percent
from vrag_kit.errors import VragError
from vrag_kit.judging.scale import scale_of
from vrag_kit.papers.mrag_suite.ambiguity import AMBIGUOUS, CLEAR
from vrag_kit.types import Benchmark, ordered

LESS_CLEAR = "ambiguous − clear"
REWRITTEN_MINUS_CLEAR = "rewritten − clear"
REWRITTEN_MINUS_ORIGINAL = "rewritten − original"
"""The three contrasts: two over pairs of questions, one of each question with itself."""
CHECK = "check: oracle rewrite − clear"
"""Label of `REWRITTEN_MINUS_CLEAR` where questions were made ambiguous at random and then restored:
two random halves of the same questions, with expected difference 0.
"""
ORIGINAL, REWRITTEN = "original", "rewritten"
_ARM = ["evidence_source", "dataset", "metric", "stratum", "model"]


def detection_agreement(detections: pd.DataFrame) -> pd.DataFrame:
    """Computes the agreement of each two detectors, over the questions of all data sets. Columns:
    one, other, both (flagged by both), only_one, only_other, neither, value (Cohen's κ), ci_low,
    ci_high, n, n_failed (pairs with an unparsed status, in none of the counts). Intervals are over
    the groups of questions. With one detector there are no rows.
    """
    flags = detections.assign(value=detections["status"].map({AMBIGUOUS: 1.0, CLEAR: 0.0}))
    keys = ["dataset", "query_id", "group"]
    wide = flags.pivot(index=keys, columns="detector", values="value")
    groups = wide.index.map("{0[0]}/{0[2]}".format)
    rows = []
    for one, other in combinations(detections["detector"].unique(), 2):
        counts = wide[[one, other]].dropna().value_counts()
        cells = [counts.get(pair, 0) for pair in product((1.0, 0.0), repeat=2)]
        kappa = association(wide[one], wide[other], groups.to_series(), measure="kappa")
        rows.append((one, other, *cells, *kappa))
    columns = ["one", "other", "both", "only_one", "only_other", "neither"]
    return pd.DataFrame(rows, columns=[*columns, *Estimate._fields])


def match_clear_questions(
    suite: Mapping[str, Benchmark],
    detections: pd.DataFrame,
    memorised: Mapping[str, Mapping[str, Collection[str]]] | None = None,
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Matches each ambiguous question with a clear one of the same data set. Columns: dataset,
    ambiguous, clear, group and clear_group (of either question), words_apart.

    `detections` are those of one detector. If `memorised` gives, by data set, the groups in each
    model's training data (`trained_groups`), partners agree in that. Partners have the nearest
    number of words, and are used once each; the ambiguous questions choose in an order by hash,
    which also breaks ties. Those for which none is left have no pair. The paper calls its clear
    questions "matched", or "random", without saying how.
    """
    rows = []
    for dataset, benchmark in suite.items():
        status = detections[detections["dataset"] == dataset].set_index("query_id")["status"]
        groups = benchmark.groups
        trained = (memorised or {}).get(dataset, {}).values()
        length = {name: len(query.text.split()) for name, query in benchmark.queries.items()}
        knows = {name: [groups[name] in of_model for of_model in trained] for name in length}
        free = ordered(status.index[status == CLEAR], seed, "clear partner")
        for name in ordered(status.index[status == AMBIGUOUS], seed, "ambiguous"):
            alike = [other for other in free if knows[other] == knows[name]]
            if not alike:
                continue
            apart = {other: abs(length[other] - length[name]) for other in alike}
            partner = min(apart, key=apart.__getitem__)
            free.remove(partner)
            rows.append((dataset, name, partner, groups[name], groups[partner], apart[partner]))
    columns = ["dataset", "ambiguous", "clear", "group", "clear_group", "words_apart"]
    return pd.DataFrame(rows, columns=columns)


def ambiguous_minus_clear(
    values: pd.DataFrame, pairs: pd.DataFrame, *, by: Sequence[str]
) -> pd.DataFrame:
    """Computes the mean over ambiguous questions minus that over their clear partners: `by`, value,
    ci_low, ci_high, n (pairs), n_failed, p.

    `values` come from `per_query` (dataset, query_id, value, score_min and score_max, `by`). A pair
    without a value on one side is in neither mean, and counted in n_failed; one without rows on
    both sides, as in another stratum, is not counted. A data set without a pair has no rows.

    The interval is over the groups of both sides (`cluster_difference`): a group may have questions
    on either. Matching by length is ignored: a correlation of partners would only narrow the
    interval. Raises `VragError` without pairs.
    """
    if pairs.empty:
        raise VragError(
            "ambiguous_minus_clear: there are no pairs; both ambiguous and clear questions of one"
            " data set are needed."
        )
    scale = scale_of(values)
    rows = []
    for key, part in values.groupby(list(by), sort=False):
        own = pairs[pairs["dataset"] == part["dataset"].iloc[0]]
        if own.empty:
            continue
        value = part.drop_duplicates("query_id").set_index("query_id")["value"]
        asked = own[own["clear"].isin(value.index) & own["ambiguous"].isin(value.index)]
        sides = pd.DataFrame({name: asked[name].map(value) for name in ("ambiguous", "clear")})
        both = sides.notna().all(axis=1)
        counts = int(both.sum()), int((~both).sum())
        numbers = [math.nan] * 4
        if both.any():
            groups = pd.concat([asked["group"][both], asked["clear_group"][both]])
            known = sides[both].to_numpy(float).ravel(order="F")
            is_ambiguous = np.arange(len(known)) < counts[0]
            found = cluster_difference(known, groups, is_ambiguous, scale)
            numbers = [found.value, *found.interval(), found.p_value()]
        rows.append((*key, *numbers[:3], *counts, numbers[3]))
    return pd.DataFrame(rows, columns=[*by, "value", "ci_low", "ci_high", "n", "n_failed", "p"])


def ambiguity_contrasts(
    judged: pd.DataFrame, detections: pd.DataFrame, pairs: pd.DataFrame, *, restored: bool = False
) -> pd.DataFrame:
    """Computes the three contrasts of every source of evidence, data set, stratum and model, in
    points. Columns: evidence_source, dataset, metric, stratum, model, value, ci_low, ci_high, n
    (pairs, or flagged questions), n_failed, p (of one test), contrast, baseline, unit, p_holm (of a
    `CHECK`, for the number of checks).

    `judged` are tables of `training_strata` with the columns evidence_source and version
    (`ORIGINAL` or `REWRITTEN`), `detections` those of one detector, `pairs` come from
    `match_clear_questions`. The first two contrasts follow Table 8, over pairs of different
    questions; in the third a flagged question is compared with itself. With `restored`, where the
    ambiguous questions were chosen at random and only their wording was put back, the second one is
    called `CHECK`.
    """
    values = per_query(judged, by=["version", *_ARM])
    tables = []
    after = CHECK if restored else REWRITTEN_MINUS_CLEAR
    contrasts = {ORIGINAL: LESS_CLEAR, REWRITTEN: after} if len(pairs) else {}
    for version, contrast in contrasts.items():
        found = ambiguous_minus_clear(values[values["version"] == version], pairs, by=_ARM)
        tables.append(found.assign(contrast=contrast, baseline="clear"))
    flagged = detections.loc[detections["status"] == AMBIGUOUS, ["dataset", "query_id"]]
    both = values.merge(flagged, on=["dataset", "query_id"])
    if len(both):
        found = paired_differences(both, arm="version", by=_ARM, baseline=ORIGINAL)
        found = found.drop(columns=["version", "p_holm"])
        tables.append(found.assign(contrast=REWRITTEN_MINUS_ORIGINAL))
    if not tables:
        return pd.DataFrame(columns=[*_ARM, "contrast", "baseline", "unit", "p_holm"])
    table = to_percent(pd.concat(tables, ignore_index=True))
    checks = table["p"].where(table["contrast"] == CHECK)
    return table.assign(p_holm=holm(checks.to_numpy(float)))
