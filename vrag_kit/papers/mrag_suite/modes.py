"""Short answers in the modes of evidence, each data set by its own metric (Table 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from vrag_kit.analysis.accuracy import column_means, per_query
from vrag_kit.analysis.cells import NOTHING, differences_table, interval_cells
from vrag_kit.analysis.comparison import by_question, compare
from vrag_kit.analysis.strata import ALL, with_strata
from vrag_kit.generation.told import told_facts
from vrag_kit.judging import SHARES, Judge, judge_all, load_judge, scale_of
from vrag_kit.options import Entry
from vrag_kit.papers.mrag_suite.own_metrics import own_metric
from vrag_kit.papers.mrag_suite.printed import (
    MODES,
    printed_claims,
    printed_modes,
    printed_range,
)
from vrag_kit.types import Benchmark, Query

ZERO_SHOT = "zero_shot"
ABSTENTION = "abstention"
ARMS = {
    ZERO_SHOT: "nothing",
    MODES[0]: "distractors only",
    MODES[1]: "gold and distractors",
    MODES[2]: "gold only",
}
"""Setting → what is shown, from nothing that answers to nothing else."""
EFFECTS = (
    (MODES[2], ZERO_SHOT),
    (MODES[1], MODES[2]),
    (MODES[0], ZERO_SHOT),
)
"""(setting, the one it is set against): what gold evidence adds, what distractors cost
beside it, and what they do alone.
"""
_ARM = ["dataset", "metric", "model", "stratum", "setting"]


def judged_by_own(
    datasets: Mapping[str, Benchmark],
    answers: Mapping[str, pd.DataFrame],
    judge: Judge | Mapping[str, Judge],
) -> dict[str, pd.DataFrame]:
    """Data set → its judged answers (`judge_all`) with the column metric: the data set's
    own (`own_metric`), or, where it has none, what its `judge` gives, under that name.
    """
    judged = {}
    for name, table in answers.items():
        whose = judge[name] if isinstance(judge, Mapping) else judge
        metric = own_metric(name, datasets[name])
        own = load_judge(metric) if metric else whose
        metric = metric or f"judged by {own.name}"
        judged[name] = judge_all(own, datasets[name], table).assign(metric=metric)
    return judged


def by_training(
    judged: Mapping[str, pd.DataFrame], datasets: Mapping[str, Benchmark], models: Sequence[Entry]
) -> dict[str, pd.DataFrame]:
    """The tables of `judged_by_own` with a column stratum: what a model was told in
    training (`told_facts`, of the questions of all data sets together) and what not,
    and then all questions, unless a data set has but one stratum. Where it is not
    recorded what models were told, there is "all questions" alone.
    """
    told = told_in_suite(models, datasets)
    found = {}
    for name, table in judged.items():
        if not set(table["model"]) <= set(told):
            found[name] = table.assign(stratum=ALL)
            continue
        apart = with_strata(table, told)
        is_one = apart["stratum"].nunique() == 2  # it, and all questions
        found[name] = apart[apart["stratum"] != ALL] if is_one else apart
    return found


def told_in_suite(
    models: Sequence[Entry], datasets: Mapping[str, Benchmark]
) -> dict[str, frozenset[str]]:
    """`told_facts` about the questions of all data sets together: so a data set all of
    whose species are outside training data is known to be so.
    """
    queries: dict[str, Query] = {}
    for name, benchmark in datasets.items():
        queries |= {f"{name} {query_id}": each for query_id, each in benchmark.queries.items()}
    every = replace(next(iter(datasets.values())), name="the suite", queries=queries)
    return told_facts(models, every)


def mode_means(judged: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Means of a data set's own metric, then of how many answers decline (metric
    "abstention"): dataset, metric, model, stratum (where the tables have one), setting,
    value, ci_low, ci_high, n, n_failed (answers without a score, which are left out).
    """
    tables, by = [], _by(judged)
    for name, table in judged.items():
        own = table["metric"].iloc[0]
        told = table.assign(dataset=name)
        for column, metric in (("score", own), ("abstained", ABSTENTION)):
            scale = scale_of(table) if column == "score" else SHARES
            means = column_means(told, [column], by=[b for b in by if b != "metric"], scale=scale)
            tables.append(means.assign(metric=metric))
    means = pd.concat(tables, ignore_index=True)
    return means[[*by, *(name for name in means if name not in by)]]


def _by(judged: Mapping[str, pd.DataFrame]) -> list[str]:
    """What tells rows apart."""
    has_strata = any("stratum" in table for table in judged.values())
    return [name for name in _ARM if has_strata or name != "stratum"]


def mode_effects(judged: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """`EFFECTS` on the same questions: dataset, metric, model, stratum (where the tables
    have one), setting, than (what it is set against), value, ci_low, ci_high, n,
    n_failed, p, p_holm.

    A question is left out of an effect whose two settings show it the same documents, as
    where gold evidence leaves no room for distractors. p_holm corrects each effect for all
    data sets and models, the strata in one family and what pools them in another. No data
    sets are pooled, as no two metrics are one.
    """
    tables, by = [], _by(judged)
    for name, table in judged.items():
        values = per_query(table.assign(dataset=name), by=by)
        for setting, than in EFFECTS:
            same = _shown_alike(table, setting, than)
            keys = pd.MultiIndex.from_frame(values[["model", "query_id"]])
            pair = values[values["setting"].isin([setting, than]) & ~keys.isin(same)]
            if len(pair):
                found = compare(pair, arm="setting", by=by[:-1], baseline=than)
                tables.append(found.assign(than=than))
    table = pd.concat(tables, ignore_index=True)
    pools = table.assign(pools=table["stratum"].eq(ALL) if "stratum" in table else False)
    table["p_holm"] = by_question(pools, ["setting", "than", "pools"])
    first = [*by, "than"]
    return table[[*first, *(name for name in table if name not in first)]]


def _shown_alike(judged: pd.DataFrame, setting: str, than: str) -> list[tuple[str, str]]:
    """(model, query_id) of the questions that both settings show the same documents."""
    some = judged[judged["setting"].isin([setting, than]) & (judged["doc_ids"].str.len() > 0)]
    sets = some.assign(shown=some["doc_ids"].map(frozenset))
    counts = sets.groupby(["model", "query_id"]).agg({"setting": "nunique", "shown": "nunique"})
    return list(counts.index[(counts["setting"] == 2) & (counts["shown"] == 1)])


def effects_table(effects: pd.DataFrame) -> pd.DataFrame:
    """`differences_table` of `in_percent(mode_effects(…))`, what is shown in words."""
    shown = effects["setting"].map(ARMS)
    return differences_table(effects.assign(setting=shown, than=effects["than"].map(ARMS)))


def modes_beside_print(means: pd.DataFrame) -> pd.DataFrame:
    """Data sets, their metrics and what is shown down; our models' cells with n, and what
    the paper's models reach on its data (`printed_range`): EM/Accuracy of Table 5, and
    the F1 over claims of Tables 14 and 15, by modality where it prints two. "–" where it
    prints none.

    `means` are `in_percent(mode_means(…))`, of which the own metrics are shown.
    """
    keys = [name for name in _ARM if name in means and name != "model"]
    own = means[means["metric"] != ABSTENTION]
    cells = own.assign(cell=interval_cells(own, n=True))
    wide = cells.pivot_table(index=keys, columns="model", values="cell", aggfunc="first")
    known = cells[keys].drop_duplicates()
    table = wide.reindex(pd.MultiIndex.from_frame(known))[list(cells["model"].unique())]
    places = pd.MultiIndex.from_frame(known[["dataset", "setting"]])
    for title, paper in _printed().items():
        spread = printed_range(paper, ["dataset", "setting"])
        table[f"{title}: {spread.name}"] = spread.reindex(places).to_numpy()
    return table.rename(index=ARMS, level="setting").fillna(NOTHING)


def _printed() -> dict[str, pd.DataFrame]:
    """What the paper prints by mode, by title."""
    claims = printed_claims(14, 15)
    f1 = claims[claims["metric"] == "f1"]
    texts = f1["modality"] == "text"
    return {
        "Table 5, EM/Accuracy": printed_modes(),
        "Tables 14 and 15, F1, pictures": f1[~texts],
        "Tables 14 and 15, F1, texts": f1[texts],
    }
