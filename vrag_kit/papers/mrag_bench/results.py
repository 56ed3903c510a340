"""Main results in the form of Table 3: accuracy and gains overall, by aspect and by scenario."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import pandas as pd

from vrag_kit.analysis import mean_scores, paired_differences, per_query
from vrag_kit.analysis.comparisons import REPEATS
from vrag_kit.analysis.means import ARM
from vrag_kit.analysis.report_tables import TableRow, ci_cells, format_p, report_table
from vrag_kit.papers.mrag_bench.audit import ASPECTS, QUESTIONS
from vrag_kit.papers.mrag_bench.judge import is_unparsed
from vrag_kit.papers.published import format_spread, published
from vrag_kit.papers.sources import DataSource, make_data_source
from vrag_kit.types import Benchmark

OVERALL = "overall"
LEVELS = {OVERALL: [OVERALL], "aspect": list(ASPECTS), "scenario": list(QUESTIONS)}
"""Maps each level of a mean to its names in the column scenario, in the order of Table 3."""
EDITION = "MRAG-Bench, told by its counts of questions; release not known"
MODEL_GROUPS = ("open_source", "proprietary")
"""Groups of the 14 models of Table 3; its other rows are people and chance."""
CHANCE = 25.0
"""Accuracy in percent of choosing one of four options at random."""
_NOTED = {
    "n_failed": "failed",
    "n_empty": "empty",
    "n_truncated": "truncated",
    "n_no_option": "no option chosen",
}
"""Maps a count to its label in a cell."""
_STRATA = {"new": "unseen species", "known species": "seen species"}
"""Maps a row's source in the synthetic data to its stratum."""
_ASPECT_OF: dict[str, str] = {}
for _aspect, _names in ASPECTS.items():
    _ASPECT_OF |= dict.fromkeys(_names, _aspect)


def is_paper_data(benchmark: Benchmark) -> bool:
    """Whether every scenario of the benchmark has the paper's number of questions."""
    counts = Counter(str(query.metadata["scenario"]) for query in benchmark.queries.values())
    return all(QUESTIONS[scenario] == count for scenario, count in counts.items())


def data_source(benchmark: Benchmark) -> DataSource:
    """Returns the data source of statement checks: the paper's own data, or data without a verdict.
    The released files' hashes are unknown here; the data are identified by their counts.
    """
    return make_data_source(benchmark, EDITION if is_paper_data(benchmark) else "")


def scenario_weights(benchmark: Benchmark) -> pd.Series | None:
    """Returns the paper's proportions of the scenarios (Figure 2) as weights for means over several
    of them; None, for unweighted means over questions, on the paper's own data.
    """
    return None if is_paper_data(benchmark) else pd.Series(QUESTIONS).rename_axis("scenario")


def with_scenarios(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """Adds the columns scenario, aspect and stratum of each query. The stratum is the row's
    "source": "unseen species" or "seen species" in the synthetic data.
    """
    told = {query_id: query.metadata for query_id, query in benchmark.queries.items()}
    scenarios = judged["query_id"].map(lambda query_id: told[query_id]["scenario"])
    sources = judged["query_id"].map(lambda query_id: told[query_id].get("source", ""))
    strata = sources.replace(_STRATA)
    aspects = scenarios.map(_ASPECT_OF)
    return judged.assign(scenario=scenarios, aspect=aspects, stratum=strata)


def multiple_choice_accuracy(
    judged: pd.DataFrame, *, by: Sequence[str], weights: pd.Series | None = None
) -> pd.DataFrame:
    """Computes `mean_scores` with n_no_option, the number of answers that choose no option, or
    several, and score 0 (`is_unparsed`); without it if `judged` has no marks.
    """
    table, arm = mean_scores(judged, by=by, weights=weights), list(by)
    if "marks" not in judged:
        return table
    none = judged.assign(n_no_option=is_unparsed(judged))
    counts = none.groupby(arm, sort=False, dropna=False)["n_no_option"].sum().reset_index()
    return table.merge(counts, on=arm, how="left")


def accuracy_by_scenario(
    judged: pd.DataFrame, *, weights: pd.Series | None, by: Sequence[str] = ARM
) -> pd.DataFrame:
    """Computes `multiple_choice_accuracy` of each arm at three levels, as shares. Columns: `by`,
    level ("overall", "aspect" or "scenario"), scenario (the name of either, or "overall"), and
    those of `multiple_choice_accuracy` from metric on.

    `judged` comes from `with_scenarios`. Above the scenarios, means over questions are weighted by
    `weights` (`scenario_weights`; None: unweighted) over the scenarios present, with the interval
    of a stratified sample over groups.
    """
    keys = list(by)
    tables = [
        multiple_choice_accuracy(judged, by=keys, weights=weights).assign(scenario=OVERALL),
        multiple_choice_accuracy(judged, by=[*keys, "aspect"], weights=weights).rename(
            columns={"aspect": "scenario"}
        ),
        multiple_choice_accuracy(judged, by=[*keys, "scenario"]),
    ]
    return _levels(tables, keys)


def gains_by_scenario(
    judged: pd.DataFrame,
    *,
    weights: pd.Series | None,
    arm: str = "setting",
    baseline: Hashable = "no_rag",
    by: Sequence[str] = ("model",),
) -> pd.DataFrame:
    """Computes paired differences of every setting from `baseline` on the same questions, at the
    levels of `accuracy_by_scenario`. Columns: `by`, level, scenario, setting, value, ci_low,
    ci_high, n, n_failed, p, baseline, p_holm (see `paired_differences`), as shares. `arm` may be
    another column than setting, such as the number of examples or a position.

    p_holm corrects for the models of one setting, and within a level for its scenarios too: in
    which of them a setting helps is one question with nine answers. The same holds for positions:
    for an arm other than setting it corrects for all values.
    """
    repeats = [*REPEATS, "scenario", "aspect"]
    if arm != "setting":
        repeats.append(arm)
    keys = list(by)
    values = per_query(judged, by=[*keys, arm, "aspect", "scenario"])
    tables = []
    for level in LEVELS:
        asked = keys if level == OVERALL else [*keys, level]
        table = paired_differences(
            values,
            arm=arm,
            by=asked,
            baseline=baseline,
            repeats=repeats,
            weights=None if level == "scenario" else weights,
        )
        name = {level: "scenario"}
        tables.append(table.rename(columns=name) if level in table else table)
    tables[0] = tables[0].assign(scenario=OVERALL)
    return _levels(tables, keys)


def published_range() -> pd.DataFrame:
    """Formats the range of the accuracies of the paper's 14 models, "26.8 to 68.7, median 53.9",
    and people's, in columns "<setting>: …", by scenario. People's overall numbers are macro
    averages of nine scenarios, models' are micro averages over questions.
    """
    columns = {}
    for setting in ("no_rag", "retrieved_rag", "gt_rag"):
        models = published("mrag_bench", 3, setting=setting, model_group=MODEL_GROUPS)
        people = published("mrag_bench", 3, setting=setting, model_group="human")
        columns[f"{setting}: 14 models"] = format_spread(models, ["scenario"])
        accuracies = people.set_index("scenario")["value"]
        columns[f"{setting}: people"] = accuracies.map("{:.1f}".format)
    return pd.DataFrame(columns).reindex([OVERALL, *QUESTIONS])


def scenario_table(
    results: pd.DataFrame,
    *,
    rows: Sequence[str] = ("level", "scenario"),
    columns: Sequence[str] = ("model", "setting"),
) -> pd.DataFrame:
    """Formats results in percent: `rows` and n down, `columns` across, cells "52.1 [43.0, 61.1]".
    Cells add Holm's p if there is one, how many answers failed, are empty or choose no option, and
    n where it is less than in the rest of the row.
    """
    index = list(rows)
    most = results.groupby(index, sort=False)["n"].transform("max")
    notes = [_notes(row, int(n)) for row, n in zip(results.to_dict("records"), most, strict=True)]
    table, index = results.assign(n=most), [*index, "n"]
    cells = ci_cells(results) + notes
    wide = report_table(table, rows=index, columns=columns, cells=cells, empty="")
    return wide.reindex(pd.MultiIndex.from_frame(table[index].drop_duplicates()))


def _levels(tables: Sequence[pd.DataFrame], keys: Sequence[str]) -> pd.DataFrame:
    """The tables of the three levels as one, in the order of Table 3."""
    parts = [table.assign(level=level) for level, table in zip(LEVELS, tables, strict=True)]
    table = pd.concat(parts, ignore_index=True)
    first = [*keys, "level", "scenario"]
    table = table[[*first, *(name for name in table if name not in first)]]
    places: dict[tuple[str, str], int] = {}
    for level, names in LEVELS.items():
        places |= {(level, name): len(places) + place for place, name in enumerate(names)}
    named = pd.MultiIndex.from_frame(table[["level", "scenario"]])
    order = named.map(places).argsort(kind="stable")
    return table.iloc[order].reset_index(drop=True)


def _notes(row: TableRow, usual: int) -> str:
    """What a cell adds to the mean."""
    notes = []
    if pd.notna(row.get("p_holm")):
        notes.append(f"p {_equals(format_p(row['p_holm']))}")
    if row["n"] != usual:
        notes.append(f"n = {row['n']}")
    for name, words in _NOTED.items():
        if row.get(name, 0) > 0:
            notes.append(f"{row[name]} {words}")
    return f" ({', '.join(notes)})" if notes else ""


def _equals(p: str) -> str:
    """ "= 0.02", "< 0.0001"."""
    return p if p.startswith("<") else f"= {p}"
