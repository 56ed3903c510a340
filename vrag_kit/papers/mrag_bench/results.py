"""Main results in the form of Table 3: accuracy and gains overall, by aspect and by scenario; and
checks of the paper's statements about them, with verdicts on the paper's data only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import cache
from itertools import chain, product
from pathlib import Path
from string import ascii_uppercase
from textwrap import shorten
from typing import Any  # arguments of `ask_models`

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler
from PIL import ImageOps

from vrag_kit.analysis import column_means, mean_scores, paired_differences, per_query, to_percent
from vrag_kit.analysis.comparisons import REPEATS
from vrag_kit.analysis.report_tables import TableRow, ci_cells, finding, format_p, report_table
from vrag_kit.analysis.strata import ALL
from vrag_kit.config import Entry
from vrag_kit.generation import ask_models
from vrag_kit.generation.contexts import top_ranked
from vrag_kit.generation.generators import CustomGenerator
from vrag_kit.judging import judge_answers
from vrag_kit.judging.multiple_choice import correct_letters, read_choice
from vrag_kit.papers import statements
from vrag_kit.papers.mrag_bench.choices import LETTERS, MultipleChoiceJudge, is_unparsed
from vrag_kit.papers.mrag_bench.settings import ASPECT_OF, ASPECTS, QUESTIONS
from vrag_kit.papers.statements import AT_CHANCE, data_columns, select_differences
from vrag_kit.plotting.images import draw_thumbnail
from vrag_kit.plotting.style import SMALL, fit, new_figure, set_caption
from vrag_kit.types import Benchmark, Context, DocId, QueryId
from vrag_kit.workspace import Workspace

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
NAMES = {
    "no_rag": "no examples",
    "retrieved_text": "retrieved text",
    "retrieved_rag": "retrieved examples",
    "gt_text": "gold text",
    "gt_rag": "gold examples",
    "gt_image_and_text": "gold examples and text",
    "mismatched_rag": "mismatched examples",
    OVERALL: "all scenarios",
    "reported": "reported in the paper",
    "rows": "retrieved set of the data",
    "hit@5": "Gold image among the five (hit@5)",
    "selection_rate": "Answers with each letter",
    "micro": "Micro average (paper's proportions)",
    "macro": "Macro average (of scenarios)",
    "language model": "language model in place of people",
    "best_first": "best first",
    "best_last": "best last",
    "zero_shot": "no examples",
    "gt_clue": "one gold image",
    "non_clue": "one image that is not gold",
    "first_clue": "best ranked gold image",
    "one_in_k": "1-in-k (one image is gold)",
    "top_k": "first k retrieved",
}
"""Maps settings, metrics and levels to their names in figures and tables, in this order."""
_NAMED = ["setting", "baseline", "scenario", "retriever", "position"]
"""Columns whose values a table names as `NAMES` does."""
WEIGHTED = "Questions are weighted to the paper's proportions of scenarios; n counts questions."
"""The sentence of captions of `multiple_choice_accuracy`."""


def is_paper_data(benchmark: Benchmark) -> bool:
    """Whether every scenario of the benchmark has the paper's number of questions."""
    counts = Counter(str(query.metadata["scenario"]) for query in benchmark.queries.values())
    return all(QUESTIONS[scenario] == count for scenario, count in counts.items())


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


def judge_choices(benchmark: Benchmark, answers: pd.DataFrame) -> pd.DataFrame:
    """Judges answers by the option that they choose (`MultipleChoiceJudge`), with the columns of
    `with_scenarios`.
    """
    return with_scenarios(judge_answers(MultipleChoiceJudge(), benchmark, answers), benchmark)


def ask_arms(
    models: Sequence[Entry | CustomGenerator],
    arms: Mapping[Hashable, tuple[Benchmark, Sequence[Context]]],
    at: Workspace,
    *,
    arm: str,
    **how: Any,
) -> pd.DataFrame:
    """Asks models in arms that are not settings, such as rotations of the options, each with its
    benchmark and contexts, and judges the answers as `judge_choices`. The first column, `arm`, is
    the key of the arm in `arms`. `how` are the other arguments of `ask_models`.
    """
    tables = {}
    for name, (benchmark, contexts) in arms.items():
        answers = ask_models(models, benchmark, contexts, at, **how)
        tables[name] = judge_choices(benchmark, answers).drop(columns=arm, errors="ignore")
    return pd.concat(tables, names=[arm]).reset_index(arm).reset_index(drop=True)


_LEVEL = ["level", "part"]
_PLACES = list(chain.from_iterable(product([level], names) for level, names in LEVELS.items()))


def _at_levels(judged: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The rows once for each level, whose name is in the columns level and part; where "stratum" is
    in `by`, all of them again as the stratum `ALL`.
    """
    if "stratum" in by:
        judged = pd.concat([judged, judged.assign(stratum=ALL)], ignore_index=True)
    rows = judged.assign(overall=OVERALL)
    levels = [rows.assign(level=level, part=rows[level]) for level in LEVELS]
    return pd.concat(levels, ignore_index=True)


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """The table in percent and in the order of Table 3, with the column part as scenario."""
    parts = zip(table["level"], table["part"], strict=True)
    order = np.argsort([_PLACES.index(part) for part in parts], kind="stable")
    table = table.iloc[order].reset_index(drop=True)
    return to_percent(table.rename(columns={"part": "scenario"}))


def accuracy_by_scenario(
    judged: pd.DataFrame,
    *,
    weights: pd.Series | None,
    by: Sequence[str] = ("model", "stratum", "setting"),
) -> pd.DataFrame:
    """Computes `mean_scores` of each arm at three levels, in percent. Columns: `by`, level
    ("overall", "aspect" or "scenario"), scenario (the name of either, or "overall"), those of
    `mean_scores` from metric on, and n_no_option, the number of answers that choose no option, or
    several, and score 0 (`is_unparsed`).

    `judged` comes from `judge_choices`. Above the scenarios, means over questions are weighted by
    `weights` (`scenario_weights`; None: unweighted) over the scenarios present, with the interval
    of a stratified sample over groups. With "stratum" in `by`, "all questions" follow the strata.
    """
    rows, keys = _at_levels(judged.assign(n_no_option=is_unparsed(judged)), by), [*by, *_LEVEL]
    counts = rows.groupby(keys, sort=False, dropna=False)["n_no_option"].sum().reset_index()
    means = mean_scores(rows, by=keys, weights=weights)
    return _in_order(means.merge(counts, on=keys, how="left"))


def gains_by_scenario(
    judged: pd.DataFrame,
    *,
    weights: pd.Series | None,
    arm: str = "setting",
    baseline: Hashable = "no_rag",
    by: Sequence[str] = ("model", "stratum"),
) -> pd.DataFrame:
    """Computes paired differences of every setting from `baseline` on the same questions, in
    points, at the levels of `accuracy_by_scenario`. Columns: `by`, level, scenario, setting, value,
    ci_low, ci_high, n, n_failed, p, baseline, p_holm (see `paired_differences`), metric, unit.
    `arm` may be another column than setting, such as the number of examples or a position.

    p_holm corrects for the models of one setting, and within a level for its scenarios too: in
    which of them a setting helps is one question with nine answers. The same holds for positions:
    for an arm other than setting it corrects for all values.
    """
    repeats = [*REPEATS, "part", *([] if arm == "setting" else [arm])]
    values = per_query(_at_levels(judged, by), by=[*by, *_LEVEL, arm, "scenario"])
    keys = [*by, *_LEVEL]
    table = paired_differences(
        values, arm=arm, by=keys, baseline=baseline, repeats=repeats, weights=weights
    )
    return _in_order(table[[*keys, *table.columns.drop(keys)]].assign(metric="accuracy"))


def settings_at_chance(means: pd.DataFrame) -> pd.DataFrame:
    """Returns the settings with evidence whose 95 % interval over all questions contains chance,
    one option in four, of `accuracy_by_scenario`. There, a difference tests no statement.
    """
    overall = means["level"].eq(OVERALL) & means["stratum"].eq(ALL) & means["metric"].eq("accuracy")
    shows = ~means["setting"].isin(["no_rag", "0"])
    return means[overall & shows & means["ci_low"].le(CHANCE) & means["ci_high"].ge(CHANCE)]


def scenario_table(
    results: pd.DataFrame,
    *,
    rows: Sequence[str] = ("stratum", "level", "scenario"),
    columns: Sequence[str] = ("model", "setting"),
) -> pd.DataFrame:
    """Formats results in percent: `rows` and n down, `columns` across, cells "52.1 [43.0, 61.1]";
    only accuracies, unless the metric is in `rows` or `columns`, and single scenarios only of all
    questions. Settings have their `NAMES`. Cells add Holm's p if there is one, how many answers
    failed, are empty or choose no option, and n where it is less than in the rest of the row.
    """
    if "metric" not in (*rows, *columns):
        results = results[results["metric"] == "accuracy"]
    if "stratum" in rows and "level" in results:
        results = results[results["level"].eq(OVERALL) | results["stratum"].eq(ALL)]
    most = results.groupby(list(rows), sort=False)["n"].transform("max")
    notes = [_notes(row, int(n)) for row, n in zip(results.to_dict("records"), most, strict=True)]
    table = results.assign(n=most).replace(dict.fromkeys(_NAMED, NAMES))
    index, cells = [*rows, "n"], ci_cells(results) + notes
    wide = report_table(table, rows=index, columns=columns, cells=cells, empty="")
    return wide.reindex(pd.MultiIndex.from_frame(table[index].drop_duplicates()))


def findings(
    gains: pd.DataFrame,
    arm: str = "accuracy of {model} with {setting}",
    baseline: str = "that with {baseline}",
) -> list[str]:
    """Returns a sentence (`finding`) for each difference over all questions and scenarios of
    `gains_by_scenario`; `arm` and `baseline` are filled in from its columns, settings by `NAMES`.
    """
    overall = gains[gains["level"].eq(OVERALL) & gains["stratum"].eq(ALL)]
    rows = overall.replace({"setting": NAMES, "baseline": NAMES}).to_dict("records")
    return [finding(row, arm.format_map(row), baseline.format_map(row)) for row in rows]


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
    return benchmark.derive(told, left_out=left_out)


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
    return benchmark.derive(told, pools=pools)


NO_LETTER = "none"
"""Value of option where no single letter was parsed."""


def with_options(judged: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """Adds the columns of `with_scenarios`, correct_option (its letter), option (the letter that
    the answer chooses, or "none"; missing where the call failed), option_text (its text, or "") and
    A, B, C, D and none: 1 for the option, 0 for the others, NaN where the call failed.

    `benchmark` is the one behind the answers: rotated, if the options were. Raises as
    `read_choice`.
    """
    found: dict[str, list[str | None]] = {"correct_option": [], "option": [], "option_text": []}
    for query_id, answer in zip(judged["query_id"], judged["answer"], strict=True):
        query, called = benchmark.queries[query_id], isinstance(answer, str)
        letter = read_choice(answer, query.choices).letter if called else None
        options = dict(zip(ascii_uppercase, query.choices, strict=False))
        found["correct_option"].append(correct_letters(query))
        found["option"].append(letter or NO_LETTER if called else None)
        found["option_text"].append(options.get(letter or "", ""))
    rows = with_scenarios(judged, benchmark)
    rows[list(found)] = pd.DataFrame(found, rows.index, dtype=object)
    for name in (*LETTERS, NO_LETTER):
        rows[name] = rows["option"].eq(name).astype(float).where(rows["option"].notna())
    return rows


def rotation_consistency(
    letters: pd.DataFrame, *, weights: pd.Series | None, by: Sequence[str] = ("model",)
) -> pd.DataFrame:
    """Computes how consistent answers are under rotations of the options: `by`, metric, value,
    ci_low, ci_high, n, n_failed, in percent of questions.

    metric is "same option in all" (one option was chosen, by its text, under all rotations) or
    "right in all" (and it was correct, which guessing achieves in 1 of 256). `letters` are tables
    of `with_options` with a column rotation; a question without an answer under one of them is
    excluded.
    """
    asked = letters.groupby([*by, "query_id", "group", "scenario"], sort=False, dropna=False)
    texts, answers = asked["option_text"], asked["option"].count()
    same = texts.nunique().eq(1) & texts.min().ne("")
    found = {"same option in all": same.astype(float), "right in all": asked["score"].min()}
    complete = answers == letters["rotation"].nunique()
    shares = pd.DataFrame(found).where(complete).reset_index()
    return to_percent(column_means(shares, list(found), by=by, weights=weights))


_SETTINGS = {"no_rag": "no examples", "gt_rag": "gold", "retrieved_rag": "retrieved"}


def examples_figure(benchmark: Benchmark, scores: pd.DataFrame, title: str) -> Figure:
    """Plots a card for each row of `scores`, three in a row: the question's image, a gold one and
    the first that was retrieved (framed: gold); below each image whether the model is correct
    without examples, with gold or with retrieved ones; then the question and its options. Columns:
    query_id, model, scenario, and the score in the setting no_rag, gt_rag and retrieved_rag.
    """
    figure, axes = new_figure(-(-len(scores) // 3), 3, height=0.7 * len(scores) + 0.35)
    for axis in axes.flat:
        axis.set_axis_off()
    for axis, row in zip(axes.flat, scores.to_dict("records"), strict=False):
        query, gold = benchmark.queries[row["query_id"]], benchmark.relevant(row["query_id"])
        documents = ["", *gold[:1], *query.metadata.get("retrieved", ())[:1]]
        images = [query.image, *(benchmark.corpus[each].image for each in documents[1:])]
        for place, (setting, doc_id, image) in enumerate(
            zip(_SETTINGS, documents, images, strict=False)
        ):
            if image is not None:
                picture = ImageOps.pad(image.open(), (150, 150), color="white")
                corner, framed = (place + 0.03, -0.97), doc_id in gold
                draw_thumbnail(axis, picture, corner, 0.94, framed=framed)
            mark = "✓" if row[setting] > 0 else "✗"
            name = f"{mark} {_SETTINGS[setting]}"
            axis.text(place + 0.5, -1.14, name, fontsize=SMALL, ha="center", weight="bold")
        lines = [fit(query.text, 2.1)]
        for letter, choice in zip(ascii_uppercase, query.choices, strict=False):
            line = shorten(f"({letter}) {choice}", 40, placeholder=" …")
            lines.append(f"{line} ✓" if choice in query.answers else line)
        axis.text(0, -1.25, "\n".join(lines), fontsize=SMALL, va="top", linespacing=1.4)
        axis.text(0, 0.08, row["scenario"], fontsize=8, weight="bold")
        axis.set(xlim=(0, 3), ylim=(-2.32, 0.25))
    caption = f"""{benchmark.name}: a question of each scenario, answered by
        {", ".join(scores["model"].unique())} without examples, with gold and with retrieved ones.
        Left: the question's image; framed: a gold image; right: the top retrieved image. Each was
        selected for the outcome of the title where its scenario has one: the questions are no
        random sample. ✓: correct. The percentage weights scenarios by the paper's proportions."""
    set_caption(figure, title, caption)
    return figure


@cache
def published_names() -> dict[str, str]:
    """Maps a checkpoint's name in our tables to its name in Table 3."""
    table = pd.read_csv(Path(__file__).with_name("models.csv"), keep_default_na=False)
    names = table.melt("model", ["checkpoint", "instead"], "column", "name")
    names["name"] = names["name"].str.split(r" \(|@").str[0].str.strip().str.replace("/", "-")
    return dict(zip(names["name"], names["model"], strict=True))


def check_statements(
    notebook: str,
    differences: pd.DataFrame,
    benchmark: Benchmark,
    at: Workspace,
    means: pd.DataFrame | None = None,
) -> Styler:
    """Checks the paper's statements that a notebook's differences can test (`check_statements` of
    `papers.statements`), overall.

    "Almost all open models decline" is tested for each: a model that gains contradicts it.

    `notebook` is its number ("31"); `differences` are `gains_by_scenario`, or correlations in the
    same columns. Verdicts are given on the paper's own data only; the
    released files' hashes are unknown here, so these data are identified by their counts. With
    `means` (`accuracy_by_scenario`) there is no verdict where one of the two settings is at chance
    (`settings_at_chance`). Raises `VragError` if the folder cannot be written.
    """
    overall = differences[differences["scenario"] == OVERALL]
    if "stratum" in overall:
        overall = overall[overall["stratum"] == ALL]
    numbers = select_differences("mrag_bench", notebook, overall, published_names())
    edition = EDITION if is_paper_data(benchmark) else ""
    numbers = numbers.assign(**data_columns(benchmark, edition))
    if means is not None:
        chance = settings_at_chance(means).set_index(["model", "setting"]).index
        for side in ("setting", "baseline"):
            arms = pd.MultiIndex.from_frame(numbers[["model", side]])
            numbers.loc[arms.isin(chance), "verdict"] = AT_CHANCE
    return statements.check_statements("mrag_bench", notebook, numbers, at)
