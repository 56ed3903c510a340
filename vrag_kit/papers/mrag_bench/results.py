"""Main results in the form of Table 3: accuracy and gains overall, by aspect and by
scenario.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import pandas as pd

from vrag_kit.analysis import Mix, accuracy, compare, per_query
from vrag_kit.analysis.accuracy import ARM
from vrag_kit.analysis.cells import interval_cell, p_cell
from vrag_kit.analysis.comparison import REPEATS
from vrag_kit.analysis.settings_table import Row
from vrag_kit.papers.mrag_bench.audit import ASPECTS, QUESTIONS
from vrag_kit.papers.mrag_bench.choice_judge import without_choice
from vrag_kit.papers.published import published, spread_in_words
from vrag_kit.papers.sources import Source, source_in
from vrag_kit.types import Benchmark

OVERALL = "overall"
LEVELS = {OVERALL: [OVERALL], "aspect": list(ASPECTS), "scenario": list(QUESTIONS)}
"""Level of a mean → its names in the column scenario, in the order of Table 3."""
EDITION = "MRAG-Bench, told by its counts of questions; release not known"
CHANCE = 25.0
"""Percent right by drawing one of four options."""
_NOTED = {
    "n_failed": "failed",
    "n_empty": "empty",
    "n_cut_off": "cut off",
    "n_no_choice": "without a choice",
}
"""Count → what a cell calls it."""
_ASPECT_OF: dict[str, str] = {}
for _aspect, _names in ASPECTS.items():
    _ASPECT_OF |= dict.fromkeys(_names, _aspect)


def is_papers_data(benchmark: Benchmark) -> bool:
    """Whether every scenario of the benchmark has the paper's number of questions."""
    counts = Counter(str(query.metadata["scenario"]) for query in benchmark.queries.values())
    return all(QUESTIONS[scenario] == count for scenario, count in counts.items())


def source_of(benchmark: Benchmark) -> Source:
    """What statements of the paper are held against: its own data, or data on which there is
    no verdict. The released files' hashes are not known here: counts tell.
    """
    return source_in(benchmark, EDITION if is_papers_data(benchmark) else "")


def papers_mix(benchmark: Benchmark) -> Mix | None:
    """The paper's proportions of the scenarios (Figure 2), in which means over several of
    them are taken; None, for plain means over questions, on the paper's own data.
    """
    return None if is_papers_data(benchmark) else Mix("scenario", QUESTIONS)


def with_scenarios(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """The table of answers with the columns scenario, aspect and stratum of the query;
    the stratum is the row's "source": "new" or "known species" in the drawn editions.
    """
    told = {query_id: query.metadata for query_id, query in benchmark.queries.items()}
    scenarios = judged["query_id"].map(lambda query_id: told[query_id]["scenario"])
    sources = judged["query_id"].map(lambda query_id: told[query_id].get("source", ""))
    aspects = scenarios.map(_ASPECT_OF)
    return judged.assign(scenario=scenarios, aspect=aspects, stratum=sources)


def accuracy_of_choices(
    judged: pd.DataFrame, *, by: Sequence[str], mix: Mix | None = None
) -> pd.DataFrame:
    """`accuracy` with n_no_choice, how many answers choose no option, or several, and so
    earn nothing (`without_choice`); without that where `judged` has no marks.
    """
    table, arm = accuracy(judged, by=by, mix=mix), list(by)
    if "marks" not in judged:
        return table
    none = judged.assign(n_no_choice=without_choice(judged))
    counts = none.groupby(arm, sort=False, dropna=False)["n_no_choice"].sum().reset_index()
    return table.merge(counts, on=arm, how="left")


def accuracy_by_scenario(
    judged: pd.DataFrame, *, mix: Mix | None, by: Sequence[str] = ARM
) -> pd.DataFrame:
    """`accuracy` of each arm at three levels: `by`, level ("overall", "aspect" or
    "scenario"), scenario (the name of either, or "overall"), and the columns of
    `accuracy_of_choices` from metric on, as shares.

    `judged` comes from `with_scenarios`. Above the scenarios, means are over questions
    in the proportions of `mix` (`papers_mix`; None: as they are), of those scenarios
    that were asked, and the interval is that of a stratified sample over groups.
    """
    keys = list(by)
    tables = [
        accuracy_of_choices(judged, by=keys, mix=mix).assign(scenario=OVERALL),
        accuracy_of_choices(judged, by=[*keys, "aspect"], mix=mix).rename(
            columns={"aspect": "scenario"}
        ),
        accuracy_of_choices(judged, by=[*keys, "scenario"]),
    ]
    return _levels(tables, keys)


def gains_by_scenario(
    judged: pd.DataFrame,
    *,
    mix: Mix | None,
    arm: str = "setting",
    baseline: Hashable = "no_rag",
    by: Sequence[str] = ("model",),
) -> pd.DataFrame:
    """Paired differences of every setting to `baseline` on the same questions, at the
    levels of `accuracy_by_scenario`: `by`, level, scenario, setting, value, ci_low,
    ci_high, n, n_failed, p, baseline, p_holm (see `compare`), as shares. Another column than
    setting may be the `arm`, such as the number of examples or a place.

    p_holm corrects for the models of one setting, and within a level for its scenarios
    too: in which of them a setting helps is one question with nine answers. So is
    whether places differ: of another arm than setting it corrects for all values.
    """
    repeats = [*REPEATS, "scenario", "aspect"]
    if arm != "setting":
        repeats.append(arm)
    keys = list(by)
    values = per_query(judged, by=[*keys, arm, "aspect", "scenario"])
    tables = []
    for level in LEVELS:
        asked = keys if level == OVERALL else [*keys, level]
        table = compare(
            values,
            arm=arm,
            by=asked,
            baseline=baseline,
            repeats=repeats,
            mix=None if level == "scenario" else mix,
        )
        name = {level: "scenario"}
        tables.append(table.rename(columns=name) if level in table else table)
    tables[0] = tables[0].assign(scenario=OVERALL)
    return _levels(tables, keys)


def printed_main() -> pd.DataFrame:
    """Table 3 as printed: model_group ("random", "human", "open_source",
    "proprietary"), model, setting, scenario ("overall" too), value and gain, in percent
    and points.

    `gain` is the value less the same model's without examples, computed from the table:
    two printed differences of GPT-4o are off by another scenario's. People's overall
    numbers are plain means of nine scenarios, models' are over questions.
    """
    table = published("mrag_bench", 3)
    key = ["model", "scenario"]
    alone = table[table["setting"] == "no_rag"].set_index(key)["value"].rename("alone")
    both = table.join(alone, on=key)
    columns = ["model_group", "model", "setting", "scenario", "value"]
    return both[columns].assign(gain=both["value"] - both["alone"])


def printed_gains() -> pd.DataFrame:
    """The gains of the paper's 14 models in the columns of `gains_by_scenario`: model,
    level, setting, scenario, baseline, metric, value, unit ("percent": of the accuracies
    that are compared), in points.
    """
    table = printed_main()
    models = table["model_group"].isin(["open_source", "proprietary"])
    table = table[models].assign(
        level=table["scenario"].where(table["scenario"] == OVERALL, "scenario")
    )
    return gains_as_ours(table)


def gains_as_ours(printed: pd.DataFrame) -> pd.DataFrame:
    """The column gain of printed accuracies in the columns of `printed_gains`, without the
    rows of what it is over, "no_rag".
    """
    gains = printed[printed["setting"] != "no_rag"]
    named = gains.assign(value=gains["gain"], baseline="no_rag", metric="accuracy", unit="percent")
    first = ["model", "level", "setting", "scenario"]
    return named[[*first, "baseline", "metric", "value", "unit"]]


def printed_range(column: str = "value") -> pd.DataFrame:
    """What the paper's 14 models reach, "26.8 to 68.7, median 53.9", and people, in
    columns "<setting>: …", by scenario; of the column value or gain of `printed_main`.
    """
    table = printed_main()
    columns = {}
    for setting in ("no_rag", "retrieved_rag", "gt_rag"):
        if setting == "no_rag" and column == "gain":
            continue
        of_setting = table[table["setting"] == setting]
        models = of_setting[of_setting["model_group"].isin(["open_source", "proprietary"])]
        spread = spread_in_words(models, ["scenario"], column=column)
        people = of_setting[of_setting["model_group"] == "human"].set_index("scenario")[column]
        columns[f"{setting}: 14 models"] = spread
        columns[f"{setting}: people"] = people.map("{:.1f}".format)
    return pd.DataFrame(columns).reindex([OVERALL, *QUESTIONS])


def scenario_table(
    results: pd.DataFrame,
    *,
    rows: Sequence[str] = ("level", "scenario"),
    columns: Sequence[str] = ("model", "setting"),
) -> pd.DataFrame:
    """`rows` and n down, `columns` across, cells "52.1 [43.0, 61.1]" of results in
    percent, with Holm's p where there is one, how many answers failed, are
    empty or choose nothing, and n where it is less than in the rest of the row.
    """
    index = list(rows)
    most = results.groupby(index, sort=False)["n"].transform("max")
    cells = [
        _cell(row, int(usual)) for row, usual in zip(results.to_dict("records"), most, strict=True)
    ]
    told = results.assign(cell=cells, n=most)
    order = told[[*index, "n"]].drop_duplicates()
    wide = told.pivot_table(
        index=[*index, "n"], columns=list(columns), values="cell", aggfunc="first", sort=False
    )
    return wide.reindex(pd.MultiIndex.from_frame(order)).fillna("")


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


def _cell(row: Row, usual: int) -> str:
    """One mean in words."""
    cell = interval_cell(row["value"], row["ci_low"], row["ci_high"])
    notes = []
    if pd.notna(row.get("p_holm")):
        notes.append(f"p {_equals(p_cell(row['p_holm']))}")
    if row["n"] != usual:
        notes.append(f"n = {row['n']}")
    for name, words in _NOTED.items():
        if row.get(name, 0) > 0:
            notes.append(f"{row[name]} {words}")
    return f"{cell} ({', '.join(notes)})" if notes else cell


def _equals(p: str) -> str:
    """ "= 0.02", "< 0.0001"."""
    return p if p.startswith("<") else f"= {p}"
