"""Main results in the form of Table 3: accuracy and gains overall, by aspect and by scenario."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from string import ascii_uppercase

import pandas as pd

from vrag_kit.analysis import column_means, mean_scores, paired_differences, per_query
from vrag_kit.analysis.comparisons import REPEATS
from vrag_kit.analysis.means import ARM
from vrag_kit.analysis.report_tables import TableRow, ci_cells, format_p, report_table
from vrag_kit.errors import VragError
from vrag_kit.generation.contexts import top_ranked
from vrag_kit.judging.multiple_choice import correct_letters, read_choice
from vrag_kit.papers.mrag_bench.audit import ASPECT_OF, ASPECTS, QUESTIONS
from vrag_kit.papers.mrag_bench.choices import LETTERS, is_unparsed
from vrag_kit.papers.mrag_bench.settings import changed_fingerprint
from vrag_kit.papers.published import format_spread, published
from vrag_kit.papers.sources import DataSource, make_data_source
from vrag_kit.types import Benchmark, DocId, QueryId

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
WEIGHTED = "Questions are weighted to the paper's proportions of scenarios; n counts questions."
"""The sentence of captions of `multiple_choice_accuracy`."""


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
    rows = judged["query_id"].map({name: each.metadata for name, each in benchmark.queries.items()})
    scenarios = rows.map(lambda row: row["scenario"])
    strata = rows.map(lambda row: row.get("source", "")).replace(_STRATA)
    return judged.assign(scenario=scenarios, aspect=scenarios.map(ASPECT_OF), stratum=strata)


def multiple_choice_accuracy(
    judged: pd.DataFrame, *, by: Sequence[str], weights: pd.Series | None = None
) -> pd.DataFrame:
    """Computes `mean_scores` with n_no_option, the number of answers that choose no option, or
    several, and score 0 (`is_unparsed`).
    """
    none = judged.assign(n_no_option=is_unparsed(judged))
    counts = none.groupby(list(by), sort=False, dropna=False)["n_no_option"].sum().reset_index()
    return mean_scores(judged, by=by, weights=weights).merge(counts, on=list(by), how="left")


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
    rows = judged.assign(overall=OVERALL)
    tables = [
        multiple_choice_accuracy(
            rows, by=[*by, level], weights=None if level == "scenario" else weights
        )
        for level in LEVELS
    ]
    return _levels(tables, by)


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
    repeats = [*REPEATS, "scenario", "aspect", *([] if arm == "setting" else [arm])]
    values = per_query(judged.assign(overall=OVERALL), by=[*by, arm, *LEVELS])
    tables = []
    for level in LEVELS:
        table = paired_differences(
            values,
            arm=arm,
            by=[*by, level],
            baseline=baseline,
            repeats=repeats,
            weights=None if level == "scenario" else weights,
        )
        tables.append(table)
    return _levels(tables, by)


def _levels(tables: Sequence[pd.DataFrame], keys: Sequence[str]) -> pd.DataFrame:
    """The tables of the three levels as one, in the order of Table 3."""
    parts = []
    for (level, names), table in zip(LEVELS.items(), tables, strict=True):
        part = table.rename(columns={level: "scenario"}).assign(level=level)
        parts.append(part.iloc[part["scenario"].map(names.index).argsort(kind="stable")])
    table = pd.concat(parts, ignore_index=True)
    first = [*keys, "level", "scenario"]
    return table[[*first, *table.columns.drop(first)]]


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
    most = results.groupby(list(rows), sort=False)["n"].transform("max")
    notes = [_notes(row, int(n)) for row, n in zip(results.to_dict("records"), most, strict=True)]
    table, index = results.assign(n=most), [*rows, "n"]
    cells = ci_cells(results) + notes
    wide = report_table(table, rows=index, columns=columns, cells=cells, empty="")
    return wide.reindex(pd.MultiIndex.from_frame(table[index].drop_duplicates()))


def _notes(row: TableRow, usual: int) -> str:
    """What a cell adds to the mean."""
    notes = []
    if pd.notna(row.get("p_holm")):
        notes.append(f"p {format_p(row['p_holm'])}")
    if row["n"] != usual:
        notes.append(f"n = {row['n']}")
    notes += [f"{row[name]} {words}" for name, words in _NOTED.items() if row.get(name, 0) > 0]
    return f" ({', '.join(notes)})" if notes else ""


def without_unlabelled_positives(
    benchmark: Benchmark, pools: Mapping[QueryId, Collection[DocId]]
) -> Benchmark:
    """Excludes unlabelled positives from each query's searches: images of its `pools`
    (`example_pools`) that are no ground truth but show the same object.
    """
    left_out = dict(benchmark.left_out)
    for query_id in benchmark.queries:
        alike = set(pools.get(query_id, ())) - set(benchmark.relevant(query_id))
        if alike:
            left_out[query_id] = left_out.get(query_id, frozenset()) | alike
    told = "\n".join(f"{name} {' '.join(sorted(ids))}" for name, ids in sorted(left_out.items()))
    return replace(benchmark, left_out=left_out, fingerprint=changed_fingerprint(benchmark, told))


def candidates_from_run(benchmark: Benchmark, run: pd.DataFrame, *, depth: int) -> Benchmark:
    """Returns the benchmark with candidate pools: each query's ground truth, and the `depth` best
    ranked other images of a run. The latter serve as non-clues and distractors in the kit's
    settings.

    Raises `VragError` for a query for which the run has fewer.
    """
    others = top_ranked(benchmark, run)
    pools = {
        query_id: (*benchmark.relevant(query_id), *others.take(query_id, 0, depth))
        for query_id in benchmark.queries
    }
    told = "\n".join(f"{name} {' '.join(pool)}" for name, pool in pools.items())
    return replace(benchmark, pools=pools, fingerprint=changed_fingerprint(benchmark, told))


NO_LETTER = "none"
"""Value of option where no single letter was parsed."""
SAME, ALL_RIGHT = "same option in all", "right in all"
_OF_QUERY = ["query_id", "group", "scenario", "aspect", "stratum"]


def chosen_letters(judged: pd.DataFrame, benchmark: Benchmark) -> pd.Series:
    """Returns the letter that each answer chooses, or "none"; missing where the call failed.

    `benchmark` is the one behind the answers: rotated, if the options were. Raises as
    `read_choice`.
    """
    letters = []
    for query_id, answer in judged[["query_id", "answer"]].itertuples(index=False, name=None):
        choices = benchmark.queries[query_id].choices
        said = isinstance(answer, str)
        letters.append(read_choice(answer, choices).letter or NO_LETTER if said else None)
    return pd.Series(letters, judged.index, dtype=object)


def with_options(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """Adds the columns of `with_scenarios`, correct_option (its letter), option (of
    `chosen_letters`) and option_text (its text, or "").
    """
    letters = chosen_letters(judged, benchmark)
    queries = [benchmark.queries[query_id] for query_id in judged["query_id"]]
    texts = [
        dict(zip(ascii_uppercase, query.choices, strict=False)).get(letter, "")
        for query, letter in zip(queries, letters, strict=True)
    ]
    correct = list(map(correct_letters, queries))
    rows = with_scenarios(judged, benchmark)
    return rows.assign(correct_option=correct, option=letters, option_text=texts)


def option_selection_rates(
    judged: pd.DataFrame,
    *,
    weights: pd.Series | None,
    by: Sequence[str] = ("model", "setting"),
) -> pd.DataFrame:
    """Computes the share of answers that choose each letter, or "none": `by`, option, metric
    ("selection_rate"), value, ci_low, ci_high, n, n_failed, as shares. Takes `with_options`.
    """
    letters = [*LETTERS, NO_LETTER]
    chosen = {letter: judged["option"].eq(letter).astype(float) for letter in letters}
    answered = judged["option"].notna()
    marked = judged.assign(**{letter: each.where(answered) for letter, each in chosen.items()})
    table = column_means(marked, letters, by=by, weights=weights)
    return table.rename(columns={"metric": "option"}).assign(metric="selection_rate")


def rotation_consistency(
    rotations: Mapping[int, pd.DataFrame],
    *,
    weights: pd.Series | None,
    by: Sequence[str] = ("model",),
) -> pd.DataFrame:
    """Computes how consistent answers are under rotations of the options: `by`, metric, value,
    ci_low, ci_high, n, n_failed, as shares of questions.

    metric is `SAME` (one option was chosen, by its text, under all rotations) or `ALL_RIGHT` (and
    it was correct, which guessing achieves in 1 of 256). `rotations` maps the rotation of the
    options to a table of `with_options`; a question without an answer under one of them is
    excluded. Raises `VragError` for fewer than two.
    """
    if len(rotations) < 2:
        raise VragError(
            f"rotation_consistency: {len(rotations)} rotation of the options; expected two or more."
        )
    every = pd.concat(list(rotations.values()), ignore_index=True)
    keys = list(dict.fromkeys([*by, *_OF_QUERY]))
    asked = every.groupby(keys, sort=False, dropna=False)
    options = asked["option_text"].agg(["nunique", "min"])
    answered = asked["option"].count() == len(rotations)
    same = (options["nunique"] == 1) & (options["min"] != "")
    steady = pd.DataFrame(
        {
            SAME: same.astype(float).where(answered),
            ALL_RIGHT: asked["score"].min().where(answered),
        }
    )
    return column_means(steady.reset_index(), [SAME, ALL_RIGHT], by=by, weights=weights)
